"""What is exported can be read by others, whatever tenants are called, and no two become one."""

import json
import math
import shutil
import subprocess
import xml.etree.ElementTree as ET

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stemma.legible import called
from stemma.propagation.exporting import as_json, dot, graphml

NASTY = [
    'a"b', "a\nb", "<&>", "]]>", "\x00", "\x01\x1b", "\ud800", "a\\", 'a\\"', "\u202eabc", "node",
    "graph", "subgraph", "strict", "digraph", "", " ", "  ", "a:b", "a:b:ne", "pool:x", "é", "客户",
    "->", "{}", "a  b", '"', "\\", "\\N", "\\n", "\u3164", "\ufffe", "1", "-1.5", "a;b", "//x",
    "#x", "/* x */", "&amp;", "&#0;", "<b>x</b>", "[x]", "a,b", "=",
]  # fmt: skip
NAMES = st.lists(
    st.text(st.characters() | st.sampled_from('\\":\n\x00\ud800<&]>'), max_size=8),
    min_size=1,
    max_size=6,
    unique=True,
)


def named(names):
    """A graph of tenants with these names in all places where a name may be, and a pool."""
    graph = nx.DiGraph()
    pool = ("pool", names[0])
    graph.add_node(pool, kind="pool", label=names[0])
    for name in names:
        graph.add_node(name, kind="tenant", label=name, answers=3, exposure=0.25)
        graph.add_edge(pool, name, kind="served", uses=1, strength=0.5, pools=(name, names[0]))
    return graph


def keys(graph):
    return sorted(map(called, graph))


@given(NAMES)
@example(NASTY)
@settings(deadline=None)
def test_json_has_every_name_once_and_networkx_reads_it(names):
    graph = named(names)
    told = json.loads(json.dumps(as_json(graph), allow_nan=False).encode())
    read = nx.node_link_graph(told, edges="edges")
    assert sorted(read) == keys(graph)
    assert read.number_of_edges() == graph.number_of_edges()
    assert read.nodes[called(names[0])]["exposure"] == 0.25


@given(NAMES)
@example(NASTY)
@settings(deadline=None)
def test_graphml_has_every_name_once_and_is_read_by_networkx_and_as_xml(names):
    graph = named(names)
    text = graphml(graph)
    read = nx.parse_graphml(text)
    assert sorted(read) == keys(graph)
    assert sorted(read.edges) == sorted((called(a), called(b)) for a, b in graph.edges)
    nodes = ET.fromstring(text.encode()).findall(".//{*}node")
    assert sorted(node.get("id") for node in nodes) == keys(graph)


@given(NAMES)
@example(NASTY)
@settings(deadline=None)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydot, about pyparsing
def test_dot_has_every_name_once_and_pydot_reads_it(names):
    pydot = pytest.importorskip("pydot")
    graph = named(names)
    (read,) = pydot.graph_from_dot_data(dot(graph))
    nodes = [node.get_name() for node in read.get_nodes() if node.get_name() != "node"]
    assert sorted(bare(name) for name in nodes) == keys(graph)
    assert len(read.get_edges()) == graph.number_of_edges()


def bare(name):
    return name.removeprefix('"').removesuffix('"').replace(r"\"", '"')


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_itself_reads_every_name_and_shows_it():
    graph = named(NASTY)
    ran = subprocess.run(
        ["dot", "-Tjson"], input=dot(graph).encode(), capture_output=True, check=True
    )
    told = json.loads(ran.stdout)
    assert ran.stderr == b""
    assert sorted(node["name"] for node in told["objects"]) == keys(graph)
    assert len(told["edges"]) == graph.number_of_edges()
    shown = subprocess.run(
        ["dot", "-Tsvg"],
        input=dot(named(["a\\nb", "&lt;"])).encode(),
        capture_output=True,
        check=True,
    )
    texts = [
        text.text for text in ET.fromstring(shown.stdout).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert sorted(texts) == sorted([r"a\\nb", r"a\\nb", "&lt;"])


@pytest.mark.parametrize("form", [as_json, graphml, dot])
def test_the_order_of_the_graph_does_not_matter(seen, form):
    graph = seen(8, 2, 2)
    other = nx.DiGraph()
    other.add_nodes_from(reversed(list(graph.nodes(data=True))))
    other.add_edges_from(reversed(list(graph.edges(data=True))))
    assert form(graph) == form(other)
    assert next(iter(graph)) == "tenant-00"  # nothing was changed


ODD = {
    "none": None, "nan": math.nan, "inf": -math.inf, "numpy": np.float32(0.5), "array": np.arange(2),
    "dict": {"a": {1: None}}, "tuple": ("a, b", "c"), "empty": (), "set": {"y", "x"}, "bytes": b"x",
    "object": object, "id": "mine", "source": 1, "target": 2, "node": True, 7: "seven", "a\nb": 1,
}  # fmt: skip


@pytest.mark.parametrize("form", [as_json, graphml, dot])
def test_no_attribute_breaks_it(form):
    graph = nx.DiGraph()
    graph.add_node("a", **{str(name): value for name, value in ODD.items()})
    graph.nodes["a"].update(ODD)
    graph.add_node("b", mixed="text", held=False, node=2)
    graph.add_node("c", mixed=1, held=True, node=1.5)
    graph.add_edge("a", "b")
    graph.edges["a", "b"].update(ODD)
    told = form(graph)
    assert len(json.dumps(told, allow_nan=False)) > 100
    if form is graphml:
        read = nx.parse_graphml(told)
        assert read.nodes["b"]["mixed"] == "text"
        assert read.nodes["c"]["mixed"] == "1"
        assert read.nodes["c"]["held"] is True
        assert read.nodes["a"]["tuple"] == r"a\, b, c"
        assert "none" not in read.nodes["a"]
        assert "nan" not in read.edges["a", "b"]


def test_json_keeps_what_json_has():
    graph = nx.DiGraph()
    graph.add_node("a", **{name: value for name, value in ODD.items() if isinstance(name, str)})
    (node,) = as_json(graph)["nodes"]
    assert node["id"] == "a"
    assert (node["nan"], node["none"], node["numpy"], node["array"]) == (None, None, 0.5, [0, 1])
    assert (node["tuple"], node["set"], node["dict"]) == (
        ["a, b", "c"],
        ["x", "y"],
        {"a": {"1": None}},
    )


def test_numbers_of_two_kinds_are_one_kind_in_graphml():
    graph = nx.DiGraph()
    graph.add_node("a", wrong=1)
    graph.add_node("b", wrong=0.5)
    text = graphml(graph)
    assert text.count('attr.name="wrong"') == 1
    assert nx.parse_graphml(text).nodes["a"]["wrong"] == 1.0


def test_an_empty_graph_is_exported():
    empty = nx.DiGraph()
    assert as_json(empty)["nodes"] == []
    assert len(nx.parse_graphml(graphml(empty))) == 0
    assert dot(empty).startswith("digraph")
