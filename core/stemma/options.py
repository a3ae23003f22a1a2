"""What `stemma.open` was given, and how a store and an embedder come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stemma.clock import Clock
from stemma.embedders.protocol import Embedder, TokenEmbedder
from stemma.errors import EmbedderError, MissingDependency, StoreUnavailable, UsageError
from stemma.indexes.protocol import Index
from stemma.judges.band import GreyBand
from stemma.judges.protocol import Judge
from stemma.lease import Leases
from stemma.lineage.chains import RISK
from stemma.parts import Fail
from stemma.policies.confidence import ConfidencePolicy
from stemma.policies.learning import Learns
from stemma.policies.life import LifePolicy
from stemma.policies.novelty import Novelty
from stemma.policies.pools import PoolPolicy
from stemma.policies.same_answer import SameAnswer
from stemma.policies.threshold import Policy, ThresholdPolicy
from stemma.stores.protocol import Store

if TYPE_CHECKING:
    from stemma.grounding.grounded import Grounder

BUDGET = 0.5
"""Seconds for which a call waits for a server named by a URL: what a hundred calls at once take on
two cores, waiting for their turn included."""

__all__ = [
    "BUDGET",
    "LEARNING",
    "POLICIES",
    "Chosen",
    "Options",
    "band_of",
    "embedder_of",
    "grounder_of",
    "is_file",
    "leases_of",
    "must_leave_doubts",
    "policy_of",
    "pools_of",
    "store_of",
]

LEARNING = ("verified", "verified-strict")
POLICIES = ("threshold", *LEARNING)
"""The policies that have a name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The arguments of `stemma.open`, kept so that a pickled cache can be opened again."""

    url: str | Path | Store = field(repr=False)  # it may hold a password
    tenant: str | None
    embedder: Embedder | Any | None = field(repr=False)
    policy: Policy | str | Path
    max_error: float
    same_answer: SameAnswer | None
    life: LifePolicy
    fail: Fail
    durability: str
    index: Index | None = None
    clock: Clock | None = None
    novelty: Novelty | None = None
    confidence: ConfidencePolicy | None = None
    grey: GreyBand | None = None
    budget: float = RISK
    grounder: Grounder | None = None
    pools: Mapping[str, PoolPolicy] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """An embedder, or none and the reason."""

    embedder: Embedder | None
    warning: str = ""


def store_of(url: str | Path | Store, *, durability: str) -> Store:
    """The store that a URL names.

    Raises:
        UsageError: The URL is of an unknown kind, or `durability` is not known.
        StoreError: The store cannot be opened.
    """
    if durability not in ("normal", "full"):
        raise UsageError(f'durability must be "normal" or "full", not {durability!r}')
    if isinstance(url, Store):
        return url
    if not isinstance(url, (str, Path)):
        raise UsageError(f"url must be a path, a text or a Store, not {type(url).__name__}")
    text = str(url).removeprefix("sqlite:///")
    if text == ":memory:":
        from stemma.stores.memory import MemoryStore  # noqa: PLC0415 - only what is used is loaded

        return MemoryStore()
    if text.startswith(("postgresql://", "postgres://")):
        from stemma.stores.postgres import PostgresStore  # noqa: PLC0415 - brings a client
        from stemma.stores.wrappers.guarded import Guarded  # noqa: PLC0415 - only what is used

        return Guarded(PostgresStore(text), budget=BUDGET, write_budget=2 * BUDGET)
    if "://" in text:
        kind = text.split("://", 1)[0]
        raise UsageError(
            f'no store for {kind}:// URLs; give a file name, a postgresql:// URL or ":memory:"'
        )
    if text == "":
        raise UsageError('url must not be empty; give a file name or ":memory:"')
    from stemma.stores.sqlite import SqliteStore  # noqa: PLC0415 - only what is used is loaded

    return SqliteStore(text, durability=durability)  # type: ignore[arg-type]


def leases_of(url: str | Path | Store) -> Leases | None:
    """The leases beside a file that several processes may share; `None` where there is none."""
    text = str(url).removeprefix("sqlite:///") if isinstance(url, (str, Path)) else ""
    if text in ("", ":memory:") or "://" in text:
        return None
    try:
        return Leases(f"{text}-leases")
    except StoreUnavailable:
        return None  # an optimisation: the cache is as right without


def is_file(policy: Policy | str | Path) -> bool:
    """Whether an argument names a file with a policy, by being a path or ending so."""
    return isinstance(policy, Path) or (isinstance(policy, str) and policy.endswith(".json"))


def band_of(given: Judge | GreyBand | None) -> GreyBand | None:
    """The grey band that an argument names.

    Raises:
        UsageError: It is neither a judge nor a band.
    """
    return given if given is None or isinstance(given, GreyBand) else GreyBand(judge=given)


def grounder_of(given: Grounder | Literal["check"] | bool | None) -> Grounder | None:
    """The grounder that an argument names.

    Raises:
        UsageError: It is none.
    """
    if given is None or given is False:
        return None
    from stemma.grounding import Grounder, GroundingCheck  # noqa: PLC0415 - not needed without one

    if given is True or given == "check":
        return GroundingCheck()
    if isinstance(given, type) or not isinstance(given, Grounder):
        raise UsageError(f'grounding must be a Grounder, True, False or "check", not {given!r}')
    return given


def pools_of(given: Mapping[str, PoolPolicy] | None) -> Mapping[str, PoolPolicy]:
    """The pools that an argument declares.

    Raises:
        UsageError: It is no mapping from names to policies.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"pools must be a mapping by name, not {type(given).__name__}")
    for name, policy in given.items():
        if not (isinstance(name, str) and name and isinstance(policy, PoolPolicy)):
            raise UsageError(f"pools must map names to PoolPolicy, not {name!r} to {policy!r}")
    return dict(given)


