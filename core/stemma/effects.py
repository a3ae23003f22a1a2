"""Operations written once, run sync or async.

An operation is a generator that yields `Ask`s (call this method of that thing) and gets the
answers back. `run` drives it in the calling thread. `arun` drives it on an event loop: a native
`a…` twin is awaited, a method the target declares `quick` (microseconds, never waits) is called
in place, everything else goes to a worker thread, so that the loop is never blocked. What the
cache itself does has workers of its own: the loop's may all be taken by callers that wait for it.
"""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Ask", "Steps", "arun", "run", "whole"]

T = TypeVar("T")

WORKERS = 8
"""Threads for what the cache does on behalf of event loops."""


class Ask(NamedTuple):
    """Call `method` of `target` with `args`, and send me what it returns.

    `foreign` says that it is the caller's own code, which may wait for anything.
    """

    target: Any
    method: str
    args: tuple[Any, ...] = ()
    foreign: bool = False


Steps = Generator[Ask, Any, T]


class _Whole:
    """Work as something that can be asked."""

    __slots__ = ("done",)

    def __init__(self, work: Callable[[], object]) -> None:
        self.done = work


def whole(work: Callable[[], T]) -> Steps[T]:
    """Do several calls, or one that takes keywords, in one go.

    Args:
        work: Does them, and gives what comes of it. On an event loop, in a worker thread.
    """
    result: T = yield Ask(_Whole(work), "done")
    return result


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

    if ask.foreign:
        return await asyncio.to_thread(method, *ask.args)
    call = functools.partial(contextvars.copy_context().run, method, *ask.args)
    return await asyncio.get_running_loop().run_in_executor(_workers(os.getpid()), call)


@functools.cache
def _workers(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a child has no threads of its parent's
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only where it is needed

    return ThreadPoolExecutor(WORKERS, thread_name_prefix="stemma")
