"""Paths: a run in other words walks the same one; one that took another turn does not."""

import asyncio
import contextlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import stemma
from stemma.lineage.paths import START, Step, joined
from stemma.testing.fakes import Scripted

ASKED = "find music events in Berlin this weekend"
REWORDED = "music events in Berlin this weekend, find"
ELSEWHERE = "find music events in Oslo this weekend"


def ask(cache, do, step, compute, arguments=None, **others):
    return do(cache.hops.get_or_compute, step, compute, arguments=arguments, **others)


def walk(cache, do, compute, *, query=ASKED, names=("search", "read", "answer"), **others):
    """Three hops; the first one is found by meaning."""
    first, second, third = names
    with cache.trace():
        with cache.hop(first):
            one = ask(cache, do, "search", compute, {"q": query}, semantic="q", similarity=0.5)
        with cache.hop(second):
            two = ask(cache, do, "read", compute, {"page": 1}, **others)
        with cache.hop(third):
            return one, two, ask(cache, do, "answer", compute)


def tiers(served):
    return [one.outcome.tier if one.outcome.hit else one.outcome.reason for one in served]


def test_a_run_in_other_words_walks_the_same_path(cache, do):
    calls = Scripted()
    walk(cache, do, calls)
    assert tiers(walk(cache, do, calls, query=REWORDED)) == ["semantic", "exact", "exact"]
    assert calls.calls == 3


def test_a_run_that_took_another_turn_does_not(cache, do):
    calls = Scripted()
    walk(cache, do, calls)
    assert tiers(walk(cache, do, calls, query=ELSEWHERE)) == ["guard:name", "cold", "cold"]
    assert tiers(walk(cache, do, calls, names=("search", "skim", "answer"))) == [
        "exact",
        "exact",
        "cold",
    ]


def test_a_hop_that_matched_nothing_is_part_of_the_path_by_its_name(cache, do):
    calls = Scripted()

    def run(name):
        with cache.trace():
            with cache.hop(name):
                pass
            return ask(cache, do, "answer", calls).outcome.hit

    assert [run("plan"), run("plan"), run("act"), run("plan")] == [False, True, False, True]


def test_what_is_read_while_computing_is_lineage_and_no_part_of_the_key(cache, do):
    calls = Scripted()

    def run(text):
        with cache.trace():
            with cache.hop("read"):
                do(cache.retrievals.get_or_compute, text, lambda: [text], index="docs")
            return ask(cache, do, "answer", calls)

    first, second = run("one"), run("two")
    assert second.outcome.tier == "exact"
    lineage = cache.engine.parts.store.lineage(first.stored.entry.id)
    assert len(lineage.parents) == 1
    cache.recall(entry=lineage.parents[0].parent)
    assert not run("two").outcome.hit


def test_steps_of_one_hop_have_no_order(cache, do):
    calls = Scripted()

    def run(*steps):
        with cache.trace():
            with cache.hop("tools"):
                for step in steps:
                    ask(cache, do, step, calls)
            return ask(cache, do, "answer", calls).outcome.hit

    assert [run("a", "b"), run("b", "a"), run("a", "a", "b"), run("a")] == [
        False,
        True,
        True,
        False,
    ]


def test_branches_that_meet_have_no_order(cache):
    async def run(*order):
        async def branch(name, before):
            with cache.hop("branch"):
                await before.wait()
                await cache.hops.aget_or_compute(name, Scripted(name))

        with cache.trace():
            gates = {name: asyncio.Event() for name in "ab"}
            tasks = [asyncio.create_task(branch(name, gates[name])) for name in "ab"]
            await asyncio.sleep(0)
            for name in order:
                gates[name].set()
                await tasks["ab".index(name)]
            with cache.hop("join"):
                return (await cache.hops.aget_or_compute("answer", Scripted())).outcome.hit

    assert not asyncio.run(run("a", "b"))
    assert asyncio.run(run("b", "a"))


def test_branches_join_to_one_path_and_a_single_one_is_itself():
    one, two = (START.after("branch", [Step(name, "exact")]) for name in "ab")
    assert joined(START, [one, two]) == joined(START, [two, one]) != one
    assert joined(START, [one]) is one
    assert [hop.name for hop in joined(START, [one, two]).hops] == ["branch", "branch"]


def test_nested_hops_lead_their_outer_hop_on(cache, do):
    calls = Scripted()

    def run(inner):
        with cache.trace():
            with cache.hop("outer"), cache.hop("inner"):
                ask(cache, do, inner, calls)
            return ask(cache, do, "answer", calls).outcome.hit

    assert [run("a"), run("a"), run("b")] == [False, True, False]


