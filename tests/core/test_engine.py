"""What is served, what is not, and why: in both call styles, in memory and on disk."""

import pytest

import stemma
from stemma import CacheFault, Cost, Hit, LifePolicy, Miss, Source, StoreError, TenantRequired
from stemma.policies.life import AHEAD
from stemma.testing.clock import ManualClock
from stemma.testing.fakes import Scripted as Model

ASK = "How do I reset the password of my account?"
REWORDED = "How do I reset my account's password?"


def test_the_second_call_does_not_reach_the_model(cache, do, model):
    first = do(cache.answers.get_or_compute, ASK, model)
    second = do(cache.answers.get_or_compute, ASK, model)
    assert (first.value, second.value, model.calls) == ("answer 1", "answer 1", 1)
    assert isinstance(first.outcome, Miss)
    assert first.outcome.reason == "cold"
    assert isinstance(second.outcome, Hit)
    assert second.outcome.tier == "exact"


def test_a_miss_hands_out_a_ticket_and_the_put_stores_under_it(cache, do):
    miss = do(cache.answers.lookup, ASK)
    stored = do(cache.answers.put, miss.ticket, {"text": "so"}, cost=Cost(tokens=7, seconds=2.0))
    hit = do(cache.answers.lookup, ASK)
    assert stored.entry.id == hit.entry.id == miss.ticket.key.id
    assert hit.value == {"text": "so"}
    assert hit.note()["saved_tokens"] == 7


def test_a_rewording_is_served_by_meaning_and_says_so(cache, do, model):
    do(cache.answers.get_or_compute, ASK, model)
    hit = do(cache.answers.lookup, REWORDED)
    assert hit.tier == "semantic"
    assert 0.6 <= hit.similarity < 1
    assert 0 < hit.probability <= 1
    assert "similarity" in hit.why


def test_other_numbers_are_refused_with_the_reason_and_the_nearest(cache, do, model):
    stored = do(cache.answers.get_or_compute, "What happened in Rome in 1921?", model).stored
    miss = do(cache.answers.lookup, "What happened in Rome in 1922?")
    assert miss.reason == "guard:number"
    assert miss.nearest == stored.entry.id


def test_nothing_near_is_below_the_threshold(cache, do, model):
    do(cache.answers.get_or_compute, ASK, model)
    miss = do(cache.answers.lookup, "Tell me a joke about penguins")
    assert miss.reason == "below_threshold"
    assert miss.similarity < 0.6


@pytest.mark.parametrize(
    "other",
    [
        {"chain": "v2"},
        {"model": "big"},
        {"parameters": {"temperature": 0}},
        {"parameters": {"temperature": 0.7}},
        {"parameters": {"unknown_future_field": 1}},
        {"exact": ["system prompt"]},
        {"exact": []},
        {"exact": ""},
        {"exact": 0},
        {"before": ("an earlier turn",)},
    ],
)
def test_whatever_shapes_the_answer_is_in_the_key(cache, do, model, other):
    do(cache.answers.get_or_compute, ASK, model)
    assert not do(cache.answers.lookup, ASK, **other).hit
    assert not do(cache.answers.lookup, REWORDED, **other).hit
    do(cache.answers.get_or_compute, ASK, model, **other)
    assert do(cache.answers.lookup, ASK, **other).hit
    assert model.calls == 2


def test_factors_and_permissions_separate_and_labels_do_not(cache, do, model):
    with cache.using(language="de", session="s1", tags="a"):
        do(cache.answers.get_or_compute, ASK, model)
    assert not do(cache.answers.lookup, ASK).hit
    with cache.using(language="en"):
        assert not do(cache.answers.lookup, ASK).hit
    with cache.using(language="de", permissions=["admin"]):
        assert not do(cache.answers.lookup, ASK).hit
    with cache.using(language="de", session="s2", user="u", tags=["b"]):
        hit = do(cache.answers.lookup, ASK)
    assert hit.hit
    assert hit.entry.labels.tags == ("a",)


