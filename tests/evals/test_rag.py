"""Every part of `python -m evals rag`, at a size that takes no time: its figures agree.

Times are never judged here. What needs texts is skipped where `STEMMA_DATA` names none.
"""

import json
import math
import random

import pytest
from evals.measuring import Skipped
from evals.rag import graphs
from evals.rag.edges import WAYS, compared
from evals.rag.embedding import TRAPS, trapped
from evals.rag.plans import Ask, InTurn, SideBySide, true_edges
from evals.rag.rewording import RULES, reword
from evals.rag.texts import folder, rows
from evals.rag.vector_caches import FACES, Model

from evals import rag

SMALL = {"embedding": 0.02, "edges": 0.03}


def known(name):
    try:
        return folder(name).is_dir()
    except Skipped:
        return False


@pytest.fixture(scope="module", params=SMALL)
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
    assert all(told["right"]["CachedEmbeddings"].values())
    peers = set(told["right"]) - {"CachedEmbeddings", "no cache"}
    assert all(not all(told["right"][name].values()) for name in peers)
    assert set(told["microseconds"]["batch"]) == peers | {"CachedEmbeddings"}
    assert all(min(times.values()) > 0 for times in told["microseconds"].values())


def edges(told):
    for name in ("LCEL", "LangGraph"):
        found = told[name]
        assert found["true"] == found["found"] > 100
        assert found["runs"] == found["plans"] * len(WAYS) * 3
        assert found["between_runs"] == found["inside"] == 0


AGREES = {"embedding": embedding, "edges": edges}


def test_each_trap_catches_somebody(tmp_path):
    """A trap that all get right would tell nothing; mixing up cached and new is caught below."""
    right = {name: trapped(opened, tmp_path / str(n)) for n, (name, opened) in
             enumerate(FACES.items()) if "Llama" not in name}  # fmt: skip
    caught = {trap for held in right.values() for trap, well in held.items() if not well}
    assert caught >= set(TRAPS) - {"cached and new", "changed by its reader"}


def test_a_cache_that_mixes_up_its_vectors_is_caught():
    """It puts what is new first, keeps what it has by reference, and forgets whose is whose."""

    def careless(model):
        kept = {}

        def documents(texts):
            new = [text for text in texts if text not in kept]
            kept.update(zip(new, model.embed("document", new), strict=False))
            return [kept[text] for text in sorted(texts)]

        return rag_face(documents)

    def behind(name, **named):
        model = Model(name=name, **named)
        return model, careless(model)

    assert not TRAPS["cached and new"](behind)
    assert not TRAPS["changed by its reader"](behind)


def rag_face(documents):
    from evals.rag.vector_caches import Face  # noqa: PLC0415 - only here

    return Face(documents=documents, query=lambda text: documents([text])[0])


def ask(who, *, reads=False):
    return Ask(who=who, silent=False, reads=reads)


PLAN = InTurn((ask("a", reads=True), SideBySide((ask("b"), InTurn((ask("c"), ask("d")))))))
INSIDE = {("a", "read-by-a"), *((who, seen) for who in "bcd" for seen in ("a", "read-by-a"))}


def test_the_truth_of_a_plan_is_what_came_before():
    assert true_edges(PLAN) == INSIDE | {("d", "c")}


def test_in_a_graph_the_step_before_is_seen_from_every_branch():
    assert graphs.true_edges(PLAN) == INSIDE | {("d", "c"), ("d", "b")}


def test_edges_that_lack_or_join_are_counted():
    true = {("b item-1", "a item-1"), ("b item-2", "a item-2")}
    found = {("b item-1", "a item-1"), ("b item-1", "a item-2"), ("a item-1", "b item-1")}
    told = compared(true, found)
    assert told == {"true": 2, "found": 1, "between_runs": 1, "inside": 1}


@pytest.mark.skipif(not known("hard_negatives"), reason="STEMMA_DATA names no folder of texts")
def test_the_rules_are_those_that_the_rows_were_made_by():
    made = [
        row
        for row in rows("hard_negatives", "pairs.jsonl")
        if row["label"] == 1 and row["lang"] == "en"
    ]
    assert {row["kind"] for row in made} == set(RULES)
    assert len(made) == 800
    assert [row for row in made if not could_give(row["kind"], row["a"], row["b"])] == []


def could_give(rule, question, reworded):
    tries = 400 if rule == "typo" else 1
    return any(RULES[rule](question, random.Random(seed)) == reworded for seed in range(tries))


@pytest.mark.parametrize("question", ["", "?", "No", "What is it?", "Whose hat is it ?"])
def test_any_question_can_be_reworded(question):
    for seed in range(20):
        assert isinstance(reword(question, random.Random(seed)), str)
        assert reword(question, random.Random(seed)) == reword(question, random.Random(seed))
