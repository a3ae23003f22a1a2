"""What a tenant learns of another one's questions from how long its own lookups take.

Two-sample audits after Gu et al. (2025). In each trial the other tenant asks either the question
that is looked up next, or another one; which of the two is drawn, so that neither what a machine
does beside nor how it changes can make a difference of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.propagation.apart import p_apart, p_uniform
from evals.propagation.hiding import kept, waits
from evals.propagation.telling import Scores, auc, interval
from evals.speed.given import answer, fill, question, reworded
from stemma import Cache
from stemma.embedders import HashingEmbedder, LocalEmbedder
from stemma.errors import EmbedderError, MissingDependency

__all__ = ["Trials", "audited", "run", "trials"]

AUDITS = 60
PROBES = 30
"""Of each kind in an audit: the question was asked by the other tenant, or it was not."""

OWN = 40
"""Entries that either tenant has, of questions like those it asks: a lookup has much to decide."""

POOL = "shared"
LEAST = 0.001
"""How small a p-value may be by chance where nothing leaks."""


class Trials(NamedTuple):
    """Microseconds of lookups, as many of each kind, shape (n,)."""

    asked: Scores
    """Of what the other tenant has asked."""
    unasked: Scores
    """Of what nobody has."""


class Tenants(NamedTuple):
    """Two who use one cache."""

    ask: Callable[[str], Any]
    """What the other one does with a question."""
    look: Callable[[str], float]
    """How many microseconds a lookup takes."""
    words: Callable[[str], str] = str
    """In which words the question is looked up."""


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Measure between tenants without a pool, within one, and what hiding it costs."""
    rng = np.random.default_rng(seed)
    audits, probes = scaled(AUDITS, size, least=4), scaled(PROBES, size, least=4)
    embedder = _embedder()
    apart: dict[str, Any] = {}
    for name in ("memory", "SQLite"):
        for how, by in (("exact", None), ("by meaning", embedder)):
            url = ":memory:" if name == "memory" else folder / f"{how}.db"
            with stemma.open(url, tenant="beta", embedder=by) as cache:
                found = _audits(_strangers(cache), audits, probes, rng)
            apart[f"{how}, {name}"] = audited(found, rng)
    few = -(-audits // 3)  # what leaks shows at once
    pool = {
        name: _joined(_audits(tenants, few, probes, rng))
        for name, tenants in _members(embedder).items()
    }
    hiding = waits(pool["in a pool"].asked, pool["in a pool"].unasked, audits=few, rng=rng)
    return Measured(
        figures=[
            *(_uniform(name, found) for name, found in apart.items()),
            *(_told(name, found) for name, found in pool.items()),
            *(_hidden(name, found) for name, found in hiding.items()),
        ],
        details={
            "embedder": embedder.revision,
            "between tenants": apart,
            "within a pool": {name: _said(found, seed=seed) for name, found in pool.items()},
            "hidden": hiding,
            "waiting kept where the first serving alone is slow": kept(rng),
        },
    )


def trials(
    tenants: Tenants, numbers: Iterator[int], rng: np.random.Generator, *, probes: int
) -> Trials:
    """Lookups after the other tenant has asked the same, and after it has asked something else.

    Args:
        tenants: The two.
        numbers: Of questions that nobody has asked.
        rng: Which of the two kinds is next.
        probes: How many of each kind.
    """
    taken: dict[bool, list[float]] = {True: [], False: []}
    for same in rng.permuted(np.arange(2 * probes) < probes).tolist():
        asked, unasked = question(next(numbers)), question(next(numbers))
        tenants.ask(asked if same else unasked)
        # A text of its own, as it comes from a network: an object that was hashed is quicker.
        taken[same].append(tenants.look(tenants.words(asked).encode().decode()))
    return Trials(np.array(taken[True]), np.array(taken[False]))


def audited(found: Sequence[Trials], rng: np.random.Generator) -> dict[str, Any]:
    """What audits say: whether their p-values are uniform, as they are where nothing leaks."""
    values = np.array([p_apart(one.asked, one.unasked, rng) for one in found])
    return {
        "audits": len(found),
        "p of the p-values being uniform": p_uniform(values, rng),
        "share below 0.05": float(np.mean(values < 0.05)),
        **_said(_joined(found), seed=0),
    }


def _audits(tenants: Tenants, audits: int, probes: int, rng: np.random.Generator) -> list[Trials]:
    numbers = count(OWN)
    trials(tenants, numbers, rng, probes=2)  # all that is loaded at first use is loaded
    return [trials(tenants, numbers, rng, probes=probes) for _ in range(audits)]


def _strangers(cache: Cache) -> Tenants:
    """Two tenants who share no pool; each has asked the like before."""
    for tenant in ("acme", "beta"):
        with cache.using(tenant=tenant):
            fill(cache, [question(number) for number in range(OWN)])

    def ask(text: str) -> None:
        with cache.using(tenant="acme"):
            cache.answers.get_or_compute(text, lambda: answer(len(text)))

    return Tenants(ask, lambda text: _microseconds(cache, text))


def _members(embedder: Any) -> dict[str, Tenants]:
    """Two tenants who name one pool, into which all that the first asks is copied.

    The second asks in the same words, in others, or a second time: what was served by the pool is
    served by it again, what was computed is now the tenant's own.
    """
    cache = stemma.open(tenant="beta", embedder=embedder)

    def ask(text: str) -> None:
        with cache.using(tenant="acme", pool=POOL):
            served = cache.answers.get_or_compute(text, lambda: answer(len(text)))
        if served.stored is not None and served.stored.entry is not None:
            cache.pools.promote(served.stored.entry.id, by="an operator")

    def look(text: str) -> float:
        with cache.using(pool=POOL):
            return _microseconds(cache, text)

    def look_again(text: str) -> float:
        with cache.using(pool=POOL):
            cache.answers.get_or_compute(text, lambda: answer(len(text)))
            return _microseconds(cache, text)

    return {
        "in a pool": Tenants(ask, look),
        "in a pool, in other words": Tenants(ask, look, reworded),
        "in a pool, a second time": Tenants(ask, look_again),
    }


def _microseconds(cache: Cache, text: str) -> float:
    began = time.perf_counter_ns()
    cache.answers.lookup(text)
    return (time.perf_counter_ns() - began) / 1000


def _joined(found: Sequence[Trials]) -> Trials:
    return Trials(
        np.concatenate([one.asked for one in found]),
        np.concatenate([one.unasked for one in found]),
    )


def _said(found: Trials, *, seed: int) -> dict[str, Any]:
    """How well one lookup tells whether the other tenant has asked, and the medians."""
    return {
        "lookups of each kind": len(found.asked),
        "median µs, asked": float(np.median(found.asked)),
        "median µs, unasked": float(np.median(found.unasked)),
        "AUC of one lookup": auc(found.unasked, found.asked),
        "its interval": interval(found.unasked, found.asked, seed=seed),
    }


def _uniform(name: str, found: dict[str, Any]) -> Figure:
    return Figure(
        what=f"{name}: p of {found['audits']} audits' p-values being uniform",
        value=found["p of the p-values being uniform"],
        unit="",
        at_least=LEAST,
    )


def _told(name: str, found: Trials) -> Figure:
    return Figure(what=f"{name}: AUC of one lookup", value=auc(found.unasked, found.asked), unit="")


def _hidden(name: str, found: dict[str, float]) -> Figure:
    return Figure(
        what=f"a pool's hits {name}: AUC of one answer",
        value=found["AUC of one answer"],
        unit="",
    )


def _embedder() -> Any:
    """The local model where it is installed: what is remembered of texts could tell the most."""
    try:
        found = LocalEmbedder()
        assert found.revision
    except (EmbedderError, MissingDependency):
        return HashingEmbedder()
    return found
