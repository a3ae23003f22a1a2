"""`stemma report` says what an operator knows of an entry, and what came of it."""

import json

import pytest

import stemma


def lookup(made, question):
    with stemma.open(made.path, tenant="acme", embedder=None) as cache:
        return cache.answers.lookup(question)


def test_a_report_is_an_operators(stemma_, made):
    """It holds for a cache that is open elsewhere, from its next read on."""
    ran = stemma_("report", made.answer[:12], "hallucinated", "--by", "ann [x]", "--db", made.path)
    assert ran.code == 0
    assert ran.out == (
        f"hallucinated by ann [x]: entry {made.answer} is hallucinated, wrong with 69%\n"
    )
    question = "Until when can I cancel my order?"
    assert lookup(made, question).reason == "quarantined"
    words = ("report", made.answer, "supported", "--by", "bob", "--db", made.path, "--json")
    told = json.loads(stemma_(*words).out)
    assert (told["verdict"], told["probability"], told["gone"]) == ("unknown", 0.2, False)
    assert told["judgement"]["tenant"] == ""
    assert lookup(made, question).hit
    shown = json.loads(stemma_("inspect", made.answer, "--db", made.path, "--json").out)
    assert shown["wrong"] == 0.2
    assert shown["said"] == ["supported by bob (-2.20)", "hallucinated by ann [x] (+2.20)"]


def test_of_what_is_gone_the_report_is_kept(stemma_, made):
    stemma_("recall", "--entry", made.answer, "--db", made.path)
    ran = stemma_("report", made.answer, "supported", "--by", "ann", "--db", made.path)
    assert (ran.code, "gone; the report is kept" in ran.out) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{answer}", "wrong", "--by", "ann"), "verdict must be one of"),
        (("nobody", "supported", "--by", "ann"), "no entry with an id that begins"),
        (("{answer}", "wrong_hit", "--by", "ann"), "which question it was served to"),
        (("{answer}", "supported", "--by", "ann", "--confidence", "2"), "confidence"),
        (("{answer}", "supported"), "--by"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(stemma_, made, words, said):
    given = [word.format(answer=made.answer) for word in words]
    ran = stemma_("report", *given, "--db", made.path)
    assert ran.code == 2
    assert said in ran.err


def test_a_wrong_hit_is_named_by_its_question(stemma_, made):
    words = ("report", made.answer, "wrong_hit", "--question", "q", "--by", "ann")
    assert stemma_(*words, "--db", made.path).code == 0
    shown = json.loads(stemma_("inspect", made.answer, "--db", made.path, "--json").out)
    assert (shown["verdict"], shown["barred"]) == ("suspect", ["q"])
