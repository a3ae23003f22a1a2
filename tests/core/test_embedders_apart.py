"""Two embedders on one store: each has its partition, and the statistics say that there are two."""

import pytest

import stemma
from stemma.embedders.hashing import HashingEmbedder

REVISIONS = sorted(one.revision for one in (HashingEmbedder(), HashingEmbedder(64)))


@pytest.fixture
def caches(tmp_path):
    """Two processes would do the same: each its own cache over one file."""
    path = tmp_path / "answers.db"
    one = stemma.open(path, tenant="me", embedder=HashingEmbedder(), threshold=0.5)
    two = stemma.open(path, tenant="me", embedder=HashingEmbedder(64), threshold=0.5)
    with one, two:
        yield one, two


def test_each_finds_its_own_entries_and_no_other(caches):
    """Neither by meaning nor by the exact question; vectors of two lengths do not meet."""
    for cache in caches:
        served = cache.answers.get_or_compute("What is a stemma of copies?", lambda: "A tree.")
        assert served.outcome.reason == "cold"
    for cache in caches:
        assert cache.answers.lookup("What is a stemma of copies?").hit
        assert cache.answers.lookup("What is a stemma of the copies?").tier == "semantic"
        assert cache.check() == ()


def test_the_statistics_name_both(caches):
    """As soon as there are two, from whichever process; of one they need not speak."""
    one, two = caches
    one.answers.lookup("What is a stemma?")
    row = one.stats().of(node="answer")
    assert (list(row.embedders.values()), dict(row.misses)) == ([1], {"cold": 1})
    assert one.stats().remarks() == ()
    two.answers.lookup("What is a stemma?")
    two.stats()  # writes what it counted
    (remark,) = one.stats().remarks()
    assert remark == (
        f"me, answer: 2 embedders were used ({', '.join(REVISIONS)}); "
        "each finds only its own entries"
    )
    assert remark in str(one.stats())
    assert one.stats().of().lookups == 2
