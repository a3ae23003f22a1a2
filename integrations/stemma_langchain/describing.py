"""Live objects as plain values. What is counted of which: `stemma_langchain.fingerprint`."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import datetime as dt
import decimal
import enum
import functools
import inspect
import itertools
import logging
import pathlib
import re
import secrets
import threading
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, SecretBytes, SecretStr

from stemma import digest, forking
from stemma_langchain.callables import CALLABLES, describe_callable, describe_reduced
from stemma_langchain.kinds import (
    LIBRARIES,
    NOISE,
    STEMMA,
    Watching,
    declared,
    field_names,
    holds_more,
    is_from,
    langchain_bases,
    name_of,
    noise_of,
    private_counts,
    slots_of,
)

__all__ = [
    "EMBEDDING_NAMES",
    "MAX_DEPTH",
    "MAX_PARTS",
    "MODEL_NAMES",
    "RemembersConversations",
    "SameAs",
    "Walk",
    "is_plain",
    "own_identity",
    "place",
]

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

_PLAIN = (
    *(str, bytes, bool, int, float, complex, type(None)),
    *(enum.Enum, dt.date, dt.time, dt.timedelta, decimal.Decimal),
    *(uuid.UUID, pathlib.PurePath, np.generic),
)

MAX_DEPTH = 40
MAX_PARTS = 50_000
"""Beyond these, a chain has no fingerprint, and the cache is bypassed for it."""

_process = secrets.token_hex(8)
_numbers = itertools.count(1)
_unnamed: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class _Beyond:
    """Stands for what cannot be told, or not within the limits; has no key."""


class RemembersConversations:
    """Stands for what answers by what was said before; has no key."""


@dataclass(frozen=True, slots=True)
class SameAs:
    """As `stemma_identity`: for whatever changes nothing of what it wraps, and is taken for it."""

    other: Any


def own_identity(thing: Any) -> Any:
    """What an object says of itself as `stemma_identity`, or `None`."""
    held = getattr(thing, "__dict__", {})
    kind: Any = type(thing)
    if isinstance(thing, type) or not (_says_itself(kind) or "stemma_identity" in held):
        return None  # not asked with `getattr`: a proxy would answer for another
    return thing.stemma_identity


@functools.lru_cache(maxsize=4_096)
def _says_itself(kind: type) -> bool:
    return any("stemma_identity" in base.__dict__ for base in kind.__mro__)


class Walk:
    """One walk over an object and what it is made of.

    `stores` are the vector stores it came by, each with its description; `models` the models.
    """

    def __init__(self) -> None:
        self.stores: list[tuple[VectorStore, Any]] = []
        self.models: list[Any] = []
        self._path: dict[int, int] = {}
        self._parts = 0

    def describe(self, thing: Any) -> Any:
        """The object as plain values; a part beyond the limits has no key."""
        if type(thing) in _PLAIN:
            return thing
        if id(thing) in self._path:
            return {"again": len(self._path) - self._path[id(thing)]}
        self._parts += 1
        if self._parts > MAX_PARTS or len(self._path) > MAX_DEPTH:
            return _Beyond()
        self._path[id(thing)] = len(self._path)
        try:
            return self._described(thing)
        except Exception:  # a property, or a proxy, that cannot be asked just now
            return _Beyond()
        finally:
            del self._path[id(thing)]

    def _described(self, thing: Any) -> Any:
        if isinstance(thing, _PLAIN):
            return thing
        if isinstance(thing, Watching):
            return self.describe(thing.watched)
        if (own := own_identity(thing)) is not None:
            if isinstance(own, SameAs):
                return self.describe(own.other)
            if isinstance(thing, VectorStore):
                self.stores.append((thing, own))
            return {"identity": [name_of(type(thing)), own]}
        if _remembers(thing):
            return RemembersConversations()
        for kind, form in _FORMS:
            if isinstance(thing, kind):
                return form(self, thing)
        return self._object(thing)

    def _object(self, thing: Any) -> Any:
        if type(thing) is RunnableBinding:
            return self._binding(thing)
        kind: Any = type(thing)
        noise = noise_of(kind)
        described = {"class": name_of(kind), "fields": self.fields(thing, noise)}
        if not is_from(kind, LIBRARIES):
            called = declared(kind, "__call__")
            if isinstance(called, types.FunctionType):
                described["called"] = self.describe(called)
        if holds_more(kind):
            described["state"] = describe_reduced(thing, self.describe)
        if isinstance(thing, BaseLanguageModel):
            self.models.append(thing)
            described["identifying"] = self.describe(_identifying(thing, noise))
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

    def fields(self, thing: Any, noise: frozenset[str]) -> Any:
        """The fields of a model or other object, less the noise."""
        if isinstance(thing, BaseModel):
            values = {name: getattr(thing, name) for name in field_names(type(thing), noise)}
            extra = thing.model_extra if thing.model_extra is not None else {}
            values |= {name: value for name, value in extra.items() if name not in noise}
            if private_counts(type(thing)) and thing.__pydantic_private__ is not None:
                values |= thing.__pydantic_private__
        else:
            values = _state(thing, noise)
        return self.describe(values)

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


def _mapping(walk: Walk, thing: Mapping[Any, Any]) -> Any:
    items = list(thing.items())
    if all(isinstance(key, str) for key in thing):
        items.sort()  # who put what in first does not count
    return {"map": [[walk.describe(key), walk.describe(value)] for key, value in items]}


def _list(walk: Walk, thing: Any) -> Any:
    return [walk.describe(item) for item in thing]


def _set(walk: Walk, thing: AbstractSet[Any]) -> Any:
    return {"set": sorted(digest(walk.describe(item)) for item in thing)}


def _secret(_: Walk, thing: SecretStr | SecretBytes) -> Any:
    return {"secret": digest("stemma-langchain/secret/1", thing.get_secret_value())}


def _callable(walk: Walk, thing: Any) -> Any:
    return describe_callable(thing, walk.describe, _counts_as_global)


def _class(walk: Walk, kind: type) -> Any:
    if issubclass(kind, BaseModel):
        try:
            return {"class": name_of(kind), "schema": walk.describe(kind.model_json_schema())}
        except Exception:
            return {"class": name_of(kind), "fields": sorted(kind.model_fields)}
    return {"class": name_of(kind)}


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
        said["unnamed"] = _name_for_now(thing)
    embeddings = _asked(thing, "embeddings")
    described = {
        "store": name_of(type(thing)),
        "places": walk.describe(said),
        "embeddings": None if embeddings is None else walk.embedding(embeddings),
    }
    walk.stores.append((thing, described))
    return described


def _generic(walk: Walk, thing: Any) -> Any:
    return {"generic": walk.describe([typing.get_origin(thing), *typing.get_args(thing)])}


_LOCKS = (
    type(threading.Lock()),
    type(threading.RLock()),
    forking.Lock,
    threading.Condition,
    threading.Event,
    threading.Semaphore,
    threading.Barrier,
    asyncio.Lock,
    asyncio.Event,
    asyncio.Condition,
    asyncio.Semaphore,
)
_GENERICS = (type(list[int]), type(int | str), type(typing.List[int]), type(typing.Union[int, str]))  # noqa: UP006, UP007 - the old forms are meant

_FORMS: tuple[tuple[Any, Callable[[Walk, Any], Any]], ...] = (
    (Mapping, _mapping),
    ((list, tuple, collections.deque), _list),
    (AbstractSet, _set),
    ((SecretStr, SecretBytes), _secret),
    (re.Pattern, lambda _, thing: {"pattern": [thing.pattern, thing.flags]}),
    (np.ndarray, lambda _, thing: thing),
    (type, _class),
    (types.ModuleType, lambda _, thing: {"module": thing.__name__}),
    (logging.Logger, lambda _, thing: {"logger": thing.name}),
    (_LOCKS, lambda _, thing: {"class": name_of(type(thing))}),
    (_GENERICS, _generic),
    (CALLABLES, _callable),
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


def _remembers(thing: Any) -> bool:
    """Whether it, or what it answers from, holds earlier conversations."""
    kind: Any = type(thing)
    bases = langchain_bases(kind)
    if "Pregel" in bases:
        return thing.checkpointer not in (None, False) or thing.store is not None
    return not bases.isdisjoint(_MEMORIES)


_MEMORIES = frozenset(
    {"BaseChatMessageHistory", "BaseCheckpointSaver", "BaseMemory", "RunnableWithMessageHistory"}
)


def _state(thing: Any, noise: frozenset[str]) -> dict[str, Any]:
    """The attributes of an object, private ones too; of Stemma's own, public ones that count."""
    kind: Any = type(thing)
    found = {**getattr(thing, "__dict__", {})}
    for base in kind.__mro__:
        for name in slots_of(base):
            slot = base.__dict__.get(name)
            if isinstance(slot, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # never set
                    found[name] = slot.__get__(thing)
    told = {
        name: value
        for name, value in found.items()
        if name not in noise and not _is_derived(thing, name)
    }
    if not is_from(kind, STEMMA):
        return told
    return {name: value for name, value in told.items() if name[0] != "_" and _counts(value)}


def _is_derived(thing: Any, name: str) -> bool:
    """Whether an attribute is there only because it was looked at before."""
    return isinstance(declared(type(thing), name), functools.cached_property)


def _counts(value: Any) -> bool:
    return (
        is_plain(value)
        or isinstance(value, (*CALLABLES, Runnable, Embeddings, VectorStore, BaseModel, SecretStr))
        or (isinstance(value, (list, tuple)) and all(map(_counts, value)))
        or (isinstance(value, dict) and all(map(_counts, value.values())))
    )


def _counts_as_global(value: Any) -> bool:
    """Plain values, mappings and fixed collections of them, functions, LangChain objects.

    A list of a module is taken for something that collects as the program runs.
    """
    if isinstance(value, Runnable) or inspect.isfunction(value):
        return True
    return not isinstance(value, list) and is_plain(value)


def is_plain(value: Any) -> bool:
    """Whether it is a plain value, or a collection of plain values."""
    if isinstance(value, (list, tuple, AbstractSet)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    return isinstance(value, (*_PLAIN, np.ndarray))


def place(store: VectorStore, *names: str) -> Any:
    """The first of these attributes that says where a vector store's index is, or `None`."""
    for name in names:
        for attribute in (name, f"_{name}"):
            value = _asked(store, attribute)
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
    return _process  # in memory: gone with this process, whatever its name


def _part(store: VectorStore, name: str) -> Any:
    public = _asked(store, name)
    return public if public is not None else _asked(store, f"_{name}")


def _asked(store: VectorStore, name: str) -> Any:
    """An attribute; `None` too where it is a property that raises."""
    try:
        return getattr(store, name, None)
    except Exception:
        return None


def _name_for_now(store: VectorStore) -> str:
    named = _unnamed.get(store)
    if named is None:
        named = _unnamed[store] = f"{_process}-{next(_numbers)}"
    return named
