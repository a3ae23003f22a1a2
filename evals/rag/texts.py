"""The texts that are measured on, from the folder that `STEMMA_DATA` names.

By default that is `../shared/data` beside the checkout; each folder in it has a README that says
what it holds and where it is from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.measuring import Skipped

__all__ = ["Question", "Xquad", "folder", "intents", "rows", "xquad"]

_BESIDE = Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question with the passages that were judged to answer it."""

    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Xquad:
    """`retrieval_xquad_en`: passages by id, and the questions that they answer."""

    passages: Mapping[str, str]
    questions: Sequence[Question]


def folder(name: str) -> Path:
    """One of the folders.

    Raises:
        Skipped: It is not there.
    """
    found = Path(os.environ.get("STEMMA_DATA", _BESIDE), name)
    if not found.is_dir():
        raise Skipped(f"there is no folder {name!r}; STEMMA_DATA names where the texts are")
    return found


def rows(name: str, file: str) -> Iterator[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    with (folder(name) / file).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def xquad() -> Xquad:
    """All passages, and the questions that have an answer among them."""
    name = "retrieval_xquad_en"
    judged: dict[str, set[str]] = {}
    for line in (folder(name) / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, passage, relevance = line.split("\t")
        if int(relevance) > 0:
            judged.setdefault(question, set()).add(passage)
    return Xquad(
        passages={row["doc_id"]: row["text"] for row in rows(name, "corpus.jsonl")},
        questions=[
            Question(text=row["text"], relevant=frozenset(judged[row["query_id"]]))
            for row in rows(name, "queries.jsonl")
            if row["answerable"]
        ],
    )


def intents() -> list[tuple[str, str]]:
    """The utterances of `intents_banking77`, each with its intent."""
    found = rows("intents_banking77", "utterances.jsonl")
    return [(row["text"], row["intent"]) for row in found]
