"""What comes into a pool, and what never does: approval, agreement, and who is served."""

import threading
from dataclasses import replace

import pytest

import stemma
from stemma import PoolPolicy, Source, StoreError, UsageError, content_digest, frames
from stemma.grounding import Grounded
from stemma.policies.pools import REFUSALS
from stemma.stores.protocol import Judgement
from stemma.testing.fakes import Scripted

ASK, AGAIN = "May a gift card be returned?", "May gift cards be returned?"
NO = "No, gift cards cannot be returned."
POOL = "support"


@pytest.fixture
def told(cache):
    """The promotions that the listeners hear of."""
    heard = []
    cache.listen(lambda event: heard.append(event) if event.kind == "promotion" else None)
    return heard


def make(cache, do, tenant, answer=NO, *, ask=ASK, pool=POOL, owners=(), **said):
    """A tenant's own answer, computed where the pool is named, of documents of these owners."""

    def compute():
        frame = frames.current()
        for owner in owners:
            text = f"the terms of {owner or 'nobody'}"
            read = Source(document=owner or "-", chunk=text, content="c", owner=owner)
            frame.read_sources([(read, text)], frames.marks())
        return answer

    with cache.using(tenant=tenant, pool=pool, **said):
        return do(cache.answers.get_or_compute, ask, compute)


def look(cache, do, tenant, ask=ASK, pool=POOL):
    with cache.using(tenant=tenant, pool=pool):
        return do(cache.answers.lookup, ask)


def said_no(cache, do, *tenants, **rest):
    return [make(cache, do, tenant, **rest).stored.entry for tenant in tenants]


# --------------------------------------------------------------------- agreement


def test_three_tenants_who_agree_share_their_answer_and_two_do_not(cache, do, told):
    first, _ = said_no(cache, do, "ann", "bob")
    assert not look(cache, do, "eve").hit
    said_no(cache, do, "cem")
    hit = look(cache, do, "eve")
    assert (hit.value, hit.entry.pool, hit.entry.tenant) == (NO, POOL, "ann")
    assert hit.note()["pool"] == POOL
    assert cache.lineage(hit.entry.id).graph.has_edge(first.id, hit.entry.id)
    (event,) = told
    assert (event.outcome, event.entry) == ("promoted", first.id)
    assert event.detail == "by ann, bob, cem"
    (noted,) = cache.engine.parts.store.judgements(entry=hit.entry.id)
    assert (noted.verdict, noted.question, noted.by) == ("promoted", first.id, "ann, bob, cem")


def test_the_model_is_not_asked_where_a_pool_knows(cache, do):
    said_no(cache, do, "ann", "bob", "cem")
    model = Scripted("something else")
    with cache.using(tenant="eve", pool=POOL):
        served = do(cache.answers.get_or_compute, ASK, model)
        assert do(cache.answers.get_or_compute, AGAIN, model).outcome.tier == "semantic"
    assert (served.value, model.calls) == (NO, 0)


def test_a_serving_tells_producer_consumer_and_pool(cache, do):
    said_no(cache, do, "ann", "bob", "cem")
    look(cache, do, "eve")
    cache.engine.parts.journal.flush()
    (serving,) = cache.engine.parts.store.servings()
    assert (serving.producer, serving.tenant, serving.pool) == ("ann", "eve", POOL)


def test_who_names_no_pool_neither_offers_nor_finds(cache, do):
    for tenant in ("ann", "bob", "cem"):
        assert make(cache, do, tenant, pool=None).stored.entry.offer is None
    assert cache.pools.offers(POOL) == ()
    said_no(cache, do, "dan", "eli", "fay")
    with cache.using(tenant="eve"):
        assert not do(cache.answers.lookup, ASK).hit


def test_one_tenant_never_outgrows_itself(cache, do):
    """Asked again, as several users, and refreshed."""
    for user in ("u1", "u2", "u3", "u4"):
        make(cache, do, "mallory", user=user, writer=user)
        with cache.refresh():
            make(cache, do, "mallory", user=user, writer=user)
    assert not look(cache, do, "eve").hit


def test_tenants_with_one_principal_behind_them_are_one_witness(cache, do, told):
    said_no(cache, do, "m1", "m2", "m3", "m4", writer="mallory")
    said_no(cache, do, "bob")
    assert not look(cache, do, "eve").hit
    assert {event.outcome for event in told} == {"too_few"}
    said_no(cache, do, "cem")
    assert look(cache, do, "eve").hit


