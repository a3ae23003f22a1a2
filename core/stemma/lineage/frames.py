"""Frames: the spans in which what is read becomes a parent of what is stored later.

A frame is a mutable object opened above the steps of a run, so that steps in copied contexts,
threads and parallel branches all see the same one. Sub-frames (a hop, an item of a batch, a root
run inside a trace) see what their ancestors had read when they were opened, and never what a
sibling of the same batch reads.

A read carries, for every live store, the sequence number that was known when the read *began*:
a put whose lineage holds something recalled after that is refused.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, Protocol

from stemma import forking
from stemma.entry import Cost, Edge, Known, Lineage, Source, SourceEdge, arrivals
from stemma.errors import HopLimit
from stemma.lineage.chains import Chain
from stemma.lineage.paths import START, Path, Step, joined
from stemma.worlds import Moment

__all__ = [
    "Frame",
    "Ledger",
    "Read",
    "Traced",
    "current",
    "enter",
    "entered",
    "inside",
    "lane",
    "marks",
    "register",
    "within",
]

MAX_READS = 10_000
"""A frame that read more than this stores nothing: its lineage would not be true."""

MIN_OBSERVED = 16
"""A read of a sibling counts as observed only if its text has at least this many characters."""


class Ledger(Protocol):
    """Something with a sequence number: an engine over a store.

    `number` is one that no other ledger of the process ever has.
    """

    number: int
    sequence: int


_ledgers: tuple[weakref.ref[Ledger], ...] = ()  # replaced as a whole: it is read without a lock
_registering = forking.Lock()
_arriving = forking.Lock()  # one for all: it is held for the length of a digest, as hops end


def register(ledger: Ledger) -> None:
    """Make a ledger's sequence number part of every later read."""
    global _ledgers  # noqa: PLW0603 - one list for the process, as frames are the process's
    with _registering:
        alive = tuple(reference for reference in _ledgers if reference() is not None)
        _ledgers = (*alive, weakref.ref(ledger))


def marks() -> dict[int, int]:
    """The sequence numbers known now, by ledger. Take them before reading anything outside."""
    alive = [ledger for reference in _ledgers if (ledger := reference()) is not None]
    return {ledger.number: ledger.sequence for ledger in alive}


# Not frozen: one is made at every hit, and freezing triples what that costs.
@dataclass(slots=True, eq=False)
class Read:
    """Something read in a frame: an entry of one ledger, or a source.

    Args:
        kind: Which of the two.
        id: The entry's id, or the chunk's.
        marks: By ledger, the sequence number known when the reading began.
        source: The source, if it is one.
        value: The entry's value hash.
        said: Its text, by which it is recognised in later prompts, or what gives that text.
        batch: What it has in common with others that do not see it.
    """

    kind: Literal["entry", "source"]
    id: str
    marks: Mapping[int, int]
    source: Source | None = None
    value: str = ""
    said: str | Callable[[], str] = field(default="", repr=False)
    batch: Hashable | None = None

    @property
    def text(self) -> str:
        """Its text; worked out only when it is looked for."""
        if not isinstance(self.said, str):
            self.said = self.said()
        return self.said

    def identity(self) -> Hashable:
        """What makes two reads the same."""
        return (self.kind, self.id, self.value, self.source)


@dataclass(frozen=True, slots=True)
class Traced:
    """A lineage, with the sequence number at which each element of it was read."""

    lineage: Lineage
    read_at: Mapping[str, int]
    complete: bool = True


def lane() -> tuple[int, int]:
    """Where code runs: its thread and its task. Sequential steps share a lane."""
    asyncio = sys.modules.get("asyncio")  # what has not been loaded runs no task
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:
        task = None
    return threading.get_ident(), id(task) if task is not None else 0


