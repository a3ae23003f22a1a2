"""Pure decisions: guards, thresholds, lives and admission. Nothing here does any I/O."""

from __future__ import annotations

from stemma.policies.admission import refusal
from stemma.policies.guards import Guarded, guard
from stemma.policies.life import LifePolicy, Prior, change_rate, own_life
from stemma.policies.threshold import Accepted, Candidate, Decision, Policy, ThresholdPolicy

__all__ = [
    "Accepted",
    "Candidate",
    "Decision",
    "Guarded",
    "LifePolicy",
    "Policy",
    "Prior",
    "ThresholdPolicy",
    "change_rate",
    "guard",
    "own_life",
    "refusal",
]
