"""The cache as users hold it: everything on what `stemma.open(…)` gives back."""

from __future__ import annotations

import itertools
import secrets
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from stemma.around import Around
from stemma.arrivals import Arrivals
from stemma.clock import SystemClock
from stemma.effects import arun, run
from stemma.engine import Engine
from stemma.errors import StoreError, StoreUnavailable, UsageError
from stemma.events import Event, Listener
from stemma.indexes.bits import BitsIndex
from stemma.isolation import Isolation, isolation
from stemma.lineage.tree import FamilyTree, family_tree
from stemma.nodes.answer import answer
from stemma.nodes.call import call
from stemma.nodes.embedding_cache import EmbeddingCache
from stemma.nodes.hop import hop
from stemma.nodes.node import NodeCache
from stemma.nodes.rerank import RerankCache
from stemma.nodes.retrieval import retrieval
from stemma.options import (
    Options,
    embedder_of,
    leases_of,
    must_leave_doubts,
    policy_of,
    store_of,
)
from stemma.outcome import Hit, Recall
from stemma.parts import Parts
from stemma.pools import Pools
from stemma.reporters import Ledger, Reported
from stemma.reporting import Report, report
from stemma.saying import named
from stemma.spreading import Spreading
from stemma.stats import Stats, summed
from stemma.taking_back import take_back
from stemma.verdicts import Verdicts, verdicts

__all__ = ["Cache"]

_numbers = itertools.count(1)
_live: weakref.WeakValueDictionary[str, Cache] = weakref.WeakValueDictionary()


