"""The tables of the SQLite store, and how a file is told to be one of ours."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from stemma.errors import DamagedDatabase, ForeignDatabase, SchemaTooNew, StoreUnavailable

__all__ = [
    "APPLICATION",
    "VERSION",
    "bring_up_to_date",
    "examine",
    "refuse_newer",
    "succeed",
    "ticks",
]

APPLICATION = 0x53544D41
"""`application_id` of our files: "STMA"."""

VERSION = 4
"""`user_version` of our files."""

_RECALLS_BY = tuple(
    f'CREATE INDEX recalls_by_{name} ON recalls ("{name}", sequence) WHERE "{name}" IS NOT NULL'
    for name in ("source", "tenant", "tag", "writer", "subject", "model", "index")
)

_LESSONS = (
    """CREATE TABLE lessons (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL, node TEXT NOT NULL, state TEXT NOT NULL, writer TEXT NOT NULL,
        candidate TEXT NOT NULL, known TEXT NOT NULL, weight REAL NOT NULL,
        correct INTEGER NOT NULL, by TEXT NOT NULL, requests INTEGER NOT NULL, at REAL NOT NULL
    )""",
    "CREATE INDEX lessons_by_tenant ON lessons (tenant, node, number)",
)

_WATCHED = (
    "first REAL NOT NULL DEFAULT 0",
    "last REAL NOT NULL DEFAULT 0",
    "checks INTEGER NOT NULL DEFAULT 0",
    "changes INTEGER NOT NULL DEFAULT 0",
)

_SERVED_BY = (
    "producer TEXT NOT NULL DEFAULT ''",
    "pool TEXT NOT NULL DEFAULT ''",
    "node TEXT NOT NULL DEFAULT ''",
    "confidence REAL NOT NULL DEFAULT 1",
)
_SAID_BY = ("tenant TEXT NOT NULL DEFAULT ''", "weight REAL NOT NULL DEFAULT 1")

_QUARANTINES = (
    """CREATE TABLE quarantines (
        number INTEGER PRIMARY KEY,
        sequence INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, by TEXT NOT NULL,
        reason TEXT NOT NULL, threshold REAL NOT NULL, seeds TEXT NOT NULL, lifted REAL
    )""",
    """CREATE TABLE held (
        number INTEGER PRIMARY KEY,
        quarantine TEXT NOT NULL, entry TEXT NOT NULL, tenant TEXT NOT NULL, pool TEXT,
        node TEXT NOT NULL, hop INTEGER NOT NULL, probability REAL NOT NULL,
        doubtful INTEGER NOT NULL, lifted INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX held_by_quarantine ON held (quarantine)",
    "CREATE INDEX held_now ON held (entry) WHERE lifted = 0",
)

STEPS: Mapping[int, Sequence[str]] = {
    1: ("ALTER TABLE meta ADD COLUMN began INTEGER NOT NULL DEFAULT 0", *_RECALLS_BY),
    2: (
        "ALTER TABLE judgements ADD COLUMN question TEXT NOT NULL DEFAULT ''",
        *(f"ALTER TABLE sources ADD COLUMN {column}" for column in _WATCHED),
        *_LESSONS,
    ),
    3: (
        *(f"ALTER TABLE servings ADD COLUMN {column}" for column in _SERVED_BY),
        *(f"ALTER TABLE judgements ADD COLUMN {column}" for column in _SAID_BY),
        *_QUARANTINES,
    ),
}
"""What makes of a version the next one."""

TICKS = 10_000
"""How the time of day becomes a number beyond those of a store: it uses up fewer a second, mostly.
Where it does not, who has seen its numbers knows."""

_HEADER = 100
_MAGIC = b"SQLite format 3\x00"

