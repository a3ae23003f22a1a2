"""Whether an entry may be served, by itself: whose it is, what was judged of it, its life. Pure."""

from __future__ import annotations

from stemma.entry import QUARANTINED, Entry, personal_bar
from stemma.policies.confidence import ConfidencePolicy
from stemma.policies.life import over
from stemma.scope import PURE, Scope

__all__ = ["refusal"]


def refusal(
    entry: Entry, scope: Scope, question: str, confidence: ConfidencePolicy, now: float
) -> str | None:
    """Why an entry must not answer a question, as in `stemma.REASONS`; `None` if it may.

    Args:
        entry: The entry.
        scope: Where it was looked for.
        question: The question's digest in that scope: its exact key.
        confidence: How far entries are believed.
        now: Seconds since 1970-01-01 UTC.
    """
    if not entry.belongs_to(scope):
        return "damaged"
    if entry.verdict in QUARANTINED or entry.held:
        return "quarantined"
    judged = entry.judged
    if judged.barred and _barred(entry, scope.tenant, question):
        return "reported"
    if over(entry.made, entry.expires, now):
        return "expired"
    if entry.node not in PURE and confidence.refuses(
        entry.confidence,
        age=now - entry.verified,
        agreed=judged.agreed,
        disagreed=judged.disagreed,
    ):
        return "low_confidence"
    return None


def _barred(entry: Entry, tenant: str, question: str) -> bool:
    """Whether it was reported as wrong for a question, or altogether: by anybody, or by them."""
    bars = {question, entry.value}
    bars |= {personal_bar(tenant, one) for one in bars}
    return not bars.isdisjoint(entry.judged.barred)
