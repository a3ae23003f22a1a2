"""Who may report what: tenants what is theirs, and what a pool served them; operators everything."""

import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stemma
from stemma.journal import CROSSING
from stemma.reporters import HOUR, MOST, OVERTURNED, UPHELD
from stemma.testing.builders import HOSTILE, copied
from stemma.testing.fakes import Scripted
from stemma.verdicts import believed

QUESTION, AGAIN = "How do I cancel my order?", "How can I cancel my order?"
TENANTS = ("ann", "bob", "cem")


@pytest.fixture
def cache(url, clock):
    with stemma.open(url, embedder="hashing", threshold=0.6, clock=clock) as opened:
        yield opened


@pytest.fixture
def pooled(cache):
    """An entry that `maker` made and that lies in the pool `support`."""
    return in_pool(cache, QUESTION)


def in_pool(cache, question, answer="Press Cancel."):
    with cache.using(tenant="maker", pool="support"):
        made = cache.answers.get_or_compute(question, lambda: answer).stored.entry
    return copied(cache.engine.parts.store, made)


def lookup(cache, do, tenant, question=QUESTION):
    with cache.using(tenant=tenant, pool="support"):
        return do(cache.answers.lookup, question)


def report(cache, do, tenant, what, verdict="hallucinated", **rest):
    with cache.using(tenant=tenant):
        return do(cache.report, what, verdict, by=rest.pop("by", "somebody"), **rest)


def counted(cache, outcome):
    cache.stats()  # writes the last batch
    counts = cache.engine.parts.store.counts()
    return {one.tenant: one.lookups for one in counts if one.outcome == outcome}


def test_what_one_tenant_reports_of_a_pool_holds_for_that_tenant(cache, do, pooled):
    """Two suffice for all; an operator's word answers them."""
    assert {lookup(cache, do, one).entry.id for one in TENANTS} == {pooled.id}
    told = report(cache, do, "ann", pooled.id)
    assert (told.verdict, told.gone, told.judgement.tenant) == ("unknown", False, "ann")
    assert lookup(cache, do, "ann").reason == "reported"
    assert lookup(cache, do, "ann", AGAIN).reason == "reported"
    assert lookup(cache, do, "bob").hit
    told = report(cache, do, "bob", pooled.id)
    assert told.verdict == "hallucinated"
    assert {lookup(cache, do, one).reason for one in TENANTS} == {"quarantined"}
    told = do(cache.report, pooled.id, "supported", by="an operator")
    assert told.verdict == "supported"
    assert lookup(cache, do, "cem").hit
    assert lookup(cache, do, "ann").reason == "reported"
    assert counted(cache, OVERTURNED) == {"ann": 1, "bob": 1}


def test_who_takes_a_report_back_is_served_again(cache, do, pooled):
    lookup(cache, do, "ann")
    report(cache, do, "ann", pooled.id)
    told = report(cache, do, "ann", pooled.id, "unknown")
    assert told.probability == 0.2
    assert lookup(cache, do, "ann").hit


def test_one_tenant_under_many_names_is_one(cache, do, pooled):
    lookup(cache, do, "ann")
    for name in HOSTILE[:12]:
        report(cache, do, "ann", pooled.id, by=name)
    assert lookup(cache, do, "bob").hit


def test_a_record_counts(cache, do, pooled):
    """Whose report was overturned is not believed the next time; whose was upheld is."""
    bad = in_pool(cache, "Who pays for the parcel?", "Nobody.")
    for tenant in TENANTS:
        lookup(cache, do, tenant, "Who pays for the parcel?")
        lookup(cache, do, tenant)
    report(cache, do, "ann", bad.id, "supported")
    report(cache, do, "bob", bad.id)
    do(cache.report, bad.id, "hallucinated", by="an operator")
    assert (counted(cache, UPHELD), counted(cache, OVERTURNED)) == ({"bob": 1}, {"ann": 1})
    report(cache, do, "ann", pooled.id)
    assert report(cache, do, "bob", pooled.id).verdict == "unknown"
    assert report(cache, do, "cem", pooled.id).verdict == "hallucinated"


def test_a_tenant_is_believed_of_its_own(cache, do):
    with cache.using(tenant="ann"):
        mine = do(cache.answers.get_or_compute, QUESTION, Scripted("Press Cancel.")).stored.entry
        do(cache.report, mine.id, "hallucinated", by="user 1", confidence=0.9)
        assert do(cache.answers.lookup, QUESTION).reason == "quarantined"
        do(cache.report, mine.id, "supported", by="user 2", confidence=0.9)
        assert do(cache.answers.lookup, QUESTION).hit


