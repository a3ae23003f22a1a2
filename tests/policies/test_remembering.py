"""What is remembered spares a reading to the tenant who asked before, and to nobody else."""

import pytest

from stemma.policies.remembering import LONGEST, asked_by, asker, remembered


@pytest.fixture
def read():
    """Lengths of texts, and how often each was read."""
    texts = []

    def length(text):
        texts.append(text)
        return len(text)

    length.texts = texts
    return length


def test_a_text_is_read_once_for_each_tenant(read):
    known = remembered(8)(read)
    for tenant in ("acme", "acme", "beta", "beta", "acme"):
        with asked_by(tenant):
            assert known("one") == 3
    assert known("one") == 3
    assert read.texts == ["one"] * 3  # acme, beta, and nobody in particular


def test_the_least_recently_used_go_and_long_texts_are_not_kept(read):
    known = remembered(2)(read)
    for text in ("a", "b", "a", "c", "a", "b"):
        known(text)
    assert read.texts == ["a", "b", "c", "b"]
    for _ in range(2):
        known("x" * (LONGEST + 1))
    assert len(read.texts) == 6


def test_who_asks_is_said_for_as_long_as_they_ask_also_if_it_goes_wrong():
    with asked_by("acme"):
        with asked_by("beta"):
            assert asker() == "beta"
        with pytest.raises(ZeroDivisionError), asked_by("beta"):
            1 / 0  # noqa: B018 - what goes wrong
        assert asker() == "acme"
    assert asker() == ""
