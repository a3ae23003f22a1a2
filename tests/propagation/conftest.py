"""The truth about small graphs: every way the coins can fall, each with its probability."""

import itertools

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
