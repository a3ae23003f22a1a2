"""What the rules of writing conclude beyond what every store must."""

import pytest

from stemma.selector import Selector
from stemma.stores.memory import MemoryStore
from stemma.testing.builders import NOW, entry, put, put_one, source


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_what_is_built_on_an_entry_without_ancestors_is_proven(store: MemoryStore):
    """An older epoch voids no proof of an entry that depends on nothing."""
    parent = put_one(store, entry("parent", expires=NOW + 9))
    store.recall(Selector(tenant="nobody"), now=NOW)
    child = put_one(store, entry("child"), parents=[parent])
    assert parent.epoch < child.epoch == store.get([]).epoch
    assert child.proven_until == NOW + 9


def test_the_refusal_names_what_was_taken_back(store: MemoryStore):
    """A person can look the recall up in the journal."""
    since = store.sequence()
    receipt = store.recall(Selector(source="doc-1"), now=NOW)
    (stored,) = store.put([put(entry(), since=since, sources=[source()])], NOW)
    assert stored.detail == f"the recall {receipt.sequence} covers it"


def test_readings_of_equal_age_go_by_their_puts(store: MemoryStore):
    """Where nothing tells which is newer, the later put says what the index vouches for."""
    now = store.sequence()
    for name, content in (("a", "first"), ("b", "second")):
        store.put([put(entry(name), since=now, sources=[source(content=content)])], NOW)
    found = store.ancestry("a")
    assert found is not None
    assert list(found.current.values()) == ["second"]
    assert store.get(["b"]).entries["b"].epoch == store.get([]).epoch


def test_an_edition_that_is_seen_again_is_current_again(store: MemoryStore):
    """A document may go back to what it was."""
    for name, content in (("a", "first"), ("b", "second"), ("c", "first")):
        put_one(store, entry(name), sources=[source(content=content)])
    found = store.ancestry("a")
    assert found is not None
    assert list(found.current.values()) == ["first"]
