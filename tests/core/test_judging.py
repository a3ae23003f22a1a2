"""Policies that learn are told whether what they tried would have been right."""

from dataclasses import replace

import pytest

import stemma
from stemma.policies.learning import Judgement, Trial
from stemma.policies.same_answer import SameAnswer
from stemma.policies.strict import StrictPolicy
from stemma.policies.threshold import Decision, ThresholdPolicy
from stemma.policies.verified import VerifiedPolicy

QUESTION, AGAIN = "How do I cancel my order?", "How can I cancel my order?"


class Tries:
    """Serves nothing, and wants to know of the nearest whether it would have been right."""

    name, depth, floor = "tries", 8, 0.0

    def __init__(self):
        self.told: list[Judgement] = []
        self.seen = []

    def decide(self, asked, candidates):
        self.seen.append([(one.focus, one.answer) for one in candidates])
        if not candidates:
            return Decision(reason="cold")
        nearest = max(candidates, key=lambda one: one.similarity)
        trial = Trial(candidate=nearest.id, known=(nearest.similarity,))
        return Decision((), "audit", nearest.id, nearest.similarity, "", trial)

    @property
    def identity(self):
        return {"policy": self.name}

    def anew(self):
        return self

    def learn(self, *judgements):
        self.told += judgements

    def record(self):
        return {}

    def restore(self, record):
        pass


@pytest.fixture
def policy():
    return Tries()


@pytest.fixture
def cache(url, policy):
    with stemma.open(url, tenant="me", embedder="hashing", policy=policy) as opened:
        yield opened


def ask(cache, do, question, answer):
    return do(cache.answers.get_or_compute, question, lambda: answer)


@pytest.mark.parametrize(
    ("fresh", "right", "by"),
    [
        ("Under Orders, press Cancel.", True, "equal"),
        ("Under  Orders, press Cancel. ", True, "equal"),
        ("Within 14 days.", False, "guard:number"),
        ("The weather is fine in Lisbon", False, "similarity"),
    ],
)
def test_a_fresh_answer_tells_whether_the_one_tried_was_right(  # noqa: PLR0917 - fixtures
    cache, do, policy, fresh, right, by
):
    events = []
    cache.listen(lambda event: events.append(event) if event.kind == "judgement" else None)
    stored = "Under Orders, press Cancel." if by != "guard:number" else "Within 30 days."
    first = ask(cache, do, QUESTION, stored)
    assert policy.told == []
    served = ask(cache, do, AGAIN, fresh)
    assert (served.outcome.reason, served.value) == ("audit", fresh)
    (judgement,) = policy.told
    assert (judgement.right, judgement.by) == (right, by)
    assert judgement.trial.candidate == first.stored.entry.id
    (event,) = events
    assert (event.outcome, event.detail) == ("right" if right else "wrong", by)


def test_candidates_say_who_gave_the_same_answer(cache, do, policy):
    for question, answer in ((QUESTION, "Yes."), (AGAIN, "Yes."), ("May I cancel?", "No.")):
        ask(cache, do, question, answer)
    ask(cache, do, "Can I cancel my order?", "Yes.")
    answers = dict(policy.seen[-1])
    assert answers[QUESTION] == answers[AGAIN] != answers["May I cancel?"]


def test_where_nobody_can_say_nothing_is_learnt(cache, do, policy):
    ask(cache, do, QUESTION, "Under Orders, press Cancel.")
    ask(cache, do, AGAIN, "")
    ask(cache, do, "Can I cancel my order?", "Yes.")
    assert policy.told == []


@pytest.mark.parametrize(
    ("stored", "fresh", "right", "by"),
    [
        ({"pages": 3}, {"pages": 3}, True, "equal"),
        ({"pages": 3}, {"pages": 4}, False, "value"),
        ({"city": "Rome", "pages": 3}, {"city": "Rome", "pages": 4}, False, "value"),
        ({"a": "x", "b": "y"}, {"a": "y", "b": "x"}, False, "value"),
        ({"city": "Rome"}, {"city": "rome."}, True, "equal"),
        ([1, 2], [1, 2, 3], False, "value"),
        (True, 1, False, "value"),
        (3, "Three of them", False, "value"),
        (
            {"pages": 3, "why": "They were counted by hand."},
            {"pages": 3, "why": "They were  counted by hand"},
            True,
            "equal",
        ),
    ],
)
def test_structured_answers_are_the_same_only_if_all_but_their_prose_is_equal(  # noqa: PLR0917 - fixtures
    cache, do, policy, stored, fresh, right, by
):
    ask(cache, do, QUESTION, stored)
    ask(cache, do, AGAIN, fresh)
    assert [(one.right, one.by) for one in policy.told] == [(right, by)]


def test_a_fresh_answer_is_known_by_that_of_the_nearest_that_says_the_same(cache, do, policy):
    """In other words, also over a third; and it is kept who said so."""
    third = "Can I cancel my order?"
    first = ask(cache, do, QUESTION, "Under Orders, press Cancel.").stored.entry
    second = ask(cache, do, AGAIN, "under  Orders, press Cancel").stored.entry
    ask(cache, do, third, "UNDER ORDERS, press Cancel!")
    ask(cache, do, "May I cancel my order?", "Within 30 days.")
    do(cache.answers.lookup, "How would I cancel my order?")
    answers = dict(policy.seen[-1])
    assert answers[QUESTION] == answers[AGAIN] == answers[third] == first.value
    assert answers["May I cancel my order?"] != first.value
    said = cache.engine.parts.store.judgements(entry=second.id)
    assert [(one.verdict, one.by, one.question) for one in said] == [("same", "equal", first.id)]


