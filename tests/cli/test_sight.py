"""`stemma stats`, `inspect` and `check` tell what is in a file, and change nothing."""

import json
import sqlite3

import pytest

import stemma
from stemma import Cleaning
from stemma.testing.searches import World


def test_stats_tell_hits_and_misses_by_tenant_and_node(stemma_, made):
    ran = stemma_("stats", "--db", made.path)
    assert ran.code == 0
    rows = [line for line in ran.out.splitlines() if "│" in line]
    assert [[cell.strip() for cell in row.strip("│").split("│")][:6] for row in rows] == [
        ["acme", "answer", "1", "1", "0", "1"],
        ["acme", "call", "1", "0", "0", "1"],
        ["acme", "retrieval", "1", "0", "0", "1"],
        ["globex", "answer", "1", "0", "0", "1"],
    ]
    assert "1 cold" in ran.out


def test_stats_as_json_are_what_the_cache_itself_says(stemma_, made):
    told = json.loads(stemma_("stats", "--db", made.path, "--json").out)
    with stemma.open(made.path, embedder=None) as cache:
        assert told == cache.stats().as_json()
    assert [row["misses"] for row in told] == [{"cold": 1}] * 4


def test_the_file_may_be_named_by_the_environment(stemma_, made, monkeypatch):
    monkeypatch.setenv("STEMMA_DB", str(made.path))
    assert "globex" in stemma_("stats").out


def test_an_entry_is_shown_with_its_family_tree_and_without_its_text(stemma_, made):
    ran = stemma_("inspect", made.answer, "--db", made.path)
    assert ran.code == 0
    assert made.answer in ran.out
    assert f"answer {made.answer[:12]} of acme" in ran.out
    assert f"retrieval {made.retrieval[:12]} of acme" in ran.out
    assert "source terms.md#3" in ran.out
    assert "cancel my order" not in ran.out
    assert "30 days" not in ran.out


def test_question_and_value_are_shown_when_asked_for_and_their_brackets_are_no_markup(
    stemma_, made
):
    ran = stemma_("inspect", made.answer, "--db", made.path, "--text")
    assert "Until when can I cancel my order?" in ran.out
    assert "For 30 days [bold]after[/bold] buying." in ran.out


def test_what_cleaning_left_out_is_counted_and_its_text_shown_when_asked_for(stemma_, tmp_path):
    path = tmp_path / "answers.db"
    rules = Cleaning(patterns={"ticket": r"\[ref \d+\]"})
    with stemma.open(path, tenant="acme", embedder=None) as cache:
        asked = cache.answers.ticket("[ref 17] Why?", before=("Hm [ref 9]",), cleaning=rules)
        entry = cache.answers.put(asked, "So.").entry.id
    shown = json.loads(stemma_("inspect", entry, "--db", path, "--json").out)
    assert (shown["left_out"], shown["before"]) == ({"ticket": 2}, 1)
    told = json.loads(stemma_("inspect", entry, "--db", path, "--json", "--text").out)
    assert told["left_out"] == [{"name": "ticket", "count": 2, "texts": ["[ref 17]", "[ref 9]"]}]
    assert told["before"] == ["Hm "]
    assert "[ref 17]" not in stemma_("inspect", entry, "--db", path).out
    assert "[ref 17]" in stemma_("inspect", entry, "--db", path, "--text").out


def test_lists_and_vectors_are_shown_as_what_they_are(stemma_, tmp_path):
    path = tmp_path / "lists.db"
    with stemma.open(path, tenant="acme", embedder=None) as cache:
        world = World(cache)
        world.fill(40)
        listed = world.retrieve(world.query())
        vector = cache.embeddings.get_or_compute("text", lambda: [0.5, 0.25], model="m")
    words = ("--db", path, "--text", "--json")
    told = json.loads(stemma_("inspect", listed.stored.entry.id, *words).out)["payload"]
    assert told["chunks"] == list(listed.value.chunks)
    assert told["k"] == 3
    assert told["similarities"] == sorted(told["similarities"], reverse=True)
    told = json.loads(stemma_("inspect", vector.stored.entry.id, *words).out)["payload"]
    assert told == [0.5, 0.25]


