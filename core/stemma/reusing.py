"""Retrievals by meaning: a list found for one query serves another (`stemma.policies.neighbours`).

What is served is always read again: documents by their ids where the index can give them, so that
deletions and rights apply, and compared with the content hashes of the list. A list that served
another query is stored under that query as well, with its own radius, so that a document that comes
into the index finds what was built on it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from stemma.calibration import Calibration
from stemma.effects import Ask, Steps
from stemma.embedders.protocol import Matrix
from stemma.entry import Entry, Vector
from stemma.errors import CodecError
from stemma.lookup import Lookup
from stemma.outcome import Hit, Miss, Stored, Ticket
from stemma.parts import Parts
from stemma.policies.neighbours import Reuse, factor_served, reuse, unit
from stemma.put import Putting
from stemma.query import Query
from stemma.ranking import Ranking
from stemma.search import Search

__all__ = ["Reusing"]

DEPTH = 8
"""Near queries that are looked at."""

NEAR = 0.8
"""The least similarity of two queries of which one may be served the other's list: below, nothing
was measured."""

_WHY = {
    "exact": "the same query was searched before",
    "prefix": "the same query was searched before for more documents",
    "proven": "no document outside the list of a near query can be nearer to this one",
    "statistical": "hardly any document outside the list of a near query is nearer to this one",
}


class _Listed(NamedTuple):
    """An entry's list that can serve other queries, and how similar its query is to this one."""

    entry: Entry
    ranking: Ranking
    query: Vector
    vectors: Matrix
    similarity: float


