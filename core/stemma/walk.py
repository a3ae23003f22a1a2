"""How an agent came to an entry, kept with it: its path, its intent, and what may be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from stemma.errors import UsageError
from stemma.keys import digest
from stemma.lineage.paths import START, Passed, Path
from stemma.policies.life import Aging

__all__ = ["Intent", "Place", "Walk", "checked_intent", "fingerprint"]


def checked_intent(intent: object) -> None:
    """See that what an agent is said to be after says something.

    Raises:
        UsageError: It is no text, or blank.
    """
    if intent is not None and not (isinstance(intent, str) and intent.strip()):
        raise UsageError(f"an intent is a text that says something, not {intent!r:.80}")


def fingerprint(text: str) -> str:
    """Equal for texts that differ in white space at most."""
    return digest("intent/1", " ".join(text.split()))


@dataclass(frozen=True, slots=True)
class Intent:
    """What an agent was after.

    Args:
        text: In words.
        vector: Their vector as float16, little-endian; empty where there is none.
    """

    text: str = field(repr=False)
    vector: bytes = field(default=b"", repr=False)

    @property
    def fingerprint(self) -> str:
        """See `fingerprint`."""
        return fingerprint(self.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Walk:
    """How an agent came to an entry.

    Args:
        path: The hops before it, the last ones at least.
        intent: What the agent was after when it was made.
        origin: What the path was begun for, where that was put in other words.
        risks: The hits by meaning that it was built on, each with the risk that it was wrong.
        aging: What its life was reckoned from.
    """

    path: tuple[Passed, ...] = ()
    intent: Intent | None = None
    origin: Intent | None = None
    risks: tuple[tuple[str, float], ...] = ()
    aging: Aging | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an agent is when it asks for a step.

    Args:
        path: What led there, where the step depends on it.
        alone: Whether it does not: then nothing that was read before is a parent of its result.
        intent: What the agent is after there; `None` where that is not known or does not count.
        goal: What its run was begun for.
        factor: What each further hop leaves of the life; `None`: as the policy says.
        floor: The least life, seconds; `None`: as the policy says.
    """

    path: Path = START
    alone: bool = False
    intent: str | None = field(default=None, repr=False)
    goal: str | None = field(default=None, repr=False)
    factor: float | None = None
    floor: float | None = None
