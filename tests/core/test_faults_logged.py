"""Who has no listener reads of faults in the log, and is not flooded by it."""

import logging

import stemma
from stemma import parts
from stemma.testing.clock import ManualClock
from stemma.testing.fakes import Faulty


def test_a_fault_is_logged_once_in_a_while(caplog):
    """Each kind of it, with the store's words and no prompt's."""
    store, clock = Faulty(), ManualClock()
    cache = stemma.open(store, tenant="me", embedder=None, clock=clock)
    store.mode = ConnectionRefusedError(111, "refused")
    with caplog.at_level(logging.WARNING, "stemma"):
        for _ in range(3):
            cache.answers.get_or_compute("a secret question", lambda: "answer")
        assert [one.getMessage().split(",")[0] for one in caplog.records] == [
            "the cache failed at lookup",
            "the cache failed at put",
        ] or [one.getMessage().split(",")[0] for one in caplog.records] == [
            "the cache failed at lookup"
        ]
        before = len(caplog.records)
        clock.advance(parts.AGAIN)
        cache.answers.get_or_compute("a secret question", lambda: "answer")
        assert len(caplog.records) > before
    assert "secret" not in caplog.text
    store.let_go()
    cache.close()
