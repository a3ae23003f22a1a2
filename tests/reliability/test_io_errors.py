"""The experiments with failing disks see what they look for."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from evals.reliability import disk_full, io_errors

from stemma.parts import Parts
from stemma.stores import connections
from stemma.stores.connections import Connections

writing = Connections.writing


@contextmanager
def forgiving(self: Connections, *, last: bool = False) -> Iterator[sqlite3.Cursor]:
    """Acknowledges what failed when it was committed."""
    context = writing(self, last=last)
    cursor = context.__enter__()
    try:
        yield cursor
    except BaseException as error:
        if not context.__exit__(type(error), error, error.__traceback__):
            raise
        return
    try:
        context.__exit__(None, None, None)
    except connections.StoreError:
        return


def broken(experiment, folder: Path, size: float) -> set[str]:
    """The promises that were broken."""
    outcome = experiment.run(size=size, seed=0, folder=folder)
    return {what for what, number in outcome.violations.items() if number}


def test_a_store_that_acknowledges_what_failed_is_found_out(tmp_path: Path, monkeypatch):
    """Entries are missing, and recalled ones are there."""
    monkeypatch.setattr(Connections, "writing", forgiving)
    found = broken(io_errors, tmp_path, 0.02)
    assert {"acknowledged entries lost", "recalled entries found"} <= found


def test_an_error_that_is_not_ours_is_found_out(tmp_path: Path, monkeypatch):
    """As SQLite raises it."""
    monkeypatch.setattr(connections, "explain", lambda error, path: error)
    assert "errors that are not ours" in broken(io_errors, tmp_path, 0.02)


@pytest.mark.parametrize(("experiment", "size"), [(io_errors, 0.01), (disk_full, 0.03)])
def test_a_fault_that_reaches_the_caller_is_found_out(
    tmp_path: Path, monkeypatch, experiment, size: float
):
    """A cache that fails open must not raise."""

    def fault(self: Parts, operation: str, error: Exception, *_: object) -> None:
        raise error

    monkeypatch.setattr(Parts, "fault", fault)
    assert "errors that came through the cache" in broken(experiment, tmp_path, size)
