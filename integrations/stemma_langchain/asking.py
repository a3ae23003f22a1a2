"""What a model call asks of the cache, whichever face it comes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from stemma import Asked, Frame, KnownScope, Request
from stemma_langchain.codec import CODEC
from stemma_langchain.prompts import Turns

__all__ = ["Sampling", "ask"]

Sampling = Literal["exact", "never", "meaning"]
"""What to do with calls that say they sample: reuse a draw only for the very same call; cache none
of them; or treat them like any other."""


def ask(turns: Turns, known: KnownScope, frame: Frame | None, life: float | None) -> Asked:
    """The question of a model call: of its prompt, the run's question may be compared by meaning.

    Args:
        turns: The prompt.
        known: Everything else that shapes the reply.
        frame: The frame of the call's run.
        life: The base life of the reply, seconds; `None`: as the policy says.
    """
    question = frame.focus if frame is not None else None
    read = turns.read(question, _source_texts(frame))
    return Asked(
        scope=known.fields,
        request=Request(
            encoded=read.exact, whole=turns.whole, focus=read.focus, meaning=known.meaning
        ),
        codec=CODEC,
        prompt=read.texts,
        life=life,
        scope_key=known.key,
    )


def _source_texts(frame: Frame | None) -> Iterator[str]:
    if frame is not None:
        yield from (read.text for read in frame.visible() if read.kind == "source")
