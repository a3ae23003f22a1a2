"""An error at the n-th call to the file system, for every n until a whole run passes.

A fixed history is done on the store, and another through a cache that fails open. Whatever fails,
only errors of ours come of it, none through the cache, and no answer is wrong; with the fault
gone the same store goes on, and so does the ordinary one on the same file: what was acknowledged
is there, what was recalled is not.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import stemma
from evals.reliability import Outcome
from evals.reliability.faults import KINDS, Failing, Fault
from evals.reliability.shim import connecting
from stemma.entry import Entry
from stemma.errors import StoreError
from stemma.outcome import Hit
from stemma.selector import Selector
from stemma.stores.protocol import Count, Judgement, Serving
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put, source, vector

__all__ = ["run", "through_a_cache", "through_the_store"]

_PROMISES = (
    "errors that are not ours",
    "errors that came through the cache",
    "wrong answers",
    "acknowledged entries lost",
    "recalled entries found",
    "sound files set aside",
    "stores that did not go on afterwards",
    "damage found",
)


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """Try every kind of fault at every call, or at some."""
    tried: Counter[str] = Counter()
    wrong = Counter(dict.fromkeys(_PROMISES, 0))
    lucky = random.Random(seed)
    every = max(1, round(1 / size))
    trials = (through_the_store, through_a_cache)
    with Failing("failing") as system, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file that was half made is set aside
        for trial, kind, stays in itertools.product(trials, KINDS, (False, True)):
            for at in itertools.count(1 + lucky.randrange(every), every):
                fault = Fault(kind=kind, at=at, stays=stays)
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    wrong.update(trial(Path(place) / "cache.db", system, fault))
                if system.met < at:
                    break
                tried[f"{kind}, {'for good' if stays else 'once'}"] += 1
    return Outcome(tried=tried, violations=wrong)


def through_the_store(path: Path, system: Failing, fault: Fault) -> Iterator[str]:
    """The history of a store: opened, written, read, taken back from, judged, closed."""
    caller = _Caller()
    connect = connecting(system.name)
    store = None
    system.begin(fault)
    try:
        store = SqliteStore(path, connect=connect)
        for act in caller.acts(store):
            with suppress(StoreError):
                act()
        if system.met < fault.at:  # else it is this store that must go on
            store.close()
            store = None
    except StoreError:
        pass  # it could not be opened
    except Exception:
        yield "errors that are not ours"
    system.fault = None
    yield from caller.wrong
    made = bool(caller.stored or caller.gone)
    try:
        store = SqliteStore(path, connect=connect) if store is None else store
        yield from caller.found(store)
        caller.put(store, "afterwards")
        yield from _checked(store)
        store.close()
        store = SqliteStore(path)  # on the ordinary file system
        yield from caller.found(store)
        yield from _checked(store)
        store.close()
    except Exception:
        yield "stores that did not go on afterwards"
    if made:
        yield from _set_aside(path)


class _Caller:
    """Who uses a store, and knows what was acknowledged.

    Attributes:
        stored: The entries that are there.
        gone: The names of those that are not there any more.
        unsure: The names of those about which an error left it open.
        wrong: What was wrong while it was used.
    """

    def __init__(self) -> None:
        self.stored: dict[str, Entry] = {}
        self.gone: set[str] = set()
        self.unsure: set[str] = set()
        self.wrong: list[str] = []

    def acts(self, store: SqliteStore) -> Iterator[Callable[[], object]]:
        """The history, act by act."""
        yield lambda: self.put(store, "a")
        yield lambda: self.put(store, "b", parent="a")
        yield lambda: self.put(store, "c", "d", "e")
        yield lambda: self.read(store)
        yield lambda: self.judge(store, "c")
        yield lambda: self.recall(store, "a")
        yield lambda: self.read(store)
        yield lambda: self.journal(store)
        yield lambda: self.put(store, "a")
        yield lambda: self.remove(store, "d")
        yield lambda: store.changes(0)
        yield lambda: store.find(Selector(tenant="acme"))
        yield lambda: self.read(store)

    def put(self, store: SqliteStore, *names: str, parent: str | None = None) -> None:
        """Store some entries in one transaction."""
        since = store.sequence()
        puts = [
            put(
                entry(name, payload=name.encode() * 3_000),
                since=since,
                parents=[one for key, one in self.stored.items() if key == parent],
                sources=[source(chunk=name)],
                vector=vector(1, 0),
            )
            for name in names
        ]
        self.unsure.update(names)
        for stored in store.put(puts, NOW):
            if stored.entry is not None:
                self.stored[stored.entry.id] = stored.entry
                self.gone.discard(stored.entry.id)
        self.unsure.difference_update(names)

    def recall(self, store: SqliteStore, name: str) -> None:
        """Take an entry back, and what was built on it."""
        self.unsure.update(self.stored)
        receipt = store.recall(Selector(entry=name), now=NOW)
        self.unsure.difference_update(self.stored)
        self._go([one.entry for one in receipt.entries])

    def remove(self, store: SqliteStore, name: str) -> None:
        """Remove an entry."""
        self.unsure.add(name)
        store.remove([name])
        self.unsure.discard(name)
        self._go([name])

    def judge(self, store: SqliteStore, name: str) -> None:
        """Say that an entry is right."""
        self.unsure.add(name)
        judgement = Judgement(
            entry=name, value="one", verdict="supported", by="ann", confidence=1.0, at=NOW
        )
        judged = store.judge(judgement)
        self.unsure.discard(name)
        if judged is not None:
            self.stored[name] = judged

    def journal(self, store: SqliteStore) -> None:
        """Journal a serving."""
        serving = Serving(entry="c", tenant="acme", tier="exact", similarity=1.0, at=NOW)
        count = Count(tenant="acme", node="answer", outcome="exact", lookups=1)
        store.journal([serving], [count])

    def read(self, store: SqliteStore) -> None:
        """Read all entries, and note what is wrong."""
        self.wrong += self.found(store)

    def found(self, store: SqliteStore) -> Iterator[str]:
        """What a store that works must not say."""
        fetched = store.get([*self.stored, *self.gone])
        if fetched.damaged:
            yield "damage found"
        for name in {*self.stored, *self.gone} - self.unsure:
            one = fetched.entries.get(name)
            if one is not None and name in self.gone:
                yield "recalled entries found"
            elif one is None and name in self.stored:
                yield "acknowledged entries lost"
            elif one != self.stored.get(name):
                yield "wrong answers"

    def _go(self, names: list[str]) -> None:
        for name in names:
            self.stored.pop(name, None)
            self.gone.add(name)


QUESTIONS = ("colour of madder", "height of Ararat", "taste of quince", "year of Lepanto")
"""Asked before anything fails."""

MORE = ("width of Bosporus", "weight of a swan")
"""Asked while something does."""


def through_a_cache(path: Path, system: Failing, fault: Fault) -> Iterator[str]:
    """The history of a cache: asked, taken back from, asked again."""
    truth = {question: f"the {question}" for question in QUESTIONS + MORE}
    cache = _opened(SqliteStore(path, connect=connecting(system.name)))
    for question in QUESTIONS:
        _ask(cache, question, truth)
    first = cache.answers.lookup(QUESTIONS[0])
    assert isinstance(first, Hit)
    system.begin(fault)
    yield from _asked(cache, QUESTIONS + MORE, truth)
    try:
        cache.recall(entry=first.entry.id)
        truth[QUESTIONS[0]] = "another answer"
    except StoreError:
        pass  # it may have been taken back or not, and the answer has not changed
    except Exception:
        yield "errors that are not ours"
    yield from _asked(cache, QUESTIONS + MORE, truth)
    system.fault = None
    for again in (cache, SqliteStore(path)):
        try:
            if isinstance(again, SqliteStore):
                cache.close()
                cache = _opened(again)
            for question in QUESTIONS[1:]:
                hit = cache.answers.lookup(question)
                if not hit.hit or hit.value != truth[question]:
                    yield "acknowledged entries lost"
            yield from _asked(cache, QUESTIONS + MORE, truth)
            if not all(cache.answers.lookup(question).hit for question in truth):
                yield "stores that did not go on afterwards"
            yield from _checked(cache)
        except Exception:
            yield "stores that did not go on afterwards"
    cache.close()
    yield from _set_aside(path)


def _opened(store: SqliteStore) -> stemma.Cache:
    return stemma.open(store, tenant="acme", embedder="hashing", fail="open")


def _ask(cache: stemma.Cache, question: str, truth: Mapping[str, str]) -> object:
    return cache.answers.get_or_compute(question, lambda: truth[question]).value


def _asked(
    cache: stemma.Cache, questions: Sequence[str], truth: Mapping[str, str]
) -> Iterator[str]:
    """Ask, and say what went wrong."""
    for question in questions:
        try:
            if _ask(cache, question, truth) != truth[question]:
                yield "wrong answers"
        except Exception:
            yield "errors that came through the cache"


def _set_aside(path: Path) -> Iterator[str]:
    if any(path.parent.glob("*-damaged-*")):
        yield "sound files set aside"


def _checked(store: SqliteStore | stemma.Cache) -> Iterator[str]:
    if store.check():
        yield "damage found"
