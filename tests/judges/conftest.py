"""Judges that count what reaches them."""

import asyncio
import threading

import pytest


class Counting:
    """Says the same of every pair, or raises it, and notes the pairs."""

    name, revision = "counting", "counting/1"

    def __init__(self, says):
        self.says = says
        self.asked = []

    def judge(self, one, other, about):
        self.asked.append((one, other, about))
        if isinstance(self.says, BaseException):
            raise self.says
        return self.says(one, other) if callable(self.says) else self.says


class Hanging(Counting):
    """Says nothing until it is let go."""

    def __init__(self, says=1.0):
        super().__init__(says)
        self.gate = threading.Event()
        self.begun = threading.Event()

    def judge(self, one, other, about):
        said = super().judge(one, other, about)
        self.begun.set()
        assert self.gate.wait(60), "nobody let it go in a minute"
        return said


class Native(Counting):
    """One with an async twin."""

    def __init__(self, says):
        super().__init__(says)
        self.awaited = 0

    async def ajudge(self, one, other, about):
        await asyncio.sleep(0)
        self.awaited += 1
        return self.judge(one, other, about)


@pytest.fixture
def counting():
    return Counting


@pytest.fixture
def native():
    return Native


@pytest.fixture
def hanging():
    """Makes judges that hang, and lets them go at the end."""
    made = []

    def make(says=1.0):
        made.append(Hanging(says))
        return made[-1]

    yield make
    for one in made:
        one.gate.set()
