"""How a candidate stands among its neighbours: what a policy weighs beside the two texts. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from stemma.policies.nearness import nearness
from stemma.policies.threshold import Candidate

__all__ = ["KNOWN", "LOWEST", "NEAR", "Standing", "known", "standings"]

KNOWN = (
    "constant",
    "verified",
    "nearness",
    "ahead",
    "apart",
    "agreeing",
    "company",
    "verified_near",
    "clear",
)
"""What is known of a candidate, in the order in which `known` gives it."""

_FAR = 2.0
"""Where the margins end."""

_LOGS = tuple(map(math.log1p, range(16)))

LOWEST = -6.0
"""Where the verifier's log-odds end: below, nothing else can make up for them."""

_CROWD = 8
"""From so many neighbours on, the last of them says how near what was not seen may be."""

_UNSEEN = nearness(0.3)

NEAR = nearness(0.8)
"""From here on a text to which no guard objects may be taken for the same, with MiniLM."""


class Standing(NamedTuple):
    """A candidate among its neighbours.

    Args:
        nearness: See `stemma.policies.nearness.nearness`.
        ahead: Its nearness less that of the nearest other candidate, −2 to 2.
        apart: Its nearness less that of the nearest with another answer, −2 to 2.
        agreeing: The share of the other candidates that have its answer, 0 to 1.
        company: The logarithm of 1 and their number.
    """

    nearness: float
    ahead: float
    apart: float
    agreeing: float
    company: float


def standings(ranked: Sequence[Candidate]) -> list[Standing]:
    """How each stands among all; they are given nearest first."""
    near = [nearness(one.similarity) for one in ranked]
    answers = [one.answer or one.id for one in ranked]
    if not answers:
        return []
    first, size = answers[0], max(len(near) - 1, 1)
    unseen = near[-1] if len(near) >= _CROWD else _UNSEEN
    number = Counter(answers)
    other = unseen if number[first] == len(answers) else near[_first_other(answers)]
    second = near[1] if len(near) > 1 else unseen
    found = []
    for at, own in enumerate(near):
        answer = answers[at]
        ahead = own - (near[0] if at else second)
        apart = own - (other if answer == first else near[0])
        same = number[answer] - 1
        found.append(
            Standing(
                own,
                ahead if -_FAR <= ahead <= _FAR else math.copysign(_FAR, ahead),
                apart if -_FAR <= apart <= _FAR else math.copysign(_FAR, apart),
                same / size,
                _LOGS[same] if same < len(_LOGS) else math.log1p(same),
            )
        )
    return found


def _first_other(answers: Sequence[str]) -> int:
    """Where the first answer is that differs from the first of all; there is one."""
    return next(at for at, answer in enumerate(answers) if answer != answers[0])


def known(score: float, standing: Standing, *, clear: bool) -> tuple[float, ...]:
    """The values of `KNOWN` for a candidate.

    Args:
        score: The log-odds that a verifier gave it.
        standing: How it stands.
        clear: Whether no guard objects to it; it is `clear` if it is also `NEAR`.
    """
    score = max(score, LOWEST)
    near = clear and standing.nearness >= NEAR
    return (1.0, score, *standing, score * standing.nearness, float(near))