def test_tenants_get_nothing_of_each_other(cache, do, model):
    for tenant in ("a", "b", "A", "a ", "me"):
        with cache.using(tenant=tenant):
            assert not do(cache.answers.lookup, ASK).hit
            assert not do(cache.answers.lookup, REWORDED).hit
            do(cache.answers.get_or_compute, ASK, model)
    assert model.calls == 5


def test_a_pool_is_searched_only_by_a_lookup_that_names_it(cache, do):
    with cache.using(pool="support"):
        made = do(cache.answers.get_or_compute, ASK, lambda: "shared")
    assert do(cache.pools.promote, made.stored.entry.id, by="ann")
    with cache.using(tenant="stranger"):
        assert not do(cache.answers.lookup, ASK).hit
        with cache.using(pool="support"):
            assert do(cache.answers.lookup, ASK).value == "shared"
        with cache.using(pool="Support"):
            assert not do(cache.answers.lookup, ASK).hit


def test_without_a_tenant_core_calls_raise_and_the_empty_one_is_none(url, do, model):
    with stemma.open(url, embedder=None) as cache:
        with pytest.raises(TenantRequired, match="tenant"):
            do(cache.answers.lookup, ASK)
        with pytest.raises(TenantRequired), cache.using(tenant=""):
            pass
        with cache.using(tenant="t"):
            assert do(cache.answers.get_or_compute, ASK, model).value == "answer 1"


def test_life_ends_exactly_when_it_ends(url, do, clock, model):
    life = LifePolicy({"answer": 60.0}, jitter=0.0)
    with stemma.open(url, tenant="me", embedder="hashing", life=life, clock=clock) as cache:
        do(cache.answers.get_or_compute, ASK, model)
        clock.advance(59.9)
        assert do(cache.answers.lookup, ASK).hit
        clock.advance(0.2)
        assert do(cache.answers.lookup, ASK).reason == "expired"
        assert do(cache.answers.lookup, REWORDED).reason != "guard"
        assert not do(cache.answers.lookup, REWORDED).hit


def test_a_life_of_zero_is_not_no_life_at_all(cache, do, model):
    do(cache.answers.get_or_compute, ASK, model, life=0.0)
    assert do(cache.answers.lookup, ASK).reason == "expired"


TEXT = "document text of the first version"


def chain(cache, do, *, text=TEXT):
    """A retrieval, a call and an answer in one trace; their stored entries."""
    with cache.trace():
        found = do(cache.retrievals.get_or_compute, ASK, Model([text]), index="docs")
        called = do(
            cache.calls.get_or_compute, ASK, Model(f"reply to {text}"), model="m", exact=text
        )
        answer = do(cache.answers.get_or_compute, ASK, Model(f"answer: reply to {text}"))
    return [
        served.stored.entry if served.stored else served.outcome.entry
        for served in (found, called, answer)
    ]


def test_a_chain_has_its_true_parents(cache, do):
    retrieval, call, answer = chain(cache, do)
    edges = {
        (edge.parent, edge.known) for edge in cache.engine.parts.store.lineage(answer.id).parents
    }
    assert edges == {(retrieval.id, "observed"), (call.id, "observed")}
    assert "call" in str(cache.lineage(answer.id))
    assert "<svg" in cache.lineage(answer.id)._repr_svg_()


def test_a_child_is_not_served_when_its_parent_has_expired(url, do, clock):
    life = LifePolicy({"retrieval": 10.0, "call": None, "answer": None}, jitter=0.0)
    with stemma.open(url, tenant="me", embedder=None, life=life, clock=clock) as cache:
        chain(cache, do)
        assert do(cache.answers.lookup, ASK).hit
        clock.advance(11)
        miss = do(cache.answers.lookup, ASK)
        assert miss.reason == "parent_invalid"
        assert "expired" in miss.detail


def test_a_parent_that_comes_out_equal_keeps_its_children_and_another_value_ends_them(
    url, do, clock
):
    life = LifePolicy({"retrieval": 10.0, "call": None, "answer": None}, jitter=0.0)
    with stemma.open(url, tenant="me", embedder=None, life=life, clock=clock) as cache:
        chain(cache, do)
        clock.advance(11)
        same = Model(["document text of the first version"])
        do(cache.retrievals.get_or_compute, ASK, same, index="docs")
        assert same.calls == 1
        assert do(cache.answers.lookup, ASK).hit
        with cache.refresh():
            do(cache.retrievals.get_or_compute, ASK, Model(["another text"]), index="docs")
        miss = do(cache.answers.lookup, ASK)
        assert miss.reason == "parent_invalid"
        assert "another value" in miss.detail


