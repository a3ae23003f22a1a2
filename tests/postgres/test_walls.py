"""Rows are walled off by tenant in the database itself, whatever its callers forget."""

import psycopg
import pytest

from stemma.entry import Offer
from stemma.errors import StoreError
from stemma.outcome import Held, Quarantine
from stemma.request import Key
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.postgres import PostgresStore
from stemma.stores.postgres_schema import TABLES
from stemma.stores.protocol import Count, Judgement, Serving
from stemma.stores.text import escape
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source, vector
from stemma.testing.store_lessons import lesson

WITH_TENANTS = [
    "entries",
    "vectors",
    "lineages",
    "source_edges",
    "labels",
    "recalled",
    "judgements",
    "servings",
    "counters",
    "lessons",
    "quarantined",
]

# Every table has rows of two tenants, `acme` and `other`.
TENANTS = ("acme", "other")


def fill(store: PostgresStore) -> None:
    for tenant in TENANTS:
        fields = {"tenant": tenant, "labels": Labels(tags=("t",))}
        offer = Offer(pool="p", place=Key("partition", "group", "place"))
        root = put_one(store, entry(f"{tenant} root", offer=offer, **fields), sources=[source()])
        put_one(store, entry(f"{tenant} a", **fields), parents=[root], vector=vector(1, 0))
        put_one(store, entry(f"{tenant} gone", **fields), vector=vector(0, 1))
        store.recall(Selector(entry=f"{tenant} gone"), now=NOW)
        judgement = Judgement(
            entry=f"{tenant} a", value="one", verdict="supported", by="t", confidence=1, at=NOW
        )
        store.judge(judgement)
        serving = Serving(
            entry=f"{tenant} a",
            tenant=tenant,
            tier="exact",
            similarity=1,
            at=NOW,
            producer="other",
        )
        count = Count(tenant=tenant, node="answer", outcome="hit", lookups=1)
        store.journal([serving], [count])
        store.learn([lesson(f"{tenant} a", tenant)])
    held = [
        Held(entry=f"{tenant} root", tenant=tenant, node="answer", hop=1, probability=0.5)
        for tenant in TENANTS
    ]
    store.hold(quarantine("q", *held))


def quarantine(id: str, *held: Held) -> Quarantine:
    return Quarantine(id=id, seeds={"other root": 0.5}, threshold=0.3, by="t", at=NOW, entries=held)


@pytest.fixture
def filled(newest, database, store):
    """The database, filled, with an application's role that may read and write our tables."""
    fill(store)
    newest.execute("DROP ROLE IF EXISTS app", "CREATE ROLE app LOGIN")
    newest.execute(
        "GRANT USAGE ON SCHEMA stemma TO app",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stemma TO app",
        on=database,
    )
    yield database
    newest.execute("DROP OWNED BY app", on=database)


def seen(newest, database: str, role: str, **settings: str) -> dict[str, int]:
    """How many rows of each table a role sees that has said these settings."""
    with psycopg.connect(newest.url(database, role)) as connection:
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, true)", (f"stemma.{name}", value))
        rows = {}
        for table in TABLES:
            (rows[table],) = connection.execute(f"SELECT count(*) FROM stemma.{table}").fetchone()
        return rows


def test_every_table_has_forced_row_level_security(newest, database, store):
    """All that lie in the schema, also those made later and forgotten in the list."""
    rows = newest.execute(
        """SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class
        WHERE relnamespace = 'stemma'::regnamespace AND relkind IN ('r', 'p')""",
        on=database,
    )
    assert dict(rows) == dict.fromkeys(TABLES, True)


def test_the_master_sees_that_there_is_something_to_hide(newest, filled):
    """Every table has rows, those with tenants of both."""
    rows = seen(newest, filled, "postgres")
    assert all(rows.values())
    for table in WITH_TENANTS:
        found = newest.execute(f"SELECT DISTINCT tenant FROM stemma.{table}", on=filled)
        assert {row[0] for row in found} == set(TENANTS), table


@pytest.mark.parametrize("role", ["app", "keeper"])
def test_who_forgets_to_say_the_tenant_sees_nothing(newest, filled, role):
    """Not one row of any table; the owner neither."""
    assert seen(newest, filled, role) == dict.fromkeys(TABLES, 0)
    assert seen(newest, filled, role, tenant="") == dict.fromkeys(TABLES, 0)


