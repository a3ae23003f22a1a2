"""What happened to some entries, in the order of time. Reads a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from stemma.propagation.audits import JUDGED
from stemma.propagation.descent import Descent
from stemma.stores.protocol import Store
from stemma.stores.sharing import Flow

__all__ = ["Happening", "Moment", "timeline"]

Happening = Literal[
    "made", "promoted", "built", "served", "reported", "quarantined", "recalled", "released"
]

_REPORTS = frozenset({"hallucinated", "supported", "wrong_hit"})


class Moment(NamedTuple):
    """Something that happened.

    Args:
        at: When, seconds since 1970-01-01 UTC; of what was served, when first.
        what: What. `made`: a seed was; `built`: an entry was, on what may have been wrong;
            `promoted`: it was copied into a pool; `served`: it was, to a tenant; `reported`:
            somebody said whether it is right; `quarantined`, `released`, `recalled`.
        tenant: Whose it is, to whom it was served, or in whose name it was reported; empty of what
            concerns all.
        detail: More words, without any prompt's text.
    """

    at: float
    what: Happening
    tenant: str
    detail: str


def timeline(store: Store, below: Descent, servings: Sequence[Flow]) -> list[Moment]:
    """What happened to the seeds and to all that was built on them.

    Args:
        store: Where reports, quarantines and recalls are.
        below: The entries.
        servings: To whom they were served.
    """
    moments = [*_made(below), *_served(servings), *_told(store, set(below.ids))]
    return sorted(moments, key=lambda one: one.at)


def _made(below: Descent) -> Iterator[Moment]:
    copies = {copy for _, copy in below.copies}
    for one, entry in below.entries.items():
        what: Happening = "built"
        if one in copies:
            what = "promoted"
        elif one in below.seeds:
            what = "made"
        place = f" into pool {entry.pool}" if what == "promoted" else ""
        yield Moment(entry.made, what, entry.tenant, f"{entry.node} {one}{place}")


def _served(servings: Iterable[Flow]) -> Iterator[Moment]:
    for flow in servings:
        place = f" out of pool {flow.pool}" if flow.pool else ""
        times = "once" if flow.uses == 1 else f"{flow.uses} times"
        yield Moment(flow.first, "served", flow.consumer, f"{flow.entry}{place}, {times}")


def _told(store: Store, affected: set[str]) -> Iterator[Moment]:
    for said in store.judgements(limit=JUDGED):
        if said.entry in affected and said.verdict in _REPORTS:
            words = f"{said.entry} {said.verdict} by {said.by}"
            yield Moment(said.at, "reported", said.tenant, words)
    for recall in store.recalls():
        if not affected.isdisjoint(one.entry for one in recall.entries):
            yield Moment(recall.at, "recalled", "", str(recall))
    for receipt in store.quarantines():
        if affected.isdisjoint(one.entry for one in receipt.entries):
            continue
        yield Moment(receipt.at, "quarantined", "", f"{receipt} by {receipt.by}")
        if receipt.lifted is not None:
            yield Moment(receipt.lifted, "released", "", f"quarantine {receipt.id}")
