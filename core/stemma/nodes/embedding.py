"""Embeddings: exact only. Pure functions of the text, so they have no lineage."""

from __future__ import annotations

from typing import Literal

from stemma.codec import VectorCodec
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
    """
    parameters = {
        "role": role,
        "dimensions": dimensions,
        "dtype": dtype,
        "instruction": instruction,
    }
    return Asked(
        scope={"model": model, "parameters": parameters},
        request=Request(exact=text, meaning=False),
        codec=_CODEC,
        life=life,
    )