def test_a_hop_inside_another_is_led_to_by_what_that_has_matched(cache, do):
    calls = Scripted()

    def run(outer):
        with cache.trace(), cache.hop("outer"):
            ask(cache, do, outer, calls)
            with cache.hop("inner"):
                return ask(cache, do, "answer", calls).outcome.hit

    assert [run("a"), run("b"), run("a")] == [False, False, True]


def test_a_step_outside_hops_lies_before_the_next_hop(cache, do):
    calls = Scripted()

    def run(first):
        with cache.trace():
            ask(cache, do, first, calls)
            with cache.hop("then"):
                return ask(cache, do, "answer", calls).outcome.hit

    assert [run("a"), run("b"), run("a")] == [False, False, True]


def test_a_step_that_left_no_entry_is_told_by_its_value(cache, do):
    refused = lambda value: "not wanted" if value.startswith("no") else None  # noqa: E731
    calls = Scripted()

    def run(said):
        with cache.trace():
            with cache.hop("roll"):
                do(cache.hops.serve, cache.hops.asked("roll"), Scripted(said), admit=refused)
            return ask(cache, do, "answer", calls).outcome.hit

    assert [run("no 1"), run("no 2"), run("no 1")] == [False, False, True]


def test_a_step_that_failed_or_was_not_storable_is_no_step_that_was_not_taken(cache, do):
    calls = Scripted()

    def run(compute):
        with cache.trace():
            with cache.hop("try"), contextlib.suppress(ValueError):
                if compute is not None:
                    ask(cache, do, "try", compute)
            return ask(cache, do, "answer", calls).outcome.hit

    assert not run(None)
    assert not run(Scripted(ValueError("boom")))
    assert not run(Scripted(object()))
    assert not run(Scripted(object()))
    assert run(Scripted(ValueError("boom")))
    assert run(None)


def test_a_hop_left_by_an_error_leads_elsewhere(cache, do):
    calls = Scripted()

    def run(compute):
        with cache.trace():
            with contextlib.suppress(ValueError, KeyboardInterrupt), cache.hop("plan"):
                compute()
            return ask(cache, do, "answer", calls).outcome.hit

    left = Scripted(ValueError()), Scripted(KeyboardInterrupt())
    assert [run(Scripted()), *map(run, left), run(Scripted())] == [
        False,
        False,
        True,
        True,
    ]


def test_a_cancelled_task_closes_its_hop_and_stores_nothing(cache):
    async def run():
        begun = asyncio.Event()

        async def slow():
            begun.set()
            await asyncio.sleep(60)

        async def step():
            with cache.hop("slow"):
                await cache.hops.aget_or_compute("slow", slow)

        with cache.trace() as trace:
            task = asyncio.create_task(step())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return trace

    trace = asyncio.run(run())
    assert [hop.steps[-1].how for hop in trace.path.hops] == ["left"]
    assert cache.stats().of().entries == 0


@pytest.mark.parametrize("changed", [{"version": "2"}, {"agent": "b"}])
def test_a_step_re_versioned_in_the_middle_of_a_run_is_another_one(cache, do, changed):
    calls = Scripted()
    walk(cache, do, calls, version="1", agent="a")
    assert tiers(walk(cache, do, calls, **{"version": "1", "agent": "a", **changed})) == [
        "exact",
        "cold",
        "cold",
    ]


def test_a_step_without_a_path_is_the_same_everywhere_and_built_on_nothing_before(cache, do):
    calls = Scripted()

    def look_up(*before):
        with cache.trace():
            for name in before:
                with cache.hop(name):
                    ask(cache, do, name, calls)
            with cache.hop("look up"):
                return ask(cache, do, "booking", calls, {"id": 7}, path=False)

    first = look_up("greet", "ask")
    assert first.stored.entry.hop == 1
    assert not cache.engine.parts.store.lineage(first.stored.entry.id)
    assert look_up().outcome.tier == "exact"
    assert look_up("other").value == first.value


def test_a_step_without_a_path_is_built_on_what_it_reads_itself(cache, do):
    def read():
        return cache.retrievals.get_or_compute("q", lambda: ["text"], index="docs").value

    def aread():
        return read()

    with cache.trace(), cache.hop("look up"):
        ask(cache, do, "before", Scripted())
        served = ask(cache, do, "booking", aread, {"id": 7}, path=False)
        after = ask(cache, do, "after", Scripted())
    store = cache.engine.parts.store
    parents = store.lineage(served.stored.entry.id).parents
    assert [store.get([one.parent]).entries[one.parent].node for one in parents] == ["retrieval"]
    assert served.stored.entry.id in {
        one.parent for one in store.lineage(after.stored.entry.id).parents
    }


