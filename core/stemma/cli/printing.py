"""What the commands print."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

__all__ = ["AsJson", "console", "print_json"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

console = Console()


def print_json(value: Any) -> None:
    """Print plain values as JSON."""
    console.print_json(json.dumps(value), indent=2)
