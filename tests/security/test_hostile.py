"""Names of any content are names and nothing more: they touch no other row and alter nothing."""

import itertools
import sqlite3

import pytest

import stemma
from stemma import Selector, Source
from stemma.testing.builders import HOSTILE


@pytest.fixture(params=["memory", "sqlite"])
def cache(request, tmp_path):
    url = ":memory:" if request.param == "memory" else tmp_path / "cache.db"
    with stemma.open(url, embedder=None) as opened:
        yield opened


PAIR = "\ud83d\ude00"
"""Two lone surrogates, which are not the character that such a pair stands for in UTF-16."""


def shown(text):
    return ascii(text[:16])


def store(cache, value, *, tenant="t", question="q", sources=(), **said):
    model = said.pop("model", "m")
    with cache.using(tenant=tenant, **said), cache.trace() as frame:
        frame.read_sources([(source, "") for source in sources], {})
        return cache.calls.get_or_compute(question, lambda: value, model=model)


def stored(cache):
    """How many entries there are for each tenant."""
    sizes = cache.engine.parts.store.sizes()
    counts: dict = {}
    for (tenant, _), count in sizes.items():
        counts[tenant] = counts.get(tenant, 0) + count
    return {tenant: count for tenant, count in counts.items() if count}


FIELDS = ("tenant", "session", "user", "arm", "tags", "subject", "writer", "pool", "language")
SELECTED = ("tenant", "tag", "subject", "writer", "model", "source", "index")


@pytest.mark.parametrize(
    "field", ["tenant", "model", "question", "language", "pool", "permissions"]
)
def test_each_name_has_a_value_of_its_own(cache, field):
    """No two of them are ever taken for one, in whatever part of the scope or the request."""
    for name in HOSTILE:
        said = {field: [name] if field == "permissions" else name}
        if field == "pool":  # is only searched: what is stored is the tenant's own
            said = {"tenant": f"pool:{name}"}
        assert not store(cache, ascii(name), **said).outcome.hit, shown(name)
    for name in HOSTILE:
        said = {field: [name] if field == "permissions" else name}
        if field == "pool":
            with cache.using(tenant="reader", pool=name):
                assert not cache.calls.lookup("q", model="m").hit
            continue
        served = store(cache, "another", **said)
        assert (served.outcome.hit, served.value) == (True, ascii(name)), shown(name)


@pytest.mark.parametrize("field", SELECTED)
def test_taking_back_by_a_name_takes_what_has_that_name_and_nothing_else(cache, field):
    names = [*HOSTILE, "t", "m"]
    for number, name in enumerate(names):
        said = {field: name} if field in ("tenant", "subject", "writer", "model") else {}
        if field == "tag":
            said = {"tags": (name, f"other {number}")}
        if field in ("source", "index"):
            document = name if field == "source" else f"document {number}"
            index = name if field == "index" else "docs"
            found = Source(document=document, chunk=f"chunk {number}", content="c", index=index)
            said = {"sources": [found]}
        if field == "index":
            with cache.using(tenant="t"):
                cache.retrievals.get_or_compute("q", lambda n=number: [n], index=name)
        else:
            store(cache, number, question=f"q {number}", **said)
    everything = len(names)
    for taken, name in enumerate(names, start=1):
        listed = cache.recall(**{field: name}, dry_run=True)
        gone = cache.recall(**{field: name})
        assert len(listed) == len(gone) == 1, shown(name)
        assert sum(stored(cache).values()) == everything - taken, shown(name)


@pytest.mark.parametrize("field", [name for name in SELECTED if name != "source"])
def test_clearing_a_name_nobody_has_clears_nothing(cache, field):
    store(cache, "kept", tenant="acme", tags=("acme",), subject="acme", writer="acme", model="acme")
    for name in HOSTILE:
        if name == "acme":
            continue
        assert len(cache.clear(**{field: name})) == 0, shown(name)
    assert stored(cache) == {"acme": 1}


@pytest.mark.parametrize("label", ["session", "user", "arm", "subject", "writer", "tags"])
def test_labels_come_back_as_they_were_and_never_separate(cache, label):
    for number, name in enumerate(HOSTILE):
        store(
            cache, number, question=f"q {number}", **{label: (name,) if label == "tags" else name}
        )
        assert store(cache, "another", question=f"q {number}").value == number
    found = cache.engine.parts.store.find(limit=1_000)
    names = {getattr(entry.labels, label) for entry in found}
    assert names == {(name,) if label == "tags" else name for name in HOSTILE}


