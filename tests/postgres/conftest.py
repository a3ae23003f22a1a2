"""PostgreSQL servers out of wheels: each started once, and one to be killed."""

from collections.abc import Iterator

import pytest

from stemma.errors import MissingDependency
from stemma.stores.postgres import PostgresStore
from stemma.testing.postgres import FLOOR, NEWEST, PostgresServer, Wheel


class Server(PostgresServer):
    """A server with one database for all tests that clean up behind them."""

    _shared = ""

    def shared(self) -> str:
        """That database's name."""
        if not self._shared:
            self._shared = self.database()
        return self._shared


def _serve(wheel: Wheel, **settings: str) -> Iterator[Server]:
    try:
        server = Server(wheel, **settings)
    except MissingDependency as missing:
        pytest.skip(str(missing))
    with server:
        yield server


@pytest.fixture(scope="session")
def newest() -> Iterator[Server]:
    """PostgreSQL 18 with pgvector 0.8."""
    yield from _serve(NEWEST, fsync="off")


@pytest.fixture(scope="session")
def floor() -> Iterator[Server]:
    """PostgreSQL 16 with pgvector 0.6, the oldest that is supported."""
    yield from _serve(FLOOR, fsync="off")


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server of one's own, to be killed."""
    yield from _serve(NEWEST)


@pytest.fixture
def database(newest: Server) -> Iterator[str]:
    """The name of a database on the newest server, with nothing in it but pgvector."""
    name = newest.shared()
    empty = "DROP SCHEMA IF EXISTS stemma, another CASCADE"
    newest.execute(empty, on=name)
    yield name
    newest.execute(f"ALTER DATABASE {name} RESET ALL")
    newest.disconnect(name)
    newest.execute(empty, on=name)


@pytest.fixture
def store(newest: Server, database: str) -> Iterator[PostgresStore]:
    """A store in that database, opened by a role that policies bind."""
    store = PostgresStore(newest.url(database, "keeper"), timeout=20)
    yield store
    store.close()
