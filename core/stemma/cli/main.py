"""The `stemma` command: look into a cache, and take things back.

Further commands register themselves through the entry point group `stemma.commands`: a function
that is given the Typer application.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any

from stemma.errors import CodecError, MissingDependency, StemmaError, UsageError

try:
    import typer
    from rich.markup import escape
    from rich.table import Table
except ImportError as error:  # pragma: no cover - shown by a test in a bare environment
    sys.exit(f"the stemma command needs {error.name}: pip install 'stemma-cache[cli]'")

from stemma.cache import Cache
from stemma.cli.database import DEFAULT, Database, opened, the_entry
from stemma.cli.printing import AsJson, Plain, console, entries_table, print_json
from stemma.cli.walks import life_of, walk_of
from stemma.codec import VectorCodec
from stemma.entry import Entry
from stemma.ranking import outline

__all__ = ["app", "main"]

from stemma.cli.calibrate import calibrate
from stemma.cli.graph import graph
from stemma.cli.promote import promote
from stemma.cli.quarantine import quarantine, release

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Look into a Stemma cache, and take things back.",
)

SAID = 10
"""Judgements of an entry that are shown, the newest."""


@app.command()
def stats(db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Hits, misses by reason, and what was saved, by tenant and node."""
    with opened(db) as cache:
        found = cache.stats()
    if as_json:
        print_json(found.as_json())
        return
    table = Table("tenant", "node", "entries", "exact", "semantic", "misses", "saved", "why missed")
    for row in found.rows:
        table.add_row(
            escape(row.tenant or "(none)"),
            row.node,
            str(row.entries),
            str(row.exact),
            str(row.semantic),
            str(sum(row.misses.values())),
            f"{row.seconds:.1f} s, {row.tokens} tokens",
            ", ".join(f"{count} {reason}" for reason, count in row.misses.items()),
        )
    console.print(table)
    for remark in found.remarks():
        console.print(escape(remark))


@app.command()
def inspect(
    entry: Annotated[str, typer.Argument(help="The entry's id, or the beginning of it.")],
    db: Database = DEFAULT,
    show_text: Annotated[bool, typer.Option("--text", help="Show the question and value.")] = False,
    as_json: AsJson = False,
) -> None:
    """One entry: what it is, how long it lives, the hops that led to it, and its family tree."""
    with opened(db) as cache:
        found = the_entry(cache, entry)
        tree = cache.lineage(found.id)
        facts = {**_facts(found, show_text=show_text), **_judged(cache, found)}
    if as_json:
        edges = [[_name(a), _name(b), data["known"]] for a, b, data in tree.graph.edges(data=True)]
        print_json({**facts, "edges": edges})
        return
    path = facts.pop("path", [])
    table = Table(show_header=False)
    for name, value in facts.items():
        table.add_row(name, escape(str(value)))
    console.print(table)
    for line in path:
        console.print(escape(f"hop {line}"))
    console.print(escape(str(tree)))


def _name(node: Any) -> str:
    return node if isinstance(node, str) else "/".join(node)


def _facts(entry: Entry, *, show_text: bool) -> dict[str, Any]:
    facts = dataclasses.asdict(entry)
    del facts["judged"]  # shown by `_judged`
    payload = facts.pop("payload")
    focus = facts.pop("focus")
    facts["labels"] = {name: value for name, value in facts["labels"].items() if value}
    facts["bytes"] = len(payload)
    facts.pop("walk")
    facts |= {**life_of(entry), **walk_of(entry.walk, show_text=show_text)}
    facts["before"] = entry.before if show_text else len(entry.before)
    if not show_text:
        facts["left_out"] = {one.name: one.count for one in entry.left_out}
    if show_text:
        facts["focus"] = focus
        facts["payload"] = _shown(entry)
    return facts


def _judged(cache: Cache, entry: Entry) -> dict[str, Any]:
    """What was said of an entry, and how far it is believed by that with the default settings."""
    parts, judged = cache.engine.parts, entry.judged
    now = parts.confidence.confidence(
        entry.confidence,
        age=parts.clock.now() - entry.verified,
        agreed=judged.agreed,
        disagreed=judged.disagreed,
    )
    known = cache.verdicts(entry.id)
    return {
        "confidence_now": round(now, 3),
        "audits": {"agreed": judged.agreed, "disagreed": judged.disagreed},
        "barred": list(judged.barred),
        "doubted": judged.doubted,
        "answer": entry.answer,
        "wrong": round(known.probability, 3),
        "said": [str(one) for one in reversed(known.said[-SAID:])],
    }


