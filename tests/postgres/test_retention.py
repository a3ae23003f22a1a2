"""As on the other stores: of the servings the newest are kept."""

from stemma.stores import rules
from stemma.testing.store_following import served


def test_of_the_servings_the_newest_are_kept(store, monkeypatch):
    monkeypatch.setattr(rules, "SERVINGS", 5)
    for start in range(0, 12, 3):
        store.journal([served(f"e{number}") for number in range(start, start + 3)], [])
    assert [one.entry for one in store.servings()] == ["e11", "e10", "e9", "e8", "e7"]
