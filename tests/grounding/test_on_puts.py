"""What is stored is checked against the sources it was made from, and never on the path."""

import asyncio
import os
import pickle
import threading
from contextvars import ContextVar
from dataclasses import replace

import pytest

import stemma
from stemma import checking, context
from stemma.entry import Source
from stemma.grounding import Grounded, GroundingCheck
from stemma.lineage import frames
from stemma.testing.fakes import Faulty

QUESTION, ANSWER = "How long is the warranty?", "The warranty lasts 24 months."
SOURCES = [ANSWER, "The shop in York opens at 9:00."]
SIGNED = "counting (counting/1)"


class Counting:
    """A grounder that gives the same score for every answer, or does it, and notes what it got."""

    name, revision = "counting", "counting/1"

    def __init__(self, says=1.0):
        self.says, self.asked = says, []

    def ground(self, answer, sources, question=""):
        self.asked.append((answer, list(sources), question))
        said = self.says() if callable(self.says) else self.says
        if isinstance(said, Exception):
            raise said
        return Grounded(score=said, by=self.name)

    async def aground(self, answer, sources, question=""):
        raise AssertionError("the background has no loop")


class Gate(Counting):
    """A grounder that says nothing until it is let go."""

    def __init__(self, says=0.0):
        super().__init__(says)
        self.begun, self.open = threading.Event(), threading.Event()

    def ground(self, answer, sources, question=""):
        self.begun.set()
        assert self.open.wait(60), "nobody let it go in a minute"
        return super().ground(answer, sources, question)


@pytest.fixture
def opened():
    """Opens caches with a grounder, and closes them."""
    made = []

    def make(grounding, url=":memory:", **named):
        made.append(stemma.open(url, tenant="me", embedder=None, grounding=grounding, **named))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def gate():
    grounder = Gate()
    yield grounder
    grounder.open.set()


def read(sources=SOURCES):
    """Read documents where the code runs now."""
    pairs = [
        (Source(document="d", chunk=f"{n} {text}", content=""), text)
        for n, text in enumerate(sources)
    ]
    frames.current().read_sources(pairs, frames.marks())


def answer(text=ANSWER, sources=SOURCES):
    """A computation that reads documents and answers."""

    def compute():
        read(sources)
        return text

    return compute


def checked(cache):
    assert cache.engine.parts.checking.wait(30)


def heard(cache, *kinds):
    events = []
    cache.listen(lambda one: events.append(one) if one.kind in kinds else None)
    return events


def sure(cache, entry):
    return cache.engine.parts.store.get([entry.id]).entries[entry.id].confidence


def computed(cache):
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer())


def acomputed(cache):
    async def main():
        with cache.trace():
            await cache.answers.aget_or_compute(QUESTION, answer())

    asyncio.run(main())


def put(cache):
    with cache.trace():
        ticket = cache.answers.lookup(QUESTION).ticket
        cache.answers.put(ticket, answer()())


def aput(cache):
    async def main():
        with cache.trace():
            ticket = (await cache.answers.alookup(QUESTION)).ticket
            await cache.answers.aput(ticket, answer()())

    asyncio.run(main())


def put_all(cache):
    with cache.trace():
        ticket = cache.answers.lookup(QUESTION).ticket
        cache.answers.put_all([(ticket, answer()())])


@pytest.mark.parametrize("store", [computed, acomputed, put, aput, put_all])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_was_read_reaches_the_grounder_once_a_put_and_hits_ask_nobody(
    opened, store, kind, tmp_path
):
    grounder = Counting(0.75)
    cache = opened(grounder, ":memory:" if kind == "memory" else tmp_path / "cache.db")
    events = heard(cache, "verdict", "fault")
    store(cache)
    checked(cache)
    hit = cache.answers.lookup(QUESTION)
    asyncio.run(cache.answers.alookup(QUESTION))
    checked(cache)
    assert grounder.asked == [(ANSWER, SOURCES, QUESTION)]
    assert (hit.value, hit.entry.confidence) == (ANSWER, 0.75)
    (said,) = cache.engine.parts.store.judgements()
    assert (said.verdict, said.by, said.confidence) == ("grounded", SIGNED, 0.75)
    assert [(one.kind, one.outcome, one.entry, one.tenant) for one in events] == [
        ("verdict", "grounded", hit.entry.id, "me")
    ]


