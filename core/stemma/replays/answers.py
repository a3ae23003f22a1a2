"""Which lines of a log have the same answer, where the log says only what was answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stemma.embedders.protocol import Embedder
from stemma.entry import Vector
from stemma.errors import UsageError
from stemma.policies.same_answer import Answer, SameAnswer
from stemma.replays.log import Line, Log, Request, Skipped

__all__ = ["Prepared", "prepared"]

_BATCH = 64
_NEAR = 3
"""With how many answers, the nearest, one is compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A log, ready to be replayed.

    Args:
        log: The log.
        requests: Those that can be compared by meaning, and whose answer is known.
        at: The unit vector of each text.
        skipped: Lines that are left out: those that could not be read, those without an answer, and
            those longer than the embedder's window.
        embedder: The revision of what the vectors come from.
    """

    log: Log
    requests: Sequence[Request] = field(repr=False)
    at: Mapping[str, Vector] = field(repr=False)
    skipped: Sequence[Skipped] = field(repr=False)
    embedder: str


def prepared(log: Log, embedder: Embedder, *, same: SameAnswer | None = None) -> Prepared:
    """The requests of a log with their vectors, by their answers.

    Answers that `same` finds the same are one group. An answer that it has no verdict on is one of
    its own: what may have been right counts as wrong, never the other way round. Of a log that says
    no answers, all requests are one group.

    Raises:
        UsageError: No request is left.
        EmbedderError: The model cannot be loaded or gave something unfit.
    """
    at = _vectors((one.text for one in log.lines), embedder)
    groups = _alike(log, embedder, SameAnswer() if same is None else same)
    requests, skipped = [], list(log.skipped)
    for one in log.lines:
        group = groups.get(one) if log.answered else ""
        if one.text not in at:
            skipped.append(Skipped(number=one.number, why="longer than the embedder's window"))
        elif group is None:
            skipped.append(Skipped(number=one.number, why='neither "group" nor "answer"'))
        else:
            requests.append(Request(text=one.text, group=group))
    if not requests:
        raise UsageError(f"no request of the log can be replayed: {skipped[-1].why}")
    skipped.sort(key=lambda one: one.number)
    return Prepared(log=log, requests=requests, at=at, skipped=skipped, embedder=embedder.revision)


def _alike(log: Log, embedder: Embedder, same: SameAnswer) -> dict[Line, str]:
    """The group of each line that has one."""
    bare = [one.answer for one in log.lines if one.group is None and one.answer is not None]
    numbers = _numbered(list(dict.fromkeys(bare)), embedder, same)
    named = {one: f"group {one.group}" for one in log.lines if one.group is not None}
    told = {
        one: f"answer {numbers[one.answer]}"
        for one in log.lines
        if one.group is None and one.answer is not None
    }
    return named | told


def _vectors(texts: Iterable[str], embedder: Embedder) -> dict[str, Vector]:
    """The unit vector of each text that is inside the embedder's window."""
    wanted = sorted((text for text in dict.fromkeys(texts) if embedder.fits(text)), key=len)
    found: dict[str, Vector] = {}
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        found.update(zip(batch, embedder.embed(batch), strict=True))
    return found


def _numbered(answers: Sequence[str], embedder: Embedder, same: SameAnswer) -> dict[str, int]:
    """The number of each answer's group."""
    at = _vectors(answers, embedder)
    firsts: list[str] = []
    rows = np.empty((len(answers), len(next(iter(at.values()), ()))), dtype=np.float32)
    groups: dict[str, int] = {}
    for answer in answers:
        vector = at.get(answer)
        near = rows[: len(firsts)] @ vector if vector is not None else np.empty(0)
        for place in np.argsort(-near, kind="stable")[:_NEAR].tolist():
            verdict = same(
                Answer(text=answer), Answer(text=firsts[place]), similarity=float(near[place])
            )
            if verdict is not None and verdict.same:
                groups[answer] = place
                break
        else:
            groups[answer] = len(firsts)
            rows[len(firsts)] = 0.0 if vector is None else vector
            firsts.append(answer)
    return groups
