"""`stemma inspect` shows the hops that led to an entry, what matched, and what its life is made of."""

import json

import pytest

import stemma
from stemma import Source
from stemma.lineage import frames

ASKED = "find music events in Berlin this weekend"
REWORDED = "music events in Berlin this weekend, find"
GOAL = "an evening out in Berlin"


def walk(cache, query):
    asked = {"q": query}
    with cache.trace(intent=GOAL):
        with cache.hop("search"):
            first = cache.hops.get_or_compute(
                "search", lambda: "list", arguments=asked, semantic="q"
            )
        with cache.hop("think"):
            pass
        with cache.hop("read") as frame:
            source = Source(document="d", chunk="d#1", content="0" * 32, index="docs")
            frame.read_sources([(source, "text")], frames.marks())
            return first, cache.hops.get_or_compute("read", lambda: query)


@pytest.fixture
def walked(tmp_path):
    path = tmp_path / "cache.db"
    with stemma.open(path, tenant="me", embedder="hashing") as cache:
        first, _ = walk(cache, ASKED)
        cache.recall(source="d")
        _, second = walk(cache, REWORDED)
        return path, first.stored.entry.id, second.stored.entry


def test_the_path_is_told_hop_by_hop_with_what_matched(stemma_, walked):
    path, first, second = walked
    told = json.loads(stemma_("inspect", second.id, "--db", path, "--json").out)
    assert told["path"] == [f"1. search: semantic {first[:12]}", "2. think: nothing matched"]
    assert 0 < told["risk"] < 0.5
    assert told["intent"] != GOAL
    shown = stemma_("inspect", second.id, "--db", path).out
    assert f"hop 1. search: semantic {first[:12]}" in shown
    assert GOAL not in shown
    assert GOAL in stemma_("inspect", second.id, "--db", path, "--text").out


def test_the_life_is_told_with_its_factors(stemma_, walked):
    path, _, second = walked
    life = json.loads(stemma_("inspect", second.id, "--db", path, "--json").out)["life"]
    assert (life["base"], life["hop"], life["factor"], life["confidence"]) == (3600, 3, 0.8, 1)
    assert 0 < life["change_rate"] < 1e-5
    assert life["seconds"] <= 3600 * 0.8**2 < life["bound"]
    assert life["seconds"] == pytest.approx(3600 * 0.8**2, rel=0.11)


def test_an_entry_that_is_no_hop_tells_neither(stemma_, made):
    told = json.loads(stemma_("inspect", made.answer, "--db", made.path, "--json").out)
    assert not {"path", "life", "risk", "walk"} & set(told)
