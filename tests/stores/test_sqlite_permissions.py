"""Permissions that are missing or go: errors of ours, nothing set aside, and it goes on later."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import stemma
from stemma.errors import StoreUnavailable
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import entry, put_one, vector

NOBODY = 65_534

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of another kind")


@pytest.fixture
def path() -> Iterator[Path]:
    """In a directory whose permissions bind: root, whom none do, is somebody else meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(folder) / "cache.db"
        finally:
            if root:
                os.seteuid(0)


def filled(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    put_one(store, entry("a"), vector=vector(1, 0))
    return store


@contextmanager
def permitted(path: Path, mode: int) -> Iterator[None]:
    """With other permissions, for a while."""
    former = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(former)


def goes_on(store: SqliteStore, path: Path) -> None:
    """Everything is there and can be written, and nothing was set aside."""
    assert list(store.get(["a"]).entries) == ["a"]
    put_one(store, entry("later"))
    assert store.check() == ()
    assert not list(path.parent.glob("*damaged*"))


@pytest.mark.parametrize("mode", [0o000, 0o200, 0o400])
def test_a_file_that_may_not_be_used_is_refused(path: Path, mode: int):
    """It is left as it is, also where it may only be read."""
    filled(path).close()
    before = path.read_bytes()
    with permitted(path, mode), pytest.raises(StoreUnavailable, match="may write"):
        SqliteStore(path)
    assert path.read_bytes() == before
    store = SqliteStore(path)
    goes_on(store, path)
    store.close()


def test_a_log_that_may_not_be_used_is_not_passed_over(path: Path):
    """The file without its log would be another one: older, or nothing."""
    store = filled(path)
    log = Path(f"{path}-wal")
    before = log.read_bytes()
    with permitted(log, 0o000), pytest.raises(StoreUnavailable):
        SqliteStore(path)
    assert log.read_bytes() == before
    goes_on(store, path)
    store.close()


def test_a_directory_in_which_nothing_may_be_made_is_refused(path: Path):
    """A log must lie beside the file."""
    filled(path).close()
    before = path.read_bytes()
    with permitted(path.parent, 0o500), pytest.raises(StoreUnavailable):
        SqliteStore(path)
    assert path.read_bytes() == before
    store = SqliteStore(path)
    goes_on(store, path)
    store.close()


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o500])
@pytest.mark.parametrize("what", ["file", "directory"])
def test_permissions_that_go_while_it_is_open(path: Path, mode: int, what: str):
    """What needs another connection fails with an error of ours, and works again afterwards."""
    store = filled(path)
    held = store._connections.take()
    with permitted(path if what == "file" else path.parent, mode):
        for use in (lambda: store.get(["a"]), lambda: put_one(store, entry("b"))):
            with suppress(StoreUnavailable):  # and none of another kind
                use()
    goes_on(store, path)
    store._connections.give(held)
    goes_on(store, path)
    store.close()


def test_an_application_goes_on_without_the_cache(path: Path):
    """And with it when the permissions are back."""
    with stemma.open(path, tenant="me", embedder=None) as cache:
        assert cache.answers.get_or_compute("q", lambda: "a").value == "a"
        with permitted(path.parent, 0o000):
            assert cache.answers.get_or_compute("q", lambda: "b").value == "b"
        assert cache.answers.get_or_compute("q", lambda: "c").value == "a"
