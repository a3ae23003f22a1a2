"""The experiments about servers and outages notice what is broken on purpose."""

import asyncio

from evals.reliability import crossing, killed_server, lost_recalls, outage

from stemma.errors import CacheFault
from stemma.outcome import Stored
from stemma.parts import Parts
from stemma.stores.postgres import PostgresStore
from stemma.stores.wrappers.breaker import Breaker


class Hasty(PostgresStore):
    """Says that every seventh put is stored, and writes it later: that is, not."""

    puts = 0

    def put(self, puts, now):
        self.puts += 1
        if self.puts % 7:
            return super().put(puts, now)
        return tuple(Stored(entry=one.entry) for one in puts)


def test_a_put_that_is_acknowledged_and_not_written_is_noticed(tmp_path):
    outcome = killed_server.run(size=0.01, seed=0, folder=tmp_path, opened=Hasty)
    assert outcome.violations["acknowledged entries lost"] > 0


class Crossed(PostgresStore):
    """Leaves the reply of a call that was given up to the next caller, as a client once did."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.left = []

    async def aget(self, ids):
        if self.left:
            return self.left.pop()
        asking = asyncio.ensure_future(super().aget(ids))
        asking.add_done_callback(asyncio.Future.exception)
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(lambda reply: self.left.append(reply.result()))
            raise


def test_a_reply_of_another_call_is_noticed(tmp_path):
    outcome = crossing.run(size=0.004, seed=0, folder=tmp_path, opened=Crossed)
    assert outcome.violations["replies of another key or tenant"] > 0


def broken_outage(folder):
    """What is found broken by outages of a store in this process."""
    outcome = outage.run(size=0.01, seed=0, folder=folder, places=[outage.local])
    return {promise for promise, times in outcome.violations.items() if times}


def test_a_store_that_is_asked_all_the_time_is_noticed(tmp_path, monkeypatch):
    """Through a breaker that lets everything pass while it is open."""
    monkeypatch.setattr(Breaker, "_refuse", lambda _: None)
    assert "calls to the store beyond one a try" in broken_outage(tmp_path)


def test_an_error_that_reaches_the_application_is_noticed(tmp_path, monkeypatch):
    """From a cache that does not go on without its store."""

    def fault(_, where, error, scope=None):
        if where in ("lookup", "put"):
            raise CacheFault(where) from error

    monkeypatch.setattr(Parts, "fault", fault)
    assert "errors that reached the application" in broken_outage(tmp_path)


def test_a_fault_that_is_kept_from_the_application_is_noticed(tmp_path, monkeypatch):
    """From a cache that goes on, though it was told not to."""
    monkeypatch.setattr(Parts, "fault", lambda *_: None)
    assert broken_outage(tmp_path) == {"faults not told with fail=closed"}


def test_recalls_that_are_not_kept_are_noticed(tmp_path):
    """By guards without an outbox: what was taken back is served again."""
    outcome = lost_recalls.run(size=0.01, seed=0, folder=tmp_path, places=(), keeps=False)
    assert outcome.violations[lost_recalls.STALE] > 0


def test_a_recall_that_no_process_kept_is_noticed(tmp_path):
    """The same, by the processes."""
    outcome = lost_recalls.run(
        size=0.01, seed=0, folder=tmp_path, places=[lost_recalls.locked], keeps=False
    )
    assert outcome.violations[lost_recalls.LOST] > 0
