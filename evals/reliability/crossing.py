"""Replies that cross: the way to PostgreSQL is slow, breaks, and callers give up all the time.

Where a client's connection still holds the reply of a call that was given up, the next caller gets
it: an answer of somebody else. Each reply here is compared with what was asked, tenant included.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from evals.reliability import Outcome
from stemma.errors import StoreUnavailable
from stemma.stores.postgres import PostgresStore
from stemma.stores.protocol import Fetched
from stemma.testing.builders import NOW, entry, put
from stemma.testing.postgres import NEWEST, PostgresServer
from stemma.testing.proxy import Proxy, Trouble

__all__ = ["run"]

GETS, ENTRIES, CONNECTIONS = 50_000, 100, 16
TROUBLE = Trouble(most=0.002, pieces=True, breaks=0.0005)
PATIENCE = 0.02
"""Those that give up do so within these seconds: some before anything is sent, some after all."""


def run(
    *,
    size: float,
    seed: int,
    folder: Path,  # noqa: ARG001 - the server has its own
    opened: Callable[..., PostgresStore] = PostgresStore,
) -> Outcome:
    """Ask so often; `opened` makes the store."""
    with PostgresServer(NEWEST, fsync="off") as server, Proxy(server.port, seed=seed) as proxy:
        database = server.database()
        url = server.url(database, "keeper", proxy.port)
        store = opened(url, max_connections=CONNECTIONS)
        gets = max(200, round(GETS * size))
        outcomes = asyncio.run(_asked(store, proxy, gets, random.Random(seed)))
        here = len(server.backends(database))  # the loop has ended; its connections are idle
        store.close()
        server.wait_for(
            f"NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '{database}') LIMIT 1"
        )
        broken = proxy.broken
    return Outcome(
        tried={
            "gets": gets,
            "given up": outcomes["given up"],
            "connections broken": broken,
            "answered": outcomes["right"],
        },
        violations={
            "replies of another key or tenant": outcomes["crossed"],
            "connections more than there may be": max(0, here - CONNECTIONS - 1),
            "calls unanswered afterwards": outcomes["unanswered"],
        },
        figures={
            "given up, of all": outcomes["given up"] / gets,
            "told that the store is unavailable, of all": outcomes["lost"] / gets,
        },
    )


async def _asked(
    store: PostgresStore, proxy: Proxy, gets: int, lucky: random.Random
) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    await store.aput(
        [put(entry(f"e{n}", f"value {n}", tenant=f"t{n}"), since=0) for n in range(ENTRIES)], NOW
    )

    async def ask_often(times: int) -> None:
        for _ in range(times):
            patience = lucky.random() * PATIENCE if lucky.random() < 0.4 else None
            outcomes[await _ask(store, lucky, patience)] += 1

    proxy.make(TROUBLE)
    callers = 4 * CONNECTIONS
    await asyncio.gather(
        *(ask_often(gets // callers + (one < gets % callers)) for one in range(callers))
    )
    proxy.make(Trouble())
    after = await asyncio.gather(*(_ask(store, lucky, None) for _ in range(20 * CONNECTIONS)))
    outcomes["unanswered"] = sum(told == "lost" for told in after)
    outcomes["crossed"] += sum(told == "crossed" for told in after)
    return outcomes


async def _ask(store: PostgresStore, lucky: random.Random, patience: float | None) -> str:
    asked = lucky.sample(range(ENTRIES), lucky.choice((1, 1, 3)))
    try:
        async with asyncio.timeout(patience):
            found = await store.aget([f"e{number}" for number in asked])
    except TimeoutError:
        return "given up"
    except StoreUnavailable:
        return "lost"
    return "right" if _is_reply(found, asked) else "crossed"


def _is_reply(found: Fetched, asked: Sequence[int]) -> bool:
    """Whether all that was asked for came, and nothing else."""
    said = {name: (one.id, one.tenant, one.value) for name, one in found.entries.items()}
    return said == {f"e{n}": (f"e{n}", f"t{n}", f"value {n}") for n in asked}
