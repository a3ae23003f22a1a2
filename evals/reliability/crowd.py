"""Threads and tasks that work side by side in this process, waited for no longer than allowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

__all__ = ["ended"]


def ended(
    threads: Sequence[Callable[[], None]],
    tasks: Callable[[], Coroutine[Any, Any, None]],
    *,
    limit: float = 60.0,
) -> bool:
    """Whether all came to their end.

    Args:
        threads: What to call, each in a thread of its own.
        tasks: What to run on an event loop beside them.
        limit: Seconds after which they are taken to hang, and left alone.
    """

    def work() -> None:
        running = [threading.Thread(target=one, daemon=True) for one in threads]
        for thread in running:
            thread.start()
        asyncio.run(tasks())
        for thread in running:
            thread.join()

    whole = threading.Thread(target=work, daemon=True)
    whole.start()
    whole.join(limit)
    return not whole.is_alive()
