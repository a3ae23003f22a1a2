"""What in a text must agree, whatever its wording: numbers, units, names, negation, order.

`symbols` reads a text once, in two passes: into tokens, then into a `Symbols`. It knows English
and Chinese; in other languages numbers, literals and the words themselves still count.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from stemma.policies import languages, numerals
from stemma.policies.chinese import HAN
from stemma.policies.questions import Kind, asked_for
from stemma.policies.remembering import remembered
from stemma.policies.tokens import HAN_TOKEN, Script, Token, script, tokens
from stemma.policies.vocabulary import (
    DETERMINERS,
    FILLERS,
    NEGATIONS,
    PHRASES,
    ROLES,
    STOP,
    UNITS,
    UNITS_AFTER_NUMBER,
    canonical,
)

__all__ = ["STEM", "Symbols", "symbols"]

STEM = 5
"""Words that share so many first letters are taken for forms of one."""


_SHORT_NAMES = {"US": "usa", "IT": "informatics"}
_LINKS = frozenset({"and", "or", "vs", "versus"})
_MARKS = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "%": "percent", "°": "degree"}
_SENTENCE = frozenset(".?!;:")
_MAX_DIGITS = 15
_MANY = 4
_MOSTLY = 0.8


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbols:
    """What a text says that another text must say too.

    Args:
        numbers: Numbers, dates, times and sums, each in one form (see `numerals`).
        loose_numbers: Numbers that may be mere words: 'one', 'first', a lone 一.
        quantities: Numbers with the unit behind them.
        units: Units and currencies.
        negations: How many words negate.
        names: Canonical words written like a name: capitalised inside a sentence, or an acronym.
        literals: Code, quoted strings, identifiers, paths, addresses, as they are written.
        question: What kind of thing is asked for.
        words: The content words, canonical, in order; numbers and units among them as `#5`.
        content: Those of them that are no numbers or units.
        stems: The first letters, `STEM` of them, of those that have more.
        roles: Function words with each word they govern, such as `("from", "pari")`.
        function: The function words, for those that have opposites (on, off).
        script: `latin`; `han` where a Chinese character occurs; `other` for other letters.
        guarded: Whether the guards know its language.
        text: The normalised text, in which the other text's literals are looked for.
        folded: The same, case-folded: a quoted string may change its case, code may not.
    """

    numbers: frozenset[str] = frozenset()
    loose_numbers: frozenset[str] = frozenset()
    quantities: frozenset[tuple[str, str]] = frozenset()
    units: frozenset[str] = frozenset()
    negations: int = 0
    names: frozenset[str] = field(default=frozenset(), repr=False)
    literals: frozenset[str] = field(default=frozenset(), repr=False)
    question: Kind = "what"
    words: tuple[str, ...] = field(default=(), repr=False)
    content: frozenset[str] = field(default=frozenset(), repr=False)
    stems: frozenset[str] = field(default=frozenset(), repr=False)
    roles: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    function: frozenset[str] = field(default=frozenset(), repr=False)
    script: Script = "latin"
    guarded: bool = True
    text: str = field(default="", repr=False)
    folded: str = field(default="", repr=False)


@remembered(4_096)
def symbols(text: str) -> Symbols:
    """The symbols of a text. Short texts are remembered, so asking again costs nothing."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    reader = _Reader(text)
    reader.read()
    return reader.done()


