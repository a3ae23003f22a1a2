"""The figures of `evals.index_speed` are there and whole, at sizes that take no time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def figures(call: str):
    code = f"import json; from evals import index_speed; print(json.dumps(index_speed.{call}))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_measures_each_index_against_the_product():
    """Times in microseconds, and nothing near is missed: 4,200 entries go by bits."""
    told = figures("measure(4_200, seed=3)")
    assert told["entries"] == 4_200
    assert set(told["microseconds"]) == {"product", "exact", "bits"}
    assert all(time > 0 for time in told["microseconds"].values())
    assert told["missed"]["exact"] == told["missed"]["bits"] == {"asked": 200, "missed": 0}


def test_measures_what_a_graph_costs():
    """Its making, its loading and its room, beside its times."""
    told = figures('measure(4_200, seed=3, kinds=("bits", "graph"), like_texts=True)')
    assert set(told["microseconds"]) == {"product", "bits", "graph"}
    assert told["graph"]["seconds_to_load"] > 0
    assert told["graph"]["bytes_an_entry_in_the_file"] > 48
    assert told["missed"]["graph"] == {"asked": 200, "missed": 0}


def test_measures_the_start_from_a_file():
    """Through a real store."""
    told = figures("start(300, seed=3)")
    assert told["entries"] == 300
    assert told["seconds"] > 0
