"""An agent's hops: keyed by the path of hops that led there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stemma.codec import Codec
from stemma.errors import UsageError
from stemma.keys import canonical
from stemma.lineage import frames
from stemma.nodes.node import JSON, Asked
from stemma.policies.arguments import ARGUMENTS, ArgumentPolicy, parted, written
from stemma.request import Request

__all__ = ["hop"]


def hop(
    step: str,
    *,
    arguments: Any = None,
    semantic: Iterable[str] = (),
    similarity: float = ARGUMENTS,
    path: bool = True,
    agent: str = "",
    version: str = "",
    intent: str | None = None,  # noqa: ARG001 - nothing is kept of it so far
    prompt: tuple[str, ...] = (),
    codec: Codec = JSON,
    life: float | None = None,
    tags: tuple[str, ...] = (),
) -> Asked:
    """Ask for a step's result. The path of hops before it is part of the key.

    Args:
        step: The tool's or step's name.
        arguments: Its arguments. All but those named as semantic must be equal.
        semantic: The names of arguments that may be compared by meaning. One that is missing, no
            text, or blank must be equal all the same.
        similarity: The least cosine similarity of those, 0 to 1; higher than answers have it,
            since what comes of arguments is acted upon.
        path: Whether the result depends on the hops before it. Without, a step is the same
            wherever an agent comes to it.
        agent: The agent's name.
        version: The tool's version.
        intent: What the agent is after; by default the trace's.
        prompt: Texts in which earlier reads are recognised.
        codec: How the result is written.
        life: Base life, seconds.
        tags: Tags for the entry.

    Raises:
        UsageError: `semantic` names arguments of something that has no names.
    """
    exact, texts = _parted(arguments, semantic)
    frame = frames.current()
    before = frame.path if frame is not None and path else ""
    said = {"path": before, "arguments": exact, "semantic": list(texts)}
    return Asked(
        scope={"template": canonical([agent, step, version])},
        scope_key=(agent, step, version),
        request=Request(exact=said, focus=written(texts) if texts else None, meaning=bool(texts)),
        codec=codec,
        prompt=prompt,
        life=life,
        tags=tags,
        policy=ArgumentPolicy(similarity, names=tuple(texts)) if texts else None,
    )


def _parted(arguments: Any, semantic: Iterable[str]) -> tuple[Any, dict[str, str]]:
    names = (semantic,) if isinstance(semantic, str) else tuple(semantic)
    if not names:
        return arguments, {}
    if not isinstance(arguments, Mapping):
        raise UsageError(
            f"semantic={names!r} needs arguments with names, not {type(arguments).__name__}"
        )
    return parted(arguments, names)
