"""Graphs whose nodes note each call, and a cache whose events are kept."""

import itertools
import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy

import stemma
from stemma_langchain import NodeCache, node_key


class State(TypedDict, total=False):
    question: str
    out: Annotated[list, operator.add]


@pytest.fixture
def events():
    return []


@pytest.fixture
def cache(events):
    with stemma.open(embedder=None) as cache:
        cache.listen(events.append)
        yield cache


@pytest.fixture
def nodes(cache):
    return NodeCache(cache)


@pytest.fixture(scope="session")
def chained():
    """A graph of nodes that follow one another; those in a list run side by side."""

    def make(cache, *steps, policy=None, state=State, **compiled):
        policy = policy or CachePolicy(key_func=node_key)
        graph = StateGraph(state)
        before = START
        for step in steps:
            names = []
            for function in step if isinstance(step, list) else [step]:
                graph.add_node(function.__name__, function, cache_policy=policy)
                names.append(function.__name__)
            if isinstance(before, list) or len(names) == 1:
                graph.add_edge(before, names[0])
            else:
                for name in names:
                    graph.add_edge(before, name)
            before = names if len(names) > 1 else names[0]
        graph.add_edge(before, END)
        return graph.compile(cache=cache, **compiled)

    return make


def named(tenant):
    """The config of a run that names its tenant."""
    return {"metadata": {"tenant": tenant}}


@pytest.fixture(scope="session")
def of():
    return named


@pytest.fixture(scope="session")
def scripted_reply():
    """A chat model that gives one reply."""

    def make(reply):
        return GenericFakeChatModel(messages=itertools.repeat(reply))

    return make
