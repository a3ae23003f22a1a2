"""What the journal tells of wrong parents and their children. Reads a store."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from stemma.entry import Lineage
from stemma.propagation.attenuation import Audit
from stemma.stores.protocol import Judgement, Store
from stemma.verdicts import PRIOR, WRONG, counting, probability

__all__ = ["AUDITED", "JUDGED", "audits"]

AUDITED = 500
"""Wrong parents whose children are looked at, the newest."""

JUDGED = 10_000
"""Judgements that are read, the newest."""


class _Known(NamedTuple):
    """What is known of a value: whether it is wrong, and since when."""

    wrong: bool
    at: float


_Values = dict[tuple[str, str], _Known]
"""By the entry's id and the value hash."""


def audits(store: Store) -> dict[tuple[str, str], list[Audit]]:
    """By producer and consumer: what came of children whose parent is known to be wrong.

    A value is known to be wrong if all that was said of it makes that as likely as `WRONG`, and
    right if it makes it less likely than it was before anybody spoke (`stemma.verdicts`). Only
    stored children are looked at, and only as built on the very value that was wrong.
    """
    known = _known(reversed(store.judgements(limit=JUDGED)))
    newest = reversed([entry for (entry, _), told in known.items() if told.wrong])
    wrong = islice(dict.fromkeys(newest), AUDITED)
    judged = {entry for entry, _ in known}
    pairs = [
        (parent, child) for parent in wrong for child in store.children(parent) if child in judged
    ]
    found: dict[tuple[str, str], list[Audit]] = {}
    if not pairs:
        return found
    entries = store.get(list(dict.fromkeys(one for pair in pairs for one in pair))).entries
    for parent, child in pairs:
        producer, consumer = entries.get(parent), entries.get(child)
        if producer is None or consumer is None:
            continue
        told = known.get((child, consumer.value))
        if told is None or not _built_on_wrong(known, parent, store.lineage(child)):
            continue
        audit = Audit(parent_wrong=True, child_wrong=told.wrong, at=told.at)
        found.setdefault((producer.tenant, consumer.tenant), []).append(audit)
    return found


def _known(judgements: Iterable[Judgement]) -> _Values:
    """Of each value of which enough was said: what. From the oldest judgement to the newest."""
    said: dict[tuple[str, str], list[Judgement]] = {}
    for one in judgements:
        said.setdefault((one.entry, one.value), []).append(one)
    known: _Values = {}
    for value, some in said.items():
        counted = counting(some)
        likely = probability(counted)
        if likely >= WRONG or likely < PRIOR:
            known[value] = _Known(likely >= WRONG, max(one.at for one in counted))
    return known


def _built_on_wrong(known: _Values, parent: str, lineage: Lineage | None) -> bool:
    edges = () if lineage is None else lineage.parents
    values = (known.get((edge.parent, edge.value)) for edge in edges if edge.parent == parent)
    return any(told is not None and told.wrong for told in values)
