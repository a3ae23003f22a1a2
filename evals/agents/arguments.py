"""A tool's free text compared by meaning: how often another call is taken for this one.

Pairs of requests to one tool: the same call in other words, or a call with other arguments. The
first is stored as the tool's one argument, the second asked. The targets are for the default.
Where the labels tell two apart that ask for the same ("play baby Shark", "play Baby Shark"), what
is told in the details lets a reader judge.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.quality.followups import Remembered
from evals.quality.pairs import share
from evals.quality.texts import Pair, pairs
from evals.rag.texts import rows
from stemma.embedders import Embedder
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry

__all__ = ["reused", "run"]

BESIDE = (0.78, 0.85, 0.95)
"""Similarities at which the same is measured beside the default."""


def _bfcl() -> Iterator[Pair]:
    """All pairs of requests whose one expected call is of the same tool."""
    asked: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows("agent_bfcl", "single_turn.jsonl"):
        if len(row["expected_calls"]) == 1:
            (call,) = row["expected_calls"]
            expected = json.dumps(call, sort_keys=True)
            asked[next(iter(call))].append((row["messages"][-1]["content"], expected))
    for tool, requests in asked.items():
        for (one, call), (other, also) in itertools.combinations(requests, 2):
            yield Pair(one=other, other=one, same=call == also, part=tool)


def reused(all_of: Sequence[Pair], embedder: Embedder, similarity: float | None) -> list[bool]:
    """For each pair, whether what was stored for the other request is served to the one.

    Args:
        all_of: The pairs.
        embedder: What compares.
        similarity: The tool's; `None`: the default.
    """
    registry = ToolRegistry()
    policy = ToolPolicy(ttl=3600, semantic=["request"], similarity=similarity)
    for tool in {pair.part for pair in all_of}:
        registry.declare(tool, policy)
    found = []
    with stemma.open(":memory:", tenant="me", embedder=embedder) as cache:
        tools = ToolCaching(cache, registry)
        for number, pair in enumerate(all_of):
            apart = {"pair": number}
            tools.call(pair.part, {"request": pair.other}, lambda: "stored", injected=apart)
            served = tools.call(pair.part, {"request": pair.one}, lambda: "own", injected=apart)
            found.append(served.value == "stored")
    return found


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """Both sets at the default, and at other similarities beside."""
    sets = {"pairs_tool_args": pairs("tool_args"), "agent_bfcl": list(_bfcl())}
    sets = {
        name: all_of[:: max(1, len(all_of) // scaled(len(all_of), size, least=40))]
        for name, all_of in sets.items()
    }
    embedder = Remembered()
    told: dict[str, Any] = {}
    figures = []
    for name, all_of in sets.items():
        for similarity in (None, *BESIDE):
            served = reused(all_of, embedder, similarity)
            for same in (False, True):
                kind = "same call" if same else "other arguments"
                of_kind = [
                    float(hit)
                    for hit, pair in zip(served, all_of, strict=True)
                    if pair.same is same
                ]
                if not of_kind:
                    continue
                found = share(of_kind, 1.0)
                what = f"{name}, {kind}"
                told.setdefault(what, {})[f"{similarity or 'default'}"] = found
                if similarity in (None, BESIDE[0]):
                    figures.append(_figure(what, same, similarity, len(of_kind), found))
            told.setdefault(f"{name}, taken for another", {})[f"{similarity or 'default'}"] = [
                [pair.other, pair.one]
                for hit, pair in zip(served, all_of, strict=True)
                if hit and not pair.same
            ]
    return Measured(figures=figures, details=told)


def _figure(
    what: str, same: bool, similarity: float | None, number: int, found: dict[str, float]
) -> Figure:
    at = "" if similarity is None else f" at {similarity}"
    return Figure(
        what=f"{what}{at}: reused of {number:,} ({found['low']:.3f} to {found['high']:.3f})",
        value=found["share"],
        unit="",
        at_least=0.2 if same and similarity is None else None,
        at_most=0.01 if not same and similarity is None else None,
    )
