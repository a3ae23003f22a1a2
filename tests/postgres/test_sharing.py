"""What is held and shared, where PostgreSQL does it in ways of its own."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from stemma.entry import Offer
from stemma.outcome import Held, Quarantine
from stemma.request import Key
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores import postgres_pages
from stemma.stores.postgres import PostgresStore
from stemma.stores.protocol import Judgement, Serving
from stemma.testing.builders import NOW, entry, put, put_one, source


def quarantine(id: str, *entries: str) -> Quarantine:
    held = [
        Held(entry=one, tenant="acme", node="answer", hop=1, probability=0.5) for one in entries
    ]
    return Quarantine(id=id, seeds={"a": 0.5}, threshold=0.3, by="t", at=NOW, entries=tuple(held))


def test_what_two_hold_is_held_until_both_let_go(store):
    """The first is named as long as it holds; letting go in either order is the same."""
    put_one(store, entry("a"))
    for first, second in (("q", "r"), ("s", "u")):
        store.hold(quarantine(first, "a"))
        store.hold(quarantine(second, "a"))
        assert store.get(["a"]).entries["a"].held == first
        store.release(first, now=NOW)
        assert store.get(["a"]).entries["a"].held == second
        store.release(second, now=NOW)
        assert store.get(["a"]).entries["a"].held == ""


def test_a_parent_held_while_the_put_was_under_way_refuses_it(newest, database, store):
    """Whatever the order of the commits: nothing is stored that is built on what was held before.

    Many puts and a quarantine at once, by stores of several connections: a put that was stored
    has a lower number than the quarantine, or it is refused.
    """
    parent = put_one(store, entry("a"))
    since = store.sequence()
    with ThreadPoolExecutor(4) as pool:
        puts = [
            pool.submit(store.put, [put(entry(f"c{n}"), since=since, parents=[parent])], NOW)
            for n in range(20)
        ]
        held = pool.submit(store.hold, quarantine("q", "a"))
        more = [
            pool.submit(store.put, [put(entry(f"d{n}"), since=since, parents=[parent])], NOW)
            for n in range(20)
        ]
    receipt = held.result()
    outcomes = [stored for one in (*puts, *more) for stored in one.result()]
    assert {one.refused for one in outcomes if one.entry is None} == {"parent_gone"}
    assert all(one.entry.sequence < receipt.sequence for one in outcomes if one.entry is not None)


def test_what_ends_a_hold_ends_it_for_the_rest_of_the_batch(store):
    """The same value from another lineage is free, and may be built on at once."""
    put_one(store, entry("a"))
    store.hold(quarantine("q", "a"))
    since = store.sequence()
    again = put(entry("a"), since=since, sources=[source()])
    first, second = store.put([again, put(entry("b"), since=since, parents=[again.entry])], NOW)
    assert first.entry.held == ""
    assert second.entry is not None


def test_the_rules_are_told_what_was_said(store, monkeypatch):
    """Of what is put, and of what is judged: all of it, the judgement itself included, in order."""
    told = []
    for name, rule in {"admit": postgres_pages.admit, "judge": postgres_pages.judge}.items():

        def listening(*given, rule=rule):
            told.append(list(given[-1].said("a\x00")))
            return rule(*given)

        monkeypatch.setattr(postgres_pages, name, listening)
    said = [
        Judgement(
            entry="a\x00",
            value="one",
            verdict=verdict,
            by="t\x00",
            confidence=0.5,
            at=NOW,
            question="q\x00",
            tenant="x\x00",
            weight=0.25,
        )
        for verdict in ("supported", "wrong_hit")
    ]
    put_one(store, entry("a\x00"))
    for one in said:
        store.judge(one)
    assert put_one(store, entry("a\x00")).judged.barred == ("q\x00",)
    assert told == [[], said[:1], said, said]


def test_an_offer_is_no_tag(store):
    """Neither is found by the other's name."""
    offer = Offer(pool="p", place=Key("partition", "group", "t"))
    put_one(store, entry("offered", offer=offer))
    put_one(store, entry("tagged", labels=Labels(tags=("t",))))
    assert [one.id for one in store.offered("t")] == ["offered"]
    assert [one.id for one in store.find(Selector(tag="t"))] == ["tagged"]


def test_a_document_read_in_pieces_is_read_once(store):
    """An entry counts once, however many of its chunks it was built from."""
    for tenant in ("acme", "other"):
        pieces = [source("d", chunk, owner="public") for chunk in ("c1", "c2")]
        put_one(store, entry(tenant, tenant=tenant), sources=pieces)
    assert [one.entries for one in store.shared()] == [1, 1]


def test_weights_too_small_for_the_server_count_as_nothing(store):
    """It refuses to multiply such numbers; also where they have faded for ages."""
    serving = Serving(entry="a", tenant="y", tier="exact", similarity=1e-200, at=NOW)
    old = serving._replace(similarity=1.0, at=-1e12)
    store.journal([serving._replace(confidence=1e-200), old], [])
    (flow,) = store.flows(now=NOW, half_life=1e-3)
    assert (flow.uses, flow.weight) == (2, 1.0)
    assert flow.recent == pytest.approx(0, abs=1e-100)


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        "5",
        '{"a": 1}',
        "[[], 5]",
        "[[], [5, null, {}]]",
        '[[], [["a"]]]',
        '["\\u0000"]',
    ],
)
def test_a_lineage_that_is_damaged_names_no_document(newest, database, store, record):
    """The others are counted all the same."""
    for tenant in ("acme", "other", "third"):
        put_one(store, entry(tenant, tenant=tenant), sources=[source(owner="public")])
    newest.execute(
        f"UPDATE stemma.lineages SET record = '{record}' WHERE child = 'third'", on=database
    )
    assert [(one.document, one.tenant) for one in store.shared()] == [
        ("doc-1", "acme"),
        ("doc-1", "other"),
    ]


def test_a_damaged_receipt_is_none(newest, database, store):
    """The others are given, and what either holds stays held."""
    put_one(store, entry("a"))
    put_one(store, entry("b"))
    store.hold(quarantine("q", "a"))
    kept = store.hold(quarantine("r", "b"))
    newest.execute("UPDATE stemma.quarantines SET seeds = '{' WHERE id = 'q'", on=database)
    assert store.quarantines() == (kept,)
    assert [one.held for one in store.find()] == ["r", "q"]


def test_a_check_removes_what_no_receipt_is_of(newest, database, store):
    """It says so once."""
    put_one(store, entry("a"))
    store.hold(quarantine("q", "a"))
    newest.execute("DELETE FROM stemma.quarantines", on=database)
    assert store.check() == ("1 holds of no quarantine: removed",)
    assert store.check() == ()


def test_a_role_of_an_application_needs_no_new_right_to_read_and_write(newest, database, store):
    """What holds an entry stands in its row: a role that was granted the older tables goes on."""
    newest.execute("DROP ROLE IF EXISTS app", "CREATE ROLE app LOGIN")
    newest.execute(
        "GRANT USAGE ON SCHEMA stemma TO app",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stemma TO app",
        "REVOKE ALL ON stemma.quarantined, stemma.quarantines FROM app",
        on=database,
    )
    put_one(store, entry("a"))
    store.hold(quarantine("q", "a"))
    confined = PostgresStore(newest.url(database, "app"), tenant="acme")
    assert confined.get(["a"]).entries["a"].held == "q"
    assert put_one(confined, entry("a", "two")).held == ""
    assert store.get(["a"]).entries["a"].held == ""
    assert confined.remove(["a"]) == 1
    confined.close()
    newest.execute("DROP OWNED BY app", on=database)
