"""Streams of requests and pairs of questions, from the folder that `STEMMA_DATA` names.

Half of the groups of each stream and a fifth of the pairs at a time are kept from what is fitted:
see `seen`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evals.rag.texts import rows
from stemma.replays.log import Request

__all__ = [
    "PAIRS",
    "STREAMS",
    "Pair",
    "asked_in_turn",
    "contrasts",
    "graded",
    "pairs",
    "seen",
    "stream",
]

STREAMS = ("zipf", "banking77", "clinc150")
PAIRS = ("hard_negatives en", "hard_negatives zh", "tool_args", "gptcache", "own")

_HAN = re.compile("[\u3400-\u9fff]")
_TESTS = Path(__file__).parents[2] / "tests" / "policies"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two questions, and whether the answer of one may serve the other.

    Args:
        one: What is asked.
        other: What was stored.
        same: Whether they have the same answer.
        part: What both come from (a tool, a question): never split between fit and test.
        kind: What makes them differ, where that is known.
    """

    one: str
    other: str
    same: bool
    part: str = field(repr=False)
    kind: str = field(default="", repr=False)


def seen(part: str, parts: int = 2) -> int:
    """Which of so many parts a group or source falls into; the weights were fitted on part 0."""
    return zlib.crc32(part.encode()) % parts


def stream(name: str, *, pooled: bool = True) -> list[Request]:
    """The requests of a stream in the order of its file: English texts only.

    Args:
        name: One of `STREAMS`.
        pooled: Whether all tenants are one.
    """
    if name == "zipf":
        return [
            Request(text=row["text"], group=row["group"], tenant="" if pooled else row["tenant"])
            for row in rows("stream_zipf", "requests.jsonl")
            if not _HAN.search(row["text"])
        ]
    return [
        Request(text=row["text"], group=row["id"] if row["intent"] == "oos" else row["intent"])
        for row in rows(f"intents_{name}", "utterances.jsonl")
    ]


def pairs(name: str) -> list[Pair]:
    """The pairs of one set of `PAIRS`, or of `faq_zh`."""
    if name == "own":
        return [
            Pair(one=row["a"], other=row["b"], same=same, part=row["a"])
            for file, same in (("contrasts", False), ("paraphrases", True))
            for row in _lines(_TESTS / f"{file}.jsonl")
        ]
    folder, _, language = name.partition(" ")
    folder = folder if language or folder == "faq_zh" else f"pairs_{folder}"
    return [
        Pair(
            one=row["a"],
            other=row["b"],
            same=bool(row["label"]),
            part=row.get("tool", row["a"]),
            kind=row.get("kind", ""),
        )
        for row in rows(folder, "pairs.jsonl")
        if language in {"", row["lang"]}
    ]


def asked_in_turn(name: str) -> list[Request]:
    """A set of pairs as a stream: what is stored, then what is asked; each text once.

    Args:
        name: `faq_zh`: its utterances, by intent; else a set of `PAIRS`, in which a text that has
            the same answer as the one stored is of its group, and any other of its own.
    """
    if name == "faq_zh":
        return [
            Request(text=row["text"], group=row["intent"])
            for row in rows("faq_zh", "utterances.jsonl")
        ]
    groups: dict[str, str] = {}
    for pair in pairs(name):
        group = groups.setdefault(pair.one, pair.one)
        groups.setdefault(pair.other, group if pair.same else pair.other)
    return [Request(text=text, group=group) for text, group in groups.items()]


def contrasts() -> list[Pair]:
    """Real contrast questions of our own writing, which nothing was fitted to."""
    return [
        Pair(one=row["a"], other=row["b"], same=False, part=row["a"], kind=row["lang"])
        for row in _lines(Path(__file__).with_name("contrasts.jsonl"))
    ]


def graded() -> list[Pair]:
    """Sentences that people found to say the same, or not (STS): what lies between is left out."""
    return [
        Pair(one=row["a"], other=row["b"], same=row["score"] >= ALIKE, part=row["a"], kind="graded")
        for row in rows("sts_benchmark", "pairs.jsonl")
        if not UNLIKE < row["score"] < ALIKE
    ]


UNLIKE, ALIKE = 3.2, 4.4
"""Of 5: up to the first, two sentences say something else; from the second on, the same."""


def _lines(file: Path) -> Sequence[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
