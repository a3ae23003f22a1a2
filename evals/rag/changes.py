"""A manual is updated under cached answers: which of them are served after that, and should they?

The manual is cut at its headings, and each heading is asked once. An answer cites the contents of
the sections that were in its prompt; so it tells by itself whether it is stale. After the update
everything is asked again. Then an answer

* that cites a section that changed or went must not be served;
* whose sections are the same, but among whose nearest a new or changed section now is, should be
  made anew;
* whose nearest sections are the same ones with the same contents should still be served.

Contents in the index are compared, and what is nearest is told by an exact search.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from pydantic import PrivateAttr

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.rag.exact_store import CANDIDATES, ExactStore
from evals.rag.lists import judging, recall_figures
from evals.rag.metrics import by_kind, recall
from evals.rag.sections import Section, manual, statuses
from evals.rag.updating import WAYS, Opened
from evals.speed.given import Given
from stemma import Cache, content_digest
from stemma.embedders import LocalEmbedder
from stemma_langchain import CachedChain, CachedRetriever, LLMCache, LocalEmbeddings

__all__ = ["run"]

K, DEEPER = 2, 4
"""How many sections a prompt holds; and how many a list that is compared with an exact search."""

_CITED = re.compile(r"\[([0-9a-f]{16,})\]")

Sections = Mapping[str, Section]


class Citing(BaseChatModel):
    """Answers with the contents that it was shown, by their hashes, and counts its calls."""

    _calls: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "citing"

    @property
    def calls(self) -> int:
        """How often it was called."""
        return self._calls

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: Any = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        self._calls += 1
        cited = _CITED.findall(messages[-1].text)
        said = AIMessage("It is as said in " + ", ".join(f"[{one}]" for one in cited))
        return ChatResult(generations=[ChatGeneration(message=said)])


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """The update through every hook, and through none."""
    old, new = _part_of(manual("old"), manual("new"), size, random.Random(seed))
    texts = {one.text for one in (*old.values(), *new.values())}
    asked = [one.question for one in old.values()]
    wanted = sorted(texts.union(asked))
    vectors = dict(zip(wanted, LocalEmbedder().embed(wanted), strict=True))
    embeddings = LocalEmbeddings(Given(vectors))
    told: dict[str, Any] = {
        "k": K,
        "candidates": K * CANDIDATES,
        "questions": len(asked),
        "sections": _counted(statuses(old, new).values()),
        "ways": {},
    }
    with stemma.open(folder / "lists.db", tenant="me", embedder=None) as cache:
        told["lists"] = _reused(cache, ExactStore(embeddings), old)
    for number, (name, way) in enumerate(WAYS.items()):
        with stemma.open(folder / f"{number}.db", tenant="me", embedder=None) as cache:
            store = ExactStore(embeddings)
            told["ways"][name] = _updated(cache, store, way.opened(cache, store), old, new)
    figures = _figures(told["ways"])
    figures += recall_figures(told["lists"], f"recall@{DEEPER} over questions near each other")
    return Measured(figures=figures, details=told)


def _part_of(
    old: Sections, new: Sections, size: float, lucky: random.Random
) -> tuple[Sections, Sections]:
    """The same documents of both dates: at full size all."""
    paths = sorted({one.path for one in (*old.values(), *new.values())})
    kept = set(lucky.sample(paths, scaled(len(paths), size, least=3)))
    return tuple(  # type: ignore[return-value]
        {name: one for name, one in date.items() if one.path in kept} for date in (old, new)
    )


def chain_over(cache: Cache, index: Opened, model: Citing) -> CachedChain:
    """Retriever, prompt and model, each cached, and the whole answer as well."""
    retriever = CachedRetriever(
        cache, index.searched.as_retriever(search_kwargs={"k": K}), k=K, candidates=CANDIDATES
    )
    gathered = RunnableParallel(context=retriever | _shown, question=RunnablePassthrough())
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    model.cache = LLMCache(cache)
    return CachedChain(cache, gathered | prompt | model)


def _shown(documents: Sequence[Document]) -> str:
    return "\n\n".join(
        f"[{content_digest(document.page_content)}] {document.page_content}"
        for document in documents
    )


def _reused(cache: Cache, store: ExactStore, old: Sections) -> dict[str, dict[str, float]]:
    """What lists are worth where the near questions are no rewordings but ask something else."""
    store.add_documents([Document(one.text, id=name) for name, one in old.items()])
    judged = judging(cache, store, DEEPER)
    return by_kind([judged(one.question) for one in old.values()])


def _updated(
    cache: Cache, store: ExactStore, index: Opened, old: Sections, new: Sections
) -> dict[str, int]:
    """Ask everything, update, ask everything again; count what was right of the second answers."""
    model = Citing()
    chain = chain_over(cache, index, model)
    questions = [one.question for one in old.values()]
    index.show(old)
    before = {question: _cited(chain, question) for question in questions}
    index.show(new)
    now = {content_digest(one.text) for one in new.values()}
    counts = dict.fromkeys(("gone", "stale", "entered", "noticed", "unchanged", "served"), 0)
    for question in questions:
        made = model.calls + store.searches
        cited = _cited(chain, question)
        computed = model.calls + store.searches > made
        nearest = _nearest(store, question)
        counts["stale"] += not now.issuperset(cited)
        if not now.issuperset(before[question]):
            counts["gone"] += 1
        elif recall(before[question], nearest, K) < 1:
            counts["entered"] += 1
            counts["noticed"] += recall(cited, nearest, K) == 1
        else:
            counts["unchanged"] += 1
            counts["served"] += not computed
    return counts


def _cited(chain: CachedChain, question: str) -> list[str]:
    return _CITED.findall(chain.invoke(question).text)


def _nearest(store: ExactStore, question: str) -> dict[str, float]:
    """The similarity of every content in the index to a question."""
    embeddings: Embeddings = store.embedding
    by_id = store.similarities(embeddings.embed_query(question))
    return {content_digest(store.store[one]["text"]): near for one, near in by_id.items()}


def _counted(statuses: Any) -> dict[str, int]:
    found = list(statuses)
    return {status: found.count(status) for status in sorted(set(found))}


def _figures(ways: Mapping[str, Mapping[str, int]]) -> list[Figure]:
    figures = []
    for name, found in ways.items():
        way = WAYS[name]
        figures += [
            Figure(
                what=f"{name}: stale answers served, of {found['gone']:,} that cite what changed",
                value=found["stale"],
                unit="",
                at_most=0 if way.told else None,
            ),
            Figure(
                what=f"… new sections noticed, of {found['entered']:,} answers",
                value=_share(found["noticed"], found["entered"]),
                unit="",
                at_least=0.95 if way.told else None,
            ),
            Figure(
                what=f"… still served, of {found['unchanged']:,} that cite what is the same"
                + ("" if way.precise else "; the others are conservative recalls"),
                value=_share(found["served"], found["unchanged"]),
                unit="",
                at_least=0.99 if way.told and way.precise else None,
            ),
        ]
    return figures


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
