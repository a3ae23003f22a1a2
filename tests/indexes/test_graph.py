"""The graph index finds what a brute-force search finds, while its graphs are made, and after."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from evals.speed.vectors import clustered, noisy
from hypothesis import given, settings
from hypothesis import strategies as st

import stemma
from stemma.errors import MissingDependency, UsageError
from stemma.indexes import graph
from stemma.indexes.bits import BitsView
from stemma.indexes.exact import ExactIndex
from stemma.indexes.graph import GraphIndex
from stemma.indexes.hnsw import Graph
from stemma.testing.indexes import ChangeLog, IndexConformance

ROWS = np.random.default_rng(11).normal(size=(40, 16)).astype(np.float16)
ASKED = np.random.default_rng(12).normal(size=(2, 16)).astype(np.float32)


class Patient(GraphIndex):
    """Answers when the graphs are made that the group wants."""

    def nearest(self, store, group, vector, k, floor=-1.0):
        super().nearest(store, group, vector, k, floor)
        assert self.ready(60)
        return super().nearest(store, group, vector, k, floor)


@pytest.fixture
def by_graph_alone(monkeypatch):
    """No scan stands in for a graph, however small."""
    monkeypatch.setattr(graph, "_FEW", 0)
    monkeypatch.setattr(graph, "_ENOUGH", 10**9)


class TestConformance(IndexConformance):
    """As it is made: no group of these tests is large."""

    @pytest.fixture
    def index(self):
        return GraphIndex()


class TestConformanceWhileGraphsAreMade(IndexConformance):
    """Every group wants one, and lookups do not wait for it."""

    @pytest.fixture
    def index(self, by_graph_alone):
        index = GraphIndex(beyond=1, large=1, wide=1)
        yield index
        index.close()


class TestConformanceByGraph(IndexConformance):
    """Every group by its graph, whatever its size."""

    @pytest.fixture
    def index(self, by_graph_alone):
        return Patient(beyond=1, large=1, wide=1)


def filled(rows) -> ChangeLog:
    log = ChangeLog()
    for number, row in enumerate(rows):
        log.put(f"{number:06}", row)
    return log


def large(count: int = 3_000, seed: int = 1):
    """A store with clusters of five, and vectors with entries near them."""
    rng = np.random.default_rng(seed)
    rows = clustered(rng, count)
    return filled(rows), noisy(rng, rows[: count // 5 : 7], 0.4)


def same(found, expected):
    return [near.id for near in found] == [near.id for near in expected] and [
        near.similarity for near in found
    ] == pytest.approx([near.similarity for near in expected], abs=1e-6)


def check(index, log, asked):
    """What lies at 0.75 or above is what lies there."""
    assert wrong(index, log, asked) == 0


def wrong(index, log, asked) -> int:
    """How often it is not."""
    exact = ExactIndex()
    answers = [
        same(
            index.nearest(log.store, "g", vector, 8, 0.75),
            exact.nearest(log.store, "g", vector, 8, 0.75),
        )
        for vector in asked
    ]
    return answers.count(False)


def has_graph(index) -> bool:
    return not isinstance(index._groups["g"].view, BitsView)


puts = st.tuples(st.just("put"), st.integers(0, 30), st.integers(0, 39))
removals = st.tuples(st.just("remove"), st.integers(0, 30), st.just(0))
others = st.tuples(st.sampled_from(["forget", "ask"]), st.just(0), st.just(0))


@pytest.mark.usefixtures("by_graph_alone")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(puts, removals, others), max_size=60), st.integers(1, 12))
def test_agrees_with_brute_force_after_any_history(history, k):
    """Graphs made, grown and made anew between puts and removals, and moved by compaction."""
    log, index, exact = ChangeLog(), Patient(beyond=1, large=1, wide=1), ExactIndex()
    for what, number, row in [*history, ("ask", 0, 0)]:
        log.happen(what, f"e{number:02}", ROWS[row], f"g{number % 2}")
        for group in ("g0", "g1") if what == "ask" else ():
            for asked in ASKED:
                expected = exact.nearest(log.store, group, asked, k)
                assert same(index.nearest(log.store, group, asked, k), expected)
    assert len(index) == len(log.entries)


def test_finds_the_nearest_by_a_graph_and_what_came_since_by_bits():
    """A tail that is no reason to grow is scanned; one that is, is taken in."""
    log, asked = large()
    index = Patient(beyond=1_000, large=100)
    check(index, log, asked)
    first = index._groups["g"].placed.graph
    assert has_graph(index)
    assert len(first) == 3_000
    rng = np.random.default_rng(2)
    for count, points in ((180, 3_000), (20, 3_200)):
        for row in clustered(rng, count):
            log.put(f"more{len(log.entries)}", row)
        check(index, log, asked)
        last = [vector for _, _, vector in log.entries.values()][-9:]
        check(index, log, noisy(rng, np.stack(last).astype(np.float32), 0.4))
        assert len(index._groups["g"].placed.graph) == points
    assert len(first) == 3_000
    assert len(first.nearest(asked[0], 10)) == 10


def test_the_graph_is_what_answers(monkeypatch):
    """With its links led astray the nearest is not found: no scan hides the graph."""
    log, asked = large()
    index = Patient(beyond=1_000, large=100)
    check(index, log, asked[:1])
    monkeypatch.setattr(Graph, "nearest", lambda _, __, count: np.arange(2_000, 2_000 + count))
    assert wrong(index, log, asked) > len(asked) / 2


def test_what_is_removed_or_replaced_is_gone_at_once_from_a_graph():
    """Dead by the next lookup, without the graph being touched."""
    log, asked = large()
    index = Patient(beyond=1_000, large=100)
    check(index, log, asked)
    made = index._groups["g"].placed.graph
    gone = [index.nearest(log.store, "g", vector, 1)[0].id for vector in asked[:40]]
    for entry in gone[:20]:
        log.remove(entry)
    for entry, vector in zip(gone[20:], asked[20:], strict=False):
        log.put(entry, -vector)
    check(index, log, asked)
    check(index, log, -asked[20:40])
    assert index._groups["g"].placed.graph is made


def test_where_most_that_is_near_is_dead_a_scan_answers():
    """A recall takes all that a graph would name; what lies behind it is found all the same."""
    rng = np.random.default_rng(3)
    centre = clustered(rng, 1)
    near, far = noisy(rng, np.repeat(centre, 400, axis=0), 0.4), noisy(rng, centre, 0.8)
    log = filled(np.concatenate([near, far, clustered(rng, 2_000)]))
    index = Patient(beyond=1_000, large=100)
    check(index, log, centre)
    for number in range(400):
        log.remove(f"{number:06}")
    assert index.nearest(log.store, "g", centre[0], 1)[0].id == "000400"
    assert has_graph(index)


def test_equal_vectors_are_one_point_and_all_their_entries_are_ranked():
    """Thousands at one place keep nobody from being found, and come by their ids."""
    rng = np.random.default_rng(4)
    rows = clustered(rng, 2_000)
    log = filled(np.concatenate([np.repeat(rows[:3], 1_500, axis=0), rows]))
    index = Patient(beyond=1_000, large=100)
    found = index.nearest(log.store, "g", rows[1], 5)
    assert [near.id for near in found] == [f"{1_500 + n:06}" for n in range(5)]
    check(index, log, noisy(rng, rows[3:60], 0.4))
    assert len(index._groups["g"].placed.graph) == 2_000


def test_a_graph_moves_with_its_group_and_a_worn_one_is_made_anew():
    """Compaction keeps it; when too few of its points are of use, another takes its place."""
    log, asked = large()
    index = Patient(beyond=1_000, large=100)
    check(index, log, asked)
    first = index._groups["g"].placed.graph
    arrangement = index._groups["g"].arrangement
    for number in range(1_000):
        log.remove(f"{number + 2_000:06}")
    super(Patient, index).nearest(log.store, "g", asked[0], 1)
    moved = index._groups["g"].placed
    assert moved.graph is first
    assert moved.worn
    assert index._groups["g"].arrangement is not arrangement
    check(index, log, asked)
    assert len(index._groups["g"].placed.graph) == 2_000


class Held:
    """Growth that waits in its middle, until it may go on."""

    def __init__(self, monkeypatch):
        self.reached, self.go = threading.Event(), threading.Event()
        grow = Graph.grow

        def slow(made, digests, pieces, step):
            self.reached.set()
            assert self.go.wait(60)
            grow(made, digests, pieces, step)

        monkeypatch.setattr(Graph, "grow", slow)


@pytest.mark.parametrize("removed", [50, 1_200])
def test_lookups_go_on_and_see_every_change_while_a_graph_is_made(monkeypatch, removed):
    """With so many removals the rows move meanwhile, and the graph is put to where they are."""
    held = Held(monkeypatch)
    log, asked = large()
    index = GraphIndex(beyond=1_000, large=100)
    check(index, log, asked[:5])
    assert held.reached.wait(60)
    for number in range(removed):
        log.remove(f"{3_000 - 1 - number:06}")
    log.put("new", asked[0])
    check(index, log, asked[:20])
    assert not has_graph(index)
    held.go.set()
    assert index.ready(60)
    assert has_graph(index)
    check(index, log, asked)


def test_threads_ask_and_write_while_graphs_come_and_go(monkeypatch):
    """An entry that never changes is always found, and one removed never after."""
    monkeypatch.setattr(graph, "_TAIL", 100)
    log, asked = large(1_500)
    index, seen, done = GraphIndex(beyond=500, large=100), [], threading.Event()
    fixed = index.nearest(log.store, "g", asked[0], 1)[0].id

    def ask():
        while not done.is_set():
            if index.nearest(log.store, "g", asked[0], 1)[0].id != fixed:
                seen.append("lost")
            gone = {f"new{n}" for n in range(len(log.removed))}
            found = index.nearest(log.store, "g", -asked[0], 5)
            seen.extend(near.id for near in found if near.id in gone)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    rng = np.random.default_rng(5)
    for number, row in enumerate(noisy(rng, np.repeat(-asked[:1], 60, axis=0), 0.5)):
        log.put(f"new{number}", row)
        if number > 3:
            log.remove(f"new{number - 4}")
    done.set()
    for thread in threads:
        thread.join()
    index.close()
    assert seen == []


def test_a_graph_that_cannot_be_made_is_said_once_and_lookups_go_on(monkeypatch, caplog):
    """It is not tried again at each of them."""
    log, asked = large(1_000)
    monkeypatch.setattr(Graph, "grow", lambda *_: 1 // 0)
    index = Patient(beyond=500, large=100)
    check(index, log, asked[:5])
    assert [record.message for record in caplog.records] == [
        "making a graph failed; lookups scan that group from now on"
    ]
    assert not has_graph(index)


def test_closing_ends_the_making(monkeypatch):
    """In its middle; lookups still answer, and nothing more is made."""
    held = Held(monkeypatch)
    log, asked = large(1_000)
    index = GraphIndex(beyond=500, large=100)
    check(index, log, asked[:1])
    assert held.reached.wait(60)
    closing = threading.Thread(target=index.close)
    closing.start()
    held.go.set()
    closing.join(60)
    assert not closing.is_alive()
    assert not any(thread.name == "stemma-graph" for thread in threading.enumerate())
    check(index, log, asked[:5])
    assert index.ready(0)
    assert not has_graph(index)


def test_a_process_ends_well_in_the_middle_of_making_one():
    """The library's code does not run on while the interpreter goes."""
    code = """
import numpy as np
from stemma.indexes.graph import GraphIndex
from stemma.testing.indexes import ChangeLog
log = ChangeLog()
for number, row in enumerate(np.random.default_rng(0).normal(size=(20_000, 256))):
    log.put(f"{number}", row)
index = GraphIndex(beyond=5_000)
index.nearest(log.store, "g", np.ones(256, dtype=np.float32), 1)
assert not index.ready(0.3)
print("asked")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "asked\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("made", [True, False])
def test_a_forked_child_answers_and_makes_its_own(monkeypatch, made):
    """Forked when the graph was there, and in the middle of its making."""
    log, asked = large(1_500)
    index = Patient(beyond=500, large=100)
    if made:
        check(index, log, asked[:1])
    else:
        held = Held(monkeypatch)
        GraphIndex.nearest(index, log.store, "g", asked[0], 1)
        assert held.reached.wait(60)
        held.go.set()
    child = os.fork()
    if not child:
        try:
            check(index, log, asked)
            os._exit(0 if has_graph(index) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check(index, log, asked[:5])


def test_says_what_it_needs(monkeypatch):
    """Without the library none is made, and the error names the extra."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "stemma.indexes.hnsw.find_spec", lambda name: None if name == "usearch" else find(name)
    )
    with pytest.raises(MissingDependency, match=r"stemma-cache\[graph\]"):
        GraphIndex()


def test_refuses_a_graph_before_bits():
    """A group with a graph has bits, too."""
    with pytest.raises(UsageError, match="4096"):
        GraphIndex(beyond=4_095)


@pytest.mark.real
@pytest.mark.parametrize("first", ["usearch.index", "onnxruntime"])
def test_the_library_and_the_local_model_s_live_in_one_process(first: str):
    """Whichever is loaded first: one that shows its own symbols to the other ends the process."""
    names = sorted(("usearch.index", "onnxruntime"), key=lambda name: name != first)
    script = "\n".join(f"import {name}" for name in names)
    ran = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert ran.returncode == 0, ran.stderr


def test_a_cache_that_is_closed_closes_its_index():
    """No thread of it goes on."""
    index = GraphIndex(beyond=4_096)
    stemma.open(":memory:", tenant="me", embedder=None, index=index).close()
    index._beside.ask("g", lambda: pytest.fail("made a graph for nobody"))
    assert index.ready(1)
    assert index._beside._thread is None
