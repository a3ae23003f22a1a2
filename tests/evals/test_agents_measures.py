"""What the evaluation of agents measures with: worlds that change, and parents that are counted."""

import itertools
import json
from dataclasses import replace

import pytest
from evals.agents.chains import Mechanisms, cached
from evals.agents.changing import DAY, Changing, Run, fixed, fixed_alike
from evals.agents.frames import in_tasks, in_threads, misplaced, nested
from evals.agents.world import WRITES, World, recorded, runs
from evals.measuring import Skipped

import stemma


def test_until_a_run_writes_a_world_gives_what_was_recorded():
    try:
        all_runs = runs()
    except Skipped as missing:
        pytest.skip(str(missing))
    initial = recorded(all_runs)
    compared = 0
    for run in all_runs:
        world = World(initial, "me")
        for call in itertools.takewhile(lambda call: call.name not in WRITES, run):
            if not call.failed:
                compared += 1
                assert world.read(call.name, call.arguments)["is"] == json.loads(call.result)
    assert compared > 400


def changing(*changes, told=()):
    """One chain of two hops; it runs at noon of five days."""
    return Changing(
        chains=[(0, 1)],
        runs=[Run((day + 0.5) * DAY, 0) for day in range(5)],
        changes=[list(changes), []],
        told=list(told),
    )


def test_a_fixed_life_serves_what_has_changed_until_it_ends():
    world = changing(1.6 * DAY)
    for life, served, stale in ((DAY / 2, 0, 0), (2.5 * DAY, 6, 1), (9 * DAY, 8, 3)):
        found = fixed(world, life)
        assert (found.hops, found.served, found.answers, found.stale) == (10, served, 5, stale)
    life, found = fixed_alike(world, 0.6)
    assert found.rate == 0.6
    assert fixed(world, life * 1.001).rate > 0.6


def test_each_mechanism_ends_what_it_should():
    """Two chains read one source, which changes at half past four and is told at half past five."""
    runs = [Run(hour * DAY / 24, hour % 2 if hour > 9 else 0) for hour in range(12)]
    world = Changing(
        chains=[(0,), (0,)], runs=runs, changes=[[4.5 * DAY / 24]], told=[(5.5 * DAY / 24, 0)]
    )
    stale = [
        cached(world, how).stale
        for how in (Mechanisms(), Mechanisms(checked=True), Mechanisms(checked=True, told=1.0))
    ]
    # From five to ten; the other chain reads the source at eleven.
    assert stale == [6, 6, 1]
    later = replace(world, runs=[*runs, Run(DAY / 2, 0)])
    assert [cached(later, Mechanisms(checked=one)).stale for one in (False, True)] == [7, 6]


@pytest.mark.parametrize("walk", [nested, in_threads, in_tasks])
def test_parents_are_counted_against_what_was_walked(walk):
    with stemma.open(":memory:", tenant="me", embedder=None) as cache:
        walked = walk(cache, 8)
        found = misplaced(cache, walked)
        assert found["parents"] >= 28
        assert (found["in the wrong frame"], found["missing"]) == (0, 0)
        entry = max(walked, key=lambda one: len(walked[one]))
        parent = next(iter(walked[entry]))
        wrong = {**walked, entry: walked[entry] - {parent} | {"another"}}
        assert misplaced(cache, wrong) == {**found, "in the wrong frame": 1, "missing": 1}
