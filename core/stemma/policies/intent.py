"""Whether two agents are after the same, as far as their words tell. Pure."""

from __future__ import annotations

__all__ = ["INTENT", "drift"]

INTENT = 0.88
"""The least similarity of two intents in other words: that of questions with the same answer."""


def drift(live: str, stored: str, similarity: float | None) -> str:
    """Why two intents in different words are not the same; empty if they may be.

    Args:
        live: What the agent is after now.
        stored: What the stored step was made for.
        similarity: The cosine similarity of the two, −1 to 1; `None` where it is not known.
    """
    from stemma.policies.guards import guard  # noqa: PLC0415 - its tables take long to load

    if similarity is None:
        return "the two cannot be compared by meaning"
    if not similarity >= INTENT:
        return f"their similarity is {similarity:.3f}, not {INTENT:g}"
    refused = guard(live, stored)
    return "" if refused is None else f"{refused.reason}: {refused.detail}"