class Reusing:
    """The reuse of lists, as steps.

    Args:
        parts: What the cache works with.
        looking: Its lookup.
        putting: Its put.
    """

    def __init__(self, parts: Parts, looking: Lookup, putting: Putting) -> None:
        self._parts = parts
        self._looking = looking
        self._putting = putting
        self._random = random.Random()  # noqa: S311 - chooses what is audited, nothing secret
        self.calibration = Calibration(parts)

    def confirm(self, query: Query, hit: Hit) -> Steps[Hit | Miss]:
        """An exact hit as it may be served: its first k documents, as they are now."""
        search, ranking = _search(query), hit.value
        if not isinstance(ranking, Ranking) or not ranking.holds(search.k):
            return Miss(reason="too_few", nearest=hit.entry.id, similarity=1.0)
        chosen = range(min(search.k, len(ranking)))
        documents = yield from self._documents(search, ranking, chosen)
        if documents is None:
            return _changed(hit.entry, 1.0)
        how = ranking.kind if ranking.kind != "searched" else _same(search.k, ranking.k)
        search.searcher.note(documents, query.frame)
        return replace(hit, value=ranking.first(search.k, documents), list=how, why=_WHY[how])

    def semantic(self, query: Query) -> Steps[tuple[Hit | Miss, Vector | None]]:
        """What a list found for a near query gives for this one."""
        search = _search(query)
        if not self.calibration.knows(query.scope.index):
            yield Ask(self.calibration, "load", (query.scope.index,))
        given = yield Ask(search.searcher, "embed", (query.request.focus,), foreign=True)
        vector = unit(given)
        if vector is None:
            return Miss(reason="cold", detail="the query has no vector"), None
        near = yield from self._looking.near(query, vector, DEPTH, NEAR)
        fetched, readable, refused = yield from self._looking.readable(query, near, NEAR)
        lists = list(_lists(query, readable, vector))
        if not lists:
            return Miss(reason="cold") if refused is None else refused, vector
        search.near = [one.ranking for one in lists]
        miss = Miss(reason="unproven", nearest=lists[0].entry.id, similarity=lists[0].similarity)
        for listed, found in self._found(query, lists, vector):
            entry, ranking, similarity = listed.entry, listed.ranking, listed.similarity
            ticket = Ticket(
                query=query,
                sequence=fetched.sequence,
                started=self._parts.clock.monotonic(),
            )
            reason, detail = yield from self._looking.deep_refusal(
                entry, fetched.epoch, self._parts.clock.now()
            )
            if reason is not None:
                miss = Miss(reason=reason, nearest=entry.id, similarity=similarity, detail=detail)
                continue
            if found.kind == "statistical" and self._random.random() < search.audited:
                search.audit = True
                return Miss(reason="audit", nearest=entry.id, similarity=similarity), vector
            chosen = found.order[: search.k]
            documents = yield from self._documents(search, ranking, chosen)
            if documents is None:
                miss = _changed(entry, similarity)
                continue
            search.searcher.note(documents, query.frame)
            served = ranking.reused(vector, found, search.k, documents)
            stored = yield from self._keep(ticket, served, entry)
            if stored.refused in ("recalled", "parent_gone"):
                return _changed(entry, similarity), vector
            return self._hit(query, entry, served, similarity), vector
        return miss, vector

    def learn(self, query: Query, ranking: Ranking) -> None:
        """A search was made: note what the lists seen before it would have been worth."""
        search, asked = _search(query), ranking.query
        if asked is None or len(ranking) < search.k:
            return
        right = set(ranking.chunks[: search.k])
        for listed in search.near:
            if listed.query is None or listed.vectors is None:
                continue
            served = factor_served(
                asked, listed.query, listed.vectors, floor=listed.floor, k=search.k
            )
            if served is None:
                continue
            missed = len(right - set(listed.chunks)) / search.k
            # One that would have served stands for those that did.
            audited = search.audit and served >= search.factor
            weight = 1.0 / search.audited if audited else 1.0
            self.calibration.learn(query.scope.index, served, missed, weight=weight)

    def _found(
        self, query: Query, lists: Sequence[_Listed], vector: Vector
    ) -> list[tuple[_Listed, Reuse]]:
        """The lists that may serve: the proven ones first, then those with the largest margin."""
        search = _search(query)
        search.factor = self.calibration.factor(query.scope.index)
        found = []
        for one in lists:
            serving = reuse(
                vector,
                one.query,
                one.vectors,
                floor=one.ranking.floor,
                k=search.k,
                factor=search.factor,
            )
            if serving is not None:
                found.append((one, serving))
        return sorted(found, key=lambda one: (one[1].kind != "proven", -one[1].margin))

    def _documents(
        self, search: Search, ranking: Ranking, chosen: Sequence[int]
    ) -> Steps[list[Any] | None]:
        """The chosen documents of a list, or `None` where one has changed or is gone."""
        if ranking.documents is not None:
            return [ranking.documents[place] for place in chosen]
        ids = [ranking.chunks[place] for place in chosen]
        read = (yield Ask(search.searcher, "read", (ids,), foreign=True)) if ids else {}
        documents = []
        for place in chosen:
            document = read.get(ranking.chunks[place])
            if document is None or search.searcher.content(document) != ranking.contents[place]:
                return None
            documents.append(document)
        return documents

    def _keep(self, ticket: Ticket, served: Ranking, entry: Entry) -> Steps[Stored]:
        """Store the list under the new query: it lives as long as the one it came from."""
        rest = None
        if entry.expires is not None:
            rest = max(0.0, entry.expires - self._parts.clock.now())
        return (yield from self._putting.put(ticket, served, cost=entry.cost, life=rest))

    def _hit(self, query: Query, entry: Entry, served: Ranking, similarity: float) -> Hit:
        return Hit(
            entry=entry,
            value=served,
            tier="semantic",
            similarity=similarity,
            age=max(0.0, self._parts.clock.now() - entry.made),
            why=_WHY[served.kind],
            probability=1.0 if served.kind == "proven" else 0.999,
            list=served.kind,
            question=query.key_in(entry.partition).id,
        )


def _search(query: Query) -> Search:
    assert query.search is not None  # noqa: S101 - only asked for what has one
    return query.search


def _same(k: int, stored: int) -> str:
    return "exact" if k == stored else "prefix"


def _changed(entry: Entry, similarity: float) -> Miss:
    return Miss(
        reason="source_changed",
        nearest=entry.id,
        similarity=similarity,
        detail="a document has changed or gone since, or new ones came",
    )


def _lists(
    query: Query, readable: Sequence[tuple[Entry, float]], vector: Vector
) -> Iterator[_Listed]:
    """The lists of those of the entries that can serve other queries."""
    for entry, _ in readable:
        try:
            ranking = query.codec.decode(entry.payload)
        except CodecError:
            continue
        if not isinstance(ranking, Ranking) or ranking.query is None or ranking.vectors is None:
            continue
        if ranking.query.shape == vector.shape:
            similarity = float(ranking.query @ vector)
            yield _Listed(entry, ranking, ranking.query, ranking.vectors, similarity)
