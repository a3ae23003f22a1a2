"""Arguments of a step that are compared by meaning: as one text, and each by the guards. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stemma.policies.threshold import Candidate, ThresholdPolicy

if TYPE_CHECKING:
    from stemma.policies.guards import Guarded

__all__ = ["ARGUMENTS", "ArgumentPolicy", "parted", "read", "written"]

ARGUMENTS = 0.9
"""The least similarity of arguments by default: above that of answers, since what comes of them is
acted upon."""

_NEXT = re.compile(r"\n(?! )")


def parted(
    arguments: Mapping[str, object], semantic: Sequence[str]
) -> tuple[dict[str, object], dict[str, str]]:
    """Arguments as those that must be equal, and those that may be compared by meaning.

    What is named but missing, no text, or blank must be equal.
    """
    texts = {name: value for name in semantic if _says(value := arguments.get(name))}
    exact = {name: value for name, value in arguments.items() if name not in texts}
    return exact, {name: str(texts[name]) for name in sorted(texts)}


def _says(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


def written(texts: Mapping[str, str]) -> str:
    """Several arguments as one text, each with its name; a single one as it is."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{name}: {_indented(text)}" for name, text in texts.items())


def read(names: Sequence[str], text: str) -> list[str]:
    """The arguments of these names in a text that `written` gave, in their order."""
    if len(names) == 1:
        return [text]
    heads = (f"{name}: " for name in names)
    blocks = _NEXT.split(text)
    return [
        block.removeprefix(head).replace("\n ", "\n")
        for block, head in zip(blocks, heads, strict=True)
    ]


def _indented(text: str) -> str:
    return text.replace("\n", "\n ")


@dataclass(frozen=True, slots=True)
class ArgumentPolicy(ThresholdPolicy):
    """A `ThresholdPolicy` whose guards read each argument by itself.

    Args:
        threshold: The least cosine similarity of the whole text, 0 to 1, inclusive.
        names: The arguments' names, in the order of their text.
    """

    threshold: float = ARGUMENTS
    names: tuple[str, ...] = field(default=(), kw_only=True)

    name = "arguments"

    def _objection(self, asked: str, candidate: Candidate) -> Guarded | None:
        from stemma.policies.guards import Guarded, guard  # noqa: PLC0415 - as in its parent

        ours, theirs = read(self.names, asked), read(self.names, candidate.focus)
        for name, one, other in zip(self.names, ours, theirs, strict=True):
            refused = guard(one, other, candidate.similarity)
            if refused is not None:
                return Guarded(refused.reason, f"argument {name}: {refused.detail}")
        return None
