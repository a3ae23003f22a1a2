"""The demo's story, told over a small corpus in a real Chroma collection with a model that counts."""

import io
import json
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import pytest
from rich.console import Console

import stemma
from stemma.embedders import HashingEmbedder
from stemma.rerankers import MaxSimReranker
from stemma_langchain.demo.chain import build
from stemma_langchain.demo.corpus import folder_corpus, questions
from stemma_langchain.demo.report import show
from stemma_langchain.demo.server import EndpointModel
from stemma_langchain.demo.story import FIRST, PHASES, SECOND, tell


class WordVectors(HashingEmbedder):
    """With a vector for each word."""

    def embed_tokens(self, texts):
        return [self.embed(text.split()) for text in texts]


class Noted(MaxSimReranker):
    """Notes the texts it was asked for first with each query: in a cold chain, all candidates."""

    asked: ClassVar[dict] = {}

    def score(self, query, texts):
        self.asked.setdefault(query, list(texts))
        return super().score(query, texts)


NOWHERE = EndpointModel(base_url="http://localhost:9/v1", model="none")


class Told:
    """The story, and what the model and the progress bars saw of it."""

    def __init__(self, docs, folder, reader):
        embedder = WordVectors()
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
        self.candidates = dict(Noted.asked)

    def prompts_of(self, phase):
        """The prompts that reached the model in a phase; each computed answer cost one."""
        start = 0
        for one in self.story.phases:
            count = 0 if one.name == "by node" else len(one.computed)
            if one.name == phase:
                return self.prompts[start : start + count]
            start += count
        raise KeyError(phase)


@pytest.fixture(scope="module")
def told(docs, tmp_path_factory, reader) -> Told:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stemma_langchain.demo.chain.MaxSimReranker", Noted)
        patch.setattr("stemma_langchain.demo.chain.CANDIDATES", 2)  # of five chunks
        patch.setattr("stemma_langchain.demo.chain.CHUNKS", 1)
        return Told(docs, tmp_path_factory.mktemp("demo"), reader)


def printed(story) -> str:
    out = io.StringIO()
    show(story, Console(file=out, width=200))
    return out.getvalue()


def test_it_is_told_in_six_phases_by_two_tenants(told):
    assert [(phase.name, phase.tenant) for phase in told.story.phases] == [
        ("cold", FIRST),
        ("again", FIRST),
        ("reworded", FIRST),
        ("by node", FIRST),
        ("other tenant", SECOND),
        ("after the edit", FIRST),
    ]
    assert len(told.texts) == 5
    assert told.tenants == {FIRST, SECOND}
    assert (told.story.corpus, told.story.documents, told.story.chunks) == ("docs", 5, 5)


def test_progress_is_told_for_every_chunk_and_question(told):
    assert told.indexed[0] == (5, 5)
    assert len(told.asked) == PHASES * len(told.texts)


def test_cold_everything_is_computed_and_again_nothing_is(told):
    cold, again = told.story.phase("cold"), told.story.phase("again")
    assert list(cold.computed) == told.texts
    assert again.count("exact") == len(told.texts)
    assert [one.answer for one in again.asked] == [one.answer for one in cold.asked]


def test_a_reworded_question_that_hits_has_the_first_ones_answer(told):
    cold, reworded = told.story.phase("cold"), told.story.phase("reworded")
    assert reworded.count("semantic") > 0
    for first, other in zip(cold.asked, reworded.asked, strict=True):
        assert first.question != other.question
        assert other.outcome != "semantic" or other.answer == first.answer


def test_without_whole_answers_retriever_and_model_still_have_theirs(told):
    cold, by_node = told.story.phase("cold"), told.story.phase("by node")
    assert by_node.count("exact") == len(told.texts)
    assert [one.answer for one in by_node.asked] == [one.answer for one in cold.asked]


