"""The suite bites: stores broken on purpose fail it, each where it is broken."""

import inspect
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stemma.outcome import Recall, Stored
from stemma.selector import Selector
from stemma.stores import rows
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Changes, Fetched
from stemma.stores.sqlite import SqliteStore
from stemma.testing.stores import PersistentStoreConformance, StoreConformance


class ForgetsGroups(MemoryStore):
    """Tells indexes of one group for all."""

    def changes(self, after: int) -> Changes:
        found = super().changes(after)
        return replace(found, groups=["all"] * len(found.ids))


class IgnoresTheTenant(MemoryStore):
    """Finds every tenant's entries."""

    def find(self, selector=None, *, limit=100, before=None):
        parts = {
            k: v for k, v in dict(selector.parts() if selector else {}).items() if k != "tenant"
        }
        return super().find(Selector(**parts) if parts else None, limit=limit, before=before)


class FoldsCase(MemoryStore):
    """Takes ids that differ in case for one."""

    def get(self, ids):
        stored = {one.id.lower(): one for one in super().find(limit=10_000)}
        found = {one: stored[one.lower()] for one in ids if one.lower() in stored}
        return super().get(ids)._replace(entries=found)


class LosesAWrite(MemoryStore):
    """Acknowledges every seventh put of its life without storing it."""

    count = 0

    def put(self, puts, now):
        stored = super().put(puts, now)
        for one in stored:
            self.count += 1
            if one.entry is not None and self.count % 7 == 0:
                with self._open() as shelves:
                    shelves.drop([one.entry.id])
        return stored


class MutatesAnEntry(MemoryStore):
    """Strips what it gives back."""

    def get(self, ids):
        found = super().get(ids)
        entries = {
            k: replace(v, payload=v.payload.strip(b"\x00")) for k, v in found.entries.items()
        }
        return found._replace(entries=entries)


class ForgetsAnEdge(MemoryStore):
    """Keeps only the first parent."""

    def put(self, puts, now):
        cut = [replace(p, lineage=replace(p.lineage, parents=p.lineage.parents[:1])) for p in puts]
        return super().put(cut, now)


class ServesAfterARecall(MemoryStore):
    """Writes the receipt, and takes nothing back."""

    def recall(self, selector, *, now, dry_run=False, cascade=True) -> Recall:
        kept = super().recall(selector, now=now, dry_run=True, cascade=cascade)
        if dry_run:
            return kept
        with self._open() as shelves:
            entries = dict(shelves.entries)
        receipt = super().recall(selector, now=now, cascade=cascade)
        with self._open() as shelves:
            shelves.entries = entries
        return receipt


class IgnoresWhenItWasRead(MemoryStore):
    """Takes every put for one that was looked up just now."""

    def put(self, puts, now) -> tuple[Stored, ...]:
        late = self.sequence()
        return super().put([replace(one, since=late, read_at={}) for one in puts], now)


class RefusesTooMuch(MemoryStore):
    """Refuses every put that any recall came before."""

    def put(self, puts, now) -> tuple[Stored, ...]:
        if super().recalls() and any(one.since < super().recalls()[0].sequence for one in puts):
            return tuple(Stored(refused="recalled") for _ in puts)
        return super().put(puts, now)


class DoesNotCascade(MemoryStore):
    """Takes back only what is named."""

    def recall(self, selector, *, now, dry_run=False, cascade=True) -> Recall:
        return super().recall(selector, now=now, dry_run=dry_run, cascade=False)


class CascadesAlways(MemoryStore):
    """Takes back more than is named where it should not."""

    def recall(self, selector, *, now, dry_run=False, cascade=True) -> Recall:
        return super().recall(selector, now=now, dry_run=dry_run, cascade=True)


class RehearsesForReal(MemoryStore):
    """Takes back in a rehearsal."""

    def recall(self, selector, *, now, dry_run=False, cascade=True) -> Recall:
        receipt = super().recall(selector, now=now, cascade=cascade)
        return replace(receipt, dry_run=dry_run)


class StandsStill(MemoryStore):
    """Never raises the epoch."""

    def get(self, ids) -> Fetched:
        return super().get(ids)._replace(epoch=0)


class ProvesTooLong(MemoryStore):
    """Forgets that a parent's life ends."""

    def put(self, puts, now):
        stored = super().put(puts, now)
        with self._open() as shelves:
            for one in stored:
                if one.entry is not None:
                    shelves.entries[one.entry.id] = replace(one.entry, proven_until=None)
        return tuple(
            replace(s, entry=s.entry and self.get([s.entry.id]).entries[s.entry.id]) for s in stored
        )


class ConfusesNothings(MemoryStore):
    """Takes an empty focus for none."""

    def put(self, puts, now):
        return super().put(
            [replace(p, entry=replace(p.entry, focus=p.entry.focus or None)) for p in puts], now
        )


