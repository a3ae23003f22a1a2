"""What the commands print."""

from __future__ import annotations

import json
from typing import Annotated, Any
from unicodedata import category

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

__all__ = ["AsJson", "Plain", "console", "entries_table", "print_json"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Plain(Console):
    """A console on which names are printed as they are, and none acts on the terminal.

    `:umbrella:` in one is no picture, and a control character, a mark of direction or half a
    character is written as Python writes it.

    Args:
        stderr: Whether it prints errors.
        soft_wrap: Whether lines are left as long as they are.
    """

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False) -> None:
        super().__init__(emoji=False, stderr=stderr, soft_wrap=soft_wrap)

    def render_str(self, text: str, **named: Any) -> Text:
        """As of `Console`; everything that is printed comes here, cells of tables too."""
        seen = (_written(one) if category(one) in _UNSEEN else one for one in text)
        return super().render_str("".join(seen), **named)


def _written(letter: str) -> str:
    return letter if letter in "\n\t" else letter.encode("unicode_escape").decode("ascii")


console = Plain()

_ID = 32
"""Columns that an entry's id takes."""


def entries_table(*columns: str) -> Table:
    """A table of entries whose first column holds their ids, whole even in 80 columns."""
    return Table(Column("entry", min_width=_ID, overflow="fold"), *columns)


def print_json(value: Any) -> None:
    """Print plain values as JSON."""
    console.print_json(json.dumps(value), indent=2)
