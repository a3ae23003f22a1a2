"""The tables of the PostgreSQL store, how a schema is told to be ours, and the wall of rows.

Texts are as `stemma.stores.text` writes them, in byte order; entries and vectors' checksums are as
`stemma.stores.rows` packs them. What is pgvector's is named here alone, in the domains and the
function `distance`, which gives no distance between vectors of different lengths.

Every table has row-level security, forced on its owner too. Whoever has not said which tenant he
is (`stemma.tenant`) sees no row of any table; who has, sees that tenant's. Only the role that made
the tables can lift this, and only by saying so (`stemma.reach = 'all'`). The store says one of the
two in each of its transactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stemma.errors import ForeignDatabase, SchemaTooNew, StoreError
from stemma.stores.postgres_steps import COMMIT, Say, Steps

__all__ = ["TABLES", "VERSION", "prepare"]

OLDEST_VECTOR = (0, 6)
HALVES = (0, 7)
"""The version of pgvector that brought `halfvec`."""

_MARK = re.compile(r"Stemma cache, schema version ([0-9]{1,9})")

_TABLES = """
CREATE DOMAIN embedding AS {vector};
CREATE DOMAIN question AS {schema}.vector;
CREATE FUNCTION distance(kept embedding, asked question) RETURNS double precision
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE
    WHEN {schema}.vector_dims(kept) = {schema}.vector_dims(asked)
    THEN kept::{schema}.vector OPERATOR({schema}.<=>) asked END';
CREATE TABLE meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    sequence bigint NOT NULL, epoch bigint NOT NULL,
    recalled bigint NOT NULL, forgotten bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO meta VALUES (true, 0, 0, 0, 0);

CREATE TABLE entries (
    id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL, node text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL, "index" text COLLATE "C" NOT NULL,
    hop bigint NOT NULL, record bytea NOT NULL, sequence bigint NOT NULL
);
CREATE INDEX ON entries (sequence);
CREATE INDEX ON entries (tenant, node);
CREATE INDEX ON entries (model) WHERE model <> '';
CREATE INDEX ON entries ("index") WHERE "index" <> '';

CREATE TABLE vectors (
    entry text COLLATE "C" PRIMARY KEY, "group" text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL, sequence bigint NOT NULL,
    vector embedding NOT NULL, checksum bigint NOT NULL
);
CREATE INDEX ON vectors ("group");
CREATE INDEX ON vectors (sequence);

CREATE TABLE removed (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sequence bigint NOT NULL, "group" text COLLATE "C" NOT NULL, entry text COLLATE "C" NOT NULL
);
CREATE INDEX ON removed (sequence);

CREATE TABLE lineages (
    child text COLLATE "C" PRIMARY KEY, tenant text COLLATE "C" NOT NULL,
    record text COLLATE "C" NOT NULL
);
CREATE TABLE edges (
    parent text COLLATE "C", child text COLLATE "C", PRIMARY KEY (parent, child)
);
CREATE INDEX ON edges (child);
CREATE TABLE source_edges (
    element text COLLATE "C", child text COLLATE "C", tenant text COLLATE "C" NOT NULL,
    PRIMARY KEY (element, child)
);
CREATE INDEX ON source_edges (child);
CREATE TABLE sources (
    owner text COLLATE "C", "index" text COLLATE "C", chunk text COLLATE "C",
    content text COLLATE "C" NOT NULL, seen bigint NOT NULL, PRIMARY KEY (owner, "index", chunk)
);
CREATE TABLE labels (
    name text COLLATE "C", value text COLLATE "C", entry text COLLATE "C",
    tenant text COLLATE "C" NOT NULL, PRIMARY KEY (entry, name, value)
);
CREATE INDEX ON labels USING hash (value);

