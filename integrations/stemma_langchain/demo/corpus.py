"""What the demo's chain reads: the docstrings of networkx, or a folder of Markdown and text.

A `Corpus` is pages of plain text. `split` cuts them into the chunks that are indexed, `questions`
gives what is asked of them, `edited` changes a page as its author might.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stemma.errors import MissingDependency, UsageError
from stemma_langchain.demo.questions import NETWORKX_QUESTIONS, Question, headings, made_from

if TYPE_CHECKING:
    from langchain_core.documents import Document

__all__ = [
    "Corpus",
    "Page",
    "Skipped",
    "edited",
    "folder_corpus",
    "networkx_corpus",
    "questions",
    "split",
]

CHUNK = 700
"""Characters in a chunk at most: about 170 tokens, inside MiniLM's window of 256."""

LARGEST = 2 * 1024 * 1024
"""Bytes of a file at most; a larger one is skipped and reported."""

SUFFIXES = frozenset({".markdown", ".md", ".mdx", ".rst", ".text", ".txt"})

MODULES = tuple(
    """
    algorithms/shortest_paths/generic algorithms/shortest_paths/weighted
    algorithms/shortest_paths/unweighted algorithms/simple_paths algorithms/distance_measures
    algorithms/centrality/betweenness algorithms/centrality/degree_alg
    algorithms/centrality/eigenvector algorithms/link_analysis/pagerank_alg
    algorithms/link_analysis/hits_alg algorithms/tree/mst algorithms/tree/recognition
    algorithms/traversal/breadth_first_search algorithms/traversal/depth_first_search
    algorithms/flow/maxflow algorithms/flow/mincost algorithms/community/louvain
    algorithms/community/label_propagation algorithms/community/modularity_max
    algorithms/components/connected algorithms/connectivity/connectivity
    algorithms/bipartite/basic algorithms/bridges algorithms/clique algorithms/cluster
    algorithms/core algorithms/cycles algorithms/dag algorithms/euler
    algorithms/isomorphism/isomorph algorithms/matching algorithms/planarity
    generators/classic generators/random_graphs generators/social drawing/layout
    readwrite/edgelist readwrite/graphml relabel
    """.split()  # noqa: SIM905 - a block of words is easier to read than forty quoted lines
)
"""The modules of networkx that are read, without `.py`; one that a release lacks is left out."""

# reStructuredText and numpydoc, made plain.
SECTION = re.compile(r"^[ \t]*(?P<name>[A-Z][A-Za-z ]+?)[ \t]*\n[ \t]*-{3,}[ \t]*$", re.MULTILINE)
LEFT_OUT = frozenset(
    {"example", "examples", "other parameters", "parameters", "references", "see also"}
)
ROLE = re.compile(r":[a-z]+(?::[a-z]+)?:`~?([^`<]+?)(?:\s*<[^`>]*>)?`")
CITATION = re.compile(r"\s*\[[^\]\s]+\]_")
DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:[\w-]+::|_[^\n]+:)[^\n]*\n?", re.MULTILINE)
DOCTEST = re.compile(r"^[ \t]*(?:# )?>>> .*(?:\n[ \t]*\S.*)*\n?", re.MULTILINE)
BLANKS = re.compile(r"\n{3,}")

# Markdown (and the underlined headings that reStructuredText shares with it).
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One document: its id, what it is called, and its plain text."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A file that is not in the corpus, and why."""

    id: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """Pages in a fixed order, where they are from, and what was left out.

    Args:
        name: What it is called.
        pages: At least one.
        skipped: The files that could not be read.
        asked: Questions written for these very pages; None where they are made from headings.
    """

    name: str
    pages: tuple[Page, ...]
    skipped: tuple[Skipped, ...] = ()
    asked: tuple[Question, ...] | None = None


def networkx_corpus() -> Corpus:
    """The docstrings of the installed networkx: a page for each public function or class.

    The source is parsed and never executed. A page's id is the dotted name,
    `networkx.algorithms.dag.topological_sort`. Lists of parameters, examples,
    references and mark-up are left out.

    Raises:
        MissingDependency: networkx is not installed as source files.
    """
    spec = find_spec("networkx")
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    pages = tuple(
        page for folder in folders for name in MODULES for page in _module_pages(folder, name)
    )
    if not pages:
        raise MissingDependency(
            "The sources of networkx are not to be found: pip install networkx, or name a folder "
            "of your own with --docs"
        )
    return Corpus(name="networkx", pages=pages, asked=NETWORKX_QUESTIONS)


