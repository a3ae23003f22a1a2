"""The error budget: the risks of a chain's hits by meaning never add up to more than it."""

import asyncio
import math

import pytest

import stemma
from stemma.embedders import HashingEmbedder
from stemma.lineage.chains import Chain
from stemma.policies.threshold import probability
from stemma.testing.fakes import Scripted

ASKED = "find music events in Berlin this weekend"
REWORDED = "music events in Berlin this weekend, find"
ONE, OTHER = HashingEmbedder().embed([ASKED, REWORDED])
RISK = 1 - probability(float(ONE @ OTHER))


def search(cache, do, compute, query, name="search", **others):
    return do(
        cache.hops.get_or_compute, name, compute, arguments={"q": query}, semantic="q", **others
    )


@pytest.fixture
def calls(cache, do):
    """A computation, after four steps were stored outside any path."""
    compute = Scripted()
    for number in range(4):
        with cache.trace(), cache.hop("search"):
            search(cache, do, compute, ASKED, f"search {number}", path=False)
    return compute


def chain(cache, do, calls, queries, budget):
    outcomes = []
    with cache.trace(budget=budget) as frame:
        for number, query in enumerate(queries):
            with cache.hop("search"):
                served = search(cache, do, calls, query, f"search {number}", path=False)
                outcomes.append(served.outcome)
    return outcomes, sum(frame.chain.risks.values())


def test_the_hit_that_would_overdraw_is_refused(cache, do, calls):
    outcomes, spent = chain(cache, do, calls, [REWORDED] * 4, 2.5 * RISK)
    assert [one.hit for one in outcomes] == [True, True, False, False]
    assert {one.reason for one in outcomes[2:]} == {"budget"}
    assert math.isclose(spent, 2 * RISK, abs_tol=0.01)
    assert "spent" in outcomes[2].detail


def test_exact_hits_cost_nothing(cache, do, calls):
    outcomes, spent = chain(cache, do, calls, [ASKED] * 4, 0.0)
    assert [one.tier for one in outcomes] == ["exact"] * 4
    assert spent == 0


def test_a_hit_that_just_fits_is_served(cache, do, calls):
    _, spent = chain(cache, do, calls, [REWORDED] * 2, 1.0)
    outcomes, again = chain(cache, do, calls, [REWORDED] * 2, spent)
    assert all(one.hit for one in outcomes)
    assert again == spent


def test_the_same_taken_for_the_same_counts_once(cache, do, calls):
    with cache.trace(budget=1.5 * RISK) as frame:
        for _ in range(3):
            with cache.hop("search"):
                assert search(cache, do, calls, REWORDED, "search 0", path=False).outcome.hit
    assert len(frame.chain.risks) == 1


def test_the_budget_of_the_cache_is_the_default_and_the_nearer_one_counts(do, clock):
    for said, nearer, served in ((0.0, None, False), (0.0, 0.5, True), (0.5, 0.0, False)):
        with stemma.open(tenant="me", embedder="hashing", budget=said) as cache:
            search(cache, do, Scripted(), ASKED)
            with cache.trace(budget=nearer):
                assert search(cache, do, Scripted(), REWORDED).outcome.hit is served


def test_without_a_trace_each_hit_has_a_budget_of_its_own(do):
    with stemma.open(tenant="me", embedder="hashing", budget=1.5 * RISK) as cache:
        for name in "abc":
            search(cache, do, Scripted(), ASKED, name)
            assert search(cache, do, Scripted(), REWORDED, name).outcome.hit


def test_a_hop_has_a_smaller_budget_of_its_own_and_spends_that_of_its_trace(cache, do, calls):
    with cache.trace(budget=2.5 * RISK) as frame:
        with cache.hop("careful", budget=0.5 * RISK):
            refused = search(cache, do, calls, REWORDED, "search 0", path=False).outcome
        with cache.hop("bold", budget=1.0):
            hits = [
                search(cache, do, calls, REWORDED, f"search {number}", path=False).outcome.hit
                for number in (1, 2, 3)
            ]
    assert refused.reason == "budget"
    assert hits == [True, True, False]
    assert len(frame.chain.risks) == 2


