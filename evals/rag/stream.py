"""A stream of questions through a retrieval chain with the cache and without, request by request.

Each request is asked of both chains in turn, so that times drift alike. What the cache gave is
compared with a fresh exact search for the request's own vector; what it saved, with the most that
could be saved of the stream.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.rag.chain import Answer, cached, uncached
from evals.rag.counted import CountedEmbeddings, CountedReranker
from evals.rag.exact_store import CANDIDATES, ExactStore
from evals.rag.lists import SEARCHED, recall_figures
from evals.rag.metrics import by_kind, mean, ndcg, recall, reciprocal_rank
from evals.rag.requests import Request, ceilings, drawn
from evals.rag.texts import Xquad, xquad
from evals.speed.given import Given
from stemma import Embedder
from stemma.embedders import LocalEmbedder
from stemma.rerankers import MaxSimReranker, Reranker
from stemma_langchain import CachedEmbeddings, LocalEmbeddings

__all__ = ["run"]

REQUESTS = 5_000
MEMORY = 512 * 1024**2
"""Bytes of token vectors that a reranker keeps: room for all passages, so that neither chain is the
slower for it."""

K, DEEP = 4, 10
"""How many documents the chain asks for; and for nDCG and reciprocal rank at 10."""

CERTAIN = ("exact", "proven")


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """A stream that went through both chains.

    Args:
        requests: The stream.
        with_cache: What the chain with the cache gave, request by request.
        without: What the other one gave.
        saved: Which share of each step's work the cache saved.
        vectors: Of each text that was asked.
        similarities: Of a text to every document, by the document's id.
    """

    requests: Sequence[Request]
    with_cache: Sequence[Answer]
    without: Sequence[Answer]
    saved: Mapping[str, float]
    vectors: Mapping[str, Any]
    similarities: Callable[[str], dict[str, float]]


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """The whole chain at k = 4; then retrieval alone at k = 10, for nDCG and reciprocal rank."""
    texts = _part_of(xquad(), size)
    requests = drawn(texts.questions, scaled(REQUESTS, size, least=20), random.Random(seed))
    embedder = LocalEmbedder()
    plain = CountedEmbeddings(LocalEmbeddings(embedder))
    store = ExactStore(plain)
    store.add_documents([Document(text, id=one) for one, text in texts.passages.items()])
    rerankers = [MaxSimReranker(embedder, memory=MEMORY) for _ in range(2)]
    replayed = _replayed(
        folder / "chain.db", store, requests, embedder=embedder, rerankers=rerankers, k=K
    )
    most = ceilings(requests, (pair for answer in replayed.without for pair in answer.pairs))
    known = Given(replayed.vectors)
    deep = _replayed(
        folder / "deep.db", store, requests, embedder=known, rerankers=rerankers, k=DEEP
    )
    told = {
        "requests": len(requests),
        "passages": len(texts.passages),
        "questions": len(texts.questions),
        "k": K,
        "candidates": K * CANDIDATES,
        "lists": _recalls(replayed, K),
        "lists_at_10": _recalls(deep, DEEP),
        "rewordings": _rewordings(replayed),
        "saved": dict(replayed.saved),
        "ceilings": asdict(most),
        "milliseconds": _times(replayed),
        "quality": _quality(deep, texts),
    }
    return Measured(figures=tuple(_figures(told)), details=told)


def _part_of(texts: Xquad, size: float) -> Xquad:
    """The first questions, their passages, and as many others as the size allows."""
    questions = texts.questions[: scaled(len(texts.questions), size, least=6)]
    needed = {one for question in questions for one in question.relevant}
    room = scaled(len(texts.passages), size, least=40)
    others = [one for one in texts.passages if one not in needed][: max(0, room - len(needed))]
    kept = needed.union(others)
    return Xquad(
        passages={one: text for one, text in texts.passages.items() if one in kept},
        questions=questions,
    )


def _replayed(
    file: Path,
    store: ExactStore,
    requests: Sequence[Request],
    *,
    embedder: Embedder,
    rerankers: Sequence[Reranker],
    k: int,
) -> Replayed:
    plain, ours = (CountedEmbeddings(LocalEmbeddings(embedder)) for _ in range(2))
    scored = [CountedReranker(one) for one in rerankers]
    bare = ExactStore(plain, like=store)
    with stemma.open(file, tenant="me", embedder=None) as cache:
        mine = ExactStore(CachedEmbeddings(cache, ours), like=store)
        chains = uncached(bare, scored[0], k), cached(cache, mine, scored[1], k)
        without, with_cache = [], []
        for request in requests:
            without.append(chains[0].ask(request.text))
            with_cache.append(chains[1].ask(request.text))
    return Replayed(
        requests=requests,
        with_cache=with_cache,
        without=without,
        saved={
            "embeddings": 1 - ours.texts / plain.texts,
            "searches": 1 - mine.searches / bare.searches,
            "pairs": 1 - scored[1].pairs / scored[0].pairs,
        },
        vectors=plain.queries,
        similarities=lambda text: bare.similarities(plain.queries[text]),
    )


def _recalls(replayed: Replayed, k: int) -> dict[str, dict[str, float]]:
    return by_kind(
        (answer.list, recall(answer.found, replayed.similarities(request.text), k))
        for request, answer in zip(replayed.requests, replayed.with_cache, strict=True)
    )


def _rewordings(replayed: Replayed) -> dict[str, int]:
    """Of the rewordings that are new, of a question that is not: how many were served."""
    texts: set[str] = set()
    questions: set[int] = set()
    counted: Counter[str] = Counter()
    for request, answer in zip(replayed.requests, replayed.with_cache, strict=True):
        if request.question in questions and request.text not in texts:
            counted[answer.list] += 1
        texts.add(request.text)
        questions.add(request.question)
    return dict(counted)


def _times(replayed: Replayed) -> dict[str, float]:
    """Medians: what had to be searched, what had been asked before, and the same without cache."""
    cold = [answer.seconds for answer in replayed.with_cache if answer.list == SEARCHED]
    warm = [answer.seconds for answer in replayed.with_cache if answer.tier == "exact"]
    near = [answer.seconds for answer in replayed.with_cache if answer.tier == "semantic"]
    bare = [answer.seconds for answer in replayed.without]
    taken = {"cold": cold, "repeat": warm, "reworded": near, "without": bare}
    return {name: statistics.median(one) * 1e3 for name, one in taken.items() if one}


def _quality(deep: Replayed, texts: Xquad) -> dict[str, dict[str, float]]:
    """Of hits that are certain, and of all requests: nDCG@10 and reciprocal rank, both ways."""
    quality: dict[str, dict[str, float]] = {}
    for name in ("certain", "all"):
        chosen = [
            n for n, one in enumerate(deep.with_cache) if name == "all" or one.list in CERTAIN
        ]
        for way, answers in {"with": deep.with_cache, "without": deep.without}.items():
            relevant = [texts.questions[deep.requests[n].question].relevant for n in chosen]
            for order in ("found", "ranked"):
                lists = [getattr(answers[n], order) for n in chosen]
                pairs = list(zip(lists, relevant, strict=True))
                quality.setdefault(f"{name}, {order}", {}).update(
                    {
                        f"ndcg {way}": mean([ndcg(ids, right, DEEP) for ids, right in pairs]),
                        f"mrr {way}": mean([reciprocal_rank(ids, right) for ids, right in pairs]),
                    }
                )
    return quality


def _figures(told: Mapping[str, Any]) -> Iterator[Figure]:
    for kind, found in told["lists"].items():
        share = found["lists"] / told["requests"]
        yield Figure(what=f"requests whose list was {kind}", value=share, unit="")
    yield from recall_figures(told["lists"], f"recall@{K} against an exact search")
    yield from recall_figures(told["lists_at_10"], f"recall@{DEEP} against an exact search")
    reworded = told["rewordings"]
    total = sum(reworded.values())
    yield Figure(
        what=f"new rewordings served, of {total:,}",
        value=1 - reworded.get(SEARCHED, 0) / total if total else 0.0,
        unit="",
        at_least=0.75,
    )
    for step, most in told["ceilings"].items():
        saved = told["saved"][step]
        yield Figure(
            what=f"{step} saved: {saved:.3f}; of the ceiling of {most:.3f}",
            value=saved / most if most else 0.0,
            unit="",
            at_least=0.9,
        )
    times = told["milliseconds"]
    yield Figure(what="chain, cold", value=times["cold"], unit="ms")
    yield Figure(what="chain, without cache", value=times["without"], unit="ms")
    yield Figure(what="chain, repeat", value=times["repeat"], unit="ms")
    yield Figure(
        what="… faster than cold", value=times["cold"] / times["repeat"], unit="×", at_least=10
    )
    yield Figure(what="… than without", value=times["without"] / times["repeat"], unit="×")
    for name, quality in told["quality"].items():
        for metric in ("ndcg", "mrr"):
            apart = abs(quality[f"{metric} with"] - quality[f"{metric} without"])
            yield Figure(
                what=f"{metric}@{DEEP} of {name}: {quality[f'{metric} with']:.4f}, "
                f"without cache {quality[f'{metric} without']:.4f}; apart",
                value=apart,
                unit="",
                at_most=0.0005 if name.startswith("certain") else None,
            )
