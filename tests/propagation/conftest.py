"""The truth about small graphs: every way the coins can fall, each with its probability."""

import itertools
import random

import networkx as nx
import pytest


def fates(edges, seeds):
    """Each world's probability, and who is wrong in it."""
    own = list(seeds.items())
    chances = [p for _, p in own] + [a for _, _, a in edges]
    for coins in itertools.product((False, True), repeat=len(chances)):
        likely = 1.0
        for coin, chance in zip(coins, chances, strict=True):
            likely *= chance if coin else 1.0 - chance
        if not likely:
            continue
        wrong = {name for (name, _), coin in zip(own, coins, strict=False) if coin}
        alive = [edge for edge, coin in zip(edges, coins[len(own) :], strict=True) if coin]
        before = -1
        while len(wrong) != before:
            before = len(wrong)
            wrong |= {child for parent, child, _ in alive if parent in wrong}
        yield likely, wrong


@pytest.fixture
def worlds_of():
    return fates


@pytest.fixture
def truth():
    """How likely each entry is wrong, by name."""

    def told(edges, seeds):
        found: dict = {}
        for likely, wrong in fates(edges, seeds):
            for name in wrong:
                found[name] = found.get(name, 0.0) + likely
        return found

    return told


@pytest.fixture
def seen():
    """A graph as a cache has it, with a spread: so many tenants, pools and sources."""

    def made(tenants=3, pools=1, sources=0, *, exposed=True):
        rng = random.Random(7)
        graph = nx.DiGraph()
        names = [f"tenant-{at:02d}" for at in range(tenants)]
        shared = [("pool", f"pool-{at}") for at in range(pools)]
        for name in names:
            graph.add_node(name, kind="tenant", label=name, answers=rng.randint(0, 400), entries=3)
            if exposed:
                graph.nodes[name].update(exposure=rng.random() ** 3, wrong=1.5)
        for pool in shared:
            graph.add_node(pool, kind="pool", label=pool[1])
        for at, name in enumerate(names):
            pool = rng.choice(shared) if shared else names[at - 1]
            ends, kind = ((name, pool), "promoted") if at % 3 == 0 else ((pool, name), "served")
            graph.add_edge(*ends, kind=kind, uses=at, strength=rng.random(), pools=("pool-0",))
        for at in range(sources):
            source = ("source", None, f"handbook-{at}.md")
            graph.add_node(source, kind="source", label=source[2])
            graph.add_edge(source, rng.choice(names), kind="source", uses=2, strength=0.5)
        return graph

    return made
