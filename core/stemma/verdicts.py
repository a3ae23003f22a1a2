"""What is known of an entry's truth, out of everything that was said of it. Pure.

Each statement moves the odds that the value is wrong, the more the surer it was made and the
further who made it was believed: p(wrong) = σ(logit(`PRIOR`) + Σ ± logit(q)), where
q = 0.5 + (weight − 0.5) · confidence, at least 0.5 and at most `TRUSTED`. From `WRONG` on the
verdict is `hallucinated`, up to `RIGHT` it is `supported`, between them `unknown`.

* A reporter is a name in a tenant, or an operator's; each counts with the last statement, and
  `unknown` takes it back.
* However many names a tenant speaks under, it moves the odds no further than it is believed; and
  all tenants together no further than one operator, who can therefore always answer them.
* Audits of the entry's own question count each with `AUDIT`, together no further than a grounding
  check: answers of one model are alike in their mistakes. What an audit says of another question
  says nothing of this value's truth.
* A grounding check counts with `GROUNDER`, as sure as its score is far from one half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stemma.entry import Entry, Verdict, personal_bar
from stemma.stores.protocol import Judgement

__all__ = [
    "ALONE",
    "AUDIT",
    "GROUNDER",
    "PRIOR",
    "RIGHT",
    "TRUSTED",
    "WRONG",
    "Said",
    "Verdicts",
    "believed",
    "counting",
    "evidence",
    "probability",
    "settled",
    "speaks",
    "verdict",
    "verdicts",
    "wrong_hit",
]

PRIOR = 0.2
"""How likely a value is wrong of which nobody said anything."""

WRONG = 0.3
"""From where on it is known wrong: what `stemma.propagation.quarantine` holds by default, too. One
operator reaches it from a confidence of 0.33 on, a newcomer among the tenants never, two do."""

RIGHT = 0.1
"""Up to where it is known right: an operator reaches it from a confidence of 0.49 on."""

TRUSTED = 0.9
"""How far an operator is believed, and a tenant of an entry of its own: right nine times in ten.
Nobody is believed further, so that nobody's word is beyond answer."""

ALONE = 0.62
"""How far a tenant is believed at most of what all read, whatever its record: one of them alone
stays below `WRONG`, also after having been right a hundred times before lying."""

GROUNDER = ALONE
"""How far a grounding check is believed, and all audits together: like a tenant, neither suffices
alone, to condemn or to acquit, and each does with one tenant who says the same. What a check finds
lowers the entry's confidence besides, which may refuse it without speaking of what was built on it.
"""

AUDIT = 0.6
"""How far an audit is believed: a fresh answer comes from the same model, which errs again alike,
and may differ in words alone."""

