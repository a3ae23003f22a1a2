"""The store in memory passes the suite."""

from collections.abc import Iterator

import pytest

from stemma.stores.memory import MemoryStore
from stemma.testing.builders import entry, put_one
from stemma.testing.stores import StoreConformance


class TestMemoryStore(StoreConformance):
    reach = 16

    @pytest.fixture
    def store(self) -> Iterator[MemoryStore]:
        store = MemoryStore(reach=self.reach)
        yield store
        store.close()


def test_two_stores_share_nothing():
    """What one has put, another does not know."""
    one, other = MemoryStore(), MemoryStore()
    put_one(one, entry("a"))
    assert other.get(["a"]).entries == {}
    assert other.sequence() == 0