def test_an_answer_in_other_words_counts_where_the_comparer_holds_it_equal(cache, do):
    said_no(cache, do, "ann", "bob")
    make(cache, do, "cem", answer=f"{NO.lower()} ")
    assert look(cache, do, "eve").value == NO


def test_an_echo_is_no_witness(cache, do, told):
    """Who was served another's answer says nothing new by saying it again."""
    said_no(cache, do, "ann", "bob", "cem")

    def repeated(ask):
        def compute():
            return look(cache, do, "eve").value

        with cache.using(tenant="eve", pool=POOL):
            return do(cache.answers.get_or_compute, ask, compute)

    other = "Can I give a gift card back to the shop?"
    echoed = repeated(other)
    assert echoed.stored.entry.derived
    told.clear()
    make(cache, do, "ann", ask=other)
    make(cache, do, "bob", ask=other)
    assert [(event.outcome, event.detail) for event in told] == [("too_few", "2 of 3")]
    assert not look(cache, do, "kim", other).hit


@pytest.mark.parametrize(
    ("others", "shared"), [((), True), (("Yes, they can.",), True), (("Yes.",) * 3, False)]
)
def test_witnesses_must_outnumber_those_who_answered_otherwise(cache, do, told, others, shared):
    for number, answer in enumerate(others):
        make(cache, do, f"other {number}", answer=answer, owners=("",))
    said_no(cache, do, "ann", "bob", "cem")
    assert look(cache, do, "eve").hit is shared
    outcome = "promoted" if shared else "disagreed"
    assert told[-1].outcome == outcome


def test_the_most_believed_of_the_witnesses_is_copied_then_the_oldest(cache, do, clock):
    for tenant, sure in (("ann", 0.7), ("bob", 0.9), ("cem", 0.9)):
        clock.advance(1)
        with cache.using(tenant=tenant, pool=POOL):
            ticket = do(cache.answers.lookup, ASK).ticket
            do(cache.answers.put, ticket, NO, confidence=sure)
    hit = look(cache, do, "eve")
    assert (hit.entry.tenant, hit.entry.confidence) == ("bob", 0.9)


def test_batches_of_puts_are_considered_as_well(cache, do):
    for tenant in ("ann", "bob", "cem"):
        with cache.using(tenant=tenant, pool=POOL):
            do(cache.answers.put_all, [(cache.answers.ticket(ASK), NO)])
    assert look(cache, do, "eve").hit


def test_an_agreement_replaces_nothing_that_is_there(cache, do, told):
    (theirs,) = said_no(cache, do, "zoe", answer="Ask at the desk.")
    assert do(cache.pools.promote, theirs.id, by="pam")
    for tenant in ("ann", "bob", "cem", "dan"):
        with cache.refresh():
            make(cache, do, tenant)
    assert look(cache, do, "eve").value == "Ask at the desk."
    assert told[-1].outcome == "occupied"


def test_trouble_with_a_promotion_is_never_the_callers(cache, do, monkeypatch):
    said_no(cache, do, "ann", "bob")
    faults = []
    cache.listen(lambda event: faults.append(event.outcome) if event.kind == "fault" else None)

    def fails(*_):
        raise StoreError("no")

    monkeypatch.setattr(cache.engine.parts.store, "offered", fails)
    assert make(cache, do, "cem").stored.entry is not None
    assert faults == ["promotion"]


# ---------------------------------------------------------------------- approval


def test_an_operator_approves_of_a_single_answer(cache, do):
    (entry,) = said_no(cache, do, "ann", writer="w", session="s")
    promotion = do(cache.pools.promote, entry.id, by="pam")
    assert promotion
    assert promotion.refused is None
    assert (promotion.pool, promotion.original, promotion.by) == (POOL, entry.id, "pam")
    assert promotion.copy == look(cache, do, "eve").entry
    assert promotion.copy.labels == stemma.Labels()


def test_a_tenant_approves_of_nothing(cache, do):
    (entry,) = said_no(cache, do, "ann")
    for tenant in ("ann", "bob"):
        with cache.using(tenant=tenant):
            assert do(cache.pools.promote, entry.id, by="ann").refused == "not_an_operator"
    assert not look(cache, do, "bob").hit


