"""What was acknowledged is there after the server was killed, and the application goes on."""

import random
import threading

import pytest

from stemma.errors import StoreUnavailable
from stemma.selector import Selector
from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import NOW, entry, put, put_one, vector

LOOPS, WRITERS = 3, 2


class Writer(threading.Thread):
    """Puts entries, and takes every fifth back, until the server is gone."""

    def __init__(self, store: PostgresStore, name: str, acknowledged: threading.Semaphore) -> None:
        super().__init__()
        self._store = store
        self._prefix = name
        self._acknowledged = acknowledged
        self.stored: set[str] = set()
        self.recalled: set[str] = set()
        self.unknown: set[str] = set()

    def run(self) -> None:
        number = 0
        while True:
            one = f"{self._prefix}-{number}"
            number += 1
            self.unknown = {one}
            try:
                made = put(entry(one, one), since=0, vector=vector(number, 1))
                self._store.put([made], NOW)
                self.stored.add(one)
                if number % 5 == 0:
                    self._store.recall(Selector(entry=one), now=NOW)
                    self.stored.discard(one)
                    self.recalled.add(one)
                self._acknowledged.release()
            except StoreUnavailable:
                self.stored.discard(one)
                return


def test_a_killed_server_loses_nothing_acknowledged(mortal):
    """Neither puts nor recalls, killed at any moment; the same store goes on after it."""
    name = mortal.database()
    lucky = random.Random(5)
    store = PostgresStore(mortal.url(name, "keeper"))
    stored: set[str] = set()
    recalled: set[str] = set()
    for loop in range(LOOPS):
        acknowledged = threading.Semaphore(0)
        writers = [Writer(store, f"{loop}-{number}", acknowledged) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for _ in range(lucky.randrange(20, 60)):
            assert acknowledged.acquire(timeout=60)
        mortal.kill()
        for writer in writers:
            writer.join()
            stored |= writer.stored
            recalled |= writer.recalled
        mortal.start()
        found = store.get(sorted(stored | recalled))
        assert set(found.entries) == stored
        assert found.damaged == ()
        assert all(one.value == name for name, one in found.entries.items())
        assert set(store.vectors(sorted(stored))) == stored
        assert {one.entries[0].entry for one in store.recalls() if one.entries} >= recalled
        assert store.check() == ()
        assert put_one(store, entry("goes on")).sequence == store.sequence()
    assert len(stored) >= LOOPS * 15
    store.close()


async def test_a_task_goes_on_after_a_restart(mortal):
    """The first call after it finds the server again; during it, an error of ours is told."""
    store = PostgresStore(mortal.url(mortal.database(), "keeper"))
    await store.aput([put(entry(), since=0)], NOW)
    mortal.kill()
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="no server listens"):
            await store.aget(["a"])
    mortal.start()
    assert set((await store.aget(["a"])).entries) == {"a"}
    store.close()
