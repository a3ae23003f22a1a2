"""Embedders: texts in, vectors out. Importing this loads no model library."""

from stemma.embedders.adapters import AdaptedEmbedder, as_embedder
from stemma.embedders.hashing import HashingEmbedder
from stemma.embedders.health import Checked
from stemma.embedders.local import LocalEmbedder
from stemma.embedders.protocol import Embedder, Matrix, TokenEmbedder

__all__ = [
    "AdaptedEmbedder",
    "Checked",
    "Embedder",
    "HashingEmbedder",
    "LocalEmbedder",
    "Matrix",
    "TokenEmbedder",
    "as_embedder",
]
