"""What goes wrong with a server is told in words, and leaves the store usable."""

import asyncio
import socket
import subprocess
import sys
import threading

import psycopg
import pytest

from stemma.errors import ForeignDatabase, StoreError, StoreUnavailable, UsageError
from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import NOW, entry, put, put_one, vector
from stemma.testing.proxy import Proxy, Trouble


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://host/db", "mysql"),
        ("answers.db", "postgresql://"),
        ("postgresql://host/db?nonsense=1", "cannot be read"),
        ("", "postgresql://"),
    ],
)
def test_a_url_that_names_no_database_is_an_error_of_use(url, words):
    """And says how one is written."""
    with pytest.raises(UsageError, match=words):
        PostgresStore(url)


@pytest.mark.parametrize(
    "arguments",
    [
        {"schema": 'a"; DROP TABLE meta; --'},
        {"schema": "pg_catalog"},
        {"schema": ""},
        {"tenant": ""},
        {"max_connections": 0},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"reach": 0},
    ],
)
def test_an_argument_out_of_range_is_an_error_of_use(arguments):
    """Before any server is asked."""
    with pytest.raises(UsageError):
        PostgresStore("postgresql://127.0.0.1:1/db", **arguments)


def test_no_server_is_told_as_that():
    """With the place, and what to do; never with the password."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]  # bound, and nobody listens
        with pytest.raises(StoreUnavailable) as told:
            PostgresStore(f"postgresql://me:secret@127.0.0.1:{port}/db")
    assert f"127.0.0.1:{port}/db" in str(told.value)
    assert "no server listens there" in str(told.value)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("user", "where", "words"),
    [
        ("locked:wrong", "postgres", "the password is wrong"),
        ("locked", "postgres", "it asks for a password"),
        ("nobody_known", "postgres", "create it, or name another"),
        ("keeper", "nowhere", "create it, or name another"),
    ],
)
def test_a_server_that_lets_nobody_in_is_told_as_that(newest, store, user, where, words):
    """A wrong password, none, an unknown role, a database that is not there."""
    assert store.sequence() == 0
    with pytest.raises(StoreUnavailable, match=words) as told:
        PostgresStore(newest.url(where, user))
    assert "wrong@" not in str(told.value)


def test_a_lazy_store_can_be_opened_while_the_server_is_out(newest, database):
    """By a thread or a task; it comes to the server when it is used, and makes the tables then."""
    with Proxy(newest.port) as proxy:
        proxy.make(Trouble(refuse=True))
        url = newest.url(database, "keeper", proxy.port)
        stores = [PostgresStore(url, lazy=True) for _ in range(2)]
        with pytest.raises(StoreUnavailable, match="no server listens"):
            PostgresStore(url)
        with pytest.raises(StoreUnavailable, match="no server listens"):
            stores[0].sequence()
        proxy.make(Trouble())
        assert asyncio.run(stores[0].asequence()) == 0
        assert put_one(stores[1], entry()).sequence == 1
        for store in stores:
            store.close()


def test_a_lazy_store_tells_at_its_first_use_what_is_wrong(newest, database):
    """And at every other, until it is mended."""
    newest.execute("CREATE SCHEMA stemma", "CREATE TABLE stemma.orders (id int)", on=database)
    with PostgresStoreOf(newest, database, lazy=True) as store:
        for _ in range(2):
            with pytest.raises(ForeignDatabase, match="left as it is"):
                store.get(["a"])
        newest.execute("DROP SCHEMA stemma CASCADE", on=database)
        assert store.get(["a"]).entries == {}


def test_a_password_is_shown_nowhere(newest, database):
    """Neither by the store nor by its URL."""
    with PostgresStoreOf(newest, database, "keeper:secret") as store:
        assert "secret" not in f"{store!r} {store.url} {vars(store)}"
        assert database in store.url


class PostgresStoreOf:
    """A store that is closed in the end."""

    def __init__(self, server, database, user="keeper", **arguments) -> None:
        self.store = PostgresStore(server.url(database, user), **arguments)

    def __enter__(self) -> PostgresStore:
        return self.store

    def __exit__(self, *_: object) -> None:
        self.store.close()


def test_a_role_that_may_not_make_the_extension_is_told(newest):
    """And nothing is left behind."""
    name = newest.database(extended=False)
    with pytest.raises(StoreError, match="may not do this"):
        PostgresStore(newest.url(name, "keeper"))
    assert newest.execute("SELECT FROM pg_namespace WHERE nspname = 'stemma'", on=name) == []


def test_a_master_makes_the_extension(newest):
    """Where nobody did before."""
    name = newest.database(extended=False)
    with PostgresStoreOf(newest, name, "postgres") as store:
        put_one(store, entry("a"), vector=vector(1, 0))
        assert store.vectors(["a"])["a"].tolist() == [1, 0]


def test_a_server_without_pgvector_is_told_as_that(newest):
    """It names the package to install."""
    name = newest.database(extended=False)
    newest.execute(f"ALTER DATABASE {name} SET extension_control_path = '/nowhere'")
    with pytest.raises(StoreError, match="pgvector is not installed on the server"):
        PostgresStore(newest.url(name, "postgres"))


def test_a_pgvector_too_old_is_told_as_that(newest):
    """With its version, and the one that is needed."""
    name = newest.database()
    newest.execute("UPDATE pg_extension SET extversion = '0.5.1' WHERE extname = 'vector'", on=name)
    with pytest.raises(StoreError, match=r"pgvector 0\.5\.1, and at least 0\.6 is needed"):
        PostgresStore(newest.url(name, "keeper"))


def test_a_writer_that_waits_too_long_is_told_as_that(newest, database):
    """Readers do not wait at all; afterwards writing goes on."""
    with PostgresStoreOf(newest, database, timeout=0.2) as store:
        put_one(store, entry())
        with psycopg.connect(newest.url(database)) as other:
            other.execute("SELECT * FROM stemma.meta FOR UPDATE")
            with pytest.raises(StoreUnavailable, match="longer than the timeout"):
                store.put([put(entry(), since=0)], NOW)
            assert set(store.get(["a"]).entries) == {"a"}
        assert put_one(store, entry()).sequence == 2


def test_idle_connections_that_died_are_not_noticed(newest, database, store):
    """The call begins anew on a new one: nothing had been done."""
    for operation in (
        lambda: store.get(["a"]),
        lambda: store.put([put(entry(), since=0)], NOW),
        lambda: asyncio.run(store.aget(["a"])),
    ):
        operation()
        newest.disconnect(database)
        operation()


def test_a_connection_lost_in_the_middle_is_told_and_replaced(newest, database, store):
    """The put that waited is not stored; the next one is."""
    told: list[Exception] = []

    def write() -> None:
        try:
            store.put([put(entry("lost"), since=0)], NOW)
        except StoreUnavailable as error:
            told.append(error)

    store.sequence()
    with psycopg.connect(newest.url(database)) as other:
        other.execute("SELECT * FROM stemma.meta FOR UPDATE")
        writer = threading.Thread(target=write)
        waiting = f"wait_event_type = 'Lock' AND datname = '{database}'"
        writer.start()
        newest.wait_for(waiting)
        newest.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {waiting}"
        )
        other.rollback()
    writer.join()
    assert store.get(["lost"]).entries == {} or told == []
    assert put_one(store, entry("kept")).id == "kept"
    assert store.check() == ()


def test_a_server_that_froze_holds_nobody(newest, database):
    """Threads and tasks are let go in the time named and a little, and all is well thereafter."""
    with PostgresStoreOf(newest, database, timeout=0.2) as store:
        put_one(store, entry())
        with newest.frozen(database), pytest.raises(StoreUnavailable, match="no answer"):
            store.get(["a"])

        async def asked() -> set[str]:
            await store.aget(["a"])
            with newest.frozen(database), pytest.raises(StoreUnavailable, match="no answer"):
                await store.aget(["a"])
            return set((await store.aget(["a"])).entries)

        assert asyncio.run(asked()) == {"a"}
        assert set(store.get(["a"]).entries) == {"a"}


def test_more_callers_than_connections_wait_for_one(newest, database):
    """Each has its turn."""
    with PostgresStoreOf(newest, database, max_connections=1, timeout=20) as store:
        put_one(store, entry())

        async def asked() -> int:
            found = await asyncio.gather(*(store.aget(["a"]) for _ in range(50)))
            return sum(len(one.entries) for one in found)

        assert asyncio.run(asked()) == 50
        assert len(newest.backends(database)) <= 2


def test_who_gets_no_connection_in_time_is_told(newest, database):
    """Threads and tasks; with what to raise."""
    with PostgresStoreOf(newest, database, max_connections=1, timeout=0.2) as store:
        with store._server._slots, pytest.raises(StoreUnavailable, match="all 1 connections"):
            store.get(["a"])

        async def asked() -> None:
            async with store._server._loop_pool().slots:
                with pytest.raises(StoreUnavailable, match="all 1 connections"):
                    await store.aget(["a"])

        asyncio.run(asked())


def test_a_vector_that_pgvector_cannot_hold_is_refused(store):
    """Beyond float16, not a number, or without numbers; nothing of the put is stored."""
    for numbers in ((1e6, 0), (float("nan"), 1), ()):
        with pytest.raises(StoreError, match="vector of a cannot be stored"):
            store.put([put(entry("a"), since=0, vector=vector(*numbers))], NOW)
    assert store.get(["a"]).entries == {}
    assert store.sequence() == 0


def test_a_text_too_long_to_be_found_by_is_refused_with_words(store):
    """An index of the server takes texts of about 2,500 bytes, beyond what can be compressed."""
    long = "".join(chr(0x4E00 + (number * 7919) % 20000) for number in range(4000))
    with pytest.raises(StoreError, match="about 2,500 bytes"):
        store.put([put(entry("a", tenant=long), since=0)], NOW)
    assert put_one(store, entry("a", focus=long)).focus == long


def test_without_psycopg_it_says_what_to_install():
    """At the import, and as an error of ours."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from stemma.errors import MissingDependency\n"
        "try:\n"
        "    import stemma.stores.postgres\n"
        "except MissingDependency as error:\n"
        "    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "stemma-cache[postgres]" in told.stdout
