"""Semantic caches for RAG and agents that know where every answer came from.

```python
import stemma

cache = stemma.open("answers.db", tenant="me")
served = cache.answers.get_or_compute("What is a stemma?", lambda: "A family tree of copies.")
print(served.value, served.outcome)
```

Importing this package loads no framework, no model library and no client, and opens nothing.
"""

from stemma import forking
from stemma.cache import Cache
from stemma.clock import Clock, SystemClock
from stemma.codec import BytesCodec, Codec, Encoded, Form, JsonCodec, VectorCodec, storable
from stemma.embedders.protocol import Embedder, TokenEmbedder
from stemma.engine import Served
from stemma.entry import Cost, Edge, Entry, Lineage, Source, SourceEdge, content_digest, owner_of
from stemma.errors import (
    CacheFault,
    CodecError,
    DamagedDatabase,
    EmbedderError,
    ForeignDatabase,
    HopLimit,
    JudgeError,
    MissingDependency,
    RerankerError,
    SchemaTooNew,
    StemmaError,
    StoreError,
    StoreUnavailable,
    TenantRequired,
    UnkeyableValue,
    UsageError,
)
from stemma.events import Event
from stemma.isolation import Isolation
from stemma.keys import canonical, digest
from stemma.lineage import frames
from stemma.lineage.frames import Frame
from stemma.lineage.tree import FamilyTree
from stemma.nodes.node import Asked, KnownScope
from stemma.nodes.rerank import Ranked, Reranking
from stemma.opening import open  # noqa: A004 - the name users type: `stemma.open`
from stemma.outcome import REASONS, Hit, Miss, Recall, Recalled, Stored, Ticket
from stemma.policies.cleaning import Cleaning
from stemma.policies.confidence import ConfidencePolicy
from stemma.policies.life import LifePolicy
from stemma.policies.neighbours import of_length_one, unit
from stemma.policies.novelty import Novelty
from stemma.policies.pools import PoolPolicy
from stemma.policies.same_answer import Answer, SameAnswer
from stemma.policies.threshold import Policy, ThresholdPolicy
from stemma.pools import Ready
from stemma.promoting import Promotion
from stemma.query import Query
from stemma.ranked import Found, ranked
from stemma.ranking import Ranking, RankingCodec
from stemma.reporting import Report
from stemma.request import Key, LeftOut, Request
from stemma.scope import NODES, Labels, Scope
from stemma.search import Search, Searcher, candidates
from stemma.selector import Selector
from stemma.stats import NodeStats, Stats
from stemma.stores.protocol import Store
from stemma.telling import Change, Teller
from stemma.tokens import TokenCount, count_tokens
from stemma.verdicts import Verdicts
from stemma.worlds import World

__all__ = [
    "NODES",
    "REASONS",
    "Answer",
    "Asked",
    "BytesCodec",
    "Cache",
    "CacheFault",
    "Change",
    "Cleaning",
    "Clock",
    "Codec",
    "CodecError",
    "ConfidencePolicy",
    "Cost",
    "DamagedDatabase",
    "Edge",
    "Embedder",
    "EmbedderError",
    "Encoded",
    "Entry",
    "Event",
    "FamilyTree",
    "ForeignDatabase",
    "Form",
    "Found",
    "Frame",
    "Hit",
    "HopLimit",
    "Isolation",
    "JsonCodec",
    "JudgeError",
    "Key",
    "KnownScope",
    "Labels",
    "LeftOut",
    "LifePolicy",
    "Lineage",
    "Miss",
    "MissingDependency",
    "NodeStats",
    "Novelty",
    "Policy",
    "PoolPolicy",
    "Promotion",
    "Query",
    "Ranked",
    "Ranking",
    "RankingCodec",
    "Ready",
    "Recall",
    "Recalled",
    "Report",
    "Request",
    "RerankerError",
    "Reranking",
    "SameAnswer",
    "SchemaTooNew",
    "Scope",
    "Search",
    "Searcher",
    "Selector",
    "Served",
    "Source",
    "SourceEdge",
    "Stats",
    "StemmaError",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "Stored",
    "SystemClock",
    "Teller",
    "TenantRequired",
    "ThresholdPolicy",
    "Ticket",
    "TokenCount",
    "TokenEmbedder",
    "UnkeyableValue",
    "UsageError",
    "VectorCodec",
    "Verdicts",
    "World",
    "candidates",
    "canonical",
    "content_digest",
    "count_tokens",
    "digest",
    "forking",
    "frames",
    "of_length_one",
    "open",
    "owner_of",
    "ranked",
    "storable",
    "unit",
]

__version__ = "0.1.0"
