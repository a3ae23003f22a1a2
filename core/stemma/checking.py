"""Stored answers, checked against the sources they were made from, beside the requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from stemma import forking
from stemma.apart import Apart
from stemma.beside import Beside, Stopped
from stemma.codec import Codec, JsonCodec
from stemma.effects import run
from stemma.errors import JudgeError
from stemma.policies.shares import share
from stemma.stores.protocol import Judgement

if TYPE_CHECKING:
    from stemma.entry import Entry
    from stemma.grounding.grounded import Grounder
    from stemma.parts import Parts
    from stemma.query import Query
    from stemma.scope import Scope

__all__ = ["CHECKED", "PATIENCE", "WAITING", "Checking"]

CHECKED = frozenset({"call", "answer", "hop"})
"""The nodes whose values are made from sources; those of the others are sources, or numbers."""

WAITING = 256
"""How many answers may wait to be checked; what is stored then is not."""

PATIENCE = 300.0
"""Seconds for which a grounder is waited for: it may ask a model once for each sentence."""


class _Stored(NamedTuple):
    """An answer that was stored, with the texts that it was made from."""

    entry: Entry
    codec: Codec
    scope: Scope
    text: str
    question: str
    sources: Sequence[str]


class Checking:
    """The grounder of one cache, asked of what is stored.

    Whatever it does, it is never the caller's trouble: what could not be found out is an event,
    and the entry stays as it is.

    Args:
        parts: What the cache works with.
        grounder: Who is asked; `None`: nobody.

    `dropped` counts what was not checked because too much waited.
    """

    def __init__(self, parts: Parts, grounder: Grounder | None) -> None:
        self._parts = parts
        self._grounder = grounder
        self._apart = Apart("the grounder", PATIENCE)
        self.after_fork()
        forking.follow(self)

    def after_fork(self) -> None:
        """In a forked child: what waits, the parent's thread will check."""
        self._beside = Beside("stemma-grounding", failed="grounding failed", most=WAITING)
        self.dropped = 0

    def close(self) -> None:
        """Check nothing more. What is before the grounder is waited for by nobody."""
        self._beside.close(wait=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the background has nothing to do; gives whether that came in time."""
        return self._beside.wait(timeout)

    def after(self, query: Query, value: Any, text: str, entry: Entry) -> None:
        """Have what was stored checked in the background, where it was made from sources.

        A value that calls tools is no answer yet: its words say what is to be done. And what is
        read from where a tool's declaration says is not made from the texts that came before it.

        Args:
            query: The question.
            value: The value.
            text: Its text.
            entry: Its entry.
        """
        if self._grounder is None or query.scope.node not in CHECKED or query.sources:
            return
        frame = query.frame if query.within is None else query.within
        texts = () if frame is None else frame.source_texts()
        sources = tuple(one for one in dict.fromkeys(texts) if one.strip())
        if not sources or not text.strip() or _calls(query, value):
            return
        focus = query.request.focus
        asked = _Stored(
            entry, query.codec, query.scope, text, "" if focus is None else focus, sources
        )
        job = partial(self._check, self._grounder, asked)
        if not self._beside.ask(f"{entry.id} {entry.sequence}", job):
            self.dropped += 1
            full = JudgeError(f"{WAITING} answers wait for the grounder already")
            self._parts.fault("grounding", full, query.scope)

    def _check(self, grounder: Grounder, asked: _Stored) -> None:
        work = partial(grounder.ground, asked.text, asked.sources, asked.question)
        try:
            score = share("score", self._apart.run(asked.scope.tenant, work).score)
            self._beside.step()
            self._note(asked, score, f"{grounder.name} ({grounder.revision})")
        except Stopped:
            return  # the cache is closed: nothing is told
        except Exception as error:
            self._parts.fault("grounding", error, asked.scope)

    def _note(self, asked: _Stored, score: float, by: str) -> None:
        judgement = Judgement(
            entry=asked.entry.id,
            value=asked.entry.value,
            verdict="grounded",
            by=by,
            confidence=score,
            at=self._parts.clock.now(),
        )
        judged = self._parts.store.judge(judgement)
        if judged is not None:
            detail = f"{score:.2f} by {by}"
            self._parts.tell("verdict", asked.scope, "grounded", judged, detail=detail)
            run(self._parts.promoting.checked(judged, asked.codec))


def _calls(query: Query, value: Any) -> bool:
    return isinstance(query.codec, JsonCodec) and bool(query.codec.calls(value))
