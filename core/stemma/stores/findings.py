"""What judgements make of an entry, once for all stores. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stemma.entry import PERSONAL, Entry, personal_bar
from stemma.stores.protocol import Judgement
from stemma.verdicts import counting, probability, speaks, verdict

__all__ = ["computed_again", "doubted", "found", "remembered"]

_REPORTS = ("hallucinated", "supported", "unknown")


def found(
    entry: Entry,
    judgement: Judgement,
    said: Sequence[Judgement] = (),
    other: Entry | None = None,
) -> Entry:
    """The entry after a judgement.

    Said twice it changes nothing more, save that each audit counts. What is said of the value's
    truth is weighed with everything said of it before (`stemma.verdicts`). A `wrong_hit` bars the
    pair for ever and makes the entry doubted, and suspect as well, unless it is known to be
    hallucinated or the pair was barred before. Whatever speaks for the value (`supported`,
    `agreed`) lifts the quarantine of a suspect. What a tenant says of a pool's entry changes it
    for all only where it suffices with what others said; until then it holds for that tenant.

    `grounded` leaves an entry as sure as its sources make it, and never surer than it was stored:
    the least of the two, so that who says it twice, or after another, takes nothing more. Of what
    somebody found to be supported it says nothing: who did knew more than a check of texts.

    Args:
        entry: The entry as it is stored.
        judgement: What is said of it.
        said: What was said of it so far, in order, this judgement the last.
        other: The entry that it says the same as.
    """
    if judgement.verdict == "wrong_hit":
        return _barred(entry, judgement)
    if entry.value != judgement.value:
        return entry
    judged = entry.judged
    match judgement.verdict:
        case "agreed":
            return _weighed(_agreed(entry, judgement.at, doubted=False), said)
        case "disagreed":
            counted = replace(judged, disagreed=judged.disagreed + 1)
            return _weighed(replace(entry, judged=counted), said)
        case "same" if other is not None and entry.answer != other.answer:
            return replace(entry, judged=replace(judged, answer=other.answer))
        case "supported" | "hallucinated" | "unknown":
            return _reported(entry, judgement, said)
        case "grounded":
            return _weighed(_grounded(entry, judgement.confidence), said)
        case "same" | "promoted" | "withdrawn":
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


def _weighed(entry: Entry, said: Sequence[Judgement]) -> Entry:
    """The entry with the verdict that everything said of its value comes to.

    A suspect stays one, unless its value is known to be wrong: that it was served where it does
    not answer is not a matter of its truth.
    """
    if not said:
        return entry
    known = verdict(probability(counting(one for one in said if one.value == entry.value)))
    suspect = entry.verdict == "suspect" and known != "hallucinated"
    return entry if suspect else replace(entry, verdict=known)


def _reported(entry: Entry, judgement: Judgement, said: Sequence[Judgement]) -> Entry:
    """The entry after a report, by an operator, by its own tenant or by a tenant of its pool."""
    shared = entry.pool is not None and judgement.tenant != ""
    if shared:
        entry = _personal(entry, judgement, said)
    right = _weighed(_seen_right(entry, judgement.at), said)
    if judgement.verdict != "supported" or (shared and right.verdict != "supported"):
        return _weighed(entry, said)
    return replace(right, confidence=max(entry.confidence, judgement.confidence))


def _personal(entry: Entry, judgement: Judgement, said: Sequence[Judgement]) -> Entry:
    """The entry with what bars it for the tenant who reports it: as long as they call it wrong.

    A wrong hit of its own question that they reported bars it for them for ever.
    """
    bar = personal_bar(judgement.tenant, judgement.value)
    barred = tuple(one for one in entry.judged.barred if one != bar)
    wrong = judgement.verdict == "hallucinated"
    if wrong or any(one.personal and one.question == bar for one in said):
        barred = (*barred, bar)
    return replace(entry, judged=replace(entry.judged, barred=barred))


def remembered(entry: Entry, said: Sequence[Judgement]) -> Entry:
    """An entry that takes no equal one's place, with what was said of its value in former times.

    The same answer is as wrong again, also after it was taken back or another one came between.

    Args:
        entry: The entry to be stored.
        said: What was said of its id so far, in order.
    """
    before = [one for one in said if one.value == entry.value and speaks(one)]
    if not before:
        return entry
    for one in before:
        if entry.pool is not None and one.tenant and one.verdict in _REPORTS:
            entry = _personal(entry, one, before)
    return _weighed(entry, before)


def _agreed(entry: Entry, at: float, *, doubted: bool) -> Entry:
    judged = replace(entry.judged, agreed=entry.judged.agreed + 1, doubted=doubted)
    return replace(_seen_right(entry, at), judged=judged)


def _grounded(entry: Entry, score: float) -> Entry:
    if entry.verdict == "supported" or score >= entry.confidence:
        return entry
    return replace(entry, confidence=score)


def _barred(entry: Entry, judgement: Judgement) -> Entry:
    bar = judgement.barred
    if not bar or bar in entry.judged.barred:
        return entry
    barred = _with_bars(entry, (bar,))
    if judgement.personal or entry.value != judgement.value or entry.verdict == "hallucinated":
        return barred
    return replace(barred, verdict="suspect")


def _with_bars(entry: Entry, bars: Sequence[str]) -> Entry:
    known = entry.judged.barred
    more = tuple(one for one in bars if one not in known)
    if not more:
        return entry
    barred = replace(entry, judged=replace(entry.judged, barred=known + more))
    return barred if all(one.startswith(PERSONAL) for one in more) else doubted(barred)


def _seen_right(entry: Entry, at: float) -> Entry:
    verdict = "unknown" if entry.verdict == "suspect" else entry.verdict
    return replace(entry, verdict=verdict, verified=max(entry.verified, at))
