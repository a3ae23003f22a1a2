"""MaxSim over token vectors: by hand, with its bounded memory, and with the real local model."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stemma.embedders import HashingEmbedder, LocalEmbedder
from stemma.errors import UsageError
from stemma.rerankers import MaxSimReranker, Reranker, as_reranker, best_first

ANGLES = {"east": 0.0, "northeast": 45.0, "north": 90.0, "west": 180.0}


class Compass:
    """Each known word is a direction in the plane; remembers what it was asked."""

    revision = "compass/1"

    def __init__(self):
        self.asked = []

    def embed_tokens(self, texts):
        self.asked.append(list(texts))
        return [self._vectors(text.split()) for text in texts]

    @staticmethod
    def _vectors(words):
        turned = np.radians([ANGLES[word] for word in words])
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


def test_each_token_of_the_query_takes_its_nearest_of_the_text():
    half = math.sqrt(0.5)
    scores = MaxSimReranker(Compass()).score(
        "east north", ["north east west", "northeast", "west", "east west"]
    )
    assert scores == pytest.approx([1.0, half, (-1 + 0) / 2, (1 + 0) / 2], abs=1e-6)
    assert all(type(score) is float for score in scores)


def test_the_order_of_texts_and_repeats_change_nothing():
    compass = Compass()
    reranker = MaxSimReranker(compass)
    assert reranker.score("east", ["west", "east", "west"]) == pytest.approx([-1, 1, -1])
    assert compass.asked == [["east", "west", "east"]]


def test_what_has_no_tokens_has_the_lowest_score():
    reranker = MaxSimReranker(Compass())
    assert reranker.score("east", ["", "east"]) == pytest.approx([-1.0, 1.0])
    assert reranker.score("", ["east"]) == [-1.0]
    assert reranker.score("east", []) == []


def test_texts_seen_before_are_not_embedded_again():
    compass = Compass()
    reranker = MaxSimReranker(compass)
    reranker.score("east", ["north", "west"])
    reranker.score("north", ["west", "east", "north"])
    assert compass.asked == [["east", "north", "west"], ["north", "east"]]


def test_the_memory_is_bounded_and_what_was_used_last_stays():
    compass = Compass()
    reranker = MaxSimReranker(compass, memory=16)  # two vectors of two float32
    reranker.score("east", ["north", "west"])
    reranker.score("east", ["north"])
    reranker.score("east", ["east"])  # drops "west"
    reranker.score("east", ["north", "west"])
    reranker.score("east", ["north west east"])  # larger than all of it: never kept
    reranker.score("east", ["north west east"])
    asked = [texts[1:] for texts in compass.asked]
    assert asked == [["north", "west"], [], ["east"], ["west"], *[["north west east"]] * 2]


def test_without_memory_it_embeds_each_time():
    compass = Compass()
    reranker = MaxSimReranker(compass, memory=0)
    for _ in range(2):
        assert reranker.score("east", ["east"]) == pytest.approx([1.0])
    assert compass.asked == [["east", "east"]] * 2


def test_many_threads_share_one():
    reranker = MaxSimReranker(Compass(), memory=48)
    texts = list(ANGLES)
    expected = {query: MaxSimReranker(Compass()).score(query, texts) for query in texts}
    with ThreadPoolExecutor(8) as pool:
        queries = texts * 50
        found = list(pool.map(lambda query: reranker.score(query, texts), queries))
    assert found == [expected[query] for query in queries]


def test_its_revision_is_its_embedders():
    assert isinstance(MaxSimReranker(Compass()), Reranker)
    assert MaxSimReranker(Compass()).revision == "maxsim/1-compass/1"


def test_wrong_arguments_are_refused():
    with pytest.raises(UsageError, match="no token vectors"):
        MaxSimReranker(HashingEmbedder())
    with pytest.raises(UsageError, match="no token vectors"):
        MaxSimReranker("hashing")
    with pytest.raises(UsageError, match="0 bytes or more"):
        MaxSimReranker(Compass(), memory=-1)


@pytest.mark.real
def test_the_real_model_puts_the_passage_that_answers_first():
    reranker = as_reranker("local")
    assert reranker.revision == f"maxsim/1-{LocalEmbedder().revision}"
    texts = [
        "The Saxon Garden is a public garden in central Warsaw.",
        "The Summer Theatre in the Saxon Garden was in operation from 1870 to 1939.",
        "Warsaw's first literary cabaret was Momus.",
        "",
    ]
    asked = {
        "How long was the Summer Theatre in operation?": 1,
        "What was the name of the first literary cabaret?": 2,
        "What is the Saxon Garden?": 0,
    }
    for query, place in asked.items():
        scores = reranker.score(query, texts)
        assert best_first(scores)[0] == place
        assert all(-1.0 <= score <= 1.0 for score in scores)
        assert scores == pytest.approx(reranker.score(query, texts[::-1])[::-1], abs=1e-5)
