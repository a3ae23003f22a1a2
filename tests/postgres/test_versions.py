"""Tables of an older version are brought forward whole, or not at all, whatever is killed."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from stemma.errors import ForeignDatabase, SchemaTooNew, StoreError
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores import postgres_schema
from stemma.stores.postgres import PostgresStore
from stemma.stores.postgres_schema import VERSION, prepare
from stemma.testing.builders import NOW, entry, put_one

FIRST = (Path(__file__).parent / "schema_1.sql").read_text(encoding="utf-8")
COLUMNS = {
    "judgements": "number, entry, tenant, value, verdict, by, confidence, at",
    "sources": 'owner, "index", chunk, content, seen',
    "entries": 'id, tenant, node, model, "index", hop, record, sequence',
    "servings": "number, entry, tenant, tier, similarity, at",
}
"""Those of version 1, of the tables that have more by now."""
CONTENTS = [
    f"SELECT {COLUMNS.get(table, '*')} FROM stemma.{table} ORDER BY 1, 2"
    for table in postgres_schema.TABLES
    if f"CREATE TABLE {table} " in FIRST
]
CATALOG = """SELECT 'column', c.relname, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || ' ' || a.attnotnull
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'stemma'::regnamespace AND a.attnum > 0 UNION ALL
    SELECT 'index', c.relname, pg_get_indexdef(c.oid) FROM pg_class c
    WHERE c.relnamespace = 'stemma'::regnamespace AND c.relkind = 'i' UNION ALL
    SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'stemma'::regnamespace UNION ALL
    SELECT 'policy', polrelid::regclass::text, polname || ' ' || pg_get_expr(polqual, polrelid)
    FROM pg_policy UNION ALL
    SELECT 'table', relname, relowner::regrole || ' ' || relforcerowsecurity FROM pg_class
    WHERE relnamespace = 'stemma'::regnamespace AND relkind = 'r' UNION ALL
    SELECT 'version', '', obj_description('stemma.meta'::regclass, 'pg_class') ORDER BY 1, 2, 3"""

TABLES = """SELECT n.nspname, c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' ORDER BY 1, 2"""


@pytest.fixture
def first(newest, database) -> str:
    """A database with the tables of version 1, filled."""
    newest.execute(*FIRST.split(";\n"), on=database)
    return database


def of(server, database: str) -> tuple[list, list]:
    """The definitions of all that is ours in a database, and all rows."""
    rows = [server.execute(statement, on=database) for statement in CONTENTS]
    return server.execute(CATALOG, on=database), rows


def test_the_first_version_comes_forward_with_all_that_is_in_it(newest, first):
    """Nothing is lost, and the tables are as new ones are."""
    before = of(newest, first)
    store = PostgresStore(newest.url(first, "keeper"))
    brought, rows = of(newest, first)
    assert rows == before[1]
    assert brought != before[0]
    assert set(store.get(["root", "child", "other"]).entries) == {"root", "child", "other"}
    assert store.lineage("child").parents[0].parent == "root"
    assert store.find(Selector(tag="t"))[0].labels == Labels(tags=("t",))
    assert store.check() == ()
    assert put_one(store, entry("later")).sequence == 8
    (first_served,) = store.servings(entry="child")
    assert (first_served.producer, first_served.pool, first_served.confidence) == ("", "", 1)
    (first_judged,) = store.judgements(entry="child")
    assert (first_judged.tenant, first_judged.weight) == ("", 1)
    assert store.shared() == ()
    assert len(store.recall(Selector(source="doc-1"), now=NOW)) == 2
    store.close()
    newest.execute("DROP SCHEMA stemma CASCADE", on=first)
    PostgresStore(newest.url(first, "keeper")).close()
    assert of(newest, first)[0] == brought


