"""A cache, and a reranker that remembers what it was asked."""

import pytest

import stemma


class Counting:
    """Scores by how many words a text shares with the query; keeps what it was asked."""

    def __init__(self, revision="words/1"):
        self.revision = revision
        self.asked = []
        self.special = {}

    @property
    def pairs(self):
        return [(query, text) for query, texts in self.asked for text in texts]

    def score(self, query, texts):
        self.asked.append((query, list(texts)))
        words = set(query.split())
        return [self.special.get(text, len(words & set(text.split())) + 0.1) for text in texts]


@pytest.fixture
def words():
    return Counting()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None, tenant="t") as opened:
        yield opened
