"""A seeded history of everything that a store is asked to write, and what it holds afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stemma.entry import Entry
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.protocol import Count, Judgement, Put, Serving, Store
from stemma.testing.builders import NOW, entry, put, source, vector
from stemma.testing.store_holds import quarantine

__all__ = ["NAMES", "Step", "snapshot", "step"]

Step = Callable[[Store], object]
"""One write transaction, to be done on any store."""

NAMES = tuple(f"e{number}" for number in range(80))
"""The ids of all entries in a history."""

_ALL = 1_000_000
_TAGS = ("blue", "green", "red")


def step(lucky: random.Random, store: Store) -> Step:
    """What happens next to a store that is as this one is."""
    stored = list(store.find(limit=_ALL))
    kinds = [_puts, _recall, _removal, _judgement, _journal, _hold, _release]
    (kind,) = lucky.choices(kinds, weights=(66, 6, 3, 10, 15, 4, 2))
    if not stored and kind in (_removal, _judgement):
        kind = _puts
    return kind(lucky, stored, store.sequence())


def snapshot(store: Store) -> Mapping[str, Any]:
    """All that a store tells of a history's entries."""
    found = store.get(NAMES)
    changes = store.changes(0)
    return {
        "entries": found.entries,
        "damaged": found.damaged,
        "sequence": found.sequence,
        "epoch": found.epoch,
        "newest first": store.find(limit=_ALL),
        "lineages": {name: store.lineage(name) for name in NAMES},
        "children": {name: store.children(name) for name in NAMES},
        "vectors": {name: one.tobytes() for name, one in store.vectors(NAMES).items()},
        "for an index": (*changes.ids, *changes.groups, *changes.removed),
        "recalls": store.recalls(limit=_ALL),
        "quarantines": store.quarantines(limit=_ALL),
        "crossed": sorted(store.crossed(limit=_ALL)),
        "shared": store.shared(),
        "judgements": store.judgements(limit=_ALL),
        "servings": store.servings(limit=_ALL),
        "counts": store.counts(),
        "sizes": store.sizes(),
    }


def _puts(lucky: random.Random, stored: list[Entry], sequence: int) -> Step:
    names = lucky.sample(NAMES, lucky.choice((1, 1, 2, 5)))
    puts = [_put(lucky, name, stored, sequence) for name in names]
    return lambda store: store.put(puts, NOW)


def _put(lucky: random.Random, name: str, stored: list[Entry], sequence: int) -> Put:
    labels = Labels(tags=(lucky.choice(_TAGS),), writer=lucky.choice(("", "ann", "bob")) or None)
    one = entry(
        name,
        *lucky.choices(("one", "two"), (9, 1)),
        labels=labels,
        payload=lucky.randbytes(lucky.choice((10, 300, 3_000, 9_000))),
        tenant=lucky.choice(("acme", "globex")),
        focus=lucky.choice((None, f"what is {name}?")),
        hop=lucky.randrange(1, 4),
    )
    return put(
        one,
        since=sequence,
        parents=lucky.sample(stored, min(len(stored), lucky.choice((0, 0, 1, 2)))),
        sources=[_source(lucky) for _ in range(lucky.choice((0, 1, 1, 2)))],
        vector=None if one.focus is None else vector(*(lucky.gauss(0, 1) for _ in range(8))),
    )


def _source(lucky: random.Random) -> Any:
    number = lucky.randrange(30)
    edition = "first edition" if lucky.random() < 0.99 else "second edition"
    return source(f"doc-{number // 3}", f"chunk-{number}", content=edition)


def _recall(lucky: random.Random, stored: list[Entry], sequence: int) -> Step:  # noqa: ARG001
    selector = lucky.choice(
        (
            Selector(source=f"chunk-{lucky.randrange(30)}"),
            Selector(source=f"doc-{lucky.randrange(10)}"),
            Selector(entry=lucky.choice(NAMES)),
            Selector(tag=lucky.choice(_TAGS), tenant="acme"),
        )
    )
    return lambda store: store.recall(selector, now=NOW)


def _removal(lucky: random.Random, stored: list[Entry], sequence: int) -> Step:  # noqa: ARG001
    name = lucky.choice(stored).id
    return lambda store: store.remove([name])


def _judgement(lucky: random.Random, stored: list[Entry], sequence: int) -> Step:  # noqa: ARG001
    one = lucky.choice(stored)
    judgement = Judgement(
        entry=one.id,
        value=one.value,
        verdict=lucky.choice(("hallucinated", "supported")),
        by="reviewer",
        confidence=0.5,
        at=NOW,
    )
    return lambda store: store.judge(judgement)


def _hold(lucky: random.Random, stored: list[Entry], sequence: int) -> Step:  # noqa: ARG001
    names = [one.id for one in lucky.sample(stored, min(len(stored), 5))]
    suspected = quarantine(lucky.choice(NAMES), *names)
    return lambda store: store.hold(suspected)


def _release(lucky: random.Random, stored: list[Entry], sequence: int) -> Step:  # noqa: ARG001
    name = lucky.choice(NAMES)
    return lambda store: store.release(name, now=NOW)


def _journal(lucky: random.Random, stored: Iterable[Entry], sequence: int) -> Step:  # noqa: ARG001
    servings = [
        Serving(entry=one.id, tenant=one.tenant, tier="exact", similarity=1.0, at=NOW)
        for one in lucky.sample(list(stored), min(len(list(stored)), 5))
    ]
    count = Count(tenant="acme", node="answer", outcome="exact", lookups=lucky.randrange(9))
    return lambda store: store.journal(servings, [count])
