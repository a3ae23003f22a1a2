"""Candidates that a policy does not trust enough are put before a judge, and its word counts."""

import asyncio
import os
import threading

import pytest

import stemma
from stemma import hearing
from stemma.judges import FunctionJudge, GreyBand
from stemma.policies.same_answer import SameAnswer
from stemma.policies.verified import VerifiedPolicy

QUESTION, AGAIN = "How do I cancel my order?", "How can I cancel my order?"
SIGNED = "judge:mine"


class Said:
    """A judge that says the same of every pair, or does it, and notes the pairs."""

    name, revision = "mine", "mine/1"

    def __init__(self, says):
        self.says, self.asked = says, []

    def judge(self, one, other, about):
        self.asked.append((one, other, about))
        said = self.says() if callable(self.says) else self.says
        if isinstance(said, Exception):
            raise said
        return said


class Gate(Said):
    """A judge that says nothing until it is let go."""

    def __init__(self, says=1.0):
        super().__init__(says)
        self.begun, self.open = threading.Event(), threading.Event()

    def judge(self, one, other, about):
        said = super().judge(one, other, about)
        self.begun.set()
        assert self.open.wait(60), "nobody let it go in a minute"
        return said


@pytest.fixture
def opened():
    """Opens caches whose policy serves nothing by itself yet, and closes them.

    Of two answers only equal texts and guards tell whether they are the same.
    """
    made = []
    apart = SameAnswer(same=1.0, other=0.0)

    def make(judge=None, same_answer=apart, **named):
        if isinstance(judge, Said):
            judge = GreyBand(judge=judge, audits=0)
        asked = {"policy": "verified", "judge": judge, "same_answer": same_answer, **named}
        made.append(stemma.open(tenant="me", embedder="hashing", **asked))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def gate():
    judge = Gate()
    yield judge
    judge.open.set()


def ask(cache, do, question, answer="Under Orders."):
    """What is served; the model says how often it was reached."""
    asked = []
    served = do(cache.answers.get_or_compute, question, lambda: asked.append(1) or answer)
    return served, len(asked)


def heard(cache, *kinds):
    events = []
    cache.listen(lambda one: events.append(one) if one.kind in kinds else None)
    return events


def judged(cache):
    """What has been learnt: right or wrong, in order."""
    cache.engine.parts.journal.flush()
    return [one.right for one in cache.engine.parts.store.lessons("me", "answer", after=0)]


def test_before_a_yes_serves_what_the_policy_would_not_and_teaches_it(opened, do):
    judge = Said(0.97)
    cache = opened(judge)
    events = heard(cache, "judgement")
    stored = ask(cache, do, QUESTION)[0].stored.entry
    served, computed = ask(cache, do, AGAIN, "another")
    assert (served.value, computed, served.outcome.tier) == ("Under Orders.", 0, "semantic")
    assert SIGNED in served.outcome.why
    assert judge.asked == [(AGAIN, QUESTION, "questions")]
    assert judged(cache) == [True]
    assert [(one.outcome, one.detail, one.entry) for one in events] == [
        ("right", SIGNED, stored.id)
    ]
    assert 0.5 <= served.outcome.probability < 0.98  # the policy's own, not what the judge says


@pytest.mark.parametrize("says", [0.0, 0.1])
def test_before_a_no_is_a_miss_and_the_fresh_answer_tells(opened, do, says):
    judge = Said(says)
    cache = opened(judge)
    ask(cache, do, QUESTION)
    served, computed = ask(cache, do, AGAIN, "Within 14 days.")
    assert (served.value, computed) == ("Within 14 days.", 1)
    assert served.outcome.reason == "below_threshold"
    assert served.outcome.detail.endswith(f"; {SIGNED} did not say yes")
    assert ask(cache, do, AGAIN)[0].outcome.tier == "exact"
    assert len(judge.asked) == 1


