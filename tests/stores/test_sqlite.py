"""The SQLite store passes the suite."""

import sqlite3
from pathlib import Path

import pytest

from stemma.stores.sqlite import SqliteStore
from stemma.testing.stores import PersistentStoreConformance


class TestSqliteStore(PersistentStoreConformance):
    reach = 16
    damageable = ("payload", "tenant", "node", "model")

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "cache.db"

    def made(self) -> SqliteStore:
        return SqliteStore(self.path, reach=self.reach)

    def damage(self, id: str, part: str) -> None:
        part = "record" if part == "payload" else part
        with sqlite3.connect(self.path) as connection:
            done = connection.execute(
                f"UPDATE entries SET {part} = CASE typeof({part}) WHEN 'integer' THEN {part} + 1"
                f" WHEN 'blob' THEN CAST({part} || 'x' AS BLOB) ELSE {part} || 'x' END"
                " WHERE id = ?",
                (id,),
            )
            assert done.rowcount == 1
        connection.close()