class Frame:
    """One span. See the module's text.

    Args:
        parent: The frame above, if this is a sub-frame.
        exports: Whether what it read is passed to the frame above when it closes.
        batch: If it is an item among concurrent siblings, what they have in common.
        tenant: The tenant that the run itself names.
        hop: The hop's number, where the frame is one.
        of_run: Whether a framework's run opened it, rather than the user's own code.
        name: The hop's name, where the frame is one.
        intent: What the agent is after, in words; by default as in the frame above.
        chain: What its hops share with others; by default the chain of the frame above, or one
            beside it where they do not see what their siblings do.
        alone: Whether what is stored here is built on nothing that was read before.

    Other fields: `focus` is the run's question, where it has one; `path` is where the hops so far
    have led; `steps` are what was matched or computed in this frame; `reached` is the number of
    the last hop that ended in it; `depth` is how many hops it lies in; `taken` are the hits by
    meaning in it that may be wrong; `moments` are those of private worlds that were read in it;
    `spent` is what model calls in it have cost; `began` are the sequence numbers known when it was
    opened.
    """

    __slots__ = (
        "__weakref__",
        "_fork",
        "_seen",
        "_start",
        "alone",
        "batch",
        "began",
        "chain",
        "closed",
        "depth",
        "exports",
        "focus",
        "hop",
        "intent",
        "lane",
        "limit",
        "moments",
        "name",
        "of_run",
        "parent",
        "path",
        "reached",
        "reads",
        "root",
        "spent",
        "steps",
        "taken",
        "tenant",
        "tree",
    )

    def __init__(
        self,
        parent: Frame | None = None,
        *,
        exports: bool = False,
        batch: Hashable | None = None,
        tenant: str | None = None,
        hop: int | None = None,
        of_run: bool = False,
        name: str | None = None,
        intent: str | None = None,
        chain: Chain | None = None,
        alone: bool = False,
    ) -> None:
        self.parent = parent
        self.root: Frame = self if parent is None else parent.root
        self.exports = exports
        self.batch = batch
        self.tenant: str | None = parent.tenant if parent and tenant is None else tenant
        self.hop: int | None = parent.hop if parent and hop is None else hop
        self.name = name
        self.path: Path = START if parent is None else parent.reach(hop=name is not None)
        self._start = self.path
        self._fork: tuple[Path, tuple[Path, ...]] = (self.path, ())
        self.reached: int = 0 if parent is None else parent.reached
        self.steps: list[Step] = []
        self.taken: set[str] = set()
        self.moments: set[Moment] = set()
        self.chain = (
            chain if chain is not None else self._chain(beside=of_run and batch is not None)
        )
        self.alone = alone
        self.depth: int = (0 if parent is None else parent.depth) + (name is not None)
        if self.depth > self.chain.nested:
            raise HopLimit(
                f"more than {self.chain.nested} hops are nested; an agent that calls itself needs "
                "an end, or say cache.trace(nested=…)"
            )
        self.intent: str | None = parent.intent if parent and intent is None else intent
        if intent is not None and self.chain.goal is None:
            self.chain.goal = intent
        self.focus: str | None = None if parent is None else parent.focus
        self.limit = 0 if parent is None else len(parent.reads)
        self.reads: list[Read] = []
        self.tree: list[Read] = []
        self.spent = Cost()
        self.closed = False
        self.of_run = of_run
        self.began = marks()
        self.lane = lane()
        self._seen: set[Hashable] = set()

    def read(self, item: Read) -> None:
        """Note something that was read. Noting it twice counts once."""
        identity = item.identity()
        if identity in self._seen or len(self.reads) > MAX_READS:
            return
        self._seen.add(identity)
        self.reads.append(item)
        if len(self.root.tree) <= MAX_READS:
            self.root.tree.append(item)

    def read_sources(
        self,
        sources: Iterable[tuple[Source, str]],
        read_at: Mapping[int, int],
        *,
        unless_known: bool = False,
    ) -> None:
        """Note documents that came from outside the cache, each with its text.

        Args:
            sources: The documents as sources, with their texts.
            read_at: The sequence numbers known before they were read.
            unless_known: Only those of whose chunks nothing was noted: who noted them knew more.
        """
        noted = (read.source for read in self.visible()) if unless_known else ()
        known = {(source.chunk, source.content) for source in noted if source is not None}
        for source, text in sources:
            if (source.chunk, source.content) not in known:
                self.read(Read("source", source.chunk, read_at, source=source, said=text))

    def read_unstored(self, index: str, read_at: Mapping[int, int]) -> None:
        """Note a retrieval of which no entry tells what was looked for in the index.

        Whatever comes into it concerns what is built here.
        """
        name = arrivals(index)
        self.read_sources([(Source(document=name, chunk=name, content=""), "")], read_at)

    def spend(self, tokens: int, seconds: float = 0.0) -> None:
        """Note what a model call in this frame cost, here and in the frames above."""
        frame: Frame | None = self
        while frame is not None:
            spent = frame.spent
            frame.spent = Cost(tokens=spent.tokens + tokens, seconds=spent.seconds + seconds)
            frame = frame.parent

    def _chain(self, *, beside: bool) -> Chain:
        if self.parent is None:
            return Chain()
        return self.parent.chain if self.exports and not beside else Chain(beside=self.parent.chain)

    def aim(self) -> tuple[str | None, str | None]:
        """What the agent is after here, and what its run was begun for; `None`: not known."""
        live = self.intent if self.intent is not None else self.focus
        goals = (self.chain.goal, self.root.focus, live)
        return live, next((goal for goal in goals if goal is not None), None)

    def close(self) -> None:
        """End the span. Its reads join the frame above if it exports them."""
        if self.closed:
            return
        self.closed = True
        if not self.exports or self.parent is None:
            return
        for item in list(self.reads):
            self.parent.read(item if self.batch is None else _of_batch(item, self.batch))
        self.parent.taken |= self.taken
        self.parent.moments |= self.moments
        if self.chain is not self.parent.chain:
            self.parent.chain.absorb(self.chain)
        if not self.alone:
            self._arrive(self.parent)

    def reach(self, *, hop: bool) -> Path:
        """Where a frame begins that is opened here: before a hop lies what was matched here."""
        with _arriving:
            if hop and self.steps:
                self.path = self.path.after(self.name if self.name is not None else "", self.steps)
                self.steps = []
            return self.path

    def _arrive(self, above: Frame) -> None:
        """Lead the frame above on to where this one has ended."""
        with _arriving:
            if self.name is not None:
                self.path = self.path.after(self.name, self.steps)
                above.reached = max(above.reached, self.hop if self.hop is not None else 0)
            else:
                above.steps += self.steps
            above.reached = max(above.reached, self.reached)
            if self.path == self._start:
                return
            if self._start == above.path:
                above._fork = (self._start, (self.path,))
            elif self._start == above._fork[0]:  # a branch beside those that ended before
                above._fork = (self._start, (*above._fork[1], self.path))
            else:
                above._fork = (self._start, (above.path, self.path))
            above.path = joined(*above._fork)

    def visible(self) -> Iterator[Read]:
        """What becomes an ambient parent of a put made here."""
        yield from self.reads
        child, above = self, self.parent
        while above is not None and not child.alone:
            for item in above.reads[: child.limit]:
                if not _apart(item.batch, child.batch):
                    yield item
            child, above = above, above.parent

    def worldly(self) -> Iterator[Moment]:
        """What of private worlds becomes a part of a put made here."""
        frame: Frame | None = self
        while frame is not None:
            yield from tuple(frame.moments)
            frame = None if frame.alone else frame.parent

    def source_texts(self) -> Iterator[str]:
        """The texts of the documents among what is visible."""
        return (read.text for read in self.visible() if read.kind == "source")

    def trace(self, ledger: int, prompt: Iterable[str], own: str, said: str = "") -> Traced:
        """The lineage of a value stored now in one ledger.

        Args:
            ledger: The number of the ledger that stores.
            prompt: Texts in which reads are recognised; those found are observed edges.
            own: The id of the entry to be stored, which is not its own parent.
            said: The value's own text: what was read before and is passed on in it is observed,
                too; but a sibling that came to say the same is no parent by that.
        """
        asked = tuple(prompt)
        texts = (*asked, said)
        builder = _Builder(ledger, own)
        for item in list(self.visible()):
            builder.add(item, "observed" if _occurs(item.text, texts, 1) else "ambient")
        for item in list(self.root.tree):
            if not builder.knows(item) and _occurs(item.text, asked, MIN_OBSERVED):
                builder.add(item, "observed")
        complete = max(len(self.reads), len(self.root.tree)) <= MAX_READS
        return builder.done(complete=complete)


