"""A follow-up is served only where the conversation before it means the same."""

import numpy as np
import pytest

import stemma
from stemma import Request, Scope, UsageError
from stemma.conversation import LONG
from stemma.stores.memory import MemoryStore

ACME = ("Who is the founder of Acme?", "Ada founded it.")
REWORDED = ("who is the founder of Acme", "Ada founded it.")
BOLT = ("Who is the founder of Bolt?", "Max founded it.")
ASK = "How old is the founder of the company today?"


class Counting:
    """Letters as a vector, and every text that was embedded."""

    revision = "letters/1"

    def __init__(self, window: int = 10_000) -> None:
        self.window = window
        self.texts: list[str] = []

    def embed(self, texts):
        self.texts += texts
        made = np.zeros((len(texts), 128), dtype=np.float32)
        for row, text in enumerate(texts):
            for letter in text.casefold():
                made[row, ord(letter) % 128] += 1
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    def fits(self, text):
        return len(text) <= self.window


@pytest.fixture
def embedder():
    return Counting()


@pytest.fixture
def chat(url, embedder):
    with stemma.open(url, tenant="me", embedder=embedder, policy="threshold") as opened:
        yield opened


def test_a_follow_up_hits_after_a_conversation_that_means_the_same(chat, do, model):
    first = do(chat.answers.get_or_compute, ASK, model, before=ACME)
    again = do(chat.answers.get_or_compute, ASK, model, before=ACME)
    reworded = do(chat.answers.get_or_compute, ASK, model, before=REWORDED)
    both = do(chat.answers.get_or_compute, ASK.lower(), model, before=REWORDED)
    assert first.outcome.reason == "cold"
    assert (again.outcome.tier, again.outcome.entry.before) == ("exact", ACME)
    assert reworded.outcome.tier == "semantic"
    assert reworded.outcome.similarity == pytest.approx(1.0, abs=1e-3)
    assert both.outcome.tier == "semantic"
    assert model.calls == 1


@pytest.mark.parametrize(
    "before",
    [
        BOLT,
        (ACME[0], "Max founded it."),
        (ACME[0], "Ada did not found it."),
        ACME[:1],
        ("Hello.", *ACME),
        (ACME[1], ACME[0]),
        ("I am 30 years old.", "Good to know."),
    ],
)
def test_it_does_not_after_another_one(chat, do, model, before):
    stored = do(chat.answers.get_or_compute, ASK, model, before=ACME).stored.entry
    miss = do(chat.answers.lookup, ASK, before=before)
    if len(before) == len(ACME):
        assert (miss.reason, miss.nearest) == ("context", stored.id)
        assert miss.similarity == pytest.approx(1.0, abs=1e-3)
        assert "Ada" not in miss.detail
    else:
        assert miss.reason in {"context", "cold"}
    do(chat.answers.get_or_compute, ASK, model, before=before)
    assert do(chat.answers.lookup, ASK, before=before).value == "answer 2"
    assert do(chat.answers.lookup, ASK, before=ACME).value == "answer 1"


def test_alone_and_after_a_conversation_never_meet(chat, do, model):
    do(chat.answers.get_or_compute, ASK, model)
    assert do(chat.answers.lookup, ASK, before=ACME).reason == "cold"
    do(chat.answers.get_or_compute, ASK + "!", model, before=ACME)
    assert do(chat.answers.lookup, ASK).value == "answer 1"
    assert do(chat.answers.lookup, ASK.lower()).value == "answer 1"
    assert do(chat.answers.lookup, ASK, before=ACME).value == "answer 2"


def test_among_many_equal_follow_ups_the_one_of_this_conversation_is_found(chat, do, model):
    for name in ("Bolt", "Core", "Dent", "Echo", "Flux", "Gate", "Hull", "Iron", "Jade", "Acme"):
        before = (f"Who is the founder of {name}?", f"{name} was founded by a woman.")
        do(chat.answers.get_or_compute, ASK, lambda n=name: n, before=before)
    asked = ("who is the founder of Acme", "Acme was founded by a woman.")
    assert do(chat.answers.lookup, ASK, before=asked).value == "Acme"


