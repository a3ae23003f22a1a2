"""Damaged cells, rows in one another's place, and pages that are no longer pages."""

import random
import sqlite3
import warnings
from pathlib import Path

import pytest

from stemma.codec import MAX_PAYLOAD
from stemma.entry import Offer
from stemma.errors import StoreError
from stemma.lineage.validity import judge
from stemma.request import Key
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.protocol import Serving
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put_one, source, vector
from stemma.testing.store_holds import quarantine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def alter(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


COLUMNS = ("tenant", "node", "model", '"index"', "record")


@pytest.mark.parametrize("column", COLUMNS)
def test_no_column_may_come_from_another_row(path: Path, column: str):
    """An exchange of any one cell between two rows damages both."""
    store = SqliteStore(path)
    put_one(store, entry("a", "1", tenant="x", node="call", model="m", index="i", focus="f"))
    put_one(store, entry("b", "2", tenant="y", node="hop", model="n", index="j", focus="g"))
    alter(
        path,
        f"CREATE TEMP TABLE kept AS SELECT id, {column} AS cell FROM entries",
        f"UPDATE entries SET {column} = (SELECT cell FROM kept WHERE kept.id <> entries.id)",
    )
    fetched = store.get(["a", "b"])
    assert fetched.entries == {}
    assert sorted(fetched.damaged) == ["a", "b"]
    assert store.find() == ()
    store.close()


def test_a_whole_row_in_another_s_place_is_damage(path: Path):
    """The checksum covers the id under which a row is found."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    put_one(store, entry("b"))
    alter(path, "DELETE FROM entries WHERE id = 'a'", "UPDATE entries SET id = 'a' WHERE id = 'b'")
    assert store.get(["a"]).damaged == ("a",)
    store.close()


@pytest.mark.parametrize("column", ["tenant", "model", "record"])
def test_a_text_that_is_no_longer_utf8_is_damage(path: Path, column: str):
    """It is named, alone or among others, and the others are given."""
    store = SqliteStore(path)
    put_one(store, entry("a", focus="f"))
    put_one(store, entry("b", focus="f"))
    alter(path, f"UPDATE entries SET {column} = CAST(x'66ff80' AS TEXT) WHERE id = 'a'")
    assert store.get(["a"]).damaged == ("a",)
    fetched = store.get(["a", "b"])
    assert (fetched.damaged, list(fetched.entries)) == (("a",), ["b"])
    assert [one.id for one in store.find()] == ["b"]
    assert store.ancestry("a") is None
    assert any("damaged" in line for line in store.check())
    assert store.check() == ()
    store.close()


def test_a_payload_grown_too_large_is_not_read(path: Path):
    """It is damage, whatever its checksum."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    alter(path, f"UPDATE entries SET record = zeroblob({3 * MAX_PAYLOAD}) WHERE id = 'a'")
    assert store.get(["a"]).damaged == ("a",)
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET vector = CAST(vector || 'x' AS BLOB) WHERE entry = 'a'",
        "UPDATE vectors SET vector = x'0000' WHERE entry = 'a'",
        "UPDATE vectors SET entry = 'z' WHERE entry = 'a'",
        "UPDATE vectors SET \"group\" = 'z' WHERE entry = 'a'",
        "UPDATE vectors SET checksum = checksum + 1 WHERE entry = 'a'",
    ],
)
def test_a_damaged_vector_is_none(path: Path, statement: str):
    """Its entry is still found exactly; a check removes the vector, and tells indexes so."""
    store = SqliteStore(path)
    put_one(store, entry("a"), vector=vector(1, 0))
    put_one(store, entry("b"), vector=vector(0, 1))
    start = store.sequence()
    alter(path, statement)
    assert set(store.vectors(["a", "b", "z"])) == {"b"}
    assert list(store.changes(0).ids) == ["b"]
    assert set(store.get(["a", "b"]).entries) == {"a", "b"}
    assert len(store.check()) == 1
    assert store.check() == ()
    assert len(store.changes(start).removed) == 1
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lineages SET record = '' WHERE child = 'b'",
        "UPDATE lineages SET record = '[[],[]]' WHERE child = 'b'",
        "UPDATE lineages SET record = replace(record, 'ambient', 'AMBIENT') WHERE child = 'b'",
        "UPDATE lineages SET record = x'00' WHERE child = 'b'",
        "DELETE FROM lineages WHERE child = 'b'",
    ],
)
def test_an_entry_whose_lineage_is_damaged_has_no_ancestry(path: Path, statement: str):
    """It would look valid for want of parents; a check removes it."""
    store = SqliteStore(path)
    parent = put_one(store, entry("a"))
    put_one(store, entry("b"), parents=[parent], sources=[source()])
    alter(path, statement)
    assert store.ancestry("b") is None
    assert any("damaged" in line for line in store.check())
    assert list(store.get(["a", "b"]).entries) == ["a"]
    store.close()


