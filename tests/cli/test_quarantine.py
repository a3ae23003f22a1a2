"""`stemma quarantine` and `stemma release`, as a shell runs them."""

import json

import stemma


def test_what_is_held_is_listed_and_served_no_more_until_it_is_released(stemma_, made):
    ran = stemma_("quarantine", made.retrieval[:10], "--by", "ada", "--db", made.path)
    assert ran.code == 0
    assert "held 2 entries" in ran.out
    assert made.answer in ran.out
    with stemma.open(made.path, tenant="acme", embedder=None) as cache:
        question = "Until when can I cancel my order?"
        assert cache.answers.lookup(question).reason == "quarantined"
        (receipt,) = cache.quarantines()
        cache.clear(entry=made.retrieval)
        ran = stemma_("release", receipt.id, "--db", made.path)
        assert "released 2 entries (1 of them gone since)" in ran.out
        assert "quarantined" not in str(cache.answers.lookup(question))


def test_a_rehearsal_tells_what_would_be_held(stemma_, made):
    words = ("--source", "terms.md", "--by", "ada", "--reason", "old", "--dry-run", "--json")
    told = json.loads(stemma_("quarantine", *words, "--db", made.path).out)
    assert {one["entry"] for one in told["entries"]} == {made.answer, made.retrieval}
    assert (told["by"], told["reason"], told["dry_run"], told["id"]) == ("ada", "old", True, "")
    assert all(one["probability"] == 1.0 for one in told["entries"])
    with stemma.open(made.path, embedder=None) as cache:
        assert cache.quarantines() == ()


def test_mistakes_are_told_in_a_line(stemma_, made):
    for words, told in (
        (("quarantine", made.answer), "--by"),
        (("quarantine", "--by", "ada"), "name what is suspected"),
        (("quarantine", "never", "--by", "ada"), "no entry"),
        (("quarantine", made.answer, "--by", "ada", "--threshold", "0"), "threshold"),
        (("release", "never"), "no quarantine 'never'"),
    ):
        ran = stemma_(*words, "--db", made.path)
        assert ran.code == 2
        assert told in ran.err


def test_ids_are_printed_whole_in_80_columns_and_names_as_they_are(stemma_, tmp_path, monkeypatch):
    path, tenant = tmp_path / "answers.db", "of:umbrella:"
    with stemma.open(path, tenant=tenant, embedder=None) as cache:
        made = cache.answers.get_or_compute("Is it open?", lambda: "Yes.").stored.entry.id
    monkeypatch.setenv("COLUMNS", "80")
    for words in (("quarantine", made, "--by", "ada", "--dry-run"), ("recall", "--entry", made)):
        ran = stemma_(*words, "--db", path)
        table = ran.out[ran.out.index("┏") :]
        assert made in table
        assert tenant in table
        assert all(len(line) <= 80 for line in table.splitlines())
    assert tenant in stemma_("promote", tenant, "--by", "pam", "--db", path).err


def test_no_name_acts_on_the_terminal(stemma_, tmp_path):
    path, tenant, by = tmp_path / "answers.db", "a\x1b[2Jb\ud800", "eve\u202e\x1b]0;x\x07"
    with stemma.open(path, tenant=tenant, embedder=None) as cache:
        made = cache.answers.get_or_compute("Is it open?", lambda: "Yes.").stored.entry.id
    for words in (
        ("report", made, "unknown", "--by", by),
        ("quarantine", "--tenant", tenant, "--by", by),
        ("recall", "--tenant", tenant),
        ("inspect", by),
    ):
        ran = stemma_(*words, "--db", path)
        shown = ran.out + ran.err
        assert not {"\x1b", "\x07", "\u202e", "\ud800"} & set(shown)
        assert r"\x1b" in shown