def test_what_was_not_offered_is_not_copied(cache, do):
    entry = make(cache, do, "ann", pool=None).stored.entry
    assert do(cache.pools.promote, entry.id, by="pam").refused == "not_offered"


@pytest.mark.parametrize("owner", ["", "tenant:ann", "tenant:bob", "pool:other", "pool:", "Public"])
def test_nothing_with_a_private_source_is_shared(cache, do, told, owner):
    entries = said_no(cache, do, "ann", "bob", "cem", owners=("public", owner))
    assert {event.outcome for event in told} == {"private_source"}
    assert do(cache.pools.promote, entries[0].id, by="pam").refused == "private_source"
    assert not look(cache, do, "eve").hit


@pytest.mark.parametrize("owner", ["public", "pool:support"])
def test_what_was_read_from_shared_sources_alone_is_shared(cache, do, owner):
    said_no(cache, do, "ann", "bob", "cem", owners=(owner,))
    assert look(cache, do, "eve").hit


def test_a_private_source_deep_in_the_family_tree_is_found(cache, do):
    read = Source(document="d", chunk="d", content=content_digest("mine"))

    def call():
        frames.current().read_sources([(read, "mine")], frames.marks())
        return "raw"

    def answer():
        return do(cache.calls.get_or_compute, "raw?", call, model="m", exact="x").value

    with cache.using(tenant="ann", pool=POOL):
        made = do(cache.answers.get_or_compute, ASK, answer)
    assert do(cache.pools.promote, made.stored.entry.id, by="pam").refused == "private_source"


def _without_its_parent(cache, do):
    with cache.using(tenant="ann", pool=POOL), cache.trace():
        parent = do(cache.calls.get_or_compute, "raw?", lambda: "raw", model="m", exact="x")
        made = do(cache.answers.get_or_compute, ASK, lambda: NO)
    cache.engine.parts.store.remove([parent.stored.entry.id])
    return made.stored.entry


def test_what_was_built_on_something_that_is_gone_is_not_copied(cache, do):
    entry = _without_its_parent(cache, do)
    assert do(cache.pools.promote, entry.id, by="pam").refused == "unknown_ancestry"


def test_what_is_known_to_be_wrong_is_never_copied(cache, do, told):
    (entry, *_) = said_no(cache, do, "ann")
    do(cache.report, entry.id, "hallucinated", by="pam")
    assert do(cache.pools.promote, entry.id, by="pam").refused == "quarantined"
    said_no(cache, do, "bob", "cem", "dan")
    assert told[-1].outcome == "quarantined"
    assert not look(cache, do, "eve").hit


def test_what_has_expired_is_not_copied(cache, do, clock):
    with cache.using(tenant="ann", pool=POOL):
        made = do(cache.answers.get_or_compute, ASK, lambda: NO, life=10.0)
    clock.advance(20)
    refused = do(cache.pools.promote, made.stored.entry.id, by="pam")
    assert refused.refused == "invalid"


def test_approval_replaces_what_lies_there_but_not_by_the_same(cache, do):
    (no,) = said_no(cache, do, "ann")
    (yes,) = said_no(cache, do, "bob", answer="Yes.")
    copied = do(cache.pools.promote, no.id, by="pam")
    assert copied
    assert str(copied) == f"copied into pool {POOL}: {copied.copy.id}"
    assert str(cache.lineage(copied.copy.id)).startswith(
        f"answer {copied.copy.id[:12]} of ann in pool {POOL}\n"
    )
    for again in (no, copied.copy):
        refused = do(cache.pools.promote, again.id, by="pam")
        assert str(refused).startswith("refused (occupied): an answer lies there already: ")
    assert do(cache.pools.promote, yes.id, by="pam")
    assert look(cache, do, "eve").value == "Yes."


def test_nothing_takes_the_place_of_what_it_was_built_on(cache, do):
    (no,) = said_no(cache, do, "ann")
    copy = do(cache.pools.promote, no.id, by="pam").copy
    with cache.using(tenant="bob", pool=POOL), cache.trace():
        assert do(cache.answers.lookup, ASK).hit
        with cache.refresh():
            made = do(cache.answers.get_or_compute, ASK, lambda: "Never.")
    assert copy.id in {one.parent for one in _lineage(cache, made.stored.entry).parents}
    assert do(cache.pools.promote, made.stored.entry.id, by="pam").refused == "echo"


