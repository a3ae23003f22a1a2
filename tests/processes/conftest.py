"""Processes that end with the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from evals.reliability.children import Process


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Starts processes."""
    with ExitStack() as started:
        yield lambda script, *args: started.enter_context(Process(script, *args))
