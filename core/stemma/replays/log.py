"""A log of requests, as an application keeps it: one JSON object a line.

    {"text": "How do I cancel my order?", "group": "cancel"}
    {"text": "Can I cancel my order?", "answer": "Press Cancel under Orders."}

`text` is what was asked. `group` says which requests have the same answer; where it is missing, the
`answer` does. A line that cannot be read is left out, and named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from stemma.errors import UsageError

__all__ = ["LONGEST", "Line", "Log", "Request", "Skipped", "read"]

LONGEST = 1_000_000
"""Bytes of a line that is read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request; those of a group have the same answer."""

    text: str
    group: str
    tenant: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of a log.

    Args:
        number: Which, from 1.
        text: What was asked.
        group: What says which answers are the same; `None` where the line has none.
        answer: What was answered; `None` where the line does not say.
    """

    number: int
    text: str = field(repr=False)
    group: str | None = None
    answer: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A line that is left out, and why."""

    number: int
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """What was read.

    Args:
        lines: In the order of the file.
        skipped: What was left out.
        digest: The SHA-256 of the file.
    """

    lines: Sequence[Line] = field(repr=False)
    skipped: Sequence[Skipped] = ()
    digest: str = ""

    @property
    def answered(self) -> bool:
        """Whether any line says what was answered, or which answers are the same."""
        return any(one.group is not None or one.answer is not None for one in self.lines)


def read(path: str | Path) -> Log:
    """Read a log.

    Raises:
        UsageError: There is no such file, or no line of it is a request.
    """
    found: list[Line] = []
    skipped: list[Skipped] = []
    seen = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            for number, raw in enumerate(_lines(file, seen), start=1):
                line = _line(number, raw)
                if isinstance(line, Line):
                    found.append(line)
                elif line is not None:
                    skipped.append(line)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if not found:
        why = f"line {skipped[0].number}: {skipped[0].why}" if skipped else "it is empty"
        raise UsageError(
            f'{path} is no log of requests ({why}): each line must be a JSON object with a "text"'
        )
    return Log(lines=found, skipped=skipped, digest=seen.hexdigest())


def _lines(file: BinaryIO, seen: hashlib._Hash) -> Iterator[bytes]:
    """The lines of a file; of one that is too long, its beginning alone is in memory."""
    while start := file.readline(LONGEST + 2):
        seen.update(start)
        rest = start
        while not rest.endswith(b"\n") and (rest := file.readline(LONGEST)):
            seen.update(rest)
        yield start


def _line(number: int, raw: bytes) -> Line | Skipped | None:
    """What a line says; `None` for one that is blank."""
    if len(raw.rstrip(b"\r\n")) > LONGEST:
        return Skipped(number=number, why=f"longer than {LONGEST:,} bytes")
    if not raw.strip():
        return None
    try:
        told = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        return Skipped(number=number, why="not UTF-8")
    except (ValueError, RecursionError):
        return Skipped(number=number, why="not JSON")
    if not isinstance(told, dict):
        return Skipped(number=number, why="not a JSON object")
    text: Any = told.get("text")
    group: Any = told.get("group")
    answer: Any = told.get("answer")
    if not isinstance(text, str) or text.strip() == "":
        return Skipped(number=number, why='no "text"')
    if isinstance(group, int) and not isinstance(group, bool):
        group = str(group)
    for name, value in (("group", group), ("answer", answer)):
        if value is not None and (not isinstance(value, str) or value.strip() == ""):
            return Skipped(number=number, why=f'"{name}" is not a text')
    return Line(number=number, text=text, group=group, answer=answer)
