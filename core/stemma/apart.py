"""Work apart from the requests, so that what hangs there does no harm.

It is waited for as long as was said. What takes longer goes on by itself and counts as under way
until it ends, and no more than `MOST` are: whoever hangs occupies that many threads for as long as
that lasts, and is then not asked. Of the request nothing is there (`context.apart`): a language
model that is cached by the very cache that asks would else wait for itself, and what it says would
appear in the request's stream and trace.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from stemma import context, forking
from stemma.errors import JudgeError

if TYPE_CHECKING:
    import asyncio

__all__ = ["MOST", "Apart"]

MOST = 8
"""How many questions may be before one judge or grounder at once."""

T = TypeVar("T")


class Apart:
    """Asks one judge or grounder; from any thread, on any event loop.

    Args:
        whom: What it is called where it cannot be asked.
        timeout: Seconds to wait for it.
        most: How many questions may be before it at once.
    """

    def __init__(self, whom: str, timeout: float, *, most: int = MOST) -> None:
        self._whom = whom
        self.timeout = timeout
        self._most = most
        self._lock = forking.Lock()
        self.after_fork()
        forking.follow(self)

    def after_fork(self) -> None:
        """In a forked child: the threads that ask stayed behind."""
        self._under_way = 0

    def run(self, tenant: str, work: Callable[[], T]) -> T:
        """What the work gives.

        Args:
            tenant: In whose name.
            work: Asks; it is run in a thread of its own.

        Raises:
            TimeoutError: It did not answer in time.
            JudgeError: Too much is before it, or it wanted to end the process.
            Exception: Whatever it raised.
        """
        return self._in_a_thread(tenant, work).result(self.timeout)

    async def arun(self, tenant: str, work: Callable[[], T]) -> T:
        """As `run`."""
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        return await self._awaited(asyncio.wrap_future(self._in_a_thread(tenant, work)))

    async def atask(self, tenant: str, work: Callable[[], Awaitable[T]]) -> T:
        """As `run`, of work that is awaited on this loop, as a task of its own."""
        return await self._awaited(self._as_a_task(tenant, work))

    async def _awaited(self, waiting: asyncio.Future[T]) -> T:
        import asyncio  # noqa: PLC0415 - as above

        try:
            done, _ = await asyncio.wait({waiting}, timeout=self.timeout)
        finally:
            waiting.cancel()  # who stops waiting does not wait for its end
        if not done:
            raise TimeoutError
        return waiting.result()

    def _in_a_thread(self, tenant: str, work: Callable[[], T]) -> Future[T]:
        self._enter()
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # so that nobody can take it back
        run = context.apart(tenant).run
        threading.Thread(
            target=run, args=(self._done, future, work), name="stemma-judge", daemon=True
        ).start()
        return future

    def _done(self, future: Future[T], work: Callable[[], T]) -> None:
        try:
            given = work()
        except BaseException as error:  # the future carries it to whoever waits
            self._leave()
            told = error if isinstance(error, Exception) else JudgeError(type(error).__name__)
            future.set_exception(told)
        else:
            self._leave()
            future.set_result(given)

    def _as_a_task(self, tenant: str, work: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        import asyncio  # noqa: PLC0415 - as above

        async def done() -> T:
            return await work()

        self._enter()
        task = asyncio.get_running_loop().create_task(done(), context=context.apart(tenant))
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[T]) -> None:
        self._leave()
        if not task.cancelled():
            task.exception()  # nobody may be there who would hear of it

    def _enter(self) -> None:
        with self._lock:
            if self._under_way >= self._most:
                raise JudgeError(f"{self._under_way} questions are before {self._whom} already")
            self._under_way += 1

    def _leave(self) -> None:
        with self._lock:
            self._under_way -= 1