def test_a_transaction_leaves_nothing_said_behind(newest, filled):
    """The next one on the same connection has to say it again."""
    with psycopg.connect(newest.url(filled, "app"), autocommit=True) as connection:
        with connection.transaction():
            connection.execute("SELECT set_config('stemma.tenant', 'acme', true)")
            found = connection.execute("SELECT id FROM stemma.entries").fetchall()
            assert len(found) == 2
        assert connection.execute("SELECT id FROM stemma.entries").fetchall() == []


@pytest.mark.parametrize("role", ["app", "keeper"])
def test_who_says_a_tenant_sees_that_one_s(newest, filled, role):
    """Half of what has a tenant, and nothing for a tenant that is not."""
    everything = seen(newest, filled, "postgres")
    own = seen(newest, filled, role, tenant="acme")
    for table in WITH_TENANTS:
        assert own[table] * 2 == everything[table], table
    stranger = seen(newest, filled, role, tenant="acm%")
    assert {stranger[table] for table in WITH_TENANTS} == {0}


def test_only_the_owner_can_look_over_the_wall(newest, filled):
    """By saying so. An application that says so sees nothing."""
    assert seen(newest, filled, "keeper", reach="all") == seen(newest, filled, "postgres")
    assert seen(newest, filled, "app", reach="all") == dict.fromkeys(TABLES, 0)


