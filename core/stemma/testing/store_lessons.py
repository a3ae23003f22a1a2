"""What every store must do with what policies have learnt."""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from stemma.errors import StoreUnavailable
from stemma.stores.protocol import Lesson, Store
from stemma.testing.builders import HOSTILE, NOW

__all__ = ["LessonPromises", "lesson"]


def lesson(candidate: str = "a", tenant: str = "acme", **rest: Any) -> Lesson:
    """A lesson."""
    return Lesson(
        tenant=tenant,
        node=rest.pop("node", "answer"),
        state=rest.pop("state", "verified"),
        writer=rest.pop("writer", "w"),
        candidate=candidate,
        known=rest.pop("known", (1.0, -0.1, 1e-17, 3.0)),
        weight=rest.pop("weight", 20.0),
        right=rest.pop("right", True),
        by=rest.pop("by", "equal"),
        requests=rest.pop("requests", 7),
        at=rest.pop("at", NOW),
        **rest,
    )


def _unnumbered(lessons: tuple[Lesson, ...]) -> list[Lesson]:
    return [replace(one, number=0) for one in lessons]


class LessonPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    def test_lessons_come_back_whole_and_in_order(self, store: Store) -> None:
        """Those of a tenant and node, and of no other."""
        first, second, third = lesson("a"), lesson("b", right=False, weight=1.0), lesson("c")
        store.learn([first, lesson(tenant="other"), second])
        store.learn([lesson(node="call"), third])
        found = store.lessons("acme", "answer")
        assert _unnumbered(found) == [first, second, third]
        assert len(store.lessons("other", "answer")) == 1
        assert store.lessons("nobody", "answer") == ()

    def test_lessons_are_read_from_where_one_stopped(self, store: Store) -> None:
        """Numbers rise over all tenants; nothing new is no lesson."""
        store.learn([lesson("a"), lesson("b")])
        first, second = store.lessons("acme", "answer")
        assert 0 < first.number < second.number
        assert store.lessons("acme", "answer", after=second.number) == ()
        store.learn([lesson("c", "other")])
        store.learn([lesson("d")])
        (third,) = store.lessons("acme", "answer", after=second.number)
        assert (third.candidate, third.number > second.number) == ("d", True)

    def test_no_lessons_write_nothing(self, store: Store) -> None:
        """The store's sequence stands; with one, it rises, and the epoch does not."""
        before = store.get([])
        store.learn([])
        assert store.get([]).sequence == before.sequence
        store.learn([lesson()])
        after = store.get([])
        assert (after.sequence > before.sequence, after.epoch) == (True, before.epoch)

    def test_hostile_texts_learn_apart(self, store: Store) -> None:
        """Each tenant, node, state, writer, candidate and judge comes back as it was."""
        given = [lesson(t, t, node=t, state=t, writer=t, by=t) for t in HOSTILE]
        store.learn(given)
        for one in given:
            assert _unnumbered(store.lessons(one.tenant, one.node)) == [one]

    def test_threads_lose_no_lesson(self, store: Store) -> None:
        """Whoever reads on meanwhile has seen all of them in the end, each once."""

        def teach(thread: int) -> None:
            for number in range(15):
                store.learn([lesson(f"{thread}-{number}")])

        seen: list[Lesson] = []
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(teach, thread) for thread in range(4)]
            while True:
                done = all(one.done() for one in running)
                last = seen[-1].number if seen else 0
                seen += store.lessons("acme", "answer", after=last)
                if done:
                    break
        assert len({one.candidate for one in seen}) == len(seen) == 60

    def test_a_closed_store_learns_nothing(self, store: Store) -> None:
        """It says so."""
        store.close()
        with pytest.raises(StoreUnavailable):
            store.learn([lesson()])
        with pytest.raises(StoreUnavailable):
            store.lessons("acme", "answer")
