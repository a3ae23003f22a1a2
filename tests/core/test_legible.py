"""Any two texts stay different when they are made legible, and nothing in them is unseen."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stemma.legible import called, cells, legible, short

TEXTS = st.text(st.characters() | st.sampled_from('\\ :\n\x00\ud800\u202e"nexuUN0'), max_size=12)
KEYS = TEXTS | st.tuples(TEXTS | st.none(), TEXTS) | st.tuples(TEXTS, TEXTS | st.none(), TEXTS)


@given(TEXTS, TEXTS)
@example("", r"\e")
@example("a  b", "a b")
@example("a b", r"a\x20b")
@example("\n", r"\n")
def test_different_texts_stay_different(one, other):
    assert (legible(one) == legible(other)) == (one == other)


@given(KEYS, KEYS)
@example("pool:x", ("pool", "x"))
@example(("a", "b:c"), ("a:b", "c"))
@example(("a", None), ("a", r"\N"))
@example(("source", "a", "b"), ("source", "a:b"))
def test_different_keys_stay_different(one, other):
    assert (called(one) == called(other)) == (one == other)


@given(TEXTS)
@example(" a   b ")
@example("\u3164")
def test_what_comes_of_it_prints_and_can_be_encoded(text):
    shown = legible(text)
    assert shown.isprintable()
    assert shown == shown.strip() != ""
    assert "  " not in shown
    assert shown.encode()


@pytest.mark.parametrize(
    "name", ["acme", "Müller & Söhne", "客户", "עברית", 'a "b"', "it's <this>"]
)
def test_an_ordinary_name_stays_as_it_is(name):
    assert legible(name) == called(name) == name


def test_what_is_not_seen_is_told():
    assert legible("a\nb\x00\u202e\\ ") == r"a\nb\x00\u202e\\\x20"
    assert called(("source", None, "https://x")) == r"source:\N:https\://x"
    assert legible("\u3164") == r"\u3164"


@given(TEXTS.map(legible), st.integers(2, 12))
def test_a_short_text_fits(text, most):
    cut = short(text, most)
    assert cells(cut) <= most
    assert cut == text or "…" in cut


def test_wide_letters_take_two_columns():
    assert (cells("客户"), cells("ab"), cells("e\u0301")) == (4, 2, 1)
    assert short("客户客户客户", 6) == "客户…"
    assert short("source:acme:terms.md", 11) == "source:….md"
