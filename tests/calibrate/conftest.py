"""Logs with known answers, and the command as a shell runs it."""

import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from stemma.cli import main as command

Row = Mapping[str, Any] | str

_THINGS = ("order", "parcel", "invoice", "account", "voucher", "basket", "address", "refund")
_DEEDS = ("cancel", "change", "track", "print", "open", "share", "delete", "find", "pay", "copy")
_WAYS = (
    "How do I {deed} my {thing}?",
    "how do i {deed} my {thing}",
    "How do I {deed} my {thing}, please?",
    "Please tell me: how do I {deed} my {thing}?",
    "How can I {deed} my {thing}?",
)


def _asked(seed: int = 1) -> list[dict[str, str]]:
    """Questions on eighty subjects, each in five wordings, in some order."""
    rows = [
        {"text": way.format(deed=deed, thing=thing), "group": f"{deed} {thing}"}
        for thing in _THINGS
        for deed in _DEEDS
        for way in _WAYS
    ]
    random.Random(seed).shuffle(rows)
    return rows


@pytest.fixture
def asked() -> Callable[..., list[dict[str, str]]]:
    """Gives questions on eighty subjects, each in five wordings, in the order of a seed."""
    return _asked


@pytest.fixture
def written(tmp_path) -> Callable[[Iterable[Row]], Path]:
    """Writes a log; a text is a line as it is."""

    def write(rows: Iterable[Row], name: str = "log.jsonl") -> Path:
        path = tmp_path / name
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def calibrate(monkeypatch, capsys):
    """Runs `stemma calibrate …`; gives its exit status, what it printed, and its error."""
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setattr(command.app, "registered_commands", list(command.app.registered_commands))

    def run(*words, embedder="hashing") -> tuple[int, str, str]:
        arguments = ["stemma", "calibrate", *map(str, words), "--embedder", embedder]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as ended:
            command.main()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return run
