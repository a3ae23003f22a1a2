"""Two conversations mean the same only if every turn does."""

import numpy as np
import pytest

from stemma.conversation import HORIZON, LONG, fixed, judged
from stemma.policies.context import CONTEXT, RHO, TURN, beside, floor, near_turns, objection, parted
from stemma.testing.builders import vector


def test_the_last_short_turns_are_judged_and_every_other_is_fixed():
    far = tuple(f"turn {n}" for n in range(HORIZON + 2))
    assert judged(far) == far[2:]
    assert fixed(far) == [*far[:2], *[None] * HORIZON]
    odd = ("short", "x" * (LONG + 1), " ", "é" * LONG, "也" * (LONG // 3))
    assert judged(odd) == ("short", odd[4])
    assert fixed(odd) == [None, odd[1], " ", odd[3], None]
    assert (judged(()), fixed(())) == ((), [])


def test_the_vector_is_of_length_one_and_weighs_what_was_said_last_most():
    focus, first, last = vector(1, 0, 0), vector(0, 1, 0), vector(0, 0, 1)
    made = beside(focus, np.stack([first, last]))
    assert made.dtype == np.float32
    assert np.linalg.norm(made) == pytest.approx(1.0)
    assert made[4] / made[5] == pytest.approx(RHO)
    other = beside(focus, np.stack([last, first]))
    assert parted(made, made) == pytest.approx((1.0, 1.0))
    assert parted(made, other) == pytest.approx((1.0, 2 * RHO / (1 + RHO**2)))


def test_turns_that_cancel_out_and_vectors_that_do_not_belong_together_are_near_nothing():
    nothing = beside(vector(1, 0), np.stack([vector(0, 0)]))
    assert np.isfinite(nothing).all()
    assert parted(nothing, nothing)[1] == -1.0
    assert parted(vector(1, 0, 0), vector(1, 0, 0)) == (-1.0, -1.0)
    assert parted(vector(1, 0), vector(1, 0, 0, 0)) == (-1.0, -1.0)


def test_the_floor_loses_nothing_that_reaches_both():
    focus, near = vector(1, 0), vector(0.88, (1 - 0.88**2) ** 0.5)
    turn, other = np.stack([vector(1, 0)]), np.stack([vector(CONTEXT, (1 - CONTEXT**2) ** 0.5)])
    both = float(beside(focus, turn) @ beside(near, other))
    assert both == pytest.approx(floor(0.88))


@pytest.mark.parametrize(
    ("asked", "stored", "why"),
    [
        (("Who runs Acme?", "Ada."), ("Who runs Acme?", "Ada."), ""),
        (("who runs Acme", "Ada."), ("Who runs Acme?", "Ada."), ""),
        (("Who runs Acme?", "Ada."), ("Who runs Bolt?", "Ada."), "guard:name in the turn 2"),
        (("Who runs Acme?", "Ada."), ("Who runs Acme?", "Max."), "guard:word in the turn 1"),
        (("I am 30.",), ("I am 60.",), "guard:number in the turn 1"),
        (("who is the CEO of X",), ("who is the CEO of Y",), "guard"),
        (("I like it.",), ("I do not like it.",), "guard:negation"),
        (("a", "b"), ("b",), "another number"),
    ],
)
def test_one_turn_that_says_something_else_is_enough(asked, stored, why):
    assert objection(asked, stored).startswith(why)
    assert (objection(asked, stored) == "") == (why == "")
    assert (objection(stored, asked) == "") == (why == "")


def test_every_turn_must_be_near_its_own():
    same = np.stack([vector(1, 0), vector(0, 1)])
    far = np.stack([vector(1, 0), vector((1 - (TURN - 0.01) ** 2) ** 0.5, TURN - 0.01)])
    assert near_turns(same, same)
    assert not near_turns(same, far)
