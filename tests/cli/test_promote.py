"""`stemma promote` copies an answer into its pool, or says why not."""

import json

import pytest

import stemma

POOL = "support [bold]"


@pytest.fixture
def offered(tmp_path):
    """A cache file with an answer that was offered to a pool."""
    path = tmp_path / "answers.db"
    with stemma.open(path, tenant="acme", embedder=None) as cache, cache.using(pool=POOL):
        made = cache.answers.get_or_compute("May a gift card be returned?", lambda: "No.")
    return path, made.stored.entry.id


def test_an_answer_is_copied_once(stemma_, offered):
    path, entry = offered
    ran = stemma_("promote", entry[:12], "--by", "pam", "--db", path)
    assert (ran.code, ran.out.startswith(f"copied into pool {POOL}: ")) == (0, True)
    again = stemma_("promote", entry, "--by", "pam", "--db", path)
    assert again.code == 1
    assert again.out.startswith("refused (occupied): an answer lies there already")
    with stemma.open(path, tenant="other", embedder=None) as cache, cache.using(pool=POOL):
        assert cache.answers.lookup("May a gift card be returned?").value == "No."


def test_it_can_be_read_by_programs(stemma_, offered):
    path, entry = offered
    told = json.loads(stemma_("promote", entry, "--by", "pam", "--db", path, "--json").out)
    assert (told["pool"], told["original"], told["by"], told["refused"]) == (
        POOL,
        entry,
        "pam",
        None,
    )
    with stemma.open(path, tenant="other", embedder=None) as cache:
        assert [one.id for one in cache.pools.entries(POOL)] == [told["copy"]]


def test_somebody_must_approve_of_something(stemma_, offered):
    path, entry = offered
    assert stemma_("promote", entry, "--db", path).code == 2
    assert stemma_("promote", "nothing", "--by", "pam", "--db", path).code == 2


def test_what_was_offered_to_no_pool_is_refused(stemma_, made):
    ran = stemma_("promote", made.answer, "--by", "pam", "--db", made.path)
    assert (ran.code, "not_offered" in ran.out) == (1, True)