def test_an_application_cannot_write_over_the_wall(newest, filled):
    """Neither put a row of another tenant there, nor give one of its own away."""
    for statement in (
        "INSERT INTO stemma.labels VALUES ('tag', 'x', 'acme a', 'other')",
        "UPDATE stemma.entries SET tenant = 'other'",
    ):
        with psycopg.connect(newest.url(filled, "app")) as connection:
            connection.execute("SELECT set_config('stemma.tenant', 'acme', true)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
            connection.rollback()


@pytest.fixture
def confined(newest, filled):
    store = PostgresStore(newest.url(filled, "app"), tenant="acme")
    yield store
    store.close()


def test_a_confined_store_sees_its_tenant(store, confined):
    """And nothing of another's, by id, selector, vector, lineage or journal."""
    assert set(confined.get(["acme a", "other a"]).entries) == {"acme a"}
    assert {one.tenant for one in confined.find()} == {"acme"}
    assert confined.find(Selector(tenant="other")) == ()
    assert set(confined.vectors(["acme a", "other a"])) == {"acme a"}
    assert list(confined.changes(0).ids) == ["acme a"]
    assert confined.lineage("other a") is None
    assert confined.ancestry("other a") is None
    assert confined.children("other root") == ()
    assert {one.tenant for one in confined.servings()} == {"acme"}
    assert {one.entry for one in confined.judgements()} == {"acme a"}
    assert {one.tenant for one in confined.counts()} == {"acme"}
    assert len(confined.lessons("acme", "answer")) == 1
    assert confined.lessons("other", "answer") == ()
    assert dict(confined.sizes()) == {("acme", "answer"): 2}
    assert confined.nearest("group of other", vector(1, 0), 5) == ()
    assert confined.nearest("group of acme", vector(1, 0), 5) == (("acme a", 1.0),)


def test_a_confined_store_sees_what_is_held_and_shared_of_its_tenant(store, confined):
    """A receipt names its entries alone; one that holds none of them is not there."""
    nothing = store.hold(quarantine("of others"))
    assert [one.id for one in store.quarantines()] == [nothing.id, "q"]
    assert confined.get(["acme root"]).entries["acme root"].held == "q"
    (receipt,) = confined.quarantines()
    assert [one.entry for one in receipt.entries] == ["acme root"]
    assert [one.id for one in confined.offered("place")] == ["acme root"]
    assert confined.descent(["acme root", "other root"]) == (("acme root", "acme a"),)
    assert [(one.producer, one.consumer) for one in confined.flows(now=NOW)] == [("other", "acme")]
    assert {one.tenant for one in confined.shared()} <= {"acme"}


def test_a_confined_store_ends_holds_of_its_tenant(store, confined):
    """By what ends them everywhere; another's stay."""
    right = Judgement(
        entry="acme root", value="one", verdict="supported", by="t", confidence=1, at=NOW
    )
    assert confined.judge(right).held == ""
    found = store.get(["acme root", "other root"]).entries
    assert [found["acme root"].held, found["other root"].held] == ["", "q"]


def test_a_confined_store_writes_for_its_tenant(store, confined):
    """As any store does: puts with parents and sources, verdicts, the journal, removals."""
    parent = confined.get(["acme a"]).entries["acme a"]
    labels = Labels(tags=("new",))
    stored = put_one(
        confined,
        entry("new", labels=labels),
        parents=[parent],
        sources=[source()],
        vector=vector(1, 1),
    )
    assert store.get(["new"]).entries["new"] == stored
    assert store.children("acme a") == ("new",)
    judgement = Judgement(
        entry="new", value="one", verdict="hallucinated", by="t", confidence=1, at=NOW
    )
    assert confined.judge(judgement) is not None
    confined.journal(
        [Serving(entry="new", tenant="acme", tier="exact", similarity=1, at=NOW)],
        [Count(tenant="acme", node="answer", outcome="hit", lookups=5)],
    )
    assert [one.lookups for one in confined.counts()] == [6]
    confined.learn([lesson("new")])
    assert len(confined.lessons("acme", "answer")) == 2
    assert confined.remove(["new", "other a"]) == 1
    assert set(store.get(["new", "other a"]).entries) == {"other a"}
    assert store.check() == ()


def test_a_confined_store_writes_for_nobody_else(store, confined):
    """A put, a serving or a verdict in another's name is refused whole."""
    before = store.find()
    for use in (
        lambda: confined.put([put(entry("mine", tenant="other"), since=confined.sequence())], NOW),
        lambda: confined.put([put(entry("other a"), since=confined.sequence())], NOW),
        lambda: confined.journal([], [Count(tenant="other", node="x", outcome="hit", lookups=1)]),
        lambda: confined.learn([lesson("other a", "other")]),
    ):
        with pytest.raises(StoreError, match="may not do this"):
            use()
    judgement = Judgement(
        entry="other a", value="one", verdict="hallucinated", by="t", confidence=1, at=NOW
    )
    assert confined.judge(judgement) is None
    assert store.find() == before


def test_what_crosses_tenants_is_not_for_a_confined_store(confined):
    """A recall that did not see what was built by others would be half of one."""
    for use in (
        lambda: confined.recall(Selector(tenant="acme"), now=NOW),
        lambda: confined.recall(Selector(tenant="acme"), now=NOW, dry_run=True),
        lambda: confined.hold(quarantine("mine")),
        lambda: confined.release("q", now=NOW),
        confined.check,
    ):
        with pytest.raises(StoreError, match="crosses tenants"):
            use()


def test_a_stranger_who_says_no_tenant_is_told_what_to_do(newest, filled):
    """A role that does not own the tables can serve one tenant, not all."""
    store = PostgresStore(newest.url(filled, "app"))
    judgement = Judgement(
        entry="acme a", value="one", verdict="supported", by="t", confidence=1, at=NOW
    )
    for use in (
        store.sequence,
        store.check,
        lambda: store.get(["acme a"]),
        lambda: store.ancestry("acme a"),
        lambda: store.changes(0),
        lambda: store.put([put(entry(), since=0)], NOW),
        lambda: store.remove(["acme a"]),
        lambda: store.judge(judgement),
        lambda: store.recall(Selector(tenant="acme"), now=NOW),
        lambda: store.recall(Selector(tenant="acme"), now=NOW, dry_run=True),
    ):
        with pytest.raises(StoreError, match="open the store with tenant"):
            use()
    assert store.find() == ()
    store.close()


def test_a_recall_by_the_owner_refuses_the_puts_of_confined_stores(store, confined):
    """The journal of recalls is read by all."""
    since = confined.sequence()
    store.recall(Selector(tenant="acme"), now=NOW)
    (stored,) = confined.put([put(entry("late"), since=since)], NOW)
    assert stored.refused == "recalled"


def test_hostile_tenants_are_walled_off_from_each_other(newest, filled, store):
    """Each sees its own entry, whatever it is called."""
    for number, text in enumerate(HOSTILE):
        put_one(store, entry(f"e{number}", tenant=text))
    with psycopg.connect(newest.url(filled, "app")) as connection:
        for number, text in enumerate(HOSTILE):
            connection.execute("SELECT set_config('stemma.tenant', %s, true)", (escape(text),))
            rows = connection.execute("SELECT id FROM stemma.entries WHERE id LIKE 'e%'").fetchall()
            assert rows == [(f"e{number}",)]
    for number, text in enumerate(HOSTILE[:16]):
        confined = PostgresStore(newest.url(filled, "app"), tenant=text)
        assert confined.get([f"e{number}"]).entries[f"e{number}"].tenant == text
        assert len([one for one in confined.find() if one.id.startswith("e")]) == 1
        confined.close()
