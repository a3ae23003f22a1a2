"""What every store must do with entries: keep them whole, apart, and no longer than told."""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stemma.codec import MAX_PAYLOAD
from stemma.entry import Cost
from stemma.request import LeftOut
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.protocol import Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one

__all__ = ["EntryPromises"]


class EntryPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    def test_it_is_a_store(self, store: Store) -> None:
        """It has every method of the protocol, and says where it is and what is quick."""
        assert isinstance(store, Store)
        assert isinstance(store.url, str)
        assert store.url
        assert "get" in store.quick or hasattr(store, "aget")

    def test_an_empty_store_has_nothing(self, store: Store) -> None:
        """Nothing is found, and nothing is invented."""
        fetched = store.get(["a"])
        assert (dict(fetched.entries), fetched.damaged) == ({}, ())
        assert store.get([]).sequence == store.sequence()
        assert store.find() == ()
        assert store.sizes() == {}
        assert store.ancestry("a") is None
        assert store.lineage("a") is None
        assert store.children("a") == ()
        assert store.vectors(["a"]) == {}

    def test_what_was_put_comes_back_whole(self, store: Store) -> None:
        """Every field of an entry comes back equal, of the same type."""
        given = entry(
            "whole",
            "value hash",
            tenant="t",
            partition="p",
            group="g",
            node="hop",
            payload=b"\x00\xff{}",
            codec="json/9",
            pool="support",
            model="m",
            index="i",
            labels=Labels(session="s", user="u", arm="b", tags=("x", "y"), subject="z", writer="w"),
            focus="What is a stemma?",
            hop=3,
            confidence=0.25,
            cost=Cost(tokens=12, seconds=0.5),
            made=1.5,
            verified=2.5,
            expires=NOW + 3.5,
            derived=True,
            before=("Who was she?", "\ud800 Ada\x1f", ""),
            left_out=(LeftOut(name="time", count=2, texts=("at \x1f 10:00",)),),
        )
        stored = put_one(store, given)
        read = store.get(["whole"]).entries["whole"]
        assert read == stored
        unfilled = dataclasses.replace(read, sequence=0, epoch=0, proven_until=None)
        assert unfilled == given
        for name in (field.name for field in dataclasses.fields(read)):
            assert type(getattr(read, name)) is type(getattr(stored, name)), name

    @pytest.mark.parametrize("field", ["pool", "focus"])
    def test_none_is_not_the_empty_text(self, store: Store, field: str) -> None:
        """`None` and "" come back as what they were."""
        for name, text in (("none", None), ("empty", "")):
            fields: dict[str, Any] = {field: text}
            put_one(store, entry(name, **fields))
        found = store.get(["none", "empty"]).entries
        assert getattr(found["none"], field) is None
        assert getattr(found["empty"], field) == ""

    def test_zero_is_not_none(self, store: Store) -> None:
        """A life that ended at 0 is not a life without end; empty labels are not missing ones."""
        put_one(store, entry("zero", expires=0.0, confidence=0.0, labels=Labels(writer="")))
        put_one(store, entry("never", expires=None))
        found = store.get(["zero", "never"]).entries
        assert (found["zero"].expires, found["zero"].confidence) == (0.0, 0.0)
        assert (found["zero"].labels.writer, found["never"].labels.writer) == ("", None)
        assert (found["never"].expires, found["zero"].proven_until) == (None, 0.0)

    @pytest.mark.parametrize("payload", [b"", b"0", b'""', b"[]", b"null", b"\x00" * 100_000])
    def test_payloads_are_kept_as_they_are(self, store: Store, payload: bytes) -> None:
        """Empty, null and binary payloads come back byte by byte."""
        put_one(store, entry(payload=payload))
        assert store.get(["a"]).entries["a"].payload == payload

    def test_a_payload_too_large_is_refused(self, store: Store) -> None:
        """The refusal says so, and nothing of it is stored."""
        large = put(entry(payload=b"x" * (MAX_PAYLOAD + 1)), since=0)
        (stored,) = store.put([large], NOW)
        assert stored.refused == "too_large"
        assert store.get(["a"]).entries == {}

    def test_only_those_asked_for_are_given(self, store: Store) -> None:
        """Unknown ids are not in the answer, others neither; asking twice counts once."""
        for name in ("a", "b", "c"):
            put_one(store, entry(name))
        assert set(store.get(["a", "nobody", "c", "a"]).entries) == {"a", "c"}

    def test_an_entry_replaces_the_one_with_its_id(self, store: Store) -> None:
        """There is one entry per id, and it is the last one put."""
        put_one(store, entry("a", "one", labels=Labels(tags=("old",)), model="old"))
        put_one(store, entry("a", "two", labels=Labels(tags=("new",)), model="new"))
        assert store.get(["a"]).entries["a"].value == "two"
        assert len(store.find()) == 1
        assert store.find(Selector(tag="old")) == ()
        assert store.find(Selector(model="old")) == ()
        assert len(store.find(Selector(tag="new", model="new"))) == 1

    def test_puts_of_one_batch_are_applied_in_order(self, store: Store) -> None:
        """The last of two with the same id stays, and each answer tells of its own put."""
        stored = store.put([put(entry("a", v), since=0) for v in ("one", "two")], NOW)
        assert [one.entry.value for one in stored if one.entry] == ["one", "two"]
        assert store.get(["a"]).entries["a"].value == "two"

    def test_a_batch_may_be_empty(self, store: Store) -> None:
        """No puts, no answers."""
        assert store.put([], NOW) == ()

    def test_the_sequence_rises_with_every_put(self, store: Store) -> None:
        """It is on the entry, in what is fetched with it, and never goes back."""
        numbers = [store.sequence()]
        for name in ("a", "b", "a"):
            numbers.append(put_one(store, entry(name)).sequence)
            assert store.get([name]).sequence == store.sequence() == numbers[-1]
        assert numbers == sorted(set(numbers))

    @pytest.mark.parametrize("where", ["id", "tenant", "partition", "group", "value", "focus"])
    def test_hostile_texts_touch_no_other_entry(self, store: Store, where: str) -> None:
        """Each of them is one entry's own; none is another's, a pattern or a command."""
        for number, text in enumerate(HOSTILE):
            fields: dict[str, Any] = {"id": f"e{number}", where: text}
            put_one(store, entry(**fields))
        assert len(store.find(limit=1000)) == len(HOSTILE)
        for number, text in enumerate(HOSTILE):
            name = text if where == "id" else f"e{number}"
            found = store.get([name]).entries
            assert list(found) == [name]
            assert getattr(found[name], where) == text

    def test_hostile_texts_are_fetched_together(self, store: Store) -> None:
        """Many ids at once are as safe as one."""
        for text in HOSTILE:
            put_one(store, entry(text))
        assert set(store.get(HOSTILE).entries) == set(HOSTILE)

    @pytest.mark.parametrize("part", ["tenant", "tag", "writer", "subject", "model", "index"])
    def test_a_hostile_selector_selects_its_own(self, store: Store, part: str) -> None:
        """A selector compares whole texts, byte by byte."""
        for number, text in enumerate(HOSTILE):
            labels = {
                "tag": Labels(tags=(text,)),
                "writer": Labels(writer=text),
                "subject": Labels(subject=text),
            }
            fields: dict[str, Any] = {part: text}
            if part in labels:
                fields = {"labels": labels[part]}
            put_one(store, entry(f"e{number}", **fields))
        for number, text in enumerate(HOSTILE):
            found = store.find(Selector(**{part: text}), limit=1000)
            assert [one.id for one in found] == [f"e{number}"]

    def test_labels_come_back_hostile_as_they_were(self, store: Store) -> None:
        """Also all of them as the tags of one entry."""
        labels = Labels(session=HOSTILE[6], user=HOSTILE[13], arm="", tags=tuple(HOSTILE))
        put_one(store, entry(labels=labels))
        assert store.get(["a"]).entries["a"].labels == labels

    def test_find_gives_the_newest_first(self, store: Store) -> None:
        """In the order of their puts; a replaced entry is new again; `limit` cuts."""
        for name in ("a", "b", "c", "a"):
            put_one(store, entry(name))
        assert [one.id for one in store.find()] == ["a", "c", "b"]
        assert [one.id for one in store.find(limit=2)] == ["a", "c"]
        assert store.find(limit=0) == ()
        assert [one.id for one in store.find(Selector(tenant="acme"), limit=1)] == ["a"]

    def test_find_takes_every_part_of_a_selector(self, store: Store) -> None:
        """An entry is found only if all parts hold for it."""
        put_one(store, entry("a", tenant="x", node="call", labels=Labels(tags=("t", "u"))))
        put_one(store, entry("b", tenant="x", node="answer", labels=Labels(tags=("t",))))
        put_one(store, entry("c", tenant="y", node="call", labels=Labels(writer="t")))

        def found(**parts: str) -> set[str]:
            return {one.id for one in store.find(Selector(**parts))}

        assert found(tenant="x") == {"a", "b"}
        assert found(tenant="x", node="call") == {"a"}
        assert found(tag="t") == {"a", "b"}
        assert found(tag="u", node="answer") == set()
        assert found(entry="c", writer="t") == {"c"}
        assert found(entry="c", tenant="x") == set()

    def test_sizes_count_by_tenant_and_node(self, store: Store) -> None:
        """What is stored now, not what was once put."""
        put_one(store, entry("a", tenant="x", node="call"))
        put_one(store, entry("b", tenant="x", node="call"))
        put_one(store, entry("c", tenant="x", node="answer"))
        put_one(store, entry("d", tenant="y", node="call"))
        store.remove(["b"])
        expected = {("x", "call"): 1, ("x", "answer"): 1, ("y", "call"): 1}
        assert dict(store.sizes()) == expected

    def test_removed_entries_are_gone(self, store: Store) -> None:
        """Only those named, and the number of those that were there is given."""
        for name in ("a", "b", "c"):
            put_one(store, entry(name))
        before = store.sequence()
        assert store.remove(["a", "b", "a", "nobody"]) == 2
        assert store.sequence() > before
        assert list(store.get(["a", "b", "c"]).entries) == ["c"]
        assert store.remove(["a"]) == 0

    def test_a_sound_store_has_nothing_to_tell(self, store: Store) -> None:
        """A check finds nothing wrong with what was put properly, and changes nothing."""
        parent = put_one(store, entry("a"))
        put_one(store, entry("b", labels=Labels(tags=("t",))), parents=[parent])
        store.recall(Selector(entry="b"), now=NOW)
        put_one(store, entry("c"), parents=[parent])
        assert store.check() == ()
        assert set(store.get(["a", "c"]).entries) == {"a", "c"}
