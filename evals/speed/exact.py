"""How fast a hit is, against what nobody can avoid, and against LangChain's own cache.

Times on a shared machine drift, so every figure is a ratio of medians taken in turns in one run:
a block of calls of ours, a block of the other, over and over. Nothing here is a test that can fail.
"""

from __future__ import annotations

import gc
import json
import random
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration
from rich.console import Console
from rich.progress import track
from rich.table import Table

import stemma
from stemma import Cache, Frame, Source, Ticket, frames
from stemma_langchain import LLMCache
from stemma_langchain.codec import CODEC

__all__ = ["run"]

MODEL = "[('_type', 'openai-chat'), ('model', 'gpt-x'), ('stop', None), ('temperature', 0.0)]"
WORDS = (  # a block of words is easier to read than a column of quoted ones
    "account balance booking card change city cloud column contract data delivery device error "
    "export file graph index invoice key letter limit market message model network node order "
    "page password payment plan price question record region report result route rule schema "
    "server session signal source table team ticket token tool track transfer update user value"
).split()
DIMENSIONS = 384
TURNS = 2_000
BLOCK = 100
"""Calls of one kind in a row: fewer, and each would find the other's data in the processor."""

BATCH = 2_000


PARTS = {"exact": "exact hits", "semantic": "hits by meaning"}


def run(
    *,
    size: float,
    seed: int,
    out: Console,
    part: str | None = None,  # noqa: ARG001 - both are measured together
) -> dict[str, Any]:
    """Measure, print, and give all figures."""
    with tempfile.TemporaryDirectory() as folder:
        exact = _exact(Path(folder), round(100_000 * size), random.Random(seed), out)
    semantic = _semantic(round(10_000 * size), np.random.default_rng(seed))
    results = {"exact": exact, "semantic": semantic}
    out.print(_table(results))
    return results


# ------------------------------------------------------------------------------------ exact hits


