"""Whether two answers are the same: what a judgement rests on, and who said so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stemma.errors import UsageError
from stemma.judges.band import opinion
from stemma.judges.protocol import FunctionJudge, Judge, probability
from stemma.keys import digest
from stemma.policies.shares import share

__all__ = ["Answer", "SameAnswer", "Sameness"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a model or tool answered.

    Args:
        text: As text; empty where it only calls tools.
        value: The structured value, where the answer has one: plain JSON values.
        calls: The tools it calls, each with a name and its arguments.
    """

    text: str = field(default="", repr=False)
    value: Any = field(default=None, repr=False)
    calls: Sequence[tuple[str, Mapping[str, Any]]] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sameness:
    """Whether two answers are the same; there is no verdict where nobody can say.

    Args:
        same: Whether they are.
        by: Who said so: `calls`, `value`, `equal`, `guard:…`, `similarity` or the judge's name.
    """

    same: bool
    by: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SameAnswer:
    """Compares answers, the surest means first.

    Tool calls, structured values and equal texts decide by themselves. Else guards may say that the
    texts differ; what they pass is the same from `same` on, and another below `other`. Between the
    two, or where there is no similarity, the judge is asked.

    Args:
        same: The least similarity of texts that are the same, 0 to 1.
        other: Below it, texts are not the same, 0 to `same`.
        judge: Asked in between: a `Judge`, or a function that says how likely two texts say the
            same; without one there is no verdict there. A cache asks it in the background.
        judge_name: How the judge is named in verdicts; by default `judge:` and its own name, and
            `judge` for a function.
        sure: How likely the judge must find them the same, or not: from this on they are, at
            1 − this or below they are not, 0.5 to 1; between the two it has not said anything.

    Raises:
        UsageError: A number is out of its range.
    """

    same: float = 0.95
    other: float = 0.6
    judge: Judge | Callable[[str, str], float | None] | None = None
    judge_name: str = ""
    sure: float = 0.5

    def __post_init__(self) -> None:
        if not (self.judge is None or isinstance(self.judge, Judge) or callable(self.judge)):
            raise UsageError(f"judge must be a Judge or a function, not {self.judge!r}")
        share("other", self.other, share("same", self.same))
        share("sure", self.sure, least=0.5)

    def __call__(
        self, fresh: Answer, stored: Answer, *, similarity: float | None = None
    ) -> Sameness | None:
        """The verdict, or `None` where nobody can say. What the judge raises says nothing.

        See `compared` for the arguments.
        """
        said = self.compared(fresh, stored, similarity=similarity)
        if said is not None or self.asked is None:
            return said
        try:
            given = self.asked.judge(fresh.text, stored.text, "answers")
            same = opinion(probability(given, self.asked.name), self.sure)
        except Exception:
            return None
        return None if same is None else Sameness(same=same, by=self.by)

    @property
    def asked(self) -> Judge | None:
        """The judge, a function as one, too."""
        if self.judge is None or isinstance(self.judge, Judge):
            return self.judge
        return FunctionJudge(function=self.judge, name=self.by)

    @property
    def by(self) -> str:
        """How the judge is named in verdicts."""
        if self.judge_name or not isinstance(self.judge, Judge):
            return self.judge_name or "judge"
        return f"judge:{self.judge.name}"

    def compared(
        self, fresh: Answer, stored: Answer, *, similarity: float | None = None
    ) -> Sameness | None:
        """The verdict without a judge, or `None` where one would have to be asked.

        Args:
            fresh: The answer computed afresh.
            stored: The one that was, or would have been, served.
            similarity: Of the two texts, −1 to 1, where it is known.

        Raises:
            UnkeyableValue: A structured value or argument has no stable form.
        """
        from stemma.policies.guards import guard  # noqa: PLC0415 - its tables take long to load

        if fresh.calls or stored.calls:
            return Sameness(same=_calls(fresh) == _calls(stored), by="calls")
        if fresh.value is not None and stored.value is not None:
            return Sameness(same=digest(fresh.value) == digest(stored.value), by="value")
        one, other = _spaced(fresh.text), _spaced(stored.text)
        if one == other:
            return Sameness(same=True, by="equal")
        objection = guard(one, other)
        if objection is not None and objection.reason in _CERTAIN:
            return Sameness(same=False, by=objection.reason)
        if similarity is not None and similarity < self.other:
            return Sameness(same=False, by="similarity")
        if similarity is not None and similarity >= self.same and objection is None:
            return Sameness(same=True, by="similarity")
        return None


_CERTAIN = frozenset({"guard:number", "guard:unit", "guard:negation", "guard:antonym"})
"""What makes two answers differ, however alike; other words and another order need not."""


def _spaced(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".!")


def _calls(answer: Answer) -> list[tuple[str, str]]:
    """The calls in one order: a model may name independent calls in any."""
    return sorted((name, digest(arguments)) for name, arguments in answer.calls)
