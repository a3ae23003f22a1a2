"""`stemma promote`: copy an answer into the pool that was named while it was made."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from stemma.cli.database import DEFAULT, Database, opened, the_entry
from stemma.cli.printing import AsJson, console, print_json
from stemma.promoting import Promotion

__all__ = ["promote"]


def promote(
    entry: Annotated[str, typer.Argument(help="The answer's id, or the beginning of it.")],
    by: Annotated[str, typer.Option(help="Who approves of it.")] = "",
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Approve of an answer: copy it into the pool that was named while it was made.

    Asks for what pools ask for by default. Exits with 1 where it is refused.
    """
    if not by:
        raise typer.BadParameter("say who approves of it", param_hint="--by")
    with opened(db) as cache:
        promotion = cache.pools.promote(the_entry(cache, entry).id, by=by)
    if as_json:
        print_json(_facts(promotion))
    else:
        console.print(escape(str(promotion)))
    if not promotion:
        raise typer.Exit(1)


def _facts(promotion: Promotion) -> dict[str, object]:
    return {
        "pool": promotion.pool,
        "original": promotion.original,
        "copy": None if promotion.copy is None else promotion.copy.id,
        "refused": promotion.refused,
        "detail": promotion.detail,
        "by": promotion.by,
        "at": promotion.at,
    }
