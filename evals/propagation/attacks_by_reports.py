"""Tenants that report right answers to have them held for others, and honest ones for contrast."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import stemma
from evals.measuring import Figure, Measured, scaled
from stemma.testing.builders import HOSTILE, copied
from stemma.testing.clock import ManualClock

__all__ = ["WAYS", "World", "tried"]

ATTEMPTS = 1_000
POOL = "support"
APART = 600.0
"""Seconds between the attempts of one tenant: so few that all of them count."""

HONEST = (1.0, 0.9, 0.5)
"""How sure honest tenants are of what they report."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A right answer of `maker`, and its copy in the pool.

    Args:
        question: What it answers.
        near: The same in other words, if it is served by meaning; else the question again.
        original: The maker's own entry.
        copy: The pool's.
    """

    question: str
    near: str
    original: stemma.Entry
    copy: stemma.Entry


@dataclass(frozen=True, slots=True)
class World:
    """A cache in which `maker` fills a pool that everybody reads. A second passes an answer."""

    cache: stemma.Cache
    clock: ManualClock
    made: list[Target] = field(default_factory=list)

    def target(self) -> Target:
        """Another answer in the pool."""
        self.clock.advance(1.0)
        number = len(self.made)
        question = f"How do I cancel my order {number}?"
        with self.cache.using(tenant="maker", pool=POOL):
            answered = self.cache.answers.get_or_compute(question, lambda: f"Press {number}.")
        original = answered.stored.entry if answered.stored is not None else None
        assert original is not None
        copy = copied(self.cache.engine.parts.store, original)
        near = f"How can I cancel my order {number}?"
        near = near if self.asked("reader", near).hit else question
        self.made.append(Target(question=question, near=near, original=original, copy=copy))
        return self.made[-1]

    def asked(self, tenant: str, question: str) -> stemma.Hit | stemma.Miss:
        """What a tenant is served."""
        with self.cache.using(tenant=tenant, pool=POOL):
            return self.cache.answers.lookup(question)

    def held(self, target: Target) -> bool:
        """Whether a tenant who reported nothing is refused it, or its maker the original."""
        served = [self.asked("reader", one) for one in (target.question, target.near)]
        with self.cache.using(tenant="maker"):
            served.append(self.cache.answers.lookup(target.question))
        return not all(one.hit for one in served)

    def report(
        self, tenant: str, what: object, verdict: str = "hallucinated", **said: object
    ) -> None:
        """A report in a tenant's name; what is refused has no effect."""
        given = {"by": "somebody", **said}
        with self.cache.using(tenant=tenant), suppress(stemma.UsageError):
            self.cache.report(what, verdict, **given)  # type: ignore[arg-type]

    def serve(self, tenant: str, target: Target) -> stemma.Hit:
        """Let a tenant be served the target's question."""
        hit = self.asked(tenant, target.question)
        assert isinstance(hit, stemma.Hit)
        return hit


def _served(world: World, tenant: str, target: Target) -> None:
    world.serve(tenant, target)
    world.report(tenant, target.copy.id)


def _many_names(world: World, tenant: str, target: Target) -> None:
    world.serve(tenant, target)
    for name in HOSTILE[:20]:
        world.report(tenant, target.copy.id, by=name)


def _again_and_again(world: World, tenant: str, target: Target) -> None:
    world.serve(tenant, target)
    for verdict in ("hallucinated", "unknown", "hallucinated", "supported", "hallucinated"):
        world.report(tenant, target.copy.id, verdict)


def _wrong_hits(world: World, tenant: str, target: Target) -> None:
    hits = [world.asked(tenant, question) for question in (target.near, target.question)]
    for hit in hits:
        if isinstance(hit, stemma.Hit):
            world.report(tenant, hit, "wrong_hit")


def _unserved(world: World, tenant: str, target: Target) -> None:
    world.report(tenant, target.copy.id)
    world.report(tenant, {"entry": target.copy.id, "question": target.copy.id}, "wrong_hit")


def _the_original(world: World, tenant: str, target: Target) -> None:
    """What the copy was built on, which the attacker knows by its id."""
    own = {"entry": target.original.id, "question": target.original.id}
    for what, verdict in ((target.original.id, "hallucinated"), (own, "wrong_hit")):
        world.report(tenant, what, verdict)


