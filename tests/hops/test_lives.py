"""Lives that shorten: by hop, by confidence, by how often the sources change; parents end children."""

import pytest

import stemma
from stemma import LifePolicy, Source
from stemma.lineage import frames
from stemma.policies.changes import DAY, Prior
from stemma.policies.life import Aging
from stemma.testing.fakes import Scripted


def ask(cache, do, step, compute, **others):
    return do(cache.hops.get_or_compute, step, compute, **others)


def lives(cache, do, hops, **others):
    """The lives of the steps of one run, seconds."""
    found = []
    with cache.trace():
        for number in range(hops):
            with cache.hop(f"hop {number}"):
                entry = ask(cache, do, "step", Scripted(), **others).stored.entry
            found.append(entry.expires - entry.made)
    return found


@pytest.fixture
def exactly(url, clock):
    """A cache whose lives do not differ by their entries."""
    with stemma.open(
        url, tenant="me", embedder=None, clock=clock, life=LifePolicy(jitter=0.0)
    ) as opened:
        yield opened


def test_each_hop_leaves_four_fifths(exactly, do):
    expected = [3600 * 0.8**number for number in range(5)]
    assert lives(exactly, do, 5) == pytest.approx(expected)


def test_base_factor_and_floor_are_the_steps_own(exactly, do):
    found = lives(exactly, do, 4, life=1000.0, factor=0.5, floor=200.0)
    assert found == pytest.approx([1000, 500, 250, 200])


def test_a_factor_of_the_policy_holds_for_every_step(url, clock, do):
    policy = LifePolicy({"hop": 100.0}, factor=0.1, floor=5.0, jitter=0.0)
    with stemma.open(url, tenant="me", embedder=None, clock=clock, life=policy) as cache:
        assert lives(cache, do, 3) == pytest.approx([100, 10, 5])


def test_jitter_shortens_by_a_tenth_at_most_and_never_lengthens(cache, do):
    for number, life in enumerate(lives(cache, do, 8)):
        full = 3600 * 0.8**number
        assert 0.9 * full <= life <= full


@pytest.mark.parametrize(
    "wrong",
    [
        {"factor": 0},
        {"factor": 1.1},
        {"factor": "0.5"},
        {"factor": float("nan")},
        {"floor": -1},
        {"floor": True},
    ],
)
def test_numbers_out_of_their_range_are_errors(cache, do, wrong):
    with pytest.raises(stemma.UsageError):
        do(cache.hops.lookup, "step", **wrong)


def test_doubt_shortens(exactly):
    with exactly.trace(), exactly.hop("one"):
        miss = exactly.hops.lookup("step")
        entry = exactly.hops.put(miss.ticket, "value", confidence=0.5).entry
    assert entry.expires - entry.made == pytest.approx(3600 * 0.5**0.85)


def built_on(cache, do, contents, step="step", life=10 * DAY):
    """A step that reads chunks of an index, with these contents."""
    with cache.trace(), cache.hop("read") as frame:
        sources = [
            (Source(document="d", chunk=f"d#{number}", content=content, index="docs"), content)
            for number, content in enumerate(contents)
        ]
        frame.read_sources(sources, frames.marks())
        return ask(cache, do, step, Scripted(), life=life).stored.entry


def test_a_new_source_bounds_the_life_as_the_prior_says(exactly, do):
    one, two = built_on(exactly, do, ["a"], "one"), built_on(exactly, do, ["a", "b"], "two")
    rate = Prior().changes / Prior().seconds
    for entry, number in ((one, 1), (two, 2)):
        assert entry.walk.aging.change_rate == pytest.approx(number * rate)
        aging = Aging(base=10 * DAY, change_rate=number * rate, jitter=0.0)
        assert entry.expires - entry.made == pytest.approx(aging.life(""))
    assert two.expires < one.expires


def test_a_step_lives_as_long_whether_the_steps_before_it_were_served_or_computed(exactly, do):
    def run():
        found = []
        with exactly.trace():
            for number in range(3):
                with exactly.hop(f"hop {number}") as frame:
                    source = Source(document="d", chunk=f"d#{number}", content="a", index="docs")
                    frame.read_sources([(source, "a")], frames.marks())
                    found.append(ask(exactly, do, "step", Scripted(), life=10 * DAY))
        return found

    computed = [one.stored.entry for one in run()]
    exactly.clear(entry=computed[2].id)
    *served, again = run()
    assert all(one.outcome.hit for one in served)
    rates = [one.walk.aging.change_rate for one in (*computed, again.stored.entry)]
    assert rates == pytest.approx([Prior().changes / Prior().seconds] * 4)


def test_a_source_that_changes_shortens_and_one_that_stays_lengthens(exactly, do, clock):
    def life(name, contents):
        for number, content in enumerate(contents):
            clock.advance(5 * DAY)
            exactly.answers.put(exactly.answers.ticket(f"{name} {number}"), "so that time goes on")
            entry = built_on(exactly, do, [f"{name} {content}"], f"{name} {number}")
        return entry.expires - entry.made

    staying = life("x", "aaaaaaaa")
    exactly.clear(tenant="me")
    assert life("y", "abcdefgh") < staying / 3


def test_a_child_is_valid_only_while_its_parents_are(exactly, do, clock):
    def walk():
        with exactly.trace():
            with exactly.hop("one"):
                one = ask(exactly, do, "one", Scripted("same"), life=100.0)
            with exactly.hop("two"):
                return one, ask(exactly, do, "two", Scripted(), life=1000.0)

    walk()
    clock.advance(99)
    assert all(one.outcome.hit for one in walk())
    clock.advance(2)
    one, two = walk()
    # The first step is computed anew, with the same value: so the second one stands.
    assert (one.outcome.reason, two.outcome.hit) == ("expired", True)


def test_a_step_whose_parent_is_over_is_no_longer_served(exactly, do, clock):
    with exactly.trace(), exactly.hop("one"):
        ask(exactly, do, "parent", Scripted(), life=100.0, path=False)
        ask(exactly, do, "child", Scripted(), life=1000.0)
    clock.advance(101)
    with exactly.trace(), exactly.hop("one"):
        assert do(exactly.hops.lookup, "child").reason == "parent_invalid"


def test_a_clock_that_jumps_an_hour_serves_nothing_that_is_over(exactly, do, clock):
    def step():
        with exactly.trace(), exactly.hop("one"):
            return ask(exactly, do, "step", Scripted(), life=1800.0)

    made = step().stored.entry
    clock.jump(3600)
    late = step()
    assert late.outcome.reason == "expired"
    clock.jump(-3600)
    # What was made an hour ahead of the clock as it is now has no end that could be believed.
    early = step()
    assert early.outcome.reason == "expired"
    assert early.stored.entry.made == made.made
    assert step().outcome.age == 0
    clock.jump(-600)
    assert step().outcome.age == 0
    clock.jump(-1)
    assert step().outcome.reason == "expired"
