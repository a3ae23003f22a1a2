"""`python -m evals propagation`, at a size that takes no time; and that it would notice an error."""

import json
import math

import numpy as np
import pytest
from evals.propagation.spread import judged
from evals.propagation.worlds import World, made, truth

from evals import propagation
from stemma import reporters
from stemma.propagation.edges import Edges

DIAMOND = [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)]


APART = {"grounding", "timing"}
"""The parts that are tried in files of their own."""


@pytest.mark.parametrize("part", sorted(propagation.PARTS.keys() - APART))
def test_each_part_gives_figures_that_can_be_written_down(part):
    found = propagation.measured(part, size=0.005, seed=3)
    assert not found.skipped
    assert found.figures
    assert all(math.isfinite(figure.value) for figure in found.figures)
    assert json.loads(json.dumps(found.details))


def test_the_truth_is_what_enumeration_says_and_a_bound_that_is_too_high_is_noticed():
    world = World(edges=Edges.between(DIAMOND), seeds={0: 0.5})
    true = truth(world, np.random.default_rng(0), samples=20_000)
    assert list(true) == [0, 1, 2, 3]
    assert list(true.values()) == pytest.approx([0.5] * 4, abs=0.02)
    told = judged(world, dict.fromkeys(range(4), 0.5), seed=0)
    assert told["reached"] == 4
    assert told["bound"]["largest error"] == pytest.approx(0.25)
    assert told["bound"]["mean error"] == pytest.approx(0.25 / 4)
    assert told["spread"]["largest error"] < 0.06
    assert told["spread"]["exact"] == 0.75


def test_worlds_are_what_was_asked_for_and_parents_come_first():
    world = made(np.random.default_rng(2), tenants=4, entries=500, seeds=20)
    edges = world.edges
    assert len(edges.names) == 500
    assert len(world.seeds) == 20
    assert np.all(edges.parents < edges.children)
    assert 0.05 < np.mean(edges.attenuations == 1.0) < 0.3


def test_a_tenant_who_is_believed_too_far_is_noticed(monkeypatch):
    """If a record could make one tenant enough, the attacks of one would succeed."""
    monkeypatch.setattr(reporters, "believed", lambda upheld, overturned: 0.9)
    found = propagation.measured("attacks", size=0.02, seed=0)
    assert [figure.met for figure in found.figures[:2]] == [False, False]
