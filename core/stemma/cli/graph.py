"""`stemma graph`: how answers travel from tenant to tenant, as text, as files and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cache import Cache
from stemma.cli.database import DEFAULT, Database, opened, the_entry
from stemma.cli.printing import AsJson, print_json
from stemma.cli.targets import see_to, see_to_figures, write
from stemma.errors import UsageError
from stemma.policies.changes import check_number
from stemma.propagation.drawing import figure
from stemma.propagation.exporting import as_json as json_of
from stemma.propagation.exporting import dot as dot_of
from stemma.propagation.exporting import graphml as graphml_of
from stemma.propagation.table import text

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["graph"]

_Form = Callable[["nx.DiGraph"], str | bytes]

_STDOUT = Path("-")
_DAY = 86400.0


def graph(  # noqa: PLR0917 - a command's options, given by name
    db: Database = DEFAULT,
    seeds: Annotated[
        list[str],
        typer.Option("--seed", help="A wrong entry: who is exposed? May be repeated."),
    ] = [],  # noqa: B006 - Typer makes a list of its own
    entries: Annotated[bool, typer.Option("--entries", help="With the entries.")] = False,
    sources: Annotated[bool, typer.Option("--sources", help="With the sources.")] = False,
    tools: Annotated[bool, typer.Option("--tools", help="With the tools.")] = False,
    half_life: Annotated[
        float | None, typer.Option(help="Days after which a use counts for half.")
    ] = None,
    graphml: Annotated[Path | None, typer.Option(help="Write GraphML there.")] = None,
    dot: Annotated[Path | None, typer.Option(help="Write DOT there, for Graphviz.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw a picture there.")] = None,
    as_json: AsJson = False,
) -> None:
    """How answers travel from tenant to tenant, and who is exposed if one of them is wrong."""
    given: dict[Path | None, _Form] = {graphml: graphml_of, dot: dot_of, png: _png}
    forms = {path: form for path, form in given.items() if path is not None}
    if len(forms) < sum(path is not None for path in (graphml, dot, png)) or db in forms:
        raise UsageError("each form needs a file of its own")
    if png == _STDOUT or (as_json and _STDOUT in forms):
        raise UsageError("only one of JSON, GraphML and DOT can go to standard output")
    check_number("--half-life", half_life, low=0.0, open_low=True)
    files = {path: form for path, form in forms.items() if path != _STDOUT}
    see_to(*files)
    if png is not None:
        see_to_figures("--png")
    options = {"entries": entries, "sources": sources, "tools": tools}
    aged = {} if half_life is None else {"half_life": half_life * _DAY}
    with opened(db) as cache:
        drawn = _reckoned(cache, seeds, **options, **aged)
    for path, form in files.items():
        write(path, form(drawn))
    if as_json:
        print_json(json_of(drawn))
    elif _STDOUT in forms:
        typer.echo(forms[_STDOUT](drawn), nl=False)
    else:
        typer.echo("\n".join([text(drawn), *(f"written to {path}" for path in files)]))


def _reckoned(cache: Cache, seeds: Sequence[str], **options: Any) -> nx.DiGraph:
    """The graph, and where seeds are named, what comes of them."""
    found = cache.propagation(**options)
    return (found.spread(*(the_entry(cache, one).id for one in seeds)) if seeds else found).graph


def _png(drawn: nx.DiGraph) -> bytes:
    picture = BytesIO()
    figure(drawn).savefig(picture, format="png", dpi=150)
    return picture.getvalue()
