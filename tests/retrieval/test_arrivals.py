"""Documents that come, change or go, against an index that is searched anew each time."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import stemma
from stemma.arrivals import Arrivals
from stemma.effects import run
from stemma.entry import arrivals
from stemma.selector import Selector
from stemma.stores.memory import MemoryStore
from stemma.testing.searches import INDEX, Sought, World


def stored(cache, node="retrieval"):
    return {entry.focus for entry in cache.engine.parts.store.find(Selector(node=node), limit=999)}


def test_a_new_document_takes_back_the_searches_it_belongs_to_and_no_others(world):
    world.fill(200)
    queries = [world.query() for _ in range(60)]
    for query in queries:
        world.answer(query)
    new = world.direction()
    before = {query: world.truth(query) for query in queries}
    world.index.add("new", new)
    receipt = world.cache.documents_changed(INDEX, added=[new])
    hit = {query for query in queries if world.truth(query) != before[query]}
    assert hit
    assert stored(world.cache) == set(queries) - hit
    assert stored(world.cache, "answer") == {f"answer {one}" for one in set(queries) - hit}
    assert receipt.by_node == {"retrieval": len(hit), "answer": len(hit)}
    for query in queries:
        assert world.given(world.retrieve(query)) == world.truth(query)


def test_a_list_that_is_entered_behind_the_first_k_proves_less(world):
    world.fill(300)
    query = world.query()
    world.answer(query)
    tenth = world.index.vectors[world.truth(query, 10)[-1]]
    world.index.add("new", tenth)
    assert len(world.cache.documents_changed(INDEX, added=[tenth])) == 0
    assert world.answer(query).outcome.hit
    near = world.query(query, 0.001)
    longer = world.retrieve(near, 12)
    assert longer.outcome.reason == "unproven"
    assert list(longer.value.chunks[:12]) == world.truth(near, 12)


def test_what_was_built_on_a_document_goes_with_it(world):
    world.fill(100)
    queries = [world.query() for _ in range(20)]
    for query in queries:
        world.answer(query)
    name = world.truth(queries[0])[0]
    built = {query for query in queries if name in world.truth(query)}
    world.index.remove(name)
    world.cache.documents_changed(INDEX, removed=[name])
    assert stored(world.cache) == set(queries) - built
    other = world.truth(queries[-1])[1]
    built |= {query for query in queries if other in world.truth(query)}
    world.index.texts[other] = "second edition"
    world.cache.documents_changed(INDEX, changed=[other], added=[world.index.vectors[other]])
    assert not stored(world.cache) & built


def test_where_a_vector_is_not_known_every_search_goes(world):
    world.fill(100)
    for _ in range(5):
        world.answer(world.query())
    assert world.cache.documents_changed(INDEX, added=[None]).by_node == {
        "retrieval": 5,
        "answer": 5,
    }
    world.answer(world.query())
    assert len(world.cache.documents_changed("another index", added=[None])) == 0
    assert len(world.cache.documents_changed(INDEX, added=[[1.0, 2.0]])) == 2


def test_a_search_made_before_and_stored_after_is_refused(world):
    world.fill(100)
    query = world.query()
    sought = Sought(world.index, query, 3)

    def compute():
        found = sought.search()
        new = world.index.queries[query]
        world.index.add("new", new)
        world.cache.documents_changed(INDEX, added=[new])
        return found

    def answer():
        served = world.cache.retrievals.serve(world.asked(sought), compute)
        return ", ".join(world.given(served))

    first = world.cache.answers.get_or_compute("answer", answer, meaning=False)
    assert first.stored.refused == "recalled"
    assert not stored(world.cache)
    assert world.given(world.retrieve(query))[0] == "new"


def test_answers_in_the_making_are_stored_if_their_search_still_stands(world):
    world.fill(100)
    query = world.query()
    far = -world.index.queries[query]

    def answer():
        found = world.retrieve(query)
        world.index.add("new", far)
        world.cache.documents_changed(INDEX, added=[far])
        return ", ".join(world.given(found))

    served = world.cache.answers.get_or_compute("answer", answer, meaning=False)
    assert served.stored


@pytest.mark.parametrize("written", [False, True])
def test_many_documents_at_once(world, written):
    world.fill(100)
    queries = [world.query() for _ in range(30)]
    for query in queries:
        world.retrieve(query, written=written)
    added = [world.direction() for _ in range(1500)]
    for place, vector in enumerate(added):
        world.index.add(f"new {place}", vector)
    world.cache.documents_changed(INDEX, added=added)
    for query in queries:
        assert world.given(world.retrieve(query, written=written)) == world.truth(query)


@pytest.mark.parametrize(
    "arguments",
    [
        {"index": ""},
        {"index": None},
        {"index": INDEX, "changed": [1]},
        {"index": INDEX, "removed": [None]},
    ],
)
def test_wrong_arguments_are_errors(world, arguments):
    with pytest.raises(stemma.UsageError):
        world.cache.documents_changed(**arguments)


def test_one_id_is_not_its_letters(world):
    world.fill(30)
    query = world.query()
    world.retrieve(query)
    (name, *_) = world.truth(query)
    assert len(world.cache.documents_changed(INDEX, removed=name)) == 1


def test_another_process_is_told_by_the_store(tmp_path):
    where = str(tmp_path / "cache.db")
    with (
        stemma.open(where, tenant="me", embedder=None) as serving,
        stemma.open(where, tenant="me", embedder=None) as indexing,
    ):
        world = World(serving)
        world.fill(100)
        query = world.query()
        world.answer(query)
        new = world.index.queries[query]
        world.index.add("new", new)
        indexing.documents_changed(INDEX, added=[new])
        assert world.given(world.retrieve(query))[0] == "new"
        assert "new" in world.answer(query).value


class Interrupted(MemoryStore):
    """Lets something happen just before its n-th recall."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0
        self.happen = None

    def recall_all(self, selectors, *, now):
        self.left -= 1
        if self.left == 0:
            self.happen()
        return super().recall_all(selectors, now=now)


