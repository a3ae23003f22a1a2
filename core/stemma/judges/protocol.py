"""What a judge is: two texts in, a probability or nothing out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from stemma.callables import is_async
from stemma.errors import JudgeError, UsageError

__all__ = ["About", "FunctionJudge", "Judge", "named", "probability"]

About = Literal["questions", "answers"]
"""What is compared: two questions that may ask for the same, or two answers that may say it."""


@runtime_checkable
class Judge(Protocol):
    """Says how likely two texts mean the same. It may be slow, and may be asked from any thread.

    An async twin `ajudge` is used on event loops where there is one; without it, a judge is asked
    in a thread of its own there.
    """

    @property
    def name(self) -> str:
        """What it is called in notes of hits and judgements."""
        ...

    @property
    def revision(self) -> str:
        """What names the model and its version: another revision, other judgements."""
        ...

    def judge(self, one: str, other: str, about: About) -> float | None:
        """How likely the two have the same answer, or are the same answer, 0 to 1.

        Args:
            one: What is asked, or was answered, now.
            other: What is stored.
            about: What the two are.

        Returns:
            The probability; `None` where it cannot say.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionJudge:
    """A judge made of a function.

    Args:
        function: Takes the two texts; gives a probability, or `None`.
        name: What it is called in judgements.
        revision: What names its version; by default its name.

    Raises:
        UsageError: It is no function, or an async one, or the name is empty.
    """

    function: Callable[[str, str], float | None] = field(repr=False)
    name: str
    revision: str = ""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UsageError(f"a {type(self.function).__qualname__} is no function of two texts")
        if is_async(self.function):
            raise UsageError("it is async only; give a judge of your own that has ajudge as well")
        object.__setattr__(self, "name", named(self.name))
        object.__setattr__(self, "revision", self.revision or self.name)

    def judge(self, one: str, other: str, about: About) -> float | None:  # noqa: ARG002 - all the same to it
        """See `Judge.judge`. What the function raises passes through."""
        return self.function(one, other)


def named(name: object) -> str:
    """A judge's name.

    Raises:
        UsageError: It is not a text, or an empty one.
    """
    if not isinstance(name, str) or name.strip() == "":
        raise UsageError(f"a judge's name must be a text that is not empty, not {name!r}")
    return name


def probability(given: Any, name: str) -> float | None:
    """What a judge gave, as a probability; `None` where it could not say.

    Raises:
        JudgeError: It is neither.
    """
    if given is None:
        return None
    try:
        likely = math.nan if isinstance(given, (str, bytes)) else float(given)
    except (TypeError, ValueError, OverflowError):
        likely = math.nan
    if not 0.0 <= likely <= 1.0:
        told = type(given).__name__ if math.isnan(likely) else f"{likely:g}"
        raise JudgeError(f"the judge {name!r} gave {told}, which is no probability from 0 to 1")
    return likely
