"""The async twins do what the methods do, on any number of event loops, also when cancelled."""

import asyncio
import inspect
import threading
from dataclasses import replace

import psycopg
import pytest

import stemma
from stemma.errors import StoreUnavailable
from stemma.outcome import Held, Quarantine
from stemma.selector import Selector
from stemma.stores.postgres import PostgresStore
from stemma.stores.protocol import Count, Judgement, Serving, Store
from stemma.stores.sharing import Sharing
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source, vector
from stemma.testing.store_lessons import lesson

JUDGEMENT = Judgement(entry="b", value="one", verdict="supported", by="t", confidence=0.5, at=NOW)
SERVING = Serving(entry="b", tenant="y", tier="semantic", similarity=0.9, at=NOW)
QUARANTINE = Quarantine(id="q", seeds={"a": 0.5}, threshold=0.3, by="t", at=NOW, entries=())
COUNT = Count(tenant="y", node="answer", outcome="hit", lookups=3, seconds=0.5, tokens=7)


def test_every_method_has_a_twin():
    """With the same arguments, but for closing."""
    methods = {
        name for protocol in (Store, Sharing) for name in vars(protocol) if not name.startswith("_")
    } - {"close", "quick", "url"}
    assert {"get", "hold"} <= methods
    for name in [*methods, "nearest"]:
        method, twin = getattr(PostgresStore, name), getattr(PostgresStore, f"a{name}")
        assert inspect.iscoroutinefunction(twin), name
        assert inspect.signature(method) == inspect.signature(twin), name
    assert PostgresStore.quick == frozenset()


async def test_the_twins_do_what_the_methods_do(store):
    """Everything written by them is read by the methods, and the other way round."""
    root = entry("a", tenant="x")
    await store.aput([put(root, since=0, sources=[source()], vector=vector(1, 0))], NOW)
    child = put(entry("b", focus="?"), since=0, parents=[root], vector=vector(0.6, 0.8))
    await store.aput([child, put(entry("c"), since=0)], NOW)
    judged = await store.ajudge(JUDGEMENT)
    assert judged is not None
    await store.ajournal([SERVING], [COUNT])
    await store.ajournal([], [])
    await store.alearn([lesson("b")])
    await store.alearn([])
    assert await store.aremove(["c", "nobody"]) == 1
    held = Held(entry="b", tenant="acme", node="answer", hop=1, probability=0.5)
    receipt = await store.ahold(replace(QUARANTINE, entries=(held,)))
    assert receipt.entries == (held,)
    assert store.get(["b"]).entries["b"].held == "q"
    assert (await store.arelease("q", now=NOW)).lifted == NOW
    assert store.get(["b"]).entries["b"].held == ""
    assert await store.aflows(now=NOW) == store.flows(now=NOW) != ()
    for name, arguments in {
        "get": (["a", "b", "c"],),
        "ancestry": ("b",),
        "lineage": ("b",),
        "children": ("a",),
        "find": (Selector(tenant="x"),),
        "counts": (),
        "servings": (),
        "judgements": (),
        "lessons": ("acme", "answer"),
        "sizes": (),
        "sequence": (),
        "offered": ("place",),
        "descent": (["a"],),
        "crossed": (),
        "shared": (),
        "quarantines": (),
        "check": (),
        "nearest": ("group of acme", vector(1, 0), 3),
    }.items():
        told = await getattr(store, f"a{name}")(*arguments)
        assert told == getattr(store, name)(*arguments), name
        assert told != [], name
    assert (await store.avectors(["a"]))["a"].tolist() == [1, 0]
    assert list((await store.achanges(0)).ids) == ["a", "b"]
    rehearsal = await store.arecall(Selector(source="doc-1"), now=NOW, dry_run=True)
    assert len(store.find()) == 2
    recall = await store.arecall(Selector(source="doc-1"), now=NOW)
    assert recall.entries == rehearsal.entries
    assert await store.arecalls() == store.recalls() == (recall,)
    (stored,) = await store.aput([child], NOW)
    assert stored.refused == "recalled"


