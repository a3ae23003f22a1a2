"""What one cache asks of judges: of a grey candidate while the request waits, or after it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from stemma import forking
from stemma.beside import Beside
from stemma.effects import Ask, Steps, run
from stemma.entry import Entry
from stemma.errors import JudgeError
from stemma.judges.asking import Asking
from stemma.judges.band import AFTER, GreyBand, opinion
from stemma.judges.protocol import About
from stemma.judges.trust import Trust
from stemma.policies.learning import Judgement, Trial
from stemma.policies.same_answer import SameAnswer
from stemma.scope import Scope

if TYPE_CHECKING:
    from stemma.parts import Parts

__all__ = ["WAITING", "Hearing", "Pair", "Told"]

WAITING = 256
"""How many pairs may wait for the background; what comes then is dropped."""


class Told(Protocol):
    """The steps that follow a judgement."""

    def __call__(self, *, right: bool, by: str) -> Steps[None]:
        """What is done once somebody has said whether it is right."""
        ...


class Pair(NamedTuple):
    """Two texts that may mean the same: what is asked or answered now, and what is stored."""

    about: About
    one: str
    other: str


class _Bench(NamedTuple):
    """A judge, how sure it must be, and what its judgements are signed with."""

    asking: Asking
    sure: float
    by: str


class Hearing:
    """The judges of one cache.

    Whatever a judge does, it is never the caller's trouble: what could not be found out is an
    event, and nobody has said anything.

    Args:
        parts: What the cache works with.
        band: Which questions are put before a judge, and which judge; `None`: none.
        same: How answers are compared; its judge is asked where nothing else tells.
    """

    def __init__(self, parts: Parts, band: GreyBand | None, same: SameAnswer) -> None:
        self._parts = parts
        self.band = band
        self._benches: dict[About, _Bench] = {}
        if band is not None:
            asking = Asking(band.judge, band.patience)
            self._benches["questions"] = _Bench(asking, band.sure, band.by)
            self._trust = Trust(band.audits, band.max_wrong)
        if same.asked is not None:
            self._benches["answers"] = _Bench(Asking(same.asked, AFTER), same.sure, same.by)
        self.after_fork()
        forking.follow(self)

    def after_fork(self) -> None:
        """In a forked child: what waits, the parent's thread will ask."""
        self._beside = Beside("stemma-judging", failed="judging failed", most=WAITING)

    def close(self) -> None:
        """Ask nothing more. What is before a judge is waited for by nobody."""
        self._beside.close(wait=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the background has nothing to do; gives whether that came in time."""
        return self._beside.wait(timeout)

    @property
    def trusted(self) -> bool:
        """Whether the judge of questions may still be asked; it is not, once audits contradict."""
        return self.band is not None and not self._trust.dismissed

    def audits(self) -> bool:
        """Whether what that judge approves now is to be computed afresh, to see."""
        return self._trust.audits()

    def judges(self, about: About) -> bool:
        """Whether there is a judge for such pairs."""
        return about in self._benches

    def before(self, scope: Scope, pair: Pair, stored: Entry) -> Steps[bool | None]:
        """What the judge says of a pair, while the request waits; `None`: nothing."""
        bench = self._benches[pair.about]
        try:
            likely = yield Ask(
                bench.asking, "ask", (pair.one, pair.other, pair.about, scope.tenant)
            )
        except Exception as error:
            self._parts.fault("judge", error, scope)
            return None
        return self._said(bench, scope, likely, stored)

    def after(self, scope: Scope, pair: Pair, stored: Entry, told: Told) -> None:
        """Have a pair judged in the background.

        Args:
            scope: Of the question.
            pair: What is judged.
            stored: The entry whose text is in it.
            told: The steps that follow where the judge says something.
        """
        bench = self._benches[pair.about]
        job = partial(self._judge, bench, scope, pair, stored, told)
        if not self._beside.ask(f"{pair.about} {stored.id} {pair.one}", job):
            full = JudgeError(f"{WAITING} pairs wait for a judge already")
            self._parts.fault("judge", full, scope)

    def learn(
        self, scope: Scope, trial: Trial, stored: Entry, *, right: bool, by: str
    ) -> Steps[None]:
        """Tell the policy what somebody has said of its trial."""
        try:
            if trial.known:
                said = Judgement(trial=trial, right=right, by=by)
                yield from self._parts.policies.learn(scope.tenant, scope.node, said)
        except Exception as error:
            self._parts.fault("judge", error, scope)
            return
        self._parts.tell("judgement", scope, "right" if right else "wrong", stored, detail=by)
        if trial.approved and self.band is not None and self._trust.note(right=right):
            told = f"{self.band.by}: {self._trust.wrong} of {self._trust.audited} audits were wrong"
            self._parts.tell("warning", None, "judge_dismissed", detail=told)

    def _judge(self, bench: _Bench, scope: Scope, pair: Pair, stored: Entry, told: Told) -> None:
        try:
            likely = bench.asking.ask(pair.one, pair.other, pair.about, scope.tenant)
        except Exception as error:
            self._parts.fault("judge", error, scope)
            return
        self._beside.step()  # once the cache is closed, nothing is told
        said = self._said(bench, scope, likely, stored)
        if said is None:
            return
        try:
            run(told(right=said, by=bench.by))
        except Exception as error:
            self._parts.fault("judge", error, scope)

    def _said(
        self, bench: _Bench, scope: Scope, likely: float | None, stored: Entry
    ) -> bool | None:
        said = opinion(likely, bench.sure)
        if said is None:
            self._parts.tell("judgement", scope, "unsure", stored, detail=bench.by)
        return said