@pytest.mark.parametrize("verdict", ["hallucinated", "supported", "unknown", "wrong_hit"])
def test_what_is_anothers_is_refused(cache, do, pooled, verdict):
    """Its own entries, a pool's that it was not served, and what there never was: all alike."""
    with cache.using(tenant="maker", pool="support"):
        original = do(cache.answers.lookup, QUESTION)
    assert original.entry.pool is None
    private = original.note() if verdict == "wrong_hit" else original.entry.id
    refused = [private, {"entry": "nobody", "question": "q"}]
    if verdict != "wrong_hit":  # a note names the hit
        refused.append(pooled.id)
    for what in refused:
        with pytest.raises(stemma.UsageError, match="was served none out of a pool"):
            report(cache, do, "eve", what, verdict)
    assert counted(cache, f"{CROSSING}report") == {"eve": len(refused)}
    assert original.entry.id not in str(cache.stats())
    assert do(cache.report, original.entry.id, "supported", by="an operator").verdict == "supported"


@pytest.mark.parametrize("mine", [True, False])
def test_a_note_that_was_made_up_reaches_nobody(cache, do, pooled, mine):
    """An entry of one's own, or of a pool, served to a question that is another's."""
    with cache.using(tenant="eve"):
        own = do(cache.answers.get_or_compute, "What is open?", Scripted("All.")).stored.entry
    with cache.using(tenant="maker"):
        before = do(cache.answers.lookup, QUESTION)
        other = do(cache.answers.get_or_compute, "Who is in?", Scripted("Ann.")).stored.entry
    lookup(cache, do, "eve")
    for question in (other.id, pooled.id) if mine else (other.id,):
        note = {"entry": own.id if mine else pooled.id, "question": question}
        with pytest.raises(stemma.UsageError, match="was served none"):
            report(cache, do, "eve", note, "wrong_hit")
    with cache.using(tenant="maker"):
        assert do(cache.answers.lookup, QUESTION).entry == before.entry
        assert do(cache.answers.lookup, "Who is in?").entry == other
    assert lookup(cache, do, "bob").entry.judged == pooled.judged


def test_a_hit_in_hand_is_enough(cache, do, pooled):
    """Also as its note, before the journal of servings was written."""
    note = json.loads(json.dumps(lookup(cache, do, "ann").note()))
    report(cache, do, "ann", note)
    assert lookup(cache, do, "ann").reason == "reported"


def test_a_wrong_hit_of_a_pool_is_barred_for_who_reports_it(cache, do, pooled):
    """The pair alone; for all, and with what follows of it, once another tenant says the same."""
    hits = {one: lookup(cache, do, one, AGAIN) for one in TENANTS}
    assert {hit.tier for hit in hits.values()} == {"semantic"}
    report(cache, do, "ann", hits["ann"].note(), "wrong_hit")
    assert lookup(cache, do, "ann", AGAIN).reason == "reported"
    assert lookup(cache, do, "ann").hit
    assert lookup(cache, do, "bob", AGAIN).hit
    stored = cache.engine.parts.store.get([pooled.id]).entries[pooled.id]
    assert (stored.verdict, stored.judged.doubted) == ("unknown", False)
    told = report(cache, do, "bob", hits["bob"], "wrong_hit")
    assert told.verdict == "suspect"
    do(cache.report, pooled.id, "supported", by="an operator")
    assert lookup(cache, do, "cem", AGAIN).reason == "reported"
    assert lookup(cache, do, "cem").hit


def test_a_wrong_answer_to_its_own_question_goes_for_who_reports_it(cache, do, pooled):
    """And does not come back with a report that it is right, as for everybody else."""
    report(cache, do, "ann", lookup(cache, do, "ann"), "wrong_hit")
    assert lookup(cache, do, "ann").reason == "reported"
    report(cache, do, "ann", pooled.id, "supported")
    assert lookup(cache, do, "ann").reason == "reported"
    assert lookup(cache, do, "bob").hit


def test_one_tenants_support_frees_nothing_that_others_hold(cache, do, pooled):
    lookup(cache, do, "ann")
    hit = lookup(cache, do, "bob", AGAIN)
    do(cache.report, hit, "wrong_hit", by="an operator")
    assert report(cache, do, "ann", pooled.id, "supported").verdict == "suspect"
    assert lookup(cache, do, "cem").reason == "quarantined"


def test_too_many_reports_within_an_hour_count_for_nothing(cache, do, clock):
    entries = [in_pool(cache, f"What is {n} times 17?", str(n * 17)) for n in range(MOST + 2)]
    notes = {}
    for n, entry in enumerate(entries):
        for tenant in ("ann", "bob"):
            hit = lookup(cache, do, tenant, f"What is {n} times 17?")
            assert hit.entry.id == entry.id
            notes[tenant, n] = hit.note()
    told = [report(cache, do, "ann", notes["ann", n]) for n in range(MOST + 1)]
    assert [one.limited for one in told] == [False] * MOST + [True]
    assert "too many" in str(told[-1])
    assert told[-1].judgement.weight == 0.5
    assert lookup(cache, do, "ann", f"What is {MOST} times 17?").reason == "reported"
    assert report(cache, do, "bob", notes["bob", MOST]).verdict == "unknown"
    assert report(cache, do, "ann", notes["ann", 0], "supported").limited is False
    clock.advance(HOUR + 1)
    assert not report(cache, do, "ann", notes["ann", MOST + 1]).limited
    for n in range(MOST + 2):
        assert not do(cache.report, entries[n].id, "supported", by="an operator").limited