def test_lost_edges_are_restored(path: Path):
    """A recall goes along the edges; a check makes them anew from the lineages."""
    store = SqliteStore(path)
    parent = put_one(store, entry("a"), sources=[source()])
    put_one(store, entry("b"), parents=[parent])
    alter(path, "DELETE FROM edges", "DELETE FROM source_edges")
    assert any("restored" in line for line in store.check())
    assert store.check() == ()
    assert len(store.recall(Selector(source="doc-1"), now=NOW)) == 2
    store.close()


def test_orphans_are_removed(path: Path):
    """Vectors, labels, edges and holds of nothing are no use to anybody."""
    store = SqliteStore(path)
    put_one(store, entry("a"), vector=vector(1, 0))
    store.hold(quarantine("q", "a"))
    alter(
        path,
        "UPDATE entries SET id = id",
        "DELETE FROM entries",
        "INSERT INTO labels VALUES ('tag', 't', 'nobody')",
        "INSERT INTO edges VALUES ('a', 'nobody')",
        "INSERT INTO source_edges VALUES ('a', 'nobody')",
    )
    assert len(store.check()) == 5
    assert store.check() == ()
    store.close()


def test_labels_that_are_missing_are_restored(path: Path):
    """By them a recall finds an entry, and a promotion what is offered to a place."""
    store = SqliteStore(path)
    offer = Offer(pool="p", place=Key("partition", "group", "place"))
    put_one(store, entry("a", labels=Labels(tags=("t",)), offer=offer))
    alter(path, "DELETE FROM labels")
    assert store.offered("place") == ()
    assert store.check() == ("2 labels were missing: restored",)
    assert store.check() == ()
    assert [one.id for one in store.offered("place")] == ["a"]
    assert len(store.recall(Selector(tag="t"), now=NOW)) == 1
    store.close()


