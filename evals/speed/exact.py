"""How fast an exact hit is, against a raw read of a row, and against LangChain's own cache."""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.load import dumps
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration

import stemma
from evals.measuring import Figure, Measured, in_turns, scaled
from evals.speed.given import WORDS, in_batches
from stemma import Cache, Frame, Source, Ticket, frames
from stemma_langchain import LLMCache
from stemma_langchain.codec import CODEC

__all__ = ["run"]

MODEL = "[('_type', 'openai-chat'), ('model', 'gpt-x'), ('stop', None), ('temperature', 0.0)]"
COUNT, TURNS = 100_000, 2_000


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Prompts of 1 KB and answers of half of that, put and read as a chain does."""
    found = _exact(folder, scaled(COUNT, size, least=20), random.Random(seed))
    us, entries = found["microseconds"], f"{found['entries']:,} entries"
    return Measured(
        figures=(
            Figure(what=f"exact hit through LLMCache, {entries}", value=us["ours"], unit="µs"),
            Figure(
                what="… of a raw read and its JSON",
                value=found["times_raw_read"],
                unit="×",
                at_most=3,
            ),
            Figure(
                what="… faster than LangChain's SQLiteCache",
                value=found["times_faster_than_langchain"],
                unit="×",
                at_least=7,
            ),
            Figure(what="put, in batches", value=found["put_microseconds"], unit="µs"),
        ),
        details=found,
    )


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


def _exact(folder: Path, count: int, source: random.Random) -> dict[str, Any]:
    path = folder / "answers.db"
    cache = stemma.open(path, tenant="me", embedder=None)
    events: list[str] = []
    cache.listen(lambda event: events.append(event.outcome))
    ours = LLMCache(cache)
    prompts = [_prompt(number, source) for number in range(count)]
    answers = [_answer(number, source) for number in range(count)]
    filled = _fill(cache, ours, prompts, answers)
    theirs = _langchain(folder / "langchain.db", prompts, answers)
    keys = [source.randrange(count) for _ in range(min(TURNS, count))]
    ids = [_ticket(ours, prompt).key.id for prompt in prompts]
    raw = _raw(folder / "raw.db", dict(zip(ids, answers, strict=True)))

    def ours_once(key: int) -> None:
        assert ours.lookup(prompts[key], MODEL)

    def theirs_once(key: int) -> None:
        assert theirs.lookup(prompts[key], MODEL)

    times = in_turns(
        {"ours": ours_once, "raw": lambda key: raw(ids[key]), "langchain": theirs_once}, keys
    )
    cache.close()
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
) -> float:
    """Store everything the way a chain does: in a frame that has read a document."""
    began = time.perf_counter()
    for batch in in_batches(len(prompts)):
        values = []
        for number in batch:
            frame = Frame()
            place = batch.start
            chunk = Source(document=f"doc-{place}", chunk=f"chunk-{place}", content="0" * 32)
            frame.read_sources([(chunk, "")], frames.marks())
            frames.enter(frame)
            values.append((_ticket(ours, prompts[number]), answers[number]))
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
