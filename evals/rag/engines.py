"""Plans as query engines of LlamaIndex: one asks its parts in turn, or gathers them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from evals.rag.plans import Ask, InTurn, Plan, document
from evals.rag.scripted import item_in, spoken
from stemma import Cache
from stemma_llamaindex import CachedLLM
from stemma_llamaindex.codec import CODEC

__all__ = ["built", "said"]


class SpeakerLLM(CustomLLM):
    """A completion model that says who it is and of which item the prompt spoke."""

    who: str

    @property
    def metadata(self) -> LLMMetadata:
        """Its name."""
        return LLMMetadata(model_name=self.who)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        """What it says."""
        del formatted
        return CompletionResponse(text=spoken(self.who, prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """The same in one piece."""
        whole = self.complete(prompt, formatted, **kwargs)
        yield whole.model_copy(update={"delta": whole.text})


class ShelfRetriever(BaseRetriever):
    """One node an item, for one who asks; nobody wrapped it."""

    def __init__(self, who: str) -> None:
        super().__init__()
        self.who = who

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        item = item_in(query_bundle.query_str)
        text = f"all that {self.who} reads of {item}"
        return [NodeWithScore(node=TextNode(id_=f"{document(self.who)} {item}", text=text))]


class Asking(CustomQueryEngine):
    """One who asks the model, after a retriever where the plan says so."""

    ask: Ask
    llm: Any

    def custom_query(self, query_str: str) -> Response:
        """Ask."""
        found = ShelfRetriever(self.ask.who).retrieve(query_str) if self.ask.reads else []
        return Response(self.llm.complete(self._prompt(query_str, found)).text)

    async def acustom_query(self, query_str: str) -> Response:
        """As `custom_query`."""
        shelf = ShelfRetriever(self.ask.who)
        found = await shelf.aretrieve(query_str) if self.ask.reads else []
        return Response((await self.llm.acomplete(self._prompt(query_str, found))).text)

    def _prompt(self, given: str, found: Sequence[NodeWithScore]) -> str:
        read = " ".join(one.text for one in found)
        return item_in(given) if self.ask.silent else f"{read} {given}"


class Several(CustomQueryEngine):
    """Asks others in turn, or gathers them; what is said of each comes out together."""

    parts: list[Any]
    in_turn: bool

    def custom_query(self, query_str: str) -> Response:
        """In turn: each is given what the one before said."""
        assert self.in_turn, "nothing is gathered without an event loop"
        for part in self.parts:
            query_str = str(part.query(query_str))
        return Response(query_str)

    async def acustom_query(self, query_str: str) -> Response:
        """In turn, or all at once with what was given."""
        if not self.in_turn:
            told = await asyncio.gather(*(part.aquery(query_str) for part in self.parts))
            return Response(" ".join(map(str, told)))
        for part in self.parts:
            query_str = str(await part.aquery(query_str))
        return Response(query_str)


class Running:
    """An engine that is called as LangChain's runnables are.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: CustomQueryEngine) -> None:
        self.engine = engine

    def invoke(self, item: str) -> Any:
        """Ask."""
        return self.engine.query(item)

    async def ainvoke(self, item: str) -> Any:
        """As `invoke`."""
        return await self.engine.aquery(item)


def built(cache: Cache, plan: Plan) -> Running:
    """What runs a plan."""
    return Running(_engine(cache, plan))


def said(payload: bytes) -> str:
    """What a stored call of a model said."""
    response: CompletionResponse = CODEC.decode(payload)
    return response.text


def _engine(cache: Cache, plan: Plan) -> CustomQueryEngine:
    if isinstance(plan, Ask):
        return Asking(ask=plan, llm=CachedLLM(cache, SpeakerLLM(who=plan.who)))
    parts = [_engine(cache, part) for part in plan.parts]
    return Several(parts=parts, in_turn=isinstance(plan, InTurn))
