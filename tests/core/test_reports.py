"""A hit that was reported as wrong never comes back, and what lies near it is looked at again."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import stemma
from stemma.policies.learning import Judgement, Trial
from stemma.policies.threshold import ThresholdPolicy
from stemma.testing.fakes import Scripted
from stemma.testing.searches import World

QUESTION, AGAIN, THIRD = (
    "How do I cancel my order?",
    "How can I cancel my order?",
    "How do I cancel an order?",
)


def ask(cache, do, question, compute=None):
    return do(cache.answers.get_or_compute, question, compute or Scripted("Press Cancel."))


@pytest.fixture
def wrong(cache, do):
    """A hit by meaning, of which somebody will say that it was wrong."""
    ask(cache, do, QUESTION)
    hit = ask(cache, do, AGAIN).outcome
    assert (hit.tier, hit.question != hit.entry.id) == ("semantic", True)
    return hit


def forms(hit):
    """What a user has in his hands."""
    return {"hit": hit, "note": json.loads(json.dumps(hit.note()))}


@pytest.mark.parametrize("form", ["hit", "note"])
def test_a_reported_pair_never_hits_again(cache, do, wrong, form):
    """Also after the quarantine is lifted, and when the entry was taken back and came again."""
    judgement = do(cache.report, forms(wrong)[form], "wrong_hit", by="ann").judgement
    assert (judgement.entry, judgement.question) == (wrong.entry.id, wrong.question)
    assert do(cache.answers.lookup, AGAIN).reason == "quarantined"
    assert do(cache.answers.lookup, QUESTION).reason == "quarantined"
    do(cache.report, wrong.entry.id, "supported", by="bob")
    assert do(cache.answers.lookup, QUESTION).hit
    refused = do(cache.answers.lookup, AGAIN)
    assert (refused.reason, refused.nearest) == ("reported", wrong.entry.id)
    cache.recall(entry=wrong.entry.id)
    ask(cache, do, QUESTION)
    assert do(cache.answers.lookup, AGAIN).reason == "reported"
    assert do(cache.answers.lookup, QUESTION).hit


def test_the_question_has_its_own_answer_from_then_on(cache, do, wrong):
    do(cache.report, wrong, "wrong_hit", by="ann")
    fresh = ask(cache, do, AGAIN, Scripted("Write to us."))
    assert fresh.value == "Write to us."
    hit = do(cache.answers.lookup, AGAIN)
    assert (hit.tier, hit.value) == ("exact", "Write to us.")


def test_the_same_answer_computed_afresh_lifts_the_quarantine(cache, do, wrong):
    do(cache.report, wrong, "wrong_hit", by="ann")
    compute = Scripted("Press Cancel.")
    assert ask(cache, do, QUESTION, compute).outcome.reason == "quarantined"
    assert ask(cache, do, QUESTION, compute).outcome.hit
    assert compute.calls == 1
    entry = do(cache.answers.lookup, QUESTION).entry
    assert (entry.verdict, entry.judged.agreed) == ("unknown", 1)
    assert do(cache.answers.lookup, AGAIN).reason == "reported"


def test_what_is_right_for_one_of_the_pair_is_never_served_to_the_other(cache, do, wrong):
    """Neither the wrong answer to the question nor, once it has its own, that to the entry's."""
    do(cache.report, wrong, "wrong_hit", by="ann")
    ask(cache, do, AGAIN, Scripted("Write to us."))
    cache.recall(entry=wrong.entry.id)
    refused = do(cache.answers.lookup, QUESTION)
    assert (refused.reason, refused.nearest) == ("reported", wrong.question)
    assert ask(cache, do, QUESTION).value == "Press Cancel."
    assert do(cache.answers.lookup, AGAIN).value == "Write to us."


@pytest.mark.parametrize("answer", ["Press Cancel.", "Press Cancel, then Yes."])
def test_that_its_own_question_is_answered_again_says_nothing_of_others(cache, do, wrong, answer):
    """Nobody is served by meaning before an audit agrees: not who asks in other letters, either."""
    do(cache.report, wrong, "wrong_hit", by="ann")
    ask(cache, do, QUESTION, Scripted(answer))
    assert do(cache.answers.lookup, QUESTION).hit
    audited = ask(cache, do, AGAIN.lower(), Scripted("In 30 days."))
    assert (audited.value, audited.outcome.reason) == ("In 30 days.", "audit")
    ask(cache, do, THIRD, Scripted(answer))
    assert not do(cache.answers.lookup, QUESTION).entry.judged.doubted


