"""Asking a judge so that it can do no harm.

It is waited for as long as was said. What takes longer goes on by itself and counts as under way
until it ends, and no more than `MOST` are: a judge that hangs occupies that many threads for as
long as it hangs, and is then not asked. It is asked apart from the request (`context.apart`): a
language model that is cached by the very cache that asks would else wait for itself, and what it
says would appear in the request's stream and trace.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from stemma import context, forking
from stemma.errors import JudgeError
from stemma.judges.protocol import About, Judge, probability

if TYPE_CHECKING:
    import asyncio

__all__ = ["MOST", "Asking"]

MOST = 8
"""How many questions may be before one judge at once."""

Answer = float | None


class Asking:
    """Asks one judge; from any thread, on any event loop.

    Args:
        judge: Whom.
        timeout: Seconds to wait for it.
        most: How many questions may be before it at once.
    """

    def __init__(self, judge: Judge, timeout: float, *, most: int = MOST) -> None:
        self.judge = judge
        self._timeout = timeout
        self._most = most
        self._lock = forking.Lock()
        self.after_fork()
        forking.follow(self)

    def after_fork(self) -> None:
        """In a forked child: the threads that ask stayed behind."""
        self._under_way = 0

    def ask(self, one: str, other: str, about: About, tenant: str) -> Answer:
        """What the judge says, see `Judge.judge`.

        Args:
            one: What is asked, or was answered, now.
            other: What is stored.
            about: What the two are.
            tenant: In whose name.

        Raises:
            TimeoutError: It did not answer in time.
            JudgeError: It gave no probability, or too much is before it.
            Exception: Whatever it raised.
        """
        return self._in_a_thread(tenant, one, other, about).result(self._timeout)

    async def aask(self, one: str, other: str, about: About, tenant: str) -> Answer:
        """As `ask`."""
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        waiting: asyncio.Future[Answer]
        native = getattr(self.judge, "ajudge", None)
        if native is not None:
            waiting = self._as_a_task(tenant, native, one, other, about)
        else:
            waiting = asyncio.wrap_future(self._in_a_thread(tenant, one, other, about))
        try:
            done, _ = await asyncio.wait({waiting}, timeout=self._timeout)
        finally:
            waiting.cancel()  # who stops waiting does not wait for its end
        if not done:
            raise TimeoutError
        return waiting.result()

    def _in_a_thread(self, tenant: str, *question: Any) -> Future[Answer]:
        self._enter()
        future: Future[Answer] = Future()
        future.set_running_or_notify_cancel()  # so that nobody can take it back
        work = context.apart(tenant).run
        threading.Thread(
            target=work, args=(self._judged, future, question), name="stemma-judge", daemon=True
        ).start()
        return future

    def _judged(self, future: Future[Answer], question: tuple[str, str, About]) -> None:
        try:
            likely = probability(self.judge.judge(*question), self.judge.name)
        except BaseException as error:  # the future carries it to whoever waits
            self._leave()
            told = error if isinstance(error, Exception) else JudgeError(type(error).__name__)
            future.set_exception(told)
        else:
            self._leave()
            future.set_result(likely)

    def _as_a_task(
        self, tenant: str, native: Callable[..., Awaitable[Any]], *question: Any
    ) -> asyncio.Task[Answer]:
        import asyncio  # noqa: PLC0415 - as above

        async def judged() -> Answer:
            return probability(await native(*question), self.judge.name)

        self._enter()
        task = asyncio.get_running_loop().create_task(judged(), context=context.apart(tenant))
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Answer]) -> None:
        self._leave()
        if not task.cancelled():
            task.exception()  # nobody may be there who would hear of it

    def _enter(self) -> None:
        with self._lock:
            if self._under_way >= self._most:
                raise JudgeError(f"{self._under_way} questions are before the judge already")
            self._under_way += 1

    def _leave(self) -> None:
        with self._lock:
            self._under_way -= 1
