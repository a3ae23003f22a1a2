"""LlamaIndex's live objects as plain values: the identity of whatever shapes an answer.

What is counted, by kind:

* an object with a `stemma_identity` (a text or plain values) is that, and nothing else of it;
* models: class, fields, and what they say in their `metadata`; embedding models: class and fields;
* engines, retrievers, synthesizers, postprocessors, prompts, tools: class and all attributes;
* indexes and vector stores: class, collection and place, never contents, and the embedding model;
  an index that lies nowhere but in memory gets a name that lasts as long as the object;
* fields that shape no answer (`NOISE`: callbacks, clients, retries, timeouts, tokenizers, …) are
  left out, and secrets are digests, because two keys are two accounts;
* functions by their code and what they captured (see `stemma.callables`);
* the memory of a conversation that is told apart: its limits and fixed blocks, not what was said;
* what cannot be told (a connection), or remembers conversations: no key can be made of it.

The code of classes is not read: when you change what a class does, change the `version` of the
face, or give the class a `stemma_identity`.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, ClassVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.memory import (
    BaseMemory,
    BaseMemoryBlock,
    FactExtractionMemoryBlock,
    StaticMemoryBlock,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import BaseModel

from stemma import digest
from stemma.classes import name_of, top_package
from stemma.describing import (
    FORMS,
    Described,
    LiveWalk,
    ask,
    is_plain,
    name_for_now,
    own_identity,
)

__all__ = [
    "NOISE",
    "Walk",
    "describe",
    "describe_whole",
    "embedding_identity",
    "index_identity",
    "indexes_in",
    "model_name",
    "searches_everything",
]

NOISE = frozenset(
    """
    aclient async_client async_http_client async_openai_client cache_folder callback_manager client
    default_timeout dispatcher docstore embed_batch_size embeddings_cache http_client max_retries
    num_workers object_map prompt_helper rate_limiter request_timeout reuse_client
    service_context show_progress storage_context template_vars timeout token_counter tokenizer
    tokenizer_fn
    use_async verbose
    """.split()  # noqa: SIM905 - thirty names read better as words
)
"""Fields and attributes, with or without an underscore before, that shape no answer.

