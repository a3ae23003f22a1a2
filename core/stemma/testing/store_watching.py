"""The promises of a store about how often sources change; collected by `stemma.testing.stores`."""
# ruff: noqa: S101 - a suite of tests asserts

from __future__ import annotations

import pytest

from stemma.entry import Entry, Source
from stemma.lineage.paths import Passed, Step
from stemma.policies.changes import DAY, Prior, Watched, change_rate
from stemma.policies.life import Aging
from stemma.stores.protocol import Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source
from stemma.walk import Intent, Walk

__all__ = ["WatchingPromises"]

PRIOR = Prior(changes=2.0, seconds=10 * DAY)
AGING = Aging(base=100 * DAY, prior=PRIOR)


class WatchingPromises:
    """What is kept of re-checks, and what it does to lives."""

    def _put(self, store: Store, id: str, at: float, *sources: Source, **rest: object) -> Entry:
        """A hop's entry made at a time, that would live for a hundred days."""
        walk = Walk(aging=AGING)
        made = entry(id, node="hop", made=at, expires=at + 100 * DAY, walk=walk)
        return put_one(store, made, sources=sources, **rest)

    def _rate(self, store: Store, at: float, content: str = "first edition") -> float:
        """The change rate that the store believes in, once it has seen one more reading."""
        stored = self._put(store, f"at {at}", at, source(content=content))
        assert stored.walk is not None
        assert stored.walk.aging is not None
        assert stored.walk.aging.change_rate is not None
        return stored.walk.aging.change_rate

    def test_a_new_source_changes_as_the_prior_says(self, store: Store) -> None:
        """And bounds the life of what is built on it; several of them together."""
        rate = PRIOR.changes / PRIOR.seconds
        for number in (1, 3):
            chunks = [source(chunk=f"{number} {one}") for one in range(number)]
            stored = self._put(store, str(number), NOW, *chunks)
            aging = Aging(base=100 * DAY, prior=PRIOR, change_rate=number * rate)
            life = aging.life(str(number))
            assert life is not None
            assert life < DAY
            assert stored.expires == pytest.approx(NOW + life)
            assert stored.proven_until == stored.expires

    def test_readings_tell_how_often_a_source_changes(self, store: Store) -> None:
        """Each newer reading is a check; another content than before is a change."""
        seen = Watched(NOW, NOW)
        assert self._rate(store, NOW, "0") == pytest.approx(seen.rate(PRIOR))
        for day, content in enumerate("0112223", 1):
            rate = self._rate(store, NOW + day * DAY, content)
            changes = int(content)
            assert rate == pytest.approx(change_rate(day, changes, DAY, PRIOR))

    def test_a_source_that_never_changes_is_trusted_for_longer(self, store: Store) -> None:
        """The prior gives way to what was seen."""
        rates = [self._rate(store, NOW + day * DAY) for day in (0, 10, 100)]
        assert rates == sorted(rates, reverse=True)
        assert rates[2] < rates[0] / 5

    def test_a_reading_that_is_no_newer_counts_nothing(self, store: Store) -> None:
        """Two values made of one retrieval have read it once."""
        before = store.sequence()
        self._put(store, "one", NOW, source(), since=before)
        stored = self._put(store, "two", NOW + 10 * DAY, source(), since=before)
        assert stored.walk is not None
        assert stored.walk.aging is not None
        assert stored.walk.aging.change_rate == pytest.approx(PRIOR.changes / PRIOR.seconds)

    def test_a_clock_that_is_set_back_takes_nothing_of_the_time_watched(self, store: Store) -> None:
        """An hour back: the rate is that of the ten days before."""
        rates = [self._rate(store, at) for at in (NOW, NOW + 10 * DAY, NOW + 10 * DAY - 3600)]
        assert rates[2] == pytest.approx(Watched(NOW, NOW + 10 * DAY, 2, 0).rate(PRIOR))

    def test_owners_are_watched_apart(self, store: Store) -> None:
        """What another tenant's index says is nothing to do with this one's."""
        for day, content in enumerate("0123"):
            self._put(store, f"x {day}", NOW + day * DAY, source(content=content, owner="tenant:x"))
        assert self._rate(store, NOW) == pytest.approx(PRIOR.changes / PRIOR.seconds)

    def test_what_bounds_a_parent_does_not_bound_its_child_again(self, store: Store) -> None:
        """The child ends with the parent; a source that no parent is built on is its own."""
        rate = PRIOR.changes / PRIOR.seconds
        one, other = source(chunk="one"), source(chunk="other")
        parent = self._put(store, "parent", NOW, one)
        answer = put_one(store, entry("answer", expires=NOW + 100 * DAY), sources=[other])
        for name, parents, bounding in (
            ("alone", [], 2),
            ("child", [parent], 1),
            ("of one without a rate", [answer], 2),
            ("of both", [parent, answer], 1),
        ):
            made = self._put(store, name, NOW, one, other, parents=parents)
            assert made.walk is not None
            assert made.walk.aging is not None
            assert made.walk.aging.change_rate == pytest.approx(bounding * rate)

    def test_what_was_merely_seen_bounds_nothing(self, store: Store) -> None:
        """Nobody would say that it changed, so nobody knows how often it does."""
        stored = self._put(store, "a", NOW, source(index=""))
        assert stored.expires == NOW + 100 * DAY

    def test_what_has_no_aging_lives_as_it_was_told(self, store: Store) -> None:
        """An answer, say."""
        stored = put_one(store, entry("a", expires=NOW + 100 * DAY), sources=[source()])
        assert stored.expires == NOW + 100 * DAY

    def test_one_transaction_watches_as_several_do(self, store: Store) -> None:
        """A later put of it knows of the earlier one."""
        puts = [
            put(
                entry(str(day), node="hop", made=NOW + day * DAY, walk=Walk(aging=AGING)),
                since=store.sequence(),
                sources=[source(content=str(day))],
            )
            for day in range(3)
        ]
        *_, last = store.put(puts, NOW)
        assert last.entry is not None
        assert last.entry.walk is not None
        assert last.entry.walk.aging is not None
        assert last.entry.walk.aging.change_rate == pytest.approx(change_rate(2, 2, DAY, PRIOR))

    def test_a_walk_comes_back_as_it_was(self, store: Store) -> None:
        """Whatever its texts are."""
        for number, text in enumerate(HOSTILE):
            walk = Walk(
                path=(Passed(text, (Step(text, "exact"), Step("", "left"))), Passed("", ())),
                intent=Intent(text, b"\x00\xff"),
                origin=None if number % 2 else Intent("", b""),
                risks=((text, 0.25),),
                aging=None if number % 3 else Aging(base=None, floor=1.5, prior=PRIOR),
            )
            put_one(store, entry(str(number), walk=walk))
            assert store.get([str(number)]).entries[str(number)].walk == walk
