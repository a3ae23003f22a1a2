"""`stemma quarantine` and `stemma release`: hold back what may be wrong, and let go of it."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from rich.markup import escape

from stemma.cache import Cache
from stemma.cli.database import DEFAULT, Database, opened, the_entry
from stemma.cli.printing import AsJson, console, entries_table, print_json
from stemma.outcome import Quarantine
from stemma.propagation.quarantine import THRESHOLD

__all__ = ["quarantine", "release"]


def quarantine(  # noqa: PLR0917 - a command's options, given by name
    entries: Annotated[
        list[str] | None, typer.Argument(help="Ids of wrong entries, or the beginnings of them.")
    ] = None,
    by: Annotated[str, typer.Option(help="Who suspects them.")] = "",
    source: Annotated[
        str | None, typer.Option(help="A document's or chunk's id: what was built on it.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="A tenant: all that it made.")] = None,
    threshold: Annotated[
        float, typer.Option(help="How likely wrong what was built on them must be.")
    ] = THRESHOLD,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be held.")
    ] = False,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Serve what is likely wrong no more, until it is released or found to be right."""
    if not by:
        raise typer.BadParameter("say who suspects them", param_hint="--by")
    with opened(db) as cache:
        receipt = cache.quarantine(
            *(_named(cache, one) for one in entries or ()),
            by=by,
            source=source,
            tenant=tenant,
            threshold=threshold,
            reason=reason,
            dry_run=dry_run,
        )
    _print(receipt, as_json=as_json)


def release(
    quarantine: Annotated[str, typer.Argument(help="The quarantine's id.")],
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """End a quarantine: what it alone held is served again, as far as it is still there."""
    with opened(db) as cache:
        receipt = cache.release(quarantine)
    _print(receipt, as_json=as_json)


def _named(cache: Cache, start: str) -> str:
    """The id that is meant; one that is whole may have gone."""
    known = cache.engine.parts.store.lineage(start) is not None
    return start if known else the_entry(cache, start).id


def _print(receipt: Quarantine, *, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(receipt))
        return
    console.print(escape(str(receipt)))
    if not receipt.entries:
        return
    table = entries_table("wrong", "tenant", "pool", "node", "hop")
    for one in receipt.entries:
        table.add_row(
            one.entry + (" (gone)" if one.entry in receipt.gone else ""),
            f"{one.probability:.2f}" + ("?" if one.doubtful else ""),
            escape(one.tenant),
            escape(one.pool or ""),
            one.node,
            str(one.hop),
        )
    console.print(table)
