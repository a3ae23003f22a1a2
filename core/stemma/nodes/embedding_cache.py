"""The cache of embeddings: besides what every node has, one text or many texts at a time."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from stemma.effects import Ask, Steps, arun, run
from stemma.engine import Served
from stemma.entry import Cost, Entry
from stemma.errors import EmbedderError
from stemma.nodes.batch import look_all
from stemma.nodes.embedding import embedding
from stemma.nodes.node import Asked, NodeCache, Surroundings
from stemma.outcome import Hit, Miss, Ticket
from stemma.query import Query
from stemma.selector import Selector

__all__ = ["EmbeddingCache"]

T = TypeVar("T")
Vector = list[float]
OnHit = Callable[[Hit], object]

EVERY = 1 << 31
"""More entries than there can be."""


class EmbeddingCache(NodeCache[str, ...]):
    """A `NodeCache` that also takes texts as an embedding model is given them.

    What follows `compute` are the keyword arguments of `stemma.nodes.embedding.embedding`. Blank
    texts go to the model each time. Vectors that are empty, or hold what is no finite number, are
    given back and not stored. Where nothing names a tenant, the model is asked, and a warning
    told once.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__("embedding", embedding, surroundings, traced=False)

    def asked(self, text: str, /, **named: Any) -> Asked:
        """What `embedding` makes of a text: for who stores under keys of their own."""
        return self._ask(text, **named)

    def vector(
        self,
        text: str,
        compute: Callable[[], Any],
        *,
        on_hit: OnHit | None = None,
        **named: Any,
    ) -> Vector:
        """The vector of one text, computed once however many ask for it at a time.

        Args:
            text: The text.
            compute: Gives its vector.
            on_hit: Called with the hit where it is one.
            **named: What `embedding` takes.
        """
        asked = self._ask(text, **named)
        if _is_blank(text):
            return _floats(compute())
        return _told(self.serve(asked, lambda: _floats(compute()), admit=_refusal), on_hit)

    async def avector(
        self,
        text: str,
        compute: Callable[[], Awaitable[Any]],
        *,
        on_hit: OnHit | None = None,
        **named: Any,
    ) -> Vector:
        """As `vector`."""
        asked = self._ask(text, **named)
        if _is_blank(text):
            return _floats(await compute())

        async def computed() -> Vector:
            return _floats(await compute())

        return _told(await self.aserve(asked, computed, admit=_refusal), on_hit)

    def vectors(
        self,
        texts: Sequence[str],
        compute: Callable[[list[str]], Any],
        *,
        batch_size: int | None = None,
        on_hit: OnHit | None = None,
        **named: Any,
    ) -> list[Vector]:
        """The vectors of many texts, in the order of the texts.

        What is missing is computed with each text once, and stored after each batch. Equal texts
        get equal lists that are not the same object.

        Args:
            texts: The texts.
            compute: Gives as many vectors as it is given texts, in their order.
            batch_size: How many texts it is given at a time; by default all that are missing.
            on_hit: Called with each hit, once for equal texts.
            **named: What `embedding` takes.

        Raises:
            EmbedderError: It gave another number of vectors than it was given texts.
        """
        return run(self._vectors(texts, _Model(compute, batch_size), on_hit, named))

    async def avectors(
        self,
        texts: Sequence[str],
        compute: Callable[[list[str]], Awaitable[Any]],
        *,
        batch_size: int | None = None,
        at_once: int | None = 1,
        on_hit: OnHit | None = None,
        **named: Any,
    ) -> list[Vector]:
        """As `vectors`; `at_once` batches are awaited at a time, all of them for `None`.

        Of batches that are awaited together, those that are computed are stored if another fails.
        """
        return await arun(
            self._vectors(texts, _AsyncModel(compute, batch_size, at_once), on_hit, named)
        )

    def _vectors(
        self,
        texts: Sequence[str],
        model: _Model,
        on_hit: OnHit | None,
        named: Mapping[str, Any],
    ) -> Steps[list[Vector]]:
        asked = {text: self._ask(text, **named) for text in texts if not _is_blank(text)}
        found = yield from look_all(self._engine, self._resolved(list(asked.values())))
        outcomes = dict(zip(asked, found, strict=True))
        known: dict[str, Vector] = {}
        for text, outcome in outcomes.items():
            if isinstance(outcome, Hit):
                known[text] = outcome.value
                if on_hit is not None:
                    on_hit(outcome)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        clock = self._engine.parts.clock
        for together in model.rounds(missing):
            started = clock.monotonic()
            results = yield Ask(model, "compute", (together,), foreign=True)
            each = Cost(seconds=(clock.monotonic() - started) / sum(map(len, together)))
            for part, result in zip(together, results, strict=True):
                if not isinstance(result, BaseException):
                    vectors = _matched(part, result)
                    known |= vectors
                    puts = list(_storable(vectors, outcomes))
                    yield from self._engine.put_many(puts, cost=each)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
        return [list(known[text]) for text in texts]

    # What follows is for stores by key, which have no model to ask.

    def forget_all(self, asked: Sequence[Asked]) -> int:
        """Remove what is stored for these questions; gives how many entries there were.

        Raises:
            StoreError: The store could not do it.
        """
        return run(self._forget_all(asked))

    async def aforget_all(self, asked: Sequence[Asked]) -> int:
        """As `forget_all`."""
        return await arun(self._forget_all(asked))

    def _forget_all(self, asked: Sequence[Asked]) -> Steps[int]:
        queries = map(self.resolve, asked)
        ids = [query.key.id for query in queries if isinstance(query, Query)]
        removed: int = (yield Ask(self._engine.parts.store, "remove", (ids,))) if ids else 0
        return removed

    def entries(self, asked: Asked) -> list[Entry]:
        """All that is stored in the partition of a question, newest first; reads every entry.

        Raises:
            StoreError: The store could not do it.
        """
        query = self.resolve(asked)
        if isinstance(query, Miss):
            return []
        selector = Selector(node=self.node, model=query.scope.model)
        found = self._engine.parts.store.find(selector, limit=EVERY)
        return [entry for entry in found if entry.belongs_to(query.scope)]


