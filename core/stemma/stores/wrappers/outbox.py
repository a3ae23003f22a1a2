"""Invalidations that the store could not take: kept durably until it has.

A directory, one small file a note. A note is written aside, forced to the disk and put in place by
its name, so it is there whole or not at all; it goes when the store has acknowledged it. Processes
on one machine that name the same directory share it without a lock: a note applied twice takes
back nothing more.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stemma.errors import StoreError, StoreUnavailable, UsageError
from stemma.files import write_whole
from stemma.outcome import Held, Quarantine
from stemma.selector import Selector
from stemma.stores.protocol import Judgement
from stemma.stores.text import escape, unescape

__all__ = ["Note", "Outbox", "note_of"]

_END = ".json"

_HARMLESS = frozenset({"agreed", "disagreed", "same", "grounded", "promoted", "withdrawn"})
"""Judgements that take nothing back: if the store cannot take them, nothing wrong is served."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A recall, a quarantine or a judgement that waits.

    Args:
        selector: What a recall names, or `None`.
        now: When it was asked for, seconds since 1970-01-01 UTC.
        cascade: Whether what was built from it goes, too.
        judgement: The judgement, or `None`.
        near: The entries near a wrong hit.
        quarantine: The quarantine, or `None`.
    """

    selector: Selector | None = None
    now: float = 0.0
    cascade: bool = True
    judgement: Judgement | None = None
    near: tuple[str, ...] = ()
    quarantine: Quarantine | None = None

    def request(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """The method of a store that does it, with its arguments."""
        if self.selector is not None:
            return "recall", (self.selector,), {"now": self.now, "cascade": self.cascade}
        if self.quarantine is not None:
            return "hold", (self.quarantine,), {}
        return "judge", (self.judgement, self.near), {}


class Outbox:
    """The notes in one directory.

    Args:
        path: The directory, made if it is not there, for its owner's eyes only (0700, files 0600).
            On a local disk, and not in a place that is cleared at start.

    Raises:
        UsageError: The path is empty.
        StoreUnavailable: It cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.fspath(path):
            raise UsageError("an outbox needs a directory: a path that is not empty")
        self._path = Path(path).absolute()
        self._numbers = itertools.count()
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._broken(error) from error

    def __repr__(self) -> str:
        return f"Outbox({str(self._path)!r})"

    def __len__(self) -> int:
        """How many notes wait."""
        return len(self._names())

    def waiting(self) -> bool:
        """Whether any note waits: also one of another process. A few microseconds.

        Raises:
            StoreUnavailable: The directory cannot be read; so nobody knows.
        """
        try:
            with os.scandir(self._path) as items:
                return any(item.name.endswith(_END) for item in items)
        except OSError as error:
            raise self._broken(error) from error

    def keep(self, note: Note) -> None:
        """Keep a note; it is on the disk when this returns.

        Raises:
            StoreUnavailable: It cannot be written; do not count on its being kept.
        """
        name = f"{time.time_ns():020}-{next(self._numbers):06}-{secrets.token_hex(8)}"
        try:
            write_whole(self._path / f"{name}{_END}", [_text(note).encode("ascii")])
        except OSError as error:
            raise self._broken(error) from error

    def notes(self) -> list[tuple[str, Note]]:
        """The notes that wait, with their names, in the order in which they were kept.

        Raises:
            StoreError: A note is damaged: what it takes back is not known.
        """
        found = []
        for name in self._names():
            try:
                text = (self._path / name).read_text(encoding="ascii")
            except FileNotFoundError:
                continue  # another process has applied it
            except (OSError, UnicodeDecodeError) as error:
                raise self._damaged(name) from error
            try:
                found.append((name, _note(text)))
            except (ValueError, KeyError, TypeError) as error:
                raise self._damaged(name) from error
        return found

    def done(self, name: str) -> None:
        """The store has acknowledged this note: it goes.

        Raises:
            StoreUnavailable: It cannot be removed, and will be applied again.
        """
        try:
            (self._path / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._broken(error) from error

    def _names(self) -> list[str]:
        try:
            return sorted(one.name for one in self._path.iterdir() if one.name.endswith(_END))
        except OSError as error:
            raise self._broken(error) from error

    def _broken(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"the outbox {self._path}: {error.strerror}; check the directory")

    def _damaged(self, name: str) -> StoreError:
        return StoreError(
            f"the outbox holds a damaged note, {self._path / name}: what it takes back is not "
            "known. Clear the cache of what it may have been, then remove the note"
        )


def note_of(method: str, args: tuple[Any, ...], named: dict[str, Any]) -> Note | None:
    """What to keep if the store does not take this call; `None` where it invalidates nothing."""
    if method == "judge":
        judgement, near = args
        return (
            None if judgement.verdict in _HARMLESS else Note(judgement=judgement, near=tuple(near))
        )
    if method == "recall" and not named["dry_run"]:
        return Note(selector=args[0], now=named["now"], cascade=named["cascade"])
    if method == "hold":
        return Note(quarantine=args[0])
    return None


def _text(note: Note) -> str:
    parts: dict[str, Any] = {"now": note.now, "cascade": note.cascade}
    if note.selector is not None:
        parts["recall"] = _each(escape, note.selector.parts())
    if note.judgement is not None:
        parts["judge"] = _each(escape, asdict(note.judgement))
        parts["near"] = list(map(escape, note.near))
    if note.quarantine is not None:
        plain = replace(note.quarantine, seeds=dict(note.quarantine.seeds))
        parts["hold"] = _each(escape, asdict(plain))
    body = json.dumps(parts, sort_keys=True)
    return json.dumps({"note": body, "sum": zlib.crc32(body.encode())})


def _note(text: str) -> Note:
    whole = json.loads(text)
    body = whole["note"]
    if zlib.crc32(body.encode()) != whole["sum"]:
        raise ValueError(text)
    parts = json.loads(body)
    return Note(
        selector=Selector(**_each(unescape, parts["recall"])) if "recall" in parts else None,
        now=parts["now"],
        cascade=parts["cascade"],
        judgement=Judgement(**_each(unescape, parts["judge"])) if "judge" in parts else None,
        near=tuple(map(unescape, parts.get("near", ()))),
        quarantine=_quarantine(_each(unescape, parts["hold"])) if "hold" in parts else None,
    )


def _quarantine(parts: dict[str, Any]) -> Quarantine:
    held = tuple(Held(**one) for one in parts.pop("entries"))
    return Quarantine(**parts, entries=held)


def _each(change: Callable[[str], str], parts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts with their texts changed: JSON joins two halves of a character, and we must not."""
    return {change(name): _changed(change, one) for name, one in parts.items()}


def _changed(change: Callable[[str], str], part: Any) -> Any:
    if isinstance(part, str):
        return change(part)
    if isinstance(part, Mapping):
        return _each(change, part)
    if isinstance(part, list | tuple):
        return tuple(_changed(change, one) for one in part)
    return part
