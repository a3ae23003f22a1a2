"""What is said of an entry's truth is weighed: by how sure it was said, and who said it."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.stores.protocol import Judgement
from stemma.testing.builders import entry
from stemma.verdicts import (
    ALONE,
    PRIOR,
    RIGHT,
    TRUSTED,
    WRONG,
    believed,
    counting,
    evidence,
    probability,
    settled,
    verdict,
    verdicts,
)

NOW = 1_700_000_000.0
OPERATOR, NEWCOMER = 0.9, believed(0, 0)


def said(verdict="hallucinated", by="ann", tenant="", *, sure=1.0, weight=None, at=0, **rest):
    believed = (NEWCOMER if tenant else OPERATOR) if weight is None else weight
    return Judgement(
        entry="a",
        value=rest.pop("value", "one"),
        verdict=verdict,
        by=by,
        confidence=sure,
        at=NOW + at,
        tenant=tenant,
        weight=believed,
        **rest,
    )


def wrong(*statements):
    return probability(counting(statements))


def known(*statements):
    return verdict(wrong(*statements))


def test_nothing_said_is_the_prior():
    assert wrong() == PRIOR


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([said(sure=0.9)], "hallucinated"),
        ([said(sure=0.33)], "hallucinated"),
        ([said(sure=0.32)], "unknown"),
        ([said("supported")], "supported"),
        ([said("supported", sure=0.49)], "supported"),
        ([said("supported", sure=0.48)], "unknown"),
        ([said(sure=0.9), said("supported", "bob", sure=0.9)], "unknown"),
        ([said(sure=0.9), said("supported", "bob", sure=0.5)], "hallucinated"),
        ([said(tenant="a")], "unknown"),
        ([said(tenant="a"), said(tenant="b")], "hallucinated"),
        ([said(tenant="a", by=str(n)) for n in range(50)], "unknown"),
        ([said(tenant="a", weight=ALONE)], "unknown"),
        ([said("supported", tenant="a"), said("supported", tenant="b")], "supported"),
        ([said(tenant=str(n)) for n in range(50)], "hallucinated"),
        ([said(tenant=str(n)) for n in range(50)] + [said("supported")], "unknown"),
        ([said(tenant=str(n), weight=0.5) for n in range(50)], "unknown"),
        ([said(tenant=str(n), weight=0.1) for n in range(50)], "unknown"),
        ([said("grounded", "check", sure=0.0)], "unknown"),
        ([said("grounded", "check", sure=0.5)], "unknown"),
        ([said("grounded", "check", sure=1.0)], "unknown"),
        ([said("disagreed", question="a")], "unknown"),
        ([said("disagreed", question="a")] * 9, "unknown"),
        ([said("grounded", "check", sure=0.0), said(tenant="a")], "hallucinated"),
        ([said("grounded", "check", sure=1.0), said("supported", tenant="a")], "supported"),
        ([said("disagreed", question="another")] * 9, "unknown"),
        ([said(), *[said("agreed", question="a")] * 99], "hallucinated"),
    ],
)
def test_what_suffices(statements, expected):
    """One operator; of tenants two, and never one under whatever names; of liars none."""
    assert known(*statements) == expected


def test_the_last_of_a_reporter_counts():
    """At the same instant, the one that was noted later; and what was taken back not at all."""
    assert known(said(at=1), said("supported", at=2)) == "supported"
    assert known(said("supported", at=2), said(at=1)) == "supported"
    assert known(said(), said("supported")) == "supported"
    assert wrong(said(), said("unknown")) == PRIOR
    assert wrong(said(), said("grounded", sure=0.5)) == wrong(said())


def test_hostile_names_are_reporters_of_their_own():
    names = ["", "ann", "Ann", "ann ", "a\x00", "\ud800", "tenants"]
    alone = math.log(wrong(said(sure=0.1)) / (1 - wrong(said(sure=0.1)))) - math.log(0.25)
    odds = math.log(0.25) + len(names) * alone
    assert wrong(*(said(by=name, sure=0.1) for name in names)) == pytest.approx(
        1 / (1 + math.exp(-odds)), abs=1e-9
    )


statements = st.builds(
    said,
    st.sampled_from(["hallucinated", "supported", "unknown", "grounded", "agreed", "disagreed"]),
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["", "a", "b", "c"]),
    sure=st.floats(0, 1),
    weight=st.floats(0, 1),
    at=st.integers(0, 2),
    question=st.sampled_from(["", "a", "q"]),
)


def brute(statements):
    """The rule in other words: over all reporters, found one by one."""

    def logit(share):
        return math.log(share / (1 - share))

    def moved(one):
        weight, sure, sign = one.weight, one.confidence, 1
        if one.verdict == "grounded":
            weight, sure = 0.62, abs(2 * one.confidence - 1)
            sign = 1 if one.confidence < 0.5 else -1
        elif one.verdict in ("supported", "unknown"):
            sign = -1 if one.verdict == "supported" else 0
        elif one.verdict in ("agreed", "disagreed"):
            weight, sure, sign = 0.6, 1, 1 if one.verdict == "disagreed" else -1
        return sign * logit(0.5 + (min(max(weight, 0.5), 0.9) - 0.5) * sure)

    def clipped(number, share):
        return min(max(number, -logit(share)), logit(share))

    audits = [one for one in statements if one.verdict in ("agreed", "disagreed")]
    total = logit(0.2) + clipped(sum(moved(one) for one in audits if one.question == "a"), 0.62)
    last = []
    for tenant, by, check in itertools.product(["", "a", "b", "c"], ("ann", "bob"), (True, False)):
        mine = [
            one
            for one in statements
            if (one.tenant, one.by, one.verdict == "grounded") == (tenant, by, check)
            and one not in audits
        ]
        latest = max((one.at for one in mine), default=None)
        last += [one for one in mine if one.at == latest][-1:]
    alone = [one for one in last if not one.tenant or one.verdict == "grounded"]
    total += sum(map(moved, alone))
    tenants = 0.0
    for tenant in "abc":
        for sign in ("hallucinated", "supported"):
            mine = [one for one in last if (one.tenant, one.verdict) == (tenant, sign)]
            most = min(max([0.5, *(one.weight for one in mine)]), 0.9)
            tenants += clipped(sum(map(moved, mine)), most)
    return 1 / (1 + math.exp(-total - clipped(tenants, 0.9)))


@given(st.lists(statements, max_size=12))
def test_the_rule_is_the_one_that_is_stated(said):
    assert wrong(*said) == pytest.approx(brute(said), abs=1e-9)


@given(st.lists(statements, max_size=8), st.randoms(use_true_random=False))
def test_in_whatever_order_different_reporters_speak(said, random):
    """And however often they say it."""
    said = [one for one in counting(said) if one.verdict not in ("agreed", "disagreed")]
    shuffled = said * 2
    random.shuffle(shuffled)
    assert wrong(*shuffled) == wrong(*said)


@given(st.lists(statements, max_size=8), statements, st.floats(0, 1))
def test_the_surer_it_is_said_the_further_it_moves(said, last, sure):
    """Never the other way, whatever else was said."""
    if last.verdict not in ("hallucinated", "supported"):
        return
    last = replace(last, at=NOW + 9)
    surer = replace(last, confidence=max(sure, last.confidence))
    before, after = wrong(*said, last), wrong(*said, surer)
    assert after >= before if last.verdict == "hallucinated" else after <= before


@given(st.lists(statements, max_size=8), statements)
def test_whoever_calls_it_wrong_never_makes_it_righter(said, last):
    """Not even one who is known to lie."""
    without = [one for one in said if (one.by, one.tenant) != (last.by, last.tenant)]
    blamed = replace(last, verdict="hallucinated", at=NOW + 9)
    assert wrong(*without, blamed) >= wrong(*without)


def test_a_record_of_truth_never_makes_one_tenant_enough():
    """And one overturned report empties a newcomer's word."""
    assert believed(0, 0) == pytest.approx(0.6)
    assert believed(10_000, 0) == ALONE
    assert known(said(tenant="a", weight=believed(10_000, 0))) == "unknown"
    assert evidence(said(tenant="a", weight=believed(0, 1))) == 0
    assert 0.5 < believed(3, 1) < ALONE + 1e-9
    assert RIGHT < PRIOR < WRONG < TRUSTED


