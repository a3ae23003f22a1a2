"""Which of the near entries may answer a question: the policy's decision, as steps."""

from __future__ import annotations

from collections.abc import Sequence

from stemma.effects import Steps
from stemma.entry import Entry
from stemma.parts import Parts
from stemma.policies.threshold import Candidate, Decision
from stemma.query import Query

__all__ = ["Deciding"]


class Deciding:
    """The decisions of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decide(self, query: Query, near: Sequence[tuple[Entry, float]]) -> Steps[Decision]:
        """What may be served of some entries, or why nothing may.

        Args:
            query: The question.
            near: Entries that may be served by themselves, with their similarities to it.
        """
        yield from ()
        policy = self._parts.policy if query.policy is None else query.policy
        return policy.decide(
            str(query.request.focus),
            [Candidate(one.id, str(one.focus), similarity, one.value) for one, similarity in near],
        )
