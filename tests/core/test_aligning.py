"""Token vectors are computed where a decision asks for them, once a text, and never beyond."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

import stemma
from stemma.aligning import MEMORY
from stemma.embedders.token_memory import TokenMemory
from stemma.errors import EmbedderError, UsageError
from stemma.options import policy_of
from stemma.policies.alignment import shipped
from stemma.policies.threshold import Decision, ThresholdPolicy

FIRST, AGAIN, OTHER = "cancel my order", "please cancel my order", "cancel my whole order"


class Tokens:
    """All about an order is the same to it; tokens are drawn by their words. Counts the runs."""

    quick = frozenset({"fits"})

    def __init__(self, revision=None):
        self.revision = shipped().embedder if revision is None else revision
        self.runs = []
        self.fails = False

    def embed(self, texts):
        found = np.zeros((len(texts), 384), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            row[0 if "order" in text else len(text)] = 1.0
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def embed_tokens(self, texts):
        if self.fails:
            raise EmbedderError("no memory")
        self.runs.append(sorted(texts))
        return [self._rows(text.split()) for text in texts]

    def fits(self, text):
        return True

    def _rows(self, words):
        rows = [np.random.default_rng(sum(map(ord, word))).normal(size=384) for word in words]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)


class Looks:
    """Looks at all candidates, then serves what `serve` says of the nearest's alignment."""

    name, depth, floor = "looks", 8, 0.0

    def __init__(self, serve=lambda aligned: True):
        self.serve = serve
        self.seen = []

    def decide(self, asked, candidates):
        unknown = tuple(one.id for one in candidates if one.aligned is None)
        if unknown:
            return Decision(look=unknown)
        self.seen.append({one.focus: one.aligned for one in candidates})
        if not any(self.serve(one.aligned) for one in candidates):
            return Decision(reason="below_threshold")
        decision = ThresholdPolicy(0.0, guards=False).decide(asked, candidates)
        return replace(decision, look=())


def ask(cache, do, question, answer="an answer"):
    """One request, in the style that `do` stands for."""
    if do == "sync":
        return cache.answers.get_or_compute(question, lambda: answer)

    async def computed():
        return answer

    return asyncio.run(cache.answers.aget_or_compute(question, computed))


@pytest.mark.parametrize("do", ["sync", "async"])
def test_one_run_reads_what_is_new_and_nothing_twice(do):
    embedder, policy = Tokens(), Looks()
    with stemma.open(":memory:", tenant="me", embedder=embedder, policy=policy) as cache:
        ask(cache, do, FIRST)
        assert embedder.runs == []
        assert ask(cache, do, AGAIN).outcome.tier == "semantic"
        assert embedder.runs == [sorted([FIRST, AGAIN])]
        assert ask(cache, do, OTHER).outcome.hit
        assert embedder.runs[1:] == [[OTHER]]
        assert ask(cache, do, FIRST).outcome.tier == "exact"
        assert len(embedder.runs) == 2


def test_the_policy_hears_what_the_aligner_says_of_the_two_texts():
    embedder, policy = Tokens(), Looks()
    with stemma.open(":memory:", tenant="me", embedder=embedder, policy=policy) as cache:
        ask(cache, "sync", FIRST)
        ask(cache, "sync", AGAIN)
    aligner = shipped()
    one, other = (aligner.projected(rows) for rows in embedder.embed_tokens([AGAIN, FIRST]))
    assert policy.seen[-1] == {FIRST: pytest.approx(aligner.align(one, other), abs=1e-4)}


def test_what_does_not_align_is_computed_and_stored():
    policy = Looks(serve=lambda aligned: False)
    with stemma.open(":memory:", tenant="me", embedder=Tokens(), policy=policy) as cache:
        ask(cache, "sync", FIRST)
        asked = ask(cache, "sync", AGAIN, "another")
        assert (asked.value, asked.outcome.reason) == ("another", "below_threshold")
        assert asked.stored.entry is not None


def test_a_model_that_fails_costs_a_miss():
    embedder = Tokens()
    with stemma.open(":memory:", tenant="me", embedder=embedder, policy=Looks()) as cache:
        ask(cache, "sync", FIRST)
        embedder.fails = True
        asked = ask(cache, "sync", AGAIN, "computed")
        assert (asked.value, asked.outcome.reason) == ("computed", "fault")


def test_a_policy_that_needs_another_embedder_is_refused():
    with stemma.open(":memory:", tenant="me", embedder=Tokens("x/1"), policy=Looks()) as cache:
        ask(cache, "sync", FIRST)
        with pytest.raises(UsageError, match="another embedder"):
            cache.answers.lookup(AGAIN)


def test_a_policy_that_never_decides_is_refused():
    class Endless(Looks):
        def decide(self, asked, candidates):
            return (
                Decision(look=tuple(one.id for one in candidates))
                if candidates
                else Decision(reason="cold")
            )

    with stemma.open(":memory:", tenant="me", embedder=Tokens(), policy=Endless()) as cache:
        ask(cache, "sync", FIRST)
        with pytest.raises(UsageError, match="told of"):
            cache.answers.lookup(AGAIN)


@pytest.mark.parametrize(("revision", "looks"), [(None, True), ("x/1", False)])
def test_the_default_of_verified_weighs_tokens_where_it_can(revision, looks):
    policy = policy_of("verified", 0.02, Tokens(revision))
    assert policy.identity["verifier"].startswith("aligned/") is looks
    assert not policy_of("verified", 0.02, None).identity["verifier"].startswith("aligned/")


def test_the_memory_is_bounded_and_drops_what_was_used_longest_ago():
    one = np.ones((1, 4), dtype=np.float32)
    memory = TokenMemory(3 * one.nbytes)
    memory.add(dict.fromkeys("abc", one))
    assert set(memory.get("ab")) == {"a", "b"}
    memory.add({"d": one, "huge": np.ones((100, 4), dtype=np.float32)})
    assert set(memory.get(["a", "b", "c", "d", "huge"])) == {"a", "b", "d"}
    assert MEMORY >= 4_096 * 16 * 48 * 4
