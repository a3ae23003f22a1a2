"""Embeddings: exact only. Pure functions of the text, so they have no lineage."""

from __future__ import annotations

from typing import Literal

from stemma.codec import VectorCodec
from stemma.errors import UsageError
from stemma.nodes.node import Asked
from stemma.request import Request

__all__ = ["Role", "embedding"]

Role = Literal["query", "document"]
_CODEC = VectorCodec()


def embedding(
    text: str,
    *,
    model: str,
    role: Role = "query",
    dimensions: int | None = None,
    dtype: str = "",
    instruction: str = "",
    life: float | None = None,
    shared: str | None = None,
) -> Asked:
    """Ask for a text's vector.

    Args:
        text: The text, as it would reach the model.
        model: The model with its revision.
        role: Whether it is embedded as a query or as a document: asymmetric models differ.
        dimensions: The length asked for, where the model offers several.
        dtype: The precision asked for, where the model offers several.
        instruction: A prefix or instruction that the model is given.
        life: Base life, seconds.
        shared: The pool that keeps it, for all tenants that name the same pool; by default it is
            the tenant's own. For documents that every one of them may know; never for queries.

    Raises:
        UsageError: The role is unknown, a query is to be shared, or the pool's name is no text.
    """
    if role not in ("query", "document"):
        raise UsageError(f'role must be "query" or "document", not {role!r}')
    if shared is not None and (role == "query" or not isinstance(shared, str) or shared == ""):
        raise UsageError(
            f"shared={shared!r}: only vectors of documents are shared, under a name that is a text"
        )
    named = (model, role, dimensions, dtype, instruction)
    return Asked(
        scope={
            "model": model,
            "parameters": {
                "role": role,
                "dimensions": dimensions,
                "dtype": dtype,
                "instruction": instruction,
            },
        },
        request=Request(exact=text, meaning=False),
        codec=_CODEC,
        life=life,
        scope_key=named if isinstance(model, str) else None,  # else it has no key at all
        pool=shared,
    )
