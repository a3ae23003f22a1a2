"""The cache that a command looks into."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stemma.cache import Cache
from stemma.entry import Entry
from stemma.errors import UsageError
from stemma.opening import open as open_cache
from stemma.stores.sqlite import SqliteStore

__all__ = ["DEFAULT", "Database", "opened", "the_entry"]

Database = Annotated[
    Path, typer.Option("--db", envvar="STEMMA_DB", help="The cache's file.", show_default=True)
]
DEFAULT = Path("answers.db")


def opened(path: Path, *, set_aside: bool = False) -> Cache:
    """The cache in a file. Who only looks changes nothing: a damaged file is not set aside.

    Raises:
        UsageError: There is no such file.
    """
    if not path.exists():
        raise UsageError(f"there is no cache at {path}; name its file with --db")
    return open_cache(SqliteStore(path, set_aside=set_aside), embedder=None)


def the_entry(cache: Cache, start: str) -> Entry:
    """The entry with an id, or the only one whose id begins so.

    Raises:
        UsageError: There is none, or several.
    """
    store = cache.engine.parts.store
    exact = store.get([start]).entries.get(start)
    if exact is not None:
        return exact
    similar = [entry for entry in store.find(limit=100_000) if entry.id.startswith(start)]
    if len(similar) != 1:
        what = "no entry" if not similar else f"{len(similar)} entries"
        raise UsageError(f"{what} with an id that begins with {start!r}")
    return similar[0]
