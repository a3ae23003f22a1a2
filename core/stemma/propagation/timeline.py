"""What happened to some entries, in the order of time. Reads a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from stemma.legible import legible
from stemma.propagation.audits import JUDGED
from stemma.propagation.descent import Descent
from stemma.stores.protocol import Judgement, Store
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

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.at, UTC)
        who = f" {legible(self.tenant)}" if self.tenant else ""
        return f"{at:%Y-%m-%d %H:%M:%S} UTC {self.what}{who}: {self.detail}"


def timeline(store: Store, below: Descent, servings: Sequence[Flow]) -> list[Moment]:
    """What happened to the seeds and to all that was built on them.

    Args:
        store: Where reports, quarantines and recalls are.
        below: The entries.
        servings: To whom they were served.
    """
    affected = set(below.ids)
    said = [one for one in store.judgements(limit=JUDGED) if one.entry in affected]
    moments = [*_made(below, said), *_served(servings), *_told(store, said, affected)]
    return sorted(moments, key=lambda one: one.at)


def _made(below: Descent, said: Sequence[Judgement]) -> Iterator[Moment]:
    promoted = {one.entry: one for one in reversed(said) if one.verdict == "promoted"}
    for one, entry in below.entries.items():
        words = f"{entry.node} {one}"
        if entry.pool is None:
            what: Happening = "made" if one in below.seeds else "built"
            yield Moment(entry.made, what, entry.tenant, words)
        elif one in promoted:  # the copy itself was made when its original was
            by = promoted[one].by
            words = f"{words} into pool {entry.pool} by {by}"
            yield Moment(promoted[one].at, "promoted", entry.tenant, words)
        else:
            yield Moment(entry.made, "promoted", entry.tenant, f"{words} into pool {entry.pool}")


def _served(servings: Iterable[Flow]) -> Iterator[Moment]:
    for flow in servings:
        place = f" out of pool {flow.pool}" if flow.pool else ""
        times = "once" if flow.uses == 1 else f"{flow.uses} times"
        yield Moment(flow.first, "served", flow.consumer, f"{flow.entry}{place}, {times}")


def _told(store: Store, said: Sequence[Judgement], affected: set[str]) -> Iterator[Moment]:
    for one in said:
        if one.verdict in _REPORTS:
            words = f"{one.entry} {one.verdict} by {one.by}"
            yield Moment(one.at, "reported", one.tenant, words)
    for recall in store.recalls():
        if not affected.isdisjoint(gone.entry for gone in recall.entries):
            yield Moment(recall.at, "recalled", "", str(recall))
    for receipt in store.quarantines():
        if affected.isdisjoint(held.entry for held in receipt.entries):
            continue
        yield Moment(receipt.at, "quarantined", "", f"{receipt} by {receipt.by}")
        if receipt.lifted is not None:
            yield Moment(receipt.lifted, "released", "", f"quarantine {receipt.id}")
