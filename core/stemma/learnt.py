"""The live policy of each tenant and node: what one tenant's answers taught changes no other's.

A policy that learns begins for each tenant and node as the cache's own policy is, and takes in what
the store holds of it. What it learns is written by the journal, a lesson at a time, so that it
outlives the process, and processes that share a store add up: each takes in the others' lessons at
its own next judgement, once `AGAIN` seconds have passed. A process that is killed loses the lessons
of its last second; those of the others it hears of that much later. Neither is ever overwritten.

Lessons belong to the policy, embedder and verifier they were learnt with. Others are left alone.
"""

from __future__ import annotations

import json
import math
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stemma import forking
from stemma.clock import Clock
from stemma.effects import Ask, Steps
from stemma.embedders.protocol import Embedder
from stemma.errors import UsageError
from stemma.journal import Journal
from stemma.policies.learning import Judgement, Learns, Trial
from stemma.policies.threshold import Candidate, Decision, Policy
from stemma.stores.protocol import Lesson, Store

__all__ = ["AGAIN", "LIVE", "Policies"]

LIVE = 128
"""How many policies are in memory; of the others, those used longest ago, the store has all."""

AGAIN = 5.0
"""Seconds after which a judgement has the others' lessons read as well."""


@runtime_checkable
class _Learning(Policy, Learns, Protocol):
    """Decides, and learns."""


# Not frozen: what was read and counted moves on.
@dataclass(slots=True, eq=False)
class _Live:
    """The policy of one tenant and node.

    Args:
        policy: It.
        seen: The number of the last lesson that was read.
        read: When, on the monotonic clock.
        decided: How many requests it has decided since its last lesson.
    """

    policy: _Learning
    seen: int = 0
    read: float = -math.inf
    decided: int = 0


class Policies:
    """The policies of one cache.

    Args:
        recipe: What each begins as. One that does not learn serves all.
        embedder: What the similarities come from.
        store: Where lessons are kept.
        journal: What writes them.
        clock: Where time comes from.
        warn: Called with words on lessons that are of no use here.
    """

    def __init__(
        self,
        recipe: Policy,
        *,
        embedder: Embedder | None,
        store: Store,
        journal: Journal,
        clock: Clock,
        warn: Callable[[str], None],
    ) -> None:
        self._recipe, self._embedder = recipe, embedder
        self._learning = recipe if isinstance(recipe, _Learning) else None
        self._store, self._journal, self._clock, self._warn = store, journal, clock, warn
        self._lock, self._hearing = forking.Lock(), forking.Lock()
        self.after_fork()
        forking.follow(self)

    def after_fork(self) -> None:
        """Begin anew in the child: what the parent has not written yet, the parent will."""
        self._live: OrderedDict[tuple[str, str], _Live] = OrderedDict()
        self._laid_aside: set[tuple[str, str]] = set()
        self._writer = secrets.token_hex(8)

    def decide(
        self, tenant: str, node: str, asked: str, candidates: Sequence[Candidate]
    ) -> Steps[Decision]:
        """What may be served of these candidates: see `stemma.policies.threshold.Policy.decide`.

        Raises:
            StoreError: What was learnt of this tenant cannot be read.
        """
        if self._learning is None:
            return self._recipe.decide(asked, candidates)
        live = yield from self._of(tenant, node)
        decision = live.policy.decide(asked, candidates)
        live.decided += not decision.look
        return decision

    def learn(self, tenant: str, node: str, judgement: Judgement) -> Steps[None]:
        """Tell the policy of a tenant and node, and have it written.

        Raises:
            StoreError: What was learnt of this tenant cannot be read.
            UsageError: The judgement is of another policy's trial.
        """
        if self._learning is None:
            return
        live = yield from self._of(tenant, node)
        live.policy.learn(judgement)
        decided, live.decided = live.decided, 0
        self._journal.teach(
            Lesson(
                tenant=tenant,
                node=node,
                state=self._state(live),
                writer=self._writer,
                candidate=judgement.trial.candidate,
                known=judgement.trial.known,
                weight=judgement.trial.weight,
                right=judgement.right,
                by=judgement.by,
                requests=decided,
                at=self._clock.now(),
            )
        )
        if self._clock.monotonic() >= live.read + AGAIN:
            yield Ask(self, "hear", (tenant, node, live))

    def _of(self, tenant: str, node: str) -> Steps[_Live]:
        with self._lock:
            live = self._live.get((tenant, node))
            if live is not None:
                self._live.move_to_end((tenant, node))
                return live
        found: _Live = yield Ask(self, "load", (tenant, node))
        return found

    def load(self, tenant: str, node: str) -> _Live:
        """The policy of a tenant and node, as the store has it.

        Raises:
            StoreError: It cannot be read.
        """
        if self._learning is None:
            raise UsageError("this policy does not learn")
        room = (tenant, node)
        if room in self._laid_aside:
            self._journal.flush()  # its last lessons may not be written yet
        live = _Live(self._learning.anew())
        others = self._take_in(room, live, own=True)
        if others:
            self._warn(
                f"what was learnt of {tenant!r} at {node} is left alone: it belongs to "
                + " and ".join(others)
            )
        with self._lock:
            live = self._live.setdefault(room, live)
            self._laid_aside.discard(room)
            if len(self._live) > LIVE:
                self._laid_aside.add(self._live.popitem(last=False)[0])
        return live

    def hear(self, tenant: str, node: str, live: _Live) -> None:
        """Take in what other caches have learnt meanwhile.

        Raises:
            StoreError: It cannot be read.
        """
        with self._hearing:
            if self._clock.monotonic() >= live.read + AGAIN:
                self._take_in((tenant, node), live, own=False)

    def _take_in(self, room: tuple[str, str], live: _Live, *, own: bool) -> tuple[str, ...]:
        """Read the lessons that follow; gives the states that some of them belong to instead."""
        state = self._state(live)
        live.read = self._clock.monotonic()
        lessons = self._store.lessons(*room, after=live.seen)
        fit = [
            _judgement(one)
            for one in lessons
            if one.state == state and (own or one.writer != self._writer)
        ]
        try:
            live.policy.learn(*fit)
        except UsageError:  # one is damaged: the others count
            for one in fit:
                with suppress(UsageError):
                    live.policy.learn(one)
        live.seen = max((one.number for one in lessons), default=live.seen)
        return tuple(sorted({one.state for one in lessons} - {state}))

    def _state(self, live: _Live) -> str:
        revision = "" if self._embedder is None else self._embedder.revision
        return json.dumps({**live.policy.identity, "compared by": revision}, sort_keys=True)


def _judgement(lesson: Lesson) -> Judgement:
    trial = Trial(candidate=lesson.candidate, known=lesson.known, weight=lesson.weight)
    return Judgement(trial=trial, right=lesson.right, by=lesson.by, requests=lesson.requests)
