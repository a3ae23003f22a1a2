"""The caller's own computation of a value, run inside the question's frame."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from stemma.callables import is_async
from stemma.lineage import frames
from stemma.lineage.frames import Frame
from stemma.query import Query

__all__ = ["AsyncFramed", "Framed"]


class Framed:
    """Runs the caller's function inside the question's frame, so that what it reads is a parent.

    A step that is built on nothing before it has a frame of its own inside that.
    """

    def __init__(self, query: Query, function: Callable[[], Any]) -> None:
        self._query = query
        self._function = function

    def compute(self) -> Any:
        """Compute the value, in the calling thread."""
        frame = self._open()
        try:
            return self._call(frame)
        finally:
            self._close(frame)

    def _open(self) -> Frame | None:
        query = self._query
        if query.place is None or not query.place.alone:
            return query.frame
        query.within = Frame(query.frame, exports=True, alone=True)
        return query.within

    def _close(self, frame: Frame | None) -> None:
        if frame is not None and frame is self._query.within:
            frame.close()

    def _call(self, frame: Frame | None) -> Any:
        try:
            if frame is None or frame is frames.current():
                return self._function()
            with frames.within(frame):
                return self._function()
        except StopIteration as error:  # it would end the steps, or be lost in a future
            raise RuntimeError("the computation raised StopIteration") from error


class AsyncFramed(Framed):
    """As `Framed`, on an event loop: what it gives is awaited, or it runs in a thread."""

    async def acompute(self) -> Any:
        """Compute the value without blocking the loop."""
        frame = self._open()
        try:
            return await self._acall(frame)
        finally:
            self._close(frame)

    async def _acall(self, frame: Frame | None) -> Any:
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        if is_async(self._function):
            given = self._call(frame)
        else:
            given = await asyncio.to_thread(self._call, frame)
        if not inspect.isawaitable(given):
            return given
        if frame is None or frame is frames.current():
            return await given
        with frames.within(frame):
            return await given