class _Model:
    """An embedding model as something that can be asked.

    Args:
        function: Texts to vectors.
        size: How many texts it is given at a time; `None`: all.
        at_once: How many such batches it is given before the next ones; `None`: all.
    """

    def __init__(
        self, function: Callable[[list[str]], Any], size: int | None, at_once: int | None = 1
    ) -> None:
        self._function = function
        self._size = size
        self._at_once = at_once

    def rounds(self, texts: list[str]) -> list[list[list[str]]]:
        return _parts(_parts(texts, self._size), self._at_once)

    def compute(self, parts: Sequence[list[str]]) -> list[Any]:
        return [self._function(part) for part in parts]


class _AsyncModel(_Model):
    """As above, for one that is awaited."""

    async def acompute(self, parts: Sequence[list[str]]) -> list[Any]:
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        if len(parts) == 1:
            return [await self._function(parts[0])]
        return await asyncio.gather(*map(self._function, parts), return_exceptions=True)


def _is_blank(text: str) -> bool:
    return text == "" or text.isspace()


def _told(served: Served, on_hit: OnHit | None) -> Vector:
    if on_hit is not None and isinstance(served.outcome, Hit):
        on_hit(served.outcome)
    vector: Vector = served.value
    return vector


def _parts(whole: list[T], size: int | None) -> list[list[T]]:
    step = size if size is not None else max(1, len(whole))
    return [whole[start : start + step] for start in range(0, len(whole), step)]


def _matched(texts: Sequence[str], vectors: Sequence[Any]) -> dict[str, Vector]:
    if len(vectors) != len(texts):
        raise EmbedderError(
            f"the embedding model gave {len(vectors)} vectors for {len(texts)} texts; which is "
            "whose cannot be told, so none was used or stored"
        )
    return dict(zip(texts, map(_floats, vectors), strict=True))


def _storable(
    vectors: Mapping[str, Vector], outcomes: Mapping[str, Hit | Miss]
) -> Iterator[tuple[Ticket, Vector]]:
    for text, vector in vectors.items():
        outcome = outcomes.get(text)  # none for a blank text
        if isinstance(outcome, Miss) and outcome.ticket is not None and _refusal(vector) is None:
            yield outcome.ticket, vector


def _floats(vector: Sequence[Any]) -> Vector:
    if type(vector) is list and all(type(value) is float for value in vector):
        return vector
    return [float(value) for value in vector]


def _refusal(vector: Vector) -> str | None:
    if not vector:
        return "the vector is empty"
    return None if all(map(math.isfinite, vector)) else "the vector holds what is not a number"
