"""Whether two answers are the same, as far as that shows without a judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stemma.answers import parted
from stemma.codec import Codec
from stemma.effects import Steps
from stemma.entry import Entry
from stemma.errors import CodecError, UnkeyableValue
from stemma.policies.same_answer import Sameness
from stemma.remembered import Remembered

if TYPE_CHECKING:
    from stemma.parts import Parts

__all__ = ["Comparing"]

ANSWERS = 1_024
"""Answers of which the vectors are remembered."""


class Comparing:
    """The comparer of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._remembered = Remembered(parts, ANSWERS)

    def compared(
        self, codec: Codec, value: Any, hash: str, stored: Entry
    ) -> Steps[Sameness | None]:
        """Whether an answer and a stored one are the same; `None` where that does not show.

        Args:
            codec: How both are written.
            value: The answer.
            hash: Its value hash.
            stored: The stored one.
        """
        if hash == stored.value:
            return Sameness(same=True, by="equal")
        same = self._parts.same_answer.compared
        try:
            now, before = parted(codec, value), parted(codec, codec.decode(stored.payload))
            if now.shape != before.shape:
                return Sameness(same=False, by="value")
            answer, other = now.answer, before.answer
            if answer.calls or other.calls:
                return same(answer, other)
            if not answer.text.strip() or not other.text.strip():
                return None
            similarity = yield from self._similarity(answer.text, other.text)
            return same(answer, other, similarity=similarity)
        except (CodecError, UnkeyableValue):
            return None

    def _similarity(self, one: str, other: str) -> Steps[float | None]:
        """Of two answers, where the embedder reads the whole of both."""
        if self._parts.embedder is None or not (yield from self._remembered.fits((one, other))):
            return None
        matrix = yield from self._remembered.vectors((one, other))
        return float(matrix[0] @ matrix[1])