def test_what_the_sources_do_not_support_is_not_served_and_computed_afresh(opened):
    cache = opened("check")
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer("The warranty lasts 36 months."))
    checked(cache)
    miss = cache.answers.lookup(QUESTION)
    assert miss.reason == "low_confidence"
    with cache.trace():
        served = cache.answers.get_or_compute(QUESTION, answer())
    checked(cache)
    assert served.value == ANSWER
    assert cache.answers.lookup(QUESTION).value == ANSWER
    scores = [one.confidence for one in cache.engine.parts.store.judgements()]
    assert scores[0] > 0.5 > scores[1]


@pytest.mark.parametrize("node", ["call", "answer", "hop"])
def test_every_node_whose_values_are_made_from_sources_is_checked(opened, node):
    grounder = Counting()
    cache = opened(grounder)
    with cache.trace():
        read()
        if node == "call":
            cache.calls.get_or_compute(QUESTION, lambda: ANSWER, model="m")
        elif node == "answer":
            cache.answers.get_or_compute(QUESTION, lambda: ANSWER)
        else:
            cache.hops.get_or_compute("sum up", lambda: ANSWER)
    checked(cache)
    assert [asked[:2] for asked in grounder.asked] == [(ANSWER, SOURCES)]


def test_what_reads_elsewhere_or_nothing_is_not_checked(opened):
    grounder = Counting()
    cache = opened(grounder)
    cache.answers.get_or_compute(QUESTION, lambda: ANSWER)  # no frame
    with cache.trace():
        cache.answers.get_or_compute("nothing read", lambda: ANSWER)
        cache.answers.get_or_compute("no text", answer(sources=["", " \n"]))
        read()
        cache.answers.get_or_compute("no words", lambda: " \n")
        cache.answers.get_or_compute("a number", lambda: 7)
        cache.retrievals.get_or_compute("q", lambda: ["a document"], index="i")
        cache.embeddings.get_or_compute("a text", lambda: [1.0, 2.0], model="m")
        cache.hops.get_or_compute("a tool", lambda: ANSWER, path=False)
        told = (Source(document="booking", chunk="booking", content=""),)
        declared = replace(cache.hops.asked("a declared tool"), sources=told)
        assert cache.hops.serve(declared, lambda: ANSWER).stored
    checked(cache)
    assert grounder.asked == []
    assert cache.engine.parts.store.judgements() == ()


def test_a_text_that_was_read_twice_is_one_source(opened):
    grounder = Counting()
    cache = opened(grounder)
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer(sources=[ANSWER, ANSWER, ""]))
    checked(cache)
    assert grounder.asked == [(ANSWER, [ANSWER], QUESTION)]


# ------------------------------------------------------------------ what it makes of an entry


def test_the_least_counts_and_what_is_said_twice_counts_once(opened):
    grounder = Counting(0.625)
    cache = opened(grounder)
    with cache.trace():
        read()
        ticket = cache.answers.lookup(QUESTION).ticket
        entry = cache.answers.put(ticket, ANSWER, confidence=0.75).entry
        checked(cache)
        assert sure(cache, entry) == 0.625
        with cache.refresh():
            cache.answers.put(cache.answers.lookup(QUESTION).ticket, ANSWER, confidence=0.75)
        checked(cache)
        assert sure(cache, entry) == 0.625
        grounder.says = 1.0
        with cache.refresh():
            cache.answers.put(cache.answers.lookup(QUESTION).ticket, ANSWER, confidence=0.75)
        checked(cache)
        assert sure(cache, entry) == 0.75
    assert len(grounder.asked) == 3


