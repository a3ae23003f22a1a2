"""Real rewordings: two utterances of one intent, and the retrieval of one served for the other.

The pairs are those of `intents_banking77` with one intent and a similarity of 0.8 or more. Nobody
is in two pairs, and what is asked is not in the index. Each pair is asked in a tenant of its own,
so that only the first of the pair can serve the second; then all of them in one tenant.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.rag.exact_store import CANDIDATES, ExactStore
from evals.rag.lists import SEARCHED, judging, recall_figures
from evals.rag.metrics import by_kind
from evals.rag.texts import intents
from evals.speed.given import Given
from stemma import Cache
from stemma.embedders import LocalEmbedder
from stemma_langchain import LocalEmbeddings

__all__ = ["NEAR", "drawn", "run"]

NEAR = 0.8
K = 4
PAIRS = 300

Pair = tuple[str, str]


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Serve the second of each pair, each in its own tenant and all in one."""
    texts = dict(intents())
    used = random.Random(seed).sample(sorted(texts), scaled(len(texts), max(size, 0.1)))
    vectors = dict(zip(used, LocalEmbedder().embed(used), strict=True))
    pairs = drawn({text: texts[text] for text in used}, vectors, scaled(PAIRS, size, least=5))
    asked = {text for pair in pairs for text in pair}
    store = ExactStore(LocalEmbeddings(Given(vectors)))
    store.add_documents([Document(text, id=text) for text in used if text not in asked])
    told: dict[str, Any] = {
        "utterances": len(store.store), "pairs": len(pairs), "k": K, "candidates": K * CANDIDATES
    }  # fmt: skip
    for name in ("alone", "together"):
        with stemma.open(folder / f"{name}.db", tenant="me", embedder=None) as cache:
            told[name] = _served(cache, store, pairs, alone=name == "alone")
    return Measured(figures=tuple(_figures(told)), details=told)


def drawn(intents: Mapping[str, str], vectors: Mapping[str, Any], count: int) -> list[Pair]:
    """Pairs of one intent that are near, as they come; no text is in two of them.

    Args:
        intents: The intent of each text.
        vectors: The unit vector of each.
        count: How many pairs at most.
    """
    texts = list(intents)
    rows = np.stack([vectors[text] for text in texts])
    left = dict.fromkeys(range(len(texts)))
    pairs: list[Pair] = []
    for one in range(len(texts)):
        if one not in left or len(pairs) == count:
            continue
        near = [
            other
            for other in np.flatnonzero(rows @ rows[one] >= NEAR).tolist()
            if other != one and other in left and intents[texts[other]] == intents[texts[one]]
        ]
        if near:
            pairs.append((texts[one], texts[near[0]]))
            del left[one], left[near[0]]
    return pairs


def _served(
    cache: Cache, store: ExactStore, pairs: Sequence[Pair], *, alone: bool
) -> dict[str, dict[str, float]]:
    """What was said of the lists that the second of each pair was given, and their recall."""
    judged = judging(cache, store, K)
    of_second: list[tuple[str, float]] = []
    for place in range(2):
        for number, pair in enumerate(pairs):
            with cache.using(tenant=str(number) if alone else "all"):
                told = judged(pair[place])
            of_second += [told] if place == 1 else []
    return by_kind(of_second)


def _figures(told: Mapping[str, Any]) -> Iterator[Figure]:
    for name, what, target in (
        ("alone", "served from the other of its pair", 0.6),
        ("together", "served from any other", None),
    ):
        searched = told[name].get(SEARCHED, {"lists": 0})["lists"]
        served = 1 - searched / told["pairs"]
        yield Figure(what=what, value=served, unit="", at_least=target)
        yield from recall_figures(told[name], f"… recall@{K}")
