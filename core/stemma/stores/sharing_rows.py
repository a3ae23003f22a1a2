"""Receipts of quarantines as rows and out of rows, once for the stores that write SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from stemma.outcome import Held, Quarantine
from stemma.stores.text import Damaged, escape, unescape

__all__ = ["HELD", "RECEIPT", "held_row", "receipt_row", "receipts"]

RECEIPT = "id, sequence, at, by, reason, threshold, seeds"
"""The columns of a receipt, in the order of `receipt_row`; for `receipts`, with `lifted` after."""

HELD = "entry, tenant, pool, node, hop, probability, doubtful"
"""Those of an entry that it holds, in the order of `held_row`; for `receipts`."""


def receipt_row(receipt: Quarantine) -> tuple[Any, ...]:
    """A receipt's columns, `RECEIPT`."""
    seeds = json.dumps({escape(seed): float(p) for seed, p in receipt.seeds.items()})
    return (
        escape(receipt.id),
        receipt.sequence,
        float(receipt.at),
        escape(receipt.by),
        escape(receipt.reason),
        float(receipt.threshold),
        seeds,
    )


def held_row(one: Held) -> tuple[Any, ...]:
    """The columns of an entry that is held, `HELD`."""
    pool = None if one.pool is None else escape(one.pool)
    texts = (escape(one.entry), escape(one.tenant), pool, escape(one.node))
    return (*texts, one.hop, float(one.probability), bool(one.doubtful))


def receipts(rows: Iterable[Any], held: Iterable[Any]) -> tuple[Quarantine, ...]:
    """The receipts of some rows; what is damaged is left out.

    Args:
        rows: `RECEIPT` and `lifted`, in the order of the receipts.
        held: A receipt's id and `HELD`, in the order in which each holds them.
    """
    listed: dict[str, list[Any]] = {}
    for key, *row in held:
        listed.setdefault(key, []).append(row)
    return tuple(_receipts(rows, listed))


def _receipts(rows: Iterable[Any], listed: dict[str, list[Any]]) -> Iterator[Quarantine]:
    for key, sequence, at, by, reason, threshold, seeds, lifted in rows:
        with suppress(Damaged, TypeError, ValueError, AttributeError):
            yield Quarantine(
                id=unescape(key),
                seeds={unescape(seed): float(p) for seed, p in json.loads(seeds).items()},
                threshold=threshold,
                by=unescape(by),
                reason=unescape(reason),
                at=at,
                entries=tuple(_held(listed.get(key, ()))),
                lifted=lifted,
                sequence=sequence,
            )


def _held(rows: Iterable[Any]) -> Iterator[Held]:
    for entry, tenant, pool, node, hop, probability, doubtful in rows:
        with suppress(Damaged):
            # The node is one of ours: it was an entry's.
            yield Held(
                entry=unescape(entry),
                tenant=unescape(tenant),
                pool=None if pool is None else unescape(pool),
                node=unescape(node),  # type: ignore[arg-type]
                hop=hop,
                probability=probability,
                doubtful=doubtful == 1,
            )
