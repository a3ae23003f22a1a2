"""Known traffic: what was asked of this cache in this process, and what of it is stored."""

from __future__ import annotations

from collections import OrderedDict

from stemma import forking
from stemma.effects import Ask, Steps
from stemma.entry import Vector
from stemma.parts import Parts
from stemma.policies.novelty import ADMITTED, Admission, Traits, alike, traits
from stemma.query import Query

__all__ = ["Traffic"]

REQUESTS = 256
"""Requests that are remembered of one partition; the oldest are forgotten first."""

PARTITIONS = 64
"""Partitions of which requests are remembered."""

_JUDGED = ("answer", "call")


class Traffic:
    """The requests that a cache has computed values for.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: OrderedDict[str, OrderedDict[str, Traits]] = OrderedDict()
        self._lock = forking.Lock()

    def admission(self, query: Query, vector: Vector | None) -> Steps[Admission]:
        """Whether the value of a request may be stored. The request is known from now on.

        Args:
            query: The request.
            vector: Its vector, where it has one.
        """
        novelty, focus = self._parts.novelty, query.request.focus
        judged = query.scope.node in _JUDGED and focus is not None and focus.strip() != ""
        if novelty is None or not judged:
            return ADMITTED
        similarity = self._meet(query.key.partition, traits(str(focus), vector))
        if query.mode == "refresh":  # the caller asked for it to be stored
            return ADMITTED
        stored = (yield from self._stored(query)) if novelty.wants_room(similarity) else 0
        return novelty.admit(similarity, stored)

    def _meet(self, partition: str, asked: Traits) -> float:
        """The similarity to the most similar known request; then this one is known as well."""
        with self._lock:
            known = self._known.setdefault(partition, OrderedDict())
            self._known.move_to_end(partition)
            before = list(known.values())
            known[asked.text] = asked
            known.move_to_end(asked.text)
            if len(known) > REQUESTS:
                known.popitem(last=False)
            if len(self._known) > PARTITIONS:
                self._known.popitem(last=False)
        return max((alike(asked, one) for one in before), default=0.0)

    def _stored(self, query: Query) -> Steps[int]:
        """How many entries the tenant has of this node."""
        sizes = yield Ask(self._parts.store, "sizes", ())
        stored: int = sizes.get((query.scope.tenant, query.scope.node), 0)
        return stored
