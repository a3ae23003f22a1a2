"""The policy that learns: a calibrated score, audits, and a budget of wrong hits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from stemma.errors import UsageError
from stemma.policies.aligned import AlignedVerifier, Aligns
from stemma.policies.evidence import Evidence
from stemma.policies.learning import Judgement, Trial, must_agree
from stemma.policies.shares import drawn, error_bound, share
from stemma.policies.standing import LOWEST, NEAR, Standing, known, standings
from stemma.policies.threshold import Accepted, Candidate, Decision, nearest_first
from stemma.policies.verifier import FeatureVerifier, Verified, Verifier, shipped

__all__ = ["VerifiedPolicy"]


@dataclass(frozen=True, slots=True)
class _Stood:
    """A candidate that was verified.

    Args:
        candidate: Which.
        said: What the verifier says of it.
        known: See `stemma.policies.standing.KNOWN`.
        score: The log-odds that its answer is right, as learnt so far.
    """

    candidate: Candidate
    said: Verified
    known: tuple[float, ...]
    score: float


class VerifiedPolicy:
    """Serves the candidate that stands best, where few enough such hits were found wrong.

    In the long run, of the requests that reach this decision (exact hits do not), at most the share
    `max_error` is answered wrongly; that holds for traffic whose answers are judged as it judges
    them, and on average over such traffic. Every fresh answer to be judged makes it surer; some
    would-be hits are computed afresh for that (`audit`).

    Before anything is known of the traffic, what is near enough and clear of every guard is served,
    if the embedder is the one that `NEAR` was measured with. Judgements on it count against the
    budget first, and end this warm start where they contradict it.

    Args:
        max_error: The share, 0 to 0.5. 0 serves nothing by meaning.
        embedder: The revision of the embedder whose similarities are decided on.
        verifier: What compares the texts; by default the one whose weights come with the package.
        audits: The share of would-be hits that is computed afresh where they are as doubtful as
            `max_error` allows on average, above 0; of surer ones fewer are, of others more, see
            `audit_share` in `stemma.policies.budget`.
        seed: Of the choice of audits, which follows from it, from the two texts and from how many
            requests came before: whoever runs the same again sees the same.
        prior: The weights of what is known of a candidate (`stemma.policies.standing.KNOWN`) before
            anything was judged; by default those that come with the package.

    Raises:
        UsageError: An argument is out of its range.
    """

    name = "verified"
    depth = 8
    floor = 0.4

    def __init__(
        self,
        max_error: float = 0.02,
        *,
        embedder: str = "",
        verifier: Verifier | None = None,
        audits: float = 0.05,
        seed: int = 0,
        prior: Mapping[str, float] | None = None,
    ) -> None:
        self.max_error = error_bound(max_error)
        if share("audits", audits) == 0:
            raise UsageError("audits must be above 0: without any, nothing bounds the error")
        self.embedder = embedder
        record = shipped()
        self._verifier = FeatureVerifier.read(record) if verifier is None else verifier
        self._evidence = Evidence(
            prior=record["standing"] if prior is None else prior,
            bound=self.max_error,
            audits=float(audits),
            warm=embedder == record["embedder"],
        )
        self._seed = seed
        self._settings: dict[str, Any] = {
            "embedder": embedder,
            "verifier": self._verifier,
            "audits": float(audits),
            "seed": seed,
            "prior": prior,
        }

    @classmethod
    def aligning(cls, max_error: float = 0.02, *, embedder: str, **settings: Any) -> VerifiedPolicy:
        """One that weighs token vectors too, where the weights were made for this embedder.

        Who decides must be able to look at what it asks for: see `Decision.look`.

        Args:
            max_error: As above.
            embedder: As above; with another one than the weights', it is a policy as any other.
            **settings: As above.

        Raises:
            UsageError: An argument is out of its range.
        """
        record = shipped()
        if embedder == record["embedder"] and "aligned" in record:
            settings = {
                "verifier": AlignedVerifier.read(record),
                "prior": record["aligned"]["standing"],
                **settings,
            }
        return cls(max_error, embedder=embedder, **settings)

    def __repr__(self) -> str:
        return f"VerifiedPolicy(max_error={self.max_error:g}, judged={len(self._evidence)})"

    def decide(self, asked: str, candidates: Sequence[Candidate]) -> Decision:
        """See `Policy.decide`; the surest first."""
        evidence = self._evidence
        ranked = nearest_first(candidates)[: self.depth]
        stood = self._verified(asked, ranked) if ranked and self.max_error else []
        look = self._unseen(asked, stood)
        if look:
            return Decision(look=look)
        number = evidence.count()
        if not ranked:
            return Decision(reason="cold")
        if not stood:
            return _refused(ranked[0], "below_threshold", "no error is allowed")
        open_ = [one for one in stood if not one.said.refused]
        if not open_:
            return _refused(ranked[0], stood[0].said.refused, "the texts differ there")
        best = open_[0]
        if not evidence.allows(best.known, best.score):
            return self._declined(ranked[0], stood[0], best)
        audited = evidence.audits(best.score)
        if drawn(f"{self._seed} {number} {asked} {best.candidate.focus}") < audited:
            trial = Trial(
                candidate=best.candidate.id, known=best.known, weight=1.0 / audited, audit=True
            )
            return _refused(best.candidate, "audit", "", trial)
        accepted = tuple(_accepted(one) for one in open_ if evidence.allows(one.known, one.score))
        return Decision(accepted, "", ranked[0].id, ranked[0].similarity)

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Learns.identity`."""
        return {
            "policy": self.name,
            "version": 1,
            "embedder": self.embedder,
            "verifier": self._verifier.revision,
        }

    def anew(self) -> VerifiedPolicy:
        """See `Learns.anew`."""
        other = VerifiedPolicy(self.max_error, **self._settings)
        other._evidence.restore(self._evidence.record())
        return other

    def learn(self, *judgements: Judgement) -> None:
        """See `Learns.learn`."""
        self._evidence.add(judgements)

    def record(self) -> dict[str, Any]:
        """See `Learns.record`."""
        return {**self.identity, **self._evidence.record()}

    def restore(self, record: Mapping[str, Any]) -> None:
        """See `Learns.restore`."""
        must_agree(record, self.identity)
        self._evidence.restore(record)

    def _verified(self, asked: str, ranked: Sequence[Candidate]) -> list[_Stood]:
        """Those that may be the best, best first: what cannot overtake is not verified."""
        evidence, verifier = self._evidence, self._verifier
        reach = sorted(
            (
                (evidence.most(verifier.ceiling(one.similarity), standing), one, standing)
                for one, standing in zip(ranked, standings(ranked), strict=True)
            ),
            key=lambda reached: -reached[0],
        )
        found: list[_Stood] = []
        best = -math.inf
        for most, candidate, standing in reach:
            if most <= best or len(found) == _REACH:
                break
            if found and not evidence.may_allow(most, standing):
                continue
            found.append(self._stood(asked, candidate, standing))
            if not found[-1].said.refused:
                best = max(best, found[-1].score)
        return sorted(found, key=lambda one: -one.score)

    def _stood(self, asked: str, candidate: Candidate, standing: Standing) -> _Stood:
        from stemma.policies.guards import guard, guarded  # noqa: PLC0415 - as in the verifier

        said = self._verifier.verify(asked, candidate)
        if not said.refused and not guarded(asked, candidate.focus):
            objection = guard(asked, candidate.focus, candidate.similarity)
            said = said if objection is None else replace(said, refused=objection.reason)
        near = standing.nearness >= NEAR and not said.refused
        near = near and (candidate.aligned is None or candidate.aligned >= 0)
        clear = near and guard(asked, candidate.focus) is None
        row = known(said.score, standing, clear=clear)
        return _Stood(candidate, said, row, self._evidence.score(row))

    def _unseen(self, asked: str, stood: Sequence[_Stood]) -> tuple[str, ...]:
        """Candidates whose tokens must be aligned: those served if they align, and the best.

        Of the best its trial is learnt from, whatever becomes of it.
        """
        verifier, evidence = self._verifier, self._evidence
        if not isinstance(verifier, Aligns):
            return ()
        open_ = [one for one in stood if not one.said.refused]
        return tuple(
            one.candidate.id
            for one in open_
            if (one is open_[0] or evidence.allows(one.known, one.score))
            and one.said.score > LOWEST
            and verifier.wants(asked, one.candidate)
        )

    def _declined(self, nearest: Candidate, first: _Stood, best: _Stood) -> Decision:
        """A refusal, with the guard's reason where it was the difference that made it."""
        trial = Trial(candidate=best.candidate.id, known=best.known)
        refused = partial(_refused, nearest, trial=trial, grey=_accepted(best))
        blamed = first if first.candidate is nearest else best
        if blamed.said.refused:
            return refused(blamed.said.refused, "the texts differ there")
        detail = f"{_chance(best.score):.0%} likely to be right, "
        detail += (
            f"too little for an error of {self.max_error:g}"
            if self._evidence.serves
            else "but too few answers were judged so far to tell"
        )
        without = known(
            self._verifier.ceiling(blamed.candidate.similarity),
            Standing(*blamed.known[2:7]),
            clear=True,
        )
        if blamed.said.against and self._evidence.allows(without, self._evidence.score(without)):
            return refused(blamed.said.against, detail)
        return refused("below_threshold", detail)


def _refused(
    nearest: Candidate,
    reason: str,
    detail: str,
    trial: Trial | None = None,
    grey: Accepted | None = None,
) -> Decision:
    return Decision((), reason, nearest.id, nearest.similarity, detail, trial, grey)


def _accepted(one: _Stood) -> Accepted:
    similarity, chance = one.candidate.similarity, _chance(one.score)
    why = f"similarity {similarity:.3f}, and the texts agree: {chance:.1%} likely to be right"
    trial = Trial(candidate=one.candidate.id, known=one.known)
    return Accepted(one.candidate.id, similarity, chance, why, trial)


def _chance(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(min(score, 30.0), -30.0)))


_REACH = 3
"""How many candidates are verified at most: those that the rest of what is known puts first."""
