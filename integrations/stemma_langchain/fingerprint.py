"""The identity of whatever shapes an answer, taken from the live objects.

A fingerprint is equal for equal chains in every process and under every hash seed, and changes
when anything changes that could change an answer: a template, a temperature, a bound argument, the
code of a function. No `repr` and no address is part of it.

What is counted, by kind:

* an object with a `stemma_identity` (a text or plain values) is that, and nothing else of it;
* LangChain objects: class and fields, less those that shape no answer (`NOISE`: callbacks,
  clients, retries, timeouts, run names, …);
* models: besides, their own identifying parameters;
* functions: see `stemma.callables`;
* vector stores: class, collection and place, never contents, and the identity of their embeddings;
* secrets: a digest, because two keys are two accounts;
* other objects: class, and all attributes, private ones too; for callable ones, the code they run;
* what cannot be told (a connection), or remembers conversations: no key can be made of it.

The code of classes is not read: when you change what a class does, change the `version` of the
cached chain, or give the class a `stemma_identity`.
"""

from __future__ import annotations

from typing import Any

from stemma import digest
from stemma.describing import Described
from stemma_langchain.describing import MODEL_NAMES, Walk, own_identity, place
from stemma_langchain.kinds import NOISE, Watching

__all__ = [
    "NOISE",
    "Described",
    "describe",
    "describe_chain",
    "embedding_identity",
    "fingerprint",
    "index_identity",
    "store_identities",
]


def fingerprint(thing: Any) -> str:
    """The identity of a runnable or component, as 32 hexadecimal digits.

    Raises:
        UnkeyableValue: It is too large or too deep, cannot be told, or remembers conversations.
    """
    return digest("langchain/1", describe(thing))


def describe(thing: Any) -> Any:
    """What a fingerprint is the digest of, as plain values: for looking at.

    Where the limits are exceeded, the description holds a part that no key can be made of.
    """
    return Walk().describe(thing)


def describe_chain(chain: Any) -> Described:
    """As `describe`, with the name of the model in it."""
    walk = Walk()
    value = walk.describe(chain)
    names = set(filter(None, map(_model_name, walk.models)))
    return Described(value, names.pop() if len(names) == 1 else "")


def _model_name(model: Any) -> str:
    names = (getattr(model, name, None) for name in MODEL_NAMES)
    return next((name for name in names if isinstance(name, str) and name), "")


def embedding_identity(embeddings: Any) -> str:
    """The identity of an embedding model: its name, then a digest of all it says of itself.

    For an object with a text as `stemma_identity`, that text. Where an embedding model that is no
    pydantic model says nothing under one of the usual names (`EMBEDDING_NAMES`), it is its class.
    """
    own = own_identity(embeddings)
    if isinstance(own, str):
        return own
    said = Walk().embedding(embeddings)
    shown = _model_name(embeddings) or type(embeddings).__name__
    return f"{shown}@{digest('embedding/1', said)[:12]}"


def index_identity(thing: Any) -> str:
    """The identity of the index behind a retriever or vector store, never of its contents.

    For an object with a text as `stemma_identity`, that text; for a watched store that was given
    one, and for its retrievers, the one given. A vector store that has a name gives
    `class:name@digest`. One without a name (an in-memory one) gets a name that lasts as long as
    the object: two such stores are never taken for one, and in another process it is another.
    A retriever without a vector store is known by its class and fields.
    """
    own = own_identity(thing)
    if isinstance(own, str):
        return own
    store = getattr(thing, "vectorstore", thing)
    if isinstance(store, Watching) and store.stemma_index is not None:
        return store.stemma_index
    walk = Walk()
    described = walk.describe(thing)
    if not walk.stores:
        return f"{type(thing).__name__}@{digest('index/1', described)[:12]}"
    if len(walk.stores) > 1:
        return f"{type(thing).__name__}@{digest('index/1', [s for _, s in walk.stores])[:12]}"
    ((store, said),) = walk.stores
    return _store_identity(store, said)


def store_identities(thing: Any) -> tuple[str, ...]:
    """The identities of the vector stores in whatever retrieves, each as `index_identity` has it.

    Raises:
        UnkeyableValue: One of them cannot be told.
    """
    walk = Walk()
    walk.describe(thing)
    derived = [_store_identity(store, said) for store, said in walk.stores]
    return tuple(dict.fromkeys([*derived, *walk.named]))


def _store_identity(store: Any, said: Any) -> str:
    if isinstance(said, str):
        return said
    name = place(store, "collection_name", "index_name", "table_name")
    shown = f"{type(store).__name__}:{name}" if name else type(store).__name__
    return f"{shown}@{digest('index/1', said)[:12]}"
