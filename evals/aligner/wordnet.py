"""WordNet's words, as far as one can be put for another: synonyms, antonyms, words of one kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Word", "WordNet"]

_PARTS = {"noun": "n", "verb": "v", "adj": "a"}
_TYPES = {"1": "n", "2": "v", "3": "a", "5": "a"}
_SURE = 0.6
"""The share of a word's counted uses that its first sense must have, and its part of speech."""

_USED = 2
"""Words counted less often are not put for another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """What can stand in a word's place.

    Args:
        same: Words that mean the same.
        opposite: Its antonyms.
        alike: Other words of the same kind: 'bus' and 'tram'.
        part: `n`, `v` or `a`.
    """

    same: Sequence[str]
    opposite: Sequence[str]
    alike: Sequence[str]
    part: str


@dataclass(slots=True)
class _Synset:
    words: list[str]
    antonyms: list[tuple[int, str]] = field(default_factory=list)
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)


class WordNet:
    """The words whose first sense is by far the most frequent.

    Args:
        folder: Where `data.noun`, `index.noun`, `cntlist.rev` and the like are (WordNet 3.0).
    """

    def __init__(self, folder: Path) -> None:
        self._synsets: dict[str, _Synset] = {}
        self._senses: dict[tuple[str, str], list[str]] = {}
        self._used: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for name, part in _PARTS.items():
            for fields in _lines(folder / f"data.{name}"):
                self._synsets[part + fields[0]] = _synset(fields)
            for fields in _lines(folder / f"index.{name}"):
                number = int(fields[2])
                self._senses[fields[0], part] = [part + one for one in fields[-number:]]
        for fields in _lines(folder / "cntlist.rev"):
            word, _, rest = fields[0].partition("%")
            if rest[0] in _TYPES:
                self._used[word, _TYPES[rest[0]]][int(fields[1])] += int(fields[2])

    def word(self, text: str) -> Word | None:
        """What can stand for a lower-case word; `None` where its sense is not sure."""
        counts = {part: self._used[text, part].total() for part in _PARTS.values()}
        part = max(counts, key=lambda one: counts[one])
        if counts[part] < _SURE * sum(counts.values()) or not self._sure(text, part):
            return None
        first = self._senses[text, part][0]
        synset = self._synsets[first]
        same = [
            one
            for one in synset.words
            if one != text and self._senses[one.lower(), part][0] == first
        ]
        opposite = {
            self._synsets[key].words[0 if at == 0 else at - 1] for at, key in synset.antonyms
        }
        kinds = [self._synsets[key] for key in synset.above]
        alike = {
            self._synsets[key].words[0] for kind in kinds for key in kind.below if key != first
        }
        usual = sorted(one for one in alike if self._used[one, part].total() >= _USED)
        known = {text, *synset.words, *opposite}
        return Word(
            same=same,
            opposite=sorted(opposite),
            alike=[one for one in usual if one not in known],
            part=part,
        )

    def usual(self, part: str, least: int = 10) -> list[str]:
        """The words of a part of speech that were counted at least so often."""
        return sorted(
            word
            for (word, of), counts in self._used.items()
            if of == part and counts.total() >= least and word.isalpha()
        )

    def _sure(self, text: str, part: str) -> bool:
        counts = self._used[text, part]
        return (
            (text, part) in self._senses
            and counts.total() >= _USED
            and (counts[1] >= _SURE * counts.total())
        )


def _synset(fields: Sequence[str]) -> _Synset:
    number = int(fields[3], 16)
    words = [fields[4 + 2 * at].partition("(")[0] for at in range(number)]
    found = _Synset(words)
    at = 4 + 2 * number
    for pointer in range(int(fields[at])):
        sign, offset, of, ends = fields[at + 1 + 4 * pointer : at + 5 + 4 * pointer]
        key = ("a" if of == "s" else of) + offset
        if sign == "!":
            found.antonyms.append((int(ends[-2:], base=16), key))
        elif sign == "@":
            found.above.append(key)
        elif sign == "~":
            found.below.append(key)
    return found


def _lines(file: Path) -> Iterator[list[str]]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not line.startswith(" "):
                yield line.partition(" | ")[0].split()