def _sentence(source: random.Random, characters: int) -> str:
    words: list[str] = []
    length = 0
    while length < characters:
        words.append(source.choice(WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)


def _prompt(number: int, source: random.Random) -> str:
    system = SystemMessage("You answer from the documents alone, briefly and politely. " * 4)
    return dumps([system, HumanMessage(f"{_sentence(source, 480)} number {number}?")])


def _answer(number: int, source: random.Random) -> list[ChatGeneration]:
    message = AIMessage(
        f"{_sentence(source, 470)} {number}.",
        response_metadata={"finish_reason": "stop", "model_name": "gpt-x"},
        usage_metadata={"input_tokens": 230, "output_tokens": 90, "total_tokens": 320},
    )
    return [ChatGeneration(message=message)]


def _exact(folder: Path, count: int, source: random.Random, out: Console) -> dict[str, Any]:
    path = folder / "answers.db"
    cache = stemma.open(path, tenant="me", embedder=None)
    events: list[str] = []
    cache.listen(lambda event: events.append(event.outcome))
    ours = LLMCache(cache)
    prompts = [_prompt(number, source) for number in range(count)]
    answers = [_answer(number, source) for number in range(count)]
    filled = _fill(cache, ours, prompts, answers, out)
    theirs = _langchain(folder / "langchain.db", prompts, answers)
    keys = [source.randrange(count) for _ in range(min(TURNS, count))]
    ids = [_ticket(ours, prompt).key.id for prompt in prompts]
    raw = _raw(folder / "raw.db", dict(zip(ids, answers, strict=True)))
    gc.collect()
    gc.freeze()

    def ours_once(key: int) -> None:
        assert ours.lookup(prompts[key], MODEL)

    def theirs_once(key: int) -> None:
        assert theirs.lookup(prompts[key], MODEL)

    times = _in_turns(
        {"ours": ours_once, "raw": lambda key: raw(ids[key]), "langchain": theirs_once}, keys
    )
    cache.close()
    gc.unfreeze()
    return {
        "entries": count,
        "prompt_bytes": statistics.median(map(len, prompts[:100])),
        "answer_bytes": statistics.median(len(a[0].text) for a in answers[:100]),
        "put_microseconds": filled / count * 1e6,
        "microseconds": times,
        "times_raw_read": times["ours"] / times["raw"],
        "times_faster_than_langchain": times["langchain"] / times["ours"],
        "events_heard": len(events),
    }


def _fill(
    cache: Cache,
    ours: LLMCache,
    prompts: Sequence[str],
    answers: Sequence[list[ChatGeneration]],
    out: Console,
) -> float:
    """Store everything the way a chain does: in a frame that has read a document."""
    began = time.perf_counter()
    for start in track(range(0, len(prompts), BATCH), "filling", console=out, transient=True):
        values = []
        for prompt, answer in zip(
            prompts[start : start + BATCH], answers[start : start + BATCH], strict=True
        ):
            frame = Frame()
            chunk = Source(document=f"doc-{start}", chunk=f"chunk-{start}", content="0" * 32)
            frame.read_sources([(chunk, "")], frames.marks())
            frames.enter(frame)
            values.append((_ticket(ours, prompt), answer))
            frames.enter(None)
        cache.calls.put_all(values)
    return time.perf_counter() - began


def _ticket(ours: LLMCache, prompt: str) -> Ticket:
    ticket = ours.ticket(prompt, MODEL)
    assert ticket is not None
    return ticket


def _raw(path: Path, answers: dict[str, list[ChatGeneration]]) -> Callable[[str], Any]:
    """The floor: a table of keys and JSON alone, one row read by its key, its JSON decoded."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA mmap_size = 1073741824")
    connection.execute("CREATE TABLE answers (id TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO answers VALUES (?, ?)",
        ((key, CODEC.encode(answer).payload) for key, answer in answers.items()),
    )
    connection.execute("COMMIT")
    cursor = connection.cursor()

    def read(key: str) -> Any:
        row = cursor.execute("SELECT value FROM answers WHERE id = ?", (key,)).fetchone()
        return json.loads(row[0])

    return read


def _langchain(path: Path, prompts: Sequence[str], answers: Sequence[list[Any]]) -> Any:
    """LangChain's SQLiteCache with the same entries, put straight into its table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.cache import SQLiteCache  # noqa: PLC0415 - slow, and only here

        theirs = SQLiteCache(str(path))
    connection = sqlite3.connect(path)
    connection.executemany(
        "INSERT INTO full_llm_cache (prompt, llm, idx, response) VALUES (?, ?, 0, ?)",
        (
            (prompt, MODEL, dumps(answer[0]))
            for prompt, answer in zip(prompts, answers, strict=True)
        ),
    )
    connection.commit()
    connection.close()
    warnings.simplefilter("ignore")
    assert theirs.lookup(prompts[0], MODEL) is not None
    return theirs


# --------------------------------------------------------------------------------- semantic hits


class Given:
    """An embedder whose vectors are given: what is measured is everything but embedding."""

    revision = "given/1"
    quick = frozenset({"fits", "embed"})

    def __init__(self, vectors: dict[str, np.ndarray[Any, Any]]) -> None:
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """The given vectors; a probe of the health check gets one of its own."""
        rows = [self._vectors.get(text) for text in texts]
        return np.stack(
            [_probe(t) if row is None else row for t, row in zip(texts, rows, strict=True)]
        )

    def fits(self, text: str) -> bool:
        """Always."""
        return bool(text) or True


def _probe(text: str) -> np.ndarray[Any, Any]:
    vector = np.random.default_rng(sum(text.encode())).normal(size=DIMENSIONS)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _semantic(count: int, rng: np.random.Generator) -> dict[str, Any]:
    stored = rng.normal(size=(count, DIMENSIONS)).astype(np.float32)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    asked = stored + rng.normal(scale=0.01, size=stored.shape).astype(np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    names = [
        f"how do I reset the {WORDS[n % len(WORDS)]} of my {WORDS[n // len(WORDS) % len(WORDS)]}"
        for n in range(count)
    ]
    texts = [f"{name} {_letters(n)}?" for n, name in enumerate(names)]
    reworded = [text.replace("how do I", "how can I") for text in texts]
    vectors = dict(zip((*texts, *reworded), (*stored, *asked), strict=True))
    with (
        tempfile.TemporaryDirectory() as folder,
        stemma.open(Path(folder) / "s.db", tenant="me", embedder=Given(vectors)) as cache,
    ):
        for start in range(0, count, BATCH):
            values = [(cache.answers.ticket(text), text) for text in texts[start : start + BATCH]]
            cache.answers.put_all(values)
        order = [int(n) for n in rng.integers(0, count, size=min(TURNS, count))]
        cache.answers.lookup(reworded[0])
        gc.collect()

        def ours(n: int) -> None:
            hit = cache.answers.lookup(reworded[n])
            assert hit.hit
            assert hit.tier == "semantic"

        times = _in_turns({"ours": ours, "product": lambda n: stored @ asked[n]}, order)
    return {
        "entries": count,
        "microseconds": times,
        "times_bare_product": times["ours"] / times["product"],
    }


def _letters(number: int) -> str:
    """A word of its own for each number: guards compare words, and digits would never differ."""
    letters = ""
    while number >= 0:
        letters = chr(ord("a") + number % 26) + letters
        number = number // 26 - 1
    return f"zone {letters}q"


# ------------------------------------------------------------------------------------- measuring


def _in_turns(calls: dict[str, Callable[[int], Any]], keys: Sequence[int]) -> dict[str, float]:
    """Median microseconds of each, called in turns of `BLOCK` calls."""
    for key in keys[:BLOCK]:
        for call in calls.values():
            call(key)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for start in range(0, len(keys), BLOCK):
        for name, call in calls.items():
            for key in keys[start : start + BLOCK]:
                frames.enter(Frame())
                began = time.perf_counter()
                call(key)
                taken[name].append(time.perf_counter() - began)
    frames.enter(None)
    return {name: statistics.median(times) * 1e6 for name, times in taken.items()}


def _table(results: dict[str, Any]) -> Table:
    exact, semantic = results["exact"], results["semantic"]
    us = exact["microseconds"]
    table = Table("what", "figure", "target", title="Speed")
    table.add_row(
        f"exact hit through LLMCache, {exact['entries']:,} entries", f"{us['ours']:.1f} µs", ""
    )
    table.add_row("… against a raw read and JSON", f"{exact['times_raw_read']:.2f} ×", "≤ 3 ×")
    faster = exact["times_faster_than_langchain"]
    table.add_row("… against LangChain's SQLiteCache", f"{faster:.1f} × faster", "≥ 7 × faster")
    table.add_row("put, in batches", f"{exact['put_microseconds']:.0f} µs", "")
    table.add_row(
        f"semantic hit, {semantic['entries']:,} entries, embedding apart",
        f"{semantic['microseconds']['ours']:.0f} µs",
        "",
    )
    table.add_row(
        "… against the bare product", f"{semantic['times_bare_product']:.2f} ×", "≤ 1.6 ×"
    )
    return table
