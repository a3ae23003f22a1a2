"""The PostgreSQL store passes the suite, on the newest server and on the oldest supported.

It is opened by a role that the policies on its tables bind.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from stemma.stores.postgres import PostgresStore
from stemma.stores.postgres_schema import TABLES
from stemma.stores.protocol import Store
from stemma.stores.wrappers.guarded import Guarded
from stemma.testing.stores import PersistentStoreConformance


class OnServer(PersistentStoreConformance):
    reach = 16
    damageable = ("payload", "tenant", "node", "model")
    server: str

    @pytest.fixture(autouse=True)
    def _place(self, request: pytest.FixtureRequest) -> Iterator[None]:
        server = request.getfixturevalue(self.server)
        self.place = server.url(server.shared(), "keeper")
        self.master = server.url(server.shared())
        yield
        emptied = [f"DELETE FROM stemma.{table}" for table in TABLES if table != "meta"]
        numbers = "UPDATE stemma.meta SET sequence = 0, epoch = 0, recalled = 0, forgotten = 0"
        server.execute("; ".join([*emptied, numbers]), on=server.shared())

    def made(self) -> Store:
        return PostgresStore(self.place, reach=self.reach)

    def damage(self, id: str, part: str) -> None:
        part = "record" if part == "payload" else part
        with psycopg.connect(self.master) as connection:
            done = connection.execute(
                f"UPDATE stemma.entries SET {part} = {part} || 'x' WHERE id = %s", (id,)
            )
            assert done.rowcount == 1


class TestNewest(OnServer):
    server = "newest"


class TestGuarded(OnServer):
    """As docs/wrappers.md has it for a shared server, but patient."""

    server = "newest"

    @pytest.fixture(autouse=True)
    def _outbox(self, tmp_path: Path) -> None:
        self.outbox = tmp_path / "outbox"

    def made(self) -> Store:
        store = PostgresStore(self.place, reach=self.reach, lazy=True)
        return Guarded(store, budget=60.0, outbox=self.outbox)


class TestFloor(OnServer):
    server = "floor"
