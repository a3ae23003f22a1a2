"""A recall asked for while the store is out is kept, and nothing is read before it is done."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from stemma.errors import StoreError, StoreUnavailable
from stemma.selector import Selector
from stemma.stores.protocol import Judgement
from stemma.stores.wrappers.outbox import Note, Outbox
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source
from stemma.testing.store_holds import quarantine

OUT = ConnectionRefusedError(111, "refused")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "outbox"


@pytest.fixture
def guarded(faulty, guard, path):
    return guard(faulty, outbox=path, failures=3)


def recall_in_vain(guarded, **named: str) -> None:
    with pytest.raises(StoreUnavailable, match="kept, and applied before anything is read again"):
        guarded.recall(Selector(**named), now=NOW)


def test_a_recall_during_an_outage_is_done_before_the_first_read(faulty, guarded, clock, told):
    """It was not acknowledged, it is not lost, and what it covers is never read again."""
    for name in ("a", "b"):
        put_one(guarded, entry(name), sources=[source(document=name)])
    faulty.mode = OUT
    recall_in_vain(guarded, source="a")
    assert guarded.pending == 1
    with pytest.raises(StoreUnavailable):
        guarded.get(["a"])
    faulty.mode = "well"
    clock.advance(5)
    assert list(guarded.get(["a", "b"]).entries) == ["b"]
    assert guarded.pending == 0
    (receipt,) = guarded.recalls()
    assert dict(receipt.selector) == {"source": "a"}
    assert told == ["outbox:kept", "outbox:applied"]


def test_a_quarantine_during_an_outage_holds_before_the_first_read(faulty, guarded):
    """As a recall: what is suspected is not served; a release is only told to have failed."""
    put_one(guarded, entry())
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable, match="kept, and applied before anything is read again"):
        guarded.hold(quarantine("q", "a"))
    assert guarded.pending == 1
    faulty.mode = "well"
    assert guarded.get(["a"]).entries["a"].held == "q"
    assert guarded.pending == 0
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable):
        guarded.release("q", now=NOW)
    assert guarded.pending == 0


async def test_a_quarantine_during_an_outage_is_kept_on_a_loop_too(faulty, guarded):
    """By the async twin."""
    await guarded.aput([put(entry(), since=guarded.sequence())], NOW)
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable, match="it is kept"):
        await guarded.ahold(quarantine("q", "a"))
    faulty.mode = "well"
    assert (await guarded.aget(["a"])).entries["a"].held == "q"
    assert await guarded.adescent(["a"]) == await guarded.aoffered("place") == ()
    assert (await guarded.arelease("q", now=NOW)).lifted == NOW
    assert (await guarded.aget(["a"])).entries["a"].held == ""


@pytest.mark.parametrize("use", ["get", "ancestry", "find", "put", "children"])
def test_whatever_is_asked_first_comes_after_the_recall(faulty, guarded, use):
    """A put that was under way is refused, for all that the store knew nothing of the recall."""
    put_one(guarded, entry())
    since = guarded.sequence()
    faulty.mode = OUT
    recall_in_vain(guarded, tenant="acme")
    faulty.mode = "well"
    if use == "get":
        assert guarded.get(["a"]).entries == {}
    elif use == "ancestry":
        assert guarded.ancestry("a") is None
    elif use == "find":
        assert guarded.find() == ()
    elif use == "children":
        assert guarded.children("a") == ()
    else:
        (stored,) = guarded.put([put(entry("late"), since=since)], NOW)
        assert stored.refused == "recalled"
    assert faulty.find() == ()


def test_while_it_cannot_be_done_nothing_is_read(faulty, guarded, monkeypatch):
    """Also where the store reads well, but does not take the recall."""
    put_one(guarded, entry())
    well = faulty.recall

    def refuse(*_, **__):
        raise StoreError("the disk is full")

    monkeypatch.setattr(faulty, "recall", refuse)
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        guarded.recall(Selector(entry="a"), now=NOW)
    for _ in range(3):
        with pytest.raises(StoreError, match="the disk is full"):
            guarded.get(["a"])
    assert guarded.state == "closed"
    monkeypatch.setattr(faulty, "recall", well)
    assert guarded.get(["a"]).entries == {}


def test_it_outlives_the_process(faulty, guard, guarded, path):
    """Whoever opens the store with that outbox next applies it first."""
    put_one(guarded, entry())
    faulty.mode = OUT
    recall_in_vain(guarded, entry="a")
    faulty.mode = "well"
    assert guard(faulty, outbox=path).get(["a"]).entries == {}


def test_another_process_with_that_outbox_is_held_back_too(faulty, guard, guarded, path):
    """A recall that one could not send is the other's to apply."""
    other = guard(faulty, outbox=path)
    put_one(other, entry())
    faulty.mode = OUT
    recall_in_vain(guarded, entry="a")
    faulty.mode = "well"
    assert other.get(["a"]).entries == {}
    assert guarded.pending == 0


def test_a_read_that_a_recall_overtakes_gives_nothing(faulty, guarded, monkeypatch):
    """It began before, and would end after: that is too late."""
    put_one(guarded, entry())
    well = faulty.get

    def slowly(ids):
        found = well(ids)
        guarded._outbox.keep(Note(selector=Selector(entry="a"), now=NOW))
        return found

    monkeypatch.setattr(faulty, "get", slowly)
    with pytest.raises(StoreUnavailable, match="wait in the outbox"):
        guarded.get(["a"])
    monkeypatch.setattr(faulty, "get", well)
    assert guarded.get(["a"]).entries == {}