def test_turns_too_long_must_be_equal_and_the_others_mean_the_same(chat, do, model):
    long = "She was born in a small town. " * (LONG // 20)
    do(chat.answers.get_or_compute, ASK, model, before=(ACME[0], long))
    assert do(chat.answers.lookup, ASK, before=(REWORDED[0], long)).tier == "semantic"
    assert do(chat.answers.lookup, ASK, before=(ACME[0], long + ".")).reason == "cold"
    do(chat.answers.get_or_compute, ASK, model, before=(long,))
    assert do(chat.answers.lookup, ASK.lower(), before=(long,)).tier == "semantic"


def test_what_does_not_fit_the_window_is_compared_exactly(url, do, model):
    with stemma.open(url, tenant="me", embedder=Counting(window=60), policy="threshold") as chat:
        before = ("a turn of more than sixty letters, which this model could not read whole",)
        do(chat.answers.get_or_compute, ASK, model, before=before)
        assert do(chat.answers.lookup, ASK, before=before).tier == "exact"
        assert do(chat.answers.lookup, ASK.lower(), before=before).reason == "cold"


def test_without_an_embedder_conversations_must_be_equal(url, do, model):
    with stemma.open(url, tenant="me", embedder=None) as chat:
        do(chat.answers.get_or_compute, ASK, model, before=ACME)
        assert do(chat.answers.lookup, ASK, before=ACME).tier == "exact"
        assert do(chat.answers.lookup, ASK, before=REWORDED).reason == "cold"


def test_an_older_turn_that_is_far_is_enough_although_the_context_is_near(url, do, model):
    """What stands far back hardly weighs in the context's vector."""

    class Odd(Counting):
        def embed(self, texts):
            made = super().embed(texts)
            if "tell me about ships" in texts:
                made[texts.index("tell me about ships")] = np.eye(128)[0]
            return made

    later = ("Ships sail.", "And what else do they do?", "They carry goods.")
    with stemma.open(url, tenant="me", embedder=Odd(), policy="threshold") as chat:
        do(chat.answers.get_or_compute, ASK, model, before=("Tell me about ships", *later))
        miss = do(chat.answers.lookup, ASK, before=("tell me about ships", *later))
        assert (miss.reason, miss.detail) == ("context", "a turn before it means something else")
        assert do(chat.answers.lookup, ASK, before=("tell me about Ships", *later)).hit


def test_turns_are_embedded_once(chat, embedder, do, model):
    do(chat.answers.get_or_compute, ASK, model, before=ACME)
    more = ("And where was she born?", *ACME, ASK, "She is 42.")
    do(chat.answers.lookup, more[0], before=more[1:])
    assert sorted(text for text in embedder.texts if text in more) == sorted(more)


def test_a_rewriting_stands_for_the_conversation(chat, do, model):
    alone = "How old is the founder of Acme?"
    do(chat.answers.get_or_compute, "How old is she?", model, before=ACME, standalone=alone)
    for asked in ("How old is she?", "And her age?"):
        assert do(chat.answers.lookup, asked, before=BOLT, standalone=alone).tier == "exact"
    assert do(chat.answers.lookup, alone).tier == "exact"
    assert do(chat.answers.lookup, "How old is she?", before=ACME).reason == "cold"
    assert do(chat.calls.lookup, None, model="m", standalone=alone).reason == "cold"


@pytest.mark.parametrize("standalone", ["", " \n", 7, ["x"]])
def test_a_rewriting_must_say_something(chat, standalone):
    with pytest.raises(UsageError, match="standalone"):
        chat.answers.lookup(ASK, standalone=standalone)


@pytest.mark.parametrize("before", ["Who is she?", [1], [None], [("user", "Who is she?")], {"a"}])
def test_a_conversation_is_texts_in_their_order(chat, before):
    with pytest.raises(UsageError, match="before must be the earlier turns"):
        chat.answers.lookup("How old is she?", before=before)


def test_a_fault_of_the_embedder_is_a_miss(do, model):
    class Broken(Counting):
        def embed(self, texts):
            if ASK in texts:
                raise RuntimeError("no model")
            return super().embed(texts)

    with stemma.open(":memory:", tenant="me", embedder=Broken()) as chat:
        served = do(chat.answers.get_or_compute, ASK, model, before=ACME)
        assert served.value == "answer 1"
        assert served.outcome.reason == "fault"
        assert do(chat.answers.lookup, ASK, before=ACME).tier == "exact"


def test_a_vector_that_is_gone_makes_no_hit(do, model, embedder):
    class Forgetful(MemoryStore):
        def vectors(self, ids):
            return {}

    with stemma.open(Forgetful(), tenant="me", embedder=embedder, policy="threshold") as chat:
        do(chat.answers.get_or_compute, ASK, model, before=ACME)
        miss = do(chat.answers.lookup, ASK, before=REWORDED)
        assert (miss.reason, miss.similarity) == ("context", -1.0)


def test_keys_of_requests_without_a_conversation_are_what_they_were():
    scope = Scope(tenant="me", node="answer")
    key = Request(exact={"a": 1}, focus="f").key(scope)
    assert (key.group, key.id) == (
        "422714403faa3d8f1b075b720fc27ae4",
        "8189ae1897c16ee7b2fe98ff12821886",
    )
    other = Request(exact={"a": 1}, focus="f", before=ACME).key(scope)
    assert other.group == Request(exact={"a": 1}, focus="g", before=REWORDED).key(scope).group
    assert other.group != key.group
    assert len({other.id, Request(exact={"a": 1}, focus="f", before=REWORDED).key(scope).id}) == 2
    exact = Request(exact={"a": 1}, focus="f", before=ACME, meaning=False).key(scope)
    assert exact.id == other.id
    assert exact.group != other.group
