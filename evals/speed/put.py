"""One put at a time, with vector, edges and labels, against a bare insert of as many bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import stemma
from evals.measuring import Figure, Measured, in_turns, scaled
from evals.speed.given import Given, answer, question
from evals.speed.vectors import units
from stemma import Cache, Frame, Miss, Source, Ticket, frames

__all__ = ["one_by_one", "run", "tickets"]

_SYNCHRONOUS = {"normal": "NORMAL", "full": "FULL"}


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """At both durabilities; each put is a transaction of its own, as after a miss."""
    count = scaled(4_000, size, least=20)
    found = {name: _against_bare(folder, name, count, seed) for name in _SYNCHRONOUS}
    figures = []
    for name, one in found.items():
        us = one["microseconds"]
        figures += [
            Figure(
                what=f"put, embedding apart, durability {name}",
                value=us["put"] / 1e3,
                unit="ms",
                at_most=1 if name == "normal" else None,
            ),
            Figure(what="… of a bare insert and commit", value=one["times_bare"], unit="×"),
        ]
    return Measured(figures=figures, details={"entries": count, **found})


def tickets(cache: Cache, texts: Sequence[str]) -> list[Ticket]:
    """Of misses by meaning, in a frame each that has read an entry and four chunks."""
    given = []
    for number, text in enumerate(texts):
        frame = Frame()
        with frames.entered(frame):
            cache.retrievals.get_or_compute(f"step {number % 50}", lambda: ["…"], index="docs/1")
            chunks = [f"chunk-{4 * (number % 200) + n}" for n in range(4)]
            sources = [Source(document=f"d-{one}", chunk=one, content="0" * 32) for one in chunks]
            frame.read_sources([(one, "") for one in sources], frames.marks())
            missed = cache.answers.lookup(text)
        assert isinstance(missed, Miss), missed
        assert missed.ticket is not None
        assert missed.ticket.vector is not None
        given.append(missed.ticket)
    return given


def one_by_one(cache: Cache, texts: Sequence[str]) -> Callable[[int], None]:
    """Stores the answer to the n-th of some questions, with everything an entry can have."""
    with cache.using(session="s-17", user="u-4", tags=("shop", "orders"), writer="agent"):
        waiting = tickets(cache, texts)

    def put(number: int) -> None:
        stored = cache.answers.put(waiting[number], answer(number))
        assert stored.entry is not None, stored

    return put


def _against_bare(folder: Path, durability: str, count: int, seed: int) -> dict[str, Any]:
    vectors = units(np.random.default_rng(seed), count)
    texts = [question(number) for number in range(count)]
    embedder = Given(dict(zip(texts, vectors, strict=True)))
    path = folder / f"{durability}.db"
    with (
        stemma.open(path, tenant="me", embedder=embedder, durability=durability) as cache,
        _bare(folder / f"bare-{durability}.db", _SYNCHRONOUS[durability]) as insert,
    ):
        put = one_by_one(cache, texts)
        numbers = vectors.astype(np.float16)
        times = in_turns(
            {"put": put, "bare": lambda n: insert(texts[n], answer(n), numbers[n].tobytes())},
            range(count),
            once=True,
        )
    return {"microseconds": times, "times_bare": times["put"] / times["bare"]}


@contextmanager
def _bare(path: Path, synchronous: str) -> Iterator[Callable[[str, str, bytes], Any]]:
    """The floor: one row of text, answer and vector, inserted and committed."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE answers (id TEXT PRIMARY KEY, value TEXT, vector BLOB)")

        def insert(*row: Any) -> None:
            connection.execute("INSERT INTO answers VALUES (?, ?, ?)", row)

        yield insert
