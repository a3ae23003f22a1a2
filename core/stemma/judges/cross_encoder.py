"""A cross-encoder as a judge: one score a pair, turned into a probability."""

from __future__ import annotations

import math
from typing import Any

from stemma.errors import JudgeError, UsageError
from stemma.judges.curve import Curve
from stemma.judges.protocol import About, named
from stemma.rerankers.adapters import as_reranker

__all__ = ["CrossEncoderJudge"]


class CrossEncoderJudge:
    """Judges by a score of the pair.

    Take a model that was trained to tell paraphrases: one that ranks passages scores how well a
    text answers a question, and two questions about one subject are near by that.

    Args:
        model: What `stemma.rerankers.as_reranker` takes: a `sentence_transformers.CrossEncoder`,
            a LangChain `BaseCrossEncoder`, a function from a text and a list of texts to scores,
            `"local"` (MaxSim over the local model), or a `Reranker`.
        curve: Makes a probability of a score. By default the scores are probabilities already, as
            those of a `CrossEncoder` with one label and its usual sigmoid.
        name: What it is called in judgements.
        revision: What names the model and its version; by default derived.

    Raises:
        UsageError: The model is none of these, or nothing names it and `revision` was not given.
    """

    def __init__(
        self,
        model: Any,
        *,
        curve: Curve | None = None,
        name: str = "cross-encoder",
        revision: str | None = None,
    ) -> None:
        if curve is not None and not isinstance(curve, Curve):
            raise UsageError(f"curve must be a Curve, not {type(curve).__name__}")
        self._reranker = as_reranker(model, revision=revision)
        self._curve = curve
        self.name = named(name)
        own = self._reranker.revision
        self.revision = own if curve is None else f"{own} {curve.slope:g}·(s − {curve.middle:g})"

    def __repr__(self) -> str:
        return f"CrossEncoderJudge(revision={self.revision!r})"

    def score(self, one: str, other: str) -> float:
        """The model's own score of a pair, which `Curve.fitted` takes."""
        return float(self._reranker.score(one, [other])[0])

    def judge(self, one: str, other: str, about: About) -> float | None:  # noqa: ARG002 - all the same to it
        """See `Judge.judge`.

        Raises:
            JudgeError: The score is no probability, and there is no curve; or no finite number.
            RerankerError: The model gave something that is not one number.
        """
        score = self.score(one, other)
        if not math.isfinite(score):
            raise JudgeError(f"the model {self._reranker.revision!r} gave {score}")
        if self._curve is not None:
            return self._curve(score)
        if not 0.0 <= score <= 1.0:
            raise JudgeError(
                f"the model {self._reranker.revision!r} gave {score:g}, which is no probability: "
                "pass curve=, such as Curve.fitted gives for some pairs"
            )
        return score
