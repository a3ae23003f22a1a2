"""The wrappers are stores: over memory and over SQLite they pass the whole suite."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Store
from stemma.stores.sqlite import SqliteStore
from stemma.stores.wrappers.guarded import Guarded
from stemma.stores.wrappers.two_level import TwoLevel
from stemma.testing.stores import PersistentStoreConformance, StoreConformance

LONG = {"budget": 60.0}
"""The suite is about what is promised, not about how fast this machine is."""


class TestGuardedMemory(StoreConformance):
    reach = 16

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = Guarded(MemoryStore(reach=self.reach), **LONG, outbox=tmp_path / "outbox")
        yield store
        store.close()


class TestTwoLevelMemory(StoreConformance):
    reach = 16

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = TwoLevel(MemoryStore(reach=self.reach), lease=3600)
        yield store
        store.close()


class TestTwoLevelOverGuardedMemory(StoreConformance):
    reach = 16

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = TwoLevel(Guarded(MemoryStore(reach=self.reach), **LONG), lease=3600)
        yield store
        store.close()


class OverSqlite(PersistentStoreConformance):
    reach = 16
    damageable = ("payload", "tenant", "node", "model")

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "cache.db"
        self.outbox = tmp_path / "outbox"

    def damage(self, id: str, part: str) -> None:
        part = "record" if part == "payload" else part
        with sqlite3.connect(self.path) as connection:
            connection.execute(
                f"UPDATE entries SET {part} = CASE typeof({part}) WHEN 'integer' THEN {part} + 1"
                f" WHEN 'blob' THEN CAST({part} || 'x' AS BLOB) ELSE {part} || 'x' END"
                " WHERE id = ?",
                (id,),
            )
        connection.close()


class TestGuardedSqlite(OverSqlite):
    def made(self) -> Store:
        return Guarded(SqliteStore(self.path, reach=self.reach), **LONG, outbox=self.outbox)


class TestTwoLevelThatAlwaysAsks(OverSqlite):
    def made(self) -> Store:
        return TwoLevel(SqliteStore(self.path, reach=self.reach), lease=0)
