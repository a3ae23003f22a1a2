"""LangChain's live objects as plain values. What is counted: `stemma_langchain.fingerprint`."""

from __future__ import annotations

import enum
import pathlib
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, SecretBytes, SecretStr

from stemma.classes import name_of
from stemma.describing import FORMS, PROCESS, LiveWalk, ask, is_plain, name_for_now, own_identity
from stemma_langchain.kinds import (
    LIBRARIES,
    NOISE,
    Watching,
    field_names,
    is_from,
    langchain_bases,
    noise_of,
    private_counts,
)

__all__ = ["EMBEDDING_NAMES", "MODEL_NAMES", "Walk", "is_plain", "own_identity", "place"]

MODEL_NAMES = (
    "model",
    "model_name",
    "model_id",
    "repo_id",
    "model_path",
    "azure_deployment",
    "deployment",
    "deployment_name",
)

EMBEDDING_NAMES = frozenset(
    """
    base_url dimension dimensions embed_instruction encode_kwargs encoding_format endpoint_url
    input_type instruction model_kwargs normalize normalize_embeddings openai_api_base
    output_dimensionality pooling precision query_encode_kwargs query_instruction revision size
    task task_type truncate truncation
    """.split()  # noqa: SIM905 - as above
).union(MODEL_NAMES)
"""What an embedding model that is no pydantic model may say of itself."""

_NAMES = ("collection_name", "index_name", "namespace", "table_name")
_PLACES = (
    *_NAMES,
    *("schema_name", "database_name", "persist_directory", "path", "uri", "url", "host", "port"),
    *("tenant", "database", "distance_strategy"),
)


class Walk(LiveWalk):
    """One walk over an object and what it is made of.

    `stores` are the vector stores it came by, each with its description; `named` the identities of
    those that were given one; `models` the models.
    """

    counting: ClassVar[tuple[type, ...]] = (Runnable, Embeddings, VectorStore)

    def __init__(self) -> None:
        super().__init__()
        self.stores: list[tuple[VectorStore, Any]] = []
        self.named: list[str] = []
        self.models: list[Any] = []

    def is_library(self, kind: type) -> bool:
        """See `stemma.describing.LiveWalk`."""
        return is_from(kind, LIBRARIES)

    def noise(self, kind: type) -> frozenset[str]:
        """See `stemma.describing.LiveWalk`."""
        return noise_of(kind)

    def fields_of(self, kind: type[BaseModel], noise: frozenset[str]) -> tuple[str, ...]:
        """See `stemma.describing.LiveWalk`."""
        return field_names(kind, noise)

    def private_counts(self, kind: type) -> bool:
        """See `stemma.describing.LiveWalk`."""
        return private_counts(kind)

    def remembers(self, thing: Any) -> bool:
        """See `stemma.describing.LiveWalk`."""
        kind: Any = type(thing)
        bases = langchain_bases(kind)
        if "Pregel" in bases:
            return bool(thing.checkpointer not in (None, False) or thing.store is not None)
        return not bases.isdisjoint(_MEMORIES)

    def met(self, thing: Any, described: Any) -> None:
        """See `stemma.describing.LiveWalk`."""
        if isinstance(thing, Watching):
            self.named += [thing.stemma_index] if thing.stemma_index is not None else []
        elif isinstance(thing, VectorStore):
            self.stores.append((thing, described))

    def plain_object(self, thing: Any) -> Any:
        """See `stemma.describing.LiveWalk`."""
        if type(thing) is RunnableBinding:
            return self._binding(thing)
        described = super().plain_object(thing)
        if isinstance(thing, BaseLanguageModel):
            self.models.append(thing)
            described["identifying"] = self.describe(_identifying(thing, noise_of(type(thing))))
        return described

    def _binding(self, bound: RunnableBinding[Any, Any]) -> Any:
        """Tags, names and callbacks bound to a runnable do not make it another."""
        configurable = bound.config.get("configurable")
        if not bound.kwargs and not configurable:
            return self.describe(bound.bound)
        return {
            "bound": self.describe(bound.bound),
            "kwargs": self.describe(bound.kwargs),
            "configurable": self.describe(configurable),
        }

    def embedding(self, thing: Any) -> Any:
        """An embedding model; which account it is asked from shapes no vector."""
        if (own := own_identity(thing)) is not None:
            return {"identity": own}
        if isinstance(thing, BaseModel):
            noise = (
                NOISE
                | {"chunk_size"}
                | {name for name, value in thing if isinstance(value, (SecretStr, SecretBytes))}
            )
            return {"embedding": name_of(type(thing)), "fields": self.fields(thing, noise)}
        said = {name: getattr(thing, name, None) for name in EMBEDDING_NAMES}
        plain = {
            name: value for name, value in said.items() if value is not None and is_plain(value)
        }
        return {"embedding": name_of(type(thing)), "fields": self.describe(plain)}


def _message(walk: Walk, thing: BaseMessage) -> Any:
    return {"message": thing.type, "said": walk.fields(thing, _MESSAGE_NOISE)}


def _document(walk: Walk, thing: Document) -> Any:
    return {"document": [thing.id, thing.page_content, walk.describe(thing.metadata)]}


def _store(walk: Walk, thing: VectorStore) -> Any:
    named = {name: place(thing, name) for name in _PLACES}
    said = {name: value for name, value in named.items() if value is not None}
    if (server := _server(thing)) is not None:
        said["server"] = server
    elif not any(name in said for name in _NAMES):
        said["unnamed"] = name_for_now(thing)
    embeddings = ask(thing, "embeddings")
    return {
        "store": name_of(type(thing)),
        "places": walk.describe(said),
        "embeddings": None if embeddings is None else walk.embedding(embeddings),
    }


Walk.forms = (
    *FORMS,
    (VectorStore, _store),
    (Embeddings, lambda walk, thing: walk.embedding(thing)),
    (BaseMessage, _message),
    (Document, _document),
)

_MESSAGE_NOISE = frozenset({"id", "usage_metadata", "response_metadata"})


def _identifying(model: BaseLanguageModel[Any], noise: frozenset[str]) -> Any:
    try:
        said = model._identifying_params  # noqa: SLF001 - what LangChain keys by
    except Exception:
        return None
    return {name: value for name, value in said.items() if name not in noise}


_MEMORIES = frozenset(
    {"BaseChatMessageHistory", "BaseCheckpointSaver", "BaseMemory", "RunnableWithMessageHistory"}
)


def place(store: VectorStore, *names: str) -> Any:
    """The first of these attributes that says where a vector store's index is, or `None`."""
    for name in names:
        for attribute in (name, f"_{name}"):
            value = ask(store, attribute)
            if isinstance(value, (str, int, pathlib.PurePath, enum.Enum)) and value != "":
                return value
    return None


def _server(store: VectorStore) -> Any:
    """Where the client of a vector store has its data, for those that say so."""
    engine = _part(store, "engine")
    if hasattr(engine, "url"):
        return str(engine.url)
    ask = getattr(_part(store, "client"), "get_settings", None)  # Chroma's
    if ask is None:
        return None
    settings = ask()
    if settings.chroma_server_host:
        return [settings.chroma_server_host, settings.chroma_server_http_port]
    if settings.is_persistent:
        return str(pathlib.Path(settings.persist_directory).resolve())
    return PROCESS  # in memory: gone with this process, whatever its name


def _part(store: VectorStore, name: str) -> Any:
    public = ask(store, name)
    return public if public is not None else ask(store, f"_{name}")
