"""Holding back what may be wrong: what is held, what it means at read and put, and letting go."""

import asyncio
import threading

import pytest

import stemma
from stemma import UsageError
from stemma.outcome import Held, Quarantine
from stemma.testing.builders import NOW, entry, put, put_one

STYLES = {"sync": lambda cache, name, *a, **k: getattr(cache, name)(*a, **k)}
STYLES["async"] = lambda cache, name, *a, **k: asyncio.run(getattr(cache, f"a{name}")(*a, **k))


@pytest.fixture(params=sorted(STYLES))
def do(request):
    """Calls a method of the cache, or its async twin."""
    return STYLES[request.param]


@pytest.fixture(params=["memory", "sqlite"])
def cache(request, tmp_path):
    url = ":memory:" if request.param == "memory" else tmp_path / "answers.db"
    with stemma.open(url, embedder=None, tenant="acme") as opened:
        yield opened


@pytest.fixture
def store(cache):
    return cache.engine.parts.store


@pytest.fixture
def family(store):
    """An answer, its copy in a pool, and what another tenant built on that: half as likely each."""
    seed = put_one(store, entry("seed", "yes"))
    copy = put_one(store, entry("copy", "yes", pool="shop"), parents=[seed])
    child = put_one(store, entry("child", "so", tenant="beta", hop=2), parents=[copy])
    grandchild = put_one(store, entry("grandchild", "thus", tenant="beta", hop=3), parents=[child])
    return seed, copy, child, grandchild


def held(store, family):
    return {one.id for one in store.get([one.id for one in family]).entries.values() if one.held}


def test_what_is_likely_enough_wrong_is_held_and_the_rest_is_not(cache, store, family, do):
    events = []
    cache.listen(events.append)
    receipt = do(cache, "quarantine", "seed", by="ada", reason="it looks wrong")
    assert [(one.entry, one.probability) for one in receipt.entries] == [
        ("seed", 1.0),
        ("copy", 1.0),
        ("child", 0.5),
    ]
    assert held(store, family) == {"seed", "copy", "child"}
    assert (receipt.by_tenant, receipt.by_pool) == ({"acme": 1, "beta": 1}, {"shop": 1})
    assert (receipt.by_hop, receipt.by_node) == ({1: 2, 2: 1}, {"answer": 3})
    assert (receipt.seeds, receipt.by, receipt.reason) == ({"seed": 1.0}, "ada", "it looks wrong")
    assert do(cache, "quarantines") == (receipt,)
    (event,) = [one for one in events if one.kind == "quarantine"]
    assert (event.outcome, event.detail) == ("held", str(receipt))


def test_a_rehearsal_holds_nothing(cache, store, family, do):
    before = store.sequence()
    receipt = do(cache, "quarantine", "seed", by="ada", threshold=0.25, dry_run=True)
    assert len(receipt) == 4
    assert receipt.dry_run
    assert receipt.id == ""
    assert (held(store, family), store.sequence()) == (set(), before)
    assert cache.quarantines() == ()


def test_what_is_released_is_served_again_and_what_has_gone_is_named(cache, store, family, do):
    receipt = do(cache, "quarantine", "seed", by="ada")
    store.remove(["copy"])
    released = do(cache, "release", receipt)
    assert released.gone == ("copy",)
    assert released.lifted is not None
    assert "1 of them gone" in str(released)
    assert held(store, family) == set()
    assert do(cache, "release", receipt.id).lifted == released.lifted
    with pytest.raises(UsageError, match="no quarantine 'none'"):
        do(cache, "release", "none")
    with pytest.raises(UsageError, match="receipt or id"):
        do(cache, "release", 7)


def test_two_quarantines_hold_until_both_are_released(cache, store, family):
    one = cache.quarantine("seed", by="ada")
    two = cache.quarantine("child", by="bob")
    cache.release(one)
    assert held(store, family) == {"child", "grandchild"}
    cache.release(two)
    assert held(store, family) == set()


def test_a_seed_that_has_gone_is_followed(cache, store, family, do):
    store.remove(["seed"])
    assert [one.entry for one in do(cache, "quarantine", "seed", by="ada").entries] == [
        "copy",
        "child",
    ]


def test_seeds_by_probability_source_and_tenant(cache, store, family):
    put_one(store, entry("other", "x", tenant="beta", node="embedding"))
    feared = cache.quarantine({"seed": 0.2}, by="ada", dry_run=True)
    assert {one.entry: one.probability for one in feared.entries} == {"seed": pytest.approx(0.2)}
    as_likely = cache.quarantine({"seed": 0.2}, by="ada", threshold=0.2, dry_run=True)
    assert {one.entry for one in as_likely.entries} == {"seed", "copy"}
    both = cache.quarantine("seed", {"child": 0.9}, by="ada", dry_run=True)
    assert dict(both.seeds) == {"seed": 1.0, "child": 0.9}
    mine = cache.quarantine(tenant="beta", by="ada", dry_run=True)
    assert {one.entry for one in mine.entries} == {"child", "grandchild"}
    assert cache.quarantine(source="nowhere", by="ada", dry_run=True).entries == ()


