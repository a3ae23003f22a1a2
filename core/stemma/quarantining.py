"""Holding back what may be wrong, and letting go of it again."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Sequence
from dataclasses import replace

from stemma.effects import Steps, whole
from stemma.errors import UsageError
from stemma.outcome import Held, Quarantine
from stemma.parts import Parts
from stemma.policies.shares import share
from stemma.propagation.attenuation import Passing
from stemma.propagation.audits import audits
from stemma.propagation.descent import Seeds, descent, named, stored
from stemma.propagation.graph import HALF_LIFE
from stemma.propagation.quarantine import quarantine as suspects
from stemma.propagation.spread import spread
from stemma.saying import named_by
from stemma.stores.protocol import Store

__all__ = ["quarantine", "quarantines", "release"]

ROUNDS = 8
"""How often it is looked for what was stored meanwhile; what is held gets nothing new built on it,
so that there is less and less of it."""

WORLDS = 512
"""How many are sampled, where the reckoning is not exact: the error of a probability is at most
0.022, one standard error, and who is held comes a little sooner than by twice as many."""


def quarantine(
    parts: Parts,
    seeds: Sequence[Seeds],
    *,
    threshold: float,
    by: str,
    reason: str = "",
    dry_run: bool = False,
    source: str | None = None,
    tenant: str | None = None,
) -> Steps[Quarantine]:
    """Hold what is likely enough to be wrong. See `Cache.quarantine`.

    Raises:
        UsageError: Nothing is named, an entry of which nothing was ever known, or an argument is
            wrong.
        StoreError: The store could not do it.
    """
    named_by(by)
    if not isinstance(reason, str):
        raise UsageError(f"reason must be a text, not {type(reason).__name__}")
    if not share("threshold", threshold):
        raise UsageError("threshold must be above 0: else all entries were held")
    plan = functools.partial(
        Quarantine, threshold=threshold, by=by, reason=reason, at=parts.clock.now()
    )

    def work() -> Quarantine:
        store = parts.store
        suspected = plan(seeds=named(store, seeds, source=source, tenant=tenant), entries=())
        passing = Passing(audits(store), now=suspected.at, half_life=HALF_LIFE)
        if dry_run:
            found = _suspected(store, suspected, passing)
            return replace(suspected, entries=found, dry_run=True)
        return _held(store, suspected, passing)

    receipt = yield from whole(work)
    if not dry_run:
        parts.saw(receipt.sequence)
        parts.tell("quarantine", None, "held", detail=str(receipt))
    return receipt


def release(parts: Parts, told: Quarantine | str) -> Steps[Quarantine]:
    """End a quarantine. See `Cache.release`.

    Raises:
        UsageError: There is no such quarantine.
        StoreError: The store could not do it.
    """
    named_ = told.id if isinstance(told, Quarantine) else told
    if not isinstance(named_, str):
        raise UsageError(f"a quarantine is named by its receipt or id, not {told!r}")
    if not named_:
        raise UsageError("a rehearsal holds nothing: there is nothing to release")
    now = parts.clock.now()

    def work() -> Quarantine | None:
        receipt = parts.store.release(named_, now=now)
        if receipt is None:
            return None
        there = stored(parts.store, (one.entry for one in receipt.entries))
        gone = tuple(one.entry for one in receipt.entries if one.entry not in there)
        return replace(receipt, gone=gone)

    receipt = yield from whole(work)
    if receipt is None:
        raise UsageError(f"there is no quarantine {named_!r}")
    parts.tell("quarantine", None, "released", detail=str(receipt))
    return receipt


def quarantines(parts: Parts) -> Steps[tuple[Quarantine, ...]]:
    """The receipts, newest first."""
    return (yield from whole(parts.store.quarantines))


def _held(store: Store, plan: Quarantine, passing: Passing) -> Quarantine:
    """Hold what is suspected, and what was built on it while that was found out.

    Where somebody wrote between, a second quarantine takes the first one's place.
    """
    receipt = plan
    for _ in range(ROUNDS):
        before = store.sequence()
        entries = _suspected(store, plan, passing)
        if receipt.id and {one.entry for one in entries} == {one.entry for one in receipt.entries}:
            break
        former, receipt = (
            receipt,
            store.hold(replace(plan, id=secrets.token_hex(8), entries=entries)),
        )
        if former.id:
            store.release(former.id, now=plan.at)
        elif receipt.sequence == before + 1:
            break  # nobody wrote between
    return receipt


def _suspected(store: Store, receipt: Quarantine, passing: Passing) -> tuple[Held, ...]:
    """The seeds, and what was built on them and is as likely wrong as the threshold."""
    below = descent(store, receipt.seeds, passing)
    likely = spread(below.edges, receipt.seeds, worlds=WORLDS)
    found = suspects(likely, threshold=receipt.threshold)
    doubtful, wrong = set(found.doubtful), likely.wrong()
    chosen = dict.fromkeys(str(one) for one in (*found.held, *receipt.seeds))
    return tuple(
        Held(
            entry=entry.id,
            tenant=entry.tenant,
            pool=entry.pool,
            node=entry.node,
            hop=entry.hop,
            probability=wrong[entry.id],
            doubtful=entry.id in doubtful,
        )
        for entry in (below.entries[one] for one in chosen if one in below.entries)
    )
