"""A scripted model, a retriever, and the edges that a cache stored of what they said."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever

from evals.rag.plans import document
from stemma import Cache, Selector
from stemma_langchain.codec import CODEC

__all__ = ["Shelf", "Speaker", "item_in", "said", "spoken", "stored_edges"]

_ITEM = re.compile(r"item-\w+")


def item_in(said: Any) -> str:
    """The item that a text speaks of."""
    return str(_ITEM.findall(str(said))[-1])


def spoken(who: str, prompt: str) -> str:
    """What somebody says of the item in a prompt, at enough length to be found again."""
    return f"{who} {item_in(prompt)} is what this says, and nothing else says it"


def said(payload: bytes) -> str:
    """What a stored call of a model said."""
    text: str = CODEC.decode(payload)[0].text
    return text


class Speaker(BaseChatModel):
    """A chat model that says who it is and of which item the prompt spoke."""

    who: str

    @property
    def _llm_type(self) -> str:
        return "speaker"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"who": self.who}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: Any = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        prompt = " ".join(message.text for message in messages)
        message = AIMessage(spoken(self.who, prompt))
        return ChatResult(generations=[ChatGeneration(message=message)])


class Shelf(BaseRetriever):
    """One document an item, for one who asks; nobody wrapped it."""

    who: str

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
    ) -> list[Document]:
        item = item_in(query)
        return [Document(f"all that {self.who} reads of {item}", id=f"{document(self.who)} {item}")]


def stored_edges(cache: Cache, said: Callable[[bytes], str] = said) -> set[tuple[str, str]]:
    """Every edge from a stored call to a call or a document, each as who and item.

    Args:
        cache: The cache.
        said: Gives what a stored call said, of its payload.
    """
    store = cache.engine.parts.store
    named = {}
    for entry in store.find(Selector(node="call"), limit=10**9):
        named[entry.id] = " ".join(said(entry.payload).split()[:2])
    edges = set()
    for entry_id, name in named.items():
        lineage = store.lineage(entry_id)
        if lineage is not None:
            edges |= {(name, named[edge.parent]) for edge in lineage.parents}
            edges |= {(name, edge.source.chunk) for edge in lineage.sources}
    return edges
