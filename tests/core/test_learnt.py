"""What policies learn: kept over processes, added up over caches, and never over tenants."""

import json
import os
import sqlite3
import threading

import pytest

import stemma
from stemma import learnt
from stemma.effects import arun, run
from stemma.policies.learning import Judgement, Trial
from stemma.policies.standing import KNOWN
from stemma.policies.strict import StrictPolicy
from stemma.policies.threshold import Candidate
from stemma.policies.verified import VerifiedPolicy
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Lesson
from stemma.testing.clock import ManualClock

ASKED = "where is my parcel"


def near(similarity: float) -> list[Candidate]:
    return [
        Candidate("0", "where is my parcel now", similarity, "0"),
        Candidate("1", "where is my parcel today", similarity - 0.1, "1"),
    ]


def opened(url, clock=None, **rest) -> stemma.Cache:
    policy = rest.pop("policy", None)
    if policy is None:
        policy = VerifiedPolicy(0.05, embedder="hashing", seed=5)
    rest = {"tenant": "me", "embedder": "hashing", **rest}
    return stemma.open(url, policy=policy, clock=clock, **rest)


def swapped(texts):
    """Another embedder."""
    return [[float(len(text)), 1.0] for text in texts]


def taught(cache, rounds, *, tenant="me", right=True, start=0) -> list[bool]:
    """Ask many times and learn from every trial; gives whether each was served."""
    policies, served = cache.engine.parts.policies, []
    for number in range(start, start + rounds):
        similarity = 0.9 + 0.1 * (number * 0.618 % 1)
        decision = run(policies.decide(tenant, "answer", ASKED, near(similarity)))
        served.append(bool(decision.accepted))
        if decision.trial is not None:
            judgement = Judgement(trial=decision.trial, right=right, by="equal")
            run(policies.learn(tenant, "answer", judgement))
    return served


def serves(cache, *, tenant="me") -> int:
    """How many of fifty would be served now."""
    policies = cache.engine.parts.policies
    return sum(
        bool(run(policies.decide(tenant, "answer", ASKED, near(0.98))).accepted) for _ in range(50)
    )


def test_what_was_learnt_is_there_after_opening_again(tmp_path):
    path = tmp_path / "cache.db"
    with opened(path) as cache:
        assert serves(cache) == 0
        taught(cache, 600)
        before = serves(cache)
    with opened(path) as again:
        assert serves(again) >= before - 15
        assert before > 30
    with opened(path, tenant="other") as other:
        assert serves(other, tenant="other") == 0


def test_the_state_is_the_one_that_was_left(tmp_path):
    """Requests, judgements and the end of the warm start; no judgement is counted twice."""
    path = tmp_path / "cache.db"
    told = []
    for _ in range(3):
        with opened(path) as cache:
            told.append(_record(cache))
            taught(cache, 0 if told[1:] else 300)
            told.append(_record(cache))
    first, left, *rest = told
    assert first["judged"] == []
    assert len(left["judged"]) > 20
    for record in rest:
        assert record["judged"] == left["judged"]
        assert record["warm"] == left["warm"]
        assert left["requests"] - 25 <= record["requests"] <= left["requests"]


def _record(cache, tenant="me"):
    run(cache.engine.parts.policies.decide(tenant, "answer", ASKED, []))  # loads it
    return cache.engine.parts.policies.load(tenant, "answer").policy.record()


def test_one_tenants_answers_teach_no_other(tmp_path):
    """Neither what is served, nor what is refused; nor one node another."""
    with opened(tmp_path / "cache.db") as cache:
        taught(cache, 600, tenant="good")
        taught(cache, 200, tenant="poisoned", right=False)
        assert serves(cache, tenant="good") > 30
        assert serves(cache, tenant="poisoned") == 0
        assert serves(cache, tenant="new") == 0
        decided = run(cache.engine.parts.policies.decide("good", "call", ASKED, near(0.98)))
        assert not decided.accepted


