# ruff: noqa: PLR2004  (the values of numerals are what they are)
"""Numbers, however they are written: digits, English number words, Chinese numerals.

All forms of one number become one text: `1,000`, `1000`, `one thousand` and `一千` are `"1000"`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = [
    "HAN_NUMERAL",
    "MONTHS",
    "ORDINALS",
    "WORDS",
    "clock",
    "date",
    "digits",
    "han",
    "spelled",
]

_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

WORDS = (
    {word: value for value, word in enumerate(_SMALL)}
    | {word: 10 * value for value, word in enumerate(_TENS, start=2)}
    | {"dozen": 12}
)
"""Number words below a hundred, and what they count."""

SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}

ORDINALS = {
    word: value
    for value, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        start=1,
    )
}
MONTHS = {
    name: value
    for value, names in enumerate(
        [
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ],
        start=1,
    )
    for name in names.split()
}

_HAN_DIGITS = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {
    "零": 0,
    "两": 2,
}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
HAN_NUMERAL = "[〇零一二两三四五六七八九十百千万亿]"

_LONGEST = 40
_GROUPED = re.compile(r"(?!0)\d+(?:,\d{2,3})*,\d{3}")
_DATE = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(?:([ap])\.?m)?", re.IGNORECASE)


def digits(text: str) -> str:
    """A number in digits without its separators: '1,000.0' is '1000', '3.80' stays '3.80'.

    A comma before exactly three digits at the end separates thousands, also in the Indian way
    ('1,00,000'); any other is a decimal comma ('1,5', '0,125').
    """
    sign = "-" if text[0] in "-−" else ""
    plain = text.lstrip("-−").rstrip(",")
    grouped = _GROUPED.fullmatch(plain.partition(".")[0])
    plain = plain.replace(",", "" if grouped else ".")
    if plain.count(".") > 1:
        return plain
    whole, _, fraction = plain.partition(".")
    whole = whole.lstrip("0") or "0"
    return f"{sign}{whole}.{fraction}" if fraction.strip("0") else sign + whole


def date(text: str) -> tuple[str, ...]:
    """A date written year first, as year, month and day: '2023-04-18' is ('2023', 'm4', '18')."""
    year, month, day = _DATE.fullmatch(text).groups()  # type: ignore[union-attr]
    return year, f"m{int(month)}", str(int(day))


def clock(text: str) -> str:
    """A time of day on the 24-hour clock: '4:30 pm' is 't16:30'."""
    hour, minute, second, half = _CLOCK.fullmatch(text.strip()).groups()  # type: ignore[union-attr]
    value = int(hour)
    if half:
        value = value % 12 + (12 if half in "pP" else 0)
    return f"t{value:02}:{minute or '00'}" + (f":{second}" if second not in (None, "00") else "")


def spelled(words: Sequence[str], start: int) -> tuple[int, int]:
    """The number that number words spell from `start` on, and where it ends.

    `words[start]` must be in `WORDS`; 'two hundred and fifty' and 'twenty five' are one number,
    'five six' are two.
    """
    total, part, at, last = 0, 0, start, 1_000
    end = min(len(words), start + _LONGEST)
    while at < end:
        word = words[at]
        if word in SCALES:
            scale = SCALES[word]
            part = part * scale if part else scale
            if scale > 100:
                total, part = total + part, 0
            last = scale
        elif word in WORDS:
            value = WORDS[word]
            if at > start and (value >= last or (last < 20) or (last < 100 and value > 9)):
                break
            part, last = part + value, value or 1
        elif not (word == "and" and at + 1 < end and last >= 100 and words[at + 1] in WORDS):
            break
        at += 1
    return total + part, at


def han(text: str) -> str:
    """A Chinese numeral in digits: 三百五十 is '350', 二〇二三 is '2023'."""
    if len(text) > _LONGEST:
        return text
    if not any(sign in _HAN_SCALES for sign in text):
        return "".join(str(_HAN_DIGITS[sign]) for sign in text).lstrip("0") or "0"
    total, section, digit = 0, 0, 0
    for sign in text:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
            continue
        scale = _HAN_SCALES[sign]
        if scale >= 10_000:
            total = (total + section + digit or 1) * scale
            section = 0
        else:
            section += (digit or 1) * scale
        digit = 0
    return str(total + section + digit)
