"""What every test needs."""

import asyncio

import pytest


@pytest.fixture(autouse=True)
def _no_event_loop_is_left_open():
    """Where none is current, LlamaIndex's sync calls would make one, and never close it.

    When it is collected, the test that runs just then is blamed, whichever that is.
    """
    asyncio.set_event_loop(None)
