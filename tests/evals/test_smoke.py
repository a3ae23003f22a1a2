"""`python -m evals` lists, runs and refuses; its figures come with where they are from."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stemma

ROOT = Path(__file__).parents[2]


def evals(*words) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evals", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "160"},
    )


def test_without_a_name_it_lists_what_there_is():
    ran = evals()
    assert ran.returncode == 0, ran.stderr
    named = [line.split()[0] for line in ran.stdout.splitlines() if line[:1].isalpha()]
    assert named == ["speed", "rag", "agents", "quality", "propagation", "reliability"]
    assert all(importlib.util.find_spec(f"evals.{name}") for name in named)


@pytest.mark.parametrize(
    "words", [["nonsense"], ["speed", "--size", "0"], ["speed", "--size", "2"], ["speed", "--fast"]]
)
def test_what_it_does_not_know_is_wrong_usage(words):
    ran = evals(*words)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


def test_speed_writes_figures_and_where_they_are_from(tmp_path):
    file = tmp_path / "speed.json"
    ran = evals("speed", "--part", "put", "--size", "0.005", "--seed", "3", "--json", file)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(file.read_text(encoding="utf-8"))

    assert (told["evaluation"], told["size"], told["seed"]) == ("speed", 0.005, 3)
    assert told["machine"]["cores"] >= 1
    assert told["machine"]["linear_algebra_threads"] == "1"
    assert told["versions"]["stemma-cache"] == stemma.__version__
    assert told["versions"]["python"] == sys.version.split()[0]
    assert told["at"]
    assert set(told["results"]) == {"put"}
    assert told["results"]["put"]["figures"]
    assert [path.name for path in tmp_path.iterdir()] == ["speed.json"]