def _lineage(cache, entry):
    return cache.engine.parts.store.lineage(entry.id)


@pytest.mark.parametrize("by", ["", "  ", None, 3])
def test_approval_has_a_name(cache, do, by):
    (entry,) = said_no(cache, do, "ann")
    with pytest.raises(UsageError, match="by"):
        do(cache.pools.promote, entry.id, by=by)


def test_what_is_not_there_cannot_be_approved_of(cache, do):
    with pytest.raises(UsageError, match="no entry"):
        do(cache.pools.promote, "nothing", by="pam")


# ------------------------------------------------------------------ taken out again


def test_a_copy_is_revoked_with_what_was_built_on_it(cache, do, told):
    said_no(cache, do, "ann", "bob", "cem")
    copy = look(cache, do, "eve").entry

    def compute():
        return look(cache, do, "eve").value

    with cache.using(tenant="eve"):
        built = do(cache.answers.get_or_compute, "What of gift cards?", compute).stored.entry
    receipt = do(cache.pools.revoke, copy.id, by="pam")
    assert {one.entry for one in receipt.entries} == {copy.id, built.id}
    assert told[-1].outcome == "revoked"
    assert not look(cache, do, "eve").hit
    said_no(cache, do, "dan")
    assert (told[-1].outcome, look(cache, do, "eve").hit) == ("withdrawn", False)
    promotion = do(cache.pools.promote, said_no(cache, do, "fay")[0].id, by="pam")
    assert look(cache, do, "eve").entry.id == copy.id
    assert do(cache.pools.revoke, promotion, by="pam")


def test_taking_back_a_report_takes_nothing_out_of_a_pool(cache, do):
    first, *_ = said_no(cache, do, "ann", "bob", "cem")
    hit = look(cache, do, "eve")
    with cache.using(tenant="eve"):
        do(cache.report, hit, "unknown", by="eve")
    do(cache.report, hit, "unknown", by="pam")
    cache.recall(entry=first.id)
    said_no(cache, do, "dan")
    assert look(cache, do, "eve").hit


def test_revoking_does_not_take_back_that_it_was_called_wrong(cache, do):
    said_no(cache, do, "ann", "bob", "cem")
    hit = look(cache, do, "eve")
    do(cache.report, hit, "hallucinated", by="pam")
    do(cache.pools.revoke, hit.entry.id, by="pam")
    assert cache.verdicts(hit.entry.id).verdict == "hallucinated"
    (again,) = said_no(cache, do, "dan")
    assert do(cache.pools.promote, again.id, by="pam").refused == "quarantined"
    do(cache.report, hit, "unknown", by="pam")
    assert do(cache.pools.promote, again.id, by="pam")


def test_no_number_of_reports_makes_a_revocation_forgotten(cache, do):
    said_no(cache, do, "ann", "bob", "cem")
    hit = look(cache, do, "eve")
    do(cache.pools.revoke, hit.entry.id, by="pam")
    chatter = Judgement(
        entry=hit.entry.id,
        value=hit.entry.value,
        verdict="unknown",
        by="eve",
        tenant="eve",
        confidence=1.0,
        at=0.0,
    )
    for _ in range(1_001):
        cache.engine.parts.store.judge(chatter)
    said_no(cache, do, "dan")
    assert not look(cache, do, "eve").hit


def test_a_revocation_that_fails_half_way_lets_nothing_back(cache, do, monkeypatch):
    said_no(cache, do, "ann", "bob", "cem")
    copy = look(cache, do, "eve").entry
    store = cache.engine.parts.store
    judge = type(store).judge

    def broken(self, judgement, near=()):
        if judgement.verdict == "withdrawn":
            raise StoreError("no")
        return judge(self, judgement, near)

    monkeypatch.setattr(type(store), "judge", broken)
    with pytest.raises(StoreError):
        do(cache.pools.revoke, copy.id, by="pam")
    monkeypatch.undo()
    assert do(cache.pools.revoke, copy.id, by="pam")  # can be asked for again
    said_no(cache, do, "dan")
    assert not look(cache, do, "eve").hit


