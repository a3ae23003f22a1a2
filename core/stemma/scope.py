"""What must be equal for reuse (`Scope`), and what merely describes (`Labels`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from stemma.errors import TenantRequired, UsageError
from stemma.keys import digest

__all__ = ["NODES", "PURE", "Labels", "Node", "Scope"]

Node = Literal["embedding", "retrieval", "rerank", "call", "answer", "hop"]
NODES: tuple[Node, ...] = get_args(Node)

PURE: frozenset[Node] = frozenset({"embedding", "rerank"})
"""Nodes whose values follow from what they were asked alone, whoever asks, however long ago."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """Facts about an entry that never separate entries. Recall and statistics can name them."""

    session: str | None = None
    user: str | None = None
    arm: str | None = None
    tags: tuple[str, ...] = ()
    subject: str | None = None
    writer: str | None = None

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The labels that are set, as (name, value); a tag each is a pair of its own."""
        single = ("session", "user", "arm", "subject", "writer")
        named = [(name, getattr(self, name)) for name in single]
        return tuple((n, v) for n, v in named if v is not None) + tuple(
            ("tag", tag) for tag in self.tags
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Everything that must be equal for one cached value to serve another request.

    Its digest is the *partition*: part of every entry id and of every search.

    Args:
        tenant: Whose entry it is. Any text but the empty one.
        node: Which step of the chain.
        pool: If given, the partition is the pool's, whoever the tenant is.
        model: The model's name, for recall by model.
        parameters: Every parameter that reaches the model or the step.
        template: The prompt template, or the identity of the chain.
        tools: The tool set offered to the model.
        schema: The response schema asked for.
        index: The identity of the index that is searched, for recall by index.
        filters: The filters of that search.
        embedder: The embedder's revision, where meaning is compared.
        permissions: The permission set of the caller.
        factors: Whatever the caller adds (language, device, …).

    Raises:
        TenantRequired: `tenant` is empty.
        UsageError: `node` is not one of `NODES`.
        UnkeyableValue: A part has no stable key.
    """

    tenant: str
    node: Node
    pool: str | None = None
    model: str = ""
    parameters: Any = None
    template: str = ""
    tools: Any = None
    schema: Any = None
    index: str = ""
    filters: Any = None
    embedder: str = ""
    permissions: tuple[str, ...] = ()
    factors: Mapping[str, Any] = field(default_factory=dict)
    partition: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tenant, str) or self.tenant == "":
            raise TenantRequired("a scope needs a tenant: a text that is not empty")
        if self.node not in NODES:
            raise UsageError(f"unknown node {self.node!r}; one of {', '.join(NODES)}")
        owner = ["tenant", self.tenant] if self.pool is None else ["pool", self.pool]
        partition = digest(
            "scope/1",
            owner,
            self.node,
            self.model,
            self.parameters,
            self.template,
            self.tools,
            self.schema,
            self.index,
            self.filters,
            self.embedder,
            sorted(set(self.permissions)),
            dict(self.factors),
        )
        object.__setattr__(self, "partition", partition)

    @property
    def owner(self) -> str:
        """Who owns entries of this scope, for people: `tenant:…` or `pool:…`."""
        return f"tenant:{self.tenant}" if self.pool is None else f"pool:{self.pool}"