def test_a_new_tenant_begins_with_what_the_policy_given_has_learnt():
    given = VerifiedPolicy(0.05, embedder="hashing", seed=5)
    with opened(":memory:") as cache:
        taught(cache, 600)
        given.restore(_record(cache))
    state = json.dumps(given.record())
    with opened(":memory:", policy=given) as cache:
        assert serves(cache, tenant="new") > 30
        taught(cache, 50, tenant="poisoned", right=False)
        assert serves(cache, tenant="newer") > 30
    assert json.dumps(given.record()) == state


@pytest.mark.parametrize("make", [VerifiedPolicy, StrictPolicy])
def test_both_policies_that_learn_are_kept(tmp_path, make):
    path = tmp_path / "cache.db"
    with opened(path, policy=make(0.1, embedder="hashing", seed=5)) as cache:
        taught(cache, 400)
        kept = _record(cache)
    with opened(path, policy=make(0.1, embedder="hashing", seed=5)) as cache:
        again = _record(cache)
    judged = "judged" if make is VerifiedPolicy else "entries"
    assert again[judged] == kept[judged]
    assert again[judged]


def test_caches_on_one_store_add_up_and_overwrite_nothing(tmp_path):
    """Each hears the other at its own next judgement, once `AGAIN` has passed."""
    path, clock = tmp_path / "cache.db", ManualClock()
    with opened(path, clock) as one, opened(path, clock) as other:
        assert (serves(one), serves(other)) == (0, 0)
        taught(one, 300)
        own = taught(other, 30, right=False).count(False)
        one.engine.parts.journal.flush()
        other.engine.parts.journal.flush()
        assert len(_record(other)["judged"]) == own > 20
        clock.advance(learnt.AGAIN)
        while taught(other, 1, right=False)[0]:
            pass  # until one is audited
        other.engine.parts.journal.flush()
        assert len(_record(other)["judged"]) == own + 1 + len(_record(one)["judged"])
        clock.advance(learnt.AGAIN)
        while len(_record(one)["judged"]) < len(_record(other)["judged"]):
            taught(one, 1, start=7)
            one.engine.parts.journal.flush()
    with opened(path, clock) as third:
        judged = len(_record(third)["judged"])
        assert judged == len(third.engine.parts.store.lessons("me", "answer"))


def test_a_wrong_hit_found_by_one_cache_is_heard_by_the_other(tmp_path):
    path, clock = tmp_path / "cache.db", ManualClock()
    with opened(path, clock) as one, opened(path, clock) as other:
        taught(one, 600)
        one.engine.parts.journal.flush()
        assert serves(one) > 30
        taught(other, 300, right=False)
        other.engine.parts.journal.flush()
        clock.advance(learnt.AGAIN)
        while taught(one, 1, start=3)[0]:
            pass  # until one is audited
        assert serves(one) == 0


def test_what_another_embedder_taught_is_left_alone_and_told(tmp_path):
    path = tmp_path / "cache.db"
    with opened(path) as cache:
        taught(cache, 600)
    events = []
    policy = VerifiedPolicy(0.05, embedder="another/1", seed=5)
    with opened(path, policy=policy) as cache:
        cache.listen(events.append)
        assert serves(cache) == 0
    (warning,) = [one for one in events if one.kind == "warning"]
    assert warning.outcome == "policy"
    assert '"embedder": "hashing"' in warning.detail
    with opened(path) as cache:
        assert serves(cache) > 30


def test_the_similarities_that_a_policy_decides_on_are_part_of_its_state(tmp_path):
    """Also where the policy itself was told no embedder."""
    path = tmp_path / "cache.db"
    with opened(path, policy=VerifiedPolicy(0.05, seed=5)) as cache:
        taught(cache, 600)
        assert serves(cache) > 30
    with opened(path, policy=VerifiedPolicy(0.05, seed=5), embedder=swapped) as cache:
        assert serves(cache) == 0


def test_more_tenants_than_are_kept_in_memory_lose_nothing(monkeypatch, url):
    monkeypatch.setattr(learnt, "LIVE", 2)
    with opened(url) as cache:
        tenants = [f"t{number}" for number in range(5)]
        for tenant in tenants:
            taught(cache, 40, tenant=tenant)
        taught(cache, 10, tenant="t0")
        counts = {tenant: len(_record(cache, tenant)["judged"]) for tenant in tenants}
        assert counts == {**dict.fromkeys(tenants, 40), "t0": 50}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_goes_on_and_counts_nothing_twice(tmp_path):
    path = tmp_path / "cache.db"
    with opened(path) as cache:
        taught(cache, 40)
        cache.engine.parts.journal.flush()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                taught(cache, 10)
                cache.engine.parts.journal.flush()
                status = int(len(_record(cache)["judged"]) != 50)
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        taught(cache, 5)
    with opened(path) as cache:
        assert len(_record(cache)["judged"]) == 55


