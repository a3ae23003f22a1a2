"""Rerankers: a query and texts in, scores out. Importing this loads no model library."""

from stemma.rerankers.adapters import AdaptedReranker, as_reranker
from stemma.rerankers.lists import Foreign, ListReranker, PairScores, places
from stemma.rerankers.maxsim import MaxSimReranker
from stemma.rerankers.ordering import Order, best_first
from stemma.rerankers.protocol import Reranker

__all__ = [
    "AdaptedReranker",
    "Foreign",
    "ListReranker",
    "MaxSimReranker",
    "Order",
    "PairScores",
    "Reranker",
    "as_reranker",
    "best_first",
    "places",
]
