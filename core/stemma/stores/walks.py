"""The stored form of how an agent came to an entry, as plain JSON."""

from __future__ import annotations

import base64
from dataclasses import astuple, fields
from typing import Any

from stemma.lineage.paths import Passed, Step
from stemma.policies.changes import Prior
from stemma.policies.life import Aging
from stemma.stores.text import escape, unescape
from stemma.walk import Intent, Walk

__all__ = ["pack_walk", "unpack_walk"]

_AGING = tuple(each.name for each in fields(Aging) if each.name != "prior")


def pack_walk(walk: Walk) -> list[Any]:
    """A walk as values that JSON has."""
    return [
        [
            [escape(hop.name), [[escape(one) for one in step] for step in hop.steps]]
            for hop in walk.path
        ],
        _pack_intent(walk.intent),
        _pack_intent(walk.origin),
        [[escape(what), risk] for what, risk in walk.risks],
        None if walk.aging is None else _pack_aging(walk.aging),
    ]


def unpack_walk(packed: Any) -> Walk:
    """The walk of such values; what raises says that they are others."""
    path, intent, origin, risks, aging = packed
    return Walk(
        path=tuple(
            Passed(unescape(name), tuple(Step(*map(unescape, step)) for step in steps))
            for name, steps in path
        ),
        intent=_unpack_intent(intent),
        origin=_unpack_intent(origin),
        risks=tuple((unescape(what), float(risk)) for what, risk in risks),
        aging=None if aging is None else _unpack_aging(aging),
    )


def _pack_intent(intent: Intent | None) -> list[str] | None:
    if intent is None:
        return None
    return [escape(intent.text), base64.b64encode(intent.vector).decode("ascii")]


def _unpack_intent(packed: Any) -> Intent | None:
    if packed is None:
        return None
    text, vector = packed
    return Intent(unescape(text), base64.b64decode(vector, validate=True))


def _pack_aging(aging: Aging) -> list[Any]:
    return [*(getattr(aging, name) for name in _AGING), *astuple(aging.prior)]


def _unpack_aging(packed: Any) -> Aging:
    *values, changes, seconds = packed
    prior = Prior(changes=changes, seconds=seconds)
    return Aging(**dict(zip(_AGING, values, strict=True)), prior=prior)
