"""How a question aligns with stored ones, token by token: where a policy asks for it, as steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from stemma.effects import Ask, Steps
from stemma.embedders.protocol import Matrix, TokenEmbedder
from stemma.embedders.token_memory import TokenMemory
from stemma.errors import UsageError
from stemma.parts import Parts
from stemma.policies.remembering import asker
from stemma.policies.threshold import Candidate

__all__ = ["MEMORY", "Aligning"]

MEMORY = 16 * 1024 * 1024
"""Bytes of projected token vectors that are kept: about 5,000 questions of 16 tokens."""


class Aligning:
    """Aligns texts with the aligner that comes with the package, and remembers their tokens.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tokens: TokenMemory[tuple[str, str]] = TokenMemory(MEMORY)

    def aligned(
        self, asked: str, candidates: Sequence[Candidate], look: Collection[str]
    ) -> Steps[list[Candidate]]:
        """The candidates, those that are to be looked at with `aligned`.

        One run of the model for those of them, and the question, that are not remembered of what
        this tenant has asked (see `stemma.policies.remembering`).

        Args:
            asked: The question.
            candidates: All that the policy was given.
            look: The ids of those that it asks for.

        Raises:
            UsageError: The embedder is not the aligner's, or the policy asks for nothing new.
            EmbedderError: The model cannot be run.
        """
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
        tenant = asker()
        remembered = self._tokens.get((tenant, text) for text in texts)
        known = {text: matrix for (_, text), matrix in remembered.items()}
        missing = sorted(texts - known.keys())
        if missing:
            found: Iterable[Matrix] = yield Ask(tokens, "embed_tokens", (missing,))
            fresh = dict(zip(missing, map(aligner.projected, found), strict=True))
            self._tokens.add({(tenant, text): one for text, one in fresh.items()})
            known |= fresh
        return [
            replace(one, aligned=aligner.align(known[asked], known[one.focus]))
            if one.id in looked
            else one
            for one in candidates
        ]