CREATE TABLE recalls (
    sequence bigint PRIMARY KEY, at double precision NOT NULL,
    source text COLLATE "C", entry text COLLATE "C", tenant text COLLATE "C", tag text COLLATE "C",
    writer text COLLATE "C", subject text COLLATE "C", model text COLLATE "C",
    "index" text COLLATE "C", node text COLLATE "C"
);
CREATE TABLE recalled (
    entry text COLLATE "C", recall bigint, tenant text COLLATE "C" NOT NULL,
    node text COLLATE "C" NOT NULL, hop bigint NOT NULL, position bigint NOT NULL,
    PRIMARY KEY (entry, recall)
);
CREATE INDEX ON recalled (recall, position);
CREATE TABLE judgements (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry text COLLATE "C" NOT NULL, tenant text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL, verdict text COLLATE "C" NOT NULL,
    by text COLLATE "C" NOT NULL, confidence double precision NOT NULL, at double precision NOT NULL
);
CREATE INDEX ON judgements (entry, number);
CREATE TABLE servings (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry text COLLATE "C" NOT NULL, tenant text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL, similarity double precision NOT NULL,
    at double precision NOT NULL
);
CREATE INDEX ON servings (entry, number);
CREATE TABLE counters (
    tenant text COLLATE "C", node text COLLATE "C", outcome text COLLATE "C",
    lookups bigint NOT NULL, seconds double precision NOT NULL, tokens bigint NOT NULL,
    PRIMARY KEY (tenant, node, outcome)
);
"""

# A setting that a transaction has made is empty, not absent, when it is over.
_TENANT = "(SELECT nullif(current_setting('stemma.tenant', true), ''))"
_OWN = f"tenant = {_TENANT}"
_NAMED = f"{_TENANT} IS NOT NULL"
_OWNER = f"(owner NOT LIKE 'tenant:%' AND {_NAMED}) OR owner = 'tenant:' || {_TENANT}"

TABLES = {
    "meta": _NAMED,
    "entries": _OWN,
    "vectors": _OWN,
    "removed": _NAMED,
    "lineages": _OWN,
    "edges": _NAMED,
    "source_edges": _OWN,
    "sources": _OWNER,
    "labels": _OWN,
    "recalls": _NAMED,
    "recalled": _OWN,
    "judgements": _OWN,
    "servings": _OWN,
    "counters": _OWN,
    "lessons": _OWN,
    "quarantined": _OWN,
    "quarantines": "EXISTS (SELECT FROM quarantined q WHERE q.quarantine = quarantines.id)",
}
"""Our tables, and what a session that named its tenant sees of each: ids and numbers of all, and
texts of its own."""


def _wall(table: str) -> str:
    """The statements that hide a table's rows from whom they do not concern."""
    return f"""ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
    ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
    CREATE POLICY own ON {table} USING ({TABLES[table]});
    CREATE POLICY every ON {table} TO CURRENT_USER
        USING ((SELECT current_setting('stemma.reach', true)) = 'all')"""


_STEPS = (
    # To version 2: numbers that contradict one another are refused, whoever writes them.
    """ALTER TABLE meta ADD CONSTRAINT numbers_agree CHECK (
        0 <= epoch AND 0 <= recalled AND 0 <= forgotten
        AND greatest(epoch, recalled, forgotten) <= sequence)""",
    # To version 3: which question a judgement is about, how often a source was looked at and found
    # changed, and what the policies have learnt.
    """ALTER TABLE judgements ADD COLUMN question text COLLATE "C" NOT NULL DEFAULT '';
    ALTER TABLE sources
        ADD first double precision NOT NULL DEFAULT 0, ADD last double precision NOT NULL DEFAULT 0,
        ADD checks bigint NOT NULL DEFAULT 0, ADD changes bigint NOT NULL DEFAULT 0;
    CREATE TABLE lessons (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant text COLLATE "C" NOT NULL, node text COLLATE "C" NOT NULL,
        state text COLLATE "C" NOT NULL, writer text COLLATE "C" NOT NULL,
        candidate text COLLATE "C" NOT NULL, known text COLLATE "C" NOT NULL,
        weight double precision NOT NULL, correct boolean NOT NULL, by text COLLATE "C" NOT NULL,
        requests bigint NOT NULL, at double precision NOT NULL
    );
    CREATE INDEX ON lessons (tenant, node, number);
    """
    + _wall("lessons"),
    # To version 4: who made what was served, in whose name a judgement was said, which quarantines
    # hold an entry (the first comes first), and their receipts.
    """ALTER TABLE servings
        ADD producer text COLLATE "C" NOT NULL DEFAULT '',
        ADD pool text COLLATE "C" NOT NULL DEFAULT '',
        ADD node text COLLATE "C" NOT NULL DEFAULT '',
        ADD confidence double precision NOT NULL DEFAULT 1;
    ALTER TABLE judgements
        ADD reporter text COLLATE "C" NOT NULL DEFAULT '',
        ADD weight double precision NOT NULL DEFAULT 1;
    ALTER TABLE entries ADD held text[] COLLATE "C";
    CREATE TABLE quarantined (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        quarantine text COLLATE "C" NOT NULL, entry text COLLATE "C" NOT NULL,
        tenant text COLLATE "C" NOT NULL, pool text COLLATE "C", node text COLLATE "C" NOT NULL,
        hop bigint NOT NULL, probability double precision NOT NULL, doubtful boolean NOT NULL
    );
    CREATE INDEX ON quarantined (quarantine, number);
    CREATE TABLE quarantines (
        id text COLLATE "C" PRIMARY KEY, sequence bigint NOT NULL, at double precision NOT NULL,
        by text COLLATE "C" NOT NULL, reason text COLLATE "C" NOT NULL,
        threshold double precision NOT NULL, seeds text COLLATE "C" NOT NULL,
        lifted double precision
    );
    CREATE INDEX ON quarantines (sequence);
    """
    + _wall("quarantined")
    + ";"
    + _wall("quarantines"),
)
"""What leads from each version of the tables to the next: statements, with `;` between them. New
tables are those of version 1, with all steps taken."""

