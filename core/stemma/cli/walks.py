"""How an agent came to an entry, and how long that lives, for people."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from stemma.entry import Entry
from stemma.lineage.paths import Passed, Step
from stemma.policies.life import Aging
from stemma.walk import Intent, Walk

__all__ = ["life_of", "path_of", "walk_of"]

_FACTORS = tuple(each.name for each in dataclasses.fields(Aging) if each.name != "prior")


def path_of(walk: Walk | None) -> list[str]:
    """The hops before an entry, a line each: with what was matched in it, and how."""
    hops = walk.path if walk is not None else ()
    return [f"{number}. {_hop(hop)}" for number, hop in enumerate(hops, 1)]


def _hop(hop: Passed) -> str:
    return f"{hop.name or '(no hop)'}: {', '.join(map(_step, hop.steps)) or 'nothing matched'}"


def _step(step: Step) -> str:
    return f"{step.how} {step.entry[:12]}".strip()


def walk_of(walk: Walk | None, *, show_text: bool) -> dict[str, Any]:
    """What an entry's walk says, as plain values; nothing where there is none."""
    if walk is None:
        return {}
    told: dict[str, Any] = {"path": path_of(walk)}
    for name, intent in (("intent", walk.intent), ("origin", walk.origin)):
        if intent is not None:
            told[name] = _said(intent, show_text=show_text)
    if walk.risks:
        told["risk"] = round(math.fsum(risk for _, risk in walk.risks), 6)
    return told


def _said(intent: Intent, *, show_text: bool) -> str:
    return intent.text if show_text else intent.fingerprint


def life_of(entry: Entry) -> dict[str, Any]:
    """What an entry's life was reckoned from, and what came of it; nothing where it is not told."""
    aging = entry.walk.aging if entry.walk is not None else None
    if aging is None:
        return {}
    told = {name: getattr(aging, name) for name in _FACTORS}
    seconds = None if entry.expires is None else round(entry.expires - entry.made, 3)
    return {"life": {**told, "bound": aging.bound(), "seconds": seconds}}
