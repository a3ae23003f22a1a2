"""What every store must do with what a quarantine holds."""
# ruff: noqa: S101 - a suite of tests asserts

from __future__ import annotations

from dataclasses import replace

import pytest

from stemma.outcome import Held, Quarantine
from stemma.selector import Selector
from stemma.stores.protocol import Judgement, Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source

__all__ = ["HoldPromises", "quarantine"]


def quarantine(id: str = "q", *entries: str, text: str = "acme") -> Quarantine:
    """A quarantine of entries, with one text wherever a text may be."""
    held = (
        Held(entry=one, tenant=text, pool=text, node="answer", hop=2, probability=0.5)
        for one in entries
    )
    return Quarantine(
        id=id,
        seeds={text: 0.75},
        threshold=0.25,
        by=text,
        reason=text,
        at=NOW,
        entries=tuple(held),
    )


def _held(store: Store, name: str = "a") -> str:
    return store.get([name]).entries[name].held


def _said(verdict: str, value: str = "one") -> Judgement:
    return Judgement(
        entry="a",
        value=value,
        verdict=verdict,  # type: ignore[arg-type]
        by="reviewer",
        confidence=1.0,
        at=NOW,
    )


class HoldPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    def test_what_is_held_says_so_at_every_reading(self, store: Store) -> None:
        """Alone, with others, and found; what is not held does not."""
        for name in ("a", "b", "c"):
            put_one(store, entry(name))
        store.hold(quarantine("q", "a", "c"))
        assert (_held(store, "a"), _held(store, "b"), _held(store, "c")) == ("q", "", "q")
        together = store.get(["a", "b", "c"]).entries
        assert [together[one].held for one in ("a", "b", "c")] == ["q", "", "q"]
        assert [one.held for one in store.find()] == ["q", "", "q"]
        assert [one.held for one in store.find(Selector(entry="c"))] == ["q"]

    def test_a_receipt_comes_back_as_it_was(self, store: Store) -> None:
        """With the sequence, and what is stored, in its order; the newest first."""
        for name in ("a", "b"):
            put_one(store, entry(name))
        given = quarantine("q", "b", "gone", "a")
        odd = Held(entry="a", tenant="acme", node="hop", hop=7, probability=0.3125, doubtful=True)
        given = replace(given, entries=(*given.entries[:2], odd))
        first = store.hold(given)
        assert first == replace(given, entries=(given.entries[0], odd), sequence=store.sequence())
        second = store.hold(quarantine("r", "a"))
        assert store.quarantines() == (second, first)
        assert store.quarantines(limit=1) == (second,)
        assert store.quarantines(limit=0) == ()

    def test_a_hold_and_a_release_raise_the_epoch(self, store: Store) -> None:
        """Proofs of what was built on them are void; readers ask again."""
        put_one(store, entry())
        before = store.get([]).epoch
        store.hold(quarantine("q", "a"))
        held = store.get([]).epoch
        store.release("q", now=NOW)
        assert before < held < store.get([]).epoch <= store.sequence()

    def test_nothing_is_built_on_what_is_held(self, store: Store) -> None:
        """Until it is released; what was built on it before stays."""
        parent = put_one(store, entry())
        put_one(store, entry("child"), parents=[parent])
        store.hold(quarantine("q", "a"))
        refused = put(entry("late"), since=store.sequence(), parents=[parent])
        (stored,) = store.put([refused], NOW)
        assert (stored.entry, stored.refused) == (None, "parent_gone")
        assert "quarantined" in stored.detail
        assert _held(store, "child") == ""
        store.release("q", now=NOW)
        put_one(store, entry("late"), parents=[parent])

    def test_a_release_ends_a_quarantine_once(self, store: Store) -> None:
        """The receipt says when; a second release changes nothing; an unknown one is none."""
        put_one(store, entry())
        receipt = store.hold(quarantine("q", "a"))
        assert store.release("r", now=NOW) is None
        assert _held(store) == "q"
        released = store.release("q", now=NOW + 5)
        assert released == replace(receipt, lifted=NOW + 5)
        assert _held(store) == ""
        before = (store.sequence(), store.get([]).epoch)
        assert store.release("q", now=NOW + 9) == released
        assert (store.sequence(), store.get([]).epoch) == before
        assert store.quarantines() == (released,)

    def test_the_same_quarantine_again_changes_nothing(self, store: Store) -> None:
        """As where nobody heard that it was done; also after its release."""
        put_one(store, entry())
        receipt = store.hold(quarantine("q", "a"))
        before = store.sequence()
        assert store.hold(quarantine("q", "a", "b")) == receipt
        assert store.sequence() == before
        released = store.release("q", now=NOW)
        assert store.hold(quarantine("q", "a")) == released
        assert _held(store) == ""
        assert store.quarantines() == (released,)

    @pytest.mark.parametrize("first", ["q", "r"])
    def test_each_quarantine_holds_for_itself(self, store: Store, first: str) -> None:
        """What two of them hold is held until both are released."""
        put_one(store, entry("a"))
        put_one(store, entry("b"))
        store.hold(quarantine("q", "a"))
        store.hold(quarantine("r", "a", "b"))
        other = "r" if first == "q" else "q"
        assert _held(store) in ("q", "r")
        store.release(first, now=NOW)
        assert _held(store) == other
        assert _held(store, "b") == ("r" if other == "r" else "")
        store.release(other, now=NOW)
        assert (_held(store), _held(store, "b")) == ("", "")

    def test_what_is_judged_supported_is_held_no_longer(self, store: Store) -> None:
        """By none of its quarantines; of another value it says nothing; an audit does not."""
        put_one(store, entry())
        store.hold(quarantine("q", "a"))
        store.hold(quarantine("r", "a"))
        store.judge(_said("supported", "two"))
        store.judge(_said("agreed"))
        assert _held(store) == "q"
        before = store.get([]).epoch
        changed = store.judge(_said("supported"))
        assert changed is not None
        assert changed.held == _held(store) == ""
        assert store.get([]).epoch > before
        store.release("q", now=NOW)
        assert _held(store) == ""

    def test_another_value_is_not_held(self, store: Store) -> None:
        """It was computed again: what was suspected is no longer there."""
        put_one(store, entry())
        store.hold(quarantine("q", "a"))
        assert put_one(store, entry(value="two")).held == ""
        assert _held(store) == ""
        put_one(store, entry())
        assert _held(store) == ""

    def test_the_same_value_from_elsewhere_is_not_held(self, store: Store) -> None:
        """From other parents or sources; in another order they are the same."""
        parents = [put_one(store, entry("x")), put_one(store, entry("y"))]
        sources = [source("d1"), source("d2")]
        put_one(store, entry(), parents=parents, sources=sources)
        store.hold(quarantine("q", "a"))
        again = put_one(store, entry(), parents=parents[::-1], sources=sources[::-1])
        assert again.held == _held(store) == "q"
        put_one(store, entry(), parents=parents[:1], sources=sources)
        assert _held(store) == ""
        store.hold(quarantine("r", "a"))
        put_one(store, entry(), parents=parents[:1], sources=[*sources, source("d3")])
        assert _held(store) == ""

    def test_the_same_value_from_the_same_stays_held(self, store: Store) -> None:
        """The same suspicion again: nothing was verified. What is put does not say otherwise."""
        put_one(store, entry(), sources=[source()])
        store.hold(quarantine("q", "a"))
        again = put_one(store, entry(), sources=[source()])
        assert again == store.get(["a"]).entries["a"]
        assert again.held == "q"
        put_one(store, entry("b", held="forged"))
        assert _held(store, "b") == ""

    @pytest.mark.parametrize("how", ["recall", "remove"])
    def test_what_goes_is_held_no_longer(self, store: Store, how: str) -> None:
        """What is put under its id later is new; the receipt still names what went."""
        put_one(store, entry())
        receipt = store.hold(quarantine("q", "a"))
        if how == "recall":
            assert len(store.recall(Selector(entry="a"), now=NOW)) == 1
        else:
            assert store.remove(["a"]) == 1
        assert store.check() == ()
        put_one(store, entry())
        assert _held(store) == ""
        assert store.quarantines() == (receipt,)
        assert store.release("q", now=NOW) == replace(receipt, lifted=NOW)

    def test_a_quarantine_of_nothing_stored_holds_nothing(self, store: Store) -> None:
        """It is journalled all the same."""
        receipt = store.hold(quarantine("q", "a"))
        assert receipt.entries == ()
        put_one(store, entry())
        assert _held(store) == ""
        assert store.quarantines() == (receipt,)

    def test_a_judgement_of_what_is_held_keeps_it_held(self, store: Store) -> None:
        """The entry is written anew, and still says so."""
        put_one(store, entry())
        store.hold(quarantine("q", "a"))
        for verdict in ("disagreed", "hallucinated", "unknown"):
            store.judge(_said(verdict))
            assert _held(store) == "q"

    def test_hostile_texts_are_held_apart(self, store: Store) -> None:
        """As ids of entries and of quarantines, and wherever else a text may be."""
        for text in HOSTILE:
            put_one(store, entry(text))
        given = {text: store.hold(quarantine(text, text, text=text)) for text in HOSTILE}
        found = store.get(HOSTILE).entries
        assert [found[text].held for text in HOSTILE] == list(HOSTILE)
        assert store.quarantines() == tuple(reversed(given.values()))
        half = HOSTILE[::2]
        for text in half:
            assert store.release(text, now=NOW) == replace(given[text], lifted=NOW)
        found = store.get(HOSTILE).entries
        assert [text for text in HOSTILE if not found[text].held] == list(half)
