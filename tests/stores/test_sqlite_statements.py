"""What reaches SQLite as a statement, and what is done with what is stored."""

import json
import os
import pickle
import sqlite3
import warnings
from pathlib import Path

import pytest

from stemma.codec import JsonCodec
from stemma.entry import Offer
from stemma.errors import CodecError, StoreError
from stemma.request import Key
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.protocol import Count, Judgement, Serving
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source, vector
from stemma.testing.store_holds import quarantine
from stemma.testing.store_lessons import lesson


def recording(statements: set[str]):
    """A connection factory that notes the text of every statement."""

    class Cursor(sqlite3.Cursor):
        def execute(self, statement, *args):
            statements.add(statement)
            return super().execute(statement, *args)

        def executemany(self, statement, *args):
            statements.add(statement)
            return super().executemany(statement, *args)

    class Connection(sqlite3.Connection):
        def cursor(self):
            return super().cursor(Cursor)

        def execute(self, *args):
            return self.cursor().execute(*args)

    def make(path: str, timeout: float) -> sqlite3.Connection:
        return sqlite3.connect(
            path, timeout=timeout, isolation_level=None, check_same_thread=False, factory=Connection
        )

    return make


def use_everything(store: SqliteStore, text: str) -> None:
    """Every method, with one text wherever a text may be."""
    labels = Labels(session=text, user=text, arm=text, tags=(text,), subject=text, writer=text)
    fields = {"tenant": text, "partition": text, "group": text, "model": text, "index": text}
    offer = Offer(pool=text, place=Key(text, text, text))
    one = entry(text, text, labels=labels, focus=text, codec=text, pool=text, offer=offer, **fields)
    read = source(text, text, content=text, owner=text, index=text)
    stored = put_one(store, one, sources=[read], vector=vector(1, 0))
    put_one(store, entry(f"child of {text}", tenant=text), parents=[stored], sources=[read])
    put_one(store, one, vector=vector(0, 1), since=0)
    store.get([text])
    store.get([text, "other"])
    store.ancestry(f"child of {text}")
    store.changes(0)
    store.changes(1)
    store.vectors([text])
    store.lineage(text)
    store.children(text)
    store.judge(
        Judgement(entry=text, value=text, verdict="supported", by=text, confidence=1.0, at=NOW)
    )
    serving = Serving(text, text, "exact", 1.0, NOW, text, text, text)
    store.journal([serving], [Count(tenant=text, node=text, outcome=text, lookups=1)])
    store.offered(text)
    store.descent([text, "other"])
    store.flows(now=NOW, half_life=1.0)
    store.flows(now=NOW, entries=[text, "other"])
    store.hold(quarantine(text, text, text=text))
    store.release(text, now=NOW)
    for read_all in (store.crossed, store.shared, store.quarantines):
        read_all()
    every = dict.fromkeys(("source", "tenant", "tag", "writer", "subject", "model", "index"), text)
    store.find(Selector(entry=text, **every))
    store.recall(Selector(**every), now=NOW, dry_run=True)
    store.recall(Selector(source=text), now=NOW)
    store.recall(Selector(entry=text), now=NOW)
    store.recall(Selector(tenant=text), now=NOW, cascade=False)
    store.put([put(one, since=0, sources=[read])], NOW)
    store.remove([text])
    for read_all in (store.find, store.counts, store.servings, store.judgements, store.recalls):
        read_all()
    store.servings(entry=text)
    store.judgements(entry=text)
    store.learn([lesson(text, text, node=text, state=text, writer=text, by=text)])
    store.lessons(text, text)
    store.sizes()
    store.check()


def test_no_text_becomes_part_of_a_statement(tmp_path: Path):
    """Hostile texts make the very statements that harmless ones make."""
    harmless: set[str] = set()
    store = SqliteStore(tmp_path / "harmless.db", connect=recording(harmless))
    use_everything(store, "harmless")
    store.close()
    hostile: set[str] = set()
    store = SqliteStore(tmp_path / "hostile.db", connect=recording(hostile))
    for text in HOSTILE:
        use_everything(store, text)
    store.close()
    assert len(harmless) > 50
    assert hostile == harmless
    assert not any("harmless" in statement for statement in harmless)


