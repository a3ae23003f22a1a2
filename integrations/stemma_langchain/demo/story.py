"""What the demo does: ask, ask again, reword, ask as somebody else, edit a document, ask again."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig

from stemma import Cache, Recall
from stemma_langchain.demo.chain import Rag, index
from stemma_langchain.demo.corpus import Corpus, Page, edited, questions, split
from stemma_langchain.demo.questions import Question
from stemma_langchain.demo.watch import NodeTimes, Watch

__all__ = ["FIRST", "PHASES", "SECOND", "Asked", "Edit", "Phase", "Story", "tell"]

FIRST, SECOND = "acme", "globex"
PHASES = 6
"""How often each question is asked."""

Advance = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One question, what came back, how, and in how many seconds."""

    question: str
    answer: str
    outcome: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """Some questions, asked one after the other by one tenant."""

    name: str
    tenant: str
    asked: tuple[Asked, ...]

    @property
    def median(self) -> float:
        """The median time of a question, seconds."""
        return statistics.median(one.seconds for one in self.asked)

    def count(self, *outcomes: str) -> int:
        """How many questions had one of these outcomes."""
        return sum(one.outcome in outcomes for one in self.asked)

    @property
    def computed(self) -> tuple[str, ...]:
        """The questions whose answers did not come from the cache."""
        return tuple(one.question for one in self.asked if one.outcome not in ("exact", "semantic"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """A document was changed, and what that took back.

    Args:
        document: The document's id.
        receipt: What the recall took back.
        questions: The questions of the first tenant whose answers went.
    """

    document: str
    receipt: Recall
    questions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """Everything that happened, for people and for `--json`."""

    corpus: str
    documents: int
    chunks: int
    indexing: float
    phases: tuple[Phase, ...]
    edit: Edit
    times: dict[str, NodeTimes]
    stats: list[dict[str, Any]]
    tree: str = field(repr=False)

    def phase(self, name: str) -> Phase:
        """A phase by its name."""
        return next(phase for phase in self.phases if phase.name == name)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        told = asdict(self)
        told["edit"]["receipt"]["by_node"] = self.edit.receipt.by_node
        for phase, plain in zip(self.phases, told["phases"], strict=True):
            plain["median_seconds"] = phase.median
        return told


class _Teller:
    def __init__(self, cache: Cache, rag: Rag, advance: Advance) -> None:
        self.cache = cache
        self.rag = rag
        self.watch = Watch()
        self._advance = advance
        self._told: list[Phase] = []
        cache.listen(self.watch)

    def ask(self, name: str, tenant: str, texts: Sequence[str], *, whole: bool = True) -> Phase:
        """Ask in turn; not the `whole` chain means retriever and model each by its own cache."""
        config: RunnableConfig = {"metadata": {"tenant": tenant}, "callbacks": [self.watch]}
        node = "answer" if whole else "call"
        asked = []
        for text in texts:
            self.watch.outcomes.clear()
            began = time.perf_counter()
            if whole:
                answer = self.rag.chain.invoke({"question": text}, config)
            else:
                answer = self.rag.nodes.invoke(text, config)
            seconds = time.perf_counter() - began
            outcome = self.watch.outcomes.get(node, "none")
            if whole:
                self.watch.took("answer", seconds)
            asked.append(Asked(question=text, answer=answer, outcome=outcome, seconds=seconds))
            self._advance(name)
        phase = Phase(name=name, tenant=tenant, asked=tuple(asked))
        self._told.append(phase)
        return phase

    def embed(self, texts: Sequence[str]) -> None:
        """Embed questions anew and again, for the times of that node alone."""
        with self.cache.using(tenant=FIRST):
            for text in texts:
                self.watch.outcomes.clear()
                began = time.perf_counter()
                self.rag.embeddings.embed_query(text)
                self.watch.took("embedding", time.perf_counter() - began)

    @property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(self._told)


def tell(
    cache: Cache, rag: Rag, corpus: Corpus, *, indexed: Callable[[int, int], None], advance: Advance
) -> Story:
    """Run the whole demo.

    Args:
        cache: The cache.
        rag: The chain over an empty collection.
        corpus: What to index and ask about.
        indexed: Called with the chunks done and their number.
        advance: Called with the phase's name after each question.
    """
    chunks = split(corpus.pages)
    began = time.perf_counter()
    done = 0

    def more(count: int) -> None:
        nonlocal done
        done += count
        indexed(done, len(chunks))

    with cache.using(tenant=FIRST):
        index(rag.store, chunks, more)
    indexing = time.perf_counter() - began
    asked = questions(corpus)
    texts = [question.text for question in asked]
    teller = _Teller(cache, rag, advance)
    teller.ask("cold", FIRST, texts)
    teller.ask("again", FIRST, texts)
    teller.ask("reworded", FIRST, _rewordings(asked))
    teller.ask("by node", FIRST, texts, whole=False)
    teller.embed([f"{text} (once more)" for text in texts])
    teller.embed([f"{text} (once more)" for text in texts])
    teller.ask("other tenant", SECOND, texts)
    edit = _edit(cache, rag, corpus.pages, teller.phases[0])
    teller.ask("after the edit", FIRST, texts)
    last = cache.engine.parts.store.find(limit=1_000)
    whole = next(entry for entry in last if entry.node == "answer" and entry.derived)
    return Story(
        corpus=corpus.name,
        documents=len(corpus.pages),
        chunks=len(chunks),
        indexing=indexing,
        phases=teller.phases,
        edit=edit,
        times=teller.watch.times(),
        stats=cache.stats().as_json(),
        tree=str(cache.lineage(whole.id)),
    )


def _rewordings(asked: Sequence[Question]) -> list[str]:
    return [question.rewordings[0] for question in asked]


def _edit(cache: Cache, rag: Rag, pages: Sequence[Page], cold: Phase) -> Edit:
    """Change the document that the first answer cites first, in the store and in the cache."""
    with cache.using(tenant=FIRST):
        found = rag.found.invoke(cold.asked[0].question)
    document = str(found[0].metadata["source"])
    page = next(page for page in pages if page.id == document)
    old = rag.store.get(where={"source": document})["ids"]
    rag.store.delete(old)
    with cache.using(tenant=FIRST):
        index(rag.store, split([edited(page)]), lambda _: None)
    store = cache.engine.parts.store
    by_entry = {
        entry.id: entry.focus
        for entry in store.find(limit=10_000)
        if entry.node == "answer" and entry.tenant == FIRST
    }
    receipt = cache.recall(source=document)
    gone = {item.entry for item in receipt.entries}
    mine = tuple(
        one.question
        for one in cold.asked
        if any(entry in gone for entry, focus in by_entry.items() if focus == one.question)
    )
    return Edit(document=document, receipt=receipt, questions=mine)