class ForgetsWhatCame(MemoryStore):
    """Lets in what was searched before documents came."""

    def put(self, puts, now):
        return super().put([replace(one, since=self.sequence(), read_at={}) for one in puts], now)


class ReplacesAnything(MemoryStore):
    """Does not look at what an entry is to replace."""

    def put(self, puts, now):
        return super().put([replace(one, replaces=None) for one in puts], now)


class FindsFromTheStart(MemoryStore):
    """Gives the newest entries as every portion."""

    def find(self, selector=None, *, limit=100, before=None):
        return super().find(selector, limit=limit)


class OverwritesCounters(MemoryStore):
    """Keeps the last increment instead of the sum."""

    def journal(self, servings, counts):
        for one in counts:
            self._counts.pop((one.tenant, one.node, one.outcome), None)
        super().journal(servings, counts)


class ForgetsWhatIsBarred(MemoryStore):
    """Lifts the bars of an entry when it goes."""

    def remove(self, ids):
        with self._open() as shelves:
            for one in ids:
                shelves.said_of.pop(one, None)
        return super().remove(ids)


class BelievesTheNeighbours(MemoryStore):
    """Takes a report for one of its entry alone."""

    def judge(self, judgement, near=()):
        return super().judge(judgement)


class LosesALesson(MemoryStore):
    """Keeps the last of a batch."""

    def learn(self, lessons):
        super().learn(lessons[-1:])


class TeachesEverybody(MemoryStore):
    """Gives the lessons of all tenants."""

    def lessons(self, tenant, node, *, after=0):
        rooms = [
            super(TeachesEverybody, self).lessons(*room, after=after) for room in self._lessons
        ]
        return tuple(one for lessons in rooms for one in lessons)


class HoldsSilently(MemoryStore):
    """Names in its lists nothing that is held."""

    def find(self, selector=None, *, limit=100, before=None):
        found = super().find(selector, limit=limit, before=before)
        return tuple(replace(one, held="") for one in found)


class BuildsOnWhatIsHeld(MemoryStore):
    """Takes a held parent for any other."""

    def put(self, puts, now):
        with self._open() as shelves:
            holds, shelves.holds = shelves.holds, {}
            for one in holds:
                shelves.mark(shelves.entries[one])
            stored = super().put(puts, now)
            shelves.holds = holds
            for one in holds:
                shelves.mark(shelves.entries[one])
            return stored


class ReleasesForAll(MemoryStore):
    """Ends every quarantine of an entry with one."""

    def release(self, id, *, now):
        receipt = super().release(id, now=now)
        with self._open() as shelves:
            for one in receipt.entries if receipt is not None else ():
                shelves.lift(one.entry)
        return receipt


class HoldsAgain(MemoryStore):
    """Takes a quarantine that it knows for a new one."""

    def hold(self, quarantine):
        with self._open() as shelves:
            shelves.quarantines.pop(quarantine.id, None)
        return super().hold(quarantine)


class HoldsForEver(MemoryStore):
    """Holds whatever comes under an id that was held once."""

    def put(self, puts, now):
        with self._open() as shelves:
            holds = {one: dict(by) for one, by in shelves.holds.items()}
            stored = super().put(puts, now)
            shelves.holds |= holds
            for one in holds:
                shelves.mark(shelves.entries[one])
            return stored


class ForgetsWhoMadeIt(MemoryStore):
    """Journals servings as they once were."""

    def journal(self, servings, counts):
        super().journal([one._replace(producer="") for one in servings], counts)


class CountsWhatIsLater(MemoryStore):
    """Lets what was served after now weigh more than once."""

    def flows(self, *, now, half_life=None, entries=None):
        now = min([now, *(one.at for one in self.servings(limit=10_000))])
        return super().flows(now=now, half_life=half_life, entries=entries)


class OffersToAnyPlace(MemoryStore):
    """Looks at the pool, and not at the place."""

    def offered(self, place, *, limit=1000):
        found = [one for one in reversed(self.find(limit=10_000)) if one.offer is not None]
        return tuple(found[: max(limit, 0)])


class StopsAtWhatWent(MemoryStore):
    """Goes down through stored entries only."""

    def descent(self, ids):
        stored = self.get(self._below(ids)).entries
        return tuple(one for one in super().descent(ids) if {*one} <= stored.keys())

    def _below(self, ids):
        return [*ids, *(name for edge in super().descent(ids) for name in edge)]


class CrossesByPool(MemoryStore):
    """Takes a pool for a tenant of its own."""

    def crossed(self, *, limit=100_000):
        of = {one.id: one.pool or one.tenant for one in self.find(limit=10_000)}
        edges = [(p, c) for c in of for p in of if c in self.children(p)]
        return tuple((p, c) for p, c in edges if of[p] != of[c])[: max(limit, 0)]


