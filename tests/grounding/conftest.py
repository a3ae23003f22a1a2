"""Judges that count what reaches them."""

import pytest


class Counting:
    """Says what a function says of source and sentence, and notes both."""

    name, revision = "counting", "counting/1"

    def __init__(self, says):
        self.says = says
        self.asked = []

    def judge(self, one, other, about):
        self.asked.append((one, other))
        return self.says(one, other)


@pytest.fixture
def counting():
    return Counting
