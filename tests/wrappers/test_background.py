"""Work that takes longer than anybody waits."""

import asyncio
import threading

import pytest

from stemma.errors import StoreUnavailable
from stemma.stores.wrappers.background import PATIENCE, Background
from stemma.stores.wrappers.workers import Workers


@pytest.fixture
def workers():
    workers = Workers(2)
    yield workers
    workers.close()


class Work:
    """Begins calls that end when they are let go, and counts them."""

    def __init__(self, workers):
        self.workers, self.begun, self.gate = workers, 0, threading.Event()

    def __call__(self):
        self.begun += 1
        number, gate = self.begun, self.gate
        return self.workers.submit(lambda: gate.wait(60) and number)


def test_it_is_begun_once_and_fetched_once(workers, clock):
    """Those who come while it goes on wait for the same; who comes after it was fetched begins."""
    work, background = Work(workers), Background(workers, clock.monotonic)
    task = background.begin(("k",), work)
    with pytest.raises(StoreUnavailable, match=r"k: not done within 0\.01 s; it goes on"):
        background.join(task, 0.01)
    clock.advance(1)
    with pytest.raises(StoreUnavailable):
        background.join(background.begin(("k",), work), 0.5)  # over already: nothing is waited for
    assert background.begin(("other",), work) is not task
    work.gate.set()
    assert background.join(background.begin(("k",), work), 60) == 1
    assert work.begun == 2
    assert background.join(background.begin(("k",), work), 60) == 3


def test_one_that_never_ends_is_begun_again(workers, clock):
    """After a minute; its thread is left to itself."""
    work, background = Work(workers), Background(workers, clock.monotonic)
    lost = background.begin(("k",), work)
    clock.advance(PATIENCE)
    assert background.begin(("k",), work) is lost
    clock.advance(1)
    assert background.begin(("k",), work) is not lost
    work.gate.set()


def test_an_error_is_fetched_like_an_answer(workers, clock):
    """By one; the next begins anew."""
    background = Background(workers, clock.monotonic)
    broken = background.begin(("k",), lambda: workers.submit(lambda: 1 // 0))
    with pytest.raises(ZeroDivisionError):
        background.join(broken, 60)
    assert len(background) == 0


async def test_a_waiter_that_is_cancelled_does_not_end_it(workers, clock):
    """Another one fetches what it gives."""
    work, background = Work(workers), Background(workers, clock.monotonic)
    task = background.begin(("k",), work)
    waiter = asyncio.create_task(background.ajoin(task, 60))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    work.gate.set()
    assert await background.ajoin(background.begin(("k",), work), 60) == 1
