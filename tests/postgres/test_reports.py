"""What was reported, and what audits said, holds for everybody who uses the database."""

import asyncio

import pytest

import stemma
from stemma.testing.fakes import Scripted

QUESTION, AGAIN = "How do I cancel my order?", "How can I cancel my order?"


@pytest.fixture
def opened(newest, database):
    """Opens the database as another process does."""
    caches = []

    def make():
        url = newest.url(database, "keeper")
        caches.append(stemma.open(url, tenant="acme", embedder="hashing", threshold=0.6))
        return caches[-1]

    yield make
    for cache in caches:
        cache.close()


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_reported_pair_never_hits_again(opened, style):
    one, other = opened(), opened()
    compute = Scripted("Press Cancel.")
    one.answers.get_or_compute(QUESTION, compute)
    hit = other.answers.lookup(AGAIN)
    assert hit.tier == "semantic"
    if style == "sync":
        other.report(hit.note(), "wrong_hit", by="ann")
    else:
        asyncio.run(other.areport(hit.note(), "wrong_hit", by="ann"))
    assert one.answers.lookup(AGAIN).reason == "quarantined"
    assert one.answers.get_or_compute(QUESTION, compute).outcome.reason == "quarantined"
    assert compute.calls == 2
    for cache in (one, other, opened()):
        assert cache.answers.lookup(QUESTION).entry.judged.agreed == 1
        assert cache.answers.lookup(AGAIN).reason == "reported"
    one.recall(entry=hit.entry.id)
    one.answers.get_or_compute(QUESTION, compute)
    assert other.answers.lookup(AGAIN).reason == "reported"
