"""Stand-ins that count how often they are asked."""

from __future__ import annotations

from typing import Any

__all__ = ["Scripted"]


class Scripted:
    """A computation that gives its answers in turn, the last one for ever, and counts its calls.

    Args:
        *answers: What to give; an exception is raised instead. Without any: `answer 1`, `answer
            2`, and so on.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.calls = 0

    def __call__(self) -> Any:
        """The next answer."""
        self.calls += 1
        if not self.answers:
            return f"answer {self.calls}"
        answer = self.answers[min(self.calls, len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer
