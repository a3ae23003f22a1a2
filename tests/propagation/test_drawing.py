"""The graph as a figure, as SVG and as text: all of it is there, nothing collides, it fits."""

import io
import math
import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stemma.errors import MissingDependency, UsageError
from stemma.legible import called, cells, legible
from stemma.propagation import excerpt
from stemma.propagation.appearance import EXPOSED, UNKNOWN, greatest, link, shade, width
from stemma.propagation.drawing import figure
from stemma.propagation.lanes import LANES, timeline
from stemma.propagation.layout import laid_out
from stemma.propagation.picture import svg
from stemma.propagation.spots import FONT
from stemma.propagation.table import text

SVG = "{http://www.w3.org/2000/svg}"
NAMES = st.lists(st.text(max_size=30), min_size=1, max_size=8, unique=True)
NASTY = [
    "$a_b$ $",
    "$\\frac{$",
    "客户",
    "\x00",
    "\ud800",
    "",
    "a\nb",
    "<&>",
    "x" * 500,
    "\u202eabc",
]


def bare(*names):
    graph = nx.DiGraph()
    graph.add_nodes_from(names, kind="tenant")
    return graph


def written(drawn) -> list[str]:
    """All that is written beside nodes."""
    return [label.get_text() for label in drawn.axes[0].texts]


def png(drawn) -> bytes:
    file = io.BytesIO()
    drawn.savefig(file, format="png", dpi=60)
    return file.getvalue()


@pytest.mark.parametrize(
    "shape", [(3, 1), (12, 2, 3), (24, 3, 3), (3, 0), (12, 0), (14, 0), (30, 0)]
)
def test_everything_is_drawn_and_no_label_lies_on_another(seen, shape):
    pytest.importorskip("matplotlib")
    graph = seen(*shape)
    drawn = figure(graph, title="Where it went")
    png(drawn)
    labels = drawn.axes[0].texts
    assert sorted(written(drawn)) == sorted(said["label"] for _, said in graph.nodes(data=True))
    boxes = [label.get_window_extent() for label in labels]
    inside = drawn.axes[0].get_window_extent()
    if shape != (30, 0):  # turned labels: their boxes overlap, they do not
        assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)
    assert all(inside.y0 <= box.y0 and box.y1 <= inside.y1 for box in boxes)


def test_the_labels_of_many_on_a_circle_are_turned_apart(seen):
    spots = laid_out(seen(60, 0)).spots.values()
    turns = sorted(round(spot.turn % 180, 3) for spot in spots)
    assert len(set(turns)) == 30  # both ends of each diameter are turned alike
    pairs = list(combinations(spots, 2))
    apart = [math.dist((a.x, a.y), (b.x, b.y)) - a.wide - b.wide for a, b in pairs]
    assert min(apart) > 0
    anchored = [math.dist(a.anchor, b.anchor) for a, b in pairs]
    assert min(anchored) > 1.2 * FONT / 72  # the height of a line
    assert all(-90 <= (spot.turn + 90) % 360 - 90 <= 90 for spot in spots)  # none is upside down


def test_pools_are_in_the_middle_of_who_gives_and_who_takes():
    graph = nx.DiGraph()
    pool, source = ("pool", "support"), ("source", None, "terms.md")
    graph.add_nodes_from(["gives", "takes", "both"], kind="tenant")
    graph.add_node(pool, kind="pool")
    graph.add_node(source, kind="source")
    graph.add_edge("gives", pool, kind="promoted", strength=0.2)
    graph.add_edge(pool, "takes", kind="served", strength=0.2)
    graph.add_edge("both", pool, kind="promoted", strength=0.1)
    graph.add_edge(pool, "both", kind="served", strength=0.9)
    graph.add_edge(source, "gives", kind="source", strength=0.9)
    x = {node: spot.x for node, spot in laid_out(graph).spots.items()}
    assert x[source] < x["gives"] < x[pool] < x["takes"] == x["both"]


def test_the_same_graph_is_drawn_the_same_way_whatever_its_order_and_exposures(seen):
    graph = seen(12, 2, 2)
    other = nx.DiGraph()
    other.add_nodes_from(reversed(list(graph.nodes)))
    for node in other:
        other.nodes[node].update(graph.nodes[node])
        other.nodes[node].pop("exposure", None)
    other.add_edges_from(reversed(list(graph.edges(data=True))))
    one, same = (laid_out(excerpt.excerpt(each).graph) for each in (graph, other))
    assert one.spots == same.spots
    assert one.arcs == same.arcs
    assert svg(graph) == svg(graph)
    assert svg(graph) != svg(other)


