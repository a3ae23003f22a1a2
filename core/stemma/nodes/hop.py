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
from stemma.policies.life import Aging
from stemma.request import Request
from stemma.walk import Place, checked_intent

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
    intent: str | None = None,
    prompt: tuple[str, ...] = (),
    codec: Codec = JSON,
    life: float | None = None,
    factor: float | None = None,
    floor: float | None = None,
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
        path: Whether the result depends on the hops before it. Without, the step is the same
            wherever an agent comes to it: it is at hop 1, it is built on nothing but what is read
            while it is computed, and what the agent is after does not count unless it is said here.
        agent: The agent's name.
        version: The tool's version.
        intent: What the agent is after at this step; by default as the hop or the trace says, or
            else the run's question. What is stored for something else is not served.
        prompt: Texts in which earlier reads are recognised.
        codec: How the result is written.
        life: Base life, seconds.
        factor: What each further hop leaves of the life, above 0, at most 1; by default 0.8.
        floor: The least life, seconds, as far as base and sources allow it.
        tags: Tags for the entry.

    Raises:
        UsageError: `semantic` names arguments of something that has no names, or an argument is
            wrong.
    """
    for name, value in (("step", step), ("agent", agent), ("version", version)):
        if not isinstance(value, str):
            raise UsageError(f"{name} must be a text, not {type(value).__name__}")
    exact, texts = _parted(arguments, semantic)
    place = _place(path, intent, factor, floor)
    said = {
        "path": None if place.alone else place.path.key,
        "arguments": exact,
        "semantic": list(texts),
    }
    return Asked(
        scope={"template": canonical([agent, step, version])},
        scope_key=(agent, step, version),
        request=Request(exact=said, focus=written(texts) if texts else None, meaning=bool(texts)),
        codec=codec,
        prompt=prompt,
        life=life,
        tags=tags,
        policy=ArgumentPolicy(similarity, names=tuple(texts)) if texts else None,
        place=place,
    )


def _place(path: bool, intent: str | None, factor: float | None, floor: float | None) -> Place:
    checked_intent(intent)
    Aging(base=1.0, factor=0.8 if factor is None else factor, floor=floor).life("")
    frame = frames.current()
    if frame is None or not path:
        return Place(alone=not path, intent=intent, goal=intent, factor=factor, floor=floor)
    live, goal = frame.aim()
    return Place(
        path=frame.path,
        intent=live if intent is None else intent,
        goal=intent if goal is None else goal,
        factor=factor,
        floor=floor,
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