def folder_corpus(path: Path) -> Corpus:
    """The Markdown and text files in a folder and below it, in the order of their names.

    A page's id is its path within the folder, with `/`. What cannot be read as UTF-8 text is
    skipped and reported; hidden files and folders are passed over.

    Raises:
        UsageError: There is no such folder, or nothing in it that can be read.
    """
    if not path.is_dir():
        raise UsageError(f"docs is {str(path)!r}: there is no such folder")
    read = [_read(file, name) for name, file in sorted(_text_files(path))]
    pages = tuple(page for page in read if isinstance(page, Page))
    skipped = tuple(page for page in read if isinstance(page, Skipped))
    if not pages:
        reasons = "; ".join(f"{file.id}: {file.reason}" for file in skipped[:3])
        raise UsageError(
            f"docs is {str(path)!r}: no text in it, looking for {', '.join(sorted(SUFFIXES))}"
            + (f" ({reasons})" if reasons else "")
        )
    return Corpus(name=path.resolve().name, pages=pages, skipped=skipped)


def split(pages: Iterable[Page]) -> list[Document]:
    """The pages cut into chunks of at most `CHUNK` characters, each under its page's title.

    A chunk's id is `<page id>#<number from 0>`; its metadata name the page as `source`.

    Raises:
        MissingDependency: `langchain-text-splitters` is not installed.
    """
    try:
        from langchain_core.documents import Document  # noqa: PLC0415 - loaded at its first use
        from langchain_text_splitters import (  # noqa: PLC0415 - loaded at its first use
            RecursiveCharacterTextSplitter,
        )
    except ImportError as error:
        raise MissingDependency(
            "Splitting needs langchain-text-splitters: pip install 'stemma-cache[demo]'"
        ) from error
    chunks: list[Document] = []
    for page in pages:
        title = page.title[: CHUNK // 4]
        cutter = RecursiveCharacterTextSplitter(
            chunk_size=CHUNK - len(title) - 1, chunk_overlap=0, keep_separator="end"
        )
        chunks += [
            Document(
                id=f"{page.id}#{n}", page_content=f"{title}\n{piece}", metadata={"source": page.id}
            )
            for n, piece in enumerate(cutter.split_text(page.text))
        ]
    return chunks


def questions(corpus: Corpus) -> tuple[Question, ...]:
    """The questions written for the corpus, else those made from its headings."""
    return corpus.asked if corpus.asked is not None else made_from(p.text for p in corpus.pages)


def edited(page: Page) -> Page:
    """The page as its author might change it: a notice now stands before its text."""
    notice = f"Notice: this page on {page.title} was revised. Earlier copies of it are out of date."
    return replace(page, text=f"{notice}\n\n{page.text}")


def _module_pages(folder: str, name: str) -> Iterator[Page]:
    """The pages of one module, in the order of its source; none if the module is not there."""
    file = Path(folder, f"{name}.py")
    if not file.is_file():
        return
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            text = _plain(ast.get_docstring(node) or "")
            if len(text) >= 200:  # noqa: PLR2004 - less than that is a remark, not a page
                yield Page(
                    id=f"networkx.{name.replace('/', '.')}.{node.name}",
                    title=f"networkx.{node.name}",
                    text=text,
                )


def _plain(docstring: str) -> str:
    """A numpydoc docstring as plain text, without the sections in `LEFT_OUT` and mark-up."""
    cuts = list(SECTION.finditer(docstring))
    bounds = [0, *(cut.start() for cut in cuts), len(docstring)]
    names = ["", *(cut["name"] for cut in cuts)]
    parts = (
        docstring[start:end]
        for name, start, end in zip(names, bounds, bounds[1:], strict=False)
        if name.lower() not in LEFT_OUT
    )
    text = "".join(parts)
    text = SECTION.sub(r"\g<name>:", text)
    for pattern, by in ((DOCTEST, ""), (DIRECTIVE, ""), (ROLE, r"\1"), (CITATION, "")):
        text = pattern.sub(by, text)
    return BLANKS.sub("\n\n", text.replace("``", "`")).strip()


def _text_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each visible file with a suffix of `SUFFIXES`, by its path within the folder."""
    for file in folder.rglob("*"):
        inside = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if file.suffix.lower() in SUFFIXES and not hidden and file.is_file():
            yield inside.as_posix(), file


def _read(file: Path, name: str) -> Page | Skipped:
    """The file as a page, or why it is none."""
    try:
        size = file.stat().st_size
        if size > LARGEST:
            return Skipped(id=name, reason=f"{size} bytes, more than {LARGEST}")
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        return Skipped(id=name, reason=f"not UTF-8 at byte {error.start}")
    except OSError as error:
        return Skipped(id=name, reason=error.strerror or "cannot be read")
    if "\0" in text:
        return Skipped(id=name, reason="holds NUL, so it is no text")
    if not text.strip():
        return Skipped(id=name, reason="empty")
    text = FRONT_MATTER.sub("", text).strip()
    found = headings(text)
    return Page(id=name, title=found[0] if found else name, text=text)
