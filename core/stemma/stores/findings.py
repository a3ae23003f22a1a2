"""What judgements make of an entry, once for all stores. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stemma.entry import Entry
from stemma.stores.protocol import Judgement

__all__ = ["computed_again", "doubted", "found"]


def found(entry: Entry, judgement: Judgement, other: Entry | None = None) -> Entry:
    """The entry after a judgement.

    Said twice it changes nothing more, save that each audit counts. A `wrong_hit` bars the pair
    for ever and makes the entry doubted, and suspect as well, unless it is known to be
    hallucinated or the pair was barred before. Whatever speaks for the value (`supported`,
    `agreed`) lifts the quarantine of a suspect; only `supported` lifts that of a hallucination.

    Args:
        entry: The entry as it is stored.
        judgement: What is said of it.
        other: The entry that it says the same as.
    """
    if judgement.verdict == "wrong_hit":
        return _barred(entry, judgement)
    if entry.value != judgement.value:
        return entry
    judged = entry.judged
    match judgement.verdict:
        case "agreed":
            return _agreed(entry, judgement.at, doubted=False)
        case "disagreed":
            return replace(entry, judged=replace(judged, disagreed=judged.disagreed + 1))
        case "same" if other is not None and entry.answer != other.answer:
            return replace(entry, judged=replace(judged, answer=other.answer))
        case "supported":
            sure = max(entry.confidence, judgement.confidence)
            right = _seen_right(entry, judgement.at)
            return replace(right, verdict="supported", confidence=sure)
        case "hallucinated" | "unknown":
            return replace(entry, verdict=judgement.verdict)
    return entry


def doubted(entry: Entry) -> Entry:
    """The entry that was a wrong hit, or lies near one."""
    return replace(entry, judged=replace(entry.judged, doubted=True))


def computed_again(
    entry: Entry, former: Entry | None, barred: Sequence[str], *, audit: bool
) -> Entry:
    """The entry that takes the place of a former one.

    An equal value keeps its verdict and what was judged of it: the same answer is as wrong again.
    It also ends the quarantine of a suspect; whether other questions may be served with it stays
    as doubtful as it was.

    Args:
        entry: The entry to be stored.
        former: The one in whose place it comes, if it has the same value.
        barred: What its id is barred from.
        audit: Whether it was computed afresh, so that an equal value agrees with the former one.
    """
    if former is not None:
        doubt = former.judged.doubted
        kept = _agreed(former, entry.verified, doubted=doubt) if audit else former
        sure = entry.confidence
        if kept.verdict == "supported":
            sure = max(sure, kept.confidence)
        entry = replace(entry, verdict=kept.verdict, judged=kept.judged, confidence=sure)
    return _with_bars(entry, barred)


def _agreed(entry: Entry, at: float, *, doubted: bool) -> Entry:
    judged = replace(entry.judged, agreed=entry.judged.agreed + 1, doubted=doubted)
    return replace(_seen_right(entry, at), judged=judged)


def _barred(entry: Entry, judgement: Judgement) -> Entry:
    bar = judgement.barred
    if not bar or bar in entry.judged.barred:
        return entry
    barred = _with_bars(entry, (bar,))
    if entry.value != judgement.value or entry.verdict == "hallucinated":
        return barred
    return replace(barred, verdict="suspect")


def _with_bars(entry: Entry, bars: Sequence[str]) -> Entry:
    known = entry.judged.barred
    more = tuple(one for one in bars if one not in known)
    if not more:
        return entry
    return doubted(replace(entry, judged=replace(entry.judged, barred=known + more)))


def _seen_right(entry: Entry, at: float) -> Entry:
    verdict = "unknown" if entry.verdict == "suspect" else entry.verdict
    return replace(entry, verdict=verdict, verified=max(entry.verified, at))
