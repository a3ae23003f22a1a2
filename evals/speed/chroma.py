"""Whole lookups by meaning against an embedded Chroma that is asked for one tenant's entries."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from evals.measuring import Figure, Measured, scaled
from evals.speed.given import Questions, answer, in_batches
from evals.speed.semantic import Asked, by_meaning
from stemma import ThresholdPolicy

__all__ = ["run"]


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Ours does more: it guards, judges what the answer was built on, and journals."""
    count = scaled(10_000, size, least=20)
    chroma: Asked = partial(_chroma, folder / "chroma")
    found = by_meaning(folder, count, turns=200, seed=seed, other=chroma)
    us = found["microseconds"]
    us["chroma"] = us.pop("other")
    found["times_faster_than_chroma"] = us["chroma"] / us["hit"]
    return Measured(
        figures=(
            Figure(
                what=f"filtered query of Chroma, {found['entries']:,} entries",
                value=us["chroma"],
                unit="µs",
            ),
            Figure(what="hit by meaning, embedding apart", value=us["hit"], unit="µs"),
            Figure(
                what="… faster than Chroma",
                value=found["times_faster_than_chroma"],
                unit="×",
                at_least=20,
            ),
        ),
        details=found,
    )


def _chroma(folder: Path, given: Questions) -> Any:
    """The same entries in a collection with cosine distances; gives what asks it."""
    import chromadb  # noqa: PLC0415 - slow, and only here
    from chromadb.config import Settings  # noqa: PLC0415

    client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
    collection = client.create_collection("answers", metadata={"hnsw:space": "cosine"})
    for batch in in_batches(len(given.stored)):
        collection.add(
            ids=[str(number) for number in batch],
            embeddings=given.rows[batch.start : batch.stop],
            documents=[answer(number) for number in batch],
            metadatas=[{"tenant": "me"} for _ in batch],
        )
    asked = [given.asked[text] for text in given.near]
    depth = ThresholdPolicy().depth

    def query(number: int) -> Any:
        found = collection.query(
            query_embeddings=asked[number][None], n_results=depth, where={"tenant": "me"}
        )
        assert found["ids"][0]
        return found

    return query