class Trap:
    """Makes a directory when it is unpickled."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self):
        return os.mkdir, (self._path,)


def planted(path: Path) -> list[object]:
    """What other caches would have revived."""
    revival = {"lc": 1, "type": "constructor", "id": ["os", "mkdir"], "kwargs": {"path": str(path)}}
    return [
        pickle.dumps(Trap(str(path))),
        pickle.dumps(Trap(str(path)), protocol=0).decode("ascii"),
        json.dumps(revival),
        json.dumps(revival).encode(),
        b"\xc7\x20\x05\x94\xa2os\xa5mkdir\x91" + str(path).encode(),  # msgpack, an extension type
        f"!!python/object/apply:os.mkdir ['{path}']",
        '{"$": "os.mkdir", "v": ["' + str(path) + '"]}',
    ]


def read_everything(store: SqliteStore) -> None:
    """Every read, where an error of ours is an answer too."""
    for use in (
        lambda: store.get(["a"]),
        lambda: store.get(["a", "b", "c"]),
        lambda: store.ancestry("b"),
        lambda: store.changes(0),
        lambda: store.changes(1),
        lambda: store.vectors(["a", "b"]),
        lambda: store.lineage("b"),
        lambda: store.children("a"),
        store.find,
        lambda: store.find(Selector(tag="t")),
        store.counts,
        store.servings,
        store.judgements,
        lambda: store.lessons("acme", "answer"),
        lambda: store.offered("place"),
        lambda: store.descent(["a"]),
        store.crossed,
        store.shared,
        lambda: store.flows(now=NOW),
        store.quarantines,
        lambda: store.hold(quarantine("r", "a")),
        lambda: store.release("q", now=NOW),
        store.recalls,
        store.sizes,
        store.sequence,
        lambda: store.recall(Selector(entry="a"), now=NOW, dry_run=True),
        lambda: put_one(store, entry("d"), since=0),
        store.check,
    ):
        try:
            use()
        except (StoreError, AssertionError):
            continue


def columns(path: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(path)
    tables = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    found = [
        (table, column[1])
        for table in tables
        if not table.startswith("sqlite_")
        for column in connection.execute(f'PRAGMA table_info("{table}")')
    ]
    connection.close()
    return found


def test_nothing_planted_is_ever_built(tmp_path: Path):
    """Pickles, LangChain constructors, msgpack and YAML in every stored field stay bytes."""
    path, trap = tmp_path / "cache.db", tmp_path / "sprung"
    store = SqliteStore(path)
    parent = put_one(store, entry("a", labels=Labels(tags=("t",))), vector=vector(1, 0))
    put_one(store, entry("b"), parents=[parent], sources=[source()], vector=vector(1, 0))
    store.hold(quarantine("q", "b"))
    put_one(store, entry("c"), vector=vector(1, 0))
    store.recall(Selector(entry="c"), now=NOW)
    store.judge(
        Judgement(entry="a", value="one", verdict="supported", by="t", confidence=1, at=1.0)
    )
    store.journal(
        [Serving(entry="a", tenant="t", tier="exact", similarity=1.0, at=1.0)],
        [Count(tenant="t", node="call", outcome="hit", lookups=1)],
    )
    store.learn([lesson("a")])
    store.close()
    sound = path.read_bytes()
    tried = 0
    for number, (table, column) in enumerate(columns(path)):
        thorough = column in ("tenant", "record")
        for what in planted(trap) if thorough else planted(trap)[number % 3 :: 3]:
            path.write_bytes(sound)
            connection = sqlite3.connect(path)
            try:
                connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (what,))
            except sqlite3.IntegrityError:
                connection.close()
                continue
            connection.commit()
            connection.close()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a file that was set aside
                store = SqliteStore(path)
            read_everything(store)
            store.close()
            assert not trap.exists(), (table, column)
            tried += 1
    assert tried > 120


def test_a_planted_payload_with_a_true_checksum_is_bytes(tmp_path: Path):
    """The store gives bytes, and the codec reads plain values or refuses."""
    trap = tmp_path / "sprung"
    store = SqliteStore(tmp_path / "cache.db")
    for what in planted(trap):
        payload = what if isinstance(what, bytes) else str(what).encode()
        put_one(store, entry("a", payload=payload))
        read = store.get(["a"]).entries["a"].payload
        assert read == payload
        try:
            value = JsonCodec().decode(read)
        except CodecError:
            continue
        assert type(value) in (dict, str)
    assert not trap.exists()
    store.close()


@pytest.mark.parametrize("text", ["{'a': 1}", "a b", "%(x)s"])
def test_a_selector_may_be_any_text(tmp_path: Path, text: str):
    """There is no syntax in it."""
    store = SqliteStore(tmp_path / "cache.db")
    put_one(store, entry("a", labels=Labels(tags=(text,))))
    assert [one.id for one in store.find(Selector(tag=text))] == ["a"]
    store.close()


def test_pages_that_an_index_has_taken_in_are_given_back(tmp_path: Path):
    """SQLite would keep 16 MB of them; what is read later is little, and keeps its pages."""
    statements: set[str] = set()
    store = SqliteStore(tmp_path / "cache.db", connect=recording(statements))
    put_one(store, entry("e"), vector=vector(1))
    assert "PRAGMA shrink_memory" not in statements
    assert len(store.changes(0).ids) == 1
    assert "PRAGMA shrink_memory" in statements
    statements.clear()
    put_one(store, entry("f"), vector=vector(2))
    assert len(store.changes(1).ids) == 1
    assert "PRAGMA shrink_memory" not in statements
    store.close()
