"""Where the weights of the learning policy come from, and weights that saw nothing of a stream.

What comes with the package was fitted to all pairs and to half of the groups of every stream. So
that the figure for unseen data stands beside, the same fits are made again without a stream and
without all that was made of the same texts: `stream_zipf` is made of the questions of XQuAD,
HotpotQA (as `hard_negatives` is) and Banking77.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evals.fit_verifier import WEIGHTS, fit_standing, fit_verifier
from evals.quality.texts import Pair, pairs, seen, stream
from evals.quality.vectors import vectors
from stemma.embedders import Embedder
from stemma.policies.verifier import shipped
from stemma.replays.log import Request

__all__ = ["WITHOUT", "held_out", "others", "shipped_weights"]

_MADE_OF_LIKE = ("hard_negatives en", "hard_negatives zh")
WITHOUT: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "zipf": (tuple(name for name in WEIGHTS if name not in _MADE_OF_LIKE), ("clinc150",)),
    "banking77": (tuple(WEIGHTS), ("clinc150",)),
    "clinc150": (tuple(WEIGHTS), ("zipf", "banking77")),
}
"""For each stream the sets of pairs and the other streams that are made of other texts."""


def shipped_weights() -> dict[str, Any]:
    """What is said of the weights that come with the package."""
    made = dict(shipped()["made"])
    made.pop("accepted_by_cross_validation", None)
    return {"file": "stemma/policies/verifier.json", **made}


def held_out(name: str, embedder: Embedder, seed: int) -> dict[str, Any]:
    """A record of weights that were fitted without a stream.

    Args:
        name: The stream that they must not have seen.
        embedder: What makes the vectors.
        seed: Of the order of the other streams.
    """
    sets, streams = others(name)
    texts = [text for all_of in sets.values() for pair in all_of for text in (pair.one, pair.other)]
    at = vectors([*texts, *(one.text for order in streams for one in order)], embedder)
    given = [(pair, WEIGHTS[one]) for one, all_of in sets.items() for pair in all_of]
    verifier = fit_verifier(given, at, embedder.revision)
    return {
        "embedder": embedder.revision,
        "constant": verifier.constant,
        "weights": dict(verifier.weights),
        "standing": fit_standing(verifier, streams, list(sets.values()), at, None, seed=seed),
        "made": {"pairs": list(sets), "streams": list(WITHOUT[name][1]), "seed": seed},
    }


def others(name: str) -> tuple[dict[str, list[Pair]], list[list[Request]]]:
    """The pairs and the streams that share no text with a stream."""
    texts = {one.text for one in stream(name)}
    of_pairs, of_streams = WITHOUT[name]
    sets = {
        one: [pair for pair in pairs(one) if not {pair.one, pair.other} & texts] for one in of_pairs
    }
    return sets, [[one for one in stream(other) if seen(one.group) == 0] for other in of_streams]