@pytest.mark.parametrize(
    ("says", "kind", "outcome", "detail"),
    [
        (None, "judgement", "unsure", SIGNED),
        (0.5, "judgement", "unsure", SIGNED),
        (OSError("no"), "fault", "judge", "OSError"),
        (TimeoutError(), "fault", "judge", "TimeoutError"),
        ("yes", "fault", "judge", "JudgeError"),
        (7.0, "fault", "judge", "JudgeError"),
        (float("nan"), "fault", "judge", "JudgeError"),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_judge_that_fails_or_talks_nonsense_is_an_event_and_never_a_hit(  # noqa: PLR0917 - fixtures
    opened, do, says, kind, outcome, detail, when
):
    judge = Said(says)
    cache = opened(GreyBand(judge=judge, when=when))
    events = heard(cache, "fault", "judgement")
    ask(cache, do, QUESTION, "Look under Orders, then press Cancel.")
    served, computed = ask(cache, do, AGAIN, "Press Cancel, which is found under Orders.")
    assert (served.outcome.hit, computed, bool(served.stored)) == (False, 1, True)
    assert cache.engine.parts.hearing.wait(30)
    assert len(judge.asked) == 1
    assert [(one.kind, one.outcome, one.detail) for one in events] == [(kind, outcome, detail)]
    assert judged(cache) == []


def test_a_fault_of_the_judge_is_no_fault_of_the_cache_even_where_those_are_raised(opened, do):
    cache = opened(Said(OSError("no")), fail="closed")
    ask(cache, do, QUESTION)
    assert ask(cache, do, AGAIN)[1] == 1


def test_one_that_hangs_costs_the_timeout_and_few_threads(opened, do, gate):
    cache = opened(GreyBand(judge=gate, timeout=0.01, audits=0))
    events = heard(cache, "fault")
    ask(cache, do, QUESTION)
    for number in range(20):
        served, computed = ask(cache, do, AGAIN + " " * number)
        assert (served.outcome.hit, computed) == (False, 1)
    threads = [one for one in threading.enumerate() if one.name == "stemma-judge"]
    assert len(gate.asked) == len(threads) == 8
    assert [one.detail for one in events] == ["TimeoutError"] * 8 + ["JudgeError"] * 12
    gate.open.set()
    for one in threads:
        one.join()


@pytest.mark.parametrize(("fresh", "right"), [("Under Orders.", True), ("In 3 days.", False)])
def test_some_of_what_a_judge_approves_is_computed_afresh_to_see(opened, do, fresh, right):
    judge = Said(1.0)
    cache = opened(GreyBand(judge=judge, audits=1))
    ask(cache, do, QUESTION)
    served, computed = ask(cache, do, AGAIN, fresh)
    assert (served.value, served.outcome.reason, computed) == (fresh, "audit", 1)
    assert served.outcome.detail == f"{SIGNED} said yes"
    assert judged(cache) == [right]


def test_a_judge_whose_audits_contradict_it_is_dismissed_and_that_is_said_once(opened, do):
    judge = Said(1.0)
    cache = opened(GreyBand(judge=judge, audits=1, max_wrong=0.1))
    events = heard(cache, "warning")
    ask(cache, do, QUESTION, "In 0 days.")
    for number in range(1, 6):
        assert ask(cache, do, AGAIN + " " * number, f"In {number} days.")[1] == 1
    assert len(judge.asked) == 2
    assert [(one.outcome, one.detail) for one in events] == [
        ("judge_dismissed", f"{SIGNED}: 2 of 2 audits were wrong")
    ]


def test_a_judge_that_is_seldom_wrong_is_kept(opened, do):
    judge = Said(1.0)
    cache = opened(GreyBand(judge=judge, low=0, audits=1, max_wrong=0.5))
    ask(cache, do, QUESTION, "In 0 days.")
    for number in range(1, 9):
        ask(cache, do, AGAIN + " " * number, f"In {int(number == 1)} days.")
    assert len(judge.asked) == 8


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("How do I cancel 2 orders?", "How do I cancel 3 orders?"),
        (QUESTION, "How do I not cancel my order?"),
        ("How do I enable the alarm?", "How do I disable the alarm?"),
        ("How do I convert Celsius to Fahrenheit?", "How do I convert Fahrenheit to Celsius?"),
        (QUESTION, "How is the weather?"),
    ],
)
def test_it_is_not_asked_where_a_guard_is_certain_or_nothing_is_likely(opened, do, stored, asked):
    judge = Said(1.0)
    cache = opened(judge)
    ask(cache, do, stored)
    assert ask(cache, do, asked)[1] == 1
    assert judge.asked == []


@pytest.mark.parametrize(("low", "times"), [(0.0, 1), (0.9, 1), (0.99, 0), (1.0, 0)])
def test_the_band_begins_where_it_is_said(opened, do, low, times):
    judge = Said(1.0)
    cache = opened(GreyBand(judge=judge, low=low, audits=0))
    ask(cache, do, QUESTION)
    assert ask(cache, do, AGAIN)[0].outcome.hit is bool(times)
    assert len(judge.asked) == times


