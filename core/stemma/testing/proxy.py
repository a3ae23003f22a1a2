"""A TCP proxy that makes trouble, for tests of what speaks to a server.

```python
with Proxy(server.port) as proxy:
    store = PostgresStore(server.url(database, "keeper", proxy.port))
    proxy.make(Trouble(silent=True))  # from now on, nothing passes
```

It runs on a thread of its own, so tests of either kind may use it. What it does at random, it does
by its seed and the order of what passes.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["Proxy", "Trouble"]

_PORTION = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """What a proxy does to what passes. Without arguments: nothing.

    Args:
        least: Every piece is held back at least so many seconds, …
        most: … and at most so many.
        pieces: Whether what passes is cut into pieces at random.
        breaks: The chance of each piece to be the one at which its connection breaks, 0 to 1.
        silent: Whether connections are accepted and nothing passes, not on those that are there,
            either. What was held back passes when the silence is over.
        refuse: Whether connections are refused, and those that are there break.
    """

    least: float = 0.0
    most: float = 0.0
    pieces: bool = False
    breaks: float = 0.0
    silent: bool = False
    refuse: bool = False


class Proxy:
    """Passes bytes to a port of this machine, and back. A context manager.

    Args:
        to: The port.
        seed: Of everything random.

    Attributes:
        port: Where it listens.
        broken: How many connections it broke by chance.
    """

    def __init__(self, to: int, *, seed: int = 0) -> None:
        self._to = to
        self._lucky = random.Random(seed)  # noqa: S311 - not a secret
        self._trouble = Trouble()
        self._flowing = asyncio.Event()
        self._passing: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._place = _bound(0)  # never listens: it keeps the port while connections are refused
        self.port = int(self._place.getsockname()[1])
        self.broken = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.make(self._trouble)
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._refuse())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._place.close()

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._passing)

    def make(self, trouble: Trouble) -> None:
        """Make this trouble from now on, and no other; it has begun when this returns."""
        self._run(self._make(trouble))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _make(self, trouble: Trouble) -> None:
        self._trouble = trouble
        if trouble.silent:
            self._flowing.clear()
        else:
            self._flowing.set()
        if trouble.refuse:
            await self._refuse()
        elif self._listener is None:
            self._listener = await asyncio.start_server(self._pass_on, sock=_bound(self.port))

    async def _refuse(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        passing = list(self._passing)
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _pass_on(self, near: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._passing.add(task)
        writers = [out]
        try:
            with suppress(asyncio.CancelledError):
                far, back = await asyncio.open_connection("127.0.0.1", self._to)
                writers.append(back)
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pump(near, back))
                    both.create_task(self._pump(far, out))
        except* ConnectionError:
            pass
        finally:
            for writer in writers:
                writer.transport.abort()
            self._passing.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PORTION):
            while data:
                trouble = self._trouble
                piece = self._lucky.randrange(1, len(data) + 1) if trouble.pieces else len(data)
                if trouble.most > 0:
                    await asyncio.sleep(self._lucky.uniform(trouble.least, trouble.most))
                await self._flowing.wait()
                if trouble.breaks > 0 and self._lucky.random() < trouble.breaks:
                    self.broken += 1
                    raise ConnectionResetError
                writer.write(data[:piece])
                data = data[piece:]
            await writer.drain()
        raise ConnectionResetError  # one side has closed: so does the other


def _bound(port: int) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    return one