class CountsChunks(MemoryStore):
    """Counts an entry once for each chunk of a document."""

    def shared(self):
        found = []
        for one in super().shared():
            chunks = sum(
                edge.source.document == one.document
                for entry in self.find(Selector(tenant=one.tenant), limit=10_000)
                for edge in self.lineage(entry.id).sources
            )
            found.append(one._replace(entries=chunks))
        return tuple(found)


BROKEN: dict[type[MemoryStore], str] = {
    ForgetsWhatCame: "test_what_was_searched_before_documents_came_is_refused",
    ReplacesAnything: "test_an_entry_that_must_replace_another_replaces_only_that",
    FindsFromTheStart: "test_entries_are_found_in_portions",
    ForgetsGroups: "test_changes_are_what_came_since",
    IgnoresTheTenant: "test_find_takes_every_part_of_a_selector",
    FoldsCase: "test_hostile_texts_touch_no_other_entry",
    LosesAWrite: "test_hostile_texts_are_fetched_together",
    MutatesAnEntry: "test_what_was_put_comes_back_whole",
    ForgetsAnEdge: "test_a_lineage_comes_back_as_it_was",
    ServesAfterARecall: "test_a_recall_takes_what_is_named",
    IgnoresWhenItWasRead: "test_a_put_under_way_is_refused",
    RefusesTooMuch: "test_a_recall_of_something_else_refuses_nothing",
    DoesNotCascade: "test_a_recall_takes_everything_built_on_it",
    CascadesAlways: "test_without_a_cascade_only_what_is_named_goes",
    RehearsesForReal: "test_a_rehearsal_writes_nothing",
    StandsStill: "test_every_invalidation_raises_the_epoch",
    ProvesTooLong: "test_an_entry_is_proven_until_the_earliest_end",
    ConfusesNothings: "test_none_is_not_the_empty_text",
    OverwritesCounters: "test_counters_are_added_up",
    ForgetsWhatIsBarred: "test_a_bar_holds_for_whatever_has_the_id",
    BelievesTheNeighbours: "test_what_is_near_a_wrong_hit_is_doubted",
    LosesALesson: "test_lessons_come_back_whole_and_in_order",
    TeachesEverybody: "test_hostile_texts_learn_apart",
    HoldsSilently: "test_what_is_held_says_so_at_every_reading",
    BuildsOnWhatIsHeld: "test_nothing_is_built_on_what_is_held",
    ReleasesForAll: "test_each_quarantine_holds_for_itself",
    HoldsAgain: "test_the_same_quarantine_again_changes_nothing",
    HoldsForEver: "test_another_value_is_not_held",
    ForgetsWhoMadeIt: "test_who_made_what_was_served_comes_back",
    CountsWhatIsLater: "test_flows_are_servings_added_up",
    OffersToAnyPlace: "test_an_offer_comes_back_and_is_found",
    StopsAtWhatWent: "test_a_descent_goes_on_below_what_went",
    CrossesByPool: "test_a_copy_into_a_pool_crosses_nothing",
    CountsChunks: "test_a_document_is_shared_by_several_tenants",
}


def cases(test: Callable[..., None]) -> list[dict[str, Any]]:
    """The arguments of a parametrised test, one at a time."""
    marks = getattr(test, "pytestmark", [])
    named = [mark.args for mark in marks if mark.name == "parametrize"]
    if not named:
        return [{}]
    ((name, values),) = named
    return [{name: value} for value in values]


def failures(make: Callable[[], MemoryStore]) -> set[str]:
    """The tests of the suite that a store fails."""
    suite = StoreConformance()
    suite.reach = 16
    failed = set()
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if not name.startswith("test_") or "thread" in name or "race" in name:
            continue
        for arguments in cases(test):
            store = make()
            try:
                test(store, **arguments)
            except (Exception, pytest.fail.Exception):
                failed.add(name)
            finally:
                store.close()
    return failed


def test_a_sound_store_fails_nothing():
    """What fails below fails for the defect, not for the way the suite is run."""
    assert failures(lambda: MemoryStore(reach=16)) == set()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_store_fails(broken: type[MemoryStore]):
    """Also in the very test that is about what is broken."""
    assert BROKEN[broken] in failures(lambda: broken(reach=16))


def test_a_store_that_gives_damaged_records_fails(tmp_path, monkeypatch):
    """Reading without looking at the checksum does not go unnoticed."""
    monkeypatch.setattr(rows, "_sum", lambda *_: 0)
    store = SqliteStore(tmp_path / "cache.db")

    def damage(id: str, part: str) -> None:
        with sqlite3.connect(tmp_path / "cache.db") as connection:
            assert part == "payload"
            connection.execute(
                "UPDATE entries SET record = CAST(record || 'x' AS BLOB) WHERE id = ?", (id,)
            )
        connection.close()

    suite = PersistentStoreConformance()
    suite.damage = damage
    suite.damageable = ("payload",)
    with pytest.raises(AssertionError, match=r"payload"):
        suite.test_a_damaged_record_is_named_and_never_given(store)
    store.close()