def test_an_allowed_error_of_nothing_asks_nobody(opened, do):
    judge = Said(1.0)
    cache = opened(judge, max_error=0)
    ask(cache, do, QUESTION)
    assert ask(cache, do, AGAIN)[1] == 1
    assert judge.asked == []


def test_what_is_taken_back_while_the_judge_thinks_is_not_served(opened, do):
    holder = []
    judge = Said(lambda: holder[0].recall(tenant="me") and 1.0)
    cache = opened(GreyBand(judge=judge, timeout=30.0, audits=0))
    holder.append(cache)
    ask(cache, do, QUESTION)
    served, computed = ask(cache, do, AGAIN, "fresh")
    assert len(judge.asked) == 1
    assert (served.value, computed) == ("fresh", 1)


def test_what_is_quarantined_while_the_judge_thinks_is_not_served(opened, do):
    holder = []

    def says():
        cache, entry = holder
        cache.report(entry, "hallucinated", by="somebody")
        return 1.0

    cache = opened(GreyBand(judge=Said(says), timeout=30.0, audits=0))
    holder += [cache, ask(cache, do, QUESTION)[0].stored.entry.id]
    assert ask(cache, do, AGAIN, "fresh")[0].value == "fresh"


def test_after_nobody_waits_and_the_policy_is_taught_where_answers_do_not_tell(opened, do, gate):
    cache = opened(GreyBand(judge=gate, when="after"))
    events = heard(cache, "judgement")
    ask(cache, do, QUESTION, "Look under Orders, then press Cancel.")
    served, computed = ask(cache, do, AGAIN, "Press Cancel, which is found under Orders.")
    assert (served.outcome.hit, computed, bool(served.stored)) == (False, 1, True)
    assert gate.begun.wait(30)
    assert judged(cache) == []  # the judge has not spoken yet, and the caller is gone
    gate.open.set()
    assert cache.engine.parts.hearing.wait(30)
    assert judged(cache) == [True]
    assert gate.asked == [(AGAIN, QUESTION, "questions")]
    assert [(one.outcome, one.detail) for one in events] == [("right", SIGNED)]


def test_after_it_is_not_asked_where_the_answers_tell(opened, do):
    judge = Said(1.0)
    cache = opened(GreyBand(judge=judge, when="after"))
    ask(cache, do, QUESTION, "Within 30 days.")
    ask(cache, do, AGAIN, "Within 14 days.")
    assert cache.engine.parts.hearing.wait(30)
    assert judge.asked == []
    assert judged(cache) == [False]


def test_after_more_than_may_wait_is_dropped_and_said(opened, do, gate, monkeypatch):
    monkeypatch.setattr(hearing, "WAITING", 2)
    cache = opened(GreyBand(judge=gate, when="after", timeout=30.0))
    events = heard(cache, "fault")
    ask(cache, do, QUESTION, "Look under Orders, then press Cancel.")
    for number in range(5):
        ask(cache, do, AGAIN + " " * number, f"Press Cancel under Orders {'please ' * number}")
    assert gate.begun.wait(30)
    assert {(one.outcome, one.detail) for one in events} == {("judge", "JudgeError")}
    assert len(events) == 3
    gate.open.set()
    assert cache.engine.parts.hearing.wait(30)
    assert len(gate.asked) == 2


def test_closing_waits_for_no_judge_and_asks_and_learns_nothing_more(opened, do, gate):
    cache = opened(GreyBand(judge=gate, when="after", timeout=30.0))
    events = heard(cache, "judgement", "fault")
    ask(cache, do, QUESTION, "Look under Orders, then press Cancel.")
    for number in range(3):
        ask(cache, do, AGAIN + " " * number, f"Press Cancel under Orders {'please ' * number}")
    assert gate.begun.wait(30)
    cache.close()
    gate.open.set()
    assert cache.engine.parts.hearing.wait(30)
    assert len(gate.asked) == 1
    assert events == []


@pytest.mark.parametrize("judge", [Said(0.2), lambda one, other: 0.2])
def test_answers_that_nothing_else_tells_apart_are_judged_in_the_background(opened, do, judge):
    cache = opened(same_answer=SameAnswer(same=1.0, other=0.0, judge=judge))
    events = heard(cache, "judgement")
    ask(cache, do, QUESTION, "Under Orders, press Cancel.")
    ask(cache, do, AGAIN, "Under Orders, click Cancel.")
    assert cache.engine.parts.hearing.wait(30)
    assert judged(cache) == [False]
    by = SIGNED if isinstance(judge, Said) else "judge"
    assert [(one.outcome, one.detail) for one in events] == [("wrong", by)]


