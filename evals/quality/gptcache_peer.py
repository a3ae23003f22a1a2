"""GPTCache behind lines of JSON. Runs in its own environment; nothing of Stemma is there.

The first line names the evaluator: `distance` for the similar search of its README (SQLite in
memory and Faiss, `SearchDistanceEvaluation`), `init` for what `cache.init()` does without arguments
(equal texts, the last 1,000). Thresholds and all else are its defaults, but that nothing is
evicted in the first. Each further line is a request; the answer is what was served, or null where
the fresh answer was stored.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from gptcache import Cache
from gptcache.adapter.api import get, put
from gptcache.manager import CacheBase, VectorBase, get_data_manager
from gptcache.processor.pre import get_prompt
from gptcache.similarity_evaluation import SearchDistanceEvaluation

UNLIMITED = 10_000_000


def similar(dimensions: int, embed: Callable[..., Any]) -> Cache:
    """The similar search of its README, with our vectors."""
    found = Cache()
    manager = get_data_manager(
        CacheBase("sqlite", sql_url="sqlite:///:memory:"),
        VectorBase("faiss", dimension=dimensions),
        max_size=UNLIMITED,
    )
    found.init(
        pre_embedding_func=get_prompt,
        embedding_func=embed,
        data_manager=manager,
        similarity_evaluation=SearchDistanceEvaluation(),
    )
    return found


def plain() -> Cache:
    """What `cache.init()` makes."""
    found = Cache()
    found.init(pre_embedding_func=get_prompt)
    return found


def entries(cache: Cache) -> int:
    """How many are stored."""
    manager = cache.data_manager
    return int(manager.v.count() if hasattr(manager, "v") else len(manager.data))


def main() -> None:
    """Answer until there are no more lines."""
    out, sys.stdout = sys.stdout, sys.stderr
    asked = json.loads(sys.stdin.readline())
    vector: list[float] = []
    distance = asked["evaluator"] == "distance"
    cache = similar(asked["dimensions"], lambda _, **__: vector) if distance else plain()
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "text" not in asked:
            told: dict[str, Any] = {"entries": entries(cache)}
        else:
            vector = asked["vector"]
            began = time.perf_counter()
            served = get(asked["text"], cache_obj=cache)
            taken = (time.perf_counter() - began) * 1e6
            if served is None:
                put(asked["text"], asked["answer"], cache_obj=cache)
            told = {"served": served, "microseconds": taken}
        print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    main()
