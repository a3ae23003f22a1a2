"""Lists come back as they were; damaged ones do not come back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma import CodecError, JsonCodec, Ranking, RankingCodec
from stemma.ranking import narrowed

CODEC = RankingCodec(JsonCodec())


def ranking(n=5, k=2, width=4, **rest) -> Ranking:
    rng = np.random.default_rng(n)
    vectors = rng.normal(size=(n, width))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    query = vectors[0] if n else np.ones(width, dtype=np.float32) / 2
    similarities = vectors @ query
    order = np.argsort(-similarities)
    told = {
        "chunks": tuple(f"c{one}" for one in range(n)),
        "contents": tuple(f"h{one}" for one in range(n)),
        "documents": tuple({"text": f"t{one}"} for one in range(n)),
        "k": k,
        "query": query,
        "vectors": vectors[order],
        "radius": float(similarities[order[k - 1]]) if n >= k else -math.inf,
        "floor": float(similarities[order[-1]]) if n else -math.inf,
    }
    return Ranking(**{**told, **rest})


@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("vectors", [True, False])
def test_a_list_comes_back(n, written, vectors):
    given_ = ranking(n, written=written, **({} if vectors else {"vectors": None}))
    back = CODEC.decode(CODEC.encode(given_).payload)
    for name in ("chunks", "contents", "k", "radius", "floor", "kind", "written"):
        assert getattr(back, name) == getattr(given_, name)
    assert (back.query == given_.query).all()
    assert back.documents is None or list(back.documents) == list(given_.documents)
    assert (back.documents is None) == (not written)
    assert (back.vectors is None) == (not vectors)
    assert not vectors or (back.vectors == given_.vectors).all()


def test_two_lists_are_one_value_if_their_first_k_are():
    value = CODEC.encode(ranking()).value
    assert CODEC.encode(ranking(n=5, floor=0.9, kind="proven")).value == value
    documents = list(ranking().documents)
    behind = [*documents[:2], {"text": "another"}, *documents[3:]]
    assert CODEC.encode(ranking(documents=tuple(behind))).value == value
    before = [{"text": "another"}, *documents[1:]]
    assert CODEC.encode(ranking(documents=tuple(before))).value != value


@given(n=st.integers(2, 12), k=st.integers(1, 12), nearest=st.floats(-1, 1))
def test_a_list_that_is_narrowed_claims_no_more_than_is_true(n, k, nearest):
    whole = ranking(n, k=min(k, n))
    encoded = CODEC.encode(whole)
    less = CODEC.decode(narrowed(encoded.payload, nearest))
    assert less.k <= len(less) <= n
    assert less.chunks == whole.chunks[: len(less)]
    assert less.floor == max(whole.floor, nearest)
    assert all(one >= nearest for one in (less.vectors @ less.query)[less.k :])
    assert list(less.documents) == list(whole.documents[: len(less)])
    assert CODEC.encode(less).value == encoded.value


def test_a_list_without_vectors_is_not_narrowed():
    with pytest.raises(CodecError):
        narrowed(CODEC.encode(ranking(vectors=None)).payload, 0.5)


@given(st.data())
def test_damaged_bytes_are_an_error_or_a_list(data):
    payload = bytearray(CODEC.encode(ranking()).payload)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(payload) - 1))
        payload[place] = data.draw(st.integers(0, 255))
    cut = bytes(payload[: data.draw(st.integers(0, len(payload)))])
    try:
        found = CODEC.decode(cut)
    except CodecError:
        return
    assert len(found.chunks) == len(found.contents)
    assert found.vectors is None or len(found.vectors) == len(found)


@pytest.mark.parametrize("value", [None, [], "text", {"chunks": []}])
def test_what_is_no_list_is_refused(value):
    with pytest.raises(CodecError):
        CODEC.encode(value)
