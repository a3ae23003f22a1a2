"""Operations written once, run sync or async.

An operation is a generator that yields `Ask`s (call this method of that thing) and gets the
answers back. `run` drives it in the calling thread. `arun` drives it on an event loop: a native
`a…` twin is awaited, a method the target declares `quick` (microseconds, never waits) is called
in place, everything else goes to a worker thread, so that the loop is never blocked.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

__all__ = ["Ask", "Steps", "arun", "run"]

T = TypeVar("T")


class Ask(NamedTuple):
    """Call `method` of `target` with `args`, and send me what it returns."""

    target: Any
    method: str
    args: tuple[Any, ...] = ()


Steps = Generator[Ask, Any, T]


def run(steps: Steps[T]) -> T:
    """Drive an operation in the calling thread."""
    answer: Any = None
    failure: Exception | None = None
    try:
        while True:
            ask = steps.send(answer) if failure is None else steps.throw(failure)
            answer, failure = None, None
            try:
                answer = getattr(ask.target, ask.method)(*ask.args)
            except Exception as error:
                failure = error
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        steps.close()


async def arun(steps: Steps[T]) -> T:
    """Drive an operation on the running event loop."""
    answer: Any = None
    failure: Exception | None = None
    try:
        while True:
            ask = steps.send(answer) if failure is None else steps.throw(failure)
            answer, failure = None, None
            try:
                answer = await _perform(ask)
            except Exception as error:
                failure = error
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        steps.close()


async def _perform(ask: Ask) -> Any:
    native = getattr(ask.target, f"a{ask.method}", None)
    if native is not None:
        return await native(*ask.args)
    method = getattr(ask.target, ask.method)
    if ask.method in getattr(ask.target, "quick", ()):
        return method(*ask.args)
    import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

    return await asyncio.to_thread(method, *ask.args)