def test_a_recall_takes_back_everything_built_on_it_and_nothing_else(cache, do, model):
    chain(cache, do)
    do(cache.answers.get_or_compute, "unrelated question", model)
    rehearsal = do(cache.recall, index="docs", dry_run=True)
    assert rehearsal.by_node == {"retrieval": 1, "call": 1, "answer": 1}
    assert do(cache.answers.lookup, ASK).hit
    receipt = do(cache.recall, index="docs")
    assert {item.entry for item in receipt.entries} == {item.entry for item in rehearsal.entries}
    assert do(cache.answers.lookup, ASK).reason == "cold" or not do(cache.answers.lookup, ASK).hit
    assert do(cache.answers.lookup, "unrelated question").hit


def test_a_put_is_refused_if_what_it_was_built_from_was_recalled_meanwhile(cache, do):
    with cache.trace() as frame:
        frame.read_sources(
            [(Source(document="doc-7", chunk="c1", content="h"), "t")], stemma.frames.marks()
        )
        miss = do(cache.answers.lookup, ASK)
        do(cache.recall, source="doc-7")
        stored = do(cache.answers.put, miss.ticket, "stale")
    assert stored.refused == "recalled"
    assert not do(cache.answers.lookup, ASK).hit


def test_a_recall_of_something_else_refuses_nothing(cache, do):
    with cache.trace() as frame:
        frame.read_sources(
            [(Source(document="doc-7", chunk="c1", content="h"), "t")], stemma.frames.marks()
        )
        miss = do(cache.answers.lookup, ASK)
        for named in ({"source": "doc-8"}, {"tenant": "other"}, {"tag": "x"}, {"model": "y"}):
            do(cache.recall, **named)
        assert do(cache.answers.put, miss.ticket, "fresh").entry is not None


@pytest.mark.parametrize(
    "named", [{"tenant": "me"}, {"tag": "t"}, {"writer": "w"}, {"subject": "s"}]
)
def test_a_recall_of_what_describes_the_put_refuses_it(cache, do, named):
    with cache.using(tags="t", writer="w", subject="s"):
        miss = do(cache.answers.lookup, ASK)
        do(cache.recall, **named)
        assert do(cache.answers.put, miss.ticket, "late").refused == "recalled"


def test_clear_is_never_wider_than_what_is_named(cache, do, model):
    chain(cache, do)
    with cache.using(tenant="other"):
        chain(cache, do)
    assert len(do(cache.clear, tenant="me", node="retrieval")) == 1
    with cache.using(tenant="other"):
        assert do(cache.answers.lookup, ASK).hit
    assert do(cache.answers.lookup, ASK).reason == "parent_invalid"
    with pytest.raises(stemma.UsageError, match="name what"):
        do(cache.clear)
    with pytest.raises(stemma.UsageError, match="colour"):
        do(cache.recall, colour="red")


def test_a_reported_answer_is_not_served_and_nothing_is_built_on_it(cache, do):
    _, call, _ = chain(cache, do)
    do(cache.report, call.id, "hallucinated", by="reviewer", confidence=0.9)
    assert (
        do(cache.calls.lookup, ASK, model="m", exact="document text of the first version").reason
        == "quarantined"
    )
    assert do(cache.answers.lookup, ASK).reason == "parent_invalid"
    do(cache.report, call.id, "supported", by="expert")
    assert do(cache.answers.lookup, ASK).hit
    with pytest.raises(stemma.UsageError, match="no entry"):
        do(cache.report, "0" * 32, "supported", by="x")
    with pytest.raises(stemma.UsageError, match="verdict"):
        do(cache.report, call.id, "wrong", by="x")


