"""`python -m evals agents`, at a size that takes no time; and that its check would notice."""

import itertools
import json
import math
from dataclasses import replace

import pytest
from evals.agents.airline import replay
from evals.agents.arguments import reused
from evals.agents.chains import Mechanisms, cached
from evals.agents.changing import DAY, Changing, Run, fixed, fixed_alike
from evals.agents.frames import in_tasks, in_threads, misplaced, nested
from evals.agents.world import WRITES, Recorded, World, recorded, runs
from evals.measuring import Skipped
from evals.quality.texts import Pair
from evals.rag.texts import folder

import stemma
from evals import agents
from stemma.embedders import HashingEmbedder

READ = Recorded(
    name="get_reservation_details",
    arguments={"reservation_id": "R1"},
    result='{"reservation_id": "R1", "user_id": "ada", "status": "booked"}',
)
CANCEL = Recorded(name="cancel_reservation", arguments={"reservation_id": "R1"}, result="{}")
REFUSED = Recorded(
    name="cancel_reservation", arguments={"reservation_id": "R1"}, result="Error: too late"
)
TEXTS = ("airline", "arguments")
"""The parts that need texts."""


def known() -> bool:
    try:
        return all(folder(one) for one in ("agent_tau_airline", "agent_bfcl", "pairs_tool_args"))
    except Skipped:
        return False


@pytest.mark.parametrize("part", agents.PARTS)
def test_each_part_gives_figures_that_can_be_written_down(part):
    if part in TEXTS and not known():
        pytest.skip("STEMMA_DATA names no folder of texts")
    found = agents.measured(part, size=0.03, seed=3)
    if "not on this machine" in found.skipped:
        pytest.skip(found.skipped)
    assert not found.skipped
    assert all(math.isfinite(figure.value) for figure in found.figures)
    assert json.loads(json.dumps(found.details))


def test_a_world_answers_from_what_was_written_to_it():
    world = World(recorded([[READ]]), "me")
    before = world.read(READ.name, READ.arguments)
    world.write(REFUSED)
    assert world.read(READ.name, READ.arguments) == before
    world.write(CANCEL)
    assert world.read(READ.name, READ.arguments)["is"]["status"] == "cancelled"
    assert world.reset() == [("reservation", "R1")]
    assert world.read(READ.name, READ.arguments) == before


@pytest.mark.skipif(not known(), reason="STEMMA_DATA names no folder of texts")
def test_until_a_run_writes_a_world_gives_what_was_recorded():
    initial = recorded(runs())
    compared = 0
    for run in runs():
        world = World(initial, "me")
        for call in itertools.takewhile(lambda call: call.name not in WRITES, run):
            if not call.failed:
                compared += 1
                assert world.read(call.name, call.arguments)["is"] == json.loads(call.result)
    assert compared > 400


@pytest.mark.parametrize("resets", [True, False])
def test_every_read_is_true_and_every_write_is_made(resets):
    runs = [[READ, READ, CANCEL, READ, CANCEL, READ]] * 2
    found = replay(runs, resets=resets, again=True, tenants=("a", "b"))
    assert (found.reads, found.writes) == (16, 8)
    assert (found.differing, found.skipped) == (0, 0)
    assert found.served > 0


def test_where_nothing_is_taken_back_the_check_notices():
    assert replay([[READ, CANCEL, READ]], "none").differing == 1
    assert replay([[READ, CANCEL, READ]], "clear").differing == 0


def test_what_is_reused_is_counted_pair_by_pair():
    one, near = "play a song by Adele for me", "play a song by Adele for me please"
    pairs = [
        Pair(one=one, other=near, same=True, part="play"),
        Pair(one="what is the weather like", other=one, same=False, part="play"),
    ]
    assert reused(pairs, HashingEmbedder(), 0.8) == [True, False]


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