def test_the_other_tenant_gets_nothing_of_the_first_ones(told):
    other = told.story.phase("other tenant")
    assert list(other.computed) == told.texts
    assert other.count("exact", "semantic") == 0


def test_each_computed_answer_cost_one_call_of_the_model_and_no_other_did(told):
    computed = [len(p.computed) for p in told.story.phases if p.name != "by node"]
    assert len(told.prompts) == sum(computed)


def test_the_edit_takes_back_what_was_answered_from_the_document_and_no_more(told):
    """From it is answered what it was a candidate for; those cite it whose prompt it reached."""
    story = told.story
    page = next(page for page in told.corpus.pages if page.id == story.edit.document)
    sentence = page.text.splitlines()[-1][:40]
    among = [text for text in told.texts if sentence in " ".join(told.candidates[text])]
    prompts = zip(told.texts, told.prompts_of("cold"), strict=True)
    cited = [text for text, prompt in prompts if sentence in prompt]
    assert 0 < len(cited) < len(told.texts)
    assert set(cited) <= set(among)
    assert list(story.edit.questions) == among
    assert list(story.phase("after the edit").computed) == among
    assert {item.tenant for item in story.edit.receipt.entries} == {FIRST, SECOND}


def test_what_is_computed_after_the_edit_has_read_the_edited_document(told):
    assert [prompt for prompt in told.prompts_of("after the edit") if "was revised" in prompt]
    assert not [prompt for prompt in told.prompts_of("cold") if "was revised" in prompt]


def test_the_reranker_keeps_some_of_the_candidates_and_is_not_asked_again(told):
    assert {len(texts) for texts in told.candidates.values()} == {2}
    for text, prompt in zip(told.texts, told.prompts_of("cold"), strict=True):
        assert sum(one in prompt for one in told.candidates[text]) == 1
    rows = {row["tenant"]: row for row in told.story.stats if row["node"] == "rerank"}
    assert rows[FIRST]["exact"] >= 2 * len(told.texts)  # by node, each pair once more
    assert rows[SECOND]["exact"] == 0


def test_the_counters_agree_with_what_was_asked(told):
    rows = {(row["tenant"], row["node"]): row for row in told.story.stats}
    assert {tenant for tenant, _ in rows} == {FIRST, SECOND}
    outcomes = Counter(
        one.outcome
        for phase in told.story.phases
        if phase.tenant == FIRST and phase.name != "by node"
        for one in phase.asked
    )
    mine, other = rows[FIRST, "answer"], rows[SECOND, "answer"]
    hits = outcomes["exact"] + outcomes["semantic"]
    assert (mine["exact"], mine["semantic"]) == (outcomes["exact"], outcomes["semantic"])
    assert sum(mine["misses"].values()) == outcomes.total() - hits
    assert mine["tokens"] == 50 * hits
    assert other["exact"] == other["semantic"] == 0


def test_every_node_has_a_time_cold_and_warm(told):
    assert set(told.story.times) == {"answer", "call", "rerank", "retrieval", "embedding"}
    for times in told.story.times.values():
        assert times.cold is not None
        assert times.warm is not None


def test_the_story_as_json_is_plain_and_whole(told):
    plain = json.loads(json.dumps(told.story.as_json()))
    assert [phase["name"] for phase in plain["phases"]] == [p.name for p in told.story.phases]
    assert plain["edit"]["receipt"]["by_node"]["answer"] == 2 * len(told.story.edit.questions)
    assert told.story.edit.document in plain["tree"]


def test_the_report_shows_it_to_people(told):
    page = printed(told.story)
    assert "exactly these were computed anew" in page
    assert "0 answers crossed over, 5 were computed" in page
    assert told.story.edit.document in page
    assert all(phase.name in page for phase in told.story.phases)
    assert all(text in page for text in told.story.edit.questions)


def test_the_report_does_not_say_only_those_by_heart(told):
    wrong = replace(told.story, edit=replace(told.story.edit, questions=()))
    assert "NOT exactly these" in printed(wrong)
