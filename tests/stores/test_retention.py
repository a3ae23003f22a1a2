"""Hits leave servings behind, and audits lessons; the newest are kept, so that no store grows."""

from pathlib import Path

import pytest

from stemma.stores import rules
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Store
from stemma.stores.sqlite import SqliteStore
from stemma.testing.store_following import served
from stemma.testing.store_lessons import lesson


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_of_the_servings_the_newest_are_kept(tmp_path: Path, monkeypatch, kind: str):
    monkeypatch.setattr(rules, "SERVINGS", 5)
    store: Store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "cache.db")
    for start in range(0, 12, 3):
        store.journal([served(f"e{number}") for number in range(start, start + 3)], [])
    assert [one.entry for one in store.servings()] == ["e11", "e10", "e9", "e8", "e7"]
    store.close()


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_of_a_tenants_lessons_the_newest_are_kept(tmp_path: Path, monkeypatch, kind: str):
    """Another tenant's many lessons push none of its own out."""
    monkeypatch.setattr(rules, "LESSONS", 3)
    store: Store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "cache.db")
    store.learn([lesson("stays", "other")])
    for number in range(4):
        store.learn([lesson(f"{number}a"), lesson(f"{number}b")])
    kept = [one.candidate for one in store.lessons("acme", "answer")]
    assert kept == ["2b", "3a", "3b"]
    assert [one.candidate for one in store.lessons("other", "answer")] == ["stays"]
    store.close()