def test_an_operator_settles_what_tenants_said_before():
    """Each report once, of the value in question, and not what was taken back."""
    mine = said(sure=0.9)
    history = [
        said(tenant="right"),
        said("supported", tenant="wrong"),
        said(tenant="took back", at=1),
        said("unknown", tenant="took back", at=2),
        said("supported", tenant="elsewhere", value="two"),
        said("wrong_hit", tenant="pair", question="q"),
    ]
    assert settled([*history, mine], mine) == {"right": True, "wrong": False}
    again = said(by="bob")
    assert settled([*history, mine, again], again) == {}
    unsure = said(sure=0.1)
    assert settled([*history, unsure], unsure) == {}
    tenants = said(tenant="b")
    assert settled([*history, tenants], tenants) == {}


def test_who_said_what_is_told_with_why_it_does_not_count():
    history = [
        said(sure=0.9),
        said("supported"),
        said(value="two"),
        said("agreed", question="q"),
        said("promoted"),
        said(tenant="liar", weight=0.2),
        said("unknown", "bob"),
    ]
    found = verdicts("a", history, entry())
    gone = verdicts("a", history, None)
    assert (found.verdict, gone.verdict, found.gone, gone.gone) == (
        "unknown",  # as it is stored
        "supported",
        False,
        True,
    )
    assert [one.why for one in found.said] == [
        "said otherwise since",
        "",
        "of another value",
        "of another question",
        "not of its truth",
        "not believed",
        "takes back what was said",
    ]
    assert found.as_json()["said"][1]["judgement"]["verdict"] == "supported"
    assert "supported by ann (-2.20)" in str(found)