def _made_up(world: World, tenant: str, target: Target) -> None:
    """Notes of hits that never were: an own entry, served to the question of another's."""
    with world.cache.using(tenant=tenant):
        world.cache.answers.get_or_compute("What is open?", lambda: "All of it.")
        own = world.cache.answers.lookup("What is open?")
    if not isinstance(own, stemma.Hit):
        return  # it reported its own
    for question in (target.original.id, target.copy.id, target.copy.value):
        world.report(tenant, {"entry": own.entry.id, "question": question}, "wrong_hit")
        world.report(tenant, {"entry": target.copy.id, "question": question}, "wrong_hit")


def _other_confidences(world: World, tenant: str, target: Target) -> None:
    world.serve(tenant, target)
    for sure in (1.0, 2.0, -1.0, float("inf"), float("nan")):
        world.report(tenant, target.copy.id, confidence=sure)


WAYS: Sequence[Callable[[World, str, Target], None]] = (
    _served,
    _many_names,
    _again_and_again,
    _wrong_hits,
    _unserved,
    _the_original,
    _made_up,
    _other_confidences,
)


@contextmanager
def _world() -> Iterator[World]:
    clock = ManualClock()
    with stemma.open(":memory:", embedder="hashing", threshold=0.6, clock=clock) as cache:
        yield World(cache, clock)


def _settle(world: World, target: Target, verdict: str) -> None:
    world.cache.report(target.copy.id, verdict, by="an operator")  # type: ignore[arg-type]


def _group(world: World, attempts: int, tenants: Sequence[str], *, corrected: bool) -> int:
    """How many answers a group has held; an operator may say of each that it is right."""
    done = 0
    for _ in range(attempts):
        target = world.target()
        hits = {tenant: world.serve(tenant, target) for tenant in tenants}
        for tenant, hit in hits.items():
            world.report(tenant, hit)
        done += world.held(target)
        if corrected:
            _settle(world, target, "supported")
    return done


def _alone(world: World, attempts: int, tenant: str, lucky: random.Random) -> Counter[str]:
    """How many answers a tenant has held by itself, by each way, at a pace that is not limited."""
    done: Counter[str] = Counter()
    for _ in range(attempts):
        world.clock.advance(APART)
        target, way = world.target(), lucky.choice(WAYS)
        way(world, tenant, target)
        done[way.__name__.strip("_")] += world.held(target)
    return done


def _sleeper(world: World, attempts: int, lucky: random.Random) -> Counter[str]:
    """As `_alone`, after fifty true reports, which an operator upheld."""
    for _ in range(50):
        target = world.target()
        _served(world, "sleeper", target)
        _settle(world, target, "hallucinated")
        world.clock.advance(APART)
    return _alone(world, attempts, "sleeper", lucky)


def _until_held(sure: float) -> int:
    """How many honest tenants must report a wrong answer until it is held for all."""
    with _world() as world:
        target = world.target()
        for number in range(1, 100):
            world.serve(f"tenant {number}", target)
            world.report(f"tenant {number}", target.copy.id, confidence=sure)
            if world.held(target):
                return number
    return 100


def tried(*, size: float, seed: int) -> Measured:
    """Try every way, and say which share of the attempts had an answer held for others."""
    attempts = scaled(ATTEMPTS, size, least=20)
    lucky = random.Random(seed)
    ten = [f"bad {number}" for number in range(10)]
    with _world() as world:
        alone = _alone(world, attempts, "mallory", lucky)
    with _world() as world:
        sleeper = _sleeper(world, attempts, lucky)
    with _world() as world:
        two = _group(world, attempts, ("eve", "mallory"), corrected=False)
    with _world() as world:
        corrected = _group(world, attempts, ("eve", "mallory"), corrected=True)
    with _world() as world:
        first = _group(world, 1, ten, corrected=True)
        known = _group(world, attempts, ten, corrected=False)
    shares = {
        "one tenant": sum(alone.values()),
        "one tenant after 50 true reports": sum(sleeper.values()),
        "two together, within the hour": two,
        "two together, an operator answers": corrected,
        "ten together, once overturned": known,
    }
    targets = {"one tenant": 1.0, "one tenant after 50 true reports": 1.0}
    return Measured(
        figures=[
            *(
                Figure(
                    what=f"right answers held for others by {who}",
                    value=100 * done / attempts,
                    unit="%",
                    at_most=targets.get(who),
                )
                for who, done in shares.items()
            ),
            *(
                Figure(what=f"honest tenants to hold a wrong one, sure to {sure}", value=n, unit="")
                for sure, n in ((sure, _until_held(sure)) for sure in HONEST)
            ),
        ],
        details={
            "reports": {
                "attempts": attempts,
                "alone, by way": dict(alone),
                "sleeper, by way": dict(sleeper),
                "held": shares,
                "ten together, before": first,
            }
        },
    )