def test_a_judgement_and_a_clearing_are_kept_as_they_are(faulty, guarded):
    """A clearing takes back no more than it names, then too."""
    parent = put_one(guarded, entry("a"))
    put_one(guarded, entry("b"), parents=[parent])
    put_one(guarded, entry("c"))
    judgement = Judgement(
        entry="c", value="one", verdict="hallucinated", by="t", confidence=0.5, at=NOW
    )
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable, match="kept"):
        guarded.recall(Selector(entry="a"), now=NOW, cascade=False)
    with pytest.raises(StoreUnavailable, match="kept"):
        guarded.judge(judgement)
    faulty.mode = "well"
    found = guarded.get(["a", "b", "c"]).entries
    assert list(found) == ["b", "c"]
    assert found["c"].verdict == "hallucinated"
    assert guarded.judgements() == (judgement,)


def test_a_report_is_kept_with_its_neighbours_and_an_audit_is_not(faulty, guarded):
    """Only what takes something back must not be lost."""
    for name in ("a", "b"):
        put_one(guarded, entry(name))
    wrong = Judgement(
        entry="a",
        value="one",
        verdict="wrong_hit",
        by="t",
        confidence=1.0,
        at=NOW,
        question="\ud800",
    )
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable, match="refused") as error:
        guarded.judge(replace(wrong, verdict="agreed"))
    assert "kept" not in str(error.value)
    assert guarded.pending == 0
    with pytest.raises(StoreUnavailable, match="kept"):
        guarded.judge(wrong, ["b"])
    faulty.mode = "well"
    found = guarded.get(["a", "b"]).entries
    assert found["a"].judged.barred == ("\ud800",)
    assert found["b"].judged.doubted


def test_a_rehearsal_is_not_kept(faulty, guarded):
    """It takes nothing back."""
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable):
        guarded.recall(Selector(entry="a"), now=NOW, dry_run=True)
    assert guarded.pending == 0


def test_without_an_outbox_the_caller_is_told_that_it_is_lost(faulty, guard):
    """Nothing is said of keeping."""
    guarded = guard(faulty)
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable) as met:
        guarded.recall(Selector(entry="a"), now=NOW)
    assert "kept" not in str(met.value)
    assert guarded.pending == 0


async def test_tasks_keep_and_apply_as_well(faulty, guarded):
    """The same promises for async callers."""
    put_one(guarded, entry())
    faulty.mode = OUT
    with pytest.raises(StoreUnavailable, match="kept"):
        await guarded.arecall(Selector(entry="a"), now=NOW)
    with pytest.raises(StoreUnavailable):
        await guarded.aget(["a"])
    faulty.mode = "well"
    assert (await guarded.aget(["a"])).entries == {}
    assert guarded.pending == 0


def test_a_store_that_hangs_keeps_nobody_waiting_for_the_outbox(faulty, guarded, clock):
    """Neither who recalls, nor who reads then."""
    put_one(guarded, entry())
    faulty.hang(guarded)
    recall_in_vain(guarded, entry="a")
    clock.advance(5)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            guarded.get(["a"])
    assert faulty.asked == 2
    faulty.let_go()
    clock.advance(5)
    for _ in range(100):
        try:
            found = guarded.get(["a"])
            break
        except StoreUnavailable:
            clock.advance(5)
    assert found.entries == {}


def test_notes_are_for_the_owner_s_eyes_only(path):
    """The directory 0700, the files 0600: a recall may name a tenant or a subject."""
    outbox = Outbox(path)
    outbox.keep(Note(selector=Selector(subject="someone"), now=NOW))
    (file,) = path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_notes_come_back_as_they_were_and_in_order(path):
    """Hostile texts included."""
    kept = [Note(selector=Selector(tag=text), now=NOW, cascade=False) for text in HOSTILE]
    kept += [Note(quarantine=quarantine(text, text, "b", text=text)) for text in HOSTILE]
    for note in kept:
        Outbox(path).keep(note)
    outbox = Outbox(path)
    assert [note for _, note in outbox.notes()] == kept
    assert len(outbox) == len(kept)
    for name, _ in outbox.notes():
        outbox.done(name)
        outbox.done(name)  # another process was faster
    assert not outbox.waiting()


def test_a_note_half_written_is_none(path, monkeypatch):
    """Nobody was told that it is kept: neither where the disk is full, nor after a crash."""
    outbox = Outbox(path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailable, match="No space left"):
        outbox.keep(Note(selector=Selector(entry="a"), now=NOW))
    assert list(path.iterdir()) == []
    (path / ".00000000001").write_text('{"note"')
    assert not outbox.waiting()
    assert outbox.notes() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: "",
        lambda text: text.replace("secret", "public"),
        lambda text: "[]",
        lambda text: "\u00e9",
    ],
)
def test_a_damaged_note_lets_nothing_be_read(faulty, guarded, path, change):
    """What it takes back is not known; the error names the file."""
    guarded._outbox.keep(Note(selector=Selector(tag="secret"), now=NOW))
    (file,) = path.iterdir()
    file.write_text(change(file.read_text()), encoding="utf-8")
    with pytest.raises(StoreError, match=file.name):
        guarded.get(["a"])
    file.unlink()
    guarded.get(["a"])


def test_an_outbox_that_is_gone_lets_nothing_be_read(guarded, path):
    """Nobody knows what it held."""
    path.rmdir()
    with pytest.raises(StoreUnavailable, match="check the directory"):
        guarded.get(["a"])
    path.write_text("a file")
    with pytest.raises(StoreUnavailable, match="check the directory"):
        Outbox(path)
