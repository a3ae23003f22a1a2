"""GPTCache from the package registry, beside our policies: same vectors, same orders.

What `cache.init()` does without arguments is the comparison of equal texts. For meaning its README
(0.1.44) takes SQLite, Faiss and `SearchDistanceEvaluation` with the default threshold of 0.8: the
distance is of 4 at most, so that is a cosine similarity of 0.6 or more. Both are measured; its
evaluators with a model (`OnnxModelEvaluation` and others) fetch it from a hub, and are not. SQLite
is in memory and nothing is evicted, as nothing is elsewhere. It has no decision apart from its
search and its reads: its microseconds are those of a whole `get`, of which the vector was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evals.measuring import Figure, Measured, scaled
from evals.peers import Peer, environment, started
from evals.quality.side_by_side import beside
from evals.quality.texts import STREAMS, stream
from evals.quality.vectors import vectors
from evals.quality.weights import shipped_weights
from stemma.embedders import LocalEmbedder
from stemma.entry import Vector
from stemma.replays.contenders import Contender, exact, orders, put, static, strict, verified
from stemma.replays.log import Request
from stemma.replays.replay import Outcome, Replayed, after

__all__ = ["PINS", "gptcache", "run"]

PINS = (
    "gptcache==0.1.44",
    "faiss-cpu==1.15.1",
    "sqlalchemy==2.1.9",
    "typing-extensions==4.16.0",
    "numpy==2.4.6",
    "packaging==26.4",
    "cachetools==8.0.2",
    "requests==2.34.2",
    "urllib3==2.8.0",
    "idna==3.20",
    "charset-normalizer==3.5.3",
    "certifi==2026.10.19.post1",
)
ORDERS = 5
BOUND = 0.02
_PEER = Path(__file__).with_name("gptcache_peer.py")


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """All streams, in the order of the file and in shuffled ones."""
    python = environment("gptcache", PINS)
    embedder = LocalEmbedder()
    revision = embedder.revision
    contenders = {
        "exact only": exact(),
        "static 0.60": static(0.6),
        "GPTCache, init()": gptcache("init", python, folder),
        "GPTCache, similar search": gptcache("distance", python, folder),
        f"verified-strict {BOUND:.0%}": strict(BOUND, revision),
        f"verified {BOUND:.0%}": verified(BOUND, revision),
    }
    told: dict[str, Any] = {"packages": PINS, "weights": shipped_weights()}
    rows: dict[str, Any] = {}
    for name in STREAMS:
        requests = stream(name)
        at = vectors((one.text for one in requests), embedder)
        number = scaled(ORDERS, size, least=2)
        found = orders(requests, number + 1, seed)
        found = found[:number] if name == "zipf" else found[1:]  # intents lie sorted in their file
        streams = [order[: scaled(len(order), size)] for order in found]
        told[name] = {who: put(one, streams, at) for who, one in contenders.items()}
        rows |= {f"{name}: {who}": rates for who, rates in told[name].items()}
    return Measured(figures=_figures(told), details=told, beside=beside(rows))


def gptcache(evaluator: str, python: Path | None, folder: Path, script: Path = _PEER) -> Contender:
    """GPTCache in a process of its own for each order.

    Args:
        evaluator: `init` or `distance`, see `evals/quality/gptcache_peer.py`.
        python: The interpreter of its environment; `None`: ours.
        folder: Where it may write.
        script: What speaks for it.
    """

    def answer(requests: Sequence[Request], at: Mapping[str, Vector], **_: Any) -> Replayed:
        with (
            TemporaryDirectory(dir=folder) as own,
            started(script, Path(own), python=python) as peer,
        ):
            length = len(at[requests[0].text])
            peer.ask({"evaluator": evaluator, "dimensions": length})
            outcomes, taken = [], []
            for number in range(len(requests)):
                outcome, microseconds = _asked(peer, requests, number, at)
                outcomes.append(outcome)
                taken.append(microseconds)
            entries = peer.ask({})["entries"]
        return after(requests, outcomes, entries=entries, microseconds=taken)

    return answer


def _asked(
    peer: Peer, requests: Sequence[Request], number: int, at: Mapping[str, Vector]
) -> tuple[Outcome, float]:
    """What became of one request; the answer of each is its number."""
    one = requests[number]
    said = peer.ask({"text": one.text, "vector": at[one.text].tolist(), "answer": str(number)})
    if said["served"] is None:
        return Outcome("miss"), said["microseconds"]
    of = requests[int(said["served"])]
    kind = "exact" if of.text == one.text else "semantic"
    return Outcome(kind, of.group != one.group), said["microseconds"]


def _figures(told: Mapping[str, Any]) -> list[Figure]:
    figures = []
    for name in STREAMS:
        for who in ("GPTCache, similar search", f"verified {BOUND:.0%}"):
            rates = told[name][who]
            figures += [
                Figure(what=f"{name}, {who}: hits", value=rates["hits"]["mean"], unit=""),
                Figure(what="… wrong, of all requests", value=rates["error"]["mean"], unit=""),
            ]
    return figures
