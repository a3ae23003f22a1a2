"""What PostgreSQL's errors mean, and what to do about them."""

from __future__ import annotations

from urllib.parse import urlsplit

from stemma.errors import MissingDependency, StoreError, StoreUnavailable, UsageError

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    raise MissingDependency(
        "the PostgreSQL store needs psycopg; install it with: pip install 'stemma-cache[postgres]'"
    ) from error

__all__ = ["explain", "lost", "spoken"]

_GONE = "the connection was lost; what was under way is a miss, the next call makes a new one"

_UNAVAILABLE = {
    "08": _GONE,
    "25006": "it may only be read: is it a standby? name the primary",
    "40": "other transactions stood in the way; try again",
    "53100": "the server's disk is full; make room",
    "53300": "the server has no connection left; lower max_connections here, or raise it there",
    "53": "the server lacks resources",
    "55P03": "it stayed locked",
    "57014": "it took longer than the timeout, or was cancelled; raise timeout if this goes on",
    "57": "the server is starting, stopping or was told to end the connection; try again",
    "58": "the server could not read or write its files; look at its log",
}

_BROKEN = {
    "22003": "a number is beyond what can be stored",
    "42501": "the role may not do this; grant it what docs/stores.md lists, and where the database "
    "has no pgvector yet, have its master say CREATE EXTENSION vector",
    "42P01": "the tables are gone; open the store anew to make them",
    "3F000": "the schema is gone; open the store anew to make it",
    "42704": "a type is gone; is the extension pgvector still installed?",
    "54000": "a text is too long to be found by: ids, tenants, labels and documents may have about "
    "2,500 bytes",
    "XX": "the server found damage or a fault of its own; look at its log",
}

_CONNECTING = (
    ("password authentication failed", "the password is wrong, or the role is"),
    ("no password supplied", "it asks for a password; name it in the URL or in PGPASSWORD"),
    ("does not exist", "there is no such database or role; create it, or name another one"),
    ("no pg_hba.conf entry", "the server does not let this role in from here; see its pg_hba.conf"),
    ("too many clients", "the server has no connection left; lower max_connections here"),
    ("remaining connection slots", "the server has no connection left; lower max_connections here"),
    ("starting up", "the server is starting; try again"),
    ("refused", "no server listens there; start it, or check host and port"),
    ("timeout", "no answer within the timeout; check host, port and firewalls"),
    ("could not translate host name", "there is no such host; check its name"),
    ("failed to resolve host", "there is no such host; check its name"),
)


def spoken(url: str) -> str:
    """The URL as it may be shown: host, port and database, without password or role.

    Raises:
        UsageError: It is no URL of a PostgreSQL database.
    """
    kind = urlsplit(url).scheme if "://" in url else ""
    if kind not in ("postgresql", "postgres"):
        raise UsageError(
            "name the database by a URL such as postgresql://role@host/database, not by "
            f"{(kind or 'a text') + ('://…' if kind else ' without ://')}"
        )
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise UsageError(
            "the URL cannot be read; write postgresql://role:password@host:port/database, with "
            "%-codes for signs in role and password"
        ) from error
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


def lost(error: BaseException) -> bool:
    """Whether this says that the connection is gone, and nothing else."""
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    return error.sqlstate is None or error.sqlstate[:2] == "08" or error.sqlstate[:3] == "57P"


def explain(error: Exception, where: str, *, connecting: bool = False) -> StoreError:
    """The error of ours for one of psycopg's. Never with a value that was bound or stored."""
    state = getattr(error, "sqlstate", None) or ""
    if connecting or (not state and isinstance(error, psycopg.OperationalError)):
        words = str(error)
        for told, meaning in _CONNECTING if connecting else ():
            if told in words:
                return StoreUnavailable(f"{where}: {meaning}")
        wrong = "the server cannot be reached; check host, port and role" if connecting else _GONE
        return StoreUnavailable(f"{where}: {wrong} ({_first_line(words)})")
    for known in (state, state[:2]):
        if known in _UNAVAILABLE:
            return StoreUnavailable(f"{where}: {_UNAVAILABLE[known]} ({_primary(error)})")
        if known in _BROKEN:
            return StoreError(f"{where}: {_BROKEN[known]} ({_primary(error)})")
    return StoreError(f"{where}: {_primary(error)}")


def _primary(error: Exception) -> str:
    """The server's own words, without details: those quote values."""
    told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return told if told is not None else type(error).__name__


def _first_line(words: str) -> str:
    return words.strip().split("\n", 1)[0]