@pytest.mark.parametrize(
    ("column", "value"), [("known", "nonsense"), ("known", "[1.0]"), ("weight", "x"), ("at", None)]
)
def test_a_damaged_lesson_is_none(tmp_path, column, value):
    path = tmp_path / "cache.db"
    with opened(path) as cache:
        taught(cache, 40)
    connection = sqlite3.connect(path)
    if value is not None:
        connection.execute(f"UPDATE lessons SET {column} = ? WHERE number = 3", (value,))
    connection.commit()
    connection.close()
    with opened(path) as cache:
        assert len(_record(cache)["judged"]) == 40 - (value is not None)


class Unread(MemoryStore):
    """Cannot give any lesson."""

    def lessons(self, tenant, node, *, after=0):
        raise stemma.StoreUnavailable("not now")


def test_where_lessons_cannot_be_read_nothing_is_served_by_meaning(do):
    """A warm start may have been revoked: that is not known then. The call itself goes on."""
    events = []
    with stemma.open(Unread(), tenant="me", embedder="hashing", policy="verified") as cache:
        cache.listen(events.append)
        for question in ("How do I cancel my order?", "How can I cancel my order?"):
            served = do(cache.answers.get_or_compute, question, lambda: "Press Cancel.")
            assert served.value == "Press Cancel."
    assert served.outcome.reason == "fault"
    assert {one.outcome for one in events if one.kind == "fault"} == {"lookup"}


class Unwritten(MemoryStore):
    """Takes no lesson, at first."""

    fails = True

    def learn(self, lessons):
        if self.fails:
            raise stemma.StoreUnavailable("not now")
        super().learn(lessons)


def test_lessons_wait_until_the_store_takes_them():
    store = Unwritten()
    with opened(store) as cache:
        taught(cache, 5)
        cache.engine.parts.journal.flush()
        store.fails = False
        cache.engine.parts.journal.flush()
        assert [one.right for one in store.lessons("me", "answer")] == [True] * 5


async def test_the_loop_is_not_held_while_lessons_are_read():
    """They are read in a worker thread, as is everything that a store takes long for."""
    threads = []

    class Watched(MemoryStore):
        def lessons(self, tenant, node, *, after=0):
            threads.append(threading.current_thread())
            return super().lessons(tenant, node, after=after)

    with opened(Watched()) as cache:
        await arun(cache.engine.parts.policies.decide("me", "answer", ASKED, near(0.98)))
    assert threads
    assert threading.main_thread() not in threads


def test_many_lessons_at_once_teach_what_one_at_a_time_does():
    """The bar may be set later, never otherwise."""
    known = tuple(float(number % 3) for number, _ in enumerate(KNOWN))
    trial = Trial(candidate="a", known=known, weight=2.0)
    told = [Judgement(trial=trial, right=n % 7 != 0, requests=n % 3) for n in range(300)]
    slow, fast = (VerifiedPolicy(0.05, embedder="x", seed=1) for _ in range(2))
    for one in told:
        slow.learn(one)
    fast.learn(*told)
    first, second = slow.record(), fast.record()
    assert first["judged"] == second["judged"]
    assert first["requests"] == second["requests"] == sum(one.requests for one in told)


def test_a_lesson_counts_the_requests_since_the_one_before(url):
    with opened(url) as cache:
        policies = cache.engine.parts.policies
        for _ in range(6):
            decision = run(policies.decide("me", "answer", ASKED, near(0.98)))
        run(policies.learn("me", "answer", Judgement(trial=decision.trial, right=True)))
        cache.engine.parts.journal.flush()
        (lesson,) = cache.engine.parts.store.lessons("me", "answer")
    assert isinstance(lesson, Lesson)
    assert lesson.requests == 6