async def test_a_slow_judge_of_answers_holds_up_no_loop_and_no_caller(opened, gate):
    cache = opened(same_answer=SameAnswer(same=1.0, other=0.0, judge=gate))
    await cache.answers.aget_or_compute(QUESTION, lambda: "Under Orders, press Cancel.")
    await cache.answers.aget_or_compute(AGAIN, lambda: "Under Orders, click Cancel.")
    assert await asyncio.to_thread(gate.begun.wait, 30)
    assert judged(cache) == []
    gate.open.set()
    assert await asyncio.to_thread(cache.engine.parts.hearing.wait, 30)
    assert gate.asked == [("Under Orders, click Cancel.", "Under Orders, press Cancel.", "answers")]
    assert judged(cache) == [True]


async def test_many_tasks_wait_for_one_judge_each_for_itself(opened):
    judge = Said(1.0)
    cache = opened(GreyBand(judge=judge, timeout=30.0, audits=0))
    await cache.answers.aget_or_compute(QUESTION, lambda: "Under Orders.")
    hits = await asyncio.gather(*(cache.answers.alookup(AGAIN + " " * n) for n in range(8)))
    assert {one.hit for one in hits} == {True}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_judges_with_a_thread_of_its_own(opened, gate):
    cache = opened(GreyBand(judge=gate, when="after", timeout=30.0))
    answers = cache.answers
    answers.get_or_compute(QUESTION, lambda: "Look under Orders, then press Cancel.")
    answers.get_or_compute(AGAIN, lambda: "Press Cancel, which is found under Orders.")
    assert gate.begun.wait(30)
    child = os.fork()
    if child == 0:
        gate.open.set()
        answers.get_or_compute(AGAIN + " ", lambda: "Press Cancel, it is found under Orders.")
        done = cache.engine.parts.hearing.wait(30)
        os._exit(0 if done and len(gate.asked) == 2 and judged(cache) == [True] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "named",
    [
        {"judge": Said(1.0), "threshold": 0.9},
        {"judge": Said(1.0), "policy": "threshold"},
        {"judge": Said(1.0), "policy": "verified-strict"},
        {"judge": Said(1.0), "policy": stemma.ThresholdPolicy()},
        {"judge": "llm", "policy": "verified"},
        {"judge": Said, "policy": "verified"},
        {"judge": lambda one, other: 1.0, "policy": "verified"},
    ],
)
def test_what_is_no_judge_or_finds_nothing_to_judge_is_refused(named):
    with pytest.raises(stemma.UsageError, match="judge"):
        stemma.open(embedder="hashing", **named)


def test_what_cannot_be_noted_of_a_judgement_is_a_fault_and_the_pair_may_come_again(opened, do):
    """The background has a store of its own trouble: it is told like any other."""
    cache, faults, told = opened(Said(1.0)), [], []
    cache.listen(lambda event: faults.append(event.outcome) if event.kind == "fault" else None)
    entry = do(cache.answers.get_or_compute, QUESTION, lambda: "Press Cancel.").stored.entry
    scope = cache.answers.query(cache.answers._ask(AGAIN)).scope
    pair = hearing.Pair("questions", AGAIN, QUESTION)

    def fails(*, right, by):
        told.append((right, by))
        raise stemma.StoreUnavailable("the disk is full")
        yield

    for _ in range(2):
        cache.engine.parts.hearing.after(scope, pair, entry, fails)
        assert cache.engine.parts.hearing.wait(30)
    assert told == [(True, SIGNED)] * 2
    assert faults == ["judge", "judge"]


def test_a_policy_of_ones_own_may_leave_candidates_to_a_judge(do):
    judge = GreyBand(judge=FunctionJudge(function=lambda one, other: 1.0, name="mine"), audits=0)
    policy = VerifiedPolicy(0.05, embedder="another/1")
    with stemma.open(tenant="me", embedder="hashing", policy=policy, judge=judge) as cache:
        ask(cache, do, QUESTION)
        assert ask(cache, do, AGAIN)[0].outcome.hit
        assert judged(cache) == [True]
