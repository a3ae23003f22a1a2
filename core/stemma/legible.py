r"""Names for people, pictures and files: any text, injectively, in characters that can be seen.

A character that does not print (controls, NUL, lone surrogates, marks of direction, blanks other
than the space) is written as Python writes it: `\n`, `\x00`, `\u202e`. So is a space where it would
be overlooked or lost: at either end, and after another space. A backslash is doubled, and an empty
text is `\e`. Any other text is written as it is. Two different texts never become the same.

What comes of it holds no character that XML forbids and no line break, and can be encoded as UTF-8.
"""

from __future__ import annotations

from unicodedata import combining, east_asian_width

__all__ = ["called", "cells", "counted", "legible", "short"]

_UNSEEN = frozenset("\\\u115f\u1160\u2800\u3164\uffa0")
"""What prints, and is written otherwise: the escape itself, and letters that are blank."""
_EMPTY, _NOBODY = r"\e", r"\N"


def legible(text: str, *, also: str = "") -> str:
    """The text, escaped where it could not be seen.

    Args:
        text: Any text.
        also: Punctuation that gets a backslash before it, as if it could not be seen either.
    """
    if not text:
        return _EMPTY
    last = len(text) - 1
    return "".join(
        r"\x20"
        if letter == " " and (at in {0, last} or text[at - 1] == " ")
        else _written(letter, also)
        for at, letter in enumerate(text)
    )


def called(key: str | tuple[str | None, ...]) -> str:
    r"""A node's key as one text: `acme`, `pool:support`, `source:acme:terms.md`.

    A colon inside of a name is written `\:`, and a part that is `None`, `\N`; so a tenant that is
    called `pool:support` is `pool\:support`. Two different keys never become the same.
    """
    parts = (key,) if isinstance(key, str) else key
    return ":".join(_NOBODY if part is None else legible(part, also=":") for part in parts)


def short(text: str, most: int) -> str:
    """A legible text in at most so many columns of a terminal: `…` stands for its middle."""
    if cells(text) <= most:
        return text
    begin, end = "", ""
    for letter in text:
        if cells(begin + letter) > most * 2 // 3:
            break
        begin += letter
    for letter in reversed(text):
        if cells(begin + letter + end) >= most:
            break
        end = letter + end
    return f"{begin}…{end}"


def counted(many: int, one: str, more: str) -> str:
    """A number with its noun: `1 entry`, `2 entries`."""
    return f"{many} {one if many == 1 else more}"


def cells(text: str) -> int:
    """How many columns of a terminal a legible text takes: wide letters two, marks on them none."""
    wide = sum(east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(combining(letter) != 0 for letter in text)


def _written(letter: str, also: str) -> str:
    if letter in also:
        return f"\\{letter}"
    if letter.isprintable() and letter not in _UNSEEN:
        return letter
    return letter.encode("unicode_escape").decode()