def test_only_operators_revoke_and_only_copies(cache, do):
    (entry,) = said_no(cache, do, "ann")
    copy = do(cache.pools.promote, entry.id, by="pam").copy
    with cache.using(tenant="bob"), pytest.raises(UsageError, match="bob"):
        do(cache.pools.revoke, copy.id, by="bob")
    with pytest.raises(UsageError, match="in a pool"):
        do(cache.pools.revoke, entry.id, by="pam")
    with pytest.raises(UsageError, match="nothing was copied"):
        do(cache.pools.revoke, do(cache.pools.promote, entry.id, by="pam"), by="pam")
    assert look(cache, do, "bob").hit


def test_a_copy_goes_with_its_original(cache, do):
    (entry,) = said_no(cache, do, "ann")
    do(cache.pools.promote, entry.id, by="pam")
    assert cache.recall(tenant="ann").by_tenant == {"ann": 2}
    assert not look(cache, do, "eve").hit


def test_a_copy_that_was_called_wrong_does_not_come_back(cache, do, told):
    said_no(cache, do, "ann", "bob", "cem")
    do(cache.report, look(cache, do, "eve").entry.id, "hallucinated", by="pam")
    (entry,) = said_no(cache, do, "dan")
    assert told[-1].outcome == "too_few"  # the others' equal answers are called wrong with it
    assert do(cache.pools.promote, entry.id, by="pam").refused == "quarantined"
    assert not look(cache, do, "eve").hit
    for tenant in ("gus", "hal", "ian", "joe", "kim", "lea"):
        make(cache, do, tenant, answer="Yes.")
    assert look(cache, do, "eve").value == "Yes."


# ---------------------------------------------------------------------- policies


def closed(url, clock, **policy):
    return stemma.open(
        url, embedder="hashing", threshold=0.6, clock=clock, pools={POOL: PoolPolicy(**policy)}
    )


def test_who_is_no_member_neither_reads_nor_offers_and_goes_on(url, clock, do):
    with closed(url, clock, members={"ann", "bob"}, witnesses=2) as cache:
        said_no(cache, do, "ann", "bob")
        assert look(cache, do, "ann").hit
        with pytest.warns(RuntimeWarning, match="eve"):
            assert not look(cache, do, "eve").hit
        assert make(cache, do, "eve").stored.entry.offer is None  # and warns no more


def test_an_answer_from_before_its_maker_was_shut_out_is_no_longer_taken(clock, do, tmp_path):
    store = stemma.stores.memory.MemoryStore()
    with stemma.open(store, embedder=None, clock=clock) as cache:
        (entry,) = said_no(cache, do, "eve")
        with stemma.open(
            store, embedder=None, clock=clock, pools={POOL: PoolPolicy(members=["ann"])}
        ) as now:
            assert do(now.pools.promote, entry.id, by="pam").refused == "not_a_member"


def test_a_pool_may_take_only_what_is_approved(url, clock, do):
    with closed(url, clock, witnesses=None) as cache:
        entries = said_no(cache, do, "ann", "bob", "cem", "dan")
        assert not look(cache, do, "eve").hit
        assert do(cache.pools.promote, entries[0].id, by="pam")


def test_a_pool_may_ask_for_grounding(url, clock, do):
    with closed(url, clock, grounding=0.65) as cache:
        store = cache.engine.parts.store
        entries = said_no(cache, do, "ann", "bob", "cem")
        refused = do(cache.pools.promote, entries[0].id, by="pam")
        assert (refused.refused, refused.detail) == ("ungrounded", "no check yet")
        for entry, score in zip(entries, (0.6, 0.8, 0.7), strict=True):
            store.judge(
                Judgement(
                    entry=entry.id,
                    value=entry.value,
                    verdict="grounded",
                    by="check",
                    confidence=score,
                    at=clock.now(),
                )
            )
        assert do(cache.pools.promote, entries[0].id, by="pam").detail == "a score of 0.60"
        said_no(cache, do, "dan")
        assert look(cache, do, "eve").entry.tenant == "bob"


class Checks:
    """A grounder that holds all to be well supported, or not."""

    name, revision = "checks", "1"

    def __init__(self, score):
        self.score, self.calls = score, 0

    def ground(self, answer, sources, question=""):
        self.calls += 1
        return Grounded(score=self.score, by=self.name)

    async def aground(self, answer, sources, question=""):
        return self.ground(answer, sources, question)


