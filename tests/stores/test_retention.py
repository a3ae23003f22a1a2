"""Hits leave servings behind; of those the newest are kept, so that a store does not grow by them."""

from pathlib import Path

import pytest

from stemma.stores import rules
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Store
from stemma.stores.sqlite import SqliteStore
from stemma.testing.store_following import served


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_of_the_servings_the_newest_are_kept(tmp_path: Path, monkeypatch, kind: str):
    monkeypatch.setattr(rules, "SERVINGS", 5)
    store: Store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "cache.db")
    for start in range(0, 12, 3):
        store.journal([served(f"e{number}") for number in range(start, start + 3)], [])
    assert [one.entry for one in store.servings()] == ["e11", "e10", "e9", "e8", "e7"]
    store.close()