def test_bypass_neither_reads_nor_writes_and_refresh_replaces(cache, do, model):
    do(cache.answers.get_or_compute, ASK, model)
    with cache.bypass():
        served = do(cache.answers.get_or_compute, ASK, model)
        assert (served.value, served.stored.refused) == ("answer 2", "bypassed")
    assert do(cache.answers.lookup, ASK).value == "answer 1"
    with cache.refresh():
        assert do(cache.answers.get_or_compute, ASK, model).value == "answer 3"
    assert do(cache.answers.lookup, ASK).value == "answer 3"


def test_none_and_empty_values_are_values(cache, do):
    for number, value in enumerate([None, "", [], {}, 0, False]):
        counting = Model(value)
        for _ in range(2):
            served = do(cache.hops.get_or_compute, f"step {number}", counting)
            assert served.value == value
            assert type(served.value) is type(value)
        assert counting.calls == 1


def test_what_cannot_be_stored_is_computed_each_time(cache, do):
    thing = Model(object())
    for _ in range(2):
        assert do(cache.answers.get_or_compute, ASK, thing).stored.refused == "unstorable"
    assert thing.calls == 2


def test_an_error_is_never_stored_and_passes_through(cache, do):
    failing = Model(RuntimeError("rate limit"), "good")
    with pytest.raises(RuntimeError, match="rate limit"):
        do(cache.answers.get_or_compute, ASK, failing)
    assert do(cache.answers.get_or_compute, ASK, failing).value == "good"
    assert len(cache.engine.flights) == 0


def test_a_hit_is_a_fresh_copy(cache, do):
    do(cache.answers.get_or_compute, ASK, Model({"list": [1]}))
    do(cache.answers.lookup, ASK).value["list"].append(2)
    assert do(cache.answers.lookup, ASK).value == {"list": [1]}


class Broken:
    """A store that fails in every operation but closing."""

    url = "broken:"
    quick = frozenset({"get"})

    def __getattr__(self, name):
        def fail(*_, **__):
            raise StoreError(f"{name} is out of order")

        return fail

    def sequence(self) -> int:
        return 0

    def close(self) -> None:
        pass


def test_a_fault_of_the_cache_is_not_the_applications(do, model):
    events = []
    cache = stemma.open(Broken(), tenant="me", embedder="hashing")
    cache.listen(events.append)
    served = do(cache.answers.get_or_compute, ASK, model)
    assert served.value == "answer 1"
    assert served.outcome.reason == "fault"
    assert served.stored.refused == "fault"
    assert {event.outcome for event in events if event.kind == "fault"} >= {"lookup", "put"}
    cache.close()


def test_a_fault_is_an_error_where_that_was_asked_for(do, model):
    cache = stemma.open(Broken(), tenant="me", embedder=None, fail="closed")
    with pytest.raises(CacheFault, match="out of order"):
        do(cache.answers.get_or_compute, ASK, model)
    assert model.calls == 0
    cache.close()


def test_an_embedder_that_fails_leaves_exact_hits(url, do, model):
    def broken(texts):
        raise RuntimeError("no GPU today")

    embedder = stemma.embedders.adapters.as_embedder(broken, revision="broken/1")
    with stemma.open(url, tenant="me", embedder=embedder) as cache:
        first = do(cache.answers.get_or_compute, ASK, model)
        assert (first.value, first.outcome.reason) == ("answer 1", "fault")
        assert do(cache.answers.lookup, ASK).hit
        assert do(cache.answers.lookup, REWORDED).reason == "fault"


def test_a_listener_that_raises_breaks_nothing(cache, do, model, caplog):
    def bad(event):
        raise ValueError("listener")

    remove = cache.listen(bad)
    assert do(cache.answers.get_or_compute, ASK, model).value == "answer 1"
    assert "a listener raised" in caplog.text
    remove()


def test_events_carry_reasons_and_no_text(cache, do, model):
    events = []
    cache.listen(events.append)
    do(cache.answers.get_or_compute, ASK, model)
    do(cache.answers.get_or_compute, ASK, model)
    assert [(event.kind, event.outcome) for event in events] == [
        ("lookup", "cold"),
        ("put", "stored"),
        ("lookup", "exact"),
    ]
    reworded = do(cache.answers.lookup, REWORDED)
    assert events[-1].outcome == "semantic"
    assert events[-1].detail == reworded.why != events[-2].detail != ""
    assert not any(word in repr(events) for word in ("password", "answer 1"))