@pytest.mark.parametrize(("score", "refused"), [(0.45, 1), (0.1, 4), (0.5, 0)])
def test_the_same_answer_computed_again_is_an_audit_that_agrees(opened, score, refused):
    cache = opened(Counting(score))
    for _ in range(refused + 1):
        with cache.trace():
            assert not cache.answers.get_or_compute(QUESTION, answer()).outcome.hit
        checked(cache)
    with cache.trace():
        assert cache.answers.get_or_compute(QUESTION, answer()).outcome.hit


def test_what_somebody_found_supported_stays_so(opened, gate):
    cache = opened(gate)
    with cache.trace():
        entry = cache.answers.get_or_compute(QUESTION, answer()).stored.entry
    cache.report(entry.id, "supported", by="ada")
    gate.open.set()
    checked(cache)
    assert sure(cache, entry) == 1.0
    assert cache.answers.lookup(QUESTION).hit


def test_what_somebody_finds_supported_after_it_is_served_again(opened):
    cache = opened(Counting(0.0))
    with cache.trace():
        entry = cache.answers.get_or_compute(QUESTION, answer()).stored.entry
    checked(cache)
    assert cache.answers.lookup(QUESTION).reason == "low_confidence"
    cache.report(entry.id, "supported", by="ada", confidence=0.9)
    assert cache.answers.lookup(QUESTION).value == ANSWER


def test_of_a_value_that_was_replaced_meanwhile_nothing_is_said(opened, gate):
    cache = opened(gate)
    events = heard(cache, "verdict", "fault")
    with cache.trace():
        read()
        cache.answers.get_or_compute(QUESTION, lambda: "36 months.")
        assert gate.begun.wait(30)
        with cache.refresh():
            served = cache.answers.get_or_compute(QUESTION, lambda: ANSWER)
    gate.says = 1.0  # of the second; the first has its score already
    gate.open.set()
    checked(cache)
    assert [asked[0] for asked in gate.asked] == ["36 months.", ANSWER]
    assert [one.entry for one in events] == [served.stored.entry.id]
    assert sure(cache, served.stored.entry) == 1.0


# ------------------------------------------------------------------------- never on the path


def test_a_put_and_a_hit_wait_for_no_grounder(opened, gate):
    cache = opened(gate)
    with cache.trace():
        served = cache.answers.get_or_compute(QUESTION, answer())
    assert gate.begun.wait(30)
    assert served.stored
    assert cache.answers.lookup(QUESTION).entry.confidence == 1.0
    assert gate.asked == []  # it has not said anything yet
    gate.open.set()
    checked(cache)
    assert cache.answers.lookup(QUESTION).reason == "low_confidence"


@pytest.mark.parametrize("says", [OSError("secret"), TimeoutError(), 7.0, float("nan"), "high"])
def test_a_grounder_that_fails_or_talks_nonsense_is_an_event_and_the_entry_stays(opened, says):
    grounder = Counting(says)
    cache = opened(grounder, fail="closed")
    events = heard(cache, "verdict", "fault")
    with cache.trace():
        entry = cache.answers.get_or_compute(QUESTION, answer()).stored.entry
    checked(cache)
    kind = type(says).__name__ if isinstance(says, Exception) else "UsageError"
    assert [(one.kind, one.outcome, one.detail) for one in events] == [("fault", "grounding", kind)]
    assert len(grounder.asked) == 1
    assert (sure(cache, entry), cache.engine.parts.store.judgements()) == (1.0, ())
    assert cache.answers.lookup(QUESTION).hit


def test_one_that_hangs_is_left_to_itself(opened, gate, monkeypatch):
    monkeypatch.setattr(checking, "PATIENCE", 0.01)
    cache = opened(gate)
    events = heard(cache, "verdict", "fault")
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer())
    checked(cache)
    assert [(one.outcome, one.detail) for one in events] == [("grounding", "TimeoutError")]
    assert cache.answers.lookup(QUESTION).hit


