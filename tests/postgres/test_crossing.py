"""No reply is another call's, however slow the way and however often callers give up."""

import asyncio
import random

from stemma.errors import StoreUnavailable
from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import NOW, entry, put

GETS, ENTRIES, AT_ONCE = 500, 50, 10


class Proxy:
    """Passes bytes between the store and the server: in pieces, late, and sometimes not at all."""

    def __init__(self, port: int, lucky: random.Random) -> None:
        self._port = port
        self._lucky = lucky
        self._running: set[asyncio.Task[None]] = set()
        self.troubling = False
        self.broken = 0

    async def start(self) -> int:
        self._listener = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._listener.close()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _pass_on(self, near: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        far, back = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await asyncio.gather(self._pump(near, back), self._pump(far, out))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            out.close()
            back.close()
            self._running.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            while data:
                piece = len(data)
                if self.troubling:
                    piece = self._lucky.randrange(1, len(data) + 1)
                    await asyncio.sleep(self._lucky.random() * 0.004)
                    if self._lucky.random() < 0.004:
                        self.broken += 1
                        raise ConnectionResetError
                writer.write(data[:piece])
                data = data[piece:]
            await writer.drain()
        raise ConnectionResetError


async def test_no_reply_is_another_call_s(newest, database):
    """Of many gets at once, 40 in 100 given up at some moment; no connection is left behind."""
    lucky = random.Random(3)
    proxy = Proxy(newest.port, lucky)
    port = await proxy.start()
    url = newest.url(database, "keeper", port)
    store = await asyncio.to_thread(PostgresStore, url, max_connections=AT_ONCE)
    puts = [
        put(entry(f"e{number}", f"value {number}", tenant=f"t{number}"), since=0)
        for number in range(ENTRIES)
    ]
    await store.aput(puts, NOW)
    outcomes = dict.fromkeys(("right", "given up", "lost"), 0)

    async def ask() -> None:
        asked = [f"e{lucky.randrange(ENTRIES)}" for _ in range(lucky.choice((1, 1, 3)))]
        patience = lucky.random() * 0.02 if lucky.random() < 0.4 else None
        try:
            async with asyncio.timeout(patience):
                found = await store.aget(asked)
        except TimeoutError:
            outcomes["given up"] += 1
        except StoreUnavailable:
            outcomes["lost"] += 1
        else:
            outcomes["right"] += 1
            assert set(found.entries) == set(asked)
            for name, one in found.entries.items():
                assert (one.id, one.tenant, one.value) == (
                    name,
                    f"t{name[1:]}",
                    f"value {name[1:]}",
                )

    async def ask_often(times: int) -> None:
        for _ in range(times):
            await ask()

    proxy.troubling = True
    await asyncio.gather(*(ask_often(GETS // (2 * AT_ONCE)) for _ in range(2 * AT_ONCE)))
    proxy.troubling = False
    assert sum(outcomes.values()) == GETS
    assert outcomes["right"] > GETS / 3
    assert outcomes["given up"] > GETS / 20
    assert proxy.broken > 0
    assert set((await store.aget(["e0"])).entries) == {"e0"}
    assert store._server.idle() <= AT_ONCE + 1
    assert store._server._loop_pool().slots._value == AT_ONCE
    store.close()
    await proxy.stop()
