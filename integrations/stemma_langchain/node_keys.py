"""`node_key`: the key of a LangGraph node's input, for `CachePolicy(key_func=node_key)`.

LangGraph hands a key function the node's input and nothing else. Whose run it is, is known all
the same: by the frame of the run that is the current one here, and by what `Cache.using` has said.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, RemoveMessage
from xxhash import xxh3_128_hexdigest

from stemma import Frame, UnkeyableValue, canonical, digest, forking, frames
from stemma.context import Context, said
from stemma.policies.admission import finish_reason
from stemma_langchain.codec import NOTE
from stemma_langchain.describing import Walk
from stemma_langchain.runs import runs

__all__ = ["InputWalk", "Known", "known", "node_key"]

MOST = 1_000
"""Keys that are remembered of one run: those of the steps it is at."""


class InputWalk(Walk):
    """A node's input as plain values: what it says, without the ids of its messages.

    Left out of messages are the id, the usage and what the provider said beside the reply, but
    not how the reply ended; of documents the note of a hit. `ids` are the ids that were left out.
    """

    forms: ClassVar[Any]  # set below

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()


def _message(walk: InputWalk, thing: BaseMessage) -> Any:
    if isinstance(thing, RemoveMessage):  # it says nothing but the id
        return {"remove": thing.id}
    if thing.id is not None:
        walk.ids.add(thing.id)
    return {
        "message": thing.type,
        "said": walk.fields(thing, _UNSAID),
        "ended": finish_reason(thing.response_metadata),
    }


def _document(walk: InputWalk, thing: Document) -> Any:
    metadata = {name: value for name, value in thing.metadata.items() if name != NOTE}
    return {"document": [thing.id, thing.page_content, walk.describe(metadata)]}


InputWalk.forms = ((BaseMessage, _message), (Document, _document), *Walk.forms)

_UNSAID = frozenset({"id", "usage_metadata", "response_metadata"})


@dataclass(slots=True)
class Known:
    """What is known of the inputs of a run's nodes.

    Args:
        keys: The keys made for them, as LangGraph passes them on, each with the reason why nothing
            is cached under it; empty where there is none.
        ids: The ids of the messages in them.
    """

    keys: OrderedDict[str, str] = field(default_factory=OrderedDict)
    ids: set[str] = field(default_factory=set)


_known: WeakKeyDictionary[Frame, Known] = WeakKeyDictionary()
_lock = forking.Lock()


def known(frame: Frame | None) -> Known | None:
    """What `node_key` has seen in a frame, or `None`."""
    return None if frame is None else _known.get(frame)


def node_key(*args: Any, **kwargs: Any) -> str:
    """The key of a node's or task's input: for LangGraph's `CachePolicy(key_func=node_key)`.

    Equal for inputs that say the same to the same tenant, in every process: the order of a
    mapping's keys and the ids of messages do not count; dtype and shape of an array, the class of
    a pydantic model or dataclass, and every value in it do. What `Cache.using` has said (tenant,
    pool, permissions, factors) is part of it, and so is the tenant that the run names. What a node
    reads besides its input (`config`, `runtime.context`, a store) is not.

    An input that has no stable key gets one that never comes again, so that it is never taken for
    another; `NodeCache` tells of it and stores nothing. So does the input of a run whose stream
    is read in turns with another's in one thread or task: which of the two asks cannot be told.
    """
    frame = frames.current()
    walk = InputWalk()
    problem = ""
    try:
        key = digest("node/1", _whose(frame), walk.describe([list(args), kwargs]))
    except UnkeyableValue as error:
        problem = str(error)
    if frame is not None and not runs.alone(frame):
        problem = "two runs stand open here, and which of them asks cannot be told"
    if problem:
        key = secrets.token_hex(16)
    if frame is not None:
        _note(frame, key, problem, walk.ids)
    return key


def _whose(frame: Frame | None) -> Any:
    """Whose run it is, as far as it is said: the caches' own defaults are known to them alone."""
    every = ([one.tenant, one.pool, one.surroundings, *_version(one)] for one in said().values())
    telling = [canonical(one) for one in every if one != [None, None, ""]]
    return [frame.tenant if frame is not None else None, sorted(telling)]


def _version(said: Context) -> list[str]:
    return [] if said.world is None else [said.world.moment().version]


def _note(frame: Frame, key: str, problem: str, ids: set[str]) -> None:
    passed_on = xxh3_128_hexdigest(key.encode())  # LangGraph's own way to make it short
    with _lock:
        seen = _known.setdefault(frame, Known())
        seen.keys[passed_on] = problem
        seen.ids |= ids
        if len(seen.keys) > MOST:
            seen.keys.popitem(last=False)