def test_a_wrong_answer_to_its_own_question_may_be_another_and_not_the_same(cache, do):
    """An exact hit is reported: the value goes for ever, the question does not."""
    ask(cache, do, QUESTION)
    hit = do(cache.answers.lookup, QUESTION)
    assert hit.question == hit.entry.id
    do(cache.report, hit, "wrong_hit", by="ann")
    same = Scripted("Press Cancel.")
    assert ask(cache, do, QUESTION, same).outcome.reason == "quarantined"
    assert ask(cache, do, QUESTION, same).outcome.reason == "reported"
    assert same.calls == 2
    assert ask(cache, do, QUESTION, Scripted("Write to us.")).value == "Write to us."
    assert do(cache.answers.lookup, QUESTION).value == "Write to us."


class Plane:
    """Texts that end in a number are vectors at that angle, in degrees; others lie apart."""

    revision = "plane"

    def fits(self, text):
        return True

    def embed(self, texts):
        rows = np.zeros((len(texts), 32), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            last = text.split()[-1]
            if last.isdecimal():
                row[:2] = math.cos(math.radians(int(last))), math.sin(math.radians(int(last)))
            else:
                row[2 + sum(map(ord, text)) % 30] = 1.0
        return rows


@pytest.fixture
def plane(url):
    """A cache in which 12 degrees are near enough; 36 are a similarity of 0.8."""
    nearest = ThresholdPolicy(0.97, guards=False)
    with stemma.open(url, tenant="me", embedder=Plane(), policy=nearest) as cache:
        yield cache


@pytest.fixture
def reported(plane, do):
    """Entries at 0, 30 and 60 degrees, and a wrong hit at 10."""
    entries = [ask(plane, do, f"at {angle}").stored.entry.id for angle in (0, 30, 60)]
    hit = ask(plane, do, "at 10").outcome
    assert (hit.tier, hit.entry.id) == ("semantic", entries[0])
    do(plane.report, hit, "wrong_hit", by="ann")
    return entries


def test_what_lies_near_a_wrong_hit_is_computed_afresh_once(plane, do, reported):
    """The next hit by meaning is an audit; one that agrees ends the doubt. What is far is free."""
    assert do(plane.answers.lookup, "at 30").tier == "exact"
    compute = Scripted("Press Cancel.")
    audited = ask(plane, do, "at 35", compute)
    assert (audited.outcome.reason, audited.outcome.nearest) == ("audit", reported[1])
    assert compute.calls == 1
    assert ask(plane, do, "at 25", compute).outcome.tier == "semantic"
    assert ask(plane, do, "at 65", compute).outcome.tier == "semantic"
    assert compute.calls == 1
    said = [(one.verdict, one.by) for one in plane.engine.parts.store.judgements(entry=reported[1])]
    assert said == [("agreed", "equal")]


def test_a_cluster_of_bad_hits_dies_at_once(plane, do, reported):
    """As long as audits disagree, no neighbour is served by meaning."""
    for days, angle in enumerate((36, 37, 25)):
        served = ask(plane, do, f"at {angle}", Scripted(f"In {days} days."))
        assert (served.outcome.reason, served.outcome.nearest) == ("audit", reported[1])
        do(plane.clear, entry=served.stored.entry.id)
    entry = do(plane.answers.lookup, "at 30").entry
    assert (entry.judged.doubted, entry.judged.agreed, entry.judged.disagreed) == (True, 0, 3)


def test_where_nobody_can_say_it_stays_doubted(plane, do, reported):
    ask(plane, do, "at 35", Scripted(""))
    judged = do(plane.answers.lookup, "at 30").entry.judged
    assert (judged.doubted, judged.agreed, judged.disagreed) == (True, 0, 0)


class Learner(ThresholdPolicy):
    """Serves as the threshold does, and notes what it is told."""

    __slots__ = ("told",)

    def decide(self, asked, candidates):
        decision = super().decide(asked, candidates)
        known = (decision.similarity,)
        accepted = (
            replace(one, trial=Trial(candidate=one.id, known=known)) for one in decision.accepted
        )
        return replace(decision, accepted=tuple(accepted))

    @property
    def identity(self):
        return {"policy": "learner"}

    def anew(self):
        return self

    def learn(self, *judgements):
        self.told.extend(judgements)

    def record(self):
        return {}

    def restore(self, record):
        pass


def test_the_policy_that_learns_is_told_once(url, do):
    policy = Learner(0.6)
    object.__setattr__(policy, "told", told := [])
    with stemma.open(url, tenant="me", embedder="hashing", policy=policy) as cache:
        ask(cache, do, QUESTION)
        hit = ask(cache, do, AGAIN).outcome
        for _ in range(2):
            do(cache.report, json.loads(json.dumps(hit.note())), "wrong_hit", by="ann")
    assert [type(one) for one in told] == [Judgement]
    assert (told[0].right, told[0].by) == (False, "ann")
    assert told[0].trial.known == (hit.similarity,)


def test_a_report_is_kept_when_its_entry_is_gone(cache, do, wrong):
    cache.recall(entry=wrong.entry.id)
    do(cache.report, wrong.note(), "wrong_hit", by="ann")
    ask(cache, do, QUESTION)
    assert do(cache.answers.lookup, AGAIN).reason == "reported"
    assert do(cache.answers.lookup, QUESTION).hit


def test_a_report_holds_in_every_pool_that_the_hit_was_made_in(url, do):
    """The pair is named in the pool's partition, for every tenant who reads it.

    Where an operator says so: a tenant's report holds for that tenant (test_verdicts.py).
    """
    with stemma.open(url, embedder="hashing", threshold=0.6) as cache:
        query = cache.answers
        with cache.using(tenant="cem", pool="shared"):
            made = do(query.get_or_compute, QUESTION, lambda: "Press Cancel.")
        assert do(cache.pools.promote, made.stored.entry.id, by="ann")
        with cache.using(tenant="ann", pool="shared"):
            hit = do(query.lookup, AGAIN)
            assert (hit.tier, hit.entry.pool) == ("semantic", "shared")
        do(cache.report, hit, "wrong_hit", by="an operator")
        do(cache.report, hit.entry.id, "supported", by="an operator")
        for tenant in ("ann", "bob"):
            with cache.using(tenant=tenant, pool="shared"):
                assert do(query.lookup, AGAIN).reason == "reported"
                assert do(query.lookup, QUESTION).hit


def test_an_index_that_fails_costs_the_neighbours_and_not_the_report(cache, do, wrong, monkeypatch):
    def fails(*_):
        raise OSError("disk")

    faults = []
    cache.listen(lambda event: faults.append(event.outcome) if event.kind == "fault" else None)
    with monkeypatch.context() as patched:
        patched.setattr(cache.engine.parts.index, "nearest", fails)
        do(cache.report, wrong, "wrong_hit", by="ann")
    assert faults == ["neighbours"]
    assert do(cache.answers.lookup, QUESTION).reason == "quarantined"


def test_a_list_that_was_reused_goes_with_the_report(cache):
    """What it was stored as for the other query is no exact hit, either."""
    world = World(cache)
    world.fill(60)
    query = world.query()
    world.retrieve(query)
    near = world.query(query, 0.001)
    hit = world.retrieve(near).outcome
    assert hit.list == "proven"
    assert world.retrieve(near).outcome.tier == "exact"
    cache.report(hit, "wrong_hit", by="ann")
    searched = world.index.searched
    assert not world.retrieve(near).outcome.hit
    assert world.index.searched == searched + 1


@pytest.mark.parametrize(
    ("what", "verdict", "words"),
    [
        ("id", "wrong_hit", "give the Hit, or the note"),
        ("gone", "supported", "no entry"),
        ("gone", "hallucinated", "no entry"),
        (3, "supported", "a Hit, a note or an entry's id"),
        ({"hit": True}, "wrong_hit", "this one does not"),
        ({"entry": "a", "question": 3}, "wrong_hit", "this one does not"),
        ({"entry": "a", "question": "a"}, "wrong_hit", "no entry"),
        ("id", "agreed", "verdict must be one of"),
        ("id", None, "verdict must be one of"),
    ],
)
def test_what_cannot_be_meant_is_refused(cache, do, what, verdict, words):
    entry = ask(cache, do, QUESTION).stored.entry
    told = entry.id if what == "id" else what
    with pytest.raises(stemma.UsageError, match=words):
        do(cache.report, told, verdict, by="ann")
    with pytest.raises(stemma.UsageError, match="confidence"):
        do(cache.report, entry.id, "supported", by="ann", confidence=2)
    for nobody in (None, "", " "):
        with pytest.raises(stemma.UsageError, match="by must say who"):
            do(cache.report, entry.id, "supported", by=nobody)
    assert do(cache.answers.lookup, QUESTION).hit


def test_a_restart_changes_nothing(tmp_path, do):
    path = tmp_path / "cache.db"
    with stemma.open(path, tenant="me", embedder="hashing", threshold=0.6) as cache:
        ask(cache, do, QUESTION)
        ask(cache, do, THIRD, Scripted("Press Cancel."))
        note = ask(cache, do, AGAIN).outcome.note()
        do(cache.report, note, "wrong_hit", by="ann")
    with stemma.open(path, tenant="me", embedder="hashing", threshold=0.6) as cache:
        assert not do(cache.answers.lookup, AGAIN).hit
        do(cache.report, note["entry"], "supported", by="ann")
        found = do(cache.answers.lookup, AGAIN)
        assert not found.hit or found.entry.id != note["entry"]