def test_reprs_hold_no_text_by_default(cache, do, model):
    served = do(cache.answers.get_or_compute, "the secret question", Model("the secret answer"))
    hit = do(cache.answers.lookup, "the secret question")
    miss = do(cache.answers.lookup, "another secret")
    for record in (served, hit, miss, hit.entry, miss.ticket, served.stored, miss.ticket.query):
        assert "secret" not in repr(record)


def test_counters_outlive_the_process(tmp_path, do, model):
    path = tmp_path / "c.db"
    for _ in range(2):
        with stemma.open(path, tenant="me", embedder=None) as cache:
            do(cache.answers.get_or_compute, ASK, model)
    with stemma.open(path, tenant="me", embedder=None) as cache:
        row = cache.stats().of(tenant="me", node="answer")
        assert (row.exact, dict(row.misses), row.entries) == (1, {"cold": 1}, 1)
        assert "answer" in str(cache.stats())


def test_a_damaged_value_is_a_miss_and_is_removed(cache, do, model):
    do(cache.answers.get_or_compute, ASK, model)
    ticket = do(cache.answers.lookup, "seed").ticket
    del ticket

    class Other(stemma.JsonCodec):
        def decode(self, payload):
            raise stemma.CodecError("not readable")

    miss = do(cache.answers.lookup, ASK, codec=Other())
    assert miss.reason == "unreadable"
    assert do(cache.answers.lookup, ASK).reason != "unreadable"
    assert not do(cache.answers.lookup, ASK).hit


def test_a_changed_source_ends_what_cited_its_former_content(cache, do):
    def retrieve(content):
        def compute():
            source = Source(document="d", chunk="c", content=content, index="docs")
            stemma.frames.current().read_sources([(source, "text")], stemma.frames.marks())
            return [content]

        return compute

    with cache.trace():
        do(cache.retrievals.get_or_compute, "first query", retrieve("v1"), index="docs")
        do(cache.answers.get_or_compute, ASK, Model("cites v1"))
    assert do(cache.answers.lookup, ASK).hit
    do(cache.retrievals.get_or_compute, "second query", retrieve("v2"), index="docs")
    miss = do(cache.answers.lookup, ASK)
    assert miss.reason == "source_changed"


def test_hops_are_numbered_and_keyed_by_the_path_that_led_there(cache, do):
    calls = Model()

    def walk(first, second):
        with cache.trace():
            with cache.hop("plan"):
                do(cache.hops.get_or_compute, "search", calls, arguments=first)
            with cache.hop("act"):
                return do(cache.hops.get_or_compute, "read", calls, arguments=second)

    one = walk("paris", 1)
    assert one.stored.entry.hop == 2
    assert walk("paris", 1).outcome.hit
    assert not walk("rome", 1).outcome.hit
    assert calls.calls == 4
    assert one.stored.entry.expires - one.stored.entry.made < 3600 * 0.8 + 1


def test_a_hop_left_by_an_exception_is_closed_and_stores_nothing(cache):
    with pytest.raises(ValueError, match="boom"), cache.trace(), cache.hop("plan") as hop:
        raise ValueError("boom")
    assert hop.closed
    assert cache.stats().of().entries == 0


def test_independent_traces_share_no_edges(cache, do):
    retrieval, *_ = chain(cache, do)
    with cache.trace():
        other = do(cache.answers.get_or_compute, "another question", Model("x")).stored.entry
    assert not cache.engine.parts.store.lineage(other.id)
    assert retrieval.id != other.id


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 1.5},
        {"threshold": -0.1},
        {"threshold": float("nan")},
        {"threshold": "0.9"},
        {"fail": "sometimes"},
        {"tenant": ""},
        {"tenant": 7},
        {"durability": "none"},
        {"embedder": 42},
        {"url": "ftp://host/x"},
        {"url": ""},
        {"url": 7},
    ],
)
def test_wrong_options_are_errors_that_say_so(options):
    with pytest.raises(stemma.UsageError) as caught:
        stemma.open(**{"embedder": None, **options})
    assert len(str(caught.value)) > 10


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="treshold"):
        stemma.open(":memory:", treshold=0.9)


