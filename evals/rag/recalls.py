"""What taking back costs on SQLite: by how much was built on one source, and as documents come in.

Cached retrievals are made by the cached retriever itself, over an index of random vectors that lie
in groups, and new chunks come in through the hook of a watched store, without the store's own work.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.rag.exact_store import CANDIDATES, ExactStore, cached_retriever
from evals.speed.given import Given, in_batches
from evals.speed.vectors import Rows, clustered, like_texts
from stemma import Cache, Frame, Hit, Source, Ticket, content_digest, frames
from stemma_langchain import LocalEmbeddings

__all__ = ["run"]

K = 4
FEW, MANY = 1_000, 100_000
RETRIEVALS, CHUNKS, INDEXED = 10_000, 10_000, 10_000


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Recalls of one source, and the arrival of many chunks."""
    told: dict[str, Any] = {"recalls": [], "k": K, "candidates": K * CANDIDATES}
    for full in (FEW, MANY):
        count = scaled(full, size, least=5)
        seconds = _recalled(folder / f"{full}.db", count)
        told["recalls"].append({"dependants": count, "seconds": seconds})
    told["arrivals"] = _arrived(folder / "arrivals.db", size, np.random.default_rng(seed))
    few, many = told["recalls"]
    arrivals = told["arrivals"]
    return Measured(
        figures=(
            Figure(
                what=f"recall of {few['dependants']:,} dependants",
                value=few["seconds"] * 1e3,
                unit="ms",
                at_most=50,
            ),
            Figure(
                what=f"recall of {many['dependants']:,} dependants",
                value=many["seconds"],
                unit="s",
                at_most=3,
            ),
            Figure(
                what=f"{arrivals['chunks']:,} chunks come in, {arrivals['retrievals']:,} "
                f"retrievals cached, {arrivals['taken_back']:,} of them taken back",
                value=arrivals["seconds"],
                unit="s",
            ),
            Figure(what="… a chunk", value=arrivals["seconds_a_chunk"] * 1e6, unit="µs"),
            Figure(
                what="… the first that comes in, which reads what is cached",
                value=arrivals["seconds_of_the_first"],
                unit="s",
            ),
        ),
        details=told,
    )


def _recalled(file: Path, count: int) -> float:
    """Seconds to take back everything that was built on one document, directly and indirectly.

    Of ten answers nine were built on a chunk of it, the tenth on the first of those. Each was given
    in a run of its own: what is stored in a run is a parent of what it stores later.
    """
    text = "what the document says"
    source = Source(document="the document", chunk="a chunk", content=content_digest(text))
    with stemma.open(file, tenant="me", embedder=None) as cache:

        def ticket(number: int) -> Ticket:
            with frames.entered(Frame()) as frame:
                if number >= direct:
                    assert isinstance(cache.answers.lookup(_question(0)), Hit)
                else:
                    frame.read_sources([(source, text)], frames.marks())
                return cache.answers.ticket(_question(number))

        direct = count - count // 10
        for batch in (*in_batches(direct), *in_batches(count, direct)):
            cache.answers.put_all([(ticket(one), f"answer {one}") for one in batch])
        began = time.perf_counter()
        receipt = cache.recall(source="the document")
        seconds = time.perf_counter() - began
        assert len(receipt) == count, f"{len(receipt)} of {count} were taken back"
    return seconds


def _question(number: int) -> str:
    return f"question {number}?"


def _arrived(file: Path, size: float, rng: np.random.Generator) -> dict[str, Any]:
    indexed, asked, added = (scaled(full, size, least=20) for full in (INDEXED, RETRIEVALS, CHUNKS))
    rows = rng.permutation(clustered(rng, indexed + asked + added, like_texts(rng)))
    texts = [f"text {number}" for number in range(indexed + asked)]
    store = ExactStore(LocalEmbeddings(Given(dict(zip(texts, rows, strict=False)))))
    store.add_documents([Document(text, id=text) for text in texts[:indexed]])
    with stemma.open(file, tenant="me", embedder=None) as cache:
        retriever = cached_retriever(cache, store, K)
        for query in texts[indexed:]:
            retriever.invoke(query)
        new = rows[indexed + asked :]
        index = retriever.index_identity()
        first, _ = _timed(cache, index, new[:1])
        seconds, taken = _timed(cache, index, new[1:])
        size_of_file = file.stat().st_size
    return {
        "indexed": indexed,
        "retrievals": asked,
        "chunks": len(new) - 1,
        "seconds_of_the_first": first,
        "seconds": seconds,
        "seconds_a_chunk": seconds / (len(new) - 1),
        "taken_back": taken,
        "bytes_a_retrieval": size_of_file / asked,
    }


def _timed(cache: Cache, index: str, vectors: Rows) -> tuple[float, int]:
    began = time.perf_counter()
    receipt = cache.documents_changed(index, added=list(vectors))
    return time.perf_counter() - began, len(receipt)