def test_a_report_of_what_is_gone_is_kept(cache, do, pooled):
    """By its id alone; of what never was, nothing."""
    lookup(cache, do, "ann")
    hit = lookup(cache, do, "bob")
    cache.recall(entry=pooled.id)
    told = report(cache, do, "ann", pooled.id)
    assert (told.gone, told.verdict) == (True, "unknown")
    assert "gone; the report is kept" in str(told)
    told = do(cache.report, hit, "hallucinated", by="an operator")
    assert (told.gone, told.verdict) == (True, "hallucinated")
    found = cache.verdicts(pooled.id)
    assert (found.gone, found.verdict) == (True, "hallucinated")
    assert [one.judgement.by for one in found.said] == ["somebody", "an operator"]
    for ask in (cache.verdicts, lambda one: do(cache.report, one, "supported", by="x")):
        with pytest.raises(stemma.UsageError, match="no entry"):
            ask("nobody")


def test_two_verdicts_at_one_instant(cache, do):
    """The clock stands still: what was noted later counts."""
    with cache.using(tenant="ann"):
        mine = do(cache.answers.get_or_compute, QUESTION, Scripted("Press Cancel.")).stored.entry
    for verdict in ("hallucinated", "supported", "hallucinated"):
        assert do(cache.report, mine.id, verdict, by="ann").verdict == verdict
    assert len({one.judgement.at for one in cache.verdicts(mine.id).said}) == 1


def test_who_said_what_is_read_back(cache, do, pooled):
    lookup(cache, do, "ann")
    report(cache, do, "ann", pooled.id)
    do(cache.report, pooled.id, "supported", by="bob", confidence=0.5)
    found = cache.verdicts(pooled.id)
    assert found.entry == pooled.id
    assert [(one.judgement.tenant, one.why) for one in found.said] == [("ann", ""), ("", "")]
    assert found.probability == pytest.approx(0.1383, abs=1e-3)
    assert json.loads(json.dumps(found.as_json()))["said"][0]["judgement"]["tenant"] == "ann"
    assert str(found).startswith(f"{pooled.id}: unknown, wrong with 14%")


steps = st.tuples(
    st.sampled_from(["", *TENANTS]),
    st.sampled_from(["hallucinated", "supported", "unknown"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from([0.0, 0.3, 1.0]),
)


@pytest.mark.parametrize("name", [":memory:", "cache.db"])
@given(said=st.lists(steps, max_size=10))
@settings(max_examples=25, deadline=None)
def test_nobody_is_served_what_the_rule_forbids(name, said):
    """Whatever tenants and operators say of a pool's entry, against the rule in other words."""
    with tempfile.TemporaryDirectory() as folder:
        url = name if name == ":memory:" else Path(folder) / name
        with stemma.open(url, embedder=None) as cache:
            pooled = in_pool(cache, QUESTION)
            for tenant in TENANTS:
                assert lookup(cache, run, tenant).hit
            last, wrong = {}, set()
            for tenant, verdict, by, sure in said:
                weight = 0.9
                if tenant:
                    records = (counted(cache, one).get(tenant, 0) for one in (UPHELD, OVERTURNED))
                    weight = believed(*records)
                    told = report(cache, run, tenant, pooled.id, verdict, by=by, confidence=sure)
                    (wrong.add if verdict == "hallucinated" else wrong.discard)(tenant)
                else:
                    told = cache.report(pooled.id, verdict, by=by, confidence=sure)
                last[tenant, by] = (verdict, weight, sure)
                held = probability_of(last) >= 0.3
                assert (told.verdict == "hallucinated") == held
                for one in TENANTS:
                    assert lookup(cache, run, one).hit == (not held and one not in wrong)


def run(operation, *args, **rest):
    return operation(*args, **rest)


def probability_of(last):
    """How likely the value is wrong, by what each of the reporters said last."""

    def odds(share):
        return math.log(share / (1 - share))

    total, tenants = odds(0.2), 0.0
    for tenant in ("", *TENANTS):
        for verdict, sign in (("hallucinated", 1), ("supported", -1)):
            mine = [(w, c) for (t, _), (v, w, c) in last.items() if (t, v) == (tenant, verdict)]
            moved = sum(odds(0.5 + (max(w, 0.5) - 0.5) * c) for w, c in mine)
            if tenant:
                tenants += sign * min(moved, odds(max([0.5, *(w for w, c in mine if c)])))
            else:
                total += sign * moved
    total += min(max(tenants, -odds(0.9)), odds(0.9))
    return round(1 / (1 + math.exp(-total)), 12)
