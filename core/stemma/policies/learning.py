"""What a policy learns from: fresh answers, compared with what would have been served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from stemma.errors import UsageError

__all__ = ["Judgement", "Learns", "Trial", "must_agree"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A candidate that was not served, of which the fresh answer will tell whether it was right.

    Args:
        candidate: The id of the entry that stood best.
        known: What the policy knew of it, in the policy's own numbers; empty where it does not
            learn.
        weight: How many requests like it this one stands for, 1 or more: 1 where every one like it
            is computed afresh, 1 / ε where only a share ε is audited.
        audit: Whether it would have been served, and was computed afresh all the same.
        grey: Whether a judge is to be asked about the two questions, where the answers do not tell.
        approved: Whether a judge has approved it, so that the fresh answer tells about the judge.
    """

    candidate: str
    known: tuple[float, ...] = field(repr=False)
    weight: float = 1.0
    audit: bool = False
    grey: bool = False
    approved: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """Whether a candidate's answer would have been right.

    Args:
        trial: What is judged.
        right: Whether it would have answered rightly.
        by: Who said so: `equal`, `value`, `calls`, `similarity`, `guard:…`, `judge:` and the name
            of a judge, or who reported it.
        requests: How many requests reached the decision elsewhere before it, since the judgement
            before this one; those that the policy decided itself it has counted.
    """

    trial: Trial
    right: bool
    by: str = ""
    requests: int = 0


@runtime_checkable
class Learns(Protocol):
    """A policy whose decisions follow from judgements, and whose state can be kept."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a state belongs to, as plain JSON values: the policy, its embedder and verifier."""
        ...

    def anew(self) -> Self:
        """Another one with the same settings, that begins with what this one has learnt."""
        ...

    def learn(self, *judgements: Judgement) -> None:
        """Take judgements in, oldest first. Later decisions follow from them, never earlier ones.

        Raises:
            UsageError: One is of another policy's trial; none was taken in.
        """
        ...

    def record(self) -> dict[str, Any]:
        """The state, as plain JSON values."""
        ...

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go on from a state that `record` gave.

        Raises:
            UsageError: It is no such state, or was made with another policy, embedder or verifier.
        """
        ...


def must_agree(record: object, identity: Mapping[str, Any]) -> None:
    """Check that a state is of the policy that wants to go on from it.

    Raises:
        UsageError: It is of another policy, embedder or verifier, or is no state at all.
    """
    for name, own in identity.items():
        found = record.get(name) if isinstance(record, Mapping) else None
        if found != own:
            raise UsageError(
                f"this state of a policy is of {name} {found!r}, not {own!r}: what was learnt "
                "belongs to the embedder and verifier it was learnt with"
            )
