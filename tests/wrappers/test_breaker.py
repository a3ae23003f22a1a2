"""When it is worth asking."""

import pytest

from stemma.errors import StoreUnavailable, UsageError
from stemma.stores.wrappers.breaker import Breaker
from stemma.testing import ManualClock


@pytest.fixture
def states() -> list[str]:
    return []


@pytest.fixture
def breaker(clock: ManualClock, states: list[str]) -> Breaker:
    return Breaker(
        failures=3, open_for=5.0, fast=0.05, monotonic=clock.monotonic, changed=states.append
    )


def refused(breaker: Breaker) -> bool:
    """Whether a call is refused; one let through is answered."""
    try:
        breaker.check()
    except StoreUnavailable:
        with pytest.raises(StoreUnavailable):
            breaker.admit()
        return True
    return False


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed(breaker.admit())


def test_failures_in_a_row_open_it(breaker, states):
    """The third does; two do not."""
    fail(breaker, 2)
    assert (breaker.state, refused(breaker)) == ("closed", False)
    fail(breaker)
    assert (breaker.state, refused(breaker)) == ("open", True)
    assert states == ["open"]


def test_an_answer_between_begins_the_count_anew(breaker):
    """Four failures, but never three in a row."""
    fail(breaker, 2)
    breaker.answered(breaker.admit())
    fail(breaker, 2)
    assert breaker.state == "closed"


def test_a_slow_answer_proves_nothing(breaker, clock):
    """It neither counts as a failure, nor makes earlier ones forgotten."""
    fail(breaker, 2)
    slow = breaker.admit()
    clock.advance(0.06)
    breaker.answered(slow)
    assert breaker.state == "closed"
    fail(breaker)
    assert breaker.state == "open"


def test_calls_under_way_together_fail_as_one(breaker, clock):
    """One hiccup that hits eight calls is one failure."""
    together = [breaker.admit() for _ in range(8)]
    clock.advance(0.01)
    for call in together:
        breaker.failed(call)
    assert breaker.state == "closed"
    fail(breaker, 2)
    assert breaker.state == "open"


def test_after_a_while_one_call_is_let_through(breaker, clock, states):
    """And no other, until it is known what became of it."""
    fail(breaker, 3)
    clock.advance(4.9)
    assert refused(breaker)
    clock.advance(0.2)
    assert breaker.state == "half-open"
    probe = breaker.admit()
    assert refused(breaker)
    breaker.answered(probe)
    assert (breaker.state, refused(breaker)) == ("closed", False)
    assert states == ["open", "half-open", "closed"]


def test_a_probe_that_fails_opens_it_again(breaker, clock):
    """For as long as before."""
    fail(breaker, 3)
    clock.advance(5)
    fail(breaker)
    clock.advance(4.9)
    assert refused(breaker)
    clock.advance(0.1)
    breaker.answered(breaker.admit())
    assert breaker.state == "closed"


def test_a_probe_whose_caller_went_away_is_replaced(breaker, clock):
    """At once where that is known; otherwise when it should have come back."""
    fail(breaker, 3)
    clock.advance(5)
    breaker.dropped(breaker.admit())
    breaker.admit()
    assert refused(breaker)
    clock.advance(5)
    breaker.answered(breaker.admit())
    assert breaker.state == "closed"


def test_nobody_waits_behind_a_call_that_was_given_up(breaker, states):
    """It opens at once, and closes when that call comes back after all."""
    silent = breaker.admit()
    breaker.abandoned(silent)
    assert refused(breaker)
    breaker.answered(silent)
    assert (breaker.state, refused(breaker)) == ("closed", False)
    assert states == ["open", "closed"]


def test_one_that_ends_in_the_last_moment_was_in_time(breaker):
    """Its caller gave up just when it was answered: nothing is left to come back."""
    call = breaker.admit()
    breaker.answered(call)
    breaker.abandoned(call)
    assert breaker.state == "closed"


def test_it_stays_open_until_the_last_has_come_back(breaker):
    """Two were given up; one came back."""
    two = [breaker.admit(), breaker.admit()]
    for call in two:
        breaker.abandoned(call)
    breaker.answered(two[0])
    assert refused(breaker)
    breaker.failed(two[1])
    assert not refused(breaker)


def test_a_store_that_is_always_late_is_left_alone(breaker, clock):
    """Three times too late in a row: that it comes back late does not help any more."""
    for _ in range(3):
        call = breaker.admit()
        clock.advance(0.05)
        breaker.abandoned(call)
        clock.advance(0.03)
        breaker.answered(call)
    assert refused(breaker)
    clock.advance(5)
    breaker.answered(breaker.admit())
    assert breaker.state == "closed"


def test_one_that_never_comes_back_is_not_waited_for(breaker, clock):
    """After a while another call tries; if that is answered, the lost one is forgotten."""
    lost = breaker.admit()
    breaker.abandoned(lost)
    clock.advance(5)
    breaker.answered(breaker.admit())
    assert breaker.state == "closed"
    silent = breaker.admit()
    breaker.abandoned(silent)
    breaker.answered(silent)
    assert breaker.state == "closed"
    breaker.answered(lost)
    assert breaker.state == "closed"


def test_one_that_comes_back_leaves_it_to_the_probe(breaker, clock):
    """A call is trying already: what becomes of that decides."""
    lost = breaker.admit()
    breaker.abandoned(lost)
    clock.advance(5)
    probe = breaker.admit()
    breaker.answered(lost)
    assert refused(breaker)
    breaker.failed(probe)
    assert breaker.state == "open"


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"open_for": 0}, {"open_for": float("nan")}])
def test_a_rule_that_is_none_is_an_error(wrong):
    """At once."""
    rules = {"failures": 1, "open_for": 1.0, **wrong}
    with pytest.raises(UsageError):
        Breaker(**rules, fast=1, monotonic=float, changed=print)