def _shown(entry: Entry) -> Any:
    """A value for people: lists and vectors are stored as bytes."""
    try:
        if entry.codec.startswith("ranking/"):
            return outline(entry.payload)
        if entry.codec == VectorCodec.name:
            return VectorCodec().decode(entry.payload)
    except CodecError as error:
        return str(error)
    return entry.payload.decode("utf-8", "replace")


@app.command()
def recall(  # noqa: PLR0917 - a command's options, given by name
    source: Annotated[str | None, typer.Option(help="A document's or chunk's id.")] = None,
    entry: Annotated[str | None, typer.Option(help="An entry's id.")] = None,
    tenant: Annotated[str | None, typer.Option(help="A tenant.")] = None,
    tag: Annotated[str | None, typer.Option(help="A tag.")] = None,
    writer: Annotated[str | None, typer.Option(help="A writer.")] = None,
    model: Annotated[str | None, typer.Option(help="A model.")] = None,
    subject: Annotated[str | None, typer.Option(help="A subject.")] = None,
    index: Annotated[str | None, typer.Option(help="An index identity.")] = None,
    node: Annotated[str | None, typer.Option(help="A node; narrows the others.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Take back everything built from a document, an entry, a tenant and so on."""
    given = {
        "source": source,
        "entry": entry,
        "tenant": tenant,
        "tag": tag,
        "writer": writer,
        "model": model,
        "subject": subject,
        "index": index,
        "node": node,
    }
    named = {name: value for name, value in given.items() if value is not None}
    with opened(db) as cache:
        receipt = cache.recall(dry_run=dry_run, **named)
    if as_json:
        print_json(dataclasses.asdict(receipt))
        return
    console.print(escape(str(receipt)))
    table = entries_table("tenant", "node", "hop")
    for item in receipt.entries:
        table.add_row(item.entry, escape(item.tenant), item.node, str(item.hop))
    if receipt.entries:
        console.print(table)


@app.command()
def report(  # noqa: PLR0917 - a command's options, given by name
    entry: Annotated[str, typer.Argument(help="The entry's id, or the beginning of it.")],
    verdict: Annotated[
        str, typer.Argument(help="hallucinated, supported, unknown (takes back) or wrong_hit.")
    ],
    by: Annotated[str, typer.Option(help="Who says so.")],
    confidence: Annotated[float, typer.Option(help="How sure they are, 0 to 1.")] = 1.0,
    question: Annotated[
        str, typer.Option(help="Of a wrong hit: the digest of the question, as its note has it.")
    ] = "",
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say, as an operator, that an entry's value is right or wrong, or that a hit was wrong."""
    with opened(db) as cache:
        known = cache.engine.parts.store.lineage(entry) is not None
        named = entry if known else the_entry(cache, entry).id
        note = {"entry": named, "question": question}
        # A verdict that is none is told there.
        told = cache.report(note, verdict, by=by, confidence=confidence)  # type: ignore[arg-type]
    if as_json:
        print_json(dataclasses.asdict(told))
    else:
        console.print(escape(str(told)))


@app.command()
def check(db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Look for damage and contradictions, and mend what can be mended.

    A file that is damaged as a whole is set aside, and a new one begun.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with opened(db, set_aside=True) as cache:
            mended = cache.check()
    found = [*(str(one.message) for one in told), *mended]
    if as_json:
        print_json(found)
    else:
        console.print("nothing wrong" if not found else "\n".join(map(escape, found)))


app.command()(calibrate)
app.command()(promote)
app.command()(quarantine)
app.command()(release)
app.command()(graph)


def _load_more(asked: Sequence[str]) -> None:
    """Add the commands that other packages bring; what they need is loaded only if one is run."""
    for point in entry_points(group="stemma.commands"):
        if point.name not in asked:
            app.command(point.name, help=f"See `stemma {point.name} --help`.")(_not_loaded)
            continue
        try:
            point.load()(app)
        except ImportError as error:
            raise MissingDependency(
                f"`stemma {point.name}` needs {error.name or error}: "
                f"pip install 'stemma-cache[{point.name}]'"
            ) from error


def _not_loaded() -> None:
    """Stands in the list of commands; the command itself is loaded when it is named."""


def main() -> None:
    """Run the command. Errors of ours are one line and exit status 1; wrong usage exits with 2."""
    try:
        _load_more(sys.argv[1:2])
        app(prog_name="stemma")
    except StemmaError as error:
        told = Plain(stderr=True, soft_wrap=True)
        told.print(f"[red]stemma:[/red] {escape(str(error))}")
        sys.exit(2 if isinstance(error, UsageError) else 1)
