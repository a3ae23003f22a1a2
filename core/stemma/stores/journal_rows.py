"""The journal's records out of rows, once for the stores that write SQL."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from stemma.stores.protocol import Count, Judgement, Lesson, Serving
from stemma.stores.text import Damaged, escape, unescape

__all__ = [
    "COUNTED",
    "JUDGED",
    "SERVED",
    "TAUGHT",
    "counted",
    "judged",
    "row",
    "served",
    "taught",
]

COUNTED = "tenant, node, outcome, lookups, seconds, tokens"
"""The columns of a counter, in the order in which `counted` takes them."""

SERVED = "entry, tenant, tier, similarity, at, producer, pool, node, confidence"
"""Those of a serving, for `served`."""

JUDGED = "entry, value, verdict, by, confidence, at, question, tenant, weight"
"""Those of a judgement, for `judged`."""

TAUGHT = "tenant, node, state, writer, candidate, known, weight, correct, by, requests, at"
"""Those of a lesson, as `row` gives them; for `taught`, with `number` before them."""


def counted(rows: Iterable[Any]) -> tuple[Count, ...]:
    """Counters by tenant, node and outcome."""
    sums = (
        Count(
            tenant=unescape(tenant),
            node=unescape(node),
            outcome=unescape(outcome),
            lookups=lookups,
            seconds=seconds,
            tokens=tokens,
        )
        for tenant, node, outcome, lookups, seconds, tokens in rows
    )
    return tuple(sorted(sums, key=lambda one: (one.tenant, one.node, one.outcome)))


def served(rows: Iterable[Any]) -> tuple[Serving, ...]:
    """Servings in the order of their rows."""
    return tuple(
        Serving(
            entry=unescape(entry),
            tenant=unescape(tenant),
            tier=unescape(tier),
            similarity=similarity,
            at=at,
            producer=unescape(producer),
            pool=unescape(pool),
            node=unescape(node),
            confidence=confidence,
        )
        for entry, tenant, tier, similarity, at, producer, pool, node, confidence in rows
    )


def judged(rows: Iterable[Any]) -> tuple[Judgement, ...]:
    """Judgements in the order of their rows."""
    return tuple(
        Judgement(
            entry=unescape(entry),
            value=unescape(value),
            verdict=verdict,
            by=unescape(by),
            confidence=confidence,
            at=at,
            question=unescape(question),
            tenant=unescape(tenant),
            weight=weight,
        )
        for entry, value, verdict, by, confidence, at, question, tenant, weight in rows
    )


def row(lesson: Lesson) -> tuple[Any, ...]:
    """A lesson's columns, `TAUGHT`."""
    texts = (lesson.tenant, lesson.node, lesson.state, lesson.writer, lesson.candidate)
    return (
        *map(escape, texts),
        json.dumps(lesson.known),
        float(lesson.weight),
        bool(lesson.right),
        escape(lesson.by),
        lesson.requests,
        float(lesson.at),
    )


def taught(rows: Iterable[Any]) -> tuple[Lesson, ...]:
    """Lessons in the order of their rows; what is damaged is left out."""
    return tuple(_lessons(rows))


def _lessons(rows: Iterable[Any]) -> Iterator[Lesson]:
    for number, tenant, node, state, writer, candidate, known, weight, right, by, *rest in rows:
        with suppress(Damaged, TypeError, ValueError):
            numbers = tuple(map(float, json.loads(known)))
            if not all(map(math.isfinite, (*numbers, weight, *rest))):
                continue
            requests, at = rest
            yield Lesson(
                tenant=unescape(tenant),
                node=unescape(node),
                state=unescape(state),
                writer=unescape(writer),
                candidate=unescape(candidate),
                known=numbers,
                weight=float(weight),
                right=bool(right),
                by=unescape(by),
                requests=int(requests),
                at=float(at),
                number=int(number),
            )
