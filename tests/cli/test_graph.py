"""`stemma graph` shows how answers travel, writes it to files, and refuses what it cannot do."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import networkx as nx
import pytest

from stemma import Cache
from stemma.cli import targets


@dataclass(frozen=True)
class Travels:
    """What a cache tells of its tenants; its graph has the exposure that was reckoned."""

    exposure: float | None = None
    sources: bool = False

    @property
    def graph(self):
        graph = nx.DiGraph()
        for name in ("acme", "glo\nbex"):
            graph.add_node(name, kind="tenant", label=name, answers=4, exposure=self.exposure)
        graph.add_edge("acme", "glo\nbex", kind="served", uses=2, strength=0.5)
        if self.sources:
            graph.add_node(("source", None, "客户.md"), kind="source", label="客户.md")
        return graph

    def spread(self, *seeds):
        return replace(self, exposure=0.25 * len(seeds))


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of the cache, which answers with travels that never were."""
    seen: list[dict] = []

    def propagation(self, **options):
        seen.append(options)
        return Travels(sources=options["sources"])

    monkeypatch.setattr(Cache, "propagation", propagation, raising=False)
    return seen


@pytest.fixture
def graph(stemma_, made, asked):
    return lambda *words: stemma_("graph", "--db", made.path, *words)


def exposures(ran):
    return [node["exposure"] for node in json.loads(ran.out)["nodes"]]


def test_the_graph_is_shown_as_text(graph):
    ran = graph()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("2 tenants, 1 edge\n")
    assert r"glo\nbex" in ran.out


def test_what_is_asked_for_is_asked_of_the_cache(graph, asked):
    graph()
    graph("--entries", "--sources", "--tools", "--half-life", "0.5")
    nothing = {"entries": False, "sources": False, "tools": False}
    everything = {"entries": True, "sources": True, "tools": True, "half_life": 43200.0}
    assert asked == [nothing, everything]


def test_seeds_are_named_by_the_beginning_of_their_ids(graph, made):
    assert exposures(graph("--json")) == [None, None]
    assert exposures(graph("--json", "--seed", made.answer[:12])) == [0.25, 0.25]
    two = graph("--json", "--seed", made.answer, "--seed", made.shipping)
    assert exposures(two) == [0.5, 0.5]


def test_every_form_is_written_to_its_file(graph, tmp_path):
    pytest.importorskip("matplotlib")
    files = {name: tmp_path / f"[{name}]" for name in ("graphml", "dot", "png")}
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    ran = graph("--sources", *options)
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if line.startswith("written to")] == [
        f"written to {path}" for path in files.values()
    ]
    assert len(nx.parse_graphml(files["graphml"].read_text("utf-8"))) == 3
    assert '"source:\\N:客户.md"' in files["dot"].read_text("utf-8")
    assert files["png"].read_bytes().startswith(b"\x89PNG")


def test_text_forms_go_to_standard_output_and_nothing_else_does(graph, tmp_path):
    assert len(nx.parse_graphml(graph("--graphml", "-").out)) == 2
    file = tmp_path / "graph.dot"
    ran = graph("--dot", "-", "--graphml", file)
    assert ran.out.startswith("digraph")
    assert ran.out.endswith("}\n")
    assert file.exists()
    assert len(json.loads(graph("--json", "--dot", file).out)["nodes"]) == 2
    assert file.read_text("utf-8") == ran.out


WRONG = {
    "a picture to standard output": ["--png", "-"],
    "two forms to standard output": ["--graphml", "-", "--dot", "-"],
    "JSON and another to standard output": ["--json", "--dot", "-"],
    "two forms in one file": ["--graphml", "{}/same", "--png", "{}/same"],
    "no such folder": ["--dot", "{}/nowhere/graph.dot"],
    "a name that is too long": ["--dot", "{}/" + "x" * 300],
    "a folder": ["--graphml", "{}"],
    "an unknown seed": ["--seed", "f00"],
    "the cache's own file": ["--dot", "{}/answers.db"],
    "no number of days": ["--half-life", "soon"],
    "no days": ["--half-life", "0"],
    "days that are none": ["--half-life", "nan"],
    "an option that is none": ["--svg", "{}/graph.svg"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_usage_is_told_before_anything_is_written(graph, made, tmp_path, words):
    before = made.path.read_bytes(), sorted(tmp_path.iterdir())
    ran = graph(*(word.format(tmp_path) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err
    if not ran.err.startswith("Usage"):  # Typer's own
        assert ran.err.startswith("stemma: ")
        assert ran.err.count("\n") == 1
    assert (made.path.read_bytes(), sorted(tmp_path.iterdir())) == before


def test_a_missing_cache_is_named_and_not_made(stemma_, tmp_path):
    ran = stemma_("graph", "--db", tmp_path / "none.db")
    assert (ran.code, "there is no cache" in ran.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_a_picture_is_refused_and_the_rest_is_not(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(targets, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = graph("--png", tmp_path / "graph.png", "--dot", tmp_path / "graph.dot")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "stemma: --png needs matplotlib: pip install matplotlib\n"
    assert not (tmp_path / "graph.dot").exists()
    assert graph("--dot", tmp_path / "graph.dot").code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full disk at hand")
def test_a_full_disk_is_an_error_of_one_line(graph):
    ran = graph("--dot", "/dev/full")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "stemma: cannot write /dev/full: No space left on device\n"