@pytest.mark.parametrize(("score", "shared"), [(0.9, True), (0.6, False)])
def test_a_check_off_the_path_is_waited_for_and_then_decides(url, clock, do, score, shared):
    check = Checks(score)
    pools = {POOL: PoolPolicy(grounding=0.7)}
    with stemma.open(url, embedder=None, clock=clock, grounding=check, pools=pools) as cache:
        said_no(cache, do, "ann", "bob", "cem", owners=("public",))
        assert cache.engine.parts.checking.wait(30)
        assert (look(cache, do, "eve").hit, check.calls) == (shared, 3)


def test_offers_and_entries_are_listed(cache, do):
    said_no(cache, do, "ann", "bob")
    make(cache, do, "cem", answer="Yes.")
    make(cache, do, "ann", ask="Where is the shop?", answer="In Ghent.")
    first, second = do(cache.pools.offers, POOL)
    assert [one.tenant for one in first.entries] == ["ann", "bob", "cem"]
    assert sorted(first.witnesses.values()) == [1, 2]
    assert (first.copy, len(second.entries)) == (None, 1)
    assert str(first).endswith(f" in pool {POOL}: 3 answers, 2 tenants alike; nothing lies there")
    assert do(cache.pools.entries, POOL) == ()
    promotion = do(cache.pools.promote, first.entries[0].id, by="pam")
    assert do(cache.pools.entries, POOL) == (promotion.copy,)
    assert do(cache.pools.offers, POOL)[0].copy == promotion.copy
    assert do(cache.pools.offers, "other") == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"witnesses": 0},
        {"witnesses": True},
        {"witnesses": 1.5},
        {"grounding": 2},
        {"least_confidence": -1},
        {"members": "ann"},
        {"members": [""]},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError):
        PoolPolicy(**wrong)


@pytest.mark.parametrize("pools", [["a"], {"": PoolPolicy()}, {"a": 3}, {3: PoolPolicy()}])
def test_pools_are_declared_by_name(pools):
    with pytest.raises(UsageError, match="pools"):
        stemma.open(embedder=None, pools=pools)


def test_every_refusal_is_explained(cache, do):
    assert all(words and words[0].islower() for words in REFUSALS.values())


# ------------------------------------------------------------------- read-only


def test_no_ticket_writes_into_a_pool(cache, do):
    """Not even one that was made for it."""
    with cache.using(tenant="mallory", pool=POOL):
        query = cache.answers.query(cache.answers.asked(ASK))
        ((scope, key),) = query.pools
        ticket = cache.answers.ticket_for(replace(query, scope=scope, key=key, pools=()))
        assert do(cache.answers.put, ticket, "planted").refused == "not_admitted"
        (batch,) = do(cache.answers.put_all, [(ticket, "planted")])
        assert batch.refused == "not_admitted"
    assert not look(cache, do, "eve").hit


def test_a_refresh_writes_the_tenants_own(cache, do):
    said_no(cache, do, "ann", "bob", "cem")
    with cache.refresh():
        made = make(cache, do, "mallory", answer="Yes.").stored.entry
    assert (made.pool, made.tenant) == (None, "mallory")
    assert look(cache, do, "eve").value == NO
    assert look(cache, do, "mallory").value == "Yes."


def test_tenants_who_agree_at_the_same_time_make_one_copy(url, clock):
    with stemma.open(url, embedder=None, clock=clock) as cache:
        start = threading.Barrier(6)

        def ask(tenant):
            start.wait()
            with cache.using(tenant=tenant, pool=POOL):
                cache.answers.get_or_compute(ASK, lambda: NO)

        threads = [threading.Thread(target=ask, args=(f"t{n}",)) for n in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(cache.pools.entries(POOL)) == 1


@pytest.mark.parametrize("name", [None, 3, b"support", ["support"], {"a": 1}])
def test_entries_and_pools_are_named_by_texts(cache, do, name):
    said_no(cache, do, "ann")  # none of this is told of a pool that is no pool
    for ask in (cache.pools.offers, cache.pools.entries):
        with pytest.raises(UsageError, match="text"):
            do(ask, name)
    for ask in (cache.pools.promote, cache.pools.revoke):
        with pytest.raises(UsageError, match="text"):
            do(ask, name, by="pam")
    for ask in (cache.pools.policy, cache.verdicts, cache.lineage):
        with pytest.raises(UsageError, match="text"):
            ask(name)
