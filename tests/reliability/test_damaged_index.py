"""The experiment with damaged graphs sees what it looks for."""

from __future__ import annotations

from evals.reliability import damaged_index

from stemma.indexes import graph_files


def test_without_the_checksum_processes_die_or_answers_are_wrong(tmp_path, monkeypatch):
    """The library is given what it should not see."""
    monkeypatch.setattr(
        graph_files, "_verified", lambda data: memoryview(data)[: -graph_files._SUM]
    )
    outcome = damaged_index.run(size=0.05, seed=0, folder=tmp_path)
    assert outcome.violations[damaged_index.DEATH] + outcome.violations[damaged_index.WRONG] > 0
