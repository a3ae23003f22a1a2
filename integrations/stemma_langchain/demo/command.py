"""`stemma demo`: the whole thing on a real corpus with real models, on this machine."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from openai import OpenAIError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import stemma
from stemma.embedders.local import LocalEmbedder
from stemma.errors import StemmaError, UsageError
from stemma_langchain.demo.chain import build
from stemma_langchain.demo.corpus import Corpus, folder_corpus, networkx_corpus, questions
from stemma_langchain.demo.report import show
from stemma_langchain.demo.server import Endpoint, EndpointModel, LocalModel
from stemma_langchain.demo.story import PHASES, Story, tell

__all__ = ["demo", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to the `stemma` application."""
    app.command()(demo)


def demo(  # noqa: PLR0917 - a command's options, given by name
    docs: Annotated[Path | None, typer.Option(help="A folder of Markdown or text.")] = None,
    base_url: Annotated[str | None, typer.Option(help="An OpenAI-compatible endpoint.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's name there.")] = None,
    api_key: Annotated[str, typer.Option(envvar="OPENAI_API_KEY", help="Its key.")] = "none",
    db: Annotated[Path | None, typer.Option(help="Keep the cache in this new file.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures here.")
    ] = None,
) -> None:
    """A real RAG chain, cold and warm: what is cached, what is saved, what an edit takes back.

    Without options: the documentation inside networkx, a local embedding model, a local language
    model, an embedded Chroma collection. Nothing leaves this machine.
    """
    if (base_url is None) != (model is None):
        raise UsageError("give --base-url and --model together, or neither for the local model")
    if db is not None and db.exists():
        raise UsageError(f"{db} exists; the demo begins with an empty cache, so name a new file")
    corpus = networkx_corpus() if docs is None else folder_corpus(docs)
    out = Console(emoji=False)
    for skipped in corpus.skipped:
        out.print(f"left out: {skipped.id} ({skipped.reason})", style="dim", markup=False)
    with ExitStack() as stack:
        endpoint = _endpoint(stack, base_url, model, api_key, out)
        try:
            story = _told(stack, corpus, endpoint, db, out)
        except OpenAIError as error:
            raise StemmaError(
                f"the endpoint {endpoint.base_url} did not answer: {error}"
            ) from error
    show(story, out)
    if json_file is not None:
        json_file.write_text(json.dumps(story.as_json(), indent=2), encoding="utf-8")
        out.print(f"written to {json_file}", markup=False)


def _endpoint(
    stack: ExitStack, base_url: str | None, model: str | None, api_key: str, out: Console
) -> Endpoint:
    if base_url is not None and model is not None:
        return EndpointModel(base_url=base_url, model=model, api_key=api_key)
    with out.status("loading the language model"):
        return stack.enter_context(LocalModel())


def _told(
    stack: ExitStack, corpus: Corpus, endpoint: Endpoint, db: Path | None, out: Console
) -> Story:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
    embedder = LocalEmbedder()
    cache = stack.enter_context(
        stemma.open(db if db is not None else folder / "answers.db", embedder=embedder)
    )
    rag = build(cache, folder / "chroma", embedder, endpoint)
    progress = stack.enter_context(
        Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=out,
        )
    )
    indexing = progress.add_task("indexing", total=None)
    asking = progress.add_task("asking", total=PHASES * len(questions(corpus)))
    return tell(
        cache,
        rag,
        corpus,
        indexed=lambda done, total: progress.update(indexing, completed=done, total=total),
        advance=lambda phase: progress.update(asking, advance=1, description=f"asking: {phase}"),
    )
