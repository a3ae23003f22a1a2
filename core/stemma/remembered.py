"""Vectors of texts that come again and again, so that each is embedded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stemma.effects import Ask, Steps
from stemma.embedders.protocol import Matrix
from stemma.entry import Vector
from stemma.policies.remembering import asker

if TYPE_CHECKING:
    from stemma.parts import Parts

__all__ = ["Remembered"]


class Remembered:
    """The vectors of some texts, as steps, for each tenant apart.

    Args:
        parts: What it works with.
        most: How many texts are remembered.
    """

    def __init__(self, parts: Parts, most: int) -> None:
        self._parts = parts
        self._most = most
        self._known: dict[tuple[str, str], Vector] = {}

    def fits(self, texts: Sequence[str]) -> Steps[bool]:
        """Whether each of them is inside the model's window as a whole."""
        tenant = asker()
        for text in texts:
            if (tenant, text) not in self._known and not (
                yield Ask(self._parts.embedder, "fits", (text,))
            ):
                return False
        return True

    def vectors(self, texts: Sequence[str]) -> Steps[Matrix]:
        """Their vectors, in their order; what is not known is embedded in one go."""
        tenant = asker()
        remembered = ((text, self._known.get((tenant, text))) for text in texts)
        known = {text: vector for text, vector in remembered if vector is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            matrix = yield Ask(self._parts.embedder, "embed", (missing,))
            fresh = dict(zip(missing, matrix, strict=True))
            known |= fresh
            if len(self._known) + len(missing) > self._most:
                self._known.clear()
            self._known.update({(tenant, text): vector for text, vector in fresh.items()})
        made: Matrix = np.stack([known[text] for text in texts])
        return made
