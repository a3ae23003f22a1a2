"""A question as the engine sees it: resolved, keyed, and bound to a frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stemma.codec import Codec
from stemma.context import Mode
from stemma.request import Key, Request
from stemma.scope import Labels, Scope
from stemma.search import Search

if TYPE_CHECKING:
    from stemma.entry import Source
    from stemma.lineage.frames import Frame
    from stemma.policies.threshold import Policy
    from stemma.walk import Place
    from stemma.worlds import Moment

__all__ = ["Query"]


# Not frozen: one is made at every lookup, and freezing triples what that costs.
@dataclass(kw_only=True, slots=True, eq=False)
class Query:
    """One lookup, with everything about it decided.

    Args:
        scope: The tenant's own scope: where a put goes.
        key: The request's key in that scope.
        request: What is asked.
        codec: How values of this node are written.
        pools: The scopes of the pools that are searched as well, with their keys.
        labels: What describes the call.
        mode: Whether the cache may be read.
        frame: The frame that the value joins, and whose reads become parents of the put; `None`
            for what has no lineage (embeddings and rerank scores are pure functions of content).
        prompt: The texts in which earlier reads are recognised, to tell observed edges.
        life: The base life of what will be stored, seconds; `None`: as the policy says.
        hop: The hop at which it is asked, from 1.
        search: The vector search behind it, where a list found for another query may serve it.
        policy: What decides by meaning; `None`: the cache's own policy.
        place: Where the agent is that asks; `None` where it is no step of one.
        within: The frame that the value was computed in, where that is not `frame`.
        sources: What the value is read from outside the cache, where that is known beforehand.
        moment: What of a private world the key tells of, where it is asked in one.
    """

    scope: Scope
    key: Key
    request: Request
    codec: Codec
    pools: tuple[tuple[Scope, Key], ...] = ()
    labels: Labels = Labels()
    mode: Mode = "normal"
    frame: Frame | None = None
    prompt: tuple[str, ...] = field(default=(), repr=False)
    life: float | None = None
    hop: int = 1
    search: Search | None = None
    policy: Policy | None = None
    place: Place | None = None
    within: Frame | None = None
    sources: tuple[Source, ...] = ()
    moment: Moment | None = None

    def key_in(self, partition: str) -> Key:
        """The request's key in the tenant's partition, or in that of a pool searched as well."""
        return next((key for _, key in self.pools if key.partition == partition), self.key)
