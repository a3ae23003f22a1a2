"""What every store must do with what is said of its entries."""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from stemma.entry import UNJUDGED, Entry, personal_bar
from stemma.outcome import Held, Quarantine
from stemma.selector import Selector
from stemma.stores.protocol import Finding, Judgement, Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one

__all__ = ["JudgementPromises"]


def _said(verdict: Finding, name: str = "a", **rest: Any) -> Judgement:
    """A judgement of an entry's value `one`."""
    return Judgement(
        entry=name,
        value=rest.pop("value", "one"),
        verdict=verdict,
        by=rest.pop("by", "reviewer"),
        confidence=rest.pop("confidence", 1.0),
        at=rest.pop("at", NOW),
        question=rest.pop("question", ""),
    )


def _wrong(question: str = "q", name: str = "a", **rest: Any) -> Judgement:
    """A report that an entry was served to a question that it does not answer."""
    return _said("wrong_hit", name, question=question, **rest)


def _read(store: Store, name: str = "a") -> Entry:
    """A stored entry."""
    return store.get([name]).entries[name]


class JudgementPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    def test_audits_are_counted_on_the_entry(self, store: Store) -> None:
        """Each of them; one that agrees says when the entry was last seen to be right."""
        put_one(store, entry())
        for verdict in ("agreed", "disagreed", "agreed"):
            store.judge(_said(verdict, at=NOW + 9))
        judged = _read(store).judged
        assert (judged.agreed, judged.disagreed) == (2, 1)
        assert _read(store).verified == NOW + 9
        store.judge(_said("agreed", at=NOW + 1))
        assert _read(store).verified == NOW + 9
        assert [one.verdict for one in store.judgements()][:2] == ["agreed", "agreed"]

    def test_a_judgement_of_another_value_counts_for_nothing(self, store: Store) -> None:
        """But it is journalled."""
        put_one(store, entry())
        for verdict in ("agreed", "disagreed", "supported", "hallucinated", "same"):
            assert store.judge(_said(verdict, value="two", question="b")) is None
        assert (_read(store).judged, _read(store).verdict) == (UNJUDGED, "unknown")
        assert len(store.judgements()) == 5

    def test_a_judgement_comes_back_as_it_was(self, store: Store) -> None:
        """With whatever text in it."""
        given = [_wrong(text, text, value=text) for text in HOSTILE]
        for one in given:
            store.judge(one)
        assert list(store.judgements(limit=len(given)))[::-1] == given

    def test_an_equal_value_put_again_has_agreed(self, store: Store) -> None:
        """It was computed afresh; another value begins anew."""
        put_one(store, entry())
        store.judge(_said("disagreed"))
        put_one(store, entry())
        judged = _read(store).judged
        assert (judged.agreed, judged.disagreed) == (1, 1)
        put_one(store, entry(value="two"))
        assert _read(store).judged == UNJUDGED

    def test_an_entry_that_is_only_rewritten_has_not_agreed(self, store: Store) -> None:
        """A put that `replaces` an entry computes nothing."""
        first = put_one(store, entry())
        store.put([replace(put(entry(), since=store.sequence()), replaces=first.sequence)], NOW)
        assert _read(store).judged == UNJUDGED

    def test_a_wrong_hit_makes_the_entry_suspect(self, store: Store) -> None:
        """It is quarantined, with what was built on it, and nothing more is built on it."""
        parent = put_one(store, entry())
        put_one(store, entry("child"), parents=[parent])
        before = store.get([]).epoch
        changed = store.judge(_wrong())
        assert changed == _read(store)
        assert (changed.verdict, changed.judged.barred) == ("suspect", ("q",))
        assert store.get([]).epoch > before
        found = store.ancestry("child")
        assert found is not None
        assert found.entries["a"].verdict == "suspect"
        (refused,) = store.put([put(entry("b"), since=store.sequence(), parents=[parent])], NOW)
        assert refused.refused == "parent_gone"

    @pytest.mark.parametrize("lifted", ["agreed", "supported", "put"])
    def test_a_quarantine_ends_and_a_bar_does_not(self, store: Store, lifted: str) -> None:
        """Whatever speaks for the value lifts the quarantine, and the epoch rises."""
        put_one(store, entry())
        put_one(store, entry("child"), parents=[_read(store)])
        store.judge(_wrong())
        before = store.get([]).epoch
        if lifted == "put":
            put_one(store, entry())
        else:
            store.judge(_said(lifted))  # type: ignore[arg-type]
        assert _read(store).verdict == ("supported" if lifted == "supported" else "unknown")
        assert _read(store).judged.barred == ("q",)
        assert store.get([]).epoch > before

    def test_an_audit_lifts_no_hallucination(self, store: Store) -> None:
        """The same wrong answer given again is as wrong."""
        put_one(store, entry())
        store.judge(_said("hallucinated"))
        store.judge(_said("agreed"))
        assert _read(store).verdict == "hallucinated"

    @pytest.mark.parametrize("between", ["another value", "removed", "taken back"])
    def test_a_value_that_comes_again_is_as_wrong_again(self, store: Store, between: str) -> None:
        """Also after the entry went; another value under the same id is not."""
        put_one(store, entry())
        store.judge(_said("hallucinated"))
        if between == "another value":
            assert put_one(store, entry(value="two")).verdict == "unknown"
        elif between == "removed":
            store.remove(["a"])
        else:
            store.recall(Selector(entry="a"), now=NOW)
        store.judge(_said("hallucinated", by="another"))
        assert put_one(store, entry()).verdict == "hallucinated"
        assert _read(store).verdict == "hallucinated"
        store.judge(_said("supported"))
        store.judge(_said("unknown", by="another"))
        assert _read(store).verdict == "supported"

    def test_a_bar_holds_for_whatever_has_the_id(self, store: Store) -> None:
        """Replaced, removed, taken back, or not yet stored when it was reported."""
        put_one(store, entry())
        store.judge(_wrong())
        put_one(store, entry(value="two"))
        assert (_read(store).judged.barred, _read(store).verdict) == (("q",), "unknown")
        store.judge(_wrong("r", value="one"))
        assert (_read(store).judged.barred, _read(store).verdict) == (("q", "r"), "unknown")
        store.remove(["a"])
        store.judge(_wrong("s"))
        put_one(store, entry())
        store.recall(Selector(entry="a"), now=NOW)
        stored = put_one(store, entry())
        assert stored.judged.barred == ("q", "r", "s")
        assert _read(store) == stored

    def test_of_its_own_question_only_the_value_is_barred(self, store: Store) -> None:
        """Another answer to it may be served; that one may not, whoever computes it again."""
        put_one(store, entry())
        store.judge(_wrong("a"))
        assert _read(store).judged.barred == ("one",)
        assert put_one(store, entry()).judged.barred == ("one",)
        assert put_one(store, entry(value="two")).judged.barred == ("one",)

    def test_a_report_said_twice_changes_nothing_more(self, store: Store) -> None:
        """Not even when the quarantine was lifted in between."""
        put_one(store, entry())
        store.judge(_wrong())
        once = _read(store)
        store.judge(_wrong())
        assert _read(store) == once
        store.judge(_said("supported"))
        lifted = _read(store)
        store.judge(_wrong())
        assert _read(store) == lifted

    def test_what_tenants_say_of_a_pools_entry_is_weighed(self, store: Store) -> None:
        """For one alone it is barred, also when it comes again; for all where they suffice."""

        def said(verdict: Finding, tenant: str) -> Judgement:
            return replace(_said(verdict, by=tenant), tenant=tenant, weight=0.6)

        put_one(store, entry(pool="support"))
        store.judge(said("hallucinated", "ann"))
        assert _read(store).judged.barred == (personal_bar("ann", "one"),)
        assert (_read(store).verdict, _read(store).judged.doubted) == ("unknown", False)
        store.remove(["a"])
        put_one(store, entry(pool="support"))
        assert _read(store).judged.barred == (personal_bar("ann", "one"),)
        store.judge(said("hallucinated", "bob"))
        assert _read(store).verdict == "hallucinated"
        store.judge(said("supported", "ann"))
        assert _read(store).verdict == "unknown"
        assert _read(store).judged.barred == (personal_bar("bob", "one"),)

    def test_one_tenants_support_ends_no_hold(self, store: Store) -> None:
        """Two do, or an operator."""
        put_one(store, entry(pool="support"))
        held = Held(entry="a", tenant="acme", node="answer", hop=1, probability=0.9)
        quarantine = Quarantine(
            id="q", seeds={"a": 0.9}, threshold=0.3, by="ann", at=NOW, entries=(held,)
        )
        store.hold(quarantine)
        for tenant, still in (("ann", "q"), ("bob", "")):
            said = replace(_said("supported", by=tenant), tenant=tenant, weight=0.6)
            store.judge(said)
            assert _read(store).held == still

    def test_reports_may_come_in_any_order(self, store: Store) -> None:
        """Of wrong hits and a hallucination, the same comes in the end."""
        reports = (_wrong("q"), _wrong("r"), _said("hallucinated"))
        ends = set()
        for at, order in enumerate(itertools.permutations(reports)):
            name = f"entry {at}"
            put_one(store, entry(name))
            for one in order:
                store.judge(replace(one, entry=name))
            end = _read(store, name)
            ends.add((end.verdict, frozenset(end.judged.barred)))
        assert ends == {("hallucinated", frozenset("qr"))}

    def test_what_is_near_a_wrong_hit_is_doubted(self, store: Store) -> None:
        """So is its entry, until an audit agrees. Who is not there is nobody's neighbour."""
        for name in ("a", "b", "c", "d"):
            put_one(store, entry(name))
        store.judge(_wrong(), ["b", "c", "nobody"])
        assert {n for n in ("a", "b", "c", "d") if _read(store, n).judged.doubted} == set("abc")
        for name in ("a", "b"):
            store.judge(_said("agreed", name))
        store.judge(_wrong(), ["b"])  # said before
        assert not _read(store, "a").judged.doubted
        assert not _read(store, "b").judged.doubted

    def test_its_own_question_computed_afresh_ends_no_doubt(self, store: Store) -> None:
        """Whether other questions may be served with it, that does not show."""
        for name in ("a", "b"):
            put_one(store, entry(name))
        store.judge(_wrong(), ["b"])
        for name in ("a", "b"):
            put_one(store, entry(name))
            assert _read(store, name).judged.doubted
        put_one(store, entry("a", "two"))
        assert _read(store, "a").judged.doubted

    def test_who_says_the_same_is_known_by_the_same_answer(self, store: Store) -> None:
        """Also over a third."""
        for name, value in (("a", "one"), ("b", "two"), ("c", "three")):
            put_one(store, entry(name, value))
        store.judge(_said("same", "b", value="two", question="a"))
        store.judge(_said("same", "c", value="three", question="b"))
        assert {_read(store, name).answer for name in ("a", "b", "c")} == {"one"}
        put_one(store, entry("c", "three"))
        assert _read(store, "c").answer == "one"
        put_one(store, entry("c", "four"))
        assert _read(store, "c").answer == "four"
        assert store.judge(_said("same", "c", value="four", question="nobody")) == _read(store, "c")

    def test_support_makes_an_entry_as_sure_as_who_gave_it(self, store: Store) -> None:
        """Never less sure, and also when the same value is put again."""
        put_one(store, entry(confidence=0.5))
        for by, sure in (("ann", 0.75), ("bob", 0.25)):
            store.judge(_said("supported", by=by, confidence=sure))
            assert _read(store).confidence == 0.75
        put_one(store, entry(confidence=0.5))
        assert (_read(store).confidence, _read(store).verdict) == (0.75, "supported")

    def test_grounding_makes_an_entry_less_sure_and_never_surer(self, store: Store) -> None:
        """The least of what was said counts, in any order, and what is said twice counts once."""
        for at, order in enumerate(itertools.permutations((0.25, 0.5, 0.5, 0.875))):
            put_one(store, entry(f"entry {at}", confidence=0.75))
            for score in order:
                store.judge(_said("grounded", f"entry {at}", confidence=score))
            assert _read(store, f"entry {at}").confidence == 0.25
            said = store.judgements(entry=f"entry {at}")
            assert [one.confidence for one in said] == [*reversed(order)]

    def test_grounding_moves_no_epoch_and_quarantines_nothing(self, store: Store) -> None:
        """What was built on the entry stands."""
        parent = put_one(store, entry())
        put_one(store, entry("child"), parents=[parent])
        before = store.get([]).epoch
        judged = store.judge(_said("grounded", confidence=0.0))
        assert judged == _read(store)
        assert (judged.verdict, judged.confidence) == ("unknown", 0.0)
        assert store.get([]).epoch == before

    def test_grounding_takes_nothing_from_what_was_found_supported(self, store: Store) -> None:
        """And what is found supported after it is as sure as who found it."""
        put_one(store, entry())
        store.judge(_said("supported"))
        store.judge(_said("grounded", confidence=0.25))
        assert _read(store).confidence == 1.0
        put_one(store, entry("b"))
        store.judge(_said("grounded", "b", confidence=0.25))
        store.judge(_said("supported", "b", confidence=0.875))
        assert _read(store, "b").confidence == 0.875

    def test_hostile_texts_are_barred_as_they_are(self, store: Store) -> None:
        """And no other question is."""
        put_one(store, entry())
        for text in HOSTILE:
            store.judge(_wrong(text))
        assert _read(store).judged.barred == tuple(HOSTILE)
        assert put_one(store, entry(value="two")).judged.barred == tuple(HOSTILE)
