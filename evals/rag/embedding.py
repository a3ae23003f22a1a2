"""Caches of vectors: who gives the right one in the known traps, and what a hit takes.

Every vector of the model is known, so a wrong one is seen. A trap is got right if every vector
given is the right one and, where the trap says so, the model was asked no more than needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from evals.measuring import Figure, Measured, Skipped, in_turns, scaled
from evals.rag.vector_caches import FACES, OURS, Face, Made, Model, Opened

__all__ = ["TRAPS", "run"]

BATCH = 32


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001 - nothing is drawn
    """Traps and times, of every cache of vectors."""
    right: dict[str, dict[str, bool]] = {}
    missing: dict[str, str] = {}
    for number, (name, opened) in enumerate(FACES.items()):
        try:
            right[name] = trapped(opened, folder / f"traps-{number}")
        except Skipped as absent:
            missing[name] = str(absent)
    caches = {name: FACES[name] for name in right if name != "no cache"}
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(opened(_room(folder / f"times-{number}")))
            for number, (name, opened) in enumerate(caches.items())
        }
        times = _times(made, scaled(5_000, size, least=2 * BATCH))
    figures = [_traps_right(name, right[name]) for name in caches]
    for kind, what in (("query", "a query's hit"), ("batch", f"a hit of {BATCH} documents")):
        for ours in (name for name in OURS if name in times[kind]):
            took = times[kind][ours]
            figures.append(Figure(what=f"{what}, {ours}", value=took, unit="µs"))
            figures.extend(
                Figure(what=f"… of what it takes {name}", value=took / taken, unit="×")
                for name, taken in times[kind].items()
                if name not in OURS
            )
    return Measured(
        figures=figures, details={"right": right, "microseconds": times, "skipped": missing}
    )


def trapped(opened: Opened, folder: Path) -> dict[str, bool]:
    """Which traps a cache gets right, each in a fresh one."""
    right: dict[str, bool] = {}
    for number, (trap, all_right) in enumerate(TRAPS.items()):
        with opened(_room(folder / str(number))) as made:
            right[trap] = all_right(partial(_behind, made))
    return right


def _room(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _behind(made: Made, name: str, **named: Any) -> tuple[Model, Face]:
    model = Model(name=name, **named)
    return model, made(model)


Behind = Callable[..., tuple[Model, Face]]


def two_models(behind: Behind) -> bool:
    """Two models, one store."""
    (one, first), (other, second) = behind("one"), behind("other")
    return first.documents(["text"]) == [one.right("document", "text")] and second.documents(
        ["text"]
    ) == [other.right("document", "text")]


def two_lengths(behind: Behind) -> bool:
    """One model, asked for vectors of two lengths."""
    (long, first), (short, second) = behind("model"), behind("model", dimensions=64)
    return first.documents(["text"]) == [long.right("document", "text")] and second.documents(
        ["text"]
    ) == [short.right("document", "text")]


def two_roles(behind: Behind) -> bool:
    """An asymmetric model: a text as a document, then as a query."""
    model, face = behind("model")
    return face.documents(["text"]) == [model.right("document", "text")] and face.query(
        "text"
    ) == model.right("query", "text")


def queries(behind: Behind) -> bool:
    """A query asked twice is computed once."""
    model, face = behind("model")
    given = [face.query("text") for _ in range(2)]
    return given == [model.right("query", "text")] * 2 and model.asked["query", "text"] == 1


def duplicates(behind: Behind) -> bool:
    """Equal texts of one batch are computed once."""
    model, face = behind("model")
    given = face.documents(["text", "other", "text"])
    right = [model.right("document", text) for text in ("text", "other", "text")]
    return given == right and model.asked["document", "text"] == 1


def mixed(behind: Behind) -> bool:
    """Cached and new texts in one batch, an empty one among them."""
    model, face = behind("model")
    face.documents(["a"])
    texts = ["b", "a", "c", "", "a"]
    return face.documents(texts) == [model.right("document", text) for text in texts]


def too_few(behind: Behind) -> bool:
    """The model gives fewer vectors than texts: an error, and nothing wrong or lacking later."""
    model, face = behind("model", lost=1)
    texts = ["a", "b", "c"]
    right = [model.right("document", text) for text in texts]
    try:
        first = face.documents(texts)
    except Exception:  # whatever it is called, it was refused
        first = right
    return first == right and face.documents(texts) == right


def not_a_number(behind: Behind) -> bool:
    """The model once gave what is no number for a text: that is not kept."""
    model, face = behind("model", broken={"text"})
    face.documents(["text"])
    return face.documents(["text"]) == [model.right("document", "text")]


def changed_by_reader(behind: Behind) -> bool:
    """Who reads a hit may change it: the next reader does not see that."""
    model, face = behind("model")
    for _ in range(2):
        face.documents(["text"])[0][0] = 0.5
    return face.documents(["text"]) == [model.right("document", "text")]


TRAPS: Mapping[str, Callable[[Behind], bool]] = {
    "two models": two_models,
    "two lengths": two_lengths,
    "query and document": two_roles,
    "a query twice": queries,
    "duplicates": duplicates,
    "cached and new": mixed,
    "too few vectors": too_few,
    "not a number": not_a_number,
    "changed by its reader": changed_by_reader,
}
"""What has gone wrong in caches of vectors."""


def _traps_right(name: str, right: Mapping[str, bool]) -> Figure:
    wrong = ", ".join(trap for trap, held in right.items() if not held)
    return Figure(
        what=f"{name}: traps got right" + (f" (not: {wrong})" if wrong else ""),
        value=sum(right.values()),
        unit=f"of {len(right)}",
        at_least=len(right) if name in OURS else None,
    )


def _times(caches: Mapping[str, Made], count: int) -> dict[str, dict[str, float]]:
    """Median microseconds of a hit, of all in turns, among `count` cached texts."""
    texts = [f"What does section {number} say about the matter?" for number in range(count)]
    faces = {name: made(Model(name="timed")) for name, made in caches.items()}
    for name, face in faces.items():
        for start in range(0, count, 500):
            face.documents(texts[start : start + 500])
        if _keeps_queries(name):
            for text in texts[:500]:
                face.query(text)
    asked = texts[:500]
    batches = [texts[start : start + BATCH] for start in range(0, count - BATCH + 1, BATCH)][:100]
    return {
        "query": in_turns({n: f.query for n, f in faces.items() if _keeps_queries(n)}, asked),
        "batch": in_turns({n: f.documents for n, f in faces.items()}, batches, block=10),
    }


def _keeps_queries(name: str) -> bool:
    return name != "CacheBackedEmbeddings"  # unless told to