def must_leave_doubts(policy: Policy) -> None:
    """See that a policy leaves something to a judge.

    Raises:
        UsageError: It does not, so that the judge would never be asked.
    """
    if not isinstance(policy, Learns) or getattr(policy, "name", "") == "verified-strict":
        raise UsageError(
            'judge goes with policy="verified", a file with that policy, or one of your own that '
            "learns"
        )


def policy_of(given: Policy | str | Path, max_error: float, embedder: Embedder | None) -> Policy:
    """The policy that an argument names.

    Raises:
        UsageError: The bound is out of its range, or the file holds no policy for this embedder.
    """
    revision = "" if embedder is None else embedder.revision
    if is_file(given):
        from stemma.policy_file import PolicyFile  # noqa: PLC0415 - only what is used

        return PolicyFile.read(str(given)).made(revision)
    if not isinstance(given, (str, Path)):
        return given
    if given == "verified":
        from stemma.policies.verified import VerifiedPolicy  # noqa: PLC0415 - reads its weights

        tokens: Any = embedder
        if isinstance(tokens, TokenEmbedder):
            return VerifiedPolicy.aligning(max_error, embedder=revision)
        return VerifiedPolicy(max_error, embedder=revision)
    if given == "verified-strict":
        from stemma.policies.strict import StrictPolicy  # noqa: PLC0415 - only what is used

        return StrictPolicy(max_error, embedder=revision)
    return ThresholdPolicy()


def embedder_of(given: Embedder | Any | None) -> Chosen:
    """The embedder that an argument names, checked at its first use."""
    from stemma.embedders.adapters import as_embedder  # noqa: PLC0415 - not needed without one
    from stemma.embedders.health import Checked  # noqa: PLC0415

    if given is None:
        return Chosen(None)
    if not (isinstance(given, str) and given == "auto"):
        return Chosen(Checked(as_embedder(given)))
    try:
        found = as_embedder("local")
        found.revision  # noqa: B018 - looks for the model's files
    except (EmbedderError, MissingDependency) as error:
        return Chosen(
            None,
            "matching by meaning is off, only exact requests hit: "
            f"{error} (say embedder=None to silence this)",
        )
    return Chosen(Checked(found))