async def test_hostile_texts_come_back_through_the_twins(store):
    """As they were."""
    await store.aput([put(entry(text, tenant=text), since=0) for text in HOSTILE], NOW)
    found = await store.aget(HOSTILE)
    assert [found.entries[text].tenant for text in HOSTILE] == list(HOSTILE)


async def test_many_tasks_lose_nothing(store):
    """They share the connections, of which there are no more than was said."""

    async def work(task: int) -> None:
        for number in range(5):
            await store.aput([put(entry(f"{task}-{number}"), since=0)], NOW)
            assert list((await store.aget([f"{task}-{number}"])).entries) == [f"{task}-{number}"]

    await asyncio.gather(*(work(task) for task in range(40)))
    assert len(store.find(limit=1000)) == 200
    assert len({one.sequence for one in store.find(limit=1000)}) == 200
    assert store._server.idle() <= 20


def test_each_event_loop_has_its_own_connections(newest, database, store):
    """Those of a loop that ended are closed, at the next use or with the store."""
    put_one(store, entry())
    for _ in range(3):
        assert set(asyncio.run(store.aget(["a"])).entries) == {"a"}
    assert len(newest.backends(database)) == 2

    def elsewhere() -> None:
        assert set(asyncio.run(store.aget(["a"])).entries) == {"a"}

    threads = [threading.Thread(target=elsewhere) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    newest.wait_for(
        f"NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '{database}') LIMIT 1"
    )


async def test_a_closed_store_says_so_to_tasks(store):
    """And a connection that was out is closed when it comes back."""
    await store.aget(["a"])
    store.close()
    for use in (store.aget(["a"]), store.asequence(), store.aput([], NOW), store.acheck()):
        with pytest.raises(StoreUnavailable, match="closed"):
            await use
    assert store._server.idle() == 0


async def test_a_cancelled_call_drops_its_connection(newest, database, store):
    """Nobody reads what comes on it later; what it was writing is not there."""
    await store.asequence()
    before = newest.backends(database)
    async with await psycopg.AsyncConnection.connect(newest.url(database)) as other:
        await other.execute("SELECT * FROM stemma.meta FOR UPDATE")
        writing = asyncio.create_task(store.aput([put(entry("never"), since=0)], NOW))
        waiting = f"wait_event_type = 'Lock' AND datname = '{database}'"
        await asyncio.to_thread(newest.wait_for, waiting)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert store._server.idle() == 1  # the one that opened the store
        assert set((await store.aget(["never"])).entries) == set()
    assert store.get(["never"]).entries == {}
    await store.aput([put(entry("later"), since=0)], NOW)
    assert set(newest.backends(database)) != set(before)


async def test_a_cancelled_call_does_not_wait_for_a_frozen_server(newest, database, store):
    """It is let go while the server still does nothing."""
    await store.aget(["a"])
    with newest.frozen(database):
        reading = asyncio.create_task(store.aget(["a"]))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert store._server.idle() == 1
    assert (await store.aget(["a"])).sequence == 0


async def test_a_cache_asks_it_without_threads(store):
    """Put, hit and recall of an application that awaits."""
    cache = stemma.open(store, tenant="acme", embedder=None)
    calls: list[str] = []

    async def answer() -> str:
        calls.append("call")
        assert threading.active_count() <= before + 2  # the journal's and the watcher's
        return "a tree of copies"

    before = threading.active_count()
    for expected in (1, 1):
        served = await cache.answers.aget_or_compute("What is a stemma?", answer)
        assert (served.value, len(calls)) == ("a tree of copies", expected)
    assert threading.active_count() <= before + 2
    (kept,) = store.find()
    assert len(await cache.arecall(entry=kept.id)) == 1
    await cache.answers.aget_or_compute("What is a stemma?", answer)
    assert len(calls) == 2
    cache.close()
