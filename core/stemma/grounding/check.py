"""The grounding check that needs no model: each sentence against the passages of the sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stemma.effects import Ask, Steps, arun, run
from stemma.embedders import Embedder, as_embedder
from stemma.entry import Vector
from stemma.errors import UsageError
from stemma.grounding.grounded import NO_SOURCE, Grounded, Support, given
from stemma.grounding.support import Claim, Passage, Sources, claims, features
from stemma.grounding.weights import Weights, shipped

__all__ = ["GroundingCheck", "Read", "similarity"]

Vectors = Mapping[str, Vector]


class Read(NamedTuple):
    """An answer and its sources, read once.

    Args:
        sources: The sources.
        claims: Each sentence of the answer, with the passages that share most with it.
    """

    sources: Sources
    claims: Sequence[tuple[Claim, Sequence[Passage]]]

    @classmethod
    def of(cls, answer: str, sources: Sequence[str], question: str) -> Read:
        """Read them."""
        read = Sources(sources)
        return cls(read, [(one, read.best(one)) for one in claims(answer, question)])

    @property
    def texts(self) -> list[str]:
        """What is to be embedded, each once."""
        wanted = (text for one, best in self.claims for text in (one.stated, *_texts(best)))
        return list(dict.fromkeys(wanted))


def _texts(passages: Sequence[Passage]) -> list[str]:
    return [one.text for one in passages]


class GroundingCheck:
    """Weighs what the sources lack of each sentence, and how near they come to it by meaning.

    It reads words, not facts: an answer made of the sources' own words, wrongly put together, may
    pass. English and Chinese are known; of other languages words, numbers and literals count.

    Args:
        embedder: What tells how near two texts are: `"local"`, an `Embedder`, or whatever
            `stemma.open` takes; `None` for none.
        weights: What each feature counts. By default those that come with the package: those
            with similarity where the embedder is the one that they were fitted to, else those
            without, and the embedder is not asked.

    Raises:
        UsageError: The embedder is not one, or other weights need another one.
        EmbedderError: `"local"` was asked for and its files are not there.
    """

    name = "grounding"

    def __init__(self, embedder: Any = None, *, weights: Weights | None = None) -> None:
        made: Embedder | None = None if embedder is None else as_embedder(embedder)
        known = "" if made is None else made.revision
        self._plain, embedded = shipped() if weights is None else (weights, weights)
        if weights is not None and weights.embedder not in ("", known):
            raise UsageError(f"these weights are for the embedder {weights.embedder!r}")
        fits = made is not None and embedded.embedder == known
        self._embedder = made if fits else None
        self._weights = embedded if fits else self._plain
        self.revision = self._weights.revision

    def __repr__(self) -> str:
        return f"GroundingCheck(revision={self.revision!r})"

    def ground(self, answer: str, sources: Sequence[str], question: str = "") -> Grounded:
        """See `Grounder.ground`.

        Raises:
            EmbedderError: The embedder failed.
        """
        return run(self.steps(answer, sources, question))

    async def aground(self, answer: str, sources: Sequence[str], question: str = "") -> Grounded:
        """As `ground`."""
        return await arun(self.steps(answer, sources, question))

    def steps(self, answer: str, sources: Sequence[str], question: str = "") -> Steps[Grounded]:
        """The same as steps, of which only the embedding reaches outside."""
        read = Read.of(answer, given(answer, sources, question), question)
        vectors: Vectors = {}
        if self._embedder is not None:
            texts = []
            for text in read.texts:  # a text that is cut has no vector
                if (yield Ask(self._embedder, "fits", (text,))):
                    texts.append(text)  # noqa: PERF401 - a comprehension cannot yield
            matrix = (yield Ask(self._embedder, "embed", (texts,))) if texts else ()
            vectors = dict(zip(texts, matrix, strict=True))
        found = [self._support(one, best, read.sources, vectors) for one, best in read.claims]
        return Grounded.of(found, self.name)

    def _support(
        self, claim: Claim, best: Sequence[Passage], sources: Sources, vectors: Vectors
    ) -> Support:
        if not best:
            return Support(sentence=claim.text, score=0.0, why=NO_SOURCE)
        near = similarity(claim, best, vectors)
        weights = self._plain if near is None else self._weights
        values = features(claim, sources, best[0], 0.0 if near is None else near)
        score, why = weights.weighed(values)
        held = any(sources.have(word) for word in claim.own) or bool(
            claim.symbols.numbers & sources.numbers
        )
        return Support(
            sentence=claim.text, score=score, source=best[0].source if held else None, why=why
        )


def similarity(claim: Claim, best: Sequence[Passage], vectors: Vectors) -> float | None:
    """The highest cosine of a claim with one of its passages; `None` where no vectors are known."""
    mine = vectors.get(claim.stated)
    theirs = [vectors[one.text] for one in best if one.text in vectors]
    return None if mine is None or not theirs else max(float(mine @ one) for one in theirs)