Only of classes of LlamaIndex, its integrations among them, and of models.
"""

_SECRET = re.compile(r"(?:^|_)(?:key|token|secret|password|credentials)$")

_CONVERSATION = frozenset({"chat_store", "chat_store_key", "session_id", "sql_store"})
"""Where a memory keeps what was said, which is told apart from it."""

_NAMES = ("collection_name", "index_name", "table_name", "namespace")
_PLACES = (
    *_NAMES,
    *("schema_name", "database_name", "persist_dir", "persist_path", "path", "uri", "url"),
    *("host", "port", "tenant", "database"),
)


class Walk(LiveWalk):
    """One walk over an object and what it is made of.

    `models` are the models it came by; `indexes` the indexes, each with its description.

    Args:
        aside: The memory of a conversation that is told apart from this object.
    """

    counting: ClassVar[tuple[type, ...]] = (
        *(BaseLLM, BaseEmbedding, BaseRetriever, BaseQueryEngine, BaseChatEngine),
        *(BaseIndex, BasePydanticVectorStore),
    )

    def __init__(self, aside: BaseMemory | None = None) -> None:
        super().__init__()
        self._aside = aside
        self.models: list[Any] = []
        self.indexes: list[tuple[Any, Any]] = []

    def is_library(self, kind: type) -> bool:
        """See `stemma.describing.LiveWalk`."""
        return _is_llama_index(kind) or super().is_library(kind)

    def noise(self, kind: type) -> frozenset[str]:
        """See `stemma.describing.LiveWalk`."""
        if not (any(map(_is_llama_index, kind.__mro__)) or super().is_library(kind)):
            return frozenset()
        return NOISE | {f"_{name}" for name in NOISE}

    def private_counts(self, kind: type) -> bool:
        """See `stemma.describing.LiveWalk`."""
        return not (issubclass(kind, (BaseLLM, BaseEmbedding)) or self.is_library(kind))

    def remembers(self, thing: Any) -> bool:
        """See `stemma.describing.LiveWalk`."""
        if isinstance(thing, BaseMemoryBlock):
            return not isinstance(thing, (StaticMemoryBlock, FactExtractionMemoryBlock))
        return isinstance(thing, BaseMemory) and thing is not self._aside

    def met(self, thing: Any, described: Any) -> None:
        """See `stemma.describing.LiveWalk`."""
        named = isinstance(thing, BaseDocumentStore) and own_identity(thing) is not None
        if named or isinstance(thing, (BaseIndex, BasePydanticVectorStore)):
            self.indexes.append((thing, described))
        elif isinstance(thing, BaseLLM):
            self.models.append(thing)


def _is_llama_index(kind: type) -> bool:
    return top_package(kind) in ("llama_index", "llama_index_instrumentation", "workflows")


def _model(walk: Walk, thing: BaseModel) -> Any:
    """A model that is asked over a network, or an embedding model: without clients and counters."""
    noise = walk.noise(type(thing))
    names = (*walk.fields_of(type(thing), noise), *(thing.model_extra or ()))
    fields: dict[str, Any] = {}
    for name in names:
        held = getattr(thing, name)
        if not (isinstance(held, str) and _SECRET.search(name)):
            fields[name] = held
        elif isinstance(thing, BaseLLM):  # which account it is asked from shapes no vector
            fields[name] = {"secret": digest("secret/1", held)}
    if isinstance(thing, BaseEmbedding) and thing.__pydantic_private__ is not None:
        # Such as the name of an engine; numbers and lists may be counts.
        private = thing.__pydantic_private__.items()
        fields |= {name: held for name, held in private if isinstance(held, str)}
    described = {"class": name_of(type(thing)), "fields": walk.describe(fields)}
    if isinstance(thing, BaseLLM):
        described["metadata"] = walk.describe(thing.metadata.model_dump())
    return described


def _store(walk: Walk, thing: BasePydanticVectorStore) -> Any:
    said = {name: held for name in _PLACES if (held := _place(thing, name)) is not None}
    said |= _collection(thing)
    if not any(name in said for name in _NAMES):
        said["unnamed"] = name_for_now(thing)
    return {"store": name_of(type(thing)), "places": walk.describe(said)}


def _collection(store: BasePydanticVectorStore) -> dict[str, Any]:
    """The collection that a store was given, as Chroma's: its name, and its id in every process."""
    held = ask(store, "client")
    name, number = ask(held, "name"), ask(held, "id")
    known = isinstance(name, str) and isinstance(number, uuid.UUID)
    return {"collection_name": name, "collection": number} if known else {}


def _place(thing: Any, *names: str) -> Any:
    """The first of these attributes that says where an index lies, or `None`."""
    for name in names:
        for attribute in (name, f"_{name}"):
            held = ask(thing, attribute)
            if held is not None and held != "" and is_plain(held):
                return held
    return None


def _index(walk: Walk, thing: BaseIndex[Any]) -> Any:
    store = thing.vector_store if hasattr(thing, "vector_store") else None
    described = {
        "index": name_of(type(thing)),
        "embedding": walk.describe(ask(thing, "_embed_model")),
        "store": walk.describe(store),
    }
    if store is None:  # an index over a docstore, which is watched under the index's identity
        described["documents"] = walk.describe(ask(thing, "docstore"))
        described["unnamed"] = name_for_now(thing)
    return described


def _vector_retriever(walk: Walk, thing: VectorIndexRetriever) -> Any:
    """A retriever over vectors, without the nodes that it names where these are all there are.

    `index.as_retriever()` names those that the index has then. What an index contains is no part
    of what it is.
    """
    noise = walk.noise(type(thing)) | ({"_node_ids"} if searches_everything(thing) else set())
    return {"class": name_of(type(thing)), "fields": walk.fields(thing, noise)}