# Texts are as `stemma.stores.text` writes them and compared byte by byte; entries are as
# `stemma.stores.rows` packs them. Lineages outlive their entries, edges serve to find them from
# the other end. Long rows stand in tables with row numbers, found through a slim index: a
# clustered one would hold them in its inner nodes, twice as large and half as fast.
_TABLES = (
    """CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        sequence INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        recalled INTEGER NOT NULL,
        forgotten INTEGER NOT NULL,
        began INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE entries (
        id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        node TEXT NOT NULL,
        model TEXT NOT NULL,
        "index" TEXT NOT NULL,
        hop INTEGER NOT NULL,
        record BLOB NOT NULL,
        sequence INTEGER NOT NULL
    )""",
    "CREATE INDEX entries_by_sequence ON entries (sequence)",
    "CREATE INDEX entries_by_tenant ON entries (tenant, node)",
    "CREATE INDEX entries_by_model ON entries (model) WHERE model <> ''",
    """CREATE INDEX entries_by_index ON entries ("index") WHERE "index" <> ''""",
    """CREATE TABLE vectors (
        sequence INTEGER PRIMARY KEY,
        entry TEXT NOT NULL UNIQUE,
        "group" TEXT NOT NULL,
        vector BLOB NOT NULL,
        checksum INTEGER NOT NULL
    )""",
    """CREATE TABLE removed (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        sequence INTEGER NOT NULL,
        "group" TEXT NOT NULL,
        entry TEXT NOT NULL
    )""",
    "CREATE TABLE lineages (child TEXT PRIMARY KEY, record TEXT NOT NULL)",
    """CREATE TABLE edges (
        parent TEXT NOT NULL, child TEXT NOT NULL, PRIMARY KEY (parent, child)
    ) WITHOUT ROWID""",
    """CREATE TABLE source_edges (
        element TEXT NOT NULL, child TEXT NOT NULL, PRIMARY KEY (element, child)
    ) WITHOUT ROWID""",
    f"""CREATE TABLE sources (
        owner TEXT NOT NULL,
        "index" TEXT NOT NULL,
        chunk TEXT NOT NULL,
        content TEXT NOT NULL,
        seen INTEGER NOT NULL,
        {", ".join(_WATCHED)},
        PRIMARY KEY (owner, "index", chunk)
    ) WITHOUT ROWID""",
    """CREATE TABLE labels (
        name TEXT NOT NULL, value TEXT NOT NULL, entry TEXT NOT NULL,
        PRIMARY KEY (name, value, entry)
    ) WITHOUT ROWID""",
    "CREATE INDEX labels_by_entry ON labels (entry)",
    """CREATE TABLE recalls (
        sequence INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        source TEXT, entry TEXT, tenant TEXT, tag TEXT, writer TEXT,
        subject TEXT, model TEXT, "index" TEXT, node TEXT
    )""",
    *_RECALLS_BY,
    """CREATE TABLE recalled (
        entry TEXT NOT NULL,
        recall INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        node TEXT NOT NULL,
        hop INTEGER NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (entry, recall)
    ) WITHOUT ROWID""",
    "CREATE INDEX recalled_by_recall ON recalled (recall, position)",
    f"""CREATE TABLE judgements (
        number INTEGER PRIMARY KEY,
        entry TEXT NOT NULL, value TEXT NOT NULL, verdict TEXT NOT NULL,
        by TEXT NOT NULL, confidence REAL NOT NULL, at REAL NOT NULL,
        question TEXT NOT NULL DEFAULT '',
        {", ".join(_SAID_BY)}
    )""",
    "CREATE INDEX judgements_by_entry ON judgements (entry)",
    f"""CREATE TABLE servings (
        number INTEGER PRIMARY KEY,
        entry TEXT NOT NULL, tenant TEXT NOT NULL, tier TEXT NOT NULL,
        similarity REAL NOT NULL, at REAL NOT NULL,
        {", ".join(_SERVED_BY)}
    )""",
    "CREATE INDEX servings_by_entry ON servings (entry)",
    """CREATE TABLE counters (
        tenant TEXT NOT NULL, node TEXT NOT NULL, outcome TEXT NOT NULL,
        lookups INTEGER NOT NULL, seconds REAL NOT NULL, tokens INTEGER NOT NULL,
        PRIMARY KEY (tenant, node, outcome)
    ) WITHOUT ROWID""",
    *_LESSONS,
    *_QUARANTINES,
)


