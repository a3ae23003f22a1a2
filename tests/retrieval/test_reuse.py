"""Lists found for one query serve another: which, how, and that it is said."""

import asyncio

import pytest

import stemma
from stemma.testing.clock import ManualClock
from stemma.testing.searches import INDEX, Sought, World


def test_the_second_search_does_not_reach_the_index(world):
    world.fill(60)
    query = world.query()
    first = world.retrieve(query)
    again = world.retrieve(query)
    assert (world.index.searched, world.index.embedded) == (1, 1)
    assert not first.outcome.hit
    assert (again.outcome.tier, again.outcome.list) == ("exact", "exact")
    assert world.given(first) == world.given(again) == world.truth(query)
    assert again.value.documents[0][1] == f"text of {again.value.chunks[0]}"


def test_fewer_are_a_prefix_and_more_are_a_miss(world):
    world.fill(60)
    query = world.query()
    world.retrieve(query, 3)
    fewer = world.retrieve(query, 2)
    assert (fewer.outcome.list, len(fewer.value)) == ("prefix", 2)
    more = world.retrieve(query, 4)
    assert more.outcome.reason == "too_few"
    assert world.index.searched == 2
    longest = world.retrieve(query, 4)
    assert longest.outcome.list == "exact"
    assert list(longest.value.chunks) == world.truth(query, 4)
    assert world.retrieve(query, 3).outcome.list == "prefix"


def test_a_list_that_is_all_there_is_serves_any_k(world):
    world.fill(5)
    query = world.query()
    assert len(world.retrieve(query, 6).value.chunks) == 5
    everything = world.retrieve(query, 50)
    assert everything.outcome.hit
    assert list(everything.value.chunks) == world.truth(query, 50)


@pytest.mark.parametrize("documents", [5, 60])
def test_what_served_a_reworded_query_is_not_taken_for_all_there_is(world, documents):
    world.fill(documents)
    query = world.query()
    world.retrieve(query, 3)
    near = world.query(query, 0.001)
    assert world.retrieve(near, 3).outcome.list == "proven"
    more = world.retrieve(near, 5)
    assert list(more.value.chunks)[:5] == world.truth(near, 5)


@pytest.mark.parametrize("documents", [5, 60])
def test_an_answer_from_more_documents_goes_with_a_new_one_among_them(world, documents):
    world.fill(documents)
    query = world.query()
    world.retrieve(query, 2)

    def compute():
        return world.given(world.retrieve(query, 5), 5)

    def ask():
        return world.cache.answers.get_or_compute("five", compute, meaning=False)

    assert ask().value == ask().value == world.truth(query, 5)
    fourth = world.index.vectors[world.truth(query, 4)[-1]]
    world.index.add("a new one", fourth)
    world.cache.documents_changed(INDEX, added=[fourth])
    assert "a new one" in world.truth(query, 5)
    assert ask().value == world.truth(query, 5)


def test_near_queries_are_served_and_it_is_said_how(world):
    world.fill(400)
    kinds = set()
    for _ in range(40):
        query = world.query()
        world.retrieve(query)
        for by in (0.01, 0.05, 0.1, 0.2):
            near = world.query(query, by)
            served = world.retrieve(near)
            if served.outcome.hit:
                kinds.add(served.outcome.list)
                assert served.outcome.tier == "semantic"
                assert served.outcome.note()["list"] == served.outcome.list
            if served.outcome.hit and served.outcome.list == "proven":
                assert world.given(served) == world.truth(near)
    assert kinds == {"proven", "statistical"}


def test_far_queries_are_searched(world):
    world.fill(200)
    query = world.query()
    world.retrieve(query)
    far = world.retrieve(world.query())
    assert far.outcome.reason == "cold"
    assert world.index.searched == 2


def test_a_reworded_query_is_kept_under_itself(world):
    world.fill(400)
    query = world.query()
    world.retrieve(query)
    near = world.query(query, 0.01)
    assert world.retrieve(near).outcome.list == "proven"
    embedded = world.index.embedded
    again = world.retrieve(near)
    assert (again.outcome.tier, again.outcome.list) == ("exact", "proven")
    assert world.given(again) == world.truth(near)
    assert (world.index.searched, world.index.embedded) == (1, embedded)


def test_documents_are_read_again(world):
    world.fill(60)
    query = world.query()
    gone, changed, _ = world.given(world.retrieve(query))
    world.index.texts[changed] = "another text"
    assert world.retrieve(query).outcome.reason == "source_changed"
    assert world.retrieve(query).value.documents[1][1] == "another text"
    world.index.remove(gone)
    served = world.retrieve(query)
    assert served.outcome.reason == "source_changed"
    assert gone not in world.given(served)
    near = world.query(query, 0.01)
    world.index.texts[world.truth(near)[0]] = "changed, and nobody said so"
    assert world.retrieve(near).outcome.reason == "source_changed"


def test_where_documents_cannot_be_read_again_the_copy_serves(world):
    world.fill(60)
    query = world.query()
    first = world.retrieve(query, written=True)
    again = world.retrieve(query, written=True)
    assert again.outcome.hit
    assert world.index.read == 0
    assert again.value.documents == first.value.documents[:3]
    again.value.documents[0][1] = "changed by its reader"
    assert world.retrieve(query, written=True).value.documents == first.value.documents[:3]


