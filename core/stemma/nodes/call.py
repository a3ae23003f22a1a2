"""Model calls."""

from __future__ import annotations

from typing import Any

from stemma.codec import Codec
from stemma.nodes.node import JSON, Asked
from stemma.request import Request

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
) -> Asked:
    """Ask for a model call's reply.

    Args:
        focus: The part of the prompt that may be compared by meaning, or `None`.
        model: The model's name, for recall by model.
        exact: The rest of the prompt, which must be equal.
        parameters: Every parameter of the call.
        tools: The tools offered.
        schema: The response format asked for.
        before: The turns before, where they are not in `exact`.
        meaning: Whether the focus may be compared by meaning.
        prompt: The texts of the prompt, in which earlier reads are recognised.
        codec: How the reply is written.
        life: Base life, seconds.
        tags: Tags for the entry.
    """
    return Asked(
        scope={"model": model, "parameters": parameters, "tools": tools, "schema": schema},
        request=Request(exact=exact, focus=focus, before=before, meaning=meaning),
        codec=codec,
        prompt=prompt,
        life=life,
        tags=tags,
    )
