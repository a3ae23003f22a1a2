"""An agent's hops: keyed by the path of hops that led there."""

from __future__ import annotations

from typing import Any

from stemma.codec import Codec
from stemma.keys import canonical
from stemma.lineage import frames
from stemma.nodes.node import JSON, Asked
from stemma.request import Request

__all__ = ["hop"]


def hop(
    step: str,
    *,
    arguments: Any = None,
    agent: str = "",
    version: str = "",
    prompt: tuple[str, ...] = (),
    codec: Codec = JSON,
    life: float | None = None,
    tags: tuple[str, ...] = (),
) -> Asked:
    """Ask for a step's result. The path of hops before it is part of the key.

    Args:
        step: The tool's or step's name.
        arguments: Its arguments; must be equal.
        agent: The agent's name.
        version: The tool's version.
        prompt: Texts in which earlier reads are recognised.
        codec: How the result is written.
        life: Base life, seconds.
        tags: Tags for the entry.
    """
    frame = frames.current()
    path = "" if frame is None else frame.path
    return Asked(
        scope={"template": canonical([agent, step, version])},
        request=Request(exact={"path": path, "arguments": arguments}, meaning=False),
        codec=codec,
        prompt=prompt,
        life=life,
        tags=tags,
    )
