"""The figures and reasons in docs/decision.md are those of the code."""

from pathlib import Path

from stemma.policies.guards import GUARDS
from stemma.policies.threshold import ThresholdPolicy, probability

PAGE = (Path(__file__).parents[2] / "docs" / "decision.md").read_text(encoding="utf-8")


def test_the_page_has_every_reason():
    assert all(f"`{reason}`" in PAGE for reason in GUARDS)


def test_the_page_gives_the_default_and_the_curve():
    default = ThresholdPolicy().threshold
    assert f"**{default:g}**" in PAGE
    assert (
        f"{probability(default):.2f} at {default:g} and {probability(0.999):.2f} at 0.999" in PAGE
    )