def test_a_path_leads_on_from_a_step_that_does_not_depend_on_it(cache, do):
    calls = Scripted()

    def run(booking):
        with cache.trace():
            with cache.hop("look up"):
                ask(cache, do, "booking", calls, {"id": booking}, path=False)
            with cache.hop("answer"):
                return ask(cache, do, "answer", calls).outcome.hit

    assert [run(1), run(2), run(1)] == [False, False, True]


KEYS = """
import stemma
with stemma.open(embedder="hashing", tenant="me") as cache, cache.trace(intent="a trip"):
    for number in range(3):
        with cache.hop(f"hop {number}"):
            for step in ("b", "a"):
                served = cache.hops.get_or_compute(
                    step, lambda: step, arguments={"q": "one two", "tags": {"x", "y", "z"}},
                    semantic=("q",), agent="me", version="1")
                print(served.stored.entry.id)
"""


def test_keys_are_the_same_in_every_process_and_under_every_hash_seed():
    told = [
        subprocess.run(
            [sys.executable, "-c", KEYS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert len(set(told[0].split())) == 6


def test_another_process_walks_the_path_of_the_first(tmp_path):
    script = """
import sys, stemma
with stemma.open(sys.argv[1], embedder="hashing", tenant="me") as cache, cache.trace():
    for number in range(2):
        with cache.hop("hop"):
            outcome = cache.hops.get_or_compute(
                "s", lambda: "v", arguments={"q": sys.argv[2]}, semantic="q", similarity=0.5).outcome
            print(outcome.tier if outcome.hit else outcome.reason)
"""
    asked = [ASKED, REWORDED]
    told = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "cache.db"), query],
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split()
        for query in asked
    ]
    assert told == [["cold", "cold"], ["semantic", "semantic"]]


# ------------------------------------------------------------------------------ depth and number


def nested(cache, depth, compute, every=1):
    """Hops inside one another, some of them with a step; the innermost one's hit or miss."""
    with contextlib.ExitStack() as open_hops:
        for number in range(1, depth + 1):
            open_hops.enter_context(cache.hop("again"))
            if number % every == 0:
                served = cache.hops.get_or_compute("step", compute, arguments=number, floor=60.0)
    return served


def test_a_thousand_nested_hops_and_not_one_more():
    with stemma.open(embedder=None, tenant="me") as cache:
        calls = Scripted()
        with cache.trace() as frame:
            first = nested(cache, 1_000, calls, every=50)
        assert first.stored.entry.hop == 1_000
        assert (frame.reached, calls.calls) == (1_000, 20)
        with cache.trace():
            assert nested(cache, 1_000, calls, every=50).outcome.hit
        assert calls.calls == 20
        with pytest.raises(stemma.HopLimit, match="more than 1000 hops"), cache.trace():
            nested(cache, 1_001, calls, every=50)


def test_how_deep_hops_may_be_nested_can_be_said(cache):
    with cache.trace(nested=3):
        nested(cache, 3, Scripted())
        with pytest.raises(stemma.HopLimit, match="more than 3 hops"):
            nested(cache, 4, Scripted())
        nested(cache, 3, Scripted())


def test_an_agent_that_calls_itself_is_stopped_by_an_error_of_ours(cache):
    def agent():
        with cache.hop("again"):
            agent()

    with cache.trace(nested=20), pytest.raises(stemma.StemmaError, match="needs an end"):
        agent()


@pytest.mark.parametrize("nested", [0, -1, 2.5, "9", True])
def test_a_depth_that_is_none_is_an_error(cache, nested):
    with pytest.raises(stemma.UsageError, match="nested"), cache.trace(nested=nested):
        pass


def strangers(cache):
    """How many parents there are, and how many of another run: each value is its run's name."""
    store = cache.engine.parts.store
    entries = {entry.id: entry for entry in store.find(limit=1_000_000)}
    pairs = [
        (entry, entries[edge.parent])
        for entry in entries.values()
        for edge in store.lineage(entry.id).parents
    ]
    return len(pairs), sum(child.payload != parent.payload for child, parent in pairs)


def test_threads_and_tasks_keep_their_own_frames():
    with stemma.open(embedder=None, tenant="me") as cache:

        def run(name):
            with cache.trace():
                for step in range(3):
                    with cache.hop("step"):
                        cache.hops.get_or_compute("s", lambda: name, arguments=[name, step])

        with ThreadPoolExecutor(64) as pool:
            list(pool.map(run, (f"thread {number}" for number in range(64))))

        async def arun(name):
            with cache.trace():
                for step in range(3):
                    with cache.hop("step"):
                        await asyncio.sleep(0)
                        await cache.hops.aget_or_compute("s", lambda: name, arguments=[name, step])

        async def all_of_them():
            await asyncio.gather(*(arun(f"task {number}") for number in range(1_000)))

        asyncio.run(all_of_them())
        assert strangers(cache) == (1_064 * 3, 0)
