"""What users say of entries and hits: right, wrong, or served where it does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from stemma.effects import Ask, Steps
from stemma.entry import Entry, Verdict, personal_bar
from stemma.errors import UsageError
from stemma.namesakes import Namesakes
from stemma.outcome import Hit
from stemma.parts import Parts
from stemma.policies import learning
from stemma.policies.shares import share
from stemma.reporters import Ledger, Reported, limited, settle, speaker
from stemma.saying import named_by
from stemma.stores.protocol import Judgement
from stemma.verdicts import verdicts, wrong_hit

__all__ = ["MOST", "NEAR", "TENANTS", "Report", "report"]

NEAR = 0.8
"""The similarity to the entry of a wrong hit from which on another is doubted. No policy serves
what is much less alike (`stemma.policies.threshold`), so what one question was wrongly taken for,
its like would be."""

MOST = 64
"""How many neighbours are doubted at most, the nearest."""


TENANTS = "tenants"
"""Who says of a shared hit that it was wrong, when enough tenants have said so."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What was reported, and what came of it.

    Args:
        judgement: What was noted.
        verdict: The entry's verdict now; of one that is gone, what was said of its value.
        probability: How likely the value is wrong by everything that was said of it, 0 to 1.
        gone: Whether no entry with that value is stored any more. The report is kept beside what
            was said of it before (`Cache.verdicts`), and there is nothing to hold back.
        limited: Whether it counts for nothing, since the tenant reported more than
            `stemma.reporters.MOST` shared entries within the hour.
    """

    judgement: Judgement
    verdict: Verdict
    probability: float
    gone: bool = False
    limited: bool = False

    def __str__(self) -> str:
        one = self.judgement
        name = f"{one.by} of {one.tenant}" if one.tenant else one.by
        gone = ", gone; the report is kept" if self.gone else ""
        limited = "; not counted: too many within the hour" if self.limited else ""
        return (
            f"{one.verdict} by {name}: entry {one.entry} is {self.verdict}, "
            f"wrong with {self.probability:.0%}{gone}{limited}"
        )


def report(
    parts: Parts,
    told: str | Hit | Mapping[str, Any],
    verdict: Reported,
    by: str,
    confidence: float,
    *,
    tenant: str,
) -> Steps[Report]:
    """Judge an entry's value, or a hit, in a tenant's name or in an operator's.

    See `Cache.report`.

    Raises:
        UsageError: There is no such entry, it is not the tenant's to report, or an argument is
            wrong.
        StoreError: The store could not do it.
    """
    named, sure = _checked(told, verdict, by), share("confidence", confidence)
    ids = dict.fromkeys(filter(None, (named.entry, named.question)))
    found = (yield Ask(parts.store, "get", (list(ids),))).entries
    stored = found.get(named.entry)
    known = stored if named.hit is None else named.hit
    elsewhere = named.question != named.entry
    ledger = Ledger(parts.store, parts.clock.now())
    who = yield from speaker(
        parts,
        ledger,
        tenant,
        named.entry,
        known if stored is None else stored,
        named=named.question != "",
        asked=found.get(named.question) if elsewhere else None,
    )
    if known is None and not (verdict == "wrong_hit" and elsewhere):
        yield from _once_known(parts, named.entry)
    who = yield from limited(ledger, who, verdict)
    judgement = Judgement(
        entry=named.entry,
        value="" if known is None else known.value,
        verdict=verdict,
        by=by,
        confidence=sure,
        at=parts.clock.now(),
        question=named.question,
        tenant=who.tenant,
        weight=who.weight,
    )
    if verdict != "wrong_hit":
        alike = (yield from _alike(parts, stored)) if not who.tenant else ()
        judged = yield Ask(parts.store, "judge", (judgement,))
        for one in alike:
            yield Ask(parts.store, "judge", (replace(judgement, entry=one.id, question=""),))
    elif who.shared:
        judged = yield from _for_one(parts, ledger, judgement, stored, known)
    else:
        judged = yield from _for_all(parts, judgement, stored, known)
    parts.tell("verdict", None, verdict, known)
    return (yield from _told(parts, ledger, judgement, judged, limited=who.limited))


def _alike(parts: Parts, stored: Entry | None) -> Steps[tuple[Entry, ...]]:
    """Where the same is said in answer to the same, in a pool and by who agreed to it."""
    if stored is None or (stored.pool is None and stored.offer is None):
        return ()
    found: tuple[Entry, ...] = yield Ask(Namesakes(parts.store), "of", (stored,))
    return found


def _told(
    parts: Parts, ledger: Ledger, judgement: Judgement, judged: Entry | None, *, limited: bool
) -> Steps[Report]:
    """What came of a report; of a pool's entry it is noted who was right before."""
    said = yield Ask(ledger, "said", (judgement.entry,))
    if judged is not None and judged.pool is not None:
        settle(parts, said, judgement, judged.node)
    known = verdicts(judgement.entry, said, judged)
    return Report(
        judgement=judgement,
        verdict=known.verdict,
        probability=known.probability,
        gone=judged is None,
        limited=limited,
    )


def _checked(told: str | Hit | Mapping[str, Any], verdict: Reported, by: str) -> _Named:
    if verdict not in get_args(Reported):
        raise UsageError(f"verdict must be one of {', '.join(get_args(Reported))}, not {verdict!r}")
    named_by(by)
    named = _named(told)
    if verdict == "wrong_hit" and not named.question:
        raise UsageError(
            "an entry's id does not say which question it was served to: give the Hit, or the note "
            "that came with what was returned"
        )
    return named


def _once_known(parts: Parts, entry: str) -> Steps[None]:
    """See that there was such an entry once.

    Raises:
        UsageError: There never was.
    """
    if (yield Ask(parts.store, "lineage", (entry,))) is None:
        raise UsageError(f"there is no entry {entry!r}")


def _for_one(
    parts: Parts, ledger: Ledger, judgement: Judgement, stored: Entry | None, known: Entry | None
) -> Steps[Entry | None]:
    """Bar the pair for a tenant alone, until enough of them say the same; gives the entry."""
    tenant, elsewhere = judgement.tenant, judgement.question != judgement.entry
    mine = replace(judgement, question=personal_bar(tenant, judgement.barred))
    judged: Entry | None = yield Ask(parts.store, "judge", (mine,))
    if elsewhere:
        turned = replace(_turned(judgement), question=personal_bar(tenant, judgement.entry))
        yield Ask(parts.store, "judge", (turned,))
    said = yield Ask(ledger, "said", (judgement.entry,))
    if wrong_hit(said, judgement.barred):  # read after it was noted: one of two at once sees both
        agreed = replace(judgement, by=TENANTS, tenant="")
        judged = yield from _for_all(parts, agreed, stored, known)
    return judged


def _for_all(
    parts: Parts, judgement: Judgement, stored: Entry | None, known: Entry | None
) -> Steps[Entry | None]:
    """Bar the pair for everybody."""
    near = yield from _neighbours(parts, stored)
    judged: Entry | None = yield Ask(parts.store, "judge", (judgement, near))
    if judgement.question != judgement.entry:
        yield Ask(parts.store, "judge", (_turned(judgement),))
        yield from _taught(parts, judgement, known)
    return judged


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