_SIDES: dict[str, float] = {"hallucinated": 1.0, "supported": -1.0, "wrong_hit": 1.0}
_AUDITS: dict[str, float] = {"disagreed": 1.0, "agreed": -1.0}
_SETTLED = frozenset({"hallucinated", "supported", "unknown"})
_OF_TRUTH = _SETTLED | {"grounded"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """One statement, and what it counts for.

    Args:
        judgement: What was said, by whom and when.
        counts: By how much it moves the log-odds of the value being wrong; 0 where it does not.
        why: Why it does not count, in words; empty where it does.
    """

    judgement: Judgement
    counts: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        one = self.judgement
        name = f"{one.by} of {one.tenant}" if one.tenant else one.by
        return f"{one.verdict} by {name} ({self.why or f'{self.counts:+.2f}'})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdicts:
    """What is known of an entry's truth, and who said what.

    Args:
        entry: Its id.
        verdict: Its verdict; of an entry that is gone, what was said of its last known value.
        probability: How likely its value is wrong by what was said, 0 to 1.
        said: Everything that was said of it, in the order in which it was noted.
        gone: Whether it is no longer stored. What was said of it stays.
        held: The quarantine that holds it, or empty.
    """

    entry: str
    verdict: Verdict
    probability: float
    said: tuple[Said, ...]
    gone: bool = False
    held: str = ""

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        notes = ", gone" * self.gone + f", held by quarantine {self.held}" * bool(self.held)
        head = f"{self.entry}: {self.verdict}, wrong with {self.probability:.0%}{notes}"
        return "\n".join([head, *(f"- {one}" for one in self.said)])


def evidence(judgement: Judgement) -> float:
    """By how much a statement moves the log-odds of a value being wrong; below 0: of being right.

    What a reporter says who is believed less than a coin counts for nothing, not for its opposite:
    else whoever is known to lie could say what they want by saying the other thing.
    """
    side, weight, sure = 0.0, judgement.weight, judgement.confidence
    if judgement.verdict in _AUDITS:
        side, weight, sure = _AUDITS[judgement.verdict], AUDIT, 1.0
    elif judgement.verdict == "grounded":
        away = 1.0 - 2.0 * judgement.confidence
        side, weight, sure = math.copysign(1.0, away), GROUNDER, abs(away)
    elif judgement.verdict in _SIDES:
        side = _SIDES[judgement.verdict]
    return side * _logit(0.5 + (_bounded(weight) - 0.5) * sure)


def speaks(judgement: Judgement) -> bool:
    """Whether a judgement says anything of its value's truth."""
    own = judgement.question == judgement.entry
    return judgement.verdict in _OF_TRUTH or (judgement.verdict in _AUDITS and own)


def counting(said: Iterable[Judgement]) -> list[Judgement]:
    """The statements that count: of each reporter the last, and all audits of its own question.

    Args:
        said: What was said of one value, in the order in which it was noted. Of two statements at
            the same instant the later in that order is the last.
    """
    last: dict[tuple[str, str, bool], Judgement] = {}
    audits = []
    for one in sorted(filter(speaks, said), key=lambda one: one.at):
        if one.verdict in _AUDITS:
            audits.append(one)
        else:
            last[one.tenant, one.by, one.verdict == "grounded"] = one
    return [*last.values(), *audits]


def probability(statements: Sequence[Judgement]) -> float:
    """How likely a value is wrong, 0 to 1, by the statements that count."""
    audits = math.fsum(evidence(one) for one in statements if one.verdict in _AUDITS)
    alone = list[float]()
    by_tenant: dict[str, list[Judgement]] = {}
    for one in statements:
        if one.verdict == "grounded" or (one.verdict in _SIDES and not one.tenant):
            alone.append(evidence(one))
        elif one.verdict in _SIDES:
            by_tenant.setdefault(one.tenant, []).append(one)
    tenants = math.fsum(map(_together, by_tenant.values()))
    odds = math.fsum((_logit(PRIOR), *alone, _within(tenants, TRUSTED), _within(audits, GROUNDER)))
    # Rounded: whatever the order of the sums, the same statements are on the same side of a bound.
    return round(1.0 / (1.0 + math.exp(-odds)), 12)


def verdict(probability: float) -> Verdict:
    """What a probability of being wrong is called."""
    if probability >= WRONG:
        return "hallucinated"
    return "supported" if probability <= RIGHT else "unknown"


def wrong_hit(said: Iterable[Judgement], bar: str) -> bool:
    """Whether enough tenants say that an entry must not answer what a bar names (`barred`).

    Args:
        said: What was said of the entry.
        bar: The digest of the question, or of the value where the question is its own.
    """
    last = {
        (one.tenant, one.by): one
        for one in sorted(said, key=lambda one: one.at)
        if one.personal and one.question == personal_bar(one.tenant, bar)
    }
    return probability(list(last.values())) >= WRONG


def verdicts(id: str, said: Sequence[Judgement], entry: Entry | None) -> Verdicts:
    """What is known of an entry's truth.

    Args:
        id: Its id.
        said: Everything that was said of it, in the order in which it was noted.
        entry: The entry as it is stored; `None` where it is gone.
    """
    valued = (one.value for one in reversed(said) if one.value)
    value = entry.value if entry is not None else next(valued, "")
    counts = counting(one for one in said if one.value == value)
    wrong = probability(counts)
    return Verdicts(
        entry=id,
        verdict=verdict(wrong) if entry is None else entry.verdict,
        probability=wrong,
        said=tuple(_explained(said, value, counts)),
        gone=entry is None,
        held="" if entry is None else entry.held,
    )


def believed(upheld: int, overturned: int) -> float:
    """How far a tenant is believed of what all read: 0.6 without a record, at most `ALONE`.

    The mean of Beta(3, 2) with its earlier reports beside. One that was overturned makes the word
    of a newcomer worth nothing, until operators uphold more than they overturn.

    Args:
        upheld: How many of its reports of shared entries an operator said as well.
        overturned: Of how many an operator said the opposite.
    """
    return min((3 + upheld) / (5 + upheld + overturned), ALONE)


def settled(said: Iterable[Judgement], judgement: Judgement) -> dict[str, bool]:
    """Which tenants an operator upholds, and which not: of each its last report not settled yet.

    Only operators settle: else those who lie together would uphold each other. One who is not sure
    enough to decide alone settles nothing.

    Args:
        said: What was said of the entry, in the order in which it was noted.
        judgement: What the operator says; what follows it does not count.
    """
    if judgement.tenant or verdict(probability([judgement])) != judgement.verdict:
        return {}
    last: dict[str, str] = {}
    for one in said:
        if one == judgement:
            break
        if one.value != judgement.value or one.verdict not in _SETTLED:
            continue
        if one.tenant:
            last[one.tenant] = one.verdict
        elif one.verdict != "unknown":
            last.clear()
    return {name: said == judgement.verdict for name, said in last.items() if said != "unknown"}


def _explained(
    said: Iterable[Judgement], value: str, counts: Iterable[Judgement]
) -> Iterator[Said]:
    known = {id(one) for one in counts}
    for one in said:
        moved = evidence(one) if id(one) in known else 0.0
        yield Said(judgement=one, counts=moved, why="" if moved else _silent(one, value, known))


def _silent(one: Judgement, value: str, counts: set[int]) -> str:
    """Why a statement moves nothing."""
    if one.value != value:
        return "of another value"
    if one.verdict in _AUDITS:
        return "of another question"
    if one.verdict not in _OF_TRUTH:
        return "not of its truth"
    if id(one) not in counts:
        return "said otherwise since"
    return "takes back what was said" if one.verdict == "unknown" else "not believed"


def _bounded(weight: float) -> float:
    return min(max(weight, 0.5), TRUSTED)


def _together(statements: Sequence[Judgement]) -> float:
    """What all names of one tenant come to: either way no more than one of them."""
    sides = ([one for one in statements if evidence(one) * way > 0.0] for way in (1.0, -1.0))
    return math.fsum(
        _within(math.fsum(map(evidence, side)), max(_bounded(one.weight) for one in side))
        for side in sides
        if side
    )


def _within(odds: float, most: float) -> float:
    return max(-_logit(most), min(odds, _logit(most)))


def _logit(share: float) -> float:
    return math.log(share / (1.0 - share))