def statements(schema: str) -> list[str]:
    """What is said to bring a schema of version 1 forward, as far as the commit."""
    steps = prepare(schema)
    asked = list(next(steps))
    told = [[]] * (len(asked) - 1) + [[("Stemma cache, schema version 1", True, 1, 1, "db")]]
    for _ in range(2):
        says = steps.send(told)
        asked += says
        told = [[] for _ in says]
    return asked


def test_whoever_is_killed_leaves_the_old_version(newest, first):
    """After each statement but the last; then the next one brings it forward all the same."""
    said = statements("stemma")
    assert [say.text for say in said[-1:]] == ["COMMIT"]
    assert len(said) > 4
    old = of(newest, first)
    for place in range(1, len(said) + 1):
        connection = psycopg.connect(newest.url(first, "keeper"), autocommit=True)
        connection.execute("BEGIN")
        for say in said[:place]:
            connection.execute(say.text, say.values)
        newest.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")
        connection.close()
        left = of(newest, first)
        assert left[1] == old[1]
        assert (left == old) == (place < len(said))


@pytest.mark.parametrize(("fixture", "sequence"), [("database", 0), ("first", 7)])
def test_many_may_open_it_at_once(newest, fixture, sequence, request):
    """One makes the tables, or brings them forward; the others find that done."""
    url = newest.url(request.getfixturevalue(fixture), "keeper")
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(PostgresStore, [url] * 6))
    assert [store.sequence() for store in stores] == [sequence] * 6
    for store in stores:
        store.close()


def test_a_newer_version_is_left_as_it_is(newest, first):
    """Its definitions, and every row."""
    newer = f"COMMENT ON TABLE stemma.meta IS 'Stemma cache, schema version {VERSION + 1}'"
    newest.execute(newer, on=first)
    before = of(newest, first)
    with pytest.raises(SchemaTooNew, match=f"version {VERSION + 1}, and this Stemma knows"):
        PostgresStore(newest.url(first, "keeper"))
    assert of(newest, first) == before


def test_who_does_not_own_the_tables_is_told_who_must(newest, first):
    """And nothing is changed."""
    newest.execute("DROP ROLE IF EXISTS app", "CREATE ROLE app LOGIN")
    newest.execute("GRANT USAGE ON SCHEMA stemma TO app", on=first)
    before = of(newest, first)
    with pytest.raises(StoreError, match=f"needs {VERSION}; open it once without tenant"):
        PostgresStore(newest.url(first, "app"), tenant="acme")
    assert of(newest, first) == before
    newest.execute("DROP OWNED BY app", on=first)


def test_numbers_that_contradict_one_another_are_refused(newest, database, store):
    """Since version 2: an epoch beyond the sequence would make proofs of nothing."""
    put_one(store, entry())
    for numbers in ("epoch = sequence + 1", "sequence = -1", "forgotten = -1"):
        with pytest.raises(psycopg.errors.CheckViolation):
            newest.execute(f"UPDATE stemma.meta SET {numbers}", on=database)
    assert store.sequence() == 1


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE stemma.orders (id int)", "CREATE TABLE stemma.meta (id int)"]
)
def test_a_schema_that_is_not_ours_is_left_as_it_is(newest, database, statement):
    """We take another one."""
    newest.execute("CREATE SCHEMA stemma AUTHORIZATION keeper", statement, on=database)
    before = newest.execute(TABLES, on=database)
    with pytest.raises(ForeignDatabase, match="left as it is"):
        PostgresStore(newest.url(database, "keeper"))
    assert newest.execute(TABLES, on=database) == before
    with closing(PostgresStore(newest.url(database, "keeper"), schema="another")) as store:
        assert store.sequence() == 0


def test_an_empty_schema_made_for_us_is_taken(newest, database):
    """As an operator does who lets nobody make schemas."""
    newest.execute("CREATE SCHEMA stemma AUTHORIZATION keeper", on=database)
    with closing(PostgresStore(newest.url(database, "keeper"))) as store:
        assert put_one(store, entry()).sequence == 1