def examine(path: Path, *, marked: bool, known: bool = False) -> None:
    """See that there is a database of ours; an empty file is made, for its owner only, if not.

    The file's header is read as bytes: SQLite is not let near a file that is not ours.

    Args:
        path: The file.
        marked: Whether our marker lies beside it, so that what is no database any more was ours.
        known: Whether this process has it open, so that it is ours; it is not opened then: closing
            it would free the locks that SQLite holds on it for the whole process.

    Raises:
        DamagedDatabase: It was ours, and its header is damaged.
        ForeignDatabase: The file is something else.
        SchemaTooNew: A newer Stemma wrote it.
        StoreUnavailable: The file cannot be read or made.
    """
    if known:
        return
    try:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)  # whatever the umask took away
        if not stat.S_ISREG(path.stat().st_mode):
            raise StoreUnavailable(f"{path} is not a file; name a file for the cache")
        with path.open("r+b") as file:
            header = file.read(_HEADER)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot open {path}: {error.strerror}; name a file in a directory that exists and "
            "that this process may write to"
        ) from error
    if header and not (marked and _being_made(path)):
        _recognise(path, header, marked=marked)


def _being_made(path: Path) -> bool:
    """Whether its making was interrupted: SQLite will take it back. Later there is only a log."""
    return Path(f"{path}-journal").exists()


def _recognise(path: Path, header: bytes, *, marked: bool) -> None:
    if not header.startswith(_MAGIC) or len(header) < _HEADER:
        if marked:
            raise DamagedDatabase(f"{path} is no longer a SQLite database")
        raise ForeignDatabase(
            f"{path} is not a SQLite database; it was left as it is: name another file"
        )
    if int.from_bytes(header[68:72], "big") != APPLICATION:
        if marked and not _of_another_application(path):
            raise DamagedDatabase(f"the header of {path} is damaged")
        raise ForeignDatabase(
            f"{path} is a database of another application; it was left as it is: name another file"
        )
    refuse_newer(path, int.from_bytes(header[60:64], "big", signed=True))


def _of_another_application(path: Path) -> bool:
    """Whether a database is sound and holds nothing of ours, so that it took our file's place."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        names = connection.execute("SELECT name FROM sqlite_schema").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    finally:
        connection.close()
    return ("source_edges",) not in names


def refuse_newer(path: Path, version: int) -> None:
    """Raise `SchemaTooNew` for a version that is not known here."""
    if version > VERSION:
        raise SchemaTooNew(
            f"{path} has the schema version {version}, and this Stemma knows {VERSION}; it was "
            "left as it is: upgrade stemma-cache, or name another file"
        )


def ticks() -> int:
    """The number at which a store begins that succeeds another one."""
    return int(time.time() * TICKS)


def succeed(connection: sqlite3.Connection, reached: int) -> None:
    """Move a store's numbers beyond those of another one, in whose place it came.

    What was asked of that one before then is refused here: what was recalled there is not known.

    Args:
        connection: To the store.
        reached: What the other one's sequence is known to have reached.
    """
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        """UPDATE meta SET sequence = max(sequence + 1, ?1), epoch = max(sequence + 1, ?1),
        forgotten = max(sequence + 1, ?1), began = max(sequence + 1, ?1) WHERE began <= ?2""",
        (max(ticks(), reached + 1), reached),
    )
    connection.execute("COMMIT")


def bring_up_to_date(connection: sqlite3.Connection, path: Path, begin: Callable[[], int]) -> None:
    """Make the tables, or bring an older schema up to this one; in one transaction.

    An empty file has version 0: one that was made now, or whose making was taken back by SQLite
    after a loss of power. The header is written before the switch to WAL, so that it is in the file
    itself from its first page on; the switch is made whenever the file is opened.

    Args:
        connection: To the file.
        path: The file.
        begin: Gives the number at which a new store's sequence begins.

    Raises:
        DamagedDatabase: It has a schema that never was.
        SchemaTooNew: A newer Stemma wrote it.
    """
    connection.execute("BEGIN EXCLUSIVE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        refuse_newer(path, version)
        empty = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None
        if version == 0 and empty:
            _create(connection, begin())
            version = VERSION
        for statement in _steps(path, version):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _steps(path: Path, version: int) -> Iterator[str]:
    """What makes of a version this one."""
    for older in range(version, VERSION):
        if older not in STEPS:
            raise DamagedDatabase(f"{path} has a schema version that never was, {version}")
        yield from STEPS[older]


def _create(connection: sqlite3.Connection, began: int) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES (1, ?, ?, 0, ?, ?)", (began,) * 4)
