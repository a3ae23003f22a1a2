"""What the demo reads: real docstrings or a folder, split and asked the same way each time."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from stemma.embedders.local import LocalEmbedder
from stemma.errors import MissingDependency, UsageError
from stemma_langchain.demo import corpus as module
from stemma_langchain.demo.corpus import (
    CHUNK,
    Page,
    edited,
    folder_corpus,
    networkx_corpus,
    questions,
    split,
)


@pytest.fixture(scope="module")
def networkx():
    return networkx_corpus()


def folder(tmp_path, files):
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path


class TestNetworkx:
    def test_it_is_broad_and_small_enough_to_index_while_one_waits(self, networkx):
        assert 150 <= len(networkx.pages) <= 250
        assert len(split(networkx.pages)) <= 500
        areas = {page.id.split(".")[1] for page in networkx.pages}
        assert {"algorithms", "generators", "drawing", "readwrite"} <= areas
        kinds = {page.id.split(".")[2] for page in networkx.pages}
        assert {"shortest_paths", "centrality", "tree", "flow", "community"} <= kinds

    def test_it_is_the_same_each_time_and_no_id_comes_twice(self, networkx):
        assert networkx_corpus() == networkx
        ids = [page.id for page in networkx.pages]
        assert len(set(ids)) == len(ids)

    def test_a_page_is_a_public_name_with_its_own_docstring(self, networkx):
        pages = {page.id: page for page in networkx.pages}
        page = pages["networkx.algorithms.dag.topological_sort"]
        assert page.title == "networkx.topological_sort"
        assert "A topological sort is a nonunique permutation" in page.text
        assert not any(page.id.rsplit(".", 1)[1].startswith("_") for page in networkx.pages)

    def test_examples_parameters_references_and_mark_up_are_left_out(self, networkx):
        whole = "\n".join(page.text for page in networkx.pages)
        assert "\nsee also:" not in whole.lower()
        for noise in (
            ">>>",
            ".. [1]",
            "]_",
            ":func:",
            "----",
            "\n\n\n",
            "\nParameters",
            "``",
            ".. _",
        ):
            assert noise not in whole

    def test_what_networkx_raises_and_notes_is_kept(self, networkx):
        page = next(page for page in networkx.pages if page.id.endswith(".dijkstra_path"))
        assert "Raises:\nNodeNotFound" in page.text
        assert "Edge weight attributes must be numerical." in page.text

    def test_networkx_is_read_and_not_run(self, tmp_path, monkeypatch):
        text = "What it does. " * 20
        source = f'raise SystemExit("was run")\ndef shown():\n    """{text}"""\n'
        folder(tmp_path, {"algorithms/dag.py": source})
        spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
        monkeypatch.setattr(module, "find_spec", lambda name: spec)
        (page,) = networkx_corpus().pages
        assert page == Page(
            id="networkx.algorithms.dag.shown", title="networkx.shown", text=text.strip()
        )

    def test_reading_loads_no_framework(self):
        code = (
            "import sys\n"
            "from stemma_langchain.demo.corpus import networkx_corpus\n"
            "networkx_corpus()\n"
            "print({'langchain_core', 'langchain_text_splitters'} & sys.modules.keys())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.strip() == "set()"

    def test_without_its_sources_it_says_what_to_do(self, monkeypatch):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
        with pytest.raises(MissingDependency, match="--docs"):
            networkx_corpus()


class TestFolder:
    def test_a_page_is_a_file_by_its_path_and_its_first_heading(self, tmp_path):
        corpus = folder_corpus(
            folder(
                tmp_path,
                {
                    "b/refunds.md": "# Refunds `now`\n\nWithin 30 days.",
                    "a.txt": "Just text.",
                    "c.rst": "Shipping\n========\n\nFree.",
                },
            )
        )
        assert [(page.id, page.title) for page in corpus.pages] == [
            ("a.txt", "a.txt"),
            ("b/refunds.md", "Refunds now"),
            ("c.rst", "Shipping"),
        ]
        assert corpus.skipped == ()

    def test_what_is_no_text_is_skipped_and_reported(self, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "LARGEST", 100)
        corpus = folder_corpus(
            folder(
                tmp_path,
                {
                    "good.md": "Text.",
                    "latin.txt": "caf\xe9".encode("latin-1"),
                    "blank.md": " \n ",
                    "nul.txt": "a\0b",
                    "long.md": "x" * 101,
                },
            )
        )
        assert [page.id for page in corpus.pages] == ["good.md"]
        assert {file.id: file.reason for file in corpus.skipped} == {
            "latin.txt": "not UTF-8 at byte 3",
            "blank.md": "empty",
            "nul.txt": "holds NUL, so it is no text",
            "long.md": "101 bytes, more than 100",
        }

    def test_hidden_files_and_other_kinds_are_passed_over(self, tmp_path):
        corpus = folder_corpus(
            folder(
                tmp_path,
                {"a.md": "A.", ".git/b.md": "B.", ".c.md": "C.", "d.py": "D", "E.MD": "E."},
            )
        )
        assert [page.id for page in corpus.pages] == ["E.MD", "a.md"]

    def test_front_matter_and_a_byte_order_mark_are_no_text(self, tmp_path):
        text = "\ufeff---\ntitle: x\n---\n# Real\n\nText."
        (page,) = folder_corpus(folder(tmp_path, {"a.md": text})).pages
        assert (page.title, page.text) == ("Real", "# Real\n\nText.")

    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(UsageError, match=r"nowhere.*no such folder"):
            folder_corpus(tmp_path / "nowhere")

    def test_a_file_is_no_folder(self, tmp_path):
        folder(tmp_path, {"a.md": "A."})
        with pytest.raises(UsageError, match="no such folder"):
            folder_corpus(tmp_path / "a.md")

    def test_a_folder_without_text_says_what_was_looked_for_and_what_was_wrong(self, tmp_path):
        with pytest.raises(UsageError, match=r"no text in it, looking for .*\.md"):
            folder_corpus(tmp_path)
        with pytest.raises(UsageError, match=r"bad\.md: not UTF-8 at byte 0"):
            folder_corpus(folder(tmp_path, {"bad.md": b"\xff"}))


class TestSplit:
    def test_chunks_are_numbered_within_their_page_and_name_it(self):
        text = "\n\n".join(f"Paragraph {n}. " + "word " * 60 for n in range(6))
        chunks = split(
            [Page(id="a.md", title="A", text=text), Page(id="b.md", title="B", text="B")]
        )
        assert [chunk.id for chunk in chunks] == [
            *(f"a.md#{n}" for n in range(len(chunks) - 1)),
            "b.md#0",
        ]
        assert len(chunks) > 3
        assert all(chunk.metadata == {"source": chunk.id.split("#")[0]} for chunk in chunks)

    def test_no_chunk_is_longer_than_stated_and_each_begins_with_the_title(self, networkx):
        page = Page(id="x", title="T" * 5000, text="word " * 5000)
        for chunk in split([page, *networkx.pages]):
            assert len(chunk.page_content) <= CHUNK
        assert all(chunk.page_content.startswith("networkx.") for chunk in split(networkx.pages))

    def test_nothing_of_a_page_is_lost(self, networkx):
        page = max(networkx.pages, key=lambda page: len(page.text))
        found = " ".join(chunk.page_content.split("\n", 1)[1] for chunk in split([page]))
        assert found.split() == page.text.split()

    def test_without_the_splitter_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "langchain_text_splitters", None)
        with pytest.raises(MissingDependency, match=r"stemma-cache\[demo\]"):
            split([])


class TestQuestions:
    def test_networkx_is_asked_a_dozen_each_with_rewordings(self, networkx):
        asked = questions(networkx)
        assert len({question.text for question in asked}) == 12
        for question in asked:
            assert 2 <= len(question.rewordings) <= 3
            assert question.text not in question.rewordings

    @pytest.mark.real
    def test_each_finds_its_page_and_its_rewordings_are_near(self, networkx):
        subjects = {
            "shortest path": "shortest",
            "betweenness": "betweenness",
            "PageRank": "pagerank",
            "spanning tree": "spanning_tree",
            "topological": "topological_sort",
            "connected": "connected",
            "matching": "maximal_matching",
            "Louvain": "louvain",
            "diameter": "diameter",
            "bridge": "bridges",
            "Eulerian": "eulerian_circuit",
            "clustering": "clustering",
        }
        about = {
            question: next(name for word, name in subjects.items() if word in question.text)
            for question in questions(networkx)
        }
        assert len(set(about.values())) == 12
        chunks = [
            chunk
            for chunk in split(networkx.pages)
            if any(name in chunk.id for name in subjects.values())
        ]
        embedder = LocalEmbedder()
        vectors = embedder.embed([chunk.page_content for chunk in chunks])
        for question, subject in about.items():
            asked, *others = embedder.embed([question.text, *question.rewordings])
            best = [chunks[n].id for n in np.argsort(-(vectors @ asked))[:3]]
            assert any(subject in chunk for chunk in best), (question.text, best)
            assert min(float(asked @ other) for other in others) >= 0.9

    def test_a_folder_is_asked_about_its_headings_one_page_after_the_other(self, tmp_path):
        corpus = folder_corpus(
            folder(
                tmp_path,
                {
                    "a.md": "# Refunds (2025)\n\n## 1. Time limits\nx\n\n## Who pays?\nx",
                    "b.md": "# Shipping\n\nx",
                    "c.txt": "Gifts are final. No exceptions.",
                },
            )
        )
        assert [question.text for question in questions(corpus)] == [
            "What does the page on Refunds say about Time limits?",
            "What is the page on Shipping about?",
            'What else is said about "Gifts are final"?',
            "Who pays?",
        ]

    def test_what_looks_like_a_heading_in_code_is_none(self, tmp_path):
        text = "# Setup\n\n```sh\n# install it\npip install x\n```\n"
        corpus = folder_corpus(folder(tmp_path, {"a.md": text}))
        assert [question.text for question in questions(corpus)] == [
            "What is the page on Setup about?"
        ]

    def test_rewordings_keep_the_words_of_the_question(self, tmp_path):
        corpus = folder_corpus(folder(tmp_path, {"a.md": "# SQL in 5 steps"}))
        (question,) = questions(corpus)
        assert question.rewordings == (
            "Please tell me: what is the page on SQL in 5 steps about?",
            "what is the page on SQL in 5 steps about",
            "I would like to know, what is the page on SQL in 5 steps about?",
        )

    def test_a_folder_is_asked_a_dozen_at_most_and_nothing_twice(self, tmp_path):
        same = {f"{n}.md": "# One\n\n## Two\n" for n in range(3)}
        other = {f"x{n}.md": f"# Page {n}\n" for n in range(20)}
        corpus = folder_corpus(folder(tmp_path, same | other))
        texts = [question.text for question in questions(corpus)]
        assert len(texts) == len(set(texts)) == 12


class TestEdited:
    def test_the_edit_is_seen_in_the_text_and_in_the_first_chunk(self, networkx):
        page = networkx.pages[0]
        new = edited(page)
        assert (new.id, new.title) == (page.id, page.title)
        assert new.text.endswith(page.text)
        before, after = split([page])[0], split([new])[0]
        assert before.id == after.id
        assert "was revised" in after.page_content
        assert "was revised" not in before.page_content
