"""The family tree of an entry, as text and as a figure."""

import re
from xml.etree import ElementTree as ET

import networkx as nx
import pytest

import stemma
from stemma import Source, content_digest, frames
from stemma.legible import legible
from stemma.lineage.figure import drawn

ASK = "How do I reset my password?"
SVG = "{http://www.w3.org/2000/svg}"
TEXTS = ["Choose Forgotten at the login.", "Codes are valid for a day."]
OPAQUE = ("4f1d" * 16, "9c07" * 16)


@pytest.fixture
def cache():
    with stemma.open(":memory:", tenant="me", embedder=None) as cache:
        yield cache


def answered(cache, ids=OPAQUE):
    """Two chunks, a retrieval, a call that saw one of them, an answer: its family tree."""
    sources = [
        (Source(document="account.md", chunk=name, content=content_digest(text)), text)
        for name, text in zip(ids, TEXTS, strict=True)
    ]
    with cache.trace() as frame:
        frame.read_sources(sources, frames.marks())
        cache.retrievals.get_or_compute(ASK, lambda: TEXTS, index="docs")
        cache.calls.get_or_compute(
            ASK, lambda: "Forgotten.", model="m", exact=TEXTS[0], prompt=(TEXTS[0], ASK)
        )
        served = cache.answers.get_or_compute(ASK, lambda: "Choose: Forgotten.")
    return cache.lineage(served.stored.entry.id)


def printed(tree):
    return re.sub(r"[0-9a-f]{12} of", "# of", str(tree))


def lines(tree):
    """What the figure draws: the two ends of each line, by kind, and whether it is full."""
    root = ET.fromstring(tree._repr_svg_())
    boxes = {}
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        left, middle = float(rect.get("x")), float(rect.get("y")) + float(rect.get("height")) / 2
        kind = group.find(f"{SVG}title").text.split()[0]
        boxes[left, middle] = boxes[left + float(rect.get("width")), middle] = kind
    found = []
    for path in root.iter(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d"))]
        full = path.get("stroke-dasharray") is None
        found.append((boxes[*numbers[:2]], boxes[*numbers[-2:]], full))
    return sorted(found)


def test_each_source_is_printed_once_and_each_branch_ends_in_a_corner(cache):
    assert printed(answered(cache)) == (
        "answer # of me\n"
        "└─ built from\n"
        "   ├─ call # of me (observed)\n"
        "   │  └─ retrieval # of me\n"
        "   │     ├─ source account.md 4f1d4f1d (observed)\n"
        "   │     └─ source account.md 9c079c07 (observed)\n"
        "   └─ retrieval # of me …"
    )


def test_what_was_built_on_an_entry_is_printed_below_what_it_was_built_from(cache):
    graph = answered(cache).graph
    (retrieval,) = (node for node in graph if graph.nodes[node]["kind"] == "retrieval")
    assert printed(cache.lineage(retrieval)) == (
        "retrieval # of me\n"
        "├─ built from\n"
        "│  ├─ source account.md 4f1d4f1d (observed)\n"
        "│  └─ source account.md 9c079c07 (observed)\n"
        "└─ what was built on it\n"
        "   ├─ answer # of me\n"
        "   └─ call # of me\n"
        "      └─ answer # of me …"
    )


def test_a_chunk_whose_id_names_its_document_is_not_named_twice(cache):
    text = str(answered(cache, ids=("account.md#1", "account.md")))
    assert "source account.md#1 (observed)" in text
    assert "source account.md (observed)" in text


def test_the_figure_shows_what_was_observed_and_no_dashed_line_that_goes_without_saying(cache):
    assert lines(answered(cache)) == [
        ("call", "answer", True),
        ("retrieval", "call", False),
        ("source", "call", True),
        ("source", "retrieval", True),
        ("source", "retrieval", True),
    ]


def test_a_figure_of_a_circle_and_of_marks_in_labels():
    graph = nx.DiGraph([("a", "b"), ("b", "a")])
    for node in graph:
        graph.nodes[node].update(label=f"<{node}> & \x00" + "long " * 20, kind="answer")
    nx.set_edge_attributes(graph, "observed", "known")
    root = ET.fromstring(drawn(graph, "a"))
    titles = {title.text for title in root.iter(f"{SVG}title")}
    assert titles == {legible(graph.nodes[node]["label"]) for node in graph}
    assert all("…" in text.text and len(text.text) <= 31 for text in root.iter(f"{SVG}text"))
    assert len(list(root.iter(f"{SVG}path"))) == 2
