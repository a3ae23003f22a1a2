"""`stemma.open(…)`: its arguments, checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stemma.cache import Cache
from stemma.clock import Clock
from stemma.embedders.protocol import Embedder
from stemma.errors import TenantRequired, UsageError
from stemma.indexes.protocol import Index
from stemma.judges.band import GreyBand
from stemma.judges.protocol import Judge
from stemma.lineage.chains import RISK
from stemma.options import (
    LEARNING,
    POLICIES,
    Options,
    band_of,
    grounder_of,
    is_file,
    pools_of,
)
from stemma.parts import Fail
from stemma.policies.confidence import ConfidencePolicy
from stemma.policies.life import LifePolicy
from stemma.policies.novelty import Novelty
from stemma.policies.pools import PoolPolicy
from stemma.policies.same_answer import SameAnswer
from stemma.policies.shares import share
from stemma.policies.threshold import Policy, ThresholdPolicy
from stemma.stores.protocol import Store

if TYPE_CHECKING:
    from stemma.grounding.grounded import Grounder

__all__ = ["open"]


def open(  # noqa: A001 - the name users type: `stemma.open`
    url: str | Path | Store = ":memory:",
    *,
    tenant: str | None = None,
    embedder: Embedder | Any | None = "auto",
    threshold: float | None = None,
    policy: Policy | str | Path | None = None,
    max_error: float | None = None,
    same_answer: SameAnswer | None = None,
    judge: Judge | GreyBand | None = None,
    life: LifePolicy | None = None,
    fail: Fail = "open",
    durability: str = "normal",
    index: Index | None = None,
    clock: Clock | None = None,
    novelty: Novelty | None = None,
    confidence: ConfidencePolicy | None = None,
    budget: float = RISK,
    grounding: Grounder | Literal["check"] | bool | None = None,
    pools: Mapping[str, PoolPolicy] | None = None,
) -> Cache:
    """Open a cache.

    Args:
        url: A file for SQLite, `"postgresql://…"` (guarded: where the server is slow or gone, a
            call waits half a second at most), `":memory:"`, or any object that is a `Store`.
        tenant: The tenant of calls that name none.
        embedder: What compares by meaning: an `Embedder`, a LangChain or LlamaIndex embedding
            model, a callable from texts to vectors, `"local"`, `"hashing"`, or `None` for exact
            matching only. `"auto"` takes the local model where it is installed, else none, and
            says so.
        threshold: The least cosine similarity of a semantic hit, 0 to 1 (inclusive), where a
            threshold with guards is to decide about them.
        policy: What decides about semantic hits: a `Policy`, a file that `stemma calibrate` wrote
            (a `Path`, or a name that ends in `.json`), or the name of one: `"verified"` (the
            default), `"verified-strict"`, `"threshold"`. The first two learn, for each tenant and
            node apart, and what they have learnt is kept in the store.
        max_error: For the policies that learn: the share of the questions that reach them that may
            be answered wrongly, 0 to 0.5; by default 0.02.
        same_answer: How a fresh answer is compared with one that would have been served, for
            policies that learn.
        judge: Who is asked about candidates that the policy likes best and does not trust enough: a
            `stemma.judges.Judge`, or a `GreyBand` that also says when. For `"verified"`.
        life: How long entries live, by node.
        fail: `"open"`: a fault of the cache is a miss. `"closed"`: it raises `CacheFault`.
        durability: `"normal"`: a crash of the process loses nothing, a power cut may lose the
            last puts, never a recall. `"full"`: neither loses anything. For SQLite only.
        index: What finds near entries, for this cache alone; by default a `BitsIndex`, which
            scans small groups exactly.
        clock: Where time comes from.
        novelty: What of the answers and model calls is stored, by how new the question is; by
            default all of it.
        confidence: How far entries are believed when they would be served, by how sure they were
            when they were stored, by audits and by age.
        budget: What the risks of the hits by meaning may add up to that an agent's chain of hops
            is built on, 0 to 1; see `Cache.trace`.
        grounding: Who is asked, off the path, how far the sources support each answer that is
            stored: a `stemma.grounding.Grounder`, or `True` or `"check"` for the check that needs
            no model. What it finds lowers the entry's confidence. `None` or `False`: nobody.
        pools: What pools ask for before an answer is copied into them, by name; one that is not
            named here asks for what `PoolPolicy()` does.

    Raises:
        UsageError: An argument is wrong; or the policy file is of another embedder or verifier.
        StoreError: The store cannot be opened; what is there is left untouched.
    """
    if fail not in ("open", "closed"):
        raise UsageError(f'fail must be "open" or "closed", not {fail!r}')
    if threshold is not None and policy is not None:
        raise UsageError("give either threshold or policy, not both")
    if tenant is not None and (not isinstance(tenant, str) or tenant == ""):
        raise TenantRequired("tenant must be a text that is not empty")
    if policy is None:
        policy = "verified" if threshold is None else ThresholdPolicy(threshold=threshold)
    if max_error is not None and not (isinstance(policy, str) and policy in LEARNING):
        raise UsageError(f"max_error goes with policy= one of {', '.join(LEARNING)}")
    if isinstance(policy, str) and not is_file(policy) and policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}; one of {', '.join(POLICIES)}")
    given: tuple[tuple[str, Any, type], ...] = (
        ("policy", None if isinstance(policy, (str, Path)) else policy, Policy),
        ("clock", clock, Clock),
        ("same_answer", same_answer, SameAnswer),
        ("life", life, LifePolicy),
        ("novelty", novelty, Novelty),
        ("confidence", confidence, ConfidencePolicy),
    )
    for name, value, kind in given:
        if value is not None and not isinstance(value, kind):
            raise UsageError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
    options = Options(
        url=url,
        tenant=tenant,
        embedder=embedder,
        policy=policy,
        max_error=0.02 if max_error is None else max_error,
        same_answer=same_answer,
        life=life if life is not None else LifePolicy(),
        fail=fail,
        durability=durability,
        index=index,
        clock=clock,
        novelty=novelty,
        confidence=confidence,
        grey=band_of(judge),
        budget=share("budget", budget),
        grounder=grounder_of(grounding),
        pools=pools_of(pools),
    )
    return Cache(options)
