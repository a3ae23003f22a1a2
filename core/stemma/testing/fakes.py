"""Stand-ins: a computation that counts how often it is asked, and a store that fails on demand."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from stemma.errors import StoreUnavailable
from stemma.stores.memory import MemoryStore
from stemma.stores.shelves import Shelves

__all__ = ["Faulty", "Scripted"]


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


class Faulty(MemoryStore):
    """A store in memory that does what `mode` says, and notes when it was asked.

    Attributes:
        mode: `"well"`; `"hang"`, until `let_go`; an error to raise; or seconds to wait first.
        times: When it was asked, by the monotonic clock.
    """

    quick = frozenset()

    def __init__(self) -> None:
        super().__init__()
        self.mode: Literal["well", "hang"] | Exception | float = "well"
        self.times: list[float] = []
        self._gate = threading.Event()

    @property
    def asked(self) -> int:
        """How often it was asked."""
        return len(self.times)

    def let_go(self) -> None:
        """Work well from now on, and answer those who hang."""
        self.mode = "well"
        self._gate.set()
        self._gate = threading.Event()

    @contextmanager
    def _open(self) -> Iterator[Shelves]:
        self.times.append(time.monotonic())
        mode, gate = self.mode, self._gate
        if isinstance(mode, Exception):
            raise mode
        if isinstance(mode, float):
            gate.wait(mode)
        elif mode == "hang" and not gate.wait(60):
            raise StoreUnavailable("nobody let it go in a minute")
        with super()._open() as shelves:
            yield shelves
