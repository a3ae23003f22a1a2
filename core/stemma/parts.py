"""What the operations of the engine work with, and how they tell what they did."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from stemma.checking import Checking
from stemma.clock import Clock
from stemma.comparing import Comparing
from stemma.embedders.protocol import Embedder
from stemma.entry import Cost, Entry
from stemma.errors import CacheFault, DamagedDatabase, StoreError
from stemma.events import Event, Kind, Listeners
from stemma.hearing import Hearing
from stemma.indexes.protocol import Index
from stemma.journal import Journal
from stemma.judges.band import GreyBand
from stemma.learnt import Policies
from stemma.lease import Leases
from stemma.lineage.chains import RISK
from stemma.lineage.frames import Frame, Read, register
from stemma.lineage.paths import Step
from stemma.policies.confidence import ConfidencePolicy
from stemma.policies.life import LifePolicy
from stemma.policies.novelty import Novelty
from stemma.policies.pools import PoolPolicy
from stemma.policies.same_answer import SameAnswer
from stemma.policies.threshold import Policy
from stemma.promoting import Promoting
from stemma.query import Query
from stemma.scope import Scope
from stemma.stores.protocol import Store
from stemma.trials import Trials
from stemma.unsettled import Unsettled

if TYPE_CHECKING:
    from stemma.grounding.grounded import Grounder

__all__ = ["Fail", "Parts", "kind_of"]

Fail = Literal["open", "closed"]

AGAIN = 60.0
"""Seconds after which a fault of the same kind is logged again."""

POOL = PoolPolicy()

_numbers = itertools.count(1)
_logger = logging.getLogger("stemma")


class Parts:
    """Store, index, embedder and policies of one cache, its listeners and its journal.

    `sequence` is the highest sequence number that any reply of the store has carried. Frames mark
    their reads with it; that it may lag behind the store only makes a put be refused more often.
    """

    def __init__(
        self,
        *,
        store: Store,
        index: Index,
        embedder: Embedder | None,
        policy: Policy,
        life: LifePolicy,
        clock: Clock,
        fail: Fail = "open",
        leases: Leases | None = None,
        same_answer: SameAnswer | None = None,
        novelty: Novelty | None = None,
        confidence: ConfidencePolicy | None = None,
        grey: GreyBand | None = None,
        budget: float = RISK,
        grounder: Grounder | None = None,
        pools: Mapping[str, PoolPolicy] = MappingProxyType({}),
    ) -> None:
        self.store = store
        self.index = index
        self.embedder = embedder
        self.policy = policy
        self.life = life
        self.clock = clock
        self.fail = fail
        self.leases = leases
        self.same_answer = SameAnswer() if same_answer is None else same_answer
        self.novelty = novelty
        self.confidence = ConfidencePolicy() if confidence is None else confidence
        self.trials = Trials()
        self.unsettled = Unsettled()
        self.hearing = Hearing(self, grey, self.same_answer)
        self.checking = Checking(self, grounder)
        self.budget = budget
        self.pools = pools
        self.comparing = Comparing(self)
        self.promoting = Promoting(self)
        self.listeners = Listeners()
        self.journal = Journal(store, lambda error: self.fault("journal", error))
        self.policies = Policies(
            policy,
            embedder=embedder,
            store=store,
            journal=self.journal,
            clock=clock,
            warn=lambda words: self.tell("warning", None, "policy", detail=words),
        )
        self.sequence = 0
        self._logged: dict[tuple[str, str], float] = {}
        self.number = next(_numbers)
        register(self)

    def saw(self, sequence: int) -> None:
        """Note a sequence number that the store has given."""
        self.sequence = max(self.sequence, sequence)

    def pool(self, name: str) -> PoolPolicy:
        """What a pool asks for; one that was not declared, what pools ask for by default."""
        return self.pools.get(name, POOL)

    def by_meaning(self, query: Query) -> bool:
        """Whether the focus of a question may be compared by meaning."""
        focus = query.request.focus
        return (
            self.embedder is not None
            and query.request.meaning
            and focus is not None
            and focus.strip() != ""
        )

    def join(
        self,
        frame: Frame | None,
        entry: Entry,
        sequence: int,
        said: str | Callable[[], str],
        how: str,
    ) -> None:
        """The entry was read (or made) in the frame: it is a parent of what follows."""
        if frame is None:
            return
        frame.read(Read("entry", entry.id, {self.number: sequence}, None, entry.value, said))
        if entry.walk is not None and entry.walk.intent is not None and frame.chain.origin is None:
            begun = entry.walk.origin if entry.walk.origin is not None else entry.walk.intent
            frame.chain.origin = begun.text
        if entry.node == "hop":
            frame.steps.append(Step(entry.id, how))

    def _log(self, where: str, words: str) -> None:
        """Log a fault, for who has no listener; the same kind of it once in a while."""
        now = self.clock.monotonic()
        kind = (where, words.partition(":")[0])
        if now >= self._logged.get(kind, -math.inf) + AGAIN:
            self._logged[kind] = now
            _logger.warning("the cache failed at %s, and the call goes on: %s", where, words)

    def tell(
        self,
        kind: Kind,
        scope: Scope | None,
        outcome: str,
        entry: Entry | None = None,
        similarity: float | None = None,
        *,
        cost: Cost | None = None,
        detail: str = "",
    ) -> None:
        """Tell the listeners what happened."""
        self.listeners.tell(
            Event(
                kind,
                self.clock.now(),
                scope.node if scope is not None else "",
                scope.tenant if scope is not None else "",
                outcome,
                entry.id if entry is not None else None,
                similarity,
                cost.seconds if cost is not None else 0.0,
                cost.tokens if cost is not None else 0,
                detail,
            )
        )

    def fault(self, where: str, error: Exception, scope: Scope | None = None) -> None:
        """Tell of a fault; raise it where the caller asked for that."""
        # Only a store's own words: another error may repeat the text that it was given.
        words = kind_of(error) + (f": {error}" if isinstance(error, StoreError) else "")
        self.tell("fault", scope, where, detail=words)
        if isinstance(error, DamagedDatabase):
            self.tell("warning", None, "damaged", detail=str(error))
        self._log(where, words)
        if self.fail == "closed" and where in ("lookup", "put"):
            raise CacheFault(f"the cache failed at {where}: {kind_of(error)}: {error}") from error


def kind_of(error: BaseException) -> str:
    """The name of an error's class: what may be told of it without telling any prompt."""
    return type(error).__name__