def test_the_judge_is_asked_of_what_was_tried_alone(url, do, policy):
    """Each of its answers costs."""
    asked = []

    def judge(one, other):
        asked.append((one, other))
        return 1.0

    same = SameAnswer(same=1.0, other=0.0, judge=judge)
    with stemma.open(
        url, tenant="me", embedder="hashing", policy=policy, same_answer=same
    ) as cache:
        for at, question in enumerate((QUESTION, AGAIN, "Can I cancel my order?")):
            words = ("press", "click", "touch")[at]
            ask(cache, do, question, f"Under Orders, {words} Cancel.")
        assert cache.engine.parts.hearing.wait(30)
    assert len(asked) == len(policy.told) == 2


def test_an_entry_that_is_gone_teaches_nothing(cache, do, policy):
    first = ask(cache, do, QUESTION, "Yes.")
    miss = do(cache.answers.lookup, AGAIN)
    cache.recall(entry=first.stored.entry.id)
    do(cache.answers.put, miss.ticket, "Yes.")
    assert policy.told == []


def test_a_put_by_ticket_is_judged_as_well(cache, do, policy):
    ask(cache, do, QUESTION, "Yes.")
    miss = do(cache.answers.lookup, AGAIN)
    do(cache.answers.put, miss.ticket, "Yes.")
    assert [one.right for one in policy.told] == [True]


def test_trouble_in_judging_is_not_the_callers(url, do, policy):
    def judge(one, other):
        raise OSError("the judge does not answer")

    same = SameAnswer(same=1.0, other=0.0, judge=judge)
    with stemma.open(
        url, tenant="me", embedder="hashing", policy=policy, same_answer=same
    ) as cache:
        ask(cache, do, QUESTION, "Under Orders, press Cancel.")
        assert ask(cache, do, AGAIN, "Under Orders, click Cancel.").stored
    assert policy.told == []


def test_policies_have_names():
    for name, kind in (
        ("threshold", ThresholdPolicy),
        ("verified", VerifiedPolicy),
        ("verified-strict", StrictPolicy),
    ):
        with stemma.open(embedder="hashing", policy=name) as cache:
            assert type(cache.engine.parts.policy) is kind
    with stemma.open(embedder="hashing", policy="verified", max_error=0.05) as cache:
        policy = cache.engine.parts.policy
        assert policy.max_error == 0.05
        assert policy.embedder == cache.engine.parts.embedder.revision


@pytest.mark.parametrize(
    "arguments",
    [
        {"policy": "unknown"},
        {"policy": "verified", "max_error": 0.6},
        {"policy": "verified", "max_error": -0.1},
        {"policy": "threshold", "max_error": 0.1},
        {"threshold": 0.9, "max_error": 0.1},
        {"policy": "verified", "threshold": 0.9},
        {"same_answer": "equal"},
        {"policy": 3},
    ],
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(stemma.UsageError):
        stemma.open(embedder="hashing", **arguments)


@pytest.mark.real
def test_with_the_local_model_sure_hits_are_served_from_the_start(do):
    """All but those that are audited."""
    with stemma.open(tenant="me", embedder="local", policy="verified") as cache:
        answer = "Under Orders, press Cancel."
        ask(cache, do, QUESTION, answer)
        ways = (
            "How can I cancel my order?",
            "How do I cancel my order",
            "how do I cancel my order?",
        )
        outcomes = [ask(cache, do, way + " " * n, answer).outcome for way in ways for n in range(8)]
        assert {one.tier for one in outcomes if one.hit} >= {"semantic"}
        assert {one.reason for one in outcomes if not one.hit} <= {"audit"}
        assert not ask(cache, do, "How can I cancel 2 of my orders?", "Twice.").outcome.hit


def test_what_a_tenants_audits_find_of_a_pools_entry_is_for_its_own_policy_alone(url, do):
    class Audits(Tries):
        def decide(self, asked, candidates):
            decision = super().decide(asked, candidates)
            trial = decision.trial and replace(decision.trial, audit=True)
            return replace(decision, trial=trial)

    policy = Audits()
    with stemma.open(url, embedder="hashing", policy=policy) as cache:
        with cache.using(tenant="ann", pool="p"):
            own = ask(cache, do, QUESTION, "Under Orders, press Cancel.").stored.entry
        copy = do(cache.pools.promote, own.id, by="ops").copy
        with cache.using(tenant="eve", pool="p"):
            for wrong in ("Never.", "By post.", "On Mars."):
                ask(cache, do, f"{AGAIN} {wrong}", wrong)
        store = cache.engine.parts.store
        assert policy.told[0].trial.candidate == copy.id
        assert store.get([copy.id]).entries[copy.id].judged == copy.judged
        with cache.using(tenant="ann"):
            ask(cache, do, AGAIN, "Never.")
        assert store.get([own.id]).entries[own.id].judged.disagreed == 1
