"""What one tenant has asked spares another no work that would show in how long its lookups take."""

import asyncio

import numpy as np
import pytest

import stemma
from stemma.embedders import HashingEmbedder
from stemma.policies import symbols as reading
from stemma.policies.alignment import shipped

ASKED = ("How do I cancel my order?", "How do I cancel my large order?", "And how long is it kept?")
BEFORE = ("We talked about orders.", "They can be cancelled.")


class Noting:
    """Words as vectors, and as token vectors; notes each text that it is asked for."""

    quick = frozenset({"fits"})

    def __init__(self):
        self.revision = shipped().embedder
        self.noted = []
        self._words = HashingEmbedder(384)

    def fits(self, text):
        self.noted.append(("fits", text))
        return True

    def embed(self, texts):
        self.noted.append(("embed", *texts))
        return self._words.embed(texts)

    def embed_tokens(self, texts):
        self.noted.append(("tokens", *texts))
        return [np.asarray(self._words.embed(text.split())) for text in texts]


def converse(cache, tenant, style):
    """Questions that are near to each other, and one that goes on from others."""

    async def told():
        return "Within two hours."

    with cache.using(tenant=tenant):
        for question in ASKED:
            for before in ((), BEFORE, (*BEFORE, "Thank you.")):
                if style == "sync":
                    cache.answers.get_or_compute(question, lambda: "Two hours.", before=before)
                else:
                    asyncio.run(cache.answers.aget_or_compute(question, told, before=before))


@pytest.mark.parametrize("style", ["sync", "async"])
def test_the_model_is_run_as_if_nobody_else_had_asked(style):
    noted = []
    for others in ((), ("acme", "acme", "gamma")):
        embedder = Noting()
        with stemma.open(":memory:", embedder=embedder, policy="verified") as cache:
            with cache.using(tenant="first"):  # the embedder is tried, once a process
                cache.answers.lookup("Hello?")
            for tenant in others:
                converse(cache, tenant, style)
            embedder.noted.clear()
            converse(cache, "beta", style)
        noted.append(list(embedder.noted))
    assert {kind for kind, *_ in noted[0]} == {"fits", "embed", "tokens"}
    assert noted[0] == noted[1]


def test_texts_are_read_as_if_nobody_else_had_asked(monkeypatch):
    read = []
    plain = reading._Reader.__init__
    monkeypatch.setattr(
        reading._Reader, "__init__", lambda self, text: (read.append(text), plain(self, text))[1]
    )
    with stemma.open(":memory:", embedder=HashingEmbedder(384)) as cache:
        for tenant in ("acme", "beta", "beta"):
            with cache.using(tenant=tenant):
                for question in ("Where is the zorgle?", "Where is the big zorgle?"):
                    cache.answers.lookup(question)
                    cache.answers.get_or_compute(question, lambda: "Here.")
            read.append(tenant)
    acme, beta, again = (
        read[: read.index("acme")],
        read[read.index("acme") + 1 : read.index("beta")],
        read[read.index("beta") + 1 : -1],
    )
    assert acme == beta != []
    assert again == []