def test_what_is_served_from_a_list_that_is_just_being_taken_back_goes_as_well():
    store = Interrupted()
    with stemma.open(store, tenant="me", embedder=None) as cache:
        world = World(cache)
        world.fill(300)
        query = world.query()
        world.retrieve(query)
        near = world.query(query, 0.01)
        new = world.index.queries[near]
        world.index.add("new", new)
        # The first recall is of what is being computed, the second of the list that was found.
        store.left, store.happen = 2, lambda: seen.append(world.retrieve(near))
        seen = []
        cache.documents_changed(INDEX, added=[new])
        assert seen[0].outcome.list == "proven"
        assert "new" not in world.given(seen[0])
        assert world.given(world.retrieve(near))[0] == "new"


class Corpus(RuleBasedStateMachine):
    """Any course of searches, rewordings and changes: what is served is what a search gives."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed):
        self.cache = stemma.open(tenant="me", embedder=None)
        self.world = World(self.cache, seed)
        self.world.fill(40)
        self.queries = [self.world.query() for _ in range(3)]

    @rule(data=st.data(), k=st.integers(1, 6))
    def search(self, data, k):
        query = data.draw(st.sampled_from(self.queries))
        served = self.world.retrieve(query, k)
        if not served.outcome.hit or served.outcome.list != "statistical":
            assert self.world.given(served, k) == self.world.truth(query, k)

    @rule(data=st.data(), by=st.sampled_from([0.003, 0.02, 0.1]))
    def reword(self, data, by):
        near = data.draw(st.sampled_from(self.queries))
        self.queries.append(self.world.query(near, by))

    @rule(data=st.data())
    def answer(self, data):
        query = data.draw(st.sampled_from(self.queries))
        served = self.world.answer(query)
        if served.outcome.hit and not self.statistical(query):
            assert served.value == "answer from " + ", ".join(self.world.truth(query))

    def statistical(self, query):
        tree = str(self.cache.lineage(self.world.answer(query).outcome.entry.id))
        served = self.world.retrieve(query)
        return (
            "statistical" in tree or not served.outcome.hit or served.outcome.list == "statistical"
        )

    @rule(data=st.data(), by=st.sampled_from([0.01, 0.3, 2.0]), number=st.integers(1, 3))
    def add(self, data, by, number):
        near = self.world.index.queries[data.draw(st.sampled_from(self.queries))]
        added = []
        for _ in range(number):
            added.append(self.world.direction(near, by))
            self.world.index.add(self.world.name("d"), added[-1])
        self.cache.documents_changed(INDEX, added=added)

    @precondition(lambda self: len(self.world.index.vectors) > 5)
    @rule(data=st.data())
    def remove(self, data):
        name = data.draw(st.sampled_from(sorted(self.world.index.vectors)))
        self.world.index.remove(name)
        self.cache.documents_changed(INDEX, removed=[name])

    @rule(data=st.data())
    def edit(self, data):
        name = data.draw(st.sampled_from(sorted(self.world.index.vectors)))
        vector = self.world.direction()
        self.world.index.add(name, vector, self.world.name("edition "))
        self.cache.documents_changed(INDEX, changed=[name], added=[vector])

    @invariant()
    def lists_are_true(self):
        for entry in self.cache.engine.parts.store.find(Selector(node="retrieval"), limit=99):
            ranking = self.world.codec.decode(entry.payload)
            if ranking.kind == "statistical" or ranking.vectors is None:
                continue
            outside = set(self.world.index.vectors) - set(ranking.chunks)
            nearest = max(
                (float(self.world.index.vectors[one] @ ranking.query) for one in outside),
                default=-np.inf,
            )
            assert nearest <= ranking.floor + 1e-5

    def teardown(self):
        self.cache.close()


Corpus.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestCorpus = Corpus.TestCase


@pytest.mark.parametrize("stage", ["stored", "in the making"])
@pytest.mark.parametrize("why", ["not admitted", "unstorable", "unkeyable"])
def test_what_is_built_on_a_search_that_was_not_stored_goes_with_what_comes(world, why, stage):
    """Such as an answer that nothing is known, given when nothing was found."""
    query, computed = world.query(), []
    new = world.index.queries[query]

    def come():
        world.index.add("new", new)
        world.cache.documents_changed(INDEX, added=[new])

    def compute():
        sought = Sought(world.index, query, 3)
        asked = world.asked(sought, **({"how": object()} if why == "unkeyable" else {}))
        served = world.cache.retrievals.serve(
            asked,
            (lambda: [object()]) if why == "unstorable" else sought.search,
            admit=(lambda _: "nothing was found") if why == "not admitted" else None,
        )
        computed.append(served)
        if stage == "in the making" and len(computed) == 1:
            come()
        return f"answer {len(computed)}"

    def ask():
        return world.cache.answers.get_or_compute("what?", compute, meaning=False)

    with pytest.warns(RuntimeWarning) if why == "unkeyable" else contextlib.nullcontext():
        stored = ask().stored
        assert stored.refused == ("recalled" if stage == "in the making" else None)
        if stage == "stored":
            assert ask().outcome.hit
            come()
        assert ask().value == "answer 2"
        assert ask().value == "answer 2"


def test_lists_that_are_gone_are_not_kept_in_mind(world, monkeypatch):
    monkeypatch.setattr("stemma.arrivals.FEW", 20)
    world.fill(30)
    known = Arrivals(world.cache.engine.parts)
    kept = []
    for _ in range(8):
        stays = world.query()
        world.retrieve(stays)
        for _ in range(9):
            world.retrieve(world.query())
        run(known.note(INDEX, [-world.index.queries[stays]], (), ()))
        (lists,) = known._known.values()
        kept.append(len(lists.known))
        world.cache.recall(index=INDEX)
    assert max(kept) <= 30
    new = world.direction()
    query = world.name("q")
    world.index.queries[query] = new
    world.retrieve(query)
    world.index.add("new", new)
    run(known.note(INDEX, [new], (), ()))
    assert world.given(world.retrieve(query)) == world.truth(query)


def test_changes_may_be_told_from_many_threads_at_once(world):
    world.fill(40)
    far = -sum(world.index.vectors.values())
    queries = [world.query() for _ in range(150)]

    def work(part):
        for query in queries[part::3]:
            world.retrieve(query)
            world.cache.documents_changed(INDEX, added=[far])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    world.cache.documents_changed(INDEX, added=[None])
    assert stored(world.cache) == set()


class Breaking(MemoryStore):
    """Breaks at the first recall of an entry, when it is told so."""

    breaks = False

    def recall_all(self, selectors, *, now):
        if self.breaks and any(one.entry is not None for one in selectors):
            self.breaks = False
            raise stemma.StoreUnavailable("the line broke")
        return super().recall_all(selectors, now=now)


def test_what_broke_half_way_is_done_by_doing_it_again():
    store = Breaking()
    with stemma.open(store, tenant="me", embedder=None) as cache:
        world = World(cache)
        world.fill(40)
        query = world.query()
        world.answer(query)
        new = world.index.queries[query]
        world.index.add("new", new)
        store.breaks = True
        with pytest.raises(stemma.StoreUnavailable, match="again"):
            cache.documents_changed(INDEX, added=[new])
        cache.documents_changed(INDEX, added=[new])
        assert world.given(world.retrieve(query)) == world.truth(query)
        assert "new" in world.answer(query).value


class Crowded(MemoryStore):
    """Somebody else's document comes just before a list is cut off."""

    others = 1

    def put(self, puts, now):
        if self.others and any(one.replaces is not None for one in puts):
            self.others -= 1
            self.recall(Selector(source=arrivals(INDEX)), now=now)
        return super().put(puts, now)


def test_a_list_that_cannot_be_cut_off_for_another_change_proves_nothing_untrue():
    with stemma.open(Crowded(), tenant="me", embedder=None) as cache:
        world = World(cache)
        world.fill(300)
        query = world.query()
        world.retrieve(query, 3)
        fifth = world.index.vectors[world.truth(query, 5)[-1]]
        world.index.add("new", fifth)
        cache.documents_changed(INDEX, added=[fifth])
        assert cache.engine.parts.store.others == 0
        near = world.query(query, 0.0001)
        assert "new" in world.truth(near, 6)
        assert list(world.retrieve(near, 6).value.chunks[:6]) == world.truth(near, 6)
