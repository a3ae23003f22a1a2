"""On request, what is new is stored once it is asked again; what is known, for longer."""

import pytest

import stemma
from stemma import LifePolicy, Novelty, UsageError

ASK = "How do I reset the password of my account?"
LIKE = "How do I reset the password of an account?"
NEAR = "How do I reset the clock of my new oven?"
OTHER = "Tell me a joke about penguins"


@pytest.fixture
def make(url, clock):
    opened = []

    def make(**named):
        life = LifePolicy({"answer": 100.0}, jitter=0.0)
        given = {"embedder": None, "clock": clock, "life": life, "tenant": "me", **named}
        opened.append(stemma.open(url, **given))
        return opened[-1]

    yield make
    for cache in opened:
        cache.close()


def put(cache, do, question, **named):
    return do(cache.answers.get_or_compute, question, lambda: "So.", **named).stored


def test_what_is_new_is_stored_once_it_is_asked_again_and_kept_longer(make, do, clock, model):
    cache = make(novelty=Novelty())
    first = do(cache.answers.get_or_compute, ASK, model)
    assert (first.stored.refused, first.value) == ("not_admitted", "answer 1")
    assert "new" in first.stored.detail
    assert "password" not in first.stored.detail
    second = do(cache.answers.get_or_compute, ASK, model)
    assert second.stored.entry.expires == clock.now() + 200
    assert do(cache.answers.get_or_compute, ASK, model).value == "answer 2"
    assert model.calls == 2


def test_by_default_everything_is_stored_for_its_own_life(make, do, clock):
    cache = make()
    assert put(cache, do, ASK).entry.expires == clock.now() + 100
    assert put(cache, do, OTHER).entry.expires == clock.now() + 100


def test_what_is_near_is_stored_while_there_is_room(make, do, clock):
    cache = make(novelty=Novelty(room=2))
    put(cache, do, ASK)
    assert put(cache, do, LIKE).entry.expires == clock.now() + 100
    assert put(cache, do, NEAR).entry.expires == clock.now() + 100
    refused = put(cache, do, "How do I reset the clock of my old oven now?")
    assert refused.refused == "not_admitted"
    assert "room" in refused.detail
    assert put(cache, do, "How do I reset the clock of my old oven now?").entry is not None


def test_an_empty_cache_fills_and_tenants_and_models_do_not_tell_of_each_other(make, do):
    cache = make(novelty=Novelty(), tenant=None)
    for tenant in ("a", "b"):
        with cache.using(tenant=tenant):
            assert [bool(put(cache, do, one)) for one in (ASK, OTHER, ASK, OTHER)] == [
                False, False, True, True,
            ]  # fmt: skip
            assert not put(cache, do, ASK, model="other")


def test_a_life_without_end_stays_so_and_one_of_the_call_is_lengthened(make, do, clock):
    cache = make(novelty=Novelty(longer=3.0), life=LifePolicy({"answer": None}, jitter=0.0))
    put(cache, do, ASK)
    assert put(cache, do, ASK, life=10.0).entry.expires == clock.now() + 30
    put(cache, do, OTHER)
    assert put(cache, do, OTHER).entry.expires is None


def test_what_is_no_question_is_stored_as_ever(make, do):
    cache = make(novelty=Novelty())
    assert do(cache.calls.get_or_compute, None, lambda: "So.", model="m", exact="all").stored
    assert do(cache.retrievals.get_or_compute, "q", lambda: ["d"], index="i").stored
    with cache.refresh():
        assert put(cache, do, ASK)


def test_embeddings_count_where_there_are_any(make, do):
    words = "please reset the password of my account"
    cache = make(novelty=Novelty(near=0.7, known=0.7), embedder="hashing")
    assert not put(cache, do, words)
    turned = "of my account please reset the password"
    assert put(cache, do, turned)


def test_it_must_be_one(make):
    with pytest.raises(UsageError, match="Novelty"):
        make(novelty=0.85)
