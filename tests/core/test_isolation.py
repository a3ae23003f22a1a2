"""The isolation report: what was refused, what crossed, and that partitions have one owner."""

import json
import warnings
from dataclasses import replace

import pytest

import stemma
from stemma import Isolation, PoolPolicy, UsageError
from stemma.testing.builders import put

ASK, NO, POOL = "May a gift card be returned?", "No.", "support"


def make(cache, tenant, ask=ASK, answer=NO, **said):
    with cache.using(tenant=tenant, pool=POOL, **said):
        return cache.answers.get_or_compute(ask, lambda: answer)


@pytest.fixture
def used(url, clock):
    """A pool of four tenants, in which one asks for what another made; and one who is no member."""
    members = PoolPolicy(members={"ann", "bob", "cem", "eve"})
    with stemma.open(url, embedder=None, clock=clock, pools={POOL: members}) as cache:
        for tenant in ("ann", "bob", "cem"):
            make(cache, tenant)
        make(cache, "eve")
        make(cache, "eve")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(cache, "mallory", answer="Yes.")
        yield cache


def test_what_was_refused_and_what_crossed_is_counted(used):
    (entry,) = (one.entries[1] for one in used.pools.offers(POOL))
    with used.using(tenant="bob"):
        assert not used.pools.promote(entry.id, by="bob")
        (copy,) = used.pools.entries(POOL)
        with pytest.raises(UsageError):
            used.pools.revoke(copy.id, by="bob")
    found = used.isolation()
    assert isinstance(found, Isolation)
    assert {(one.tenant, one.tried, one.refused): one.count for one in found.refused} == {
        ("bob", "promotion", "not_an_operator"): 1,
        ("bob", "revocation", "not_an_operator"): 1,
        ("mallory", "lookup", "not_a_member"): 1,
    }
    (pool,) = found.pools
    assert (pool.pool, pool.entries, pool.servings, pool.crossed) == (POOL, 1, 2, 2)
    assert (pool.producers, pool.consumers) == (("ann",), ("eve",))
    assert (found.crossed, found.servings, found.entries) == (2, 2, 5)
    assert found


def test_a_refusal_is_counted_for_who_asked_not_for_whose_the_entry_is(used):
    (entry,) = (one.entries[1] for one in used.pools.offers(POOL))
    with used.using(tenant="mallory"):
        assert not used.pools.promote(entry.id, by="mallory")
    tried = {(one.tenant, one.tried) for one in used.isolation().refused}
    assert ("mallory", "promotion") in tried
    assert (entry.tenant, "promotion") not in tried


def test_refusals_are_no_misses(used):
    assert not any("crossing" in one for row in used.stats().rows for one in row.misses)


def test_it_reads_as_text_and_as_json(used):
    found = used.isolation()
    assert "of one owner each" in str(found)
    assert "pool 'support': 1 entry of 1 tenant," in str(found)
    assert "1 × lookup of 'mallory': not_a_member" in str(found)
    assert json.loads(json.dumps(found.as_json()))["crossed"] == 2


def test_an_entry_in_anothers_partition_is_a_leak(used):
    store = used.engine.parts.store
    (mine,) = store.find(stemma.Selector(tenant="bob"))
    planted = replace(mine, id="planted", tenant="mallory", offer=None)
    store.put([put(planted, since=store.sequence())], 0.0)
    found = used.isolation()
    assert not found
    assert "mallory" in found.leaks[0]
    assert str(found).startswith("1 leak among")


@pytest.mark.parametrize("face", ["answers", "calls", "hops", "retrievals"])
def test_tenant_model_and_temperature_are_in_every_key(face):
    """Each of them alone makes another partition; without a change it is the same."""
    varied = {"model": ("m", "n"), "temperature": (0.0, 1.0), "tenant": ("ann", "bob")}
    with stemma.open(embedder=None) as cache:

        def partition(**given):
            said = {"model": "m", "temperature": 0.0, "tenant": "ann"} | given
            with cache.using(
                tenant=said["tenant"], model=said["model"], temperature=said["temperature"]
            ):
                asked = {
                    "answers": lambda: cache.answers.asked("q"),
                    "calls": lambda: cache.calls.asked("q", model="m", exact="x"),
                    "hops": lambda: cache.hops.asked("q"),
                    "retrievals": lambda: cache.retrievals.asked("q", index="i"),
                }[face]()
                return getattr(cache, face).query(asked).scope.partition

        assert partition() == partition()
        found = {partition(**{name: value}) for name, both in varied.items() for value in both}
        assert len(found) == 4