def test_an_entry_as_json_has_its_fields_and_edges(stemma_, made):
    told = json.loads(stemma_("inspect", made.answer, "--db", made.path, "--json").out)
    assert told["id"] == made.answer
    assert told["tenant"] == "acme"
    assert told["bytes"] > 0
    assert "payload" not in told
    assert "focus" not in told
    assert sorted(edge[0] for edge in told["edges"] if edge[1] == made.answer) == sorted(
        [made.retrieval, "source/terms.md/terms.md#3"]
    )


def test_the_beginning_of_an_id_is_enough_while_it_is_the_only_one(stemma_, made):
    ran = stemma_("inspect", made.other[:12], "--db", made.path, "--json")
    assert json.loads(ran.out)["id"] == made.other


@pytest.mark.parametrize(("start", "what"), [("zz", "no entry"), ("", "4 entries")])
def test_an_unknown_or_ambiguous_beginning_is_an_error(stemma_, made, start, what):
    ran = stemma_("inspect", start, "--db", made.path)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err == f"stemma: {what} with an id that begins with {start!r}\n"


def test_a_sound_file_has_nothing_wrong(stemma_, made):
    assert stemma_("check", "--db", made.path).out == "nothing wrong\n"
    assert json.loads(stemma_("check", "--db", made.path, "--json").out) == []


def test_damage_is_told_once_and_mended(stemma_, made):
    connection = sqlite3.connect(made.path)
    connection.execute(
        "UPDATE entries SET record = substr(record, 1, length(record) - 1) || x'ff' WHERE id = ?",
        (made.other,),
    )
    connection.commit()
    connection.close()
    first = json.loads(stemma_("check", "--db", made.path, "--json").out)
    assert len(first) == 1
    assert "damaged" in first[0]
    assert stemma_("check", "--db", made.path).out == "nothing wrong\n"
    assert stemma_("inspect", made.other, "--db", made.path).code == 2
    assert stemma_("inspect", made.answer, "--db", made.path).code == 0


def test_looking_changes_no_entry(stemma_, made):
    def entries():
        connection = sqlite3.connect(made.path)
        rows = connection.execute("SELECT id, record FROM entries ORDER BY id").fetchall()
        connection.close()
        return rows

    before = entries()
    for words in (["stats"], ["inspect", made.answer], ["check"]):
        assert stemma_(*words, "--db", made.path).code == 0
    assert entries() == before


def test_what_was_said_of_an_entry_is_shown(stemma_, tmp_path):
    """How often audits agreed, how far it is believed, what it may never answer, and who said so."""
    path = tmp_path / "answers.db"
    with stemma.open(path, tenant="acme", embedder="hashing", threshold=0.6) as cache:
        for _ in range(2):
            miss = cache.answers.lookup("How do I cancel my order?")
            stored = cache.answers.put(miss.ticket, "Press Cancel.", confidence=0.3)
        cache.answers.put(
            cache.answers.ticket("How do I cancel my order?"), "Press Cancel.", confidence=0.6
        )
        hit = cache.answers.lookup("How can I cancel my order?")
        cache.report(hit, "wrong_hit", by="ann [x]")
    told = json.loads(stemma_("inspect", stored.entry.id, "--db", path, "--json").out)
    assert (told["verdict"], told["wrong"]) == ("suspect", 0.2)
    assert (told["confidence"], told["confidence_now"]) == (0.6, 0.733)
    assert told["audits"] == {"agreed": 2, "disagreed": 0}
    assert told["barred"] == [hit.question]
    assert told["said"] == ["wrong_hit by ann [x] (not of its truth)"]
    assert (told["doubted"], told["answer"]) == (True, stored.entry.value)
    shown = stemma_("inspect", stored.entry.id, "--db", path).out
    assert "wrong_hit by ann [x]" in shown
    assert hit.question in shown
