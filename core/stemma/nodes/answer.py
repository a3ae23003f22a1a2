"""Whole answers, by their question."""

from __future__ import annotations

from typing import Any

from stemma.codec import Codec
from stemma.nodes.cleaned import cleaned
from stemma.nodes.node import JSON, Asked
from stemma.policies.cleaning import Cleaning

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
    standalone: str | None = None,
    cleaning: Cleaning | None = None,
) -> Asked:
    """Ask for a whole answer by its question: exact first, then by meaning.

    Args:
        question: The question.
        chain: The identity of what answers (the chain, its prompts, its version).
        model: The model's name, for recall by model.
        parameters: Everything else that shapes the answer.
        exact: Further input that must be equal.
        before: The conversation so far, oldest turn first. It must mean the same where that can be
            told (see `stemma.conversation`), and be equal elsewhere.
        meaning: Whether a question with the same meaning may be answered too.
        codec: How the answer is written.
        life: Base life, seconds.
        tags: Tags for the entry.
        standalone: The question rewritten so that it can be understood without the conversation:
            that is compared instead, and the conversation is left out of the key.
        cleaning: What does not shape the answer, and is left out of key and focus. What of
            `exact` counts as a system message is said at `stemma.policies.cleaning.Sweep.value`.
    """
    return Asked(
        scope={"template": chain, "model": model, "parameters": parameters},
        request=cleaned(
            question,
            exact=exact,
            before=before,
            standalone=standalone,
            meaning=meaning,
            cleaning=cleaning,
        ),
        codec=codec,
        prompt=(question,),
        life=life,
        tags=tags,
    )