class Cache(Around, Spreading):
    """All node caches over one store. Made by `stemma.open`; a context manager.

    Args:
        options: What `stemma.open` was given.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options, next(_numbers))
        chosen = embedder_of(options.embedder)
        policy = policy_of(options.policy, options.max_error, chosen.embedder)
        if options.grey is not None:
            must_leave_doubts(policy)
        store = store_of(options.url, durability=options.durability)
        parts = Parts(
            store=store,
            index=options.index if options.index is not None else BitsIndex(),
            embedder=chosen.embedder,
            policy=policy,
            life=options.life,
            clock=options.clock if options.clock is not None else SystemClock(),
            fail=options.fail,
            leases=leases_of(options.url),
            same_answer=options.same_answer,
            novelty=options.novelty,
            confidence=options.confidence,
            grey=options.grey,
            budget=options.budget,
            grounder=options.grounder,
            pools=options.pools,
        )
        try:
            parts.saw(store.sequence())
        except StoreError:
            if options.fail == "closed":
                raise  # else each call meets it, and goes on without the cache
        self.engine = Engine(parts)
        self._arrivals = Arrivals(parts)
        self.answers = NodeCache("answer", answer, self)
        self.calls = NodeCache("call", call, self)
        self.retrievals = NodeCache("retrieval", retrieval, self)
        self.hops = NodeCache("hop", hop, self)
        self.embeddings = EmbeddingCache(self)
        self.reranks = RerankCache(self)
        self.pools = Pools(parts, lambda: self.speaker)
        self._finalizer = weakref.finalize(self, _close, parts)
        self._name = secrets.token_hex(16)  # by which a pickle finds it again in its own process
        _live[self._name] = self
        if chosen.warning:
            warnings.warn(chosen.warning, stacklevel=3)

    # ----------------------------------------------------------- recall, sight

    def recall(self, *, dry_run: bool = False, **named: str) -> Recall:
        """Take back entries and everything built from them, over all nodes, hops and tenants.

        Args:
            dry_run: Only list what would go.
            **named: Any of `source` (a document or chunk id), `entry`, `tenant`, `tag`, `writer`,
                `model`, `subject`, `index`, `node`. Several must all hold for an entry to be
                named; what was built from it goes whatever it is.

        Raises:
            UsageError: Nothing is named, or something unknown.
            StoreError: The store could not do it. Nothing was taken back.
        """
        return run(take_back(self.engine.parts, named, dry_run=dry_run))

    async def arecall(self, *, dry_run: bool = False, **named: str) -> Recall:
        """As `recall`."""
        return await arun(take_back(self.engine.parts, named, dry_run=dry_run))

    def clear(self, **named: str) -> Recall:
        """Remove the entries named, and no others; what was built from them is no longer served.

        Args:
            **named: As for `recall`.
        """
        return run(take_back(self.engine.parts, named, cascade=False))

    async def aclear(self, **named: str) -> Recall:
        """As `clear`."""
        return await arun(take_back(self.engine.parts, named, cascade=False))

    def documents_changed(
        self,
        index: str,
        *,
        added: Sequence[object | None] = (),
        changed: Iterable[str] = (),
        removed: Iterable[str] = (),
    ) -> Recall:
        """Say that documents came into an index, changed or went, and take back what that spoils.

        Say it after the index itself has them, or has them no more. What was built on a chunk that
        changed or went is taken back, over all nodes, hops and tenants. So is every cached
        retrieval from the index that a new chunk would have come into, with what was built on it:
        told precisely for searches by similarity, conservatively for all others
        (`stemma.arrivals`). Faces that wrap a vector store or a docstore say it by themselves.

        Args:
            index: The index's identity, as its retrievals have it (`recall(index=…)`).
            added: For each new chunk its vector, in the index's own space, or `None` where it is
                not known: then every retrieval from the index is taken back. A chunk whose content
                changed is both `changed` and, with its new vector, `added`.
            changed: Ids of chunks or documents that have other contents now.
            removed: Ids of chunks or documents that are gone.

        Raises:
            UsageError: An argument is wrong.
            StoreError: The store could not do it. Not all was taken back: do it again.
        """
        return run(self._arrivals.note(index, added, changed, removed))

    async def adocuments_changed(
        self,
        index: str,
        *,
        added: Sequence[object | None] = (),
        changed: Iterable[str] = (),
        removed: Iterable[str] = (),
    ) -> Recall:
        """As `documents_changed`."""
        return await arun(self._arrivals.note(index, added, changed, removed))

    def report(
        self,
        entry: str | Hit | Mapping[str, Any],
        verdict: Reported,
        *,
        by: str,
        confidence: float = 1.0,
    ) -> Report:
        """Say that an entry's value is right or wrong, or that a hit was.

        `"hallucinated"`: the value is wrong. It is quarantined, and so is what was built on it,
        unless others said that it is right: reports are weighed (`stemma.verdicts`). Of what a pool
        holds, an operator's word counts as well where it was copied from, and where other tenants
        gave the same answer to the same, save where they had it from documents of their own.

        `"wrong_hit"`: the value was served to a question that it does not answer, however right it
        may be for its own. It is never served to that question again, whatever becomes of it, nor
        is that question's own answer to the entry's. It is quarantined until something speaks for
        it: a report that it is supported, or its own question computed afresh with the same
        outcome. And it, and what lies near it (a similarity of at least `stemma.reporting.NEAR`),
        is served by meaning only once an audit agreed.

        `"supported"`: the value is right; a quarantine ends where that outweighs what was said
        against it. `"unknown"` takes back what the same reporter said before.

        Inside `using(tenant=…)`, or in a run that names a tenant, it is that tenant's report, and
        else an operator's. A tenant reports its own entries, and of a pool those that it was
        served: these are not served to it any more, and to others where enough of them agree.

        Args:
            entry: The `Hit`, or the note of it that a face has attached to what it returned
                (`response_metadata["stemma"]`); save for `"wrong_hit"`, the entry's id will do.
            verdict: `"hallucinated"`, `"supported"`, `"unknown"` or `"wrong_hit"`.
            by: Who says so. Each counts with what they said last.
            confidence: How sure they are, 0 to 1.

        Raises:
            UsageError: There never was such an entry (a wrong hit is noted all the same), it is
                not the tenant's to report, or an argument is wrong.
            StoreError: The store could not do it; say it again.
        """
        return run(report(self.engine.parts, entry, verdict, by, confidence, tenant=self.speaker))

    async def areport(
        self,
        entry: str | Hit | Mapping[str, Any],
        verdict: Reported,
        *,
        by: str,
        confidence: float = 1.0,
    ) -> Report:
        """As `report`."""
        return await arun(
            report(self.engine.parts, entry, verdict, by, confidence, tenant=self.speaker)
        )

    def verdicts(self, entry: str) -> Verdicts:
        """What is known of an entry's truth: how likely it is wrong, and who said what.

        Raises:
            UsageError: Nothing was ever known of such an entry.
        """
        parts = self.engine.parts
        stored = parts.store.get([named("an entry", entry)]).entries.get(entry)
        said = Ledger(parts.store, parts.clock.now()).said(entry)
        if stored is None and not said and parts.store.lineage(entry) is None:
            raise UsageError(f"there is no entry {entry!r}")
        return verdicts(entry, said, stored)

    def lineage(self, entry: str) -> FamilyTree:
        """The family tree of an entry: prints as a tree, shows as a figure in Jupyter.

        Raises:
            UsageError: Nothing was ever known of such an entry.
        """
        tree = family_tree(self.engine.parts.store, named("an entry", entry))
        if tree is None:
            raise UsageError(f"there is no entry {entry!r}")
        return tree

    def stats(self) -> Stats:
        """What the cache has done so far, by tenant and node, over all processes."""
        parts = self.engine.parts
        parts.journal.flush()
        return summed(parts.store.counts(), parts.store.sizes())

    def isolation(self) -> Isolation:
        """How well tenants are kept apart: what was refused to cross, and what crossed in pools.

        Looks through all stored entries.
        """
        return isolation(self.engine.parts)

    def check(self) -> tuple[str, ...]:
        """Look for damage and contradictions, mend what can be mended, say what was found."""
        return self.engine.parts.store.check()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a listener called with every `Event`; the function returned takes it off again."""
        return self.engine.parts.listeners.add(listener)

    def warn(self, what: str) -> None:
        """Tell the listeners that something is not as its user will have meant it."""
        parts = self.engine.parts
        parts.listeners.tell(Event(kind="warning", at=parts.clock.now(), detail=what))

    # ------------------------------------------------------------ house-keeping

    @property
    def url(self) -> str:
        """Where the entries are."""
        return self.engine.parts.store.url

    def close(self) -> None:
        """Write the last statistics and release the store."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"stemma.open({self.url!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a handle: what is copied with it goes on using the same store

    def __reduce__(self) -> tuple[Callable[[str, Options], Cache], tuple[str, Options]]:
        return _reopened, (self._name, self._options)


def _close(parts: Parts) -> None:
    parts.hearing.close()
    parts.checking.close()
    parts.journal.close()
    end = getattr(parts.index, "close", None)
    if end is not None:
        end()
    if parts.leases is not None:
        parts.leases.close()
    parts.store.close()


def _reopened(name: str, options: Options) -> Cache:
    """The cache that was pickled: itself in the same process, else opened anew by its URL."""
    alive = _live.get(name)
    if alive is not None:
        return alive
    if not isinstance(options.url, (str, Path)) or str(options.url) == ":memory:":
        raise StoreUnavailable("a cache in memory cannot be carried to another process")
    return Cache(options)
