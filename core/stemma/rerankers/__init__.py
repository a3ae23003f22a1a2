"""Rerankers: a query and texts in, scores out. Importing this loads no model library."""

from stemma.rerankers.adapters import AdaptedReranker, as_reranker
from stemma.rerankers.maxsim import MaxSimReranker
from stemma.rerankers.ordering import Order, best_first, places
from stemma.rerankers.protocol import Reranker

__all__ = [
    "AdaptedReranker",
    "MaxSimReranker",
    "Order",
    "Reranker",
    "as_reranker",
    "best_first",
    "places",
]
