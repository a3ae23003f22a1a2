"""Hits that can be defended: how many hits a policy gives, and how many of them are wrong.

Each part needs texts from the folder that `STEMMA_DATA` names, and the local embedder; without, it
is skipped. The weights that come with the package were fitted to half of the groups of each
stream and to the pairs (see `evals.fit_verifier`). Beside stand figures on the other half, and held
out: by weights that saw nothing of the stream and of what was made of the same texts.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from evals import parts
from evals.measuring import Measured

__all__ = ["PARTS", "measured", "run"]

PARTS = {
    "zipf": "requests with repeats, rewordings and near misses, by every policy",
    "intents": "two streams of intents: the learning policies' hits, and errors against bounds",
    "gptcache": "the streams, by GPTCache in an environment of its own and by our policies",
    "pairs": "pairs of questions, by cross-validation, and contrasts that nothing was fitted to",
    "chinese": "Chinese questions with a multilingual embedder and with MiniLM, guards on",
    "followups": "follow-ups in their own conversation, reworded, and in others",
}
"""Each module in this package that has a `run(size=, seed=, folder=)`, and what it measures."""


def measured(name: str, *, size: float, seed: int) -> Measured:
    """Run one part in a directory of its own."""
    return parts.measured(__name__, name, size=size, seed=seed)


def run(*, size: float, seed: int, out: Console, part: str | None = None) -> dict[str, Any]:
    """Run all parts, or one; print their figures beside their targets, and give all of them."""
    return parts.run(__name__, PARTS, size=size, seed=seed, out=out, part=part)
