"""What the commands print."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

__all__ = ["AsJson", "console", "entries_table", "print_json"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

console = Console(emoji=False)
"""Names are printed as they are: `:umbrella:` in one is no picture."""

_ID = 32
"""Columns that an entry's id takes."""


def entries_table(*columns: str) -> Table:
    """A table of entries whose first column holds their ids, whole even in 80 columns."""
    return Table(Column("entry", min_width=_ID, overflow="fold"), *columns)


def print_json(value: Any) -> None:
    """Print plain values as JSON."""
    console.print_json(json.dumps(value), indent=2)
