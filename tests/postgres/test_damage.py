"""Damaged cells and rows in one another's place are found, and never given."""

import pytest

from stemma.errors import StoreError
from stemma.selector import Selector
from stemma.stores.postgres_reads import get
from stemma.stores.postgres_session import Drive, Session
from stemma.testing.builders import NOW, entry, put, put_one, source, vector


@pytest.fixture
def alter(newest, database):
    """Changes what is stored, behind the store's back."""
    return lambda *statements: newest.execute(
        "SET search_path = stemma, public", *statements, on=database
    )


@pytest.mark.parametrize("column", ["tenant", "node", "model", '"index"', "record"])
def test_no_column_may_come_from_another_row(store, alter, column):
    """An exchange of any one cell between two rows damages both."""
    put_one(store, entry("a", "1", tenant="x", node="call", model="m", index="i", focus="f"))
    put_one(store, entry("b", "2", tenant="y", node="hop", model="n", index="j", focus="g"))
    alter(
        f"UPDATE entries SET {column} = other.cell FROM (SELECT id, {column} AS cell FROM entries) "
        "other WHERE other.id <> entries.id"
    )
    fetched = store.get(["a", "b"])
    assert fetched.entries == {}
    assert sorted(fetched.damaged) == ["a", "b"]
    assert store.find() == ()


def test_a_whole_row_in_another_s_place_is_damage(store, alter):
    """The checksum covers the id under which a row is found."""
    put_one(store, entry("a"))
    put_one(store, entry("b"))
    alter("DELETE FROM entries WHERE id = 'a'", "UPDATE entries SET id = 'a' WHERE id = 'b'")
    assert store.get(["a"]).damaged == ("a",)


def test_a_record_grown_too_large_is_not_read(store, alter):
    """It is damage, whatever its checksum."""
    put_one(store, entry("a"))
    alter("UPDATE entries SET record = decode(repeat('00', 33554433), 'hex')")
    assert store.get(["a"]).damaged == ("a",)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET vector = '[1,2]' WHERE entry = 'a'",
        "UPDATE vectors SET vector = '[1,0,0]' WHERE entry = 'a'",
        "UPDATE vectors SET entry = 'z' WHERE entry = 'a'",
        "UPDATE vectors SET \"group\" = 'z' WHERE entry = 'a'",
        "UPDATE vectors SET checksum = checksum + 1 WHERE entry = 'a'",
    ],
)
def test_a_damaged_vector_is_none(store, alter, statement):
    """Its entry is still found exactly; a check removes the vector, and tells indexes so."""
    put_one(store, entry("a"), vector=vector(1, 0))
    put_one(store, entry("b"), vector=vector(0, 1))
    start = store.sequence()
    alter(statement)
    assert set(store.vectors(["a", "b", "z"])) == {"b"}
    assert list(store.changes(0).ids) == ["b"]
    assert [name for name, _ in store.nearest("group of acme", vector(1, 1), 5)] == ["b"]
    assert set(store.get(["a", "b"]).entries) == {"a", "b"}
    assert len(store.check()) == 1
    assert store.check() == ()
    assert len(store.changes(start).removed) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lineages SET record = '' WHERE child = 'b'",
        "UPDATE lineages SET record = '[[],[]]' WHERE child = 'b'",
        "UPDATE lineages SET record = replace(record, 'ambient', 'AMBIENT') WHERE child = 'b'",
        "DELETE FROM lineages WHERE child = 'b'",
    ],
)
def test_an_entry_whose_lineage_is_damaged_has_no_ancestry(store, alter, statement):
    """It would look valid for want of parents; a check removes it."""
    parent = put_one(store, entry("a"))
    put_one(store, entry("b"), parents=[parent], sources=[source()])
    alter(statement)
    assert store.ancestry("b") is None
    assert any("damaged" in line for line in store.check())
    assert list(store.get(["a", "b"]).entries) == ["a"]


def test_lost_edges_are_restored(store, alter):
    """A recall goes along the edges; a check makes them anew from the lineages."""
    parent = put_one(store, entry("a"), sources=[source()])
    put_one(store, entry("b"), parents=[parent])
    alter("DELETE FROM edges", "DELETE FROM source_edges")
    assert any("3 edges" in line and "restored" in line for line in store.check())
    assert store.check() == ()
    assert len(store.recall(Selector(source="doc-1"), now=NOW)) == 2


def test_lost_edges_do_not_make_an_entry_look_valid(store, alter):
    """Its parent is then missing from the ancestry, which is no proof."""
    parent = put_one(store, entry("a"))
    put_one(store, entry("b"), parents=[parent])
    alter("DELETE FROM edges")
    found = store.ancestry("b")
    assert found is not None
    assert set(found.entries) == {"b"}
    assert [edge.parent for edge in found.entries["b"].lineage.parents] == ["a"]


def test_orphans_are_removed(store, alter):
    """Vectors, labels and edges of nothing are no use to anybody."""
    put_one(store, entry("a"), vector=vector(1, 0))
    alter(
        "DELETE FROM entries",
        "INSERT INTO labels VALUES ('tag', 't', 'nobody', 'acme')",
        "INSERT INTO edges VALUES ('a', 'nobody')",
        "INSERT INTO source_edges VALUES ('a', 'nobody', 'acme')",
    )
    assert len(store.check()) == 4
    assert store.check() == ()


def test_a_check_looks_at_more_than_it_reads_at_once(store, alter):
    """Damage in any portion is found."""
    store.put([put(entry(f"e{number}"), since=0) for number in range(2500)], NOW)
    alter("UPDATE entries SET record = record || '\\x00' WHERE id IN ('e0', 'e1500', 'e2499')")
    assert store.check() == ("3 damaged entries: removed",)
    assert store.check() == ()
    assert sum(store.sizes().values()) == 2497
    assert len(store.find(limit=5000)) == 2497


def test_a_reply_with_another_call_s_number_is_refused():
    """Whatever it holds."""
    session = Session("stemma", None, 1.0)
    opening, number = session.opening(None, patient=False)
    drive = Drive(get(["a"]), opening, number)
    says = drive.start()
    assert says is not None
    assert says[0].values[-1] == number
    with pytest.raises(StoreError, match="another call's"):
        drive.go_on([[("", "", "", "", number - 1)], [(1, 0, 0, 0, *[None] * 6)]])


def test_a_reply_with_another_entry_is_refused():
    """The engine is not shown it."""
    steps = get(["a"])
    next(steps)
    with pytest.raises(StoreError, match="was not asked for"):
        steps.send([[(1, 0, 0, 0, "b", "acme", "answer", "", "", b"")]])


def test_what_was_left_on_a_connection_is_nobody_s_reply(store):
    """A connection with a reply still under way is not used: the call goes by another."""
    put_one(store, entry("a"))
    connection = store._server._threads.idle[-1]
    connection.pgconn.send_query_params(b"SELECT 'somebody else''s'", None)
    assert set(store.get(["a"]).entries) == {"a"}
    assert connection.closed
