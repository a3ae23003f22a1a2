"""A manual is updated under cached answers: which of them are served after that, and should they?

The manual is cut at its headings, and each heading is asked once. An answer cites the contents of
the sections that were in its prompt; so it tells by itself whether it is stale. After the update
everything is asked again. Then an answer

* that cites a section that changed or went must not be served;
* whose sections are the same, but among whose nearest a new or changed section now is, should be
  made anew;
* whose nearest sections are the same ones with the same contents should still be served.

Contents in the index are compared, and what is nearest is told by an exact search.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.rag import updates_langchain
from evals.rag.exact_store import CANDIDATES, ExactStore
from evals.rag.lists import judging, recall_figures
from evals.rag.metrics import by_kind, recall
from evals.rag.sections import manual, statuses
from evals.rag.updating import Opened, Sections, Way, cited
from evals.speed.given import Given
from stemma import Cache, Embedder, content_digest
from stemma.embedders import LocalEmbedder
from stemma_langchain import LocalEmbeddings

__all__ = ["run", "ways"]

K, DEEPER = 2, 4
"""How many sections a prompt holds; and how many a list that is compared with an exact search."""


def ways() -> dict[str, Way]:
    """All ways whose framework is installed, by name."""
    if find_spec("llama_index") is None:
        return dict(updates_langchain.WAYS)
    from evals.rag import updates_llamaindex  # noqa: PLC0415 - loads LlamaIndex

    return {**updates_langchain.WAYS, **updates_llamaindex.WAYS}


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """The update through every hook, and through none."""
    old, new = _part_of(manual("old"), manual("new"), size, random.Random(seed))
    texts = {one.text for one in (*old.values(), *new.values())}
    asked = [one.question for one in old.values()]
    wanted = sorted(texts.union(asked))
    vectors = dict(zip(wanted, LocalEmbedder().embed(wanted), strict=True))
    known = Given(vectors)
    told: dict[str, Any] = {
        "k": K,
        "candidates": K * CANDIDATES,
        "questions": len(asked),
        "sections": _counted(statuses(old, new).values()),
        "ways": {},
    }
    with stemma.open(folder / "lists.db", tenant="me", embedder=None) as cache:
        told["lists"] = _reused(cache, ExactStore(LocalEmbeddings(known)), old)
    for number, (name, way) in enumerate(ways().items()):
        with stemma.open(folder / f"{number}.db", tenant="me", embedder=None) as cache:
            told["ways"][name] = _updated(way.opened(cache, known, K), known, old, new)
    figures = list(_figures(told["ways"]))
    figures += recall_figures(told["lists"], f"recall@{DEEPER} over questions near each other")
    return Measured(figures=figures, details=told)


def _part_of(
    old: Sections, new: Sections, size: float, lucky: random.Random
) -> tuple[Sections, Sections]:
    """The same documents of both dates: at full size all."""
    paths = sorted({one.path for one in (*old.values(), *new.values())})
    kept = set(lucky.sample(paths, scaled(len(paths), size, least=3)))
    return tuple(  # type: ignore[return-value]
        {name: one for name, one in date.items() if one.path in kept} for date in (old, new)
    )


def _reused(cache: Cache, store: ExactStore, old: Sections) -> dict[str, dict[str, float]]:
    """What lists are worth where the near questions are no rewordings but ask something else."""
    store.add_documents([Document(one.text, id=name) for name, one in old.items()])
    judged = judging(cache, store, DEEPER)
    return by_kind([judged(one.question) for one in old.values()])


def _updated(index: Opened, known: Embedder, old: Sections, new: Sections) -> dict[str, int]:
    """Ask everything, update, ask everything again; count what was right of the second answers."""
    questions = [one.question for one in old.values()]
    index.show(old)
    before = {question: cited(index.ask(question)) for question in questions}
    index.show(new)
    contents = {content_digest(one.text): one.text for one in new.values()}
    rows = known.embed(list(contents.values()))
    counts = dict.fromkeys(("gone", "stale", "entered", "noticed", "unchanged", "served"), 0)
    for question in questions:
        done = index.work()
        now = cited(index.ask(question))
        computed = index.work() > done
        near = (rows @ known.embed([question])[0]).astype(np.float64).tolist()
        nearest = dict(zip(contents, near, strict=True))
        counts["stale"] += not contents.keys() >= set(now)
        if not contents.keys() >= set(before[question]):
            counts["gone"] += 1
        elif recall(before[question], nearest, K) < 1:
            counts["entered"] += 1
            counts["noticed"] += recall(now, nearest, K) == 1
        else:
            counts["unchanged"] += 1
            counts["served"] += not computed
    return counts


def _counted(statuses: Iterable[str]) -> dict[str, int]:
    found = list(statuses)
    return {status: found.count(status) for status in sorted(set(found))}


def _figures(counts: Mapping[str, Mapping[str, int]]) -> Iterator[Figure]:
    for name, way in ways().items():
        found = counts[name]
        yield Figure(
            what=f"{name}: stale answers served, of {found['gone']:,} that cite what changed",
            value=found["stale"],
            unit="",
            at_most=0 if way.told else None,
        )
        yield Figure(
            what=f"… new sections noticed, of {found['entered']:,} answers",
            value=_share(found["noticed"], found["entered"]),
            unit="",
            at_least=0.95 if way.told else None,
        )
        yield Figure(
            what=f"… still served, of {found['unchanged']:,} that cite what is the same"
            + ("" if way.precise else "; the others are conservative recalls"),
            value=_share(found["served"], found["unchanged"]),
            unit="",
            at_least=0.99 if way.told and way.precise else None,
        )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
