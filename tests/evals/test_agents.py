"""`python -m evals agents`, at a size that takes no time; and that its check would notice."""

import json
import math
from dataclasses import replace

import pytest
from evals.agents import world as airline
from evals.agents.airline import replay
from evals.agents.arguments import reused
from evals.agents.world import Recorded, recorded
from evals.measuring import Skipped
from evals.quality.texts import Pair
from evals.rag.texts import folder

from evals import agents
from stemma import World
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
    world = airline.World(recorded([[READ]]), "me")
    before = world.read(READ.name, READ.arguments)
    world.write(REFUSED)
    assert world.read(READ.name, READ.arguments) == before
    world.write(CANCEL)
    assert world.read(READ.name, READ.arguments)["is"]["status"] == "cancelled"
    assert world.reset() == [("reservation", "R1")]
    assert world.read(READ.name, READ.arguments) == before


@pytest.mark.parametrize("worlds", ["one", "told", "private"])
def test_every_read_is_true_and_every_write_is_made(worlds):
    runs = [[READ, READ, CANCEL, READ, CANCEL, READ]] * 2
    found = replay(runs, worlds=worlds, again=True, tenants=("a", "b"))
    assert (found.reads, found.writes) == (16, 8)
    assert (found.differing, found.skipped) == (0, 0)
    assert found.served > 0


def test_in_private_worlds_a_run_that_does_the_same_finds_all_that_was_read_before():
    run = [READ, CANCEL, READ, CANCEL, READ]
    found = replay([run, run, [READ, READ]], worlds="private")
    assert (found.served, found.differing) == (3 + 2, 0)
    assert replay([run, run], worlds="told").served == 0


def test_where_versions_of_a_private_world_are_ignored_the_check_notices(monkeypatch):
    moment = World.moment

    def unmoved(self, paths):
        return replace(moment(self, paths), version="as in the beginning")

    monkeypatch.setattr(World, "moment", unmoved)
    assert replay([[READ, CANCEL, READ]], worlds="private").differing == 1


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