def test_colours_say_exposure_and_grey_that_none_was_reckoned():
    told = [{"kind": "tenant", "exposure": value} for value in (0.0, 0.1, 0.2, 0.5)]
    graph = nx.DiGraph()
    graph.add_nodes_from((str(at), said) for at, said in enumerate(told[:3]))
    assert greatest(graph) == 0.2
    assert shade(told[0], 0.2) == EXPOSED[0]
    assert shade(told[1], 0.2) == EXPOSED[4]
    assert shade(told[2], 0.2) == shade(told[3], 0.2) == EXPOSED[-1]
    assert shade({"kind": "tenant"}, 0.2) == UNKNOWN
    assert greatest(bare("a")) is None
    light = [sum(bytes.fromhex(colour[1:])) for colour in EXPOSED]
    assert light == sorted(light, reverse=True)


def test_a_scale_of_colours_is_shown_where_a_spread_was_reckoned(seen):
    pytest.importorskip("matplotlib")
    assert len(figure(seen(3)).axes) == 2
    assert len(figure(seen(3, exposed=False)).axes) == 1
    assert figure(seen(3), most=0.25).axes[1].get_ylim() == (0.0, 0.25)


def test_what_came_through_a_pool_looks_otherwise():
    graph = bare("a", "b", "c")
    graph.add_edge("a", "b", kind="served", pools=("support",))
    assert {link(said) for *_, said in graph.edges(data=True)} == {"pooled"}
    assert "→ served, through a pool too" in svg(graph)
    assert link({"kind": "served", "pools": ()}) == "served"
    assert link({"kind": "unheard of"}) == link({}) == "built"


def test_a_stronger_edge_is_wider_and_an_unknown_one_thin():
    assert width({"strength": 0.0}) == width({}) == width({"strength": "?"}) == 0.6
    assert width({"strength": 0.5}) < width({"strength": 1.0}) == width({"strength": 7.0}) == 5.0


def test_of_a_large_graph_the_most_exposed_are_drawn_and_the_rest_is_counted(seen):
    graph = seen(200, 2)
    part = excerpt.excerpt(graph)
    assert (len(part.graph), part.nodes) == (excerpt.NODES, 202 - excerpt.NODES)
    assert {("pool", "pool-0"), ("pool", "pool-1")} <= set(part.graph)
    least = min(said.get("exposure", 1.0) for _, said in part.graph.nodes(data=True))
    left = [said["exposure"] for node, said in graph.nodes(data=True) if node not in part.graph]
    assert max(left) <= least
    assert "142 less exposed" in svg(graph)
    assert excerpt.excerpt(seen(3)).remark == ""


def test_of_many_edges_the_strongest_are_drawn():
    graph = nx.complete_graph(20, nx.DiGraph)
    graph = nx.relabel_nodes(graph, str)
    nx.set_node_attributes(graph, "tenant", "kind")
    for at, edge in enumerate(graph.edges):
        graph.edges[edge]["strength"] = at / 380
    graph.add_edge("0", "0", strength=1.0)  # not drawn, not counted
    part = excerpt.excerpt(graph)
    assert (part.graph.number_of_edges(), part.edges) == (excerpt.EDGES, 380 - excerpt.EDGES)
    assert min(said["strength"] for *_, said in part.graph.edges(data=True)) == 140 / 380
    assert "140 weaker edges" in svg(graph)


@given(NAMES)
@example(NASTY)
@settings(deadline=None, max_examples=30)
def test_any_name_can_be_shown(names):
    graph = bare(*names)
    graph.add_node(("pool", names[0]), kind="pool", label=names[0])
    nx.add_path(graph, names, kind="served", strength=0.5)
    titles = [title.text for title in ET.fromstring(svg(graph).encode()).iter(f"{SVG}title")]
    own = legible(names[0]) if names[0] else called(("pool", ""))
    assert sorted(titles) == sorted([*map(called, names), own])
    assert all(line.isprintable() and cells(line) <= 80 for line in text(graph).splitlines())


def test_any_name_can_be_drawn():
    pytest.importorskip("matplotlib")
    graph = bare(*NASTY)
    assert png(figure(graph, title="$x$ \x07")).startswith(b"\x89PNG")  # a warning is an error here
    assert r"\u5ba2\u6237" in written(figure(graph))


