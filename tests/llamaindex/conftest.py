"""What every test of LlamaIndex needs."""

import asyncio

import pytest


@pytest.fixture(autouse=True)
def _no_event_loop_is_left_open():
    """Where none is current, LlamaIndex's sync calls would make one, and never close it."""
    asyncio.set_event_loop(None)
