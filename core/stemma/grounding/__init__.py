"""Grounding: how far an answer is supported by the sources it was made from.

`GroundingCheck` needs no model; `JudgedGrounding` asks a judge of `stemma.judges`. Importing this
loads no model library. See `docs/grounding.md`.
"""

from stemma.grounding.check import GroundingCheck
from stemma.grounding.grounded import Grounded, Grounder, Support
from stemma.grounding.judged import EntailmentJudge, JudgedGrounding, SupportJudge
from stemma.grounding.weights import Weights

__all__ = [
    "EntailmentJudge",
    "Grounded",
    "Grounder",
    "GroundingCheck",
    "JudgedGrounding",
    "Support",
    "SupportJudge",
    "Weights",
]
