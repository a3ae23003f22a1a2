"""The experiments of `python -m evals reliability`, each tried a few times: no promise broken."""

from pathlib import Path

import pytest

from evals import reliability

PACKAGE = Path(reliability.__file__).parent
SHORT: dict[str, float] = {
    "damaged_database": 0.055,
    "disk_full": 0.1,
    "io_errors": 0.01,
    "power_cuts": 0.06,
    "killed_writers": 0.01,
    "shared_file": 0.05,
    "cancelled": 0.05,
    "racing_recalls": 0.006,
    "stampede": 0.05,
    "forks": 0.04,
    "clock": 0.05,
    "killed_server": 1 / 12,
    "crossing": 0.01,
    "outage": 0.02,
    "lost_recalls": 0.01,
    "damaged_index": 0.01,
}
"""By experiment, the part of its full size that takes a few seconds at most."""


def test_every_experiment_is_tried_here():
    assert set(SHORT) == set(reliability.PARTS)
    assert all((PACKAGE / f"{name}.py").is_file() for name in reliability.PARTS)


@pytest.mark.parametrize("name", SHORT)
def test_no_promise_is_broken(name: str):
    outcome = reliability.tried(name, size=SHORT[name], seed=0)
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert not any(outcome.violations.values()), outcome
    assert outcome.held, outcome
