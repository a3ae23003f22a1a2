"""A judge is asked in bounded time on few threads, and knows nothing of the request."""

import asyncio
import os
import threading
from contextvars import ContextVar

import pytest

from stemma import JudgeError, context
from stemma.judges.asking import Asking

PAIR = ("one", "other", "questions", "me")


@pytest.fixture(params=["sync", "async"])
def ask(request):
    """Asks in either call style."""

    def sync(asking):
        return asking.ask(*PAIR)

    def on_a_loop(asking):
        return asyncio.run(asking.aask(*PAIR))

    return sync if request.param == "sync" else on_a_loop


@pytest.mark.parametrize("says", [1, 0.25, None])
def test_what_it_says_comes_back(ask, counting, says):
    judge = counting(says)
    assert ask(Asking(judge, 10.0)) == says
    assert judge.asked == [("one", "other", "questions")]


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError(), RuntimeError()])
def test_what_it_raises_is_raised(ask, counting, error):
    with pytest.raises(type(error)):
        ask(Asking(counting(error), 10.0))


@pytest.mark.parametrize("exits", [SystemExit(3), KeyboardInterrupt()])
def test_one_that_wants_to_end_the_process_does_not(ask, counting, exits):
    with pytest.raises(JudgeError, match=type(exits).__name__):
        ask(Asking(counting(exits), 10.0))


@pytest.mark.parametrize("nonsense", ["yes", 2.0, float("nan"), object()])
def test_nonsense_is_an_error(ask, counting, native, nonsense):
    for judge in (counting(nonsense), native(nonsense)):
        with pytest.raises(JudgeError, match="no probability"):
            ask(Asking(judge, 10.0))


def test_one_that_hangs_is_waited_for_no_longer_than_said_and_then_not_asked(ask, hanging):
    judge = hanging(0.5)
    asking = Asking(judge, 0.01, most=2)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            ask(asking)
    for _ in range(5):
        with pytest.raises(JudgeError, match="2 questions are before the judge already"):
            ask(asking)
    assert len(judge.asked) == 2
    stuck = [one for one in threading.enumerate() if one.name == "stemma-judge"]
    judge.gate.set()
    for thread in stuck:
        thread.join()
    assert ask(Asking(judge, 10.0, most=1)) == 0.5
    judge.gate.set()
    assert asking.ask(*PAIR) == 0.5  # those that hung have left


def test_its_async_twin_is_used_where_there_is_a_loop_and_only_there(native):
    judge = native(1.0)
    asking = Asking(judge, 10.0)
    assert asking.ask(*PAIR) == 1.0
    assert judge.awaited == 0
    assert asyncio.run(asking.aask(*PAIR)) == 1.0
    assert judge.awaited == 1


def test_an_async_twin_that_hangs_or_will_not_be_cancelled_holds_nobody_up(native):
    class Stubborn(native):
        async def ajudge(self, one, other, about):
            self.awaited += 1
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await self.let_go.wait()
            return 1.0

    async def main():
        judge = Stubborn(1.0)
        judge.let_go = asyncio.Event()
        asking = Asking(judge, 0.01, most=1)
        with pytest.raises(TimeoutError):
            await asking.aask(*PAIR)
        with pytest.raises(JudgeError, match="already"):
            await asking.aask(*PAIR)
        judge.let_go.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        await asyncio.sleep(0)  # those who wait for its end hear of it
        with pytest.raises(TimeoutError):
            await asking.aask(*PAIR)
        assert judge.awaited == 2
        judge.let_go.set()

    asyncio.run(main())


def test_who_is_cancelled_while_waiting_does_not_wait_for_the_judge(hanging):
    judge = hanging()

    async def main():
        asking = asyncio.create_task(Asking(judge, 60.0).aask(*PAIR))
        await asyncio.to_thread(judge.begun.wait, 60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(main())


def test_a_judge_in_a_thread_leaves_the_loop_alone(hanging):
    judge = hanging(1.0)

    async def main():
        asking = asyncio.create_task(Asking(judge, 60.0).aask(*PAIR))
        await asyncio.to_thread(judge.begun.wait, 60)
        judge.gate.set()  # only a loop that runs gets here
        return await asking

    assert asyncio.run(main()) == 1.0


def test_it_is_asked_apart_from_the_request_with_every_cache_out_of_the_way(ask, counting, native):
    mine = ContextVar("mine", default="unset")
    seen = []

    def look(*_):
        seen.append((mine.get(), context.current(1).mode, context.current(7).tenant))
        return 1.0

    mine.set("set")
    for judge in (counting(look), native(look)):
        ask(Asking(judge, 10.0))
    assert seen == [("unset", "bypass", "me")] * 2
    assert (mine.get(), context.current(1).mode) == ("set", "normal")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_asks_anew(hanging):
    judge = hanging(1.0)
    asking = Asking(judge, 0.01, most=1)
    with pytest.raises(TimeoutError):
        asking.ask(*PAIR)
    child = os.fork()
    if child == 0:
        judge.gate.set()
        asking._apart.timeout = 10.0
        os._exit(0 if asking.ask(*PAIR) == 1.0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
