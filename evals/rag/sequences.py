"""Plans as chains of LangChain's expression language: sequences and parallel branches."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

from evals.rag.plans import Ask, InTurn, Plan
from evals.rag.scripted import Shelf, Speaker, item_in
from stemma import Cache
from stemma_langchain import LLMCache

__all__ = ["asking", "built"]


def built(cache: Cache, plan: Plan) -> Any:
    """A chain from an item, or what was said of it, to what is said at the end."""
    if isinstance(plan, Ask):
        return asking(cache, plan)
    parts = [built(cache, part) for part in plan.parts]
    if isinstance(plan, InTurn):
        return reduce(or_, parts)
    return RunnableParallel({f"branch{number}": part for number, part in enumerate(parts)})


def asking(cache: Cache, ask: Ask) -> Any:
    """One who asks the model, after a retriever where the plan says so."""
    shown: Any = RunnableLambda(item_in if ask.silent else str)
    model = Speaker(who=ask.who, cache=LLMCache(cache))
    asked = shown | ChatPromptTemplate.from_template("{x}") | model | StrOutputParser()
    if not ask.reads:
        return asked
    search = RunnableLambda(str) | Shelf(who=ask.who)
    return RunnableParallel(documents=search, said=RunnablePassthrough()) | asked