@pytest.mark.parametrize(
    ("seeds", "named", "words"),
    [
        ((), {}, "name what is suspected"),
        (("never",), {}, "no entry 'never'"),
        (({"seed": 0.0},), {}, "above 0"),
        (({"seed": 1.5},), {}, "share"),
        (({7: 0.5},), {}, "text"),
        ((7,), {}, "not int"),
        (("seed",), {"threshold": 0.0}, "threshold"),
        (("seed",), {"threshold": 2}, "threshold"),
        (("seed",), {"by": None}, "by must say who"),
        (("seed",), {"by": " "}, "by must say who"),
        (("seed",), {"source": 7}, "source must be a text"),
    ],
)
def test_what_cannot_be_meant(cache, family, seeds, named, words):
    for do in STYLES.values():
        with pytest.raises(UsageError, match=words):
            do(cache, "quarantine", *seeds, **{"by": "ada", **named})
    assert held(cache.engine.parts.store, family) == set()


def test_nothing_new_is_built_on_what_was_held_since_it_was_read(cache, store, family):
    since = store.sequence()
    receipt = cache.quarantine("seed", by="ada")
    late = put(entry("late", "so"), since=since, parents=[family[1]])
    assert store.put([late], NOW)[0].refused == "parent_gone"
    cache.release(receipt)
    assert store.put([late], NOW)[0].entry is not None


@pytest.mark.parametrize("style", ["sync", "async"])
def test_an_answer_that_read_what_is_held_before_it_is_stored(cache, style):
    """The hold falls between the reading of the parent and the put of the child."""
    cache.answers.get_or_compute("first", lambda: "yes")
    parent = cache.answers.lookup("first").entry

    def read_then_held():
        assert cache.answers.lookup("first").hit
        cache.quarantine(parent.id, by="ada")
        return "so"

    async def read():
        with cache.trace():
            return await cache.answers.aget_or_compute("second", read_then_held)

    if style == "sync":
        with cache.trace():
            assert cache.answers.get_or_compute("second", read_then_held).value == "so"
    else:
        assert asyncio.run(read()).value == "so"
    assert cache.answers.lookup("second").reason == "cold"
    assert cache.answers.lookup("first").reason == "quarantined"


def test_what_is_stored_while_it_is_reckoned_is_held_as_well(cache, store, family, monkeypatch):
    """Another writer comes between the reading of what was built, and the hold."""
    hold, writers = store.hold, [lambda: put_one(store, entry("late", "so"), parents=[family[1]])]

    def late(receipt):
        while writers:
            writers.pop()()
        return hold(receipt)

    monkeypatch.setattr(store, "hold", late)
    receipt = cache.quarantine("seed", by="ada")
    assert "late" in {one.entry for one in receipt.entries}
    assert store.get(["late"]).entries["late"].held == receipt.id
    assert [one.lifted is None for one in cache.quarantines()] == [True, False]
    assert cache.quarantines()[0] == receipt
    cache.release(receipt)
    assert store.get(["late"]).entries["late"].held == ""


def test_readers_beside_a_quarantine_see_it_from_when_it_returns(cache):
    cache.answers.get_or_compute("q", lambda: "a")
    parent = cache.answers.lookup("q").entry
    done, wrong = threading.Event(), []

    def reader():
        while not done.is_set():
            before = after.is_set()
            if cache.answers.lookup("q").hit and before:
                wrong.append("served")

    after = threading.Event()
    threads = [threading.Thread(target=reader) for _ in range(2)]
    for one in threads:
        one.start()
    receipt = cache.quarantine(parent.id, by="ada")
    after.set()
    for _ in range(50):
        assert cache.answers.lookup("q").reason == "quarantined"
    done.set()
    for one in threads:
        one.join()
    assert not wrong
    assert isinstance(receipt, Quarantine)


def test_what_was_verified_again_is_served(cache):
    cache.answers.get_or_compute("q", lambda: "a")
    parent = cache.answers.lookup("q").entry
    cache.quarantine(parent.id, by="ada")
    cache.report(parent.id, "supported", by="bob")
    assert cache.answers.lookup("q").hit


def test_a_rehearsal_has_nothing_to_release(cache, family, do):
    rehearsal = do(cache, "quarantine", "seed", by="ada", dry_run=True)
    with pytest.raises(UsageError, match="a rehearsal holds nothing"):
        do(cache, "release", rehearsal)


def test_a_receipt_names_pools_and_so_many_tenants():
    tenants = [f"t{number:02}" for number in range(12)]
    held = [
        Held(entry=name, tenant=name, node="answer", hop=1, probability=1.0) for name in tenants
    ]
    copy = Held(entry="copy", tenant="t00", node="answer", hop=1, probability=1.0, pool="shops")
    said = str(Quarantine(seeds={}, threshold=0.3, by="ada", at=0.0, entries=(*held, copy)))
    assert said.startswith("quarantine held 13 entries: 1 in pool shops, 1 of t00, 1 of t01, ")
    assert said.endswith(", 1 of t08, and of 3 others")