class _Reader:
    """Goes over the tokens of one text and collects its symbols."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))
        self.lows = [token.low for token in self.tokens]
        self.numbers: set[str] = set()
        self.loose: set[str] = set()
        self.quantities: set[tuple[str, str]] = set()
        self.units: set[str] = set()
        self.names: set[str] = set()
        self.literals: set[str] = set()
        self.words: list[str] = []
        self.roles: set[tuple[str, str]] = set()
        self.function: set[str] = set()
        self.negations = 0
        self.role = ""
        self.starts = True
        self.switch = -1
        self.shouted = _shouted(self.tokens)

    def read(self) -> None:
        """Read every token; each reader returns where to go on."""
        self.question, skipped = asked_for(self.lows, self.text)
        at, end = 0, len(self.tokens)
        readers = {
            "word": self._word,
            "han": self._han,
            "number": self._number,
            "mark": self._mark,
            "quote": self._literal,
            "path": self._literal,
            "date": self._moment,
            "clock": self._moment,
            "sum": self._moment,
        }
        while at < end:
            at = at + 1 if at in skipped else readers[self.tokens[at].kind](at)

    def done(self) -> Symbols:
        """What was collected."""
        drop = _IMPLIED.get(self.question)
        words = _commuted(word for word in self.words if word != drop)
        content = frozenset(word for word in words if word[0] != "#")
        return Symbols(
            numbers=frozenset(self.numbers),
            loose_numbers=frozenset(self.loose),
            quantities=frozenset(self.quantities),
            units=frozenset(self.units),
            negations=self.negations,
            names=frozenset(self.names),
            literals=frozenset(self.literals),
            question=self.question,
            words=words,
            content=content,
            stems=frozenset(word[:STEM] for word in content if len(word) > STEM),
            roles=frozenset(self.roles),
            function=frozenset(self.function),
            script=script(self.text),
            guarded=languages.known(
                self.text, (token.low for token in self.tokens if token.kind == "word")
            ),
            text=self.text,
            folded=self.text.casefold(),
        )

    def _add(self, word: str) -> None:
        self.words.append(word)
        if self.role:
            self.roles.add((self.role, word))

    def _quantity(self, number: str, at: int, *, loose: bool = False) -> int:
        """A number that ends before `at`: with its unit, if one follows."""
        (self.loose if loose else self.numbers).add(number)
        if not loose:
            self._add("#" + number)
        self.starts = False
        if at < len(self.lows) and self.lows[at] in {"°", "degrees", "degree"}:
            at += at + 1 < len(self.lows) and self.lows[at + 1] in {
                "c",
                "f",
                "celsius",
                "fahrenheit",
            }
        low = self.lows[at] if at < len(self.lows) else ""
        unit = UNITS_AFTER_NUMBER.get(low) or UNITS.get(low) or _MARKS.get(low)
        if unit is None:
            return at
        self.quantities.add((number, unit))
        self._unit(unit)
        return at + 1

    def _unit(self, unit: str) -> None:
        self.units.add(unit)
        self._add("#" + unit)

    def _number(self, at: int) -> int:
        number = numerals.digits(self.tokens[at].raw)
        follow = at + 1
        if follow < len(self.lows):
            low = self.lows[follow]
            if low in {"st", "nd", "rd", "th"}:
                follow += 1
            elif low in numerals.SCALES or low == "k":
                scale = numerals.SCALES.get(low, 1_000)
                number = numerals.digits(f"{float(number) * scale:f}") if _plain(number) else number
                follow += 1
        return self._quantity(number, follow)

    def _moment(self, at: int) -> int:
        token = self.tokens[at]
        if token.kind == "date":
            found: tuple[str, ...] = numerals.date(token.raw)
        elif token.kind == "clock":
            found = (numerals.clock(token.raw),)
        else:
            found = ("".join(token.raw.split()),)
        self.numbers.update(found)
        self.starts = False
        return at + 1

    def _literal(self, at: int) -> int:
        token = self.tokens[at]
        self.starts = False
        if token.kind == "quote":
            raw = token.raw if token.raw[0] == "`" else token.low
            inner = " ".join(raw[1:-1].split()).strip(" .,!?")
            if inner:
                self.literals.add(inner)
                for word in inner.split() if raw is token.low else (inner,):
                    self._add(canonical(word))
            return at + 1
        literal = token.raw.removesuffix("()").rstrip(".:/-")
        if literal:
            self.literals.add(literal)
            self._add(literal)
        return at + 1

    def _mark(self, at: int) -> int:
        raw = self.tokens[at].raw
        if raw in _MARKS:
            following = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
            if raw == "°" and following is not None and following.low in {"c", "f"}:
                self._unit(UNITS_AFTER_NUMBER[following.low])
                return at + 2
            if raw != "°" and following is not None and following.kind == "number":
                self.quantities.add((numerals.digits(following.raw), _MARKS[raw]))
                self.units.add(_MARKS[raw])
                after = self._number(at + 1)
                self._add("#" + _MARKS[raw])
                return after
            if raw != "°":
                self._unit(_MARKS[raw])
            return at + 1
        self.starts = self.starts or raw in _SENTENCE
        self.role = ""
        return at + 1

    def _word(self, at: int) -> int:
        token = self.tokens[at]
        low = token.low if self.shouted else _SHORT_NAMES.get(token.raw, token.low)
        starts, self.starts = self.starts, False
        if low in _SILENT:
            self.function.add(_SILENT[low])
            if low not in DETERMINERS:
                self.role = ""
            return at + 1
        if low in PHRASES:
            for rest, replacement in PHRASES[low]:
                end = at + 1 + len(rest)
                if tuple(self.lows[at + 1 : end]) == rest:
                    for word in replacement:
                        self._plain_word(word)
                    return end
        if low in numerals.WORDS or low in numerals.ORDINALS or low in numerals.MONTHS:
            after = self._counting(at, low)
            if after > at:
                return after
        if low in NEGATIONS or low.endswith("n't"):
            self.negations += 1
            self.role = "not"
            return at + 1
        self._plain_word(low, named=self._named(token, starts=starts))
        return at + 1

    def _plain_word(self, low: str, *, named: bool = False) -> None:
        if low in STOP or low in ROLES:
            self._function(low)
        elif low in UNITS:
            self._unit(UNITS[low])
        elif self.words or low not in FILLERS:
            self._content(low, named=named)

    def _function(self, low: str) -> None:
        if low in {"on", "off"} and self.switch >= 0:
            self.words[self.switch] = canonical("enable" if low == "on" else "disable")
            self.switch = -1
            return
        self.function.add(canonical(low))
        if low in ROLES:
            self.role = low
        elif low in _LINKS:
            self.words.append("&")
        elif low not in DETERMINERS:
            self.role = ""

    def _content(self, low: str, *, named: bool) -> None:
        word = canonical(low)
        if named:
            self.names.add(word)
        if word in {"turn", "switch"}:
            self.switch = len(self.words)
        self._add(word)

    def _named(self, token: Token, *, starts: bool) -> bool:
        raw = token.raw
        if raw.islower() or self.shouted:
            return False
        return not (raw[0].islower() if not starts else raw[1:].islower() or len(raw) == 1)

    def _counting(self, at: int, low: str) -> int:
        """A number word, ordinal or month at `at`; gives `at` back where it is none of them."""
        if low in numerals.WORDS:
            value, end = numerals.spelled(self.lows, at)
            return self._quantity(str(value), end, loose=low == "one" and end == at + 1)
        if low in numerals.ORDINALS:
            loose = low in {"first", "second"}
            if loose:
                self._content(low, named=False)
            return self._quantity(str(numerals.ORDINALS[low]), at + 1, loose=loose)
        near = self.lows[max(at - 1, 0) : at] + self.lows[at + 1 : at + 2]
        dated = any(one[:1].isdigit() or one in _BEFORE_MONTH for one in near)
        if not dated and low in {"may", "march", "mar", "jan", "dec", "sep"}:
            return at
        self.numbers.add(f"m{numerals.MONTHS[low]}")
        return at + 1

    def _han(self, at: int) -> int:
        self.starts = False
        for match in HAN_TOKEN.finditer(self.tokens[at].raw):
            kind, raw = match.lastgroup, match.group()
            if kind in {"numeral", "measure"}:
                self._han_number(match["numeral"], match["measure"])
            elif kind == "known":
                self._han_word(*HAN[raw])
            elif kind == "sign":
                self._add(raw)
        self.role = ""
        return at + 1

    def _han_word(self, kind: str, word: str) -> None:
        if kind == "negation":
            self.negations += 1
        elif kind == "role":
            self.role = word
        elif kind == "stop":
            self.role = ""
        else:
            self._add(word)

    def _han_number(self, numeral: str, measure: str | None) -> None:
        value = numerals.han(numeral)
        if len(numeral) == 1 and measure is None:
            self.loose.add(value)
            return
        self.numbers.add(value)
        self._add("#" + value)
        for sign in measure or "":
            self._add(sign)


_SILENT = {
    word: canonical(word)
    for word in STOP - ROLES - NEGATIONS - PHRASES.keys() - numerals.WORDS.keys() - _LINKS
    if word not in numerals.MONTHS and not word.endswith("n't") and word not in {"on", "off"}
}
"""Function words that do nothing but stand there, with their canonical form."""

_IMPLIED = {"much": canonical("cost"), "age": canonical("old")}
_BEFORE_MONTH = frozenset(
    ["in", "of", "since", "until", "till", "by", "next", "last", "late", "early", "mid", "from"]
)


def _plain(number: str) -> bool:
    return number.count(".") <= 1 and len(number) <= _MAX_DIGITS


def _shouted(tokens: list[Token]) -> bool:
    """Whether capitals say nothing here: most of four or more words have one."""
    words = [token.raw for token in tokens if token.kind == "word"]
    return len(words) >= _MANY and sum(not word.islower() for word in words) > _MOSTLY * len(words)


def _commuted(words: Iterator[str]) -> tuple[str, ...]:
    """The words with the two sides of each 'and' in one order, and without the 'and'."""
    out: list[str] = []
    pending = False
    for word in words:
        if word == "&":
            pending = bool(out)
        elif pending and word < out[-1]:
            out.insert(len(out) - 1, word)
            pending = False
        else:
            out.append(word)
            pending = False
    return tuple(out)
