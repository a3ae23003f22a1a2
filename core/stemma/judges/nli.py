"""A model of natural language inference as a judge: each of two texts must entail the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stemma.errors import JudgeError, UsageError
from stemma.judges.protocol import About, named
from stemma.rerankers.adapters import derive_revision

__all__ = ["NLIJudge"]

Pairs = Sequence[tuple[str, str]]
Rows = Callable[[Pairs], list[float]]
"""For each pair, how likely the first text entails the second."""

_ENTAILS = frozenset({"entailment", "entails", "entailed", "entail"})
_OTHERS = frozenset({"contradiction", "neutral", "not_entailment", "non_entailment"})
_ROUNDING = 1e-2


class NLIJudge:
    """Judges by entailment in both directions: the lower of the two counts.

    Args:
        model: A `sentence_transformers.CrossEncoder` with such labels, a `transformers` pipeline
            for text classification, or a function from a list of pairs to as many rows of
            probabilities, one a label.
        labels: The names of the labels in the order of the rows, one of them `entailment` and one
            `contradiction`, `neutral` or `not_entailment`. By default those of the model's
            configuration; needed where that does not name them, and for functions.
        name: What it is called in judgements.
        revision: What names the model and its version; by default derived.

    Raises:
        UsageError: The model is none of these, its labels cannot be read, or nothing names it and
            `revision` was not given.
    """

    def __init__(
        self,
        model: Any,
        *,
        labels: Sequence[str] | None = None,
        name: str = "nli",
        revision: str | None = None,
    ) -> None:
        known = _labels(model) if labels is None else list(labels)
        self._entails = _method(model, known)
        self.name = named(name)
        self.revision = _revision(model) if revision is None else named(revision)

    def __repr__(self) -> str:
        return f"NLIJudge(revision={self.revision!r})"

    def judge(self, one: str, other: str, about: About) -> float | None:  # noqa: ARG002 - all the same to it
        """See `Judge.judge`.

        Raises:
            JudgeError: The model gave something that is not one distribution a pair.
        """
        return min(self._entails([(one, other), (other, one)]))


def _labels(model: Any) -> list[str]:
    """The labels' names in the order of the model's outputs."""
    holder = getattr(model, "model", model)
    names = getattr(getattr(holder, "config", None), "id2label", None)
    if not isinstance(names, Mapping) or sorted(names) != list(range(len(names))):
        raise UsageError("the model's configuration names no labels; pass labels= in their order")
    return [str(names[number]) for number in range(len(names))]


def _place(labels: Sequence[str]) -> int:
    """Where entailment stands.

    Raises:
        UsageError: The names do not say, or say it twice.
    """
    read = [str(one).strip().casefold().replace("-", "_").replace(" ", "_") for one in labels]
    places = [place for place, one in enumerate(read) if one in _ENTAILS]
    if len(places) != 1 or len(read) < 2 or not set(read) & _OTHERS:  # noqa: PLR2004 - entailment or not
        raise UsageError(
            f"the labels {list(labels)} do not tell which one is entailment; pass labels= with "
            "'entailment', and 'contradiction' or 'neutral', in the model's order"
        )
    return places[0]


def _method(model: Any, labels: list[str]) -> Rows:
    place, count = _place(labels), len(labels)
    if _is_pipeline(model):
        return lambda pairs: _column(_piped(model, pairs), place, count)
    if callable(getattr(model, "predict", None)):
        return lambda pairs: _column(model.predict(list(pairs), apply_softmax=True), place, count)
    if not callable(model):
        raise UsageError(
            f"a {type(model).__qualname__} is no model for pairs: pass a CrossEncoder, a pipeline "
            "for text classification, or a function from pairs to rows of probabilities"
        )
    return lambda pairs: _column(model(pairs), place, count)


def _is_pipeline(model: Any) -> bool:
    return getattr(model, "task", None) == "text-classification" and callable(model)


def _piped(pipeline: Any, pairs: Pairs) -> list[list[float]]:
    """The rows of a `transformers` pipeline, which names its labels, the likeliest first."""
    names = _labels(pipeline)
    asked = [{"text": one, "text_pair": other} for one, other in pairs]
    found = pipeline(asked, top_k=None, function_to_apply="softmax")
    told = [{one["label"]: one["score"] for one in row} for row in found]
    return [[row[name] for name in names] for row in told]


def _column(given: Any, place: int, count: int) -> list[float]:
    """One label's probability in each row of distributions over the labels."""
    try:
        rows = [[float(one) for one in row] for row in _listed(given)]
    except (TypeError, ValueError) as error:
        raise JudgeError(f"the model gave no rows of numbers: {error}") from error
    if len(rows) != 2 or any(  # noqa: PLR2004 - both directions
        len(row) != count or min(row) < 0 or not math.isclose(sum(row), 1.0, abs_tol=_ROUNDING)
        for row in rows
    ):
        raise JudgeError(f"the model did not give two distributions over {count} labels")
    return [min(row[place], 1.0) for row in rows]


def _listed(given: Any) -> Iterable[Any]:
    rows: Iterable[Any] = given.tolist() if hasattr(given, "tolist") else given
    return rows


def _revision(model: Any) -> str:
    """A pipeline is known by the model it holds."""
    return derive_revision(model.model if _is_pipeline(model) else model)
