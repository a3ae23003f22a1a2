"""Intents: what a step was stored for is compared again with what the agent is after."""

import pytest

import stemma
from stemma.embedders import HashingEmbedder
from stemma.testing.fakes import Scripted

GOAL = "find the cheapest flight from Berlin to Rome"
REWORDED = "from Berlin to Rome: find the cheapest flight"
OTHER = "find the cheapest flight from Berlin to Oslo"
FAR = "write a poem about the autumn rain"


class Counting:
    """The hashing embedder, with the texts that it was asked to embed."""

    def __init__(self, inner):
        self.inner = inner
        self.revision = inner.revision
        self.texts = []

    def embed(self, texts):
        self.texts += texts
        return self.inner.embed(texts)

    def fits(self, text):
        return self.inner.fits(text)


@pytest.fixture
def embedder():
    return Counting(HashingEmbedder())


@pytest.fixture
def cache(url, embedder, clock):
    with stemma.open(url, tenant="me", embedder=embedder, clock=clock) as opened:
        opened.answers.lookup("so that the embedder is checked")
        yield opened


def step(cache, do, compute, name="plan", **others):
    return do(cache.hops.get_or_compute, name, compute, arguments={"n": 1}, **others)


def run(cache, do, compute, *, trace=None, hop=None, call=None):
    with cache.trace(intent=trace), cache.hop("plan", intent=hop):
        return step(cache, do, compute, intent=call)


@pytest.mark.parametrize("where", ["trace", "hop", "call"])
def test_the_same_intent_is_served_in_the_same_or_other_words(cache, do, where):
    calls = Scripted()
    run(cache, do, calls, **{where: GOAL})
    assert run(cache, do, calls, **{where: GOAL}).outcome.tier == "exact"
    assert run(cache, do, calls, **{where: f"  {GOAL}\n"}).outcome.tier == "exact"
    assert run(cache, do, calls, **{where: REWORDED}).outcome.tier == "exact"
    assert calls.calls == 1


@pytest.mark.parametrize("where", ["trace", "hop", "call"])
@pytest.mark.parametrize("other", [OTHER, FAR, None])
def test_another_intent_is_a_miss_that_says_so(cache, do, where, other):
    calls = Scripted()
    run(cache, do, calls, **{where: GOAL})
    served = run(cache, do, calls, **{where: other})
    assert served.outcome.reason == "intent_drift"
    assert GOAL not in served.outcome.detail
    assert (served.value, served.stored.refused) == ("answer 2", None)
    assert run(cache, do, calls, **{where: GOAL}).outcome.reason == "intent_drift"


def test_the_question_of_the_run_is_its_intent_where_none_is_said(cache, do):
    calls = Scripted()

    def ask(question):
        with cache.trace() as frame:
            frame.focus = question
            return step(cache, do, calls).outcome

    ask(GOAL)
    assert ask(REWORDED).hit
    assert ask(OTHER).reason == "intent_drift"


def test_a_step_without_a_path_is_served_whatever_the_agent_is_after(cache, do):
    calls = Scripted()
    for goal in (GOAL, FAR):
        with cache.trace(intent=goal):
            served = step(cache, do, calls, path=False)
    assert served.outcome.hit
    with cache.trace(intent=GOAL):
        assert step(cache, do, calls, path=False, intent=GOAL).outcome.reason == "intent_drift"


def test_an_exact_hit_for_the_same_intent_embeds_nothing(cache, do, embedder):
    run(cache, do, Scripted(), trace=GOAL)
    embedder.texts.clear()
    assert run(cache, do, Scripted(), trace=GOAL).outcome.hit
    assert embedder.texts == []
    assert run(cache, do, Scripted(), trace=REWORDED).outcome.hit
    assert embedder.texts == [REWORDED]


def test_a_found_argument_is_verified_too(cache, do):
    calls = Scripted()

    def search(query, goal):
        asked = {"query": query}
        with cache.trace(intent=goal):
            return do(
                cache.hops.get_or_compute,
                "search",
                calls,
                arguments=asked,
                semantic="query",
                similarity=0.5,
            ).outcome

    search("find music events in Berlin this weekend", GOAL)
    assert search("music events in Berlin this weekend, find", REWORDED).tier == "semantic"
    missed = search("in Berlin this weekend, find music events", FAR)
    assert missed.reason == "intent_drift"


