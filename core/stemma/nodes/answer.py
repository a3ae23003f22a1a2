"""Whole answers, by their question."""

from __future__ import annotations

from typing import Any

from stemma.codec import Codec
from stemma.nodes.node import JSON, Asked
from stemma.request import Request

__all__ = ["answer"]


def answer(
    question: str,
    *,
    chain: str = "",
    model: str = "",
    parameters: Any = None,
    exact: Any = None,
    before: tuple[str, ...] = (),
    meaning: bool = True,
    codec: Codec = JSON,
    life: float | None = None,
    tags: tuple[str, ...] = (),
) -> Asked:
    """Ask for a whole answer by its question: exact first, then by meaning.

    Args:
        question: The question.
        chain: The identity of what answers (the chain, its prompts, its version).
        model: The model's name, for recall by model.
        parameters: Everything else that shapes the answer.
        exact: Further input that must be equal.
        before: The conversation so far, oldest turn first; must be equal.
        meaning: Whether a question with the same meaning may be answered too.
        codec: How the answer is written.
        life: Base life, seconds.
        tags: Tags for the entry.
    """
    return Asked(
        scope={"template": chain, "model": model, "parameters": parameters},
        request=Request(exact=exact, focus=question, before=before, meaning=meaning),
        codec=codec,
        prompt=(question,),
        life=life,
        tags=tags,
    )
