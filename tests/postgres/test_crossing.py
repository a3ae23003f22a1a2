"""No reply is another call's, however slow the way and however often callers give up."""

import asyncio
import random

from stemma.errors import StoreUnavailable
from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import NOW, entry, put
from stemma.testing.proxy import Proxy, Trouble

GETS, ENTRIES, AT_ONCE = 500, 50, 10


async def test_no_reply_is_another_call_s(newest, database):
    """Of many gets at once, 40 in 100 given up at some moment; no connection is left behind."""
    lucky = random.Random(3)
    proxy = Proxy(newest.port, seed=3).__enter__()
    url = newest.url(database, "keeper", proxy.port)
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

    proxy.make(Trouble(most=0.004, pieces=True, breaks=0.004))
    await asyncio.gather(*(ask_often(GETS // (2 * AT_ONCE)) for _ in range(2 * AT_ONCE)))
    proxy.make(Trouble())
    assert sum(outcomes.values()) == GETS
    assert outcomes["right"] > GETS / 3
    assert outcomes["given up"] > GETS / 20
    assert proxy.broken > 0
    assert set((await store.aget(["e0"])).entries) == {"e0"}
    assert store._server.idle() <= AT_ONCE + 1
    assert store._server._loop_pool().slots._value == AT_ONCE
    store.close()
    proxy.__exit__()
