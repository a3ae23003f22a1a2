"""Which of the near entries may answer a question: the policy's decision, as steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from stemma.effects import Ask, Steps
from stemma.embedders.protocol import Matrix, TokenEmbedder
from stemma.embedders.token_memory import TokenMemory
from stemma.entry import Entry
from stemma.errors import UsageError
from stemma.outcome import Miss
from stemma.parts import Parts
from stemma.policies.learning import Trial
from stemma.policies.threshold import Accepted, Candidate, Decision
from stemma.query import Query

__all__ = ["MEMORY", "Deciding", "audited"]

MEMORY = 16 * 1024 * 1024
"""Bytes of projected token vectors that are kept: about 5,000 questions of 16 tokens."""


class Deciding:
    """The decisions of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tokens = TokenMemory(MEMORY)

    def decide(self, query: Query, near: Sequence[tuple[Entry, float]]) -> Steps[Decision]:
        """What may be served of some entries, or why nothing may.

        Where it depends on how texts align, token by token, and the policy says of which, they are
        aligned: one run of the model for those of them, and the question, that are not remembered.

        Args:
            query: The question.
            near: Entries that may be served by themselves, with their similarities to it.

        Raises:
            UsageError: The policy asks for what this embedder's tokens cannot tell.
        """
        candidates = [
            Candidate(one.id, str(one.focus), similarity, one.answer) for one, similarity in near
        ]
        asked = str(query.request.focus)
        decision = yield from self._decided(query, asked, candidates)
        while decision.look:
            candidates = yield from self._aligned(asked, candidates, decision.look)
            decision = yield from self._decided(query, asked, candidates)
        return decision

    def _decided(
        self, query: Query, asked: str, candidates: Sequence[Candidate]
    ) -> Steps[Decision]:
        scope = query.scope
        if query.policy is not None:
            return query.policy.decide(asked, candidates)
        return (yield from self._parts.policies.decide(scope.tenant, scope.node, asked, candidates))

    def _aligned(
        self, asked: str, candidates: Sequence[Candidate], look: Collection[str]
    ) -> Steps[list[Candidate]]:
        """The candidates, those that are to be looked at with `aligned`."""
        from stemma.policies.alignment import shipped  # noqa: PLC0415 - only where it is needed

        aligner, embedder = shipped(), self._parts.embedder
        tokens: Any = embedder
        looked = {one.id for one in candidates if one.id in look and one.aligned is None}
        fit = embedder is not None and embedder.revision == aligner.embedder
        if not fit or not isinstance(tokens, TokenEmbedder):
            raise UsageError(
                "the policy's verifier aligns token vectors, and was made for another embedder"
            )
        if not looked:
            raise UsageError("the policy asks for candidates that it was told of, or not given")
        texts = {asked, *(one.focus for one in candidates if one.id in looked)}
        known = self._tokens.get(texts)
        missing = sorted(texts - known.keys())
        if missing:
            found: Iterable[Matrix] = yield Ask(tokens, "embed_tokens", (missing,))
            fresh = dict(zip(missing, map(aligner.projected, found), strict=True))
            self._tokens.add(fresh)
            known |= fresh
        return [
            replace(one, aligned=aligner.align(known[asked], known[one.focus]))
            if one.id in looked
            else one
            for one in candidates
        ]


def audited(accepted: Accepted) -> Miss:
    """The miss of what may be served by its texts, but lies near a wrong hit: see first."""
    known = accepted.trial
    trial = Trial(candidate=accepted.id, known=()) if known is None else known
    return Miss(
        reason="audit",
        nearest=accepted.id,
        similarity=accepted.similarity,
        detail="a hit near it was reported as wrong",
        trial=replace(trial, audit=True),
    )
