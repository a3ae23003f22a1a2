"""`stemma recall` takes back what is named and what was built from it, and says so."""

import json

import pytest

import stemma
from stemma import Selector


def test_a_dry_run_lists_and_takes_nothing(stemma_, made):
    ran = stemma_("recall", "--source", "terms.md", "--dry-run", "--db", made.path)
    assert ran.code == 0
    assert ran.out.startswith(
        "recall(source=terms.md) would take back 2 entries: 1 answer, 1 retrieval\n"
    )
    assert made.answer in ran.out
    assert made.retrieval in ran.out
    assert stemma_("inspect", made.answer, "--db", made.path).code == 0


def test_a_recall_takes_what_was_built_on_a_document_and_nothing_else(stemma_, made):
    ran = stemma_("recall", "--source", "terms.md", "--db", made.path)
    assert ran.out.startswith("recall(source=terms.md) took back 2 entries: 1 answer, 1 retrieval")
    for gone in (made.answer, made.retrieval):
        assert stemma_("inspect", gone, "--db", made.path).code == 2
    for there in (made.shipping, made.other):
        assert stemma_("inspect", there, "--db", made.path).code == 0


def test_an_open_cache_serves_nothing_of_it_from_its_next_read(stemma_, made):
    with stemma.open(made.path, tenant="acme", embedder=None) as cache:
        question = "Until when can I cancel my order?"
        assert cache.answers.lookup(question).hit
        stemma_("recall", "--source", "terms.md#3", "--db", made.path)
        assert not cache.answers.lookup(question).hit


@pytest.mark.parametrize(
    ("option", "value", "gone"),
    [
        ("source", "terms.md", ("answer", "retrieval")),
        ("source", "terms.md#3", ("answer", "retrieval")),
        ("tenant", "globex", ("other",)),
        ("tag", "ship[ping]", ("shipping",)),
        ("writer", "bot-2", ("shipping",)),
        ("model", "gpt-x", ("shipping",)),
        ("subject", "canada", ("shipping",)),
        ("index", "shop/1", ("answer", "retrieval")),
        ("node", "call", ("shipping",)),
        ("tag", "ship%", ()),
    ],
)
def test_every_option_names_its_entries(stemma_, made, option, value, gone):
    ran = stemma_("recall", f"--{option}", value, "--db", made.path, "--json")
    told = json.loads(ran.out)
    assert told["selector"] == {option: value}
    assert told["dry_run"] is False
    assert {item["entry"] for item in told["entries"]} == {getattr(made, name) for name in gone}


def test_an_entry_is_named_by_its_id(stemma_, made):
    told = json.loads(stemma_("recall", "--entry", made.retrieval, "--db", made.path, "--json").out)
    assert {item["entry"] for item in told["entries"]} == {made.retrieval, made.answer}


def test_several_options_must_all_hold(stemma_, made):
    both = ["recall", "--tenant", "acme", "--node", "answer", "--json", "--db", made.path]
    told = json.loads(stemma_(*both).out)
    assert [item["entry"] for item in told["entries"]] == [made.answer]


def test_there_is_an_option_for_everything_that_can_be_named(stemma_):
    usage = stemma_("recall", "--help").out
    assert all(f"--{name}" in usage for name in Selector.__dataclass_fields__)


def test_naming_nothing_takes_nothing(stemma_, made):
    ran = stemma_("recall", "--db", made.path)
    assert ran.code == 2
    assert ran.err.startswith("stemma: name what to take back")
    assert stemma_("inspect", made.answer, "--db", made.path).code == 0
