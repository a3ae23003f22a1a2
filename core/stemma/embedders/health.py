"""Whether an embedder's vectors are of any use: pure checks, and an embedder that is checked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stemma import forking
from stemma.embedders.protocol import Embedder, Matrix
from stemma.errors import EmbedderError

__all__ = ["ALIKE", "PROBES", "SAME", "Checked", "find_fault", "unit_rows"]

PROBES = (
    "How do I reset the password of my account?",
    "The volcano erupted twice in 1883, long before dawn.",
    "def add(left, right): return left + right",
    "Fry the onions gently in butter until they are golden brown.",
)
"""Sentences that share no subject and hardly a word."""

ALIKE = 0.95
"""All pairs of probes above this: the embedder tells nothing apart. A probe embedded again must
come out above it (a model quantised at run time gives slightly other vectors in another batch).

The narrowest real model measured (multilingual-e5-small, 4 bit) puts unrelated sentences at 0.8
and translations at 0.89; most models stay below 0.3. Above 0.95 no threshold is left that parts a
rewording from another subject.
"""

SAME = 0.999
"""Any two probes above this have one and the same vector."""


UNIT = 1e-6
"""How far from 1 a squared length may be: what rounding to float32 leaves."""


def unit_rows(vectors: Any, count: int, *, dimensions: int | None = None) -> Matrix:
    """What an embedder gave for `count` texts, as float32 rows of length 1.

    Raises:
        EmbedderError: It is not one vector of finite numbers a text, all of one length (and of
            `dimensions`, where given), or one of them is zero.
    """
    try:
        with np.errstate(over="ignore"):  # too large for float32 becomes infinite: found below
            rows = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbedderError(
            f"the embedder gave something that is not a list of vectors of one length: {error}"
        ) from error
    if count == 0 and rows.size == 0:
        width = rows.shape[1] if rows.ndim == 2 else 0  # noqa: PLR2004 - rows and columns
        return np.empty((0, width if dimensions is None else dimensions), dtype=np.float32)
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0:  # noqa: PLR2004 - as above
        raise EmbedderError(
            f"the embedder gave an array of shape {rows.shape} for {count} texts; "
            f"({count}, dimensions) is needed: one vector a text"
        )
    if dimensions is not None and rows.shape[1] != dimensions:
        raise EmbedderError(
            f"the embedder gave vectors of {rows.shape[1]} numbers, but of {dimensions} before; "
            "one embedder must keep to one size"
        )
    if count == 1 and abs(float(rows[0] @ rows[0]) - 1.0) < UNIT:
        return rows.copy()  # one vector of length 1, as most are: nothing to find and to mend
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise EmbedderError("the embedder gave a vector with NaN or an infinite number in it")
    if (lengths == 0.0).any():
        raise EmbedderError("the embedder gave a zero vector, which has no direction to compare")
    unit: Matrix = (rows / lengths[:, None]).astype(np.float32)
    return unit


def find_fault(probes: Matrix, again: Matrix) -> str | None:
    """What is wrong with an embedder that gave these unit vectors, or `None`.

    Args:
        probes: Its vectors for `PROBES`, in one batch.
        again: Its vector for the last of them, alone.
    """
    if probes.shape[1] != again.shape[1]:
        return f"vectors have now {probes.shape[1]}, now {again.shape[1]} numbers"
    similarities = probes @ probes.T
    pairs = similarities[np.triu_indices(len(probes), k=1)]
    if pairs.min() > ALIKE:
        return (
            f"unrelated sentences get vectors that are all alike (cosines {pairs.min():.3f} to "
            f"{pairs.max():.3f}), so every question would match every answer"
        )
    if pairs.max() > SAME:
        return "two unrelated sentences get one and the same vector"
    repeat = float(again[0] @ probes[-1])
    if repeat < ALIKE:
        return (
            f"one sentence gets different vectors in a batch and alone (cosine {repeat:.3f}); "
            "vectors do not belong to their texts, or are random"
        )
    return None


class Checked:
    """An embedder whose vectors are checked: once on a few probes, then at every call.

    An embedder that fails the first check stays refused: it is not called again, and every call
    raises the same error. An error that the embedder itself raises (a time-out) refuses nothing
    for good. A later unfit result raises, for that call alone, so that one strange text cannot
    turn matching off for everybody. Vectors come out as float32 of length 1.

    It has `aembed` and `embed_tokens` if and only if the embedder has them.

    Args:
        embedder: The embedder to check.
    """

    revision: str
    aembed: Callable[[Sequence[str]], Awaitable[Matrix]]
    embed_tokens: Callable[[Sequence[str]], list[Matrix]]

    def __init__(self, embedder: Embedder) -> None:
        self.inner: Embedder = embedder
        self.revision = embedder.revision
        self.dimensions: int | None = None
        self.quick: frozenset[str] = getattr(embedder, "quick", frozenset())
        self._refusal: str | None = None
        self._lock = forking.Lock()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )
        if hasattr(embedder, "embed_tokens"):
            self.embed_tokens = embedder.embed_tokens
        self._native: Callable[[Sequence[str]], Awaitable[Any]] | None = getattr(
            embedder, "aembed", None
        )
        if self._native is not None:
            self.aembed = self._aembed

    def __repr__(self) -> str:
        return f"Checked({self.inner!r})"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (texts, dimensions), each of length 1.

        Raises:
            EmbedderError: The embedder is refused, failed, or gave something unfit.
        """
        if self.dimensions is None:
            with self._lock:
                if self._unproven():
                    self._prove(
                        self._first(self.inner.embed(PROBES), len(PROBES)),
                        self._first(self.inner.embed(PROBES[-1:]), 1),
                    )
        return unit_rows(self.inner.embed(texts), len(texts), dimensions=self.dimensions)

    def fits(self, text: str) -> bool:
        """Whether the whole text is inside the model's window."""
        return self.inner.fits(text)

    async def _aembed(self, texts: Sequence[str]) -> Matrix:
        native = self._native
        assert native is not None  # noqa: S101 - only reachable where there is one
        if self.dimensions is None:
            # One probing a loop; two loops at once may both probe, which costs a call and no more.
            async with self._turn():
                if self._unproven():
                    self._prove(
                        self._first(await native(PROBES), len(PROBES)),
                        self._first(await native(PROBES[-1:]), 1),
                    )
        return unit_rows(await native(texts), len(texts), dimensions=self.dimensions)

    def _turn(self) -> asyncio.Lock:
        with self._lock:
            return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def _unproven(self) -> bool:
        if self._refusal is not None:
            raise EmbedderError(self._refusal)
        return self.dimensions is None

    def _first(self, vectors: Any, count: int) -> Matrix:
        try:
            return unit_rows(vectors, count)
        except EmbedderError as error:
            raise self._refused(str(error)) from error

    def _prove(self, probes: Matrix, again: Matrix) -> None:
        fault = find_fault(probes, again)
        if fault is not None:
            raise self._refused(fault)
        self.dimensions = probes.shape[1]

    def _refused(self, fault: str) -> EmbedderError:
        self._refusal = (
            f"the embedder {self.revision!r} is unfit: {fault}. Matching by meaning is off; exact "
            "matching goes on. Check what the embedder is given and gives, or use another one"
        )
        return EmbedderError(self._refusal)
