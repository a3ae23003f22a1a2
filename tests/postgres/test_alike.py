"""The PostgreSQL store and the store in memory are one and the same, whatever is done to them.

The rules are shared; what the database reads for them, and writes after them, is not.
"""

import random
from typing import get_args

import pytest

from stemma.entry import Edge, Lineage, Offer, SourceEdge
from stemma.outcome import Held, Quarantine
from stemma.request import Key
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.memory import MemoryStore
from stemma.stores.postgres import PostgresStore
from stemma.stores.protocol import Finding, Judgement, Put, Serving, Store
from stemma.testing.builders import NOW, entry, source, vector

NAMES = ("a", "b", "c", "d", "\ud800", "a\x00")
TENANTS = ("x", "y", "X")
DOCUMENTS = ("d1", "d2", "d3")
QUARANTINES = ("q", "r", "\ud800", "a\x00")
PLACES = ("p1", "p\x00")
REACH = 5


def some_put(lucky: random.Random, sequence: int) -> Put:
    name = lucky.choice(NAMES)
    parents = lucky.sample([one for one in NAMES if one != name], lucky.choice((0, 0, 1, 2)))
    sources = [
        source(
            one, f"chunk of {one}", content=lucky.choice("12"), owner=lucky.choice(("", "public"))
        )
        for one in lucky.sample(DOCUMENTS, lucky.choice((0, 0, 1, 2)))
    ]
    lineage = Lineage(
        parents=tuple(Edge(parent=one, value=lucky.choice("12")) for one in parents),
        sources=tuple(SourceEdge(source=one) for one in sources),
    )
    labels = Labels(tags=tuple(lucky.sample(("t", "u"), lucky.randrange(3))))
    read = {one: lucky.randrange(sequence + 1) for one in parents if lucky.random() < 0.3}
    return Put(
        entry=entry(
            name,
            lucky.choice("12"),
            tenant=lucky.choice(TENANTS),
            group=lucky.choice("gh"),
            labels=labels,
            expires=lucky.choice((None, NOW + lucky.randrange(9))),
            offer=lucky.choice((None, *(Offer(pool="p", place=Key("", "", p)) for p in PLACES))),
        ),
        lineage=lineage,
        vector=lucky.choice((None, vector(1, lucky.randrange(9)))),
        since=max(0, sequence - lucky.choice((0, 0, 0, 3, 9))),
        read_at=read,
    )


def some_selector(lucky: random.Random) -> Selector:
    parts = {
        "entry": lucky.choice(NAMES),
        "tenant": lucky.choice(TENANTS),
        "source": lucky.choice(DOCUMENTS),
        "tag": lucky.choice("tu"),
    }
    return Selector(
        **{name: parts[name] for name in lucky.sample(list(parts), lucky.choice((1, 2)))}
    )


def some_quarantine(lucky: random.Random) -> Quarantine:
    held = [
        Held(
            entry=name,
            tenant=lucky.choice(TENANTS),
            pool=lucky.choice((None, "p", "")),
            node="answer",
            hop=lucky.randrange(4),
            probability=lucky.random(),
            doubtful=lucky.random() < 0.5,
        )
        for name in lucky.sample(NAMES, lucky.randrange(5))
    ]
    return Quarantine(
        id=f"{lucky.choice(QUARANTINES)}{lucky.randrange(3)}",
        seeds={name: lucky.random() for name in lucky.sample(NAMES, 2)},
        threshold=0.3,
        by=lucky.choice(NAMES),
        reason=lucky.choice(("", "r\x00")),
        at=NOW,
        entries=tuple(held),
    )


def some_serving(lucky: random.Random) -> Serving:
    return Serving(
        entry=lucky.choice(NAMES),
        tenant=lucky.choice(TENANTS),
        tier="semantic",
        similarity=lucky.uniform(-1, 1),
        at=NOW + lucky.randrange(-90, 9),
        producer=lucky.choice(("", *TENANTS)),
        pool=lucky.choice(("", "p\x00")),
        node=lucky.choice(("", "answer", "call")),
        confidence=lucky.choice((-1.0, 0.0, 1e-300, 0.5, 1.0)),
    )


def do(store: Store, lucky: random.Random) -> object:
    """Some step; gives what the store said."""
    step = lucky.random()
    if step < 0.1:
        return store.journal([some_serving(lucky) for _ in range(5)], [])
    if step < 0.2:
        return store.hold(some_quarantine(lucky))
    if step < 0.25:
        known = (*(one.id for one in store.quarantines()), "unknown")
        return store.release(lucky.choice(known), now=NOW + 1)
    if step < 0.65:
        sequence = store.sequence()
        return store.put(
            [some_put(lucky, sequence) for _ in range(lucky.choice((1, 1, 2, 5)))], NOW
        )
    if step < 0.77:
        cascade = lucky.random() < 0.8
        return store.recall(some_selector(lucky), now=NOW, cascade=cascade)
    if step < 0.85:
        return store.remove(lucky.sample(NAMES, 2))
    verdict = lucky.choice(get_args(Finding))
    one = Judgement(
        entry=lucky.choice(NAMES),
        value=lucky.choice("12"),
        verdict=verdict,
        by="t",
        confidence=1.0,
        at=NOW,
        question=lucky.choice(NAMES),
        tenant=lucky.choice(("", *TENANTS)),
        weight=lucky.random(),
    )
    return store.judge(one, lucky.sample(NAMES, 2))


def told(store: Store, after: int) -> list[object]:
    """Everything that a store says of itself."""
    changes = store.changes(after)
    return [
        store.get(NAMES),
        [store.ancestry(name) for name in NAMES],
        [store.lineage(name) for name in NAMES],
        [store.children(name) for name in NAMES],
        store.find(limit=50),
        [sorted(one.id for one in store.find(Selector(source=d))) for d in DOCUMENTS],
        {name: kept.tolist() for name, kept in store.vectors(NAMES).items()},
        [changes.ids, changes.groups, sorted(changes.removed), changes.sequence, changes.rebuild],
        store.recalls(),
        store.judgements(),
        dict(store.sizes()),
        store.servings(),
        store.quarantines(),
        [store.offered(place) for place in PLACES],
        [sorted(store.descent(names)) for names in (NAMES[:1], NAMES[1:3], ["unknown"], [])],
        sorted(store.crossed()),
        store.shared(),
    ]


def flows(store: Store) -> list[object]:
    """What was served, added up; the sums as near as two ways of adding come."""
    asked = ({}, {"half_life": 7.0}, {"half_life": 7.0, "entries": NAMES[2:]}, {"entries": []})
    found = [one for more in asked for one in store.flows(now=NOW, **more)]
    return [
        one._replace(weight=pytest.approx(one.weight), recent=pytest.approx(one.recent))
        for one in found
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_same_steps_have_the_same_outcome(newest, database, seed):
    """Forty steps of every kind, each with its answer, and then everything that can be read."""
    memory = MemoryStore(reach=REACH)
    postgres = PostgresStore(newest.url(database, "keeper"), reach=REACH)
    steps = random.Random(seed)
    refused = 0
    for _ in range(40):
        step = steps.random()
        before = memory.sequence()
        said = do(memory, random.Random(step))
        assert do(postgres, random.Random(step)) == said
        refused += str(said).count("refused='")
        after = max(0, before - steps.choice((0, 2, 10)))
        assert told(postgres, after) == told(memory, after)
    assert flows(postgres) == flows(memory) != []
    assert refused > 0
    assert postgres.check() == ()
    postgres.close()
