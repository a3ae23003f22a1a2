"""An application whose server is not as it should be goes on, and is told why."""

import pytest

import stemma
from stemma.embedders.hashing import HashingEmbedder
from stemma.errors import StoreError, StoreUnavailable
from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import entry, put_one
from stemma.testing.fakes import Scripted
from stemma.testing.proxy import Proxy, Trouble


class Heard(list):
    """What a cache said of its faults."""

    def __call__(self, event):
        if event.kind == "fault":
            self.append(event.detail)


@pytest.fixture
def cache(newest, database):
    """A cache with one answer, that of `known`."""
    cache = stemma.open(newest.url(database, "keeper"), tenant="acme", embedder=None)
    assert asked(cache, "known").outcome.reason == "cold"
    cache.stats()  # writes the journal
    yield cache
    cache.close()


def asked(cache, question):
    served = cache.answers.get_or_compute(question, Scripted(f"answer to {question}"))
    assert served.value == f"answer to {question}"
    return served


def heard_by(cache) -> Heard:
    heard = Heard()
    cache.listen(heard)
    return heard


def test_a_database_that_may_only_be_read(newest, database, cache):
    """Hits go on; what would be stored is not, and says so; a recall is refused with words."""
    newest.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    newest.disconnect(database)
    heard = heard_by(cache)
    assert asked(cache, "known").outcome.hit
    assert asked(cache, "new").stored.entry is None
    assert any("only be read" in words for words in heard)
    with pytest.raises(StoreUnavailable, match="only be read"):
        cache.recall(tenant="acme")


def test_a_database_that_may_only_be_read_can_be_opened(newest, database, cache):
    """If the tables are there; if they are not, it says what is wrong."""
    newest.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    url = newest.url(database, "keeper")
    with stemma.open(url, tenant="acme", embedder=None) as another:
        assert asked(another, "known").outcome.hit
    with pytest.raises(StoreUnavailable, match="only be read"):
        PostgresStore(url, schema="another")


def test_a_role_that_may_only_read(newest, database, cache):
    """The same, for one tenant, by a role that was granted SELECT alone."""
    newest.execute("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN")
    newest.execute(
        "GRANT USAGE ON SCHEMA stemma TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA stemma TO reader",
        on=database,
    )
    store = PostgresStore(newest.url(database, "reader"), tenant="acme")
    with stemma.open(store, tenant="acme", embedder=None) as reading:
        heard = heard_by(reading)
        assert asked(reading, "known").outcome.hit
        assert asked(reading, "new").stored.entry is None
        assert any("grant it what docs/stores.md lists" in words for words in heard)
        with pytest.raises(StoreError, match="may not do this"):
            put_one(store, entry())
    newest.execute("DROP OWNED BY reader", on=database)


def test_a_schema_that_vanishes(newest, database, cache):
    """Its tables are not made anew behind the operator's back: that takes opening it anew."""
    heard = heard_by(cache)
    newest.execute("DROP SCHEMA stemma CASCADE", on=database)
    for _ in range(2):
        assert asked(cache, "known").outcome.reason == "fault"
    assert any("the tables are gone" in words for words in heard)
    url = newest.url(database, "keeper")
    with stemma.open(url, tenant="acme", embedder=None) as another:
        assert asked(another, "known").outcome.reason == "cold"
        assert asked(another, "known").outcome.hit


def test_two_embedders_on_one_database(newest, database):
    """Each has its partition; the statistics name both."""
    for dimensions in (64, 256):
        embedder = HashingEmbedder(dimensions)
        url = newest.url(database, "keeper")
        with stemma.open(url, tenant="acme", embedder=embedder, threshold=0.5) as cache:
            asked(cache, "What is a stemma of copies?")
            assert cache.answers.lookup("What is a stemma of the copies?").tier == "semantic"
            said = cache.stats().remarks()
    assert len(said) == 1
    assert "2 embedders were used" in said[0]


def test_a_server_that_says_nothing_is_asked_once(newest, database):
    """What a URL names is guarded: the next calls go by without the store."""
    with Proxy(newest.port) as proxy:
        cache = stemma.open(
            newest.url(database, "keeper", proxy.port), tenant="acme", embedder=None
        )
        asked(cache, "known")
        assert asked(cache, "known").outcome.hit
        proxy.make(Trouble(silent=True))
        assert [asked(cache, "known").outcome.reason for _ in range(5)] == ["fault"] * 5
        assert cache.engine.parts.store.state == "open"
        proxy.make(Trouble())
        cache.close()
