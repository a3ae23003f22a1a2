"""Arguments by meaning: beside the exact part, each under the guards, more strictly than answers."""

import pytest

import stemma
from stemma.policies.arguments import ARGUMENTS, ArgumentPolicy, parted, read, written
from stemma.policies.threshold import Candidate, ThresholdPolicy
from stemma.testing.fakes import Scripted

ASKED = "find music events in Berlin this weekend"
REWORDED = "music events in Berlin this weekend, find"
ELSEWHERE = "find music events in Oslo this weekend"


def search(cache, do, compute, query, **others):
    arguments = {"query": query, **others.pop("arguments", {})}
    return do(
        cache.hops.get_or_compute,
        "search",
        compute,
        arguments=arguments,
        semantic=("query",),
        similarity=others.pop("similarity", 0.5),
        **others,
    )


def test_a_reworded_argument_is_served_and_another_place_is_not(cache, do):
    calls = Scripted()
    search(cache, do, calls, ASKED)
    served = search(cache, do, calls, REWORDED)
    assert (served.outcome.tier, served.value, calls.calls) == ("semantic", "answer 1", 1)
    assert search(cache, do, calls, ELSEWHERE).outcome.reason == "guard:name"
    assert calls.calls == 2


def test_the_other_arguments_the_tool_and_the_agent_must_be_equal(cache, do):
    calls = Scripted()
    search(cache, do, calls, ASKED, arguments={"limit": 3}, agent="a", version="1")
    for others in (
        {"arguments": {"limit": 4}, "agent": "a", "version": "1"},
        {"arguments": {}, "agent": "a", "version": "1"},
        {"arguments": {"limit": 3}, "agent": "b", "version": "1"},
        {"arguments": {"limit": 3}, "agent": "a", "version": "2"},
    ):
        assert not search(cache, do, calls, REWORDED, **others).outcome.hit
    again = search(cache, do, calls, REWORDED, arguments={"limit": 3}, agent="a", version="1")
    assert again.value == "answer 1"


def test_what_is_not_named_semantic_is_compared_exactly(cache, do):
    calls = Scripted()
    for query in (ASKED, REWORDED):
        arguments = {"query": query}
        assert not do(cache.hops.get_or_compute, "s", calls, arguments=arguments).outcome.hit
    assert calls.calls == 2


@pytest.mark.parametrize("value", [None, 7, "", "  ", ["music", "Berlin"]])
def test_a_missing_blank_or_other_value_falls_to_the_exact_part(cache, do, value):
    calls = Scripted()

    def ask(arguments):
        return do(
            cache.hops.get_or_compute, "s", calls, arguments=arguments, semantic=["query", "topic"]
        )

    ask({"query": value, "topic": ASKED})
    assert ask({"query": value, "topic": ASKED}).outcome.tier == "exact"
    assert not ask({"query": "other", "topic": ASKED}).outcome.hit
    assert not ask({"topic": ASKED}).outcome.hit


def test_several_arguments_are_each_read_by_the_guards(cache, do):
    calls = Scripted()

    def ask(subject, place):
        return do(
            cache.hops.get_or_compute,
            "s",
            calls,
            arguments={"subject": subject, "place": place},
            semantic=("subject", "place"),
            similarity=0.3,
        )

    ask("concerts for children", "near the station of Berlin")
    reworded = ask("for children: concerts", "near Berlin, the station of")
    assert reworded.outcome.tier == "semantic"
    refused = ask("concerts for children", "near the station of Oslo").outcome
    assert (refused.reason, refused.detail.split(":")[0]) == ("guard:name", "argument place")


def test_the_default_is_stricter_than_that_of_answers():
    near = Candidate("1", "find events in Berlin", (ThresholdPolicy().threshold + ARGUMENTS) / 2)
    assert ThresholdPolicy().decide("Berlin events, find", [near]).accepted
    policy = ArgumentPolicy(names=("query",))
    assert policy.decide("Berlin events, find", [near]).reason == "below_threshold"
    assert ArgumentPolicy(0.5, names=("query",)).decide("Berlin events, find", [near]).accepted


@pytest.mark.parametrize(
    "texts",
    [
        {"a": "x"},
        {"a": "one\ntwo\n three", "b": "a: x\nb: y"},
        {"a": "\n", "b": "\n\n b: z ", "c": "c: "},
        {"a: b": "x\ra: y", "b": "\u2028"},
    ],
)
def test_written_arguments_are_read_back_whatever_they_say(texts):
    assert read(tuple(texts), written(texts)) == list(texts.values())


def test_the_names_in_the_text_are_in_one_order():
    exact, texts = parted({"b": "x", "n": 1, "a": "y"}, ("b", "a", "missing"))
    assert exact == {"n": 1}
    assert list(texts) == ["a", "b"]


@pytest.mark.parametrize("arguments", [None, "text", ["a"], 7])
def test_semantic_arguments_need_names(cache, arguments):
    with pytest.raises(stemma.UsageError, match="needs arguments with names"):
        cache.hops.lookup("s", arguments=arguments, semantic=("query",))


@pytest.mark.parametrize("similarity", [1.5, -0.1, float("nan"), "0.9", True])
def test_a_similarity_out_of_its_range_is_an_error(cache, similarity):
    with pytest.raises(stemma.UsageError, match="threshold"):
        cache.hops.lookup("s", arguments={"q": "x"}, semantic="q", similarity=similarity)
