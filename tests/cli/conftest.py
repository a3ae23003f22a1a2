"""The command as a shell runs it, and a small cache file to look into."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import stemma
from stemma import Source, content_digest, frames
from stemma.cli import main as command

QUESTION = "Until when can I cancel my order?"
ANSWER = "For 30 days [bold]after[/bold] buying."


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def stemma_(monkeypatch, capsys):
    """Runs `stemma …` in this process, and gives its exit status and what it printed."""
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.delenv("STEMMA_DB", raising=False)
    monkeypatch.setattr(command.app, "registered_commands", list(command.app.registered_commands))

    def run(*words) -> Ran:
        monkeypatch.setattr(sys, "argv", ["stemma", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            command.main()
        out, err = capsys.readouterr()
        return Ran(ended.value.code or 0, out, err)

    return run


@dataclass(frozen=True)
class Made:
    """A cache file and the ids of what is in it."""

    path: Path
    retrieval: str
    answer: str
    shipping: str
    other: str


@pytest.fixture
def made(tmp_path) -> Made:
    path = tmp_path / "answers.db"
    text = "Orders can be cancelled for 30 days."
    chunk = Source(document="terms.md", chunk="terms.md#3", content=content_digest(text))
    with stemma.open(path, tenant="acme", embedder=None) as cache:
        with cache.trace() as frame:
            frame.read_sources([(chunk, text)], frames.marks())
            found = cache.retrievals.get_or_compute("cancel", lambda: [text], index="shop/1")
            answer = cache.answers.get_or_compute(QUESTION, lambda: ANSWER)
        with cache.using(tags=["ship[ping]"], writer="bot-2", subject="canada"):
            shipping = cache.calls.get_or_compute(
                "Do you ship to Canada?", lambda: "Yes.", model="gpt-x"
            )
        with cache.using(tenant="globex"):
            other = cache.answers.get_or_compute("What is on sale?", lambda: "Tea.")
        cache.answers.lookup(QUESTION)
    stored = (found, answer, shipping, other)
    return Made(path, *(served.stored.entry.id for served in stored))
