"""The demo's story, told over a small corpus in a real Chroma collection with a model that counts."""

import io
import json
from collections import Counter

import pytest
from rich.console import Console

import stemma
from stemma.embedders import HashingEmbedder
from stemma_langchain.demo.chain import build
from stemma_langchain.demo.corpus import folder_corpus, questions
from stemma_langchain.demo.report import show
from stemma_langchain.demo.server import EndpointModel
from stemma_langchain.demo.story import FIRST, PHASES, SECOND, tell

NOWHERE = EndpointModel(base_url="http://localhost:9/v1", model="none")


class Told:
    """The story, and what the model and the progress bars saw of it."""

    def __init__(self, docs, folder, reader):
        embedder = HashingEmbedder()
        self.corpus = folder_corpus(docs)
        self.texts = [question.text for question in questions(self.corpus)]
        self.indexed, self.asked = [], []
        with stemma.open(folder / "answers.db", embedder=embedder, threshold=0.6) as cache:
            rag = build(cache, folder / "chroma", embedder, NOWHERE)
            self.story = tell(
                cache,
                rag,
                self.corpus,
                indexed=lambda done, total: self.indexed.append((done, total)),
                advance=self.asked.append,
            )
            self.tenants = {entry.tenant for entry in cache.engine.parts.store.find(limit=1000)}
        self.prompts = list(reader.prompts)

    def prompts_of(self, phase):
        """The prompts that reached the model in a phase; each computed answer cost one."""
        start = 0
        for one in self.story.phases:
            count = 0 if one.name == "by node" else len(one.computed)
            if one.name == phase:
                return self.prompts[start : start + count]
            start += count
        raise KeyError(phase)


@pytest.fixture
def told(docs, tmp_path, reader) -> Told:
    return Told(docs, tmp_path, reader)


def test_the_demo_does_what_it_says(told):
    """One telling, read from all sides: it takes a second or two to tell."""
    story, count = told.story, len(told.texts)
    assert count == 5
    assert [(phase.name, phase.tenant) for phase in story.phases] == [
        ("cold", FIRST),
        ("again", FIRST),
        ("reworded", FIRST),
        ("by node", FIRST),
        ("other tenant", SECOND),
        ("after the edit", FIRST),
    ]
    assert told.tenants == {FIRST, SECOND}
    assert (story.corpus, story.documents, story.chunks) == ("docs", 5, 5)

    # Cold, everything is computed; again, nothing is, and the answers are the same.
    cold, again = story.phase("cold"), story.phase("again")
    assert list(cold.computed) == told.texts
    assert again.count("exact") == count
    assert [one.answer for one in again.asked] == [one.answer for one in cold.asked]

    # A reworded question that hits has the first one's answer.
    reworded = story.phase("reworded")
    assert reworded.count("semantic") > 0
    for first, other in zip(cold.asked, reworded.asked, strict=True):
        assert first.question != other.question
        assert other.outcome != "semantic" or other.answer == first.answer

    # Without the whole answers, retriever and model still have theirs.
    by_node = story.phase("by node")
    assert by_node.count("exact") == count

    # The other tenant gets nothing of the first one's.
    other = story.phase("other tenant")
    assert list(other.computed) == told.texts
    assert other.count("exact", "semantic") == 0

    # Each answer that was computed cost one call of the model, and no other did.
    paid = [p for p in story.phases if p.name != "by node"]
    assert len(told.prompts) == sum(len(phase.computed) for phase in paid)

    _edited(told)
    _counted(told)
    _told_to_people_and_machines(told)


def _edited(told):
    """The edit takes back what was answered from the document, as the prompts show, and no more."""
    story = told.story
    page = next(page for page in told.corpus.pages if page.id == story.edit.document)
    sentence = page.text.splitlines()[-1][:40]
    cited = [
        text
        for text, prompt in zip(told.texts, told.prompts_of("cold"), strict=True)
        if sentence in prompt
    ]
    assert 0 < len(cited) < len(told.texts)
    assert list(story.edit.questions) == cited
    after = story.phase("after the edit")
    assert list(after.computed) == cited
    assert all("was revised" in prompt for prompt in told.prompts_of("after the edit"))
    assert not [prompt for prompt in told.prompts_of("cold") if "was revised" in prompt]
    assert {item.tenant for item in story.edit.receipt.entries} == {FIRST, SECOND}


def _counted(told):
    """The counters of the nodes agree with what was asked."""
    rows = {(row["tenant"], row["node"]): row for row in told.story.stats}
    assert {tenant for tenant, _ in rows} == {FIRST, SECOND}
    outcomes = Counter(
        one.outcome
        for phase in told.story.phases
        if phase.tenant == FIRST and phase.name != "by node"
        for one in phase.asked
    )
    mine = rows[FIRST, "answer"]
    assert mine["exact"] == outcomes["exact"]
    assert mine["semantic"] == outcomes["semantic"]
    assert sum(mine["misses"].values()) == outcomes.total() - mine["exact"] - mine["semantic"]
    assert mine["tokens"] == 50 * (mine["exact"] + mine["semantic"])
    other = rows[SECOND, "answer"]
    assert other["exact"] == other["semantic"] == 0
    assert set(told.story.times) == {"answer", "call", "retrieval", "embedding"}
    for times in told.story.times.values():
        assert times.cold is not None
        assert times.warm is not None


def _told_to_people_and_machines(told):
    plain = json.loads(json.dumps(told.story.as_json()))
    assert [phase["name"] for phase in plain["phases"]] == [p.name for p in told.story.phases]
    assert plain["edit"]["receipt"]["by_node"]["answer"] >= 1
    assert "source" in plain["tree"]

    out = io.StringIO()
    show(told.story, Console(file=out, width=200))
    page = out.getvalue()
    assert "those, and only those, were computed anew" in page
    assert "0 answers crossed over, 5 were computed" in page
    assert told.story.edit.document in page
    assert all(phase.name in page for phase in told.story.phases)

    assert told.indexed[-2] == (5, 5)
    assert len(told.asked) == PHASES * len(told.texts)


def test_an_answer_too_many_computed_would_be_said(told):
    """The report does not say "only those" by heart."""
    from dataclasses import replace  # noqa: PLC0415 - only here

    wrong = replace(told.story, edit=replace(told.story.edit, questions=()))
    out = io.StringIO()
    show(wrong, Console(file=out, width=200))
    assert "NOT exactly those" in out.getvalue()
