"""What a pool lets through: hallucinated and right answers by the number of witnesses asked for.

Tenants ask the same questions of the same public passages. Each answer is the right one or the
hallucinated one, with stated probabilities: some questions a model gets wrong for everybody, and
besides each tenant errs alone. Who comes later is served what lies in the pool, as in life.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.propagation.halueval import Answered, answered
from evals.propagation.telling import bar
from stemma import PoolPolicy, Source, content_digest, frames
from stemma.effects import run as do
from stemma.grounding import GroundingCheck
from stemma.nodes.node import JSON
from stemma.stores.protocol import Judgement

__all__ = ["ALONE", "TENANTS", "TOGETHER", "given", "run", "shared"]

TENANTS = 6
TOGETHER = 0.3
"""How likely a question is one that the model gets wrong for everybody."""

ALONE = 0.1
"""How likely a tenant's answer is besides the other one than the model's."""

KEPT = 0.9
"""The share of right answers that the grounding check has to keep."""

POOL = "shared"


class Given(NamedTuple):
    """What each tenant would be answered: whether that is the hallucinated answer."""

    item: Answered
    wrong: tuple[bool, ...]


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001 - nothing is written
    """Measure on the half of the questions that no weight has seen."""
    fitted, held = (_some(answered(part), size) for part in (0, 1))
    check = GroundingCheck()
    lowest = bar(np.array([_score(check, one, one.right) for one in fitted]), KEPT)
    asked = given(held, seed=seed)
    found = {
        f"{witnesses} of {TENANTS}, {'with' if grounded else 'without'} the check": shared(
            asked,
            PoolPolicy(witnesses=witnesses, grounding=lowest if grounded else None),
            check,
        )
        for witnesses in (1, 2, 3)
        for grounded in (False, True)
    }
    default = found[f"3 of {TENANTS}, without the check"]
    checked = found[f"3 of {TENANTS}, with the check"]
    return Measured(
        figures=(
            Figure(
                what="hallucinated answers in the pool, three witnesses",
                value=100 * default["hallucinated"],
                unit="% of questions",
            ),
            Figure(
                what="the same with the grounding check",
                value=100 * checked["hallucinated"],
                unit="% of questions",
            ),
            Figure(
                what="right answers in the pool, with the check",
                value=100 * checked["right"],
                unit="% of questions",
            ),
        ),
        details={
            "questions": len(held),
            "wrong_for_everybody": TOGETHER,
            "wrong_alone": ALONE,
            "bar": lowest,
            "pools": found,
        },
        beside={name: _row(one) for name, one in found.items()},
    )


def _some(items: Sequence[Answered], size: float) -> Sequence[Answered]:
    return items[: scaled(len(items), size, least=min(20, len(items)))]


def _score(check: GroundingCheck, one: Answered, answer: str) -> float:
    return check.ground(answer, one.sources, one.question).score


def given(items: Sequence[Answered], *, seed: int) -> list[Given]:
    """Who is answered what, the same for every policy."""
    drawn = random.Random(seed)
    found = []
    for one in items:
        together = drawn.random() < TOGETHER
        wrong = tuple(together != (drawn.random() < ALONE) for _ in range(TENANTS))
        found.append(Given(one, wrong))
    return found


def shared(asked: Sequence[Given], policy: PoolPolicy, check: GroundingCheck) -> dict[str, Any]:
    """What lies in the pool in the end, and what was served from it, as shares of the questions."""
    lies, served = Counter[str](), Counter[str]()
    with stemma.open(embedder=None, pools={POOL: policy}) as cache:
        for one in asked:
            for number, wrong in enumerate(one.wrong):
                hit = _ask(cache, one.item, f"tenant {number}", wrong=wrong, check=check)
                if hit is not None:
                    served[hit] += 1
            with cache.using(tenant="nobody", pool=POOL):
                outcome = cache.answers.lookup(one.item.question)
            lies[_kind(one.item, outcome.value) if outcome.hit else "nothing"] += 1
    return {
        "right": lies["right"] / len(asked),
        "hallucinated": lies["hallucinated"] / len(asked),
        "served": dict(served),
    }


def _kind(item: Answered, value: str) -> str:
    return "hallucinated" if value == item.hallucinated else "right"


def _ask(
    cache: stemma.Cache, item: Answered, tenant: str, *, wrong: bool, check: GroundingCheck
) -> str | None:
    """One tenant asks; gives what kind of answer came from the pool, if one did."""
    answer = item.hallucinated if wrong else item.right
    (text,) = item.sources
    content = content_digest(text)

    def compute() -> str:
        frame = frames.current()
        if frame is not None:
            source = Source(document=content, chunk=content, content=content, owner="public")
            frame.read_sources([(source, text)], frames.marks())
        return answer

    with cache.using(tenant=tenant, pool=POOL):
        done = cache.answers.get_or_compute(item.question, compute)
    if done.outcome.hit:
        return _kind(item, done.value)
    stored = None if done.stored is None else done.stored.entry
    if stored is not None and cache.pools.policy(POOL).grounding is not None:
        _checked(cache, stored, _score(check, item, answer))
    return None


def _checked(cache: stemma.Cache, entry: stemma.Entry, score: float) -> None:
    """Note what the check found, and let the pool look again."""
    parts = cache.engine.parts
    judgement = Judgement(
        entry=entry.id,
        value=entry.value,
        verdict="grounded",
        by="check",
        confidence=score,
        at=parts.clock.now(),
    )
    parts.store.judge(judgement)
    do(parts.promoting.checked(entry, JSON))


def _row(found: Mapping[str, Any]) -> dict[str, str]:
    served = found["served"]
    total = sum(served.values())
    wrong = served.get("hallucinated", 0)
    return {
        "hallucinated in the pool": f"{found['hallucinated']:.1%}",
        "right in the pool": f"{found['right']:.1%}",
        "served, of which hallucinated": f"{total}, {wrong / total:.1%}" if total else "none",
    }
