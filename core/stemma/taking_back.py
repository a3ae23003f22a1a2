"""Taking back what should not be served any more: recalls and removals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import fields

from stemma.effects import Ask, Steps, whole
from stemma.errors import StoreUnavailable, UsageError
from stemma.outcome import Recall
from stemma.parts import Parts
from stemma.scope import NODES
from stemma.selector import Selector
from stemma.stores.protocol import RecallsMany, Store

__all__ = ["recall_all", "take_back", "together"]


def take_back(
    parts: Parts, named: Mapping[str, str], *, dry_run: bool = False, cascade: bool = True
) -> Steps[Recall]:
    """Take back the entries named and, with `cascade`, everything built from them.

    Raises:
        UsageError: Nothing is named, or something unknown.
        StoreError: The store could not do it.
    """
    known = {field.name for field in fields(Selector)}
    if unknown := sorted(set(named) - known):
        raise UsageError(f"cannot recall by {', '.join(unknown)}; by {', '.join(sorted(known))}")
    if unnamed := sorted(name for name, value in named.items() if value is None):
        raise UsageError(f"{', '.join(unnamed)} is None; leave out what is not meant")
    if (node := named.get("node", NODES[0])) not in NODES:
        raise UsageError(f"unknown node {node!r}; one of {', '.join(NODES)}")
    act = _Recalling(parts.store, Selector(**named), parts.clock.now(), dry_run, cascade)
    try:
        recall: Recall = yield Ask(act, "recall")
    except StoreUnavailable as error:
        raise StoreUnavailable(f"nothing was taken back, recall again: {error}") from error
    parts.saw(recall.sequence)
    if not dry_run:
        parts.tell("recall", None, "recalled" if cascade else "cleared", detail=str(recall))
    return recall


def recall_all(parts: Parts, selectors: Sequence[Selector]) -> Steps[list[Recall]]:
    """Take back what each of the selectors names, and everything built from it.

    Raises:
        StoreError: The store could not do it. Not everything was taken back.
    """
    if not selectors:
        return []
    store, now = parts.store, parts.clock.now()

    def work() -> Sequence[Recall]:
        if isinstance(store, RecallsMany):  # in one transaction
            return store.recall_all(selectors, now=now)
        return [store.recall(one, now=now) for one in selectors]

    receipts = list((yield from whole(work)))
    parts.saw(max(one.sequence for one in receipts))
    return receipts


def together(parts: Parts, receipts: Sequence[Recall], named: Mapping[str, str]) -> Recall:
    """One receipt for several recalls, each entry once; `named` says what they were for."""
    entries = itertools.chain.from_iterable(receipt.entries for receipt in receipts)
    return Recall(
        selector=named,
        dry_run=False,
        entries=tuple(dict.fromkeys(entries)),
        sequence=max((one.sequence for one in receipts), default=parts.sequence),
        at=max((one.at for one in receipts), default=parts.clock.now()),
    )


class _Recalling:
    """A recall as something that can be asked: `Store.recall` takes keywords."""

    def __init__(
        self, store: Store, selector: Selector, now: float, dry_run: bool, cascade: bool
    ) -> None:
        self._store = store
        self._selector = selector
        self._named = {"now": now, "dry_run": dry_run, "cascade": cascade}
        if (native := getattr(store, "arecall", None)) is not None:
            self.arecall = lambda: native(selector, **self._named)

    def recall(self) -> Recall:
        return self._store.recall(self._selector, **self._named)  # type: ignore[arg-type]
