"""Texts cut into tokens: words, numbers, dates, literals, marks, runs of Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from stemma.policies import numerals
from stemma.policies.chinese import HAN

__all__ = ["HAN_TOKEN", "Script", "Token", "script", "tokens"]

Script = Literal["latin", "han", "other"]

_HAN_CHARS = "\u3400-\u4dbf\u4e00-\u9fff\u3007"
_TOKEN = re.compile(
    rf"""
    (?P<word> [^\W\d_{_HAN_CHARS}]+ (?:(?:['_.@\\/:-]|\+\+|\#|\d|[^\W\d_{_HAN_CHARS}])*
              (?:[^\W{_HAN_CHARS}]|\+\+|\#|\(\)))? )
  | (?P<quote> `[^`\n]{{1,300}}` | "[^"\n]{{1,300}}" | “[^”\n]{{1,300}}” | 「[^」\n]{{1,300}}」
             | 《[^》\n]{{1,300}}》 | (?<!\w)'[^'\n]{{1,300}}'(?!\w) )
  | (?P<path> [~.]{{0,2}}/[\w.-]+(?:/[\w.-]+)* | (?<![\w-])--?[A-Za-z][\w-]* | _\w+ )
  | (?P<date> \d{{4}}[-/.年]\d{{1,2}}[-/.月]\d{{1,2}}(?![\d.]) )
  | (?P<clock> \d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:\s?[ap]\.?m\b)?(?![\d:]) | \d{{1,2}}\s?[ap]\.?m\b )
  | (?P<sum> \d+(?:\s?[+*/^×÷=]\s?\d+)+ | \d+(?:\s-\s\d+)+ )
  | (?P<number> (?:(?<![\w)])[-−])?\d[\d,]*(?:\.\d+)* )
  | (?P<han> [{_HAN_CHARS}]+ )
  | (?P<mark> [$€£¥₹%°?!.,;:] )
    """,
    re.VERBOSE | re.IGNORECASE,
)
HAN_TOKEN = re.compile(
    f"(?P<numeral>{numerals.HAN_NUMERAL}+)(?P<measure>[个天年月日号周次元块件本台岁点米人名种条倍折章]|小时|分钟)?"
    "|(?P<choice>(?P<of>.)不(?P=of))|(?P<known>"
    + "|".join(sorted(map(re.escape, HAN), key=len, reverse=True))
    + ")|(?P<sign>.)"
)


class Token(NamedTuple):
    """One word, number or mark: its kind, its text and the text case-folded."""

    kind: str
    raw: str
    low: str


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text that was normalised to NFKC."""
    for match in _TOKEN.finditer(text):
        kind, raw = match.lastgroup or "", match.group()
        if kind != "word" or raw.isalpha():
            yield Token(kind, raw, raw.casefold())
        else:
            yield from _odd_word(raw)


_IDENTIFIER = re.compile(
    r".*(?:\(\)|_|@|://|[A-Za-z]\.[A-Za-z]\w+|/.*/|\\|[a-z][A-Z])|[A-Za-z]{1,3}\+\+|[A-Za-z]\#",
    re.DOTALL,
)
_CONTRACTED = re.compile(r"'(?:s|m|d|re|ve|ll)$")
_NON = re.compile(r"\b(non)-(?=[a-z])", re.IGNORECASE)
_PARTS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:\.\d+)*")


def _odd_word(raw: str) -> Iterator[Token]:
    """A word with something in it that is no letter: an identifier, or several words."""
    low = raw.casefold()
    if _IDENTIFIER.match(raw):
        yield Token("path", raw, low)
        return
    for part in _PARTS.findall(_NON.sub(r"\1", raw)):
        if part[0].isdecimal():
            yield Token("number", part, part)
        else:
            yield Token("word", part, _CONTRACTED.sub("", part.casefold()))


_HAN = re.compile(f"[{_HAN_CHARS}]")
_NOT_LATIN = re.compile("(?![\u00aa-\u024f])[^\\W\\d_a-zA-Z]")


def script(text: str) -> Script:
    """`han` where a Chinese character occurs, `other` where another letter that is not Latin."""
    if text.isascii():
        return "latin"
    return "han" if _HAN.search(text) else "other" if _NOT_LATIN.search(text) else "latin"
