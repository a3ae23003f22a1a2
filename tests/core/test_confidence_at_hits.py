"""Each hit asks how far its entry is believed: by how it was stored, by audits, by age."""

import pytest

import stemma
from stemma import ConfidencePolicy
from stemma.stores.protocol import Judgement
from stemma.testing.clock import ManualClock
from stemma.testing.fakes import Scripted

QUESTION, AGAIN = "How do I cancel my order?", "How can I cancel my order?"
HOUR = 3_600.0


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def opened(url, clock):
    caches = []

    def make(**options):
        made = stemma.open(
            url, tenant="me", embedder="hashing", threshold=0.6, clock=clock, **options
        )
        caches.append(made)
        return made

    yield make
    for cache in caches:
        cache.close()


def store(cache, do, confidence, value="Press Cancel."):
    ticket = cache.answers.ticket(QUESTION)
    return do(cache.answers.put, ticket, value, confidence=confidence)


@pytest.mark.parametrize(("confidence", "served"), [(0.5, True), (0.49, False), (0.01, False)])
def test_what_was_unsure_when_stored_is_refused_exactly_and_by_meaning(
    opened, do, confidence, served
):
    cache = opened()
    store(cache, do, confidence)
    for question in (QUESTION, AGAIN):
        found = do(cache.answers.lookup, question)
        assert found.hit == served
        assert served or found.reason == "low_confidence"


def test_the_floor_is_the_callers(opened, do):
    cache = opened(confidence=ConfidencePolicy(floor=0.0))
    store(cache, do, 0.01)
    assert do(cache.answers.lookup, QUESTION).hit


def test_what_comes_out_the_same_again_is_believed(opened, do):
    """An unsure answer is computed afresh until enough of its recomputations agreed."""
    cache = opened()
    compute = Scripted("Press Cancel.")
    store(cache, do, 0.3)
    reasons = []
    while not (found := do(cache.answers.lookup, QUESTION)).hit:
        reasons.append(found.reason)
        do(cache.answers.put, found.ticket, compute(), confidence=0.3)
    assert reasons == ["low_confidence", "low_confidence"]
    assert found.entry.judged.agreed == 2
    store(cache, do, 0.3, "Write to us.")
    assert do(cache.answers.lookup, QUESTION).reason == "low_confidence"


def test_audits_that_disagree_end_it_and_one_that_agrees_helps(opened, do):
    cache = opened()
    entry = store(cache, do, 0.6).entry
    said = ["disagreed", "agreed", "disagreed", "disagreed"]
    served = []
    for verdict in said:
        cache.engine.parts.store.judge(
            Judgement(
                entry=entry.id, value=entry.value, verdict=verdict, by="t", confidence=1.0, at=1.0
            )
        )
        served.append(do(cache.answers.lookup, QUESTION).hit)
    assert served == [False, True, False, False]  # 2.4/5, 3.4/6, 3.4/7, 3.4/8


def test_it_falls_with_age_from_when_it_was_last_seen_to_be_right(opened, do, clock):
    cache = opened(confidence=ConfidencePolicy(half_life=HOUR))
    entry = store(cache, do, 0.9).entry
    clock.advance(0.8 * HOUR)
    assert do(cache.answers.lookup, QUESTION).hit
    clock.advance(0.1 * HOUR)
    assert do(cache.answers.lookup, QUESTION).reason == "low_confidence"
    do(cache.report, entry.id, "supported", by="ann")
    assert do(cache.answers.lookup, QUESTION).hit
    clock.advance(0.9 * HOUR)
    assert do(cache.answers.lookup, QUESTION).hit  # support made it as sure as who gave it
    clock.advance(0.2 * HOUR)
    assert do(cache.answers.lookup, QUESTION).reason == "low_confidence"


def test_vectors_grow_no_less_sure(opened, clock):
    """They follow from their texts alone."""
    cache = opened(confidence=ConfidencePolicy(half_life=1.0))
    compute = Scripted([1.0, 0.0])
    cache.embeddings.vector("text", compute, model="m")
    clock.advance(HOUR)
    assert cache.embeddings.vector("text", compute, model="m") == [1.0, 0.0]
    assert compute.calls == 1


def test_another_process_knows_the_audits(tmp_path, do):
    path = tmp_path / "cache.db"
    with stemma.open(path, tenant="me", embedder=None) as cache:
        store(cache, do, 0.3)
        with cache.refresh():
            for _ in range(3):
                found = do(cache.answers.lookup, QUESTION)
                do(cache.answers.put, found.ticket, "Press Cancel.", confidence=0.3)
    with stemma.open(path, tenant="me", embedder=None) as cache:
        hit = do(cache.answers.lookup, QUESTION)
        assert hit.entry.judged.agreed == 3


@pytest.mark.parametrize("wrong", [1.1, -0.1, float("nan"), "sure", True])
def test_a_confidence_out_of_range_is_refused(opened, do, wrong):
    cache = opened()
    with pytest.raises(stemma.UsageError, match="confidence"):
        store(cache, do, wrong)
    with pytest.raises(stemma.UsageError, match="ConfidencePolicy"):
        opened(confidence=0.5)
