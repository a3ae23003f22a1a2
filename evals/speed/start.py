"""The first hit of a fresh process over a file that is there, and the memory it then takes."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import numpy as np

import stemma
from evals.measuring import Figure, Measured, fresh, memory, scaled
from evals.speed.given import Given, fill, question, reworded
from evals.speed.vectors import NEAR, clustered, noisy
from stemma import Hit

__all__ = ["FirstHit", "first_lookup", "run"]


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """With 100,000 entries of one partition, against a file without any."""
    count = scaled(100_000, size, least=20)
    rng = np.random.default_rng(seed)
    rows = clustered(rng, count)
    texts = [question(number) for number in range(count)]
    path = folder / "cache.db"
    embedder = Given(dict(zip(texts, rows, strict=True)))
    with stemma.open(path, tenant="me", embedder=embedder, policy="threshold") as cache:
        fill(cache, texts)
    found = FirstHit(folder, texts[0], noisy(rng, rows[:1], NEAR)[0]).of(path, count)
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


class FirstHit:
    """Asks one question in fresh processes, of caches that hold one that is near to it.

    Args:
        folder: Where a cache of that one entry is made, whose process is measured first.
        text: The question that the caches hold. It is asked in other words.
        vector: Near to that of the question.
    """

    def __init__(self, folder: Path, text: str, vector: Any) -> None:
        self._text = reworded(text)
        self._vector = folder / "asked.npy"
        np.save(self._vector, vector)
        single = folder / "single.db"
        with stemma.open(
            single, tenant="me", embedder=Given({text: vector}), policy="threshold"
        ) as cache:
            fill(cache, [text])
        self._single = self._ask(single)

    def of(self, path: Path, count: int) -> dict[str, Any]:
        """Seconds from opening a file of so many entries to the hit, and memory an entry.

        What the process takes for a cache of one entry is taken off. Pages of the file that lie
        in memory are the system's, which takes them back when it needs them: they are told apart.
        """
        found = self._ask(path)
        return {
            "entries": count,
            "seconds": found["seconds"],
            "processor_seconds": found["processor_seconds"],
            "import_seconds": found["import_seconds"],
            "bytes_an_entry": (found["own"] - self._single["own"]) / count,
            "mapped_bytes_an_entry": (found["mapped"] - self._single["mapped"]) / count,
        }

    def _ask(self, path: Path) -> dict[str, Any]:
        found = fresh(__name__, "first_lookup", str(path), self._text, str(self._vector))
        assert found["hit"]
        return found


def first_lookup(path: str, text: str, vector: str) -> dict[str, Any]:
    """Open a cache and ask one question; called in a fresh process."""
    embedder = Given({text: np.load(vector)})
    began, worked = time.perf_counter(), time.process_time()
    cache = stemma.open(path, tenant="me", embedder=embedder, policy="threshold")
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
