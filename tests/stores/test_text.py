"""Texts are written injectively, and read back as they were."""

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.stores.text import SEPARATOR, Damaged, escape, unescape
from stemma.testing.builders import HOSTILE

TRICKY = st.text(alphabet=st.sampled_from("ab0\x00\x1b\x1f\ud800\udfff1dfce🙂"), max_size=12)
ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)


@given(TRICKY | ANY)
def test_a_text_comes_back(text):
    """Whatever it holds, and nothing that a database cannot hold is left in it."""
    written = escape(text)
    assert unescape(written) == text
    assert "\x00" not in written
    assert SEPARATOR not in written
    written.encode("utf-8")


@given(TRICKY, TRICKY)
def test_different_texts_stay_different(one, other):
    """No two texts are written alike."""
    assert (escape(one) == escape(other)) == (one == other)


@pytest.mark.parametrize("text", ["", "plain", "ünïcödé", "🙂"])
def test_common_texts_are_written_as_they_are(text):
    """People can read the table."""
    assert escape(text) == text


@given(TRICKY | ANY)
def test_sqlite_and_its_json_keep_what_is_written(text):
    """A bound text and an item of a JSON array are the same text to SQLite."""
    connection = sqlite3.connect(":memory:")
    statement = "SELECT value, value = ?1 FROM json_each(?2)"
    row = connection.execute(statement, (escape(text), json.dumps([escape(text)]))).fetchone()
    connection.close()
    assert row == (escape(text), 1)


def test_hostile_texts_are_all_different_when_written():
    """The corpus is of use: nothing in it stands for something else."""
    assert len({escape(text) for text in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("planted", [None, b"bytes", 1, 1.5])
def test_what_is_no_text_is_damage(planted):
    """A cell of another type was not written by us."""
    with pytest.raises(Damaged):
        unescape(planted)