def _apart(one: Hashable | None, other: Hashable | None) -> bool:
    """Whether two belong to siblings that run side by side.

    Siblings known by their tasks, as `("task", what they have in common, the task)`, are apart
    only in different tasks: what one task awaits, it awaits one after the other.
    """
    if one is None or other is None:
        return False
    if isinstance(one, tuple) and isinstance(other, tuple) and one[:1] == other[:1] == ("task",):
        return bool(one[1] == other[1] and one[2] != other[2])
    return one == other


def _of_batch(item: Read, batch: Hashable) -> Read:
    return Read(item.kind, item.id, item.marks, item.source, item.value, item.said, batch)


def _occurs(text: str, prompt: tuple[str, ...], least: int) -> bool:
    return len(text) >= least and any(text in one for one in prompt)


def _chunk(source: Source) -> tuple[str, str, str]:
    return source.document, source.chunk, source.content


class _Builder:
    """Collects edges; an observed one replaces an ambient one of the same element."""

    def __init__(self, ledger: int, own: str) -> None:
        self._ledger = ledger
        self._own = own
        self._parents: dict[tuple[str, str], Edge] = {}
        self._sources: dict[tuple[str, str, str], SourceEdge] = {}
        self._read_at: dict[str, int] = {}

    def knows(self, item: Read) -> bool:
        if item.source is not None:
            return _chunk(item.source) in self._sources
        return (item.id, item.value) in self._parents

    def add(self, item: Read, known: Known) -> None:
        mark = item.marks.get(self._ledger)
        if item.source is not None:
            self._add_source(item.source, known)
        elif mark is None or item.id == self._own:
            return  # an entry of another ledger, or the value's own former self
        else:
            edge = self._parents.get((item.id, item.value))
            if edge is None or known == "observed":
                edge = Edge(parent=item.id, value=item.value, known=known)
                self._parents[item.id, item.value] = edge
        # A source read before this ledger was opened carries no mark of it: nothing that was
        # recalled since can be told from what was recalled before, so all of it counts.
        at = 0 if mark is None else mark
        self._read_at[item.id] = min(at, self._read_at.get(item.id, at))

    def _add_source(self, source: Source, known: Known) -> None:
        held = self._sources.get(_chunk(source))
        if held is not None:
            # The same chunk, seen on its way from the index: what the index vouches for stands.
            source = held.source if held.source.index else source
            known = held.known if held.known == "observed" else known
        self._sources[_chunk(source)] = SourceEdge(source=source, known=known)

    def done(self, *, complete: bool) -> Traced:
        lineage = Lineage(
            parents=tuple(self._parents.values()), sources=tuple(self._sources.values())
        )
        return Traced(lineage, self._read_at, complete)


_current: ContextVar[Frame | None] = ContextVar("stemma_frame", default=None)


def current() -> Frame | None:
    """The innermost frame that is still open, or `None`."""
    frame = _current.get()
    while frame is not None and frame.closed:
        frame = frame.parent
    return frame


def enter(frame: Frame | None) -> None:
    """Make a frame the current one for what follows in this context (it ends by being closed)."""
    _current.set(frame)


def inside(frame: Frame) -> Frame:
    """The innermost hop that the user's own code has open inside a run's frame, or the frame."""
    found: Frame | None = None
    one = current()
    while one is not None and one is not frame:
        if found is None and not one.of_run:
            found = one
        one = one.parent
    return frame if one is None or found is None else found


@contextmanager
def within(frame: Frame) -> Iterator[Frame]:
    """Make a frame the current one until the block ends; it stays open."""
    token = _current.set(frame)
    try:
        yield frame
    finally:
        # A generator may be closed in another context than the one in which it was begun.
        with suppress(ValueError):
            _current.reset(token)


@contextmanager
def entered(frame: Frame) -> Iterator[Frame]:
    """Make a frame the current one until the block ends, then close it."""
    try:
        with within(frame):
            yield frame
    finally:
        frame.close()
