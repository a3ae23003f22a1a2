"""The nearest that the server names are the true nearest of their group."""

import numpy as np
import pytest

from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import NOW, entry, put, put_one, vector

TENANTS, SMALLEST, DIMENSIONS = 200, 10, 64


def true_nearest(held: dict[str, np.ndarray], question: np.ndarray, k: int) -> list[str]:
    """By brute force, over the vectors as they are kept."""
    rows = np.array([kept.astype(np.float16).astype(np.float64) for kept in held.values()])
    similarities = rows @ question / np.linalg.norm(rows, axis=1)
    order = np.argsort(-similarities)[:k]
    return [list(held)[place] for place in order]


@pytest.fixture(scope="module", params=["newest", "floor"])
def crowded(request):
    """A store with many tenants, the smallest of them with ten entries; and what each holds."""
    server = request.getfixturevalue(request.param)
    store = PostgresStore(server.url(server.database(), "keeper"), timeout=60)
    lucky = np.random.default_rng(7)
    held: dict[str, dict[str, np.ndarray]] = {}
    puts = []
    for tenant in range(TENANTS):
        group = held.setdefault(f"group of t{tenant}", {})
        for number in range(SMALLEST + tenant % 5):
            made = lucky.normal(size=DIMENSIONS).astype(np.float32)
            group[f"t{tenant}-{number}"] = made
            one = entry(f"t{tenant}-{number}", tenant=f"t{tenant}")
            puts.append(put(one, since=0, vector=made))
    large = held.setdefault("group of large", {})
    for number in range(2000):
        made = lucky.normal(size=DIMENSIONS).astype(np.float32)
        large[f"large-{number}"] = made
        puts.append(put(entry(f"large-{number}", tenant="large"), since=0, vector=made))
    store.put(puts, NOW)
    yield store, held
    store.close()


def test_the_nearest_of_every_tenant_are_found(crowded):
    """All of them, in order, whatever lies nearer in other groups."""
    store, held = crowded
    lucky = np.random.default_rng(11)
    for group, kept in held.items():
        question = lucky.normal(size=DIMENSIONS).astype(np.float32)
        found = store.nearest(group, question, 5)
        assert [name for name, _ in found] == true_nearest(kept, question, 5), group
        similarities = [similarity for _, similarity in found]
        assert similarities == sorted(similarities, reverse=True)


def test_the_nearest_of_a_large_tenant_are_found(crowded):
    """Among two thousand, for a hundred questions near to one of them, with the similarity."""
    store, held = crowded
    lucky = np.random.default_rng(13)
    kept = held["group of large"]
    for number in range(100):
        near = kept[f"large-{number * 17}"]
        question = near + 0.3 * lucky.normal(size=DIMENSIONS).astype(np.float32)
        found = store.nearest("group of large", question, 10)
        assert [name for name, _ in found] == true_nearest(kept, question, 10)
        half = near.astype(np.float16).astype(np.float32)
        exact = half @ question / np.linalg.norm(half) / np.linalg.norm(question)
        assert dict(found)[f"large-{number * 17}"] == pytest.approx(exact, abs=1e-6)


async def test_the_twin_finds_the_same(crowded):
    """Awaited."""
    store, held = crowded
    question = held["group of t3"]["t3-4"]
    assert await store.anearest("group of t3", question, 3) == store.nearest(
        "group of t3", question, 3
    )
    assert (await store.anearest("group of t3", question, 1))[0][0] == "t3-4"


def test_there_may_be_none(store):
    """For a group of nothing, a question of nothing, or none asked for."""
    put_one(store, entry("a"), vector=vector(1, 0))
    put_one(store, entry("zero"), vector=vector(0, 0))
    assert store.nearest("nobody's", vector(1, 0), 3) == ()
    assert store.nearest("group of acme", vector(0, 0), 3) == ()
    assert store.nearest("group of acme", vector(1, 0), 0) == ()
    assert store.nearest("group of acme", vector(1, 0), 9) == (("a", 1.0),)


def test_vectors_of_another_length_are_of_another_kind(store):
    """Two embedders in one group are not compared with one another."""
    put_one(store, entry("two"), vector=vector(1, 0))
    put_one(store, entry("three"), vector=vector(1, 0, 0))
    assert store.nearest("group of acme", vector(1, 0), 3) == (("two", 1.0),)
    assert store.nearest("group of acme", vector(1, 0, 0), 3) == (("three", 1.0),)


def test_the_kind_of_the_column_is_the_server_s_best(newest, floor):
    """`halfvec` where pgvector has it, `vector` before."""
    for server, kind in ((newest, "halfvec"), (floor, "vector")):
        name = server.database()
        PostgresStore(server.url(name, "keeper")).close()
        statement = """SELECT format_type(typbasetype, typtypmod) FROM pg_type
            WHERE typname = 'embedding' AND typnamespace = 'stemma'::regnamespace"""
        assert server.execute(statement, on=name) == [(kind,)]