def said(times):
    """An intent that is near that with one time more or less, and far from that with three."""
    return (
        f"find a {'very ' * times}cheap flight to Rome with a window seat for the summer holidays"
    )


def test_a_chain_cannot_slide_away_step_by_step(cache, do):
    """Each run says it a little otherwise than the one before, and goes one hop further."""
    calls = Scripted()
    goals = [said(times) for times in range(5)]

    def walk(goal, hops):
        with cache.trace(intent=goal):
            outcomes = []
            for number in range(hops):
                with cache.hop("step"):
                    outcomes.append(step(cache, do, calls, f"step {number}").outcome)
            return outcomes

    hits = []
    for hops, goal in enumerate(goals, 1):
        hits.append([outcome.hit for outcome in walk(goal, hops)[:-1]])
    assert hits[1] == [True]
    refused = [place for place, one in enumerate(hits) if not all(one)]
    assert refused
    # The step just before was made in words that are near enough; where the path began was not.
    assert hits[refused[0]] == [False] * refused[0]


def test_a_path_is_bound_to_what_it_was_begun_for(cache, do):
    """A step that was stored on another's path carries the words in which that was begun."""
    calls, always = Scripted(), Scripted("the same")
    first, second, third = map(said, (0, 2, 4))

    def walk(goal):
        with cache.trace(intent=goal):
            with cache.hop("one"):
                one = step(cache, do, always, "one")
            with cache.hop("two"):
                return one, step(cache, do, calls, "two")

    with cache.trace(intent=first), cache.hop("one"):
        step(cache, do, always, "one")
    one, two = walk(second)
    assert (one.outcome.hit, two.outcome.hit) == (True, False)
    assert two.stored.entry.walk.intent.text == second
    assert two.stored.entry.walk.origin.text == first
    one, two = walk(third)
    assert (one.outcome.reason, two.outcome.reason) == ("intent_drift", "intent_drift")
    assert "the run" in two.outcome.detail


def test_a_running_summary_is_compared_at_its_step_and_with_the_run(cache, do):
    calls = Scripted()

    def walk(goal, summary):
        with cache.trace(intent=goal):
            with cache.hop("one"):
                step(cache, do, calls, "one")
            with cache.hop("two", intent=summary):
                return step(cache, do, calls, "two").outcome

    walk(GOAL, "compare the trains of that day from Berlin to Rome")
    assert walk(REWORDED, "from Berlin to Rome: compare the trains of that day").hit
    assert walk(GOAL, FAR).reason == "intent_drift"


def test_without_an_embedder_intents_must_be_equal(do):
    with stemma.open(tenant="me", embedder=None) as cache:
        calls = Scripted()
        run(cache, do, calls, trace=GOAL)
        assert run(cache, do, calls, trace=GOAL).outcome.hit
        missed = run(cache, do, calls, trace=REWORDED).outcome
        assert (missed.reason, "cannot be compared" in missed.detail) == ("intent_drift", True)


def test_an_embedder_that_fails_at_the_put_costs_the_vector_only(cache, do, embedder, monkeypatch):
    def fail(texts):
        raise RuntimeError("down")

    with monkeypatch.context() as patched:
        patched.setattr(embedder, "embed", fail)
        assert run(cache, do, Scripted(), trace=GOAL).stored.entry.walk.intent.vector == b""
    assert run(cache, do, Scripted(), trace=GOAL).outcome.hit
    assert run(cache, do, Scripted(), trace=REWORDED).outcome.reason == "intent_drift"


@pytest.mark.parametrize("intent", ["", "  \n", 7, ["a"]])
@pytest.mark.parametrize("where", ["trace", "hop", "call"])
def test_an_intent_that_says_nothing_is_an_error(cache, do, where, intent):
    with pytest.raises(stemma.UsageError, match="intent"):
        run(cache, do, Scripted(), **{where: intent})