@pytest.mark.parametrize(
    "text",
    ["", " ", "\x00", "a\x00b", "\ud800", "🙂" * 10, "é", "e\u0301", "x" * 100_000, "\n\t"],
    ids=["empty", "blank", "nul", "inner-nul", "surrogate", "emoji", "nfc", "nfd", "long", "space"],
)
def test_odd_texts_are_kept_apart_and_come_back(cache, do, text):
    served = do(cache.answers.get_or_compute, text, Model(text + "!"))
    assert served.stored.entry is not None
    hit = do(cache.answers.lookup, text)
    assert hit.tier == "exact"
    assert hit.value == text + "!"


def test_a_clock_that_jumps_makes_no_age_negative(cache, do, clock, model):
    do(cache.answers.get_or_compute, ASK, model)
    clock.jump(-AHEAD)
    assert do(cache.answers.lookup, ASK).age == 0
    assert isinstance(clock, ManualClock)


def test_what_was_made_by_a_clock_far_ahead_is_over_once_the_clock_is_right(cache, do, clock):
    """Though its end is years away; so is what was built on it."""
    retrieval, _, _ = chain(cache, do)
    years = 10 * 365 * 86_400.0
    clock.jump(years)
    with cache.refresh():
        do(cache.retrievals.get_or_compute, ASK, Model([TEXT]), index="docs")
        do(cache.hops.get_or_compute, ASK, Model("made in the future"))
    clock.jump(-years)
    assert do(cache.hops.lookup, ASK).reason == "expired"
    assert do(cache.retrievals.lookup, ASK, index="docs").reason == "expired"
    cache.recall(subject="nobody")  # so that ancestors are looked at anew
    miss = do(cache.answers.lookup, ASK)
    assert (miss.reason, miss.detail) == (
        "parent_invalid",
        f"parent {retrieval.id} has expired",
    )
    assert do(cache.hops.get_or_compute, ASK, Model("made now")).value == "made now"
    assert do(cache.hops.lookup, ASK).value == "made now"


async def _fetched(word: str) -> str:
    return word


class _Fetching:
    async def __call__(self) -> str:
        return "fetched by an object"


@pytest.mark.parametrize(
    ("compute", "value"),
    [(lambda: _fetched("fetched"), "fetched"), (_Fetching(), "fetched by an object")],
    ids=["lambda", "object"],
)
async def test_what_hands_back_an_awaitable_is_awaited(cache, compute, value):
    assert (await cache.answers.aget_or_compute(ASK, compute)).value == value
    assert (await cache.answers.alookup(ASK)).value == value


def test_a_computation_that_raises_stop_iteration_says_so(cache, do):
    with pytest.raises(RuntimeError, match="StopIteration"):
        do(cache.answers.get_or_compute, ASK, lambda: next(iter(())))
    assert not do(cache.answers.lookup, ASK).hit


def test_permissions_written_as_one_text_are_one_permission(cache, do, model):
    with cache.using(permissions="team-12"):
        do(cache.answers.get_or_compute, ASK, model)
    with cache.using(permissions="team-21"):
        assert do(cache.answers.lookup, ASK).reason == "cold"
    with cache.using(permissions=["team-12"]):
        assert do(cache.answers.lookup, ASK).hit


@pytest.mark.parametrize(
    "named", [{"tenant": "me", "source": None}, {"node": "answr"}, {"tenant": 5}, {"bogus": "x"}]
)
def test_a_recall_that_names_nothing_known_is_refused_and_takes_nothing(cache, do, model, named):
    do(cache.answers.get_or_compute, ASK, model)
    with pytest.raises(stemma.UsageError):
        do(cache.recall, **named)
    assert do(cache.answers.lookup, ASK).hit


def test_a_tag_written_as_one_text_is_one_tag(cache, do, model):
    do(cache.answers.get_or_compute, ASK, model, tags="vip")
    assert len(do(cache.recall, tag="vip", dry_run=True)) == 1
