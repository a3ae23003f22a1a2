"""Witnesses are counted by a maximum matching of tenants and principals."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma import Labels
from stemma.entry import Offer, owner_of
from stemma.errors import UsageError
from stemma.policies.pools import Candidate, PoolPolicy, Resting, agreed, approved, independent
from stemma.request import Key
from stemma.testing.builders import NOW, entry

OFFER = Offer(pool="p", place=Key("partition", "group", "place"))
NAMES = st.sampled_from(("a", "b", "c", "d"))


def said(number, tenant, writer=None, **rest):
    labels = Labels(writer=writer)
    return entry(
        id=f"e{number}", tenant=tenant, labels=labels, made=NOW + number, offer=OFFER, **rest
    )


def most(pairs):
    """How many can be of different tenants and principals at once, tried out."""
    for size in range(len(pairs), 0, -1):
        for some in itertools.combinations(pairs, size):
            if len({t for t, _ in some}) == len({p for _, p in some}) == size:
                return size
    return 0


@given(st.lists(st.tuples(NAMES, st.none() | NAMES), max_size=7))
def test_as_many_are_independent_as_can_be(pairs):
    entries = [said(number, *pair) for number, pair in enumerate(pairs)]
    found = independent(entries)
    behind = {(t, t if w is None else w) for t, w in pairs}
    assert len(found) == most(sorted(behind))
    assert len({one.tenant for one in found}) == len(found)


def test_a_tenant_finds_another_principal_where_one_is_taken():
    entries = [said(1, "a", "x"), said(2, "b", "x"), said(3, "a", "y")]
    assert {one.id for one in independent(entries)} == {"e2", "e3"}


def test_of_whom_nobody_can_tell_counts_for_neither_side():
    fresh, *others = [Candidate(entry=said(n, f"t{n}")) for n in range(6)]
    told = list(zip(others, (True, True, None, None, None), strict=True))
    assert agreed(PoolPolicy(), fresh, told, Resting()).entry == fresh.entry
    assert agreed(PoolPolicy(), fresh, told[1:], Resting()).detail == "2 of 3"


@pytest.mark.parametrize(
    ("place", "refused"),
    [
        (Resting(entry=said(9, "z", value="other"), live=True), "occupied"),
        (Resting(entry=said(9, "z", value="other")), None),
        (Resting(withdrawn=frozenset({"one"})), "withdrawn"),
        (Resting(withdrawn=frozenset({"other"})), None),
        (Resting(wrong=frozenset({"one"})), "quarantined"),
        (Resting(entry=said(9, "z", held="q")), "quarantined"),
    ],
)
def test_a_place_is_given_once(place, refused):
    fresh, *others = [Candidate(entry=said(n, f"t{n}")) for n in range(3)]
    decision = agreed(PoolPolicy(), fresh, [(one, True) for one in others], place)
    assert decision.refused == refused
    by_hand = approved(PoolPolicy(), fresh, place).refused
    assert by_hand == ("quarantined" if refused == "quarantined" else None)


@pytest.mark.parametrize("verdict", ["hallucinated", "suspect"])
def test_an_ancestor_that_is_suspected_speaks_against(verdict):
    above = {"x": said(9, "a", verdict=verdict)}
    assert approved(
        PoolPolicy(), Candidate(entry=said(1, "a"), above=above), Resting()
    ).refused == ("quarantined")


@pytest.mark.parametrize(
    ("owner", "given"), [(None, ""), ("", ""), ("public", "public"), ("pool: x ", "pool: x ")]
)
def test_owners_that_can_be_declared(owner, given):
    assert owner_of(owner) == given


@pytest.mark.parametrize("owner", ["me", "pool:", "Pool:a", "tenant:a", 3, ["public"]])
def test_owners_that_cannot(owner):
    with pytest.raises(UsageError, match="owner"):
        owner_of(owner)


@pytest.mark.parametrize("members", [5, "ann", b"ann", [""], [1], (one for one in ("ann",))])
def test_members_are_a_set_of_tenants(members):
    with pytest.raises(UsageError, match="members"):
        PoolPolicy(members=members)


@pytest.mark.parametrize("share", [10**400, -(10**400), float("nan"), True, "0.5"])
def test_a_share_is_one_however_large_the_number(share):
    with pytest.raises(UsageError, match="least_confidence"):
        PoolPolicy(least_confidence=share)
