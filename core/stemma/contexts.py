"""Follow-ups: a focus embedded with the conversation before it, and which entries had one like it.

Whether two conversations mean the same is decided in `stemma.policies.context`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stemma.effects import Ask, Steps
from stemma.entry import Entry, Vector
from stemma.outcome import Miss
from stemma.parts import Parts
from stemma.policies import context
from stemma.query import Query
from stemma.remembered import Remembered

__all__ = ["Contexts"]

Half = np.ndarray[tuple[int], np.dtype[np.float16]]

TURNS = 4_096
"""Turns of which the vectors are remembered: in a conversation they come again and again."""


class Contexts:
    """The conversations of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._remembered = Remembered(parts, TURNS)

    def embed(self, query: Query) -> Steps[Vector | None]:
        """The vector of a focus beside that of its context; `None` where a text does not fit."""
        texts = [str(query.request.focus), *query.request.turns]
        if not (yield from self._remembered.fits(texts)):
            return None
        matrix = yield from self._remembered.vectors(texts)
        return context.beside(matrix[0], matrix[1:])

    def vector(self, text: str) -> Steps[Vector | None]:
        """The vector of a text; `None` where it does not fit."""
        if not (yield from self._remembered.fits((text,))):
            return None
        matrix = yield from self._remembered.vectors((text,))
        made: Vector = matrix[0]
        return made

    def agreeing(
        self, query: Query, vector: Vector, near: Sequence[tuple[Entry, float]]
    ) -> Steps[list[tuple[Entry, float]] | Miss]:
        """Those of some near entries whose conversation means the same, or why none does.

        Args:
            query: The question.
            vector: As `embed` gave it.
            near: The entries; in what is given back, the similarity is that of the focuses alone.
        """
        stored = yield Ask(self._parts.store, "vectors", ([entry.id for entry, _ in near],))
        found: list[tuple[Entry, float]] = []
        miss: Miss | None = None
        for entry, _ in near:
            similarity, around = _similarities(vector, stored.get(entry.id))
            refused = _unlike(around)
            if around >= context.CONTEXT:
                refused = yield from self._objection(query.request.turns, entry.before)
            if refused == "":
                found.append((entry, similarity))
            elif miss is None:
                miss = _other(entry.id, similarity, refused)
        return miss if miss is not None and not found else found

    def far(self, vector: Vector, nearest: str, least: float) -> Steps[Miss]:
        """Why the nearest of all entries is too far: by its focus, or by its conversation.

        Args:
            vector: As `embed` gave it.
            nearest: The entry's id.
            least: The least similarity of two focuses.
        """
        stored = yield Ask(self._parts.store, "vectors", ([nearest],))
        similarity, around = _similarities(vector, stored.get(nearest))
        if similarity >= least:
            return _other(nearest, similarity, _unlike(around))
        return Miss(reason="below_threshold", nearest=nearest, similarity=similarity)

    def _objection(self, asked: Sequence[str], stored: Sequence[str]) -> Steps[str]:
        refused = context.objection(asked, stored)
        if refused:
            return refused
        other = [(one, two) for one, two in zip(asked, stored, strict=True) if one != two]
        if other:
            ours = yield from self._remembered.vectors([one for one, _ in other])
            theirs = yield from self._remembered.vectors([two for _, two in other])
            if not context.near_turns(ours, theirs):
                return "a turn before it means something else"
        return ""


def _similarities(vector: Vector, stored: Half | None) -> tuple[float, float]:
    if stored is None:
        return -1.0, -1.0
    return context.parted(vector, stored.astype(np.float32))


def _unlike(around: float) -> str:
    return f"the similarity of the conversations is {around:.3f}, not {context.CONTEXT:g}"


def _other(nearest: str, similarity: float, why: str) -> Miss:
    return Miss(reason="context", nearest=nearest, similarity=similarity, detail=why)
