"""The first hit of a fresh process over a file that is there, and the memory it then takes."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import stemma
from evals.speed.given import NEAR, Given, clustered, fill, noisy, question, reworded
from evals.speed.measuring import Figure, Measured, fresh, memory, scaled
from stemma import Hit

__all__ = ["first_lookup", "run", "started"]


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """With 100,000 entries of one partition, against a file without any."""
    count = scaled(100_000, size, least=20)
    rng = np.random.default_rng(seed)
    rows = clustered(rng, count)
    texts = [question(number) for number in range(count)]
    path = folder / "cache.db"
    embedder = Given(dict(zip(texts, rows, strict=True)))
    with stemma.open(path, tenant="me", embedder=embedder) as cache:
        fill(cache, texts)
    found = started(path, texts[0], noisy(rng, rows[:1], NEAR)[0], count)
    return Measured(
        figures=(
            Figure(
                what=f"first hit by meaning, {count:,} entries, after imports",
                value=found["seconds"],
                unit="s",
                at_most=0.8,
            ),
            Figure(what="… of which the processor", value=found["processor_seconds"], unit="s"),
            Figure(what="importing Stemma", value=found["import_seconds"], unit="s"),
            Figure(
                what="memory an entry, beyond a cache of one",
                value=found["bytes_an_entry"],
                unit="bytes",
                at_most=1_024,
            ),
            Figure(
                what="… pages of the file mapped besides",
                value=found["mapped_bytes_an_entry"],
                unit="bytes",
            ),
        ),
        details=found,
    )


def started(path: Path, text: str, vector: Any, count: int) -> dict[str, Any]:
    """Seconds from opening a file to the first hit by meaning in a fresh process, and memory.

    The memory of a process that has asked a cache of one entry the same is taken off. Pages of
    the file that lie in memory are the system's, which takes them back when it needs them: they
    are told apart.

    Args:
        path: The file of a cache.
        text: A question that is stored there; it is asked in other words.
        vector: Near to that of the question.
        count: How many entries the file holds.
    """
    with TemporaryDirectory() as folder:
        single, asked = Path(folder) / "single.db", Path(folder) / "asked.npy"
        np.save(asked, vector)
        with stemma.open(single, tenant="me", embedder=Given({text: vector})) as cache:
            fill(cache, [text])
        one, full = (
            fresh(__name__, "first_lookup", str(file), reworded(text), str(asked))
            for file in (single, path)
        )
    assert one["hit"]
    assert full["hit"]
    return {
        "entries": count,
        "seconds": full["seconds"],
        "processor_seconds": full["processor_seconds"],
        "import_seconds": full["import_seconds"],
        "bytes_an_entry": (full["own"] - one["own"]) / count,
        "mapped_bytes_an_entry": (full["mapped"] - one["mapped"]) / count,
    }


def first_lookup(path: str, text: str, vector: str) -> dict[str, Any]:
    """Open a cache and ask one question; called in a fresh process."""
    embedder = Given({text: np.load(vector)})
    began, worked = time.perf_counter(), time.process_time()
    cache = stemma.open(path, tenant="me", embedder=embedder)
    found = cache.answers.lookup(text)
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    gc.collect()
    held = memory()
    cache.close()
    return {
        "hit": isinstance(found, Hit),
        "seconds": seconds,
        "processor_seconds": worked,
        **held,
    }
