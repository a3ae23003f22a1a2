"""The code in docs/decision.md runs, and its figures are those of the code."""

import re
from pathlib import Path

import pytest

from stemma.policies.guards import GUARDS
from stemma.policies.threshold import ThresholdPolicy, probability

PAGE = (Path(__file__).parents[2] / "docs" / "decision.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_page_runs(block):
    exec(compile(block, "docs/decision.md", "exec"), {})


def test_the_page_has_blocks_and_every_reason():
    assert len(BLOCKS) == 3
    assert all(f"`{reason}`" in PAGE for reason in GUARDS)


def test_the_page_gives_the_default_and_the_curve():
    default = ThresholdPolicy().threshold
    assert f"**{default:g}**" in PAGE
    assert (
        f"{probability(default):.2f} at {default:g} and {probability(0.999):.2f} at 0.999" in PAGE
    )