def test_a_pair_of_surrogates_is_not_the_character_wherever_it_stands():
    for put in (
        lambda x: x, lambda x: [x], lambda x: {x: 1}, lambda x: {"k": {"k": [x]}}, lambda x: {x},
        lambda x: {"$k": x}, lambda x: {1: {x: x}}, lambda x: f"{x}\ud800", lambda x: (x, "😀"),
    ):  # fmt: skip
        assert stemma.canonical(put(PAIR)) != stemma.canonical(put("😀"))


@pytest.mark.parametrize("value", HOSTILE, ids=shown)
def test_values_and_questions_of_any_content_come_back(cache, value):
    kept = {"text": value, value: [value]}
    first = store(cache, kept, question=value)
    assert not first.outcome.hit
    if value == PAIR:  # JSON would make one character of it, so it is not stored
        assert first.stored.refused == "unstorable"
        kept = "kept"
        store(cache, kept, question=value)
    served = store(cache, "another", question=value)
    assert served.outcome.hit
    assert served.value == kept


def test_entry_ids_of_any_content_are_unknown_ids(cache):
    store(cache, "kept")
    for name in HOSTILE:
        assert len(cache.recall(entry=name)) == 0
        assert cache.engine.parts.store.get([name]).entries == {}
        assert cache.engine.parts.store.find(Selector(entry=name)) == ()
        with pytest.raises(stemma.UsageError, match="no entry"):
            cache.report(name, "hallucinated", by=f"{name}!")
        with pytest.raises(stemma.UsageError, match="no entry"):
            cache.lineage(name)
    assert stored(cache) == {"t": 1}


def test_reports_and_statistics_take_any_name(cache):
    for number, name in enumerate(HOSTILE):
        store(cache, number, tenant=name)
        entry = cache.engine.parts.store.find(Selector(tenant=name))[0]
        assert cache.report(entry.id, "supported", by=f"{name}!").judgement.by == f"{name}!"
    assert set(stored(cache)) == set(HOSTILE)
    assert {row.tenant for row in cache.stats().rows} == set(HOSTILE)


def test_the_tables_are_what_they_were(tmp_path):
    """After all of it the schema is unaltered, and nothing is left that another could meet."""

    def schema():
        with sqlite3.connect(tmp_path / "cache.db") as file:
            rows = file.execute(
                "SELECT type, name, sql FROM sqlite_master ORDER BY name"
            ).fetchall()
        file.close()
        return rows

    with stemma.open(tmp_path / "cache.db", embedder=None, tenant="t") as cache:
        cache.check()
        before = schema()
        for name, field in itertools.product(HOSTILE[:12], FIELDS):
            said = {field: (name,) if field == "tags" else name}
            store(cache, 1, **({} if field == "tenant" else {"tenant": "t"}), **said)
        for name, field in itertools.product(HOSTILE[:12], SELECTED):
            cache.recall(**{field: name})
        assert cache.check() == ()
        assert schema() == before


@pytest.mark.parametrize("wrong", ["", None, 3, b"acme", ["acme"], {"acme": 1}])
def test_what_is_no_text_is_no_tenant(cache, wrong):
    with pytest.raises((stemma.UsageError, stemma.TenantRequired)):
        store(cache, 1, tenant=wrong)
    assert stored(cache) == {}


def test_neither_prompt_nor_tenants_secrets_are_in_what_is_printed(cache, caplog):
    """`repr` of a hit, a miss, a ticket, an entry, and every event: no prompt text, no value."""
    events = []
    cache.listen(events.append)
    with cache.using(tenant="t"):
        miss = cache.calls.lookup("the secret question", model="m", exact="the secret prompt")
        stored = cache.calls.put(miss.ticket, "the secret answer")
        hit = cache.calls.lookup("the secret question", model="m", exact="the secret prompt")
    printed = " ".join(map(repr, [miss, miss.ticket, stored, hit, hit.entry, cache, *events]))
    assert hit.hit
    assert "secret" not in printed
    assert "secret" not in caplog.text
