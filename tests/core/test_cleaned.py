"""Prompts that differ only in what cleaning leaves out are one; the entry says what that was."""

import pytest

import stemma
from stemma import Cleaning, UsageError

ASK = "What is the refund window?"
RULES = Cleaning(patterns={"ticket": r"\[ref [A-Z]+-\d+\] ?"}, detect=True)


def asked(cache, do, model, day, question=ASK, *, cleaning=RULES):
    return do(
        cache.calls.get_or_compute,
        question,
        model,
        model="m",
        exact={"system": f"Be brief. Today is {day}."},
        cleaning=cleaning,
    )


def test_prompts_that_differ_in_volatile_parts_hit_exactly(cache, do, model):
    first = asked(cache, do, model, "Monday, 2 March 2026", f"[ref AB-1] {ASK}")
    again = asked(cache, do, model, "Tuesday, 3 March 2026", f"[ref AB-2] {ASK}")
    plain = asked(cache, do, model, "2026-03-04")
    assert (again.outcome.tier, plain.outcome.tier, model.calls) == ("exact", "exact", 1)
    entry = first.stored.entry
    assert entry.focus == ASK
    assert {one.name: (one.count, one.texts) for one in entry.left_out} == {
        "today": (1, ("Today is Monday, 2 March 2026.",)),
        "ticket": (1, ("[ref AB-1] ",)),
    }
    assert cache.engine.parts.store.get([entry.id]).entries[entry.id].left_out == entry.left_out


def test_nothing_is_left_out_unless_it_is_said(cache, do, model):
    for cleaning in (None, Cleaning()):
        asked(cache, do, model, "2 March 2026", cleaning=cleaning)
        asked(cache, do, model, "3 March 2026", cleaning=cleaning)
    assert model.calls == 2
    assert cache.engine.parts.store.find()[0].left_out == ()


def test_numbers_and_dates_of_the_question_are_never_detected_away(cache, do, model):
    for question in ("Is today is 2026-03-03 right?", "Is today is 2026-03-04 right?"):
        asked(cache, do, model, "2026-01-01", question)
    assert model.calls == 2
    for question in ("request_id: 4711", "request_id: 4712"):
        asked(cache, do, model, "2026-01-01", question)
    assert model.calls == 4


def test_a_question_that_would_be_emptied_keeps_its_words(cache, do, model):
    asked(cache, do, model, "2026-01-01", "[ref AB-1]")
    asked(cache, do, model, "2026-01-01", "[ref AB-2]")
    assert model.calls == 2


def test_a_prompt_without_anything_volatile_has_the_key_it_always_had(cache, do, model):
    plain = do(cache.answers.get_or_compute, ASK, model, exact=["x"], before=("a", "b"))
    found = do(cache.answers.lookup, ASK, exact=["x"], before=("a", "b"), cleaning=RULES)
    assert found.entry.id == plain.stored.entry.id


def test_the_conversation_is_cleaned_as_well(cache, do, model):
    for number in (1, 2):
        before = (f"[ref AB-{number}] Who runs Acme?", "Ada.")
        do(cache.answers.get_or_compute, "How old?", model, before=before, cleaning=RULES)
    assert model.calls == 1


@pytest.mark.parametrize("cleaning", ["x", {"a": "b"}, 1])
def test_cleaning_must_be_one(cache, cleaning):
    with pytest.raises(UsageError, match="Cleaning"):
        cache.answers.lookup(ASK, cleaning=cleaning)


def test_what_is_asked_is_checked_as_before(cache):
    with pytest.raises(UsageError):
        cache.answers.lookup(7, cleaning=RULES)
    with stemma.open(tenant="me", embedder=None) as other:
        assert other.calls.lookup(None, model="m", cleaning=RULES).reason == "cold"
