"""What the journal tells of wrong parents and their children. Reads a store."""

from __future__ import annotations

from collections.abc import Iterable

from stemma.entry import Lineage
from stemma.propagation.attenuation import Audit
from stemma.stores.protocol import Judgement, Store

__all__ = ["JUDGED", "audits"]

JUDGED = 10_000
"""Judgements that are read, the newest."""

_WRONG = {"hallucinated": True, "disagreed": True, "supported": False, "agreed": False}

_Known = dict[tuple[str, str], Judgement]
"""What was said last of a value, by the entry's id and the value hash."""


def audits(store: Store) -> dict[tuple[str, str], list[Audit]]:
    """By producer and consumer: what came of children whose parent is known to be wrong.

    A value is known to be wrong if the last that was said of it is that it is hallucinated, or
    that an audit of its own question disagreed; right, if it is supported or an audit agreed.
    Only stored children are looked at, and only as built on the very value that was wrong.
    """
    known = _known(reversed(store.judgements(limit=JUDGED)))
    wrong = {key: said for key, said in known.items() if _WRONG[said.verdict]}
    judged = {entry for entry, _ in known}
    pairs = [
        (parent, child)
        for parent in dict.fromkeys(entry for entry, _ in wrong)
        for child in store.children(parent)
        if child in judged
    ]
    found: dict[tuple[str, str], list[Audit]] = {}
    if not pairs:
        return found
    entries = store.get(list(dict.fromkeys(one for pair in pairs for one in pair))).entries
    for parent, child in pairs:
        producer, consumer = entries.get(parent), entries.get(child)
        if producer is None or consumer is None:
            continue
        said = known.get((child, consumer.value))
        if said is None or not _built_on(wrong, parent, store.lineage(child)):
            continue
        audit = Audit(parent_wrong=True, child_wrong=_WRONG[said.verdict], at=said.at)
        found.setdefault((producer.tenant, consumer.tenant), []).append(audit)
    return found


def _known(judgements: Iterable[Judgement]) -> _Known:
    """What was said last of each value, out of judgements from the oldest to the newest."""
    known: _Known = {}
    for one in judgements:
        if one.verdict == "unknown":
            known.pop((one.entry, one.value), None)
        elif one.verdict in _WRONG and one.question in ("", one.entry):
            known[one.entry, one.value] = one
    return known


def _built_on(wrong: _Known, parent: str, lineage: Lineage | None) -> bool:
    edges = () if lineage is None else lineage.parents
    return any(edge.parent == parent and (parent, edge.value) in wrong for edge in edges)
