"""Vectors of all texts that are measured on, kept in a file of the temporary folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from stemma.embedders import Embedder
from stemma.entry import Vector, content_digest

__all__ = ["vectors"]

_BATCH = 64


def vectors(texts: Iterable[str], embedder: Embedder) -> dict[str, Vector]:
    """The unit vector of each text; those that are not in the file yet are computed and added.

    Args:
        texts: The texts, in any order, some more than once.
        embedder: What computes them; the file is of this revision alone.
    """
    wanted = dict.fromkeys(texts)
    file = Path(tempfile.gettempdir(), f"stemma-vectors-{content_digest(embedder.revision)}.npz")
    known: dict[str, Vector] = {}
    if file.is_file():
        with np.load(file) as kept:
            known = dict(zip(kept["names"].tolist(), kept["rows"], strict=True))
    names = {text: content_digest(text) for text in wanted}
    missing = sorted((text for text in wanted if names[text] not in known), key=len)
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        known.update(zip((names[text] for text in batch), embedder.embed(batch), strict=True))
    if missing:
        own = file.with_suffix(".new.npz")
        np.savez(own, names=np.array(list(known)), rows=np.stack(list(known.values())))
        own.replace(file)
    return {text: known[names[text]] for text in wanted}