@pytest.mark.parametrize("show", [figure, svg, text])
def test_attributes_may_be_missing_and_the_graph_empty(show):
    if show is figure:
        pytest.importorskip("matplotlib")
    graph = nx.DiGraph()
    assert show(graph)
    graph.add_edge("a", "b")
    graph.add_edge("b", "b")
    graph.add_edge(("entry", "1"), "a", kind="unheard of", strength=None)
    assert show(graph)
    assert len(graph) == 3


def test_without_matplotlib_it_says_what_to_install_and_svg_and_text_do_without(seen, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match="pip install matplotlib"):
        figure(seen())
    with pytest.raises(MissingDependency, match="pip install matplotlib"):
        timeline([])
    assert svg(seen(12, 2, 2)).startswith("<svg")
    assert text(seen(12, 2, 2))


def test_svg_has_all_nodes_and_edges_and_tells_their_figures(seen):
    graph = seen(12, 2, 3)
    graph.nodes["tenant-00"].update(answers=1200, exposure=0.125)
    root = ET.fromstring(svg(graph))
    assert len(list(root.iter(f"{SVG}path"))) == graph.number_of_edges()
    assert len(list(root.iter(f"{SVG}circle"))) == 12
    titles = {title.text for title in root.iter(f"{SVG}title")}
    assert "tenant-00: 1,200 answers, 12.5% expected to be wrong" in titles
    assert "pool-0" in titles


def test_text_has_the_most_exposed_tenants_and_the_strongest_edges_first(seen):
    graph = bare("a\nb", "calm", "given most")
    graph.nodes["a\nb"].update(answers=10, exposure=0.5, wrong=5.0, entries=2)
    graph.nodes["calm"].update(answers=20, exposure=0.0)
    graph.nodes["given most"].update(answers=1_000_000)
    graph.add_node(("pool", "support"), kind="pool")
    graph.add_edge("calm", ("pool", "support"), kind="promoted", uses=3, strength=0.25)
    way = {"kind": "served", "uses": 1, "strength": 0.75, "attenuation": 0.5}
    graph.add_edge("calm", "a\nb", **way, pools=("support", "b\n"))
    assert text(graph).splitlines() == [
        "3 tenants, 1 pool, 2 edges",
        "",
        "tenant        answers  entries  exposure  expected wrong",
        r"a\nb               10        2     50.0%             5.0",
        "calm               20        -      0.0%               -",
        "given most  1,000,000        -         -               -",
        "",
        "from  to            how               uses  strength  passes",
        r"calm  a\nb          via support, b\n     1     75.0%   50.0%",
        "calm  pool:support  promoted             3     25.0%       -",
    ]
    assert text(bare("acme")).endswith("\n\nno answer has gone from one tenant to another")
    many = text(seen(100, 2))
    assert "… and 80 more tenants" in many
    assert "… and 80 more edges" in many


STORY = [
    (7200.0, "quarantined", "globex", "2 entries"),
    (0.0, "made", "acme", None),
    (60.0, "promoted", "acme", "support"),
    (3600.0, "served", "globex", None),
    (5000.0, "built", "initech", None),
    (7100.0, "reported", "globex", "no"),
    (7300.0, "released", "globex", None),
    (9000.0, "recalled", "", None),
    (9000.0, "unheard of", "$x$ 客户", None),
]  # fmt: skip


def test_the_time_line_has_a_lane_a_tenant_and_counts_who_was_reached():
    pytest.importorskip("matplotlib")
    drawn = timeline(STORY, title="The $story$")
    png(drawn)
    above, below = drawn.axes
    lanes = [label.get_text() for label in below.get_yticklabels()]
    assert lanes == ["acme", "globex", "initech", "(all)", r"$x$ \u5ba2\u6237"]
    (steps,) = (line for line in above.lines if line.get_drawstyle() == "steps-post")
    assert list(steps.get_ydata()) == [1, 1, 2, 3, 3, 3, 3, 3, 3]
    assert list(steps.get_xdata())[:4] == [0.0, 60 / 3600, 1.0, 5000 / 3600]
    assert below.get_xlabel() == "hours since 1970-01-01 00:00:00 UTC"
    assert len(below.get_legend().get_texts()) == 9


def test_a_time_line_of_nothing_of_one_moment_and_of_many_tenants():
    pytest.importorskip("matplotlib")
    for events in ([], STORY[:1], STORY[:1] * 3):
        assert png(timeline(events)).startswith(b"\x89PNG")
    many = timeline((float(at), "served", f"t{at}", None) for at in range(LANES + 5))
    assert "not drawn: 5 tenants" in many.axes[1].get_xlabel()


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_time_that_is_none_is_refused(at):
    with pytest.raises(UsageError, match="a time"):
        timeline([(at, "made", "a", None)])