def searches_everything(retriever: VectorIndexRetriever) -> bool:
    """Whether the nodes that a retriever names are all that its index has."""
    named = retriever._node_ids  # noqa: SLF001 - it has no other name
    held = retriever._index.index_struct.nodes_dict.values()  # noqa: SLF001 - as above
    return not named or set(named) >= set(held)


def _memory(walk: Walk, thing: BaseMemory) -> Any:
    """A memory without its conversation: how much of that it tells, and what it adds to it."""
    noise = walk.noise(type(thing)) | _CONVERSATION
    return {"class": name_of(type(thing)), "fields": walk.fields(thing, noise)}


def _kept(_: Walk, thing: BaseDocumentStore | BaseKVStore) -> Any:
    return {"class": name_of(type(thing))}  # what it holds is asked for elsewhere


Walk.forms = (
    *FORMS,
    ((BaseLLM, BaseEmbedding), _model),
    (BasePydanticVectorStore, _store),
    (BaseIndex, _index),
    (VectorIndexRetriever, _vector_retriever),
    (BaseMemory, _memory),
    ((BaseDocumentStore, BaseKVStore), _kept),
)


def describe(thing: Any) -> Any:
    """An object as plain values, of which a key can be made."""
    return Walk().describe(thing)


def describe_whole(thing: Any, *, aside: BaseMemory | None = None) -> Described:
    """As `describe`, with the name of the one model in it.

    Args:
        thing: The object.
        aside: The memory of a conversation that is told apart from it.
    """
    walk = Walk(aside)
    value = walk.describe(thing)
    names = set(filter(None, map(model_name, walk.models)))
    return Described(value, names.pop() if len(names) == 1 else "")


def model_name(model: Any) -> str:
    """The name of a model; empty where it says none."""
    name = model.metadata.model_name
    return name if isinstance(name, str) and name != "unknown" else ""


def index_identity(thing: Any) -> str:
    """The identity of the index behind a retriever or engine, never of its contents.

    For an object with a text as `stemma_identity`, that text. Where there is one vector store, it
    is that store's; which embedding model asks it is told apart elsewhere. An index that lies
    nowhere but in memory is known only as long as its object lives.
    """
    own = own_identity(thing)
    if isinstance(own, str):
        return own
    walk = Walk()
    described = walk.describe(thing)
    stores = {id(one): (one, said) for one, said in walk.indexes if not isinstance(one, BaseIndex)}
    found = list(stores.values()) if stores else walk.indexes
    if len(found) != 1:
        said = [said for _, said in found] if found else described
        return f"{type(thing).__name__}@{_short(said)}"
    ((one, said),) = found
    return _named(one, said)


def indexes_in(thing: Any) -> list[str]:
    """The identities of the stores that a thing itself reads from.

    What stands behind a cached retriever or engine is not among them: what it finds is kept by
    itself.
    """
    walk = Walk()
    walk.describe(thing)
    stores = [(one, said) for one, said in walk.indexes if not isinstance(one, BaseIndex)]
    return list(dict.fromkeys(_named(one, said) for one, said in stores))


def _named(one: Any, said: Any) -> str:
    own = own_identity(one)
    if isinstance(own, str):
        return own
    name = _collection(one).get("collection_name", _place(one, *_NAMES))
    shown = type(one).__name__ if name is None else f"{type(one).__name__}:{name}"
    return f"{shown}@{_short(said)}"


def embedding_identity(model: BaseEmbedding) -> str:
    """The identity of an embedding model: its name, then a digest of all it says of itself.

    For an object with a text as `stemma_identity`, that text.
    """
    own = own_identity(model)
    if isinstance(own, str):
        return own
    return f"{model.model_name}@{digest('embedding/1', describe(model))[:12]}"


def _short(said: Any) -> str:
    return digest("index/1", said)[:12]