def test_what_is_held_stays_so_where_its_quarantine_is_damaged(path: Path):
    """A check gives it a receipt again, by which it can be released; its other words are lost."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    put_one(store, entry("b"))
    store.hold(quarantine("q", "a"))
    store.hold(quarantine("r", "b"))
    alter(
        path,
        "DELETE FROM quarantines WHERE id = 'q'",
        "UPDATE quarantines SET seeds = '[1' WHERE id = 'r'",
    )
    found = store.get(["a", "b"]).entries
    assert [found["a"].held, found["b"].held] == ["q", "r"]
    assert store.quarantines() == ()
    lines = store.check()
    assert len(lines) == 2
    assert all("quarantines" in line for line in lines)
    assert store.check() == ()
    assert sorted(one.id for one in store.quarantines()) == ["q", "r"]
    for name in ("q", "r"):
        released = store.release(name, now=NOW)
        assert released is not None
        assert len(released) == 1
    found = store.get(["a", "b"]).entries
    assert [found["a"].held, found["b"].held] == ["", ""]
    store.close()


def test_damaged_rows_of_servings_are_left_out_of_the_flows(path: Path):
    """As what is not a number cannot be added up."""
    store = SqliteStore(path)
    given = [Serving(name, "y", "exact", 1.0, NOW, "x") for name in "abcd"]
    store.journal(given, [])
    alter(
        path,
        "UPDATE servings SET at = 'soon' WHERE entry = 'a'",
        "UPDATE servings SET similarity = x'00' WHERE entry = 'b'",
        "UPDATE servings SET confidence = 'sure' WHERE entry = 'c'",
    )
    (one,) = store.flows(now=NOW)
    assert (one.uses, one.weight) == (1, 1.0)
    store.close()


def test_a_damaged_lineage_shares_nothing(path: Path):
    """And the others are told all the same."""
    store = SqliteStore(path)
    for tenant in ("x", "y", "z"):
        put_one(store, entry(tenant, tenant=tenant), sources=[source(owner="public")])
    for record in ("[[", "{}", '[[],["x"]]', "[1,2]"):
        alter(path, f"UPDATE lineages SET record = '{record}' WHERE child = 'z'")
        assert [one.tenant for one in store.shared()] == ["x", "y"]
    store.close()


def test_an_index_that_differs_from_its_table_is_made_anew(path: Path):
    """Else a recall would not find what is there, and a check would mend the same for ever."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    store.close()
    other = sqlite3.connect(path)
    statement = "SELECT rootpage FROM sqlite_schema WHERE name = 'entries_by_tenant'"
    ((page,),) = other.execute(statement).fetchall()
    other.close()
    data = path.read_bytes()
    start = (page - 1) * 4096
    cell = data[start : start + 4096].replace(b"acme", b"acmf")
    path.write_bytes(data[:start] + cell + data[start + 4096 :])
    store = SqliteStore(path)
    assert len(store.recall(Selector(tenant="acme"), now=NOW, dry_run=True)) == 0
    (line,) = store.check()
    assert "made anew" in line
    assert store.check() == ()
    assert len(store.recall(Selector(tenant="acme"), now=NOW)) == 1
    store.close()


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_file_gives_errors_of_ours_and_no_wrong_entry(tmp_path: Path, seed: int):
    """Random bytes of the file are changed: what is still given is what was put."""
    path = tmp_path / "cache.db"
    store = SqliteStore(path)
    put = {}
    for number in range(80):
        one = put_one(store, entry(f"e{number}", focus="f" * number), vector=vector(1, number))
        put[one.id] = one
    store.close()
    data = bytearray(path.read_bytes())
    lucky = random.Random(seed)
    for _ in range(lucky.choice((1, 8, 64))):
        data[lucky.randrange(100, len(data))] ^= 1 << lucky.randrange(8)
    if seed % 5 == 0:
        del data[lucky.randrange(100, len(data)) :]
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file that was set aside
        store = SqliteStore(path)
    for name, one in put.items():
        try:
            found = store.get([name]).entries
        except StoreError:
            continue
        assert found.get(name, one) == one
    for use in (store.find, store.check, store.sizes, lambda: store.changes(0)):
        try:
            use()
        except StoreError:
            continue
    store.close()


HIDDEN = {
    "source": ("UPDATE source_edges SET child = 'x' WHERE child = 'a'", Selector(source="doc-1")),
    "element": (
        "UPDATE source_edges SET element = 'x' WHERE element = 'doc-1'",
        Selector(source="doc-1"),
    ),
    "tag": ("UPDATE labels SET value = 'x' WHERE value = 't'", Selector(tag="t")),
    "writer": ("DELETE FROM labels WHERE name = 'writer'", Selector(writer="w")),
    "both": ("DELETE FROM labels WHERE name = 'tag'", Selector(tag="t", tenant="acme")),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_damage_hid_from_a_recall_is_not_served(path: Path, kind: str):
    """What a recall goes by has no checksum; what a reader compares with the recalls has one."""
    statement, selector = HIDDEN[kind]
    labels = Labels(tags=("t",), writer="w")
    store = SqliteStore(path)
    parent = put_one(store, entry("a", labels=labels), sources=[source()])
    put_one(store, entry("b"), parents=[parent])
    put_one(store, entry("c", labels=Labels(tags=("u",))), sources=[source("doc-2")])
    alter(path, statement)
    store.recall(selector, now=NOW)
    assert "a" in store.get(["a"]).entries
    for name in ("a", "b"):
        assert judge(name, store.ancestry(name), NOW).detail == "parent a was taken back"
    assert judge("c", store.ancestry("c"), NOW).reason is None
    again = put_one(store, entry("a", labels=labels), sources=[source()], since=store.sequence())
    assert judge("a", store.ancestry(again.id), NOW).reason is None
    store.close()
