"""Where an agent goes with a hit: whether it still serves what it is after, and may be risked."""

from __future__ import annotations

import secrets

import numpy as np

from stemma.contexts import Contexts
from stemma.effects import Steps
from stemma.entry import Entry, Vector
from stemma.keys import digest
from stemma.lineage.frames import Frame
from stemma.lineage.paths import Step
from stemma.outcome import Hit, Miss
from stemma.parts import Parts
from stemma.policies.intent import drift
from stemma.policies.life import Aging
from stemma.query import Query
from stemma.walk import Intent, Place, Walk, fingerprint

__all__ = ["Walking", "plain"]

KEPT = 64
"""How many of the hops before it an entry tells of."""


def plain(entry: Entry, place: Place | None) -> bool:
    """Whether nothing needs to be compared or counted before an entry is served by its key."""
    walk = entry.walk
    if walk is None:
        return place is None or place.intent is None
    if walk.risks or walk.origin is not None:
        return False
    if place is None or walk.intent is None:
        return place is None or place.intent is None
    return place.intent == place.goal == walk.intent.text


class Walking:
    """The walks of one cache, as steps.

    Args:
        parts: What it works with.
        contexts: What embeds texts that come again and again.
    """

    def __init__(self, parts: Parts, contexts: Contexts) -> None:
        self._parts = parts
        self._contexts = contexts

    def confirm(self, query: Query, hit: Hit) -> Steps[Hit | Miss]:
        """A hit, unless the agent is after something else, or its chain risks too much by it."""
        if hit.tier == "exact" and plain(hit.entry, query.place):
            return hit
        reason, detail = "intent_drift", (yield from self._drift(query.place, hit.entry))
        if not detail:
            reason, detail = "budget", self._overdrawn(query, hit)
        if not detail:
            return hit
        return Miss(reason=reason, nearest=hit.entry.id, similarity=hit.similarity, detail=detail)

    # ------------------------------------------------------------------- intents

    def _drift(self, place: Place | None, entry: Entry) -> Steps[str]:
        """Why an entry was made for something else: at its own step, or where its path began."""
        walk = entry.walk if entry.walk is not None else Walk()
        if place is None or (place.intent is None and walk.intent is None):
            return ""
        if place.intent is None or walk.intent is None:
            return "of one of the two, it is not known what it is for"
        begun = walk.origin if walk.origin is not None else walk.intent
        goal = place.goal if place.goal is not None else place.intent
        pairs = {(place.intent, walk.intent): "the step", (goal, begun): "the run"}
        for (live, stored), what in pairs.items():
            other = yield from self._other(live, stored)
            if other:
                return f"{what} is for something else: {other}"
        return ""

    def _other(self, live: str, stored: Intent) -> Steps[str]:
        if fingerprint(live) == stored.fingerprint:
            return ""
        similarity: float | None = None
        if stored.vector:
            vector = yield from self._vector(live)
            before = np.frombuffer(stored.vector, dtype="<f2").astype(np.float32)
            if vector is not None and vector.shape == before.shape:
                similarity = float(vector @ before / np.linalg.norm(before))
        return drift(live, stored.text, similarity)

    def _vector(self, text: str) -> Steps[Vector | None]:
        """The vector of an intent; `None` where there is none, or the embedder fails."""
        if self._parts.embedder is None:
            return None
        try:
            return (yield from self._contexts.vector(text))
        except Exception as error:
            self._parts.fault("embed", error)
            return None

    def _intent(self, text: str) -> Steps[Intent]:
        vector = yield from self._vector(text)
        return Intent(text, b"" if vector is None else vector.astype("<f2").tobytes())

    # -------------------------------------------------------------------- risks

    def _overdrawn(self, query: Query, hit: Hit) -> str:
        """Let what may be wrong with a hit count in its chain; says so where it is too much."""
        frame, walk = query.frame, hit.entry.walk
        if frame is None or (query.place is None and frame.hop is None):
            return ""
        risks = dict(walk.risks) if walk is not None else {}
        if hit.probability < 1.0:
            # The same question taken for the same entry is wrong once, however often it is asked.
            risks[digest(query.key.id, hit.entry.id)] = 1.0 - hit.probability
        if not risks:
            return ""
        overdrawn = frame.chain.take(risks, self._parts.budget)
        if not overdrawn:
            frame.taken.update(risks)
        return overdrawn

    # ------------------------------------------------------------ what is stored

    def pass_unstored(self, query: Query, value: str, how: str) -> None:
        """Lead the agent on over a step that left no entry: what follows came of its value.

        Args:
            query: The step.
            value: What tells its value from others; where nothing does, nobody comes here again.
            how: As in `stemma.lineage.paths.Step`.
        """
        if query.scope.node == "hop" and query.frame is not None:
            told = value or secrets.token_hex(16)
            query.frame.steps.append(Step(digest(how, query.key.id, told), how))

    def walk(self, query: Query, aging: Aging) -> Steps[Walk | None]:
        """How the agent came to what is stored now; `None` where there is nothing to tell."""
        place, frame = query.place, query.frame
        risks = () if frame is None else _risks(query.within or frame)
        if place is None:
            return Walk(risks=risks) if risks else None
        intent = origin = None
        if place.intent is not None:
            intent = yield from self._intent(place.intent)
            known = None if frame is None else frame.chain.origin
            begun = place.goal if known is None else known
            if begun is not None and begun != place.intent:
                origin = yield from self._intent(begun)
        return Walk(
            path=place.path.hops[-KEPT:], intent=intent, origin=origin, risks=risks, aging=aging
        )


def _risks(frame: Frame) -> tuple[tuple[str, float], ...]:
    """The hits by meaning that what is stored in a frame is built on."""
    taken = set[str]()
    while True:
        taken |= frame.taken
        if frame.alone or frame.parent is None:
            break
        frame = frame.parent
    known = frame.chain.risks
    return tuple((one, known[one]) for one in sorted(taken) if one in known)
