"""Where a sentence ends."""

import pytest

from stemma.grounding.sentences import sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It costs 3.50 now. Use java.util.", ["It costs 3.50 now.", "Use java.util."]),
        ("Ask Dr. Ada B. Lee. She knows.", ["Ask Dr. Ada B. Lee.", "She knows."]),
        ("1. Open it.\n2. Close it.", ["1. Open it.", "2. Close it."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("保修期为24个月。礼品卡不能退款！", ["保修期为24个月。", "礼品卡不能退款！"]),
        ("no mark", ["no mark"]),
        (" \n\n ", []),
    ],
)
def test_a_text_is_cut_into_its_sentences(text, found):
    assert sentences(text) == found