def test_nested_hops_spend_one_budget(cache, do, calls):
    with cache.trace(budget=1.5 * RISK), cache.hop("outer"):
        with cache.hop("inner"):
            assert search(cache, do, calls, REWORDED, "search 0", path=False).outcome.hit
        assert not search(cache, do, calls, REWORDED, "search 1", path=False).outcome.hit


def test_branches_that_meet_never_overdraw_together(cache, do, calls):
    async def branch(number):
        with cache.hop("branch"):
            await asyncio.sleep(0)
            served = await cache.hops.aget_or_compute(
                f"search {number}", calls, arguments={"q": REWORDED}, semantic="q", path=False
            )
            return served.outcome

    async def run():
        with cache.trace(budget=2.5 * RISK) as frame:
            outcomes = await asyncio.gather(*(branch(number) for number in range(4)))
        return outcomes, sum(frame.chain.risks.values())

    outcomes, spent = asyncio.run(run())
    assert sorted(one.hit for one in outcomes) == [False, False, True, True]
    assert spent <= 2.5 * RISK


def test_what_does_not_see_its_siblings_does_not_pay_for_them():
    above = Chain(budget=0.5)
    assert above.take({"a": 0.3}, 1.0) == ""
    items = [Chain(beside=above) for _ in range(2)]
    assert [item.take({str(place): 0.2}, 1.0) for place, item in enumerate(items)] == ["", ""]
    assert items[0].take({"x": 0.01}, 1.0) != ""
    assert above.risks == {"a": 0.3}
    for item in items:
        above.absorb(item)
    assert above.take({"b": 0.0001}, 1.0) != ""


def test_what_was_made_on_a_risky_path_passes_its_risk_on(cache, do):
    """It was computed under a premise that may be wrong, and is found without that premise."""
    calls = Scripted()

    def walk(query, budget=1.0):
        with cache.trace(budget=budget) as frame:
            with cache.hop("one"):
                search(cache, do, calls, query)
            with cache.hop("two"):
                two = do(cache.hops.get_or_compute, "two", calls)
        return two, frame.chain.risks

    with cache.trace(), cache.hop("one"):
        search(cache, do, calls, ASKED)
    two, risky = walk(REWORDED)
    assert dict(two.stored.entry.walk.risks) == risky
    assert len(risky) == 1
    # The same mistake is not counted twice by who makes it again …
    two, again = walk(REWORDED)
    assert two.outcome.tier == "exact"
    assert again == risky
    # … and it counts for who walks there by equal questions alone.
    two, exact = walk(ASKED)
    assert two.outcome.tier == "exact"
    assert exact == risky
    two, _ = walk(ASKED, budget=0.0)
    assert two.outcome.reason == "budget"
    assert two.stored.entry.walk.risks == ()
    two, clean = walk(ASKED, budget=0.0)
    assert (two.outcome.tier, clean) == ("exact", {})


def test_a_step_without_a_path_inherits_no_risk(cache, do, calls):
    with cache.trace(), cache.hop("one"):
        assert search(cache, do, calls, REWORDED, "search 0", path=False).outcome.hit
        made = search(cache, do, calls, ASKED, "another", path=False).stored.entry
    assert made.walk.risks == ()


def test_other_hits_by_meaning_count_inside_a_hop_and_nowhere_else(do):
    with stemma.open(tenant="me", embedder="hashing", budget=0.0, policy="threshold") as cache:
        do(cache.answers.get_or_compute, ASKED, Scripted())
        with cache.trace():
            assert do(cache.answers.lookup, REWORDED).tier == "semantic"
            with cache.hop("answer"):
                assert do(cache.answers.lookup, REWORDED).reason == "budget"
                assert do(cache.answers.lookup, ASKED).tier == "exact"


@pytest.mark.parametrize("budget", [-0.1, 1.1, float("nan"), "0.5", True])
def test_a_budget_out_of_its_range_is_an_error(cache, budget):
    with pytest.raises(stemma.UsageError, match="budget"), cache.trace(budget=budget):
        pass
    with pytest.raises(stemma.UsageError, match="budget"), cache.hop("x", budget=budget):
        pass
    with pytest.raises(stemma.UsageError, match="budget"):
        stemma.open(embedder=None, budget=budget)
