"""Taking back what should not be served any more: recalls and removals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from stemma.effects import Ask, Steps
from stemma.errors import StoreUnavailable, UsageError
from stemma.outcome import Recall
from stemma.parts import Parts
from stemma.scope import NODES
from stemma.selector import Selector
from stemma.stores.protocol import Store

__all__ = ["take_back"]


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
