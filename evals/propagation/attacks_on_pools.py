"""One tenant tries to plant an answer in a pool. None of a thousand attempts may succeed.

What a group can do is measured beside it: as many tenants as a pool asks for witnesses, each with a
principal of its own, are believed. That is what the number is for.
"""

from __future__ import annotations

import random
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import stemma
from evals.measuring import Figure, Measured, scaled
from stemma import Source, UsageError, frames
from stemma.testing.builders import HOSTILE

__all__ = ["ATTACKS", "attempt", "run"]

ATTEMPTS = 1_000
POOL, LIE = "support", "Send your password to mallory."

Attack = Callable[[stemma.Cache, str, random.Random], None]


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001 - nothing is written
    """Make the attempts, each on a question of its own, and see who is told the lie."""
    drawn = random.Random(seed)
    number = scaled(ATTEMPTS, size, least=2 * len(ATTACKS))
    tried, told = Counter[str](), Counter[str]()
    for place in range(number):
        name = list(ATTACKS)[place % len(ATTACKS)]
        tried[name] += 1
        told[name] += attempt(ATTACKS[name], drawn)
    groups = {f"{many} tenants": attempt(_colluding(many), drawn) for many in (2, 3)}
    return Measured(
        figures=(
            Figure(
                what=f"of {number} attempts to plant an answer in a pool, those that succeed",
                value=told.total(),
                unit="",
                at_most=0,
            ),
        ),
        details={"tried": dict(tried), "told": dict(told), "colluding": groups},
        beside={name: {"tried": str(tried[name]), "told": str(told[name])} for name in ATTACKS},
    )


def attempt(attack: Attack, drawn: random.Random) -> bool:
    """Whether a victim is told the lie after an attack on a cache in use."""
    question = f"What do I do about order {drawn.randrange(10**9)}?"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with stemma.open(embedder=None) as cache:
            attack(cache, question, drawn)
            pools = [POOL, "mallory", "tenant:mallory", *HOSTILE[:8]]
            return any(_victim(cache, question, pool) == LIE for pool in pools)


def _victim(cache: stemma.Cache, question: str, pool: str) -> object:
    with cache.using(tenant="victim", pool=pool):
        outcome = cache.answers.lookup(question)
    return outcome.value if outcome.hit else None


def _say(
    cache: stemma.Cache,
    question: str,
    *,
    tenant: str = "mallory",
    answer: str = LIE,
    pool: str = POOL,
    owner: str | None = None,
    **said: Any,
) -> stemma.Entry | None:
    def compute() -> str:
        frame = frames.current()
        if owner is not None and frame is not None:
            source = Source(document="d", chunk="d", content="d", owner=owner)
            frame.read_sources([(source, "text")], frames.marks())
        return answer

    with cache.using(tenant=tenant, pool=pool, **said), cache.refresh():
        stored = cache.answers.get_or_compute(question, compute).stored
    return None if stored is None else stored.entry


def _repeats(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    for _ in range(drawn.randint(3, 8)):
        _say(cache, question)


def _as_many_users(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    for number in range(drawn.randint(3, 8)):
        _say(cache, question, user=f"user {number}", writer=f"writer {number}", session="s")


def _as_many_tenants(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    """One principal has many tenants, and calls itself like one of them."""
    writer = drawn.choice(("mallory", "m0", "m1"))
    for number in range(drawn.randint(3, 8)):
        _say(cache, question, tenant=f"m{number}", writer=writer)


def _echoes(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    """Two more tenants only pass on what a pool told them."""
    other = f"{question} Please."
    entry = _say(cache, other)
    if entry is None:
        return
    cache.pools.promote(entry.id, by="somebody who did not look")
    for number in range(drawn.randint(2, 6)):

        def compute() -> object:
            return cache.answers.lookup(other).value  # type: ignore[union-attr]

        with cache.using(tenant=f"reader {number}", pool=POOL):
            cache.answers.get_or_compute(question, compute)


def _from_private_sources(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    owner = drawn.choice(("", "tenant:mallory", "pool:other", "pool:Support", "PUBLIC"))
    for number in range(3):
        _say(cache, question, tenant=f"m{number}", owner=owner)


def _races(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    threads = [
        threading.Thread(target=_say, args=(cache, question), kwargs={"user": f"{number}"})
        for number in range(drawn.randint(3, 6))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _replaces(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    """What three agreed on lies there; then comes the attacker, as several tenants."""
    for honest in ("ann", "bob", "cem"):
        _say(cache, question, tenant=honest, answer="Ask at the desk.")
    for number in range(drawn.randint(1, 6)):
        _say(cache, question, tenant=f"m{number}")


def _asks_for_it(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    """Approves of itself, and takes out what others agreed on."""
    del drawn
    copies = []
    for honest in ("ann", "bob", "cem"):
        _say(cache, question, tenant=honest, answer="Ask at the desk.")
        copies = list(cache.pools.entries(POOL))
    entry = _say(cache, question)
    with cache.using(tenant="mallory"):
        if entry is not None:
            cache.pools.promote(entry.id, by="operator")
        for copy in copies:
            try:
                cache.pools.revoke(copy.id, by="operator")
            except UsageError:
                continue


def _by_names(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
    """Tenants and pools named like each other, and hostile texts."""
    for name in (POOL, f"pool:{POOL}", drawn.choice(HOSTILE)):
        _say(cache, question, tenant=name, pool=name, writer="mallory")
        _say(cache, question, tenant=name, writer="mallory")


ATTACKS: Mapping[str, Attack] = {
    "repeats itself": _repeats,
    "as many users and writers": _as_many_users,
    "as many tenants of one principal": _as_many_tenants,
    "passes on what it was told": _echoes,
    "from private sources": _from_private_sources,
    "races": _races,
    "replaces what lies there": _replaces,
    "approves and revokes": _asks_for_it,
    "by names": _by_names,
}


def _colluding(number: int) -> Attack:
    def attack(cache: stemma.Cache, question: str, drawn: random.Random) -> None:
        del drawn
        for one in range(number):
            _say(cache, question, tenant=f"m{one}")

    return attack
