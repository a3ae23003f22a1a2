"""The demo's story as tables, for people."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from stemma_langchain.demo.story import FIRST, SECOND, Phase, Story

__all__ = ["show"]

_NODES = ("answer", "call", "rerank", "retrieval", "embedding")


def show(story: Story, out: Console) -> None:
    """Print the story."""
    out.print(
        f"\n[bold]{escape(story.corpus)}[/bold]: {story.documents} documents, "
        f"{story.chunks} chunks, indexed in {story.indexing:.1f} s\n"
    )
    first = story.phase("cold").asked[0]
    out.print(f"[bold]asked[/bold]    {escape(first.question)}")
    out.print(f"[bold]answered[/bold] {escape(first.answer.strip())}")
    out.print(
        "(a very small model's own words: what counts here is when it is asked)\n", style="dim"
    )
    out.print(_phases(story))
    out.print(_nodes(story))
    _reasons(story, out)
    out.print(Panel(escape(story.tree), title="The family tree of one answer", expand=False))
    _edit(story, out)
    _tenants(story, out)


def _phases(story: Story) -> Table:
    table = Table(
        "phase", "tenant", "asked", "exact", "meaning", "computed", "median",
        title="The whole chain",
    )  # fmt: skip
    for phase in story.phases:
        table.add_row(
            phase.name,
            phase.tenant,
            str(len(phase.asked)),
            str(phase.count("exact")),
            str(phase.count("semantic")),
            str(len(phase.computed)),
            _time(phase.median),
        )
    cold, again, near = (story.phase(name).median for name in ("cold", "again", "reworded"))
    table.caption = (
        f"again: {cold / again:,.0f} times faster than cold; reworded: {cold / near:,.0f} times"
    )
    return table


def _nodes(story: Story) -> Table:
    table = Table(
        "node", "exact", "meaning", "missed", "cold", "warm", "tokens", "seconds",
        title="Node by node",
        caption="tokens and seconds are what the hits saved; of reranking, pairs are counted",
    )  # fmt: skip
    for node in _NODES:
        rows = [row for row in story.stats if row["node"] == node]
        misses: Counter[str] = Counter()
        for row in rows:
            misses.update(row["misses"])
        exact, semantic = sum(r["exact"] for r in rows), sum(r["semantic"] for r in rows)
        times = story.times.get(node)
        table.add_row(
            node,
            str(exact),
            str(semantic),
            str(misses.total()),
            _time(times.cold if times is not None else None),
            _time(times.warm if times is not None else None),
            f"{sum(r['tokens'] for r in rows):,}",
            f"{sum(r['seconds'] for r in rows):.1f}",
        )
    return table


def _reasons(story: Story, out: Console) -> None:
    out.print("\n[bold]Why it missed[/bold]")
    for node in _NODES:
        reasons: Counter[str] = Counter()
        for row in story.stats:
            if row["node"] == node:
                reasons.update(row["misses"])
        told = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        out.print(f"  {node}: {told}", highlight=False)


def _edit(story: Story, out: Console) -> None:
    edit, after = story.edit, story.phase("after the edit")
    out.print(f"\n[bold]Edited[/bold] {escape(edit.document)}: {escape(str(edit.receipt))}")
    for question in edit.questions:
        out.print(f"  taken back: {escape(question)}")
    same = set(after.computed) == set(edit.questions)
    verdict = "exactly these" if same else "NOT exactly these"
    out.print(f"  asked again by {FIRST}: {verdict} were computed anew ({len(after.computed)})")


def _tenants(story: Story, out: Console) -> None:
    other: Phase = story.phase("other tenant")
    crossed = other.count("exact", "semantic")
    out.print(
        f"\n[bold]{SECOND}[/bold] asked what [bold]{FIRST}[/bold] had asked: "
        f"{crossed} answers crossed over, {len(other.computed)} were computed\n"
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.2f} ms"
