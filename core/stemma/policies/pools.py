"""What may be copied into a pool: who must have said it, and what it must not be built on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stemma.entry import QUARANTINED, Entry
from stemma.errors import UsageError
from stemma.policies.shares import share

__all__ = [
    "REFUSALS",
    "Candidate",
    "Decision",
    "PoolPolicy",
    "Resting",
    "agreed",
    "approved",
    "independent",
    "objection",
]

REFUSALS: Mapping[str, str] = {
    "not_an_operator": "a tenant asked for it, and tenants neither approve nor revoke",
    "not_offered": "it was made where no pool was named",
    "not_a_member": "who made it is no member of the pool",
    "private_source": "something in its family tree is a tenant's own",
    "unknown_ancestry": "something it was built on is gone, so that nobody can say what that was",
    "quarantined": "it, the same answer, or something it was built on is held to be wrong",
    "invalid": "it could not be served itself",
    "low_confidence": "too little speaks for it being right",
    "ungrounded": "its sources do not support it far enough, or nobody has looked yet",
    "echo": "it was built on what another tenant made, or on what lies in a pool",
    "too_few": "too few independent tenants gave this answer",
    "disagreed": "as many gave another answer to the same",
    "occupied": "an answer lies there already",
    "withdrawn": "the same answer was taken out of the pool before",
}
"""Every reason for not copying an answer into a pool, in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolPolicy:
    """What a pool asks for.

    Args:
        members: The tenants who may read it and whose answers may be copied into it; `None`: every
            tenant that names it.
        witnesses: How many independent tenants must have given an answer before it is copied
            without approval, 1 or more; `None`: none is, however many did.
        grounding: How far its sources must support what is copied, 0 to 1, as a grounding check
            has found (`stemma.grounding`); `None`: that is not asked.
        least_confidence: How far an answer must be believed to be copied or to be a witness,
            0 to 1.

    Raises:
        UsageError: A value is of the wrong kind or out of its range.
    """

    members: Collection[str] | None = None
    witnesses: int | None = 3
    grounding: float | None = None
    least_confidence: float = 0.5

    def __post_init__(self) -> None:
        members, number = self.members, self.witnesses
        if members is not None:
            known = set(members) if isinstance(members, Collection) else {""}
            if isinstance(members, str) or not all(isinstance(one, str) and one for one in known):
                raise UsageError("members must be a set of tenants: texts that are not empty")
            object.__setattr__(self, "members", frozenset(known))
        if number is not None and (
            isinstance(number, bool) or not isinstance(number, int) or number < 1
        ):
            raise UsageError(f"witnesses must be a whole number, 1 or more, not {number!r}")
        if self.grounding is not None:
            share("grounding", self.grounding)
        share("least_confidence", self.least_confidence)

    def admits(self, tenant: str) -> bool:
        """Whether a tenant is a member."""
        return self.members is None or tenant in self.members


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An answer that may be copied, or speak for one that is, and what is known of it.

    Args:
        entry: The tenant's own entry.
        above: Everything it was built on, by id; `None` for what is gone.
        owners: Whose the sources in its family tree are.
        invalid: Why it could not be served itself; empty if it could.
        believed: How far it is believed now, 0 to 1.
        grounded: How far a check found it supported by its sources, 0 to 1; `None`: none looked.
    """

    entry: Entry
    above: Mapping[str, Entry | None] = field(default_factory=dict)
    owners: frozenset[str] = frozenset()
    invalid: str = ""
    believed: float = 1.0
    grounded: float | None = None

    @property
    def echo(self) -> bool:
        """Whether it was built on what others made, so that it adds nothing to what they say."""
        above = (one for one in self.above.values() if one is not None)
        return any(one.pool is not None or one.tenant != self.entry.tenant for one in above)


@dataclass(frozen=True, kw_only=True, slots=True)
class Resting:
    """What lies, or has lain, at a place in a pool.

    Args:
        entry: The entry that is stored there.
        live: Whether it may be served.
        withdrawn: Values (hashes) that were taken out of it and not put there again since.
        wrong: Values that were found to be wrong there.
    """

    entry: Entry | None = None
    live: bool = False
    withdrawn: frozenset[str] = frozenset()
    wrong: frozenset[str] = frozenset()

    @property
    def rejected(self) -> frozenset[str]:
        """Values known or suspected to be wrong there."""
        entry = self.entry
        return self.wrong if entry is None or not _wrong(entry) else self.wrong | {entry.value}


class Decision(NamedTuple):
    """Whether to copy, and what.

    Args:
        entry: The entry to copy; `None` where it is refused.
        refused: Why it is refused, as in `REFUSALS`.
        detail: More words, without any prompt's text.
        witnesses: The tenants who independently gave the answer.
    """

    entry: Entry | None = None
    refused: str | None = None
    detail: str = ""
    witnesses: tuple[str, ...] = ()


def objection(policy: PoolPolicy, candidate: Candidate) -> Decision | None:
    """Why an answer can be neither copied nor a witness; `None` if it can."""
    entry, above = candidate.entry, candidate.above
    if entry.offer is None:
        return Decision(refused="not_offered")
    if not policy.admits(entry.tenant):
        return Decision(refused="not_a_member", detail=f"tenant {entry.tenant!r}")
    if gone := sorted(parent for parent, one in above.items() if one is None):
        return Decision(refused="unknown_ancestry", detail=f"parent {gone[0]} is gone")
    known = {entry.id: entry, **above}
    if suspected := sorted(
        name for name, one in known.items() if one is not None and _doubted(one)
    ):
        return Decision(refused="quarantined", detail=f"entry {suspected[0]}")
    shared = {"public", f"pool:{entry.offer.pool}"}
    if private := sorted(candidate.owners - shared):
        return Decision(refused="private_source", detail=f"a source of {private[0] or 'nobody'}")
    if candidate.invalid:
        return Decision(refused="invalid", detail=candidate.invalid)
    if candidate.believed < policy.least_confidence:
        return Decision(refused="low_confidence", detail=f"{candidate.believed:.2f}")
    return None


def approved(policy: PoolPolicy, candidate: Candidate, place: Resting) -> Decision:
    """Whether an answer may be copied that an operator approves of."""
    if refused := objection(policy, candidate):
        return refused
    entry, there = candidate.entry, place.entry
    if not _grounded(policy, candidate):
        return Decision(refused="ungrounded", detail=_score(candidate))
    if entry.value in place.rejected:
        return Decision(refused="quarantined", detail="the same answer was called wrong there")
    if there is not None and there.id in candidate.above:
        return Decision(refused="echo", detail="it was built on what it would replace")
    if there is not None and place.live and there.value == entry.value:
        return Decision(refused="occupied", detail="the same answer lies there already")
    return Decision(entry)


def agreed(
    policy: PoolPolicy,
    fresh: Candidate,
    others: Sequence[tuple[Candidate, bool | None]],
    place: Resting,
) -> Decision:
    """Whether enough tenants gave the same answer for it to be copied.

    Witnesses are counted by `independent`. What was built on others' answers, or on a pool's, is no
    witness. They must outnumber the tenants whose answer differs; those of whom nobody can say
    whether they gave the same one count for neither side.

    Args:
        policy: What the pool asks for.
        fresh: The answer that was stored last.
        others: All others offered to the same place, each with whether it is the same as `fresh`;
            `None` where that cannot be told.
        place: What lies there.
    """
    if policy.witnesses is None:
        return Decision(refused="too_few", detail="only what is approved is copied")
    if refused := objection(policy, fresh):
        return refused
    if fresh.echo:
        return Decision(refused="echo")
    alike = [fresh, *(one for one, same in others if same)]
    against = [one for one, same in others if same is False and _stands(one)]
    fit = [one for one in alike if objection(policy, one) is None and not one.echo]
    witnesses = independent(one.entry for one in fit)
    if refused := _outvoted(
        policy.witnesses, len(witnesses), len(independent(one.entry for one in against))
    ):
        return refused
    if refused := _spoken_for(alike, place):
        return refused
    chosen = [one for one in fit if one.entry in witnesses and _grounded(policy, one)]
    if not chosen:
        return Decision(refused="ungrounded", detail=_score(fresh))
    best = min(chosen, key=_rank)
    return Decision(best.entry, witnesses=tuple(sorted(one.tenant for one in witnesses)))


def _outvoted(wanted: int, witnesses: int, against: int) -> Decision | None:
    if witnesses < wanted:
        return Decision(refused="too_few", detail=f"{witnesses} of {wanted}")
    if against >= witnesses:
        return Decision(refused="disagreed", detail=f"{against} against {witnesses}")
    return None


def _spoken_for(alike: Sequence[Candidate], place: Resting) -> Decision | None:
    """What speaks against a place being given to an answer, however many gave it."""
    values = {one.entry.value for one in alike}
    if values & place.rejected or any(_wrong(one.entry) for one in alike):
        return Decision(refused="quarantined", detail="the same answer is held to be wrong")
    if values & place.withdrawn:
        return Decision(refused="withdrawn")
    return Decision(refused="occupied") if place.live else None


def independent(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """As many of the entries as can be of different tenants and different principals, all at once.

    The principal is who is behind an entry: its label `writer`, or its tenant where it has none.
    What one principal says in the name of several tenants counts once, as does what several say
    in the name of one: a maximum matching between the two. The oldest are preferred.
    """
    oldest = sorted(entries, key=lambda one: (one.made, one.sequence))
    said: dict[str, dict[str, Entry]] = {}
    for one in oldest:
        principal = one.tenant if one.labels.writer is None else one.labels.writer
        said.setdefault(one.tenant, {}).setdefault(principal, one)
    matched: dict[str, str] = {}
    for tenant in said:
        _match(tenant, said, matched, set())
    return tuple(said[tenant][principal] for principal, tenant in matched.items())


def _match(
    tenant: str,
    said: Mapping[str, Mapping[str, Entry]],
    matched: dict[str, str],
    tried: set[str],
) -> bool:
    """Give a tenant a principal of its own, if need be by giving others another one."""
    for principal in said[tenant]:
        if principal in tried:
            continue
        tried.add(principal)
        if principal not in matched or _match(matched[principal], said, matched, tried):
            matched[principal] = tenant
            return True
    return False


def _stands(candidate: Candidate) -> bool:
    """Whether another answer speaks against: also one that could not be copied itself."""
    return not candidate.invalid and not _doubted(candidate.entry)


def _wrong(entry: Entry) -> bool:
    """Whether its value is held to be wrong; a hit that was wrong says nothing of that."""
    return entry.verdict == "hallucinated" or entry.held != ""


def _doubted(entry: Entry) -> bool:
    return entry.verdict in QUARANTINED or entry.held != ""


def _grounded(policy: PoolPolicy, candidate: Candidate) -> bool:
    if policy.grounding is None:
        return True
    return candidate.grounded is not None and candidate.grounded >= policy.grounding


def _score(candidate: Candidate) -> str:
    return "no check yet" if candidate.grounded is None else f"a score of {candidate.grounded:.2f}"


def _rank(candidate: Candidate) -> tuple[float, float, float, int]:
    """The best supported first, then the most believed, then the oldest."""
    score = 0.0 if candidate.grounded is None else candidate.grounded
    return -score, -candidate.believed, candidate.entry.made, candidate.entry.sequence
