"""Every part of `python -m evals rag`, at a size that takes no time: its figures agree.

Times are never judged here. What needs texts is skipped where `STEMMA_DATA` names none.
"""

import json
import math

import pytest
from evals.rag.edges import kinds
from evals.rag.vector_caches import FACES, OURS

from evals import rag

SMALL = {
    "embedding": 0.02,
    "edges": 0.03,
    "utterances": 0.05,
    "changes": 0.02,
    "stream": 0.005,
    "recalls": 0.005,
}


REAL = {"stream", "utterances", "changes"}  # parts with the local model


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.real if name in REAL else ()) for name in SMALL],
)
def part(request):
    return request.param, rag.measured(request.param, size=SMALL[request.param], seed=3)


def test_figures_are_whole_and_can_be_written_down(part):
    _, found = part
    if found.skipped:
        pytest.skip(found.skipped)
    assert found.figures
    assert all(figure.what and math.isfinite(figure.value) for figure in found.figures)
    assert json.loads(json.dumps(found.details))


def test_what_was_measured_agrees_with_itself(part):
    name, found = part
    if found.skipped:
        pytest.skip(found.skipped)
    AGREES[name](json.loads(json.dumps(found.details)))


def embedding(told):
    assert set(told["right"]) | set(told["skipped"]) == set(FACES)
    ours = set(OURS) - set(told["skipped"])
    assert all(all(told["right"][name].values()) for name in ours)
    peers = set(told["right"]) - {*ours, "no cache"}
    assert all(not all(told["right"][name].values()) for name in peers)
    assert set(told["microseconds"]["batch"]) == peers | ours
    assert all(min(times.values()) > 0 for times in told["microseconds"].values())


def edges(told):
    assert set(told) == set(kinds()) >= {"LCEL", "LangGraph"}
    for name, kind in kinds().items():
        found = told[name]
        assert found["true"] == found["found"] > 100, name
        assert found["runs"] == found["plans"] * len(kind.ways) * 3
        assert found["between_runs"] == found["inside"] == 0, name


def stream(told):
    assert sum(one["lists"] for one in told["lists"].values()) == told["requests"] == 25
    assert sum(one["lists"] for one in told["lists_at_10"].values()) == told["requests"]
    for lists in (told["lists"], told["lists_at_10"]):
        assert {kind: lists[kind]["recall"] for kind in ("searched", "exact")} == {
            "searched": 1,
            "exact": 1,
        }
    for step, most in told["ceilings"].items():
        assert 0 < told["saved"][step] <= most + 1e-9 < 1
    assert told["saved"]["embeddings"] == pytest.approx(told["ceilings"]["embeddings"])
    assert told["saved"]["pairs"] == pytest.approx(told["ceilings"]["pairs"])
    certain = told["quality"]["certain, ranked"]
    assert certain["ndcg with"] == pytest.approx(certain["ndcg without"], abs=5e-4)
    assert min(told["milliseconds"].values()) > 0


def utterances(told):
    for name in ("alone", "together"):
        found = told[name]
        assert sum(one["lists"] for one in found.values()) == told["pairs"] == 15
        assert set(found) <= {"searched", "proven", "statistical"}
        assert found["searched"]["recall"] == found.get("proven", {"recall": 1})["recall"] == 1


def changes(told):
    status = told["sections"]
    assert min(status["changed"], status["same"]) > 0
    for name, found in told["ways"].items():
        assert found["gone"] + found["entered"] + found["unchanged"] == told["questions"]
        assert min(found["gone"], found["unchanged"]) > 0, name
        assert found["served"] <= found["unchanged"]
        assert found["stale"] == (found["gone"] if "without" in name else 0)
    assert sum(one["lists"] for one in told["lists"].values()) == told["questions"]


def recalls(told):
    assert [one["dependants"] for one in told["recalls"]] == [5, 500]
    arrivals = told["arrivals"]
    assert (arrivals["indexed"], arrivals["retrievals"], arrivals["chunks"]) == (50, 50, 49)
    assert 0 < arrivals["taken_back"] <= arrivals["retrievals"]
    assert arrivals["bytes_a_retrieval"] > 32 * 384 * 2
    assert min(arrivals["seconds"], arrivals["seconds_of_the_first"]) > 0


AGREES = {
    "recalls": recalls,
    "embedding": embedding,
    "edges": edges,
    "stream": stream,
    "utterances": utterances,
    "changes": changes,
}
