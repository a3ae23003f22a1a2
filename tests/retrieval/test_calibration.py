"""The factor of the statistical rule follows what it would have missed."""

import math

import pytest

import stemma
from stemma.calibration import LADDER, Calibration

FACTORS = list(LADDER)


@pytest.fixture
def calibration():
    with stemma.open(tenant="me", embedder=None) as cache:
        found = Calibration(cache.engine.parts)
        found.load("docs")
        yield found


def test_it_begins_with_what_was_right_on_average(calibration):
    assert calibration.factor("docs") == 0.35


def test_it_goes_down_where_nothing_is_missed_and_no_further_than_the_ladder(calibration):
    seen = {calibration.factor("docs")}
    for _ in range(400):
        calibration.learn("docs", 2.0, 0.0)
        seen.add(calibration.factor("docs"))
    assert seen == {0.35, 0.30, 0.25}
    assert calibration.factor("docs") == 0.25


def test_it_goes_up_where_too_much_is_missed_and_in_the_end_serves_nothing(calibration):
    for _ in range(400):
        calibration.learn("docs", 0.36, 0.01)
    assert calibration.factor("docs") == 0.42
    for _ in range(400):
        calibration.learn("docs", 2.0, 0.01)
    assert calibration.factor("docs") == math.inf


def test_a_list_that_a_factor_would_not_have_served_says_nothing_of_it(calibration):
    for _ in range(1000):
        calibration.learn("docs", 0.31, 1.0)
    assert calibration.factor("docs") == 0.35


def test_an_audit_counts_for_the_hits_that_were_not_audited(calibration):
    for _ in range(10):
        calibration.learn("docs", 2.0, 0.0, weight=50.0)
    assert calibration.factor("docs") == 0.25
    calibration.learn("docs", 2.0, 0.25, weight=50.0)
    assert calibration.factor("docs") == math.inf


def test_indexes_are_apart(calibration):
    calibration.load("notes")
    for _ in range(400):
        calibration.learn("docs", 2.0, 0.0)
    assert calibration.factor("notes") == 0.35


def test_processes_add_up(tmp_path):
    where = str(tmp_path / "cache.db")
    for _ in range(2):
        with stemma.open(where, tenant="me", embedder=None) as cache:
            one = Calibration(cache.engine.parts)
            one.load("docs")
            for _ in range(140):
                one.learn("docs", 2.0, 0.0)
            assert cache.stats().rows == ()
    with stemma.open(where, tenant="me", embedder=None) as cache:
        both = Calibration(cache.engine.parts)
        both.load("docs")
        assert both.factor("docs") == 0.25


def test_a_store_that_does_not_answer_costs_only_what_was_learnt(monkeypatch):
    with stemma.open(tenant="me", embedder=None) as cache:
        store = cache.engine.parts.store

        def fail():
            raise stemma.StoreUnavailable("out")

        monkeypatch.setattr(store, "counts", fail)
        found = Calibration(cache.engine.parts)
        found.load("docs")
        assert found.factor("docs") == 0.35
