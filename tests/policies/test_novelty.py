"""Three bands: known, near, new. Pure."""

import numpy as np
import pytest

from stemma import Novelty, UsageError
from stemma.policies.novelty import ADMITTED, INTENT, PHRASES, TOKENS, alike, traits
from stemma.testing.builders import vector


@pytest.mark.parametrize(
    ("similarity", "stored", "admitted", "longer"),
    [
        (1.0, 10_000, True, 2.0),
        (0.85, 10_000, True, 2.0),
        (0.849, 9_999, True, 1.0),
        (0.849, 10_000, False, 1.0),
        (0.6, 0, True, 1.0),
        (0.599, 0, False, 1.0),
        (0.0, 0, False, 1.0),
    ],
)
def test_the_bands_are_inclusive(similarity, stored, admitted, longer):
    found = Novelty().admit(similarity, stored)
    assert (found.admitted, found.longer, found.why == "") == (admitted, longer, admitted)
    assert Novelty().wants_room(similarity) == (0.6 <= similarity < 0.85)


def test_bounds_can_be_moved():
    assert Novelty(near=0.0, room=1).admit(0.0, 0) == ADMITTED
    assert not Novelty(near=0.0, room=0).admit(0.0, 0).admitted
    assert Novelty(known=0.0, near=0.0, longer=1).admit(0.0, 0).longer == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"known": 1.1}, {"near": -0.1}, {"known": True}, {"near": "0.6"}, {"known": 0.5},
        {"room": -1}, {"room": 1.5}, {"room": True}, {"longer": 0.5}, {"longer": float("nan")},
    ],
)  # fmt: skip
def test_a_number_out_of_its_range_is_refused(wrong):
    with pytest.raises(UsageError):
        Novelty(**wrong)


def test_tokens_phrases_and_intent_weigh_as_stated():
    assert pytest.approx(1.0) == TOKENS + PHRASES + INTENT
    one = traits("red green blue", vector(1, 0))
    same = traits("Red, green — blue!", vector(1, 0))
    assert alike(one, same) == pytest.approx(1.0)
    turned = traits("blue green red", vector(0, 1))
    assert alike(one, turned) == pytest.approx(TOKENS)
    meant = traits("other words altogether", vector(1, 0))
    assert alike(one, meant) == pytest.approx(INTENT)
    half = traits("red green grey", vector(0, 1))
    assert alike(one, half) == pytest.approx(TOKENS * 2 / 3 + PHRASES / 2)


def test_without_embeddings_the_words_count_alone():
    one, turned = traits("red green blue", None), traits("blue green red", vector(1, 0))
    assert alike(one, traits("red GREEN blue", None)) == pytest.approx(1.0)
    assert alike(one, turned) == pytest.approx(TOKENS / (TOKENS + PHRASES))
    longer = traits("blue green red", vector(1, 0, 0))
    assert alike(turned, longer) == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", "?!", "你好吗", "1,000 €", "x"])
def test_every_text_is_like_itself_and_stays_within_bounds(text):
    one = traits(text, vector(float("nan"), 1))
    assert alike(one, one) == 1.0
    for other in ("", "!", "你好", "red"):
        assert 0.0 <= alike(one, traits(other, vector(1, 0))) <= 1.0
    assert 0.0 < alike(traits("你好吗", None), traits("你好呀", None)) < 1.0
    assert np.isfinite(alike(one, traits("z", vector(1, 0))))
