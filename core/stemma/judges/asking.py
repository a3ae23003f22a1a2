"""Asking a judge so that it can do no harm: apart from the request, and within its time."""

from __future__ import annotations

from stemma.apart import MOST, Apart
from stemma.judges.protocol import About, Judge, probability

__all__ = ["Asking"]

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
        self._apart = Apart("the judge", timeout, most=most)

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
        return self._apart.run(tenant, lambda: self._judged(one, other, about))

    async def aask(self, one: str, other: str, about: About, tenant: str) -> Answer:
        """As `ask`."""
        native = getattr(self.judge, "ajudge", None)
        if native is None:
            return await self._apart.arun(tenant, lambda: self._judged(one, other, about))

        async def judged() -> Answer:
            return probability(await native(one, other, about), self.judge.name)

        return await self._apart.atask(tenant, judged)

    def _judged(self, one: str, other: str, about: About) -> Answer:
        return probability(self.judge.judge(one, other, about), self.judge.name)
