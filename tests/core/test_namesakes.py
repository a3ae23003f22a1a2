"""What a pool holds is as wrong where it came from, and where others agreed to it."""

import pytest

from stemma import Source, frames

ASK, POOL = "May a gift card be returned?", "support"


@pytest.fixture
def make(cache, do):
    """Has a tenant make an answer where the pool is named, of a document of somebody's."""

    def made(tenant, answer="Yes.", *, owner="public", pool=POOL):
        def compute():
            read = Source(document=f"terms of {owner}", chunk="1", content="c", owner=owner)
            frames.current().read_sources([(read, "the terms")], frames.marks())
            return answer

        with cache.using(tenant=tenant, pool=pool), cache.trace():
            return do(cache.answers.get_or_compute, ASK, compute).stored.entry

    return made


@pytest.fixture
def served(cache, do):
    """Whether a tenant is served what it asks, in the pool or out of it."""

    def looked(tenant, pool=POOL):
        with cache.using(tenant=tenant, pool=pool):
            return do(cache.answers.lookup, ASK).hit

    return looked


def copied(cache, do):
    (copy,) = do(cache.pools.entries, POOL)
    return copy


def test_who_agreed_to_a_wrong_answer_is_served_it_no_more(cache, do, make, served):
    for tenant in ("ann", "bob", "cem"):
        make(tenant)
    make("dan", pool="another")
    assert all(map(served, ("ann", "bob", "cem", "eve")))
    told = do(cache.report, copied(cache, do).id, "hallucinated", by="ops")
    assert told.verdict == "hallucinated"
    assert not any(map(served, ("ann", "bob", "cem", "eve")))
    assert served("dan", "another")  # nobody spoke of that pool
    do(cache.report, told.judgement.entry, "supported", by="ops")
    assert all(map(served, ("ann", "bob", "cem", "eve")))


def test_the_word_on_the_original_reaches_the_others_too(cache, do, make, served):
    first, *_ = [make(tenant) for tenant in ("ann", "bob", "cem")]
    do(cache.report, first.id, "hallucinated", by="ops")
    assert not any(map(served, ("ann", "bob", "cem", "eve")))


def test_what_is_made_of_documents_of_ones_own_stands(cache, do, make, served):
    for tenant in ("ann", "bob", "cem"):
        make(tenant)
    with cache.refresh():
        make("eve", owner="")
        make("fay", "No.")
    do(cache.report, copied(cache, do).id, "hallucinated", by="ops")
    assert served("eve")
    assert served("fay")  # another answer
    assert not served("ann")


def test_before_anything_is_in_the_pool_each_answers_for_itself(cache, do, make, served):
    first, _ = make("ann"), make("bob")
    do(cache.report, first.id, "hallucinated", by="ops")
    assert not served("ann")
    assert served("bob")


def test_a_tenants_word_on_its_own_reaches_nobody_elses(cache, do, make, served):
    first, *_ = [make(tenant) for tenant in ("ann", "bob", "cem")]
    with cache.using(tenant="ann"):
        do(cache.report, first.id, "hallucinated", by="ann")
    assert served("bob")


def test_a_quarantine_of_the_copy_holds_them_all(cache, do, make, served):
    for tenant in ("ann", "bob", "cem"):
        make(tenant)
    assert served("eve")
    receipt = do(cache.quarantine, copied(cache, do).id, by="ops")
    assert receipt.by_tenant == {"ann": 1, "bob": 1, "cem": 1}
    assert receipt.by_pool == {POOL: 1}
    assert not any(map(served, ("ann", "bob", "cem", "eve")))
    outbreak = cache.propagation().spread(copied(cache, do).id)
    assert outbreak.cut().promotions[0].child == copied(cache, do).id
    do(cache.release, receipt)
    assert all(map(served, ("ann", "bob", "cem", "eve")))
