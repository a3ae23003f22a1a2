"""What is told of the store on `apsw`'s SQLite can be told of the store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from evals.reliability.faults import Failing
from evals.reliability.shim import connecting

from stemma.stores.sqlite import SqliteStore
from stemma.testing.stores import StoreConformance


class TestTheStoreOnApsw(StoreConformance):
    reach = 16

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        with Failing("sound") as system:
            path = tmp_path / "cache.db"
            store = SqliteStore(path, reach=self.reach, connect=connecting(system.name))
            yield store
            store.close()
