"""What users say of entries and hits: right, wrong, or served where it does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from stemma.effects import Ask, Steps
from stemma.entry import Entry
from stemma.errors import UsageError
from stemma.outcome import Hit
from stemma.parts import Parts
from stemma.policies import learning
from stemma.policies.shares import share
from stemma.stores.protocol import Judgement

__all__ = ["MOST", "NEAR", "Reported", "report"]

Reported = Literal["hallucinated", "supported", "wrong_hit"]

NEAR = 0.8
"""The similarity to the entry of a wrong hit from which on another is doubted. No policy serves
what is much less alike (`stemma.policies.threshold`), so what one question was wrongly taken for,
its like would be."""

MOST = 64
"""How many neighbours are doubted at most, the nearest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Named:
    """What a report is about.

    Args:
        entry: The entry's id.
        question: The digest of the question that it was served to; empty where that is not told.
        hit: The entry as it was served, where that is told.
    """

    entry: str
    question: str = ""
    hit: Entry | None = None


def report(
    parts: Parts,
    told: str | Hit | Mapping[str, Any],
    verdict: Reported,
    by: str,
    confidence: float,
) -> Steps[Judgement]:
    """Judge an entry's value, or a hit. See `Cache.report`.

    Raises:
        UsageError: There is no such entry, or an argument is wrong.
        StoreError: The store could not do it.
    """
    if verdict not in get_args(Reported):
        raise UsageError(f"verdict must be one of {', '.join(get_args(Reported))}, not {verdict!r}")
    if not isinstance(by, str):
        raise UsageError(f"by must be a text, not {type(by).__name__}")
    named = _named(told)
    if verdict == "wrong_hit" and not named.question:
        raise UsageError(
            "an entry's id does not say which question it was served to: give the Hit, or the note "
            "that came with what was returned"
        )
    stored = (yield Ask(parts.store, "get", ([named.entry],))).entries.get(named.entry)
    known = stored if named.hit is None else named.hit
    elsewhere = verdict == "wrong_hit" and named.question != named.entry
    judged = known if verdict == "wrong_hit" else stored
    if judged is None and not elsewhere:
        raise UsageError(f"there is no entry {named.entry!r}")
    judgement = Judgement(
        entry=named.entry,
        value="" if known is None else known.value,
        verdict=verdict,
        by=by,
        confidence=share("confidence", confidence),
        at=parts.clock.now(),
        question=named.question,
    )
    near = (yield from _neighbours(parts, stored)) if verdict == "wrong_hit" else ()
    yield Ask(parts.store, "judge", (judgement, near))
    if elsewhere:
        yield Ask(parts.store, "judge", (_turned(judgement),))
        yield from _taught(parts, judgement, known)
    parts.tell("verdict", None, verdict, known)
    return judgement


def _named(told: str | Hit | Mapping[str, Any]) -> _Named:
    if isinstance(told, Hit):
        return _Named(entry=told.entry.id, question=told.question, hit=told.entry)
    if isinstance(told, str):
        return _Named(entry=told)
    if not isinstance(told, Mapping):
        raise UsageError(
            f"what is reported is a Hit, a note or an entry's id, not {type(told).__name__}"
        )
    entry, question = told.get("entry"), told.get("question", "")
    if not isinstance(entry, str) or not isinstance(question, str):
        raise UsageError("the note of a hit names its entry and its question; this one does not")
    return _Named(entry=entry, question=question)


def _turned(judgement: Judgement) -> Judgement:
    """The same of the pair the other way round: two that differ in their answers differ for both.

    The question's own entry, which may not be there yet, never answers the question of this one.
    """
    return replace(judgement, entry=judgement.question, question=judgement.entry, value="")


def _neighbours(parts: Parts, stored: Entry | None) -> Steps[tuple[str, ...]]:
    """The entries near the one of a wrong hit, where the policy decides about such hits.

    Where the index fails, the report is made without them: the pair is what must not be lost.
    """
    if stored is None or stored.node == "retrieval":
        return ()  # lists serve by what they hold, not by how near their queries are
    try:
        vector = (yield Ask(parts.store, "vectors", ([stored.id],))).get(stored.id)
        if vector is None:
            return ()
        asked = vector.astype(np.float32)
        near = yield Ask(parts.index, "nearest", (parts.store, stored.group, asked, MOST + 1, NEAR))
    except Exception as error:
        parts.fault("neighbours", error)
        return ()
    others = (one.id for one in near if one.similarity >= NEAR and one.id != stored.id)
    return tuple(others)[:MOST]


def _taught(parts: Parts, judgement: Judgement, known: Entry | None) -> Steps[None]:
    """What follows of a hit by meaning that was wrong, beside what the store notes of it.

    A policy that learns is told, where this process made the hit. A list that served another query
    was stored for that one too: that copy goes.
    """
    served = parts.trials.take(judgement.question, judgement.entry)
    if served is not None:
        wrong = learning.Judgement(trial=served.trial, right=False, by=judgement.by)
        try:
            yield from parts.policies.learn(served.tenant, served.node, wrong)
        except Exception as error:  # the report itself is stored
            parts.fault("judge", error)
    if known is not None and known.node == "retrieval":
        yield Ask(parts.store, "remove", ([judgement.question],))