def test_a_copy_goes_with_any_of_its_candidates(world):
    """Where nothing is read again, a candidate behind the first k is a source, too."""
    world.fill(60)
    query = world.query()
    behind = world.retrieve(query, written=True).value.chunks[10]
    assert len(world.cache.recall(source=behind, dry_run=True)) == 1
    world.cache.clear(tenant="me")
    behind = world.retrieve(query).value.chunks[10]
    assert len(world.cache.recall(source=behind, dry_run=True)) == 0


def test_statistical_hits_are_audited_and_proven_ones_never(world):
    world.fill(400)
    reasons, lists = set(), set()
    for _ in range(30):
        query = world.query()
        world.retrieve(query)
        for by in (0.01, 0.1, 0.2, 0.3):
            served = world.retrieve(world.query(query, by), audited=1.0)
            if served.outcome.hit:
                lists.add(served.outcome.list)
            else:
                reasons.add(served.outcome.reason)
    assert "audit" in reasons
    assert lists == {"proven"}


def test_what_lists_would_have_missed_is_learnt_from_searches_that_were_made_anyway(tmp_path):
    where = str(tmp_path / "cache.db")
    with stemma.open(where, tenant="me", embedder=None) as cache:
        world = World(cache)
        world.fill(400)
        for _ in range(150):
            query = world.query()
            world.retrieve(query)
            for by in (0.15, 0.2, 0.3):
                world.retrieve(world.query(query, by), audited=1.0)
        learnt = cache.engine.reusing.calibration.factor(INDEX)
        assert learnt != 0.35
    with stemma.open(where, tenant="me", embedder=None) as cache:
        calibration = cache.engine.reusing.calibration
        calibration.load(INDEX)
        assert calibration.factor(INDEX) == learnt
        assert all(row.tenant == "me" for row in cache.stats().rows)


def test_without_candidates_only_the_same_query_hits(world):
    world.fill(60)
    query = world.query()
    world.retrieve(query, times=1)
    assert world.retrieve(query, times=1).outcome.hit
    assert not world.retrieve(world.query(query, 0.001), times=1).outcome.hit
    assert world.index.embedded == 0


def test_nothing_crosses_tenants_or_parameters(world):
    world.fill(60)
    query = world.query()
    world.retrieve(query)
    with world.cache.using(tenant="other"):
        assert not world.retrieve(query).outcome.hit
    with world.cache.using(tenant="another"):
        assert not world.retrieve(world.query(query, 0.001)).outcome.hit
    for told in ({"filter": "a"}, {"filter": "b"}):
        sought = Sought(world.index, query, 3)
        served = world.cache.retrievals.serve(world.asked(sought, **told), sought.search)
        assert not served.outcome.hit
    with world.cache.using(permissions=["staff"]):
        assert not world.retrieve(query).outcome.hit


def test_a_list_that_served_another_query_lives_no_longer_than_it_would_have():
    clock = ManualClock()
    life = stemma.LifePolicy(base={"retrieval": 100.0}, jitter=0.0)
    with stemma.open(tenant="me", embedder=None, clock=clock, life=life) as cache:
        world = World(cache)
        world.fill(400)
        query = world.query()
        world.retrieve(query)
        clock.advance(90)
        near = world.query(query, 0.01)
        assert world.retrieve(near).outcome.list == "proven"
        clock.advance(11)
        assert not world.retrieve(near).outcome.hit


def test_a_lost_vector_or_a_failing_index_is_a_miss_and_no_error(world, monkeypatch):
    world.fill(60)
    query = world.query()
    world.retrieve(query)
    near = world.query(query, 0.001)
    world.index.queries[near] = world.direction() * float("nan")
    sought = Sought(world.index, near, 3)
    world.index.queries[near], odd = world.direction(), world.index.queries[near]
    monkeypatch.setattr(Sought, "embed", lambda *_: odd)
    served = world.cache.retrievals.serve(world.asked(sought), sought.search)
    assert not served.outcome.hit
    assert served.value.chunks

    def fail(*_):
        raise OSError("the index does not answer")

    monkeypatch.setattr(Sought, "embed", fail)
    monkeypatch.setattr(Sought, "read", fail)
    served = world.retrieve(world.query(query, 0.001))
    assert (served.outcome.reason, bool(served.value.chunks)) == ("fault", True)
    assert world.retrieve(query).outcome.reason == "fault"


def test_async_does_the_same(world):
    world.fill(400)
    query = world.query()

    async def go():
        kinds = []
        for asked in (query, query, world.query(query, 0.01)):
            sought = Sought(world.index, asked, 3)
            served = await world.cache.retrievals.aserve(world.asked(sought), sought.search)
            kinds.append(served.outcome.list if served.outcome.hit else served.outcome.reason)
            assert world.given(served) == world.truth(asked)
        return kinds

    assert asyncio.run(go()) == ["cold", "exact", "proven"]
    assert world.index.searched == 1