def test_what_comes_while_too_much_waits_is_dropped_told_and_counted(opened, gate, monkeypatch):
    monkeypatch.setattr(checking, "WAITING", 2)
    cache = opened(gate)
    events = heard(cache, "fault")
    with cache.trace():
        read()
        for n in range(5):
            assert cache.answers.get_or_compute(f"{QUESTION} {n}", lambda: ANSWER).stored
    assert [(one.outcome, one.detail) for one in events] == [("grounding", "JudgeError")] * 3
    assert cache.engine.parts.checking.dropped == 3
    gate.open.set()
    checked(cache)
    assert len(gate.asked) == 2


def test_a_store_that_does_not_take_the_score_is_a_fault(opened):
    store = Faulty()

    def broken():
        store.mode = stemma.StoreUnavailable("the disk is full")
        return 0.25

    cache = opened(Counting(broken), store)
    events = heard(cache, "verdict", "fault")
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer())
    checked(cache)
    assert [one.outcome for one in events if one.kind == "verdict"] == []
    assert "grounding" in [one.outcome for one in events]
    store.mode = "well"


def test_closing_drops_what_waits_and_nothing_is_told_after(opened, gate):
    cache = opened(gate)
    events = heard(cache, "verdict", "fault")
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer())
        cache.answers.get_or_compute("Another?", answer())
    assert gate.begun.wait(30)
    cache.close()
    gate.open.set()
    checked(cache)
    assert (events, len(gate.asked)) == ([], 1)


def test_it_is_asked_apart_from_the_request_with_the_cache_out_of_the_way(opened):
    mine, seen = ContextVar("mine", default="unset"), []

    def look():
        asked = cache.answers.lookup("of a model that the grounder asks")
        seen.append((mine.get(), frames.current(), context.current(1).tenant, asked.reason))
        return 1.0

    cache = opened(Counting(look))
    mine.set("set")
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer())
    checked(cache)
    assert seen == [("unset", None, "me", "bypassed")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_checks_with_a_thread_of_its_own(opened, gate):
    cache = opened(gate)
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer())
    assert gate.begun.wait(30)
    child = os.fork()
    if child == 0:
        gate.open.set()
        with cache.trace():
            cache.answers.get_or_compute("Another?", answer())
        done = cache.engine.parts.checking.wait(30)
        os._exit(0 if done and len(gate.asked) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ------------------------------------------------------------------------------- the argument


@pytest.mark.parametrize("given", [True, "check"])
def test_the_check_without_a_model_has_a_short_name(opened, given):
    grounder = opened(given).engine.parts.checking._grounder
    assert isinstance(grounder, GroundingCheck)


@pytest.mark.parametrize("given", [None, False])
def test_by_default_nothing_is_checked(opened, given):
    cache = opened(given)
    with cache.trace():
        cache.answers.get_or_compute(QUESTION, answer("The warranty lasts 36 months."))
    checked(cache)
    assert cache.answers.lookup(QUESTION).entry.confidence == 1.0
    assert cache.engine.parts.store.judgements() == ()


@pytest.mark.parametrize("given", ["local", 1, 0, Counting, GroundingCheck, lambda *_: 1.0])
def test_what_is_no_grounder_is_refused(given):
    with pytest.raises(stemma.UsageError, match="grounding must be a Grounder"):
        stemma.open(embedder=None, grounding=given)


def test_a_pickled_cache_is_opened_with_its_grounder(tmp_path):
    with stemma.open(tmp_path / "c.db", tenant="me", embedder=None, grounding="check") as cache:
        _, (_, options) = cache.__reduce__()
        again = stemma.Cache(pickle.loads(pickle.dumps(options)))
        with again, again.trace():
            again.answers.get_or_compute(QUESTION, answer("The warranty lasts 36 months."))
            checked(again)
            assert again.answers.lookup(QUESTION).reason == "low_confidence"
