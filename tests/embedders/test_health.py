"""An embedder whose vectors are of no use is found at first use, and stays refused."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stemma.embedders import Checked, Embedder, HashingEmbedder, TokenEmbedder, as_embedder
from stemma.embedders.health import ALIKE, PROBES, find_fault, unit_rows
from stemma.errors import EmbedderError
from stemma.testing.embedders import EmbedderConformance


class Stub:
    """An embedder that gives what a function of (texts, number of the call) gives."""

    revision = "stub/1"

    def __init__(self, give):
        self.give = give
        self.calls = 0

    def embed(self, texts):
        self.calls += 1
        return self.give(list(texts), self.calls)

    def fits(self, text):
        return len(text) < 100


class AsyncStub(Stub):
    """The same with a native async method, which alone may be called."""

    async def aembed(self, texts):
        await asyncio.sleep(0)
        return super().embed(texts)

    def embed(self, texts):
        raise AssertionError("the sync method was called")


def good(texts, call=0):
    return HashingEmbedder().embed(texts)


def narrow(texts, call=0):
    """Like a real model of a narrow band: unrelated cosines at 0.8."""
    return unit_rows(np.hstack([good(texts) * 0.5, np.full((len(texts), 1), 1.0)]), len(texts))


def nearly_constant(texts, call):
    return np.ones((len(texts), 32)) + good(texts)[:, :32] * 1e-3


def first_for_all(texts, call):
    return np.repeat(good(texts[:1]), len(texts), axis=0)


def shifted(texts, call):
    return np.roll(good(texts), 1, axis=0)


def first_two_same(texts, call):
    rows = good(texts)
    rows[1:2] = rows[0]
    return rows


UNFIT = {
    "constant": (lambda t, c: np.ones((len(t), 32)), "all alike"),
    "nearly constant": (nearly_constant, "all alike"),
    "the first text's vector for all": (first_for_all, "all alike"),
    "vectors in another order": (shifted, "different vectors in a batch"),
    "random": (lambda t, c: np.random.default_rng(c).normal(size=(len(t), 32)), "are random"),
    "two the same": (first_two_same, "one and the same"),
    "zero": (lambda t, c: np.zeros((len(t), 32)), "zero vector"),
    "NaN": (lambda t, c: np.full((len(t), 32), np.nan), "NaN"),
    "infinite": (lambda t, c: np.full((len(t), 32), -np.inf), "infinite number"),
    "too large": (lambda t, c: (good(t).astype(float) * 1e300).tolist(), "infinite number"),
    "one vector for many": (lambda t, c: good(t)[0], "one vector a text"),
    "too few": (lambda t, c: good(t)[:-1], "one vector a text"),
    "too many": (lambda t, c: np.vstack([good(t), good(t)]), "one vector a text"),
    "no dimensions": (lambda t, c: np.empty((len(t), 0)), "one vector a text"),
    "ragged": (lambda t, c: [[1.0] * (n + 1) for n, _ in enumerate(t)], r"one vector a|one length"),
    "texts": (lambda t, c: t, "not a list of vectors"),
    "nothing": (lambda t, c: None, "one vector a text"),
    "another size each call": (lambda t, c: HashingEmbedder(32 * c).embed(t), "now 32, now 64"),
}


class TestCheckedConformance(EmbedderConformance):
    """A checked embedder is an embedder."""

    @pytest.fixture
    def embedder(self):
        return Checked(HashingEmbedder())


@pytest.mark.parametrize("name", UNFIT)
def test_an_unfit_embedder_is_refused_for_good(name):
    """The first use says what is wrong, and later ones say it again without a call."""
    give, fault = UNFIT[name]
    stub = Stub(give)
    checked = Checked(stub)
    with pytest.raises(EmbedderError, match=fault) as refused:
        checked.embed(["What is the capital of France?"])
    assert "Matching by meaning is off" in str(refused.value)
    calls = stub.calls
    for _ in range(3):
        with pytest.raises(EmbedderError, match=fault):
            checked.embed(["and now?"])
    assert stub.calls == calls


@pytest.mark.parametrize("name", UNFIT)
async def test_an_unfit_async_embedder_is_refused_for_good(name):
    """The same through the native async method."""
    give, fault = UNFIT[name]
    stub = AsyncStub(give)
    checked = Checked(stub)
    with pytest.raises(EmbedderError, match=fault):
        await checked.aembed(["What is the capital of France?"])
    calls = stub.calls
    with pytest.raises(EmbedderError, match=fault):
        await checked.aembed(["and now?"])
    assert stub.calls == calls


def test_a_narrow_but_honest_embedder_passes():
    """Unrelated sentences at 0.8, as a real model has them, are no fault."""
    probes = narrow(PROBES)
    cosines = (probes @ probes.T)[np.triu_indices(len(PROBES), k=1)]
    assert 0.7 < cosines.min() < cosines.max() < ALIKE
    assert find_fault(probes, narrow(PROBES[-1:])) is None


@pytest.mark.parametrize("give", [UNFIT["NaN"][0], UNFIT["too few"][0], UNFIT["zero"][0]])
def test_a_later_unfit_result_fails_that_call_alone(give):
    """One strange text cannot turn matching off for everybody."""
    stub = Stub(good)
    checked = Checked(stub)
    expected = checked.embed(["a question"])
    stub.give = give
    with pytest.raises(EmbedderError):
        checked.embed(["a strange one"])
    stub.give = good
    assert np.array_equal(checked.embed(["a question"]), expected)


def test_a_later_change_of_size_is_refused():
    """The error names both sizes."""
    stub = Stub(good)
    checked = Checked(stub)
    checked.embed(["a"])
    stub.give = lambda texts, call: HashingEmbedder(64).embed(texts)
    with pytest.raises(EmbedderError, match=r"64 numbers, but of 384"):
        checked.embed(["b"])


def test_an_error_of_the_embedder_refuses_nothing_for_good():
    """A time-out at first use is not a verdict."""

    def slow_first(texts, call):
        if call == 1:
            raise TimeoutError("the endpoint is slow")
        return good(texts)

    checked = Checked(Stub(slow_first))
    with pytest.raises(TimeoutError):
        checked.embed(["a"])
    assert checked.embed(["a"]).shape == (1, 384)


def test_probes_once_however_many_threads_begin():
    """Two calls for the probes, then one a request."""
    stub = Stub(good)
    checked = Checked(stub)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: checked.embed([f"question {n}"]), range(32)))
    assert stub.calls == 2 + 32


async def test_probes_once_however_many_tasks_begin():
    """The same on an event loop."""
    stub = AsyncStub(good)
    checked = Checked(stub)
    await asyncio.gather(*(checked.aembed([f"question {n}"]) for n in range(32)))
    assert stub.calls == 2 + 32


def test_works_in_one_event_loop_after_another():
    """Nothing of the first loop is left behind."""
    checked = Checked(AsyncStub(good))
    for _ in range(2):
        assert asyncio.run(checked.aembed(["a"])).shape == (1, 384)


def test_normalises_what_comes_unnormalised():
    """A plain list of longer vectors will do."""
    checked = Checked(Stub(lambda texts, call: (good(texts) * 7).tolist()))
    found = checked.embed(["a", "b"])
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)


def test_has_the_capabilities_of_what_it_checks_and_no_others():
    """`aembed`, `embed_tokens` and `quick` are there if the embedder has them."""

    class WithTokens(Stub):
        quick = frozenset({"embed"})

        def embed_tokens(self, texts):
            return [good(text.split()) for text in texts]

    plain, asynchronous, tokens = (
        Checked(Stub(good)),
        Checked(AsyncStub(good)),
        Checked(WithTokens(good)),
    )
    assert not hasattr(plain, "aembed")
    assert hasattr(asynchronous, "aembed")
    assert not isinstance(plain, TokenEmbedder)
    assert isinstance(tokens, TokenEmbedder)
    assert tokens.embed_tokens(["two words"])[0].shape == (2, 384)
    assert (plain.quick, tokens.quick) == (frozenset(), {"embed"})
    assert all(isinstance(c, Embedder) and c.revision == "stub/1" for c in (plain, tokens))
    assert plain.fits("short")
    assert not plain.fits("long" * 100)


def test_a_degenerate_callable_is_refused_on_three_entries_and_three_lookups():
    """Vectors the same for every text: nothing is stored or looked up by meaning."""
    checked = Checked(as_embedder(constant))
    for question in ("a", "b", "c", "d", "e", "f"):
        with pytest.raises(EmbedderError, match="all alike"):
            checked.embed([question])


def constant(texts):
    return [[0.1, 0.2, 0.3] for _ in texts]