VERSION = 1 + len(_STEPS)
"""The version of our tables, kept in the comment on `meta`."""

_PRESENT = """WITH meta AS (SELECT c.* FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = 'meta')
    SELECT (SELECT obj_description(oid, 'pg_class') FROM meta),
    (SELECT pg_has_role(relowner, 'USAGE') FROM meta),
    (SELECT count(*) FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s),
    (SELECT count(*) FROM pg_namespace WHERE nspname = %s),
    current_database()"""

_EXTENSION = """SELECT e.extversion, n.nspname,
    (SELECT count(*) FROM pg_available_extensions WHERE name = 'vector')
    FROM (SELECT 1) one LEFT JOIN pg_extension e ON e.extname = 'vector'
    LEFT JOIN pg_namespace n ON n.oid = e.extnamespace"""


def prepare(schema: str) -> Steps[None]:
    """Make the tables if the schema is empty or missing; bring those of an older version forward.

    All of it is one transaction, under a lock for which processes that do this at the same time
    queue: whoever is killed at it leaves things as they were.

    Raises:
        ForeignDatabase: The schema holds something else.
        SchemaTooNew: A newer Stemma made it.
        StoreError: pgvector is missing, or too old; or the tables are of an older version, and
            this role does not own them.
    """
    lock = Say("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"stemma {schema}",))
    *_, ((comment, own, relations, exists, database),) = yield [lock, Say(_PRESENT, (schema,) * 3)]
    where = f"the schema {schema} of {database}"
    version = _version(where, comment, relations)
    if version == 0:
        place, kind = yield from _extension(database)
        yield [*_creation(schema, place, kind, exists=bool(exists)), *_forward(schema, 1)]
    elif version < VERSION:
        if not own:
            raise StoreError(
                f"{where} has the schema version {version}, and this Stemma needs {VERSION}; open "
                "it once without tenant, by the role that owns the tables"
            )
        yield list(_forward(schema, version))
    yield [COMMIT]


def _version(where: str, comment: str | None, relations: int) -> int:
    """The version of the tables; 0 if there are none at all."""
    if not relations:
        return 0
    marked = _MARK.fullmatch(comment) if comment else None
    if marked is None:
        raise ForeignDatabase(
            f"{where} holds tables of another application; it was left as it is: name another "
            "schema"
        )
    version = int(marked[1])
    if version > VERSION:
        raise SchemaTooNew(
            f"{where} has the schema version {version}, and this Stemma knows {VERSION}; it was "
            "left as it is: upgrade stemma-cache, or name another schema"
        )
    return version


def _extension(database: str) -> Steps[tuple[str, str]]:
    """Where pgvector lies, and its type for us. It is installed into the database if need be."""
    (((version, schema, available),),) = yield [Say(_EXTENSION)]
    if version is None:
        if not available:
            raise StoreError(
                f"pgvector is not installed on the server of {database}; install its package "
                "(such as postgresql-18-pgvector) there"
            )
        *_, ((version, schema, _),) = yield [
            Say("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"),
            Say(_EXTENSION),
        ]
    numbers = tuple(int(part) for part in re.findall("[0-9]+", version)[:2])
    if numbers < OLDEST_VECTOR:
        raise StoreError(
            f"{database} has pgvector {version}, and at least 0.6 is needed; upgrade it on the "
            "server, then: ALTER EXTENSION vector UPDATE"
        )
    return schema, "halfvec" if numbers >= HALVES else "vector"


def _creation(schema: str, place: str, kind: str, *, exists: bool) -> Iterator[Say]:
    if not exists:
        yield Say(f'CREATE SCHEMA "{schema}"')
    yield _inside(schema)
    tables = _TABLES.replace("{schema}", f'"{place}"').replace("{vector}", f'"{place}".{kind}')
    yield from _each(tables)
    for name in TABLES:
        if f"CREATE TABLE {name} " in _TABLES:
            yield from _each(_wall(name))


def _forward(schema: str, version: int) -> Iterator[Say]:
    """The statements that bring tables of a version to the present one."""
    yield _inside(schema)
    for step in _STEPS[version - 1 :]:
        yield from _each(step)
    yield Say(f"COMMENT ON TABLE meta IS 'Stemma cache, schema version {VERSION}'")


def _inside(schema: str) -> Say:
    return Say(f"""SET LOCAL search_path = "{schema}", pg_catalog""")


def _each(statements: str) -> Iterator[Say]:
    return map(Say, filter(str.strip, statements.split(";")))
