"""The figures of the documentation: the same bytes for the same measurements, and whose they are."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evals import figures, speed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def told() -> dict:
    """As `python -m evals speed --json` writes it."""
    levels = [
        {
            "entries": entries,
            "microseconds": {"get": 40.0, "hit": 400.0, "put": 300.0, "product": entries / 30},
            "seconds": 0.03 + entries / 200_000,
            "file_bytes_an_entry": 2_400.0,
            "bytes_an_entry": 1_000.0,
        }
        for entries in (1_000, 10_000, 100_000, 1_000_000)
    ]
    rates = {"gets": [9_000.0, 16_000.0, 17_000.0], "puts": [2_000.0, 2_500.0, 2_400.0]}
    return {
        "at": "2026-01-02T03:04:05+00:00",
        "commit": "abc1234",
        "size": 1.0,
        "seed": 17,
        "machine": {"processor": "A processor", "cores": 2},
        "versions": {"python": "3.11.7", "numpy": "2.4.6", "sqlite": "3.40.1"},
        "results": {
            "growth": {"measured": {"levels": levels}},
            "throughput": {
                "measured": {"workers": [1, 2, 4], "stores": {"memory": rates, "sqlite": rates}}
            },
        },
    }


def test_the_same_measurements_give_the_same_small_files(told, tmp_path):
    folders = [tmp_path / name for name in "ab"]
    drawn = []
    for folder in folders:
        folder.mkdir()
        drawn.append([file.read_bytes() for file in figures.draw(told, folder)])
    assert drawn[0] == drawn[1]
    assert sorted(file.name for file in folders[0].iterdir()) == ["growth.svg", "throughput.svg"]
    assert max(map(len, drawn[0])) < 60_000


def test_a_figure_says_whose_it_is_and_names_its_axes(told, tmp_path):
    for file in figures.draw(told, tmp_path):
        text = file.read_text(encoding="utf-8")
        for said in ("A processor, 2 cores", "python 3.11.7", "seed 17", "abc1234", "2026-01-02"):
            assert said in text, (file.name, said)
        assert "a second" in text or "microseconds" in text
        assert re.search("entries of one partition|processes at once", text)


def test_only_what_was_measured_is_drawn(told, tmp_path):
    less = {**told, "results": {"growth": told["results"]["growth"]}}
    assert [file.name for file in figures.draw(less, tmp_path)] == ["growth.svg"]


def test_the_figures_of_the_docs_are_of_a_full_run():
    for name in figures.FIGURES:
        assert name in speed.PARTS
        assert importlib.util.find_spec(f"evals.speed.{name}")
        text = (ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8")
        assert "size 1, seed" in text


def test_it_reads_a_file(told, tmp_path):
    results = tmp_path / "speed.json"
    results.write_text(json.dumps(told), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "evals.figures", results, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("written to") == 2
