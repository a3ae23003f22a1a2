"""Frames give true edges: what was read before, in this frame or above, and nothing else."""

import asyncio
import contextvars
import threading

import pytest

import stemma
from stemma import Frame, Source, frames
from stemma.lineage.frames import MAX_READS, Read


class Ledger:
    def __init__(self, sequence: int = 0) -> None:
        self.sequence = sequence
        self.number = -1 - len(NUMBERS)
        NUMBERS.append(self.number)


NUMBERS: list[int] = []
LEDGER = Ledger()
ME = LEDGER.number


def entry(name: str, text: str = "", at: int = 1, ledger: int = ME) -> Read:
    return Read("entry", name, {ledger: at}, value=f"v-{name}", said=text)


def parents(frame: Frame, *prompt: str, own: str = "") -> dict[str, str]:
    traced = frame.trace(ME, prompt, own)
    return {edge.parent: edge.known for edge in traced.lineage.parents}


def test_what_was_read_is_a_parent_and_found_text_makes_it_observed():
    frame = Frame()
    frame.read(entry("a", "forty-two"))
    frame.read(entry("b", "something else"))
    assert parents(frame, "the answer is forty-two") == {"a": "observed", "b": "ambient"}


def test_a_read_counts_once_and_the_value_is_not_its_own_parent():
    frame = Frame()
    frame.read(entry("a"))
    frame.read(entry("a"))
    assert parents(frame) == {"a": "ambient"}
    assert parents(frame, own="a") == {}


def test_entries_of_another_cache_are_no_parents():
    frame = Frame()
    frame.read(entry("foreign", ledger=ME + 1))
    assert parents(frame) == {}


def test_siblings_of_a_batch_never_see_each_other():
    above = Frame()
    above.read(entry("before"))
    one, two = (Frame(above, exports=True, batch="b") for _ in range(2))
    one.read(entry("one"))
    one.close()
    late = Frame(above, exports=True, batch="b")
    assert set(parents(two)) == {"before"}
    assert set(parents(late)) == {"before"}
    assert set(parents(above)) == {"before", "one"}


def test_a_nested_run_passes_on_what_it_read_when_it_ends():
    above = Frame()
    first = Frame(above, exports=True)
    first.read(entry("document"))
    first.close()
    second = Frame(above, exports=True)
    assert set(parents(second)) == {"document"}


def test_what_a_parent_reads_after_a_sub_frame_was_opened_is_not_seen_in_it():
    above = Frame()
    below = Frame(above)
    above.read(entry("later"))
    assert parents(below) == {}


def test_a_siblings_read_is_observed_only_by_its_text():
    above = Frame()
    one = Frame(above, batch="b")
    one.read(entry("long", "a text of more than sixteen characters"))
    one.read(entry("short", "yes"))
    two = Frame(above, batch="b")
    assert parents(two, "yes: a text of more than sixteen characters") == {"long": "observed"}


def test_a_sibling_that_came_to_say_the_same_is_no_parent():
    above = Frame()
    one = Frame(above, batch="b")
    one.read(entry("same", "the very same words of an answer"))
    two = Frame(above, batch="b")
    traced = two.trace(ME, ["a question"], "own", "the very same words of an answer")
    assert not traced.lineage


def test_a_chunk_seen_twice_keeps_the_source_that_an_index_vouches_for():
    frame = Frame()
    bare = Source(document="d", chunk="c", content="h")
    vouched = Source(document="d", chunk="c", content="h", index="docs")
    for source in (bare, vouched, bare):
        frame.read_sources([(source, "chunk text")], {ME: 3})
    (edge,) = frame.trace(ME, ["the chunk text is here"], "").lineage.sources
    assert edge.source == vouched
    assert edge.known == "observed"


def test_each_element_carries_the_sequence_at_which_it_was_read_first():
    frame = Frame()
    frame.read(entry("a", at=5))
    frame.read_sources([(Source(document="d", chunk="c", content="h"), "")], {ME: 7})
    frame.read_sources([(Source(document="d", chunk="c2", content="h"), "")], {})
    assert frame.trace(ME, [], "").read_at == {"a": 5, "c": 7, "c2": 0}


def test_a_frame_that_read_too_much_says_so():
    frame = Frame()
    for number in range(MAX_READS + 2):
        frame.read(entry(str(number)))
    assert not frame.trace(ME, [], "").complete


def test_closed_frames_are_never_current():
    outer = Frame()
    with frames.within(outer):
        inner = Frame(outer, exports=True)
        frames.enter(inner)
        assert frames.current() is inner
        inner.close()
        assert frames.current() is outer
        outer.close()
        assert frames.current() is None
    assert frames.current() is None


def test_a_thousand_nested_frames_see_all_above_them():
    frame = Frame()
    for number in range(1000):
        frame.read(entry(str(number)))
        frame = Frame(frame, exports=True)
    assert len(parents(frame)) == 1000


def test_threads_with_a_copied_context_share_the_frame():
    frame = Frame()
    with frames.within(frame):
        copied = [contextvars.copy_context() for _ in range(64)]

    def work(number: int) -> None:
        current = frames.current()
        assert current is not None
        current.read(entry(str(number)))

    threads = [
        threading.Thread(target=context.run, args=(work, number))
        for number, context in enumerate(copied)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(parents(frame)) == 64


async def test_a_thousand_tasks_keep_their_own_frames():
    async def work(number: int) -> set[str]:
        with frames.entered(Frame()) as frame:
            frame.read(entry(str(number)))
            await asyncio.sleep(0)
            assert frames.current() is frame
            return set(parents(frame))

    found = await asyncio.gather(*(work(number) for number in range(1000)))
    assert found == [{str(number)} for number in range(1000)]


def test_spending_counts_in_every_frame_above():
    above = Frame()
    below = Frame(above)
    below.spend(10, 0.5)
    assert (above.spent.tokens, above.spent.seconds) == (10, 0.5)


def test_marks_are_taken_from_every_live_ledger():
    ledger = Ledger(sequence=9)
    frames.register(ledger)
    assert frames.marks()[ledger.number] == 9
    ledger.sequence = 11
    assert Frame().began[ledger.number] == 11


@pytest.mark.parametrize("exports", [True, False])
def test_closing_twice_passes_on_once(exports):
    above = Frame()
    below = Frame(above, exports=exports)
    below.read(entry("x"))
    below.close()
    below.close()
    assert len(above.reads) == int(exports)


async def test_a_stream_that_is_closed_in_another_task_closes_its_hop():
    """As event loops do with one that nobody read to its end."""
    with stemma.open(":memory:", tenant="me", embedder=None) as cache:
        opened = []

        async def stream():
            with cache.trace(), cache.hop("open") as frame:
                opened.append(frame)
                yield 1
                raise AssertionError("nobody asks for more")

        begun = stream()
        assert await anext(begun) == 1
        await asyncio.create_task(begun.aclose())
        cache.hops.get_or_compute("later", lambda: 1)
    assert opened[0].closed
