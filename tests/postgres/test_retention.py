"""As on the other stores: of the servings and lessons the newest are kept."""

from stemma.stores import rules
from stemma.testing.store_following import served
from stemma.testing.store_lessons import lesson


def test_of_the_servings_the_newest_are_kept(store, monkeypatch):
    monkeypatch.setattr(rules, "SERVINGS", 5)
    for start in range(0, 12, 3):
        store.journal([served(f"e{number}") for number in range(start, start + 3)], [])
    assert [one.entry for one in store.servings()] == ["e11", "e10", "e9", "e8", "e7"]


def test_of_a_tenants_lessons_the_newest_are_kept(store, monkeypatch):
    monkeypatch.setattr(rules, "LESSONS", 3)
    store.learn([lesson("stays", "other")])
    for number in range(4):
        store.learn([lesson(f"{number}a"), lesson(f"{number}b")])
    kept = [one.candidate for one in store.lessons("acme", "answer")]
    assert kept == ["2b", "3a", "3b"]
    assert [one.candidate for one in store.lessons("other", "answer")] == ["stays"]
