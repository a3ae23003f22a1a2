"""Plans as graphs of LangGraph: every asker is a node.

A graph goes step by step, and what one step wrote all nodes of the next can see. So here an asker
is built on all that was asked and read in earlier steps, in whichever branch.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig, RunnableLambda

from evals.measuring import Skipped
from evals.rag.plans import Ask, InTurn, Plan, askers, document
from evals.rag.sequences import asking
from stemma import Cache

__all__ = ["built", "true_edges"]

Follows = list[tuple[list[str], str]]
"""Each node that follows others, with all of those."""


class State(TypedDict):
    """The item, and what was said of it so far."""

    item: str
    said: Annotated[list[str], operator.add]


def built(cache: Cache, plan: Plan) -> Any:
    """A graph behind a runnable that takes an item."""
    try:
        from langgraph.graph import END, START, StateGraph  # noqa: PLC0415 - optional
    except ModuleNotFoundError as missing:
        raise Skipped("LangGraph is not installed") from missing
    builder: Any = StateGraph(State)
    for ask in askers(plan):
        builder.add_node(ask.who, _node(asking(cache, ask)))
    follows: Follows = []
    ends = _joined(plan, [START], follows)
    for before, node in follows:
        builder.add_edge(before if before != [START] else START, node)
    builder.add_edge(ends, END)
    started: Any = RunnableLambda(lambda item: {"item": item, "said": []})
    return started | builder.compile()


def true_edges(plan: Plan) -> set[tuple[str, str]]:
    """Every asker with all that was asked and read in earlier steps, and what it read itself."""
    follows: Follows = []
    _joined(plan, [], follows)
    step: dict[str, int] = {}
    for before, node in follows:
        step[node] = 1 + max((step[one] for one in before), default=0)
    read = {ask.who for ask in askers(plan) if ask.reads}
    edges = {(node, document(node)) for node in read}
    for node, at in step.items():
        earlier = {one for one, when in step.items() if when < at}
        edges |= {(node, one) for one in earlier}
        edges |= {(node, document(one)) for one in earlier & read}
    return edges


def _node(chain: Any) -> RunnableLambda[State, dict[str, list[str]]]:
    def said(state: State, config: RunnableConfig) -> dict[str, list[str]]:
        return {"said": [chain.invoke(f"{state['said']} {state['item']}", config)]}

    async def asaid(state: State, config: RunnableConfig) -> dict[str, list[str]]:
        return {"said": [await chain.ainvoke(f"{state['said']} {state['item']}", config)]}

    return RunnableLambda(said, afunc=asaid)


def _joined(plan: Plan, before: list[str], follows: Follows) -> list[str]:
    """Put a plan after some nodes; gives the nodes that it ends with."""
    if isinstance(plan, Ask):
        follows.append((before, plan.who))
        return [plan.who]
    if isinstance(plan, InTurn):
        for part in plan.parts:
            before = _joined(part, before, follows)
        return before
    return [end for part in plan.parts for end in _joined(part, before, follows)]
