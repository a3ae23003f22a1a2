"""Model calls."""

from __future__ import annotations

from typing import Any

from stemma.codec import Codec
from stemma.nodes.cleaned import cleaned
from stemma.nodes.node import JSON, Asked
from stemma.policies.cleaning import Cleaning

__all__ = ["call"]


def call(
    focus: str | None,
    *,
    model: str,
    exact: Any = None,
    parameters: Any = None,
    tools: Any = None,
    schema: Any = None,
    before: tuple[str, ...] = (),
    meaning: bool = True,
    prompt: tuple[str, ...] = (),
    codec: Codec = JSON,
    life: float | None = None,
    tags: tuple[str, ...] = (),
    standalone: str | None = None,
    cleaning: Cleaning | None = None,
) -> Asked:
    """Ask for a model call's reply.

    Args:
        focus: The part of the prompt that may be compared by meaning, or `None`.
        model: The model's name, for recall by model.
        exact: The rest of the prompt, which must be equal.
        parameters: Every parameter of the call.
        tools: The tools offered.
        schema: The response format asked for.
        before: The turns before, oldest first, where they are not in `exact`. They must mean the
            same where that can be told (see `stemma.conversation`), and be equal elsewhere.
        meaning: Whether the focus may be compared by meaning.
        prompt: The texts of the prompt, in which earlier reads are recognised.
        codec: How the reply is written.
        life: Base life, seconds.
        tags: Tags for the entry.
        standalone: The focus rewritten so that it can be understood without the conversation:
            that is compared instead, and the conversation is left out of the key.
        cleaning: What does not shape the reply, and is left out of key and focus. What of
            `exact` counts as a system message is said at `stemma.policies.cleaning.Sweep.value`.
    """
    return Asked(
        scope={"model": model, "parameters": parameters, "tools": tools, "schema": schema},
        request=cleaned(
            focus,
            exact=exact,
            before=before,
            standalone=standalone,
            meaning=meaning,
            cleaning=cleaning,
        ),
        codec=codec,
        prompt=prompt,
        life=life,
        tags=tags,
    )
