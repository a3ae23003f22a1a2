"""Rerankers: a query and texts in, scores out. Importing this loads no model library."""

from stemma.rerankers.adapters import AdaptedReranker, as_reranker
from stemma.rerankers.maxsim import MaxSimReranker
from stemma.rerankers.protocol import Reranker
from stemma.rerankers.ranking import Ranking, best_first, places

__all__ = [
    "AdaptedReranker",
    "MaxSimReranker",
    "Ranking",
    "Reranker",
    "as_reranker",
    "best_first",
    "places",
]
