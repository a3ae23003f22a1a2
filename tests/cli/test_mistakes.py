"""What is typed wrongly is an error of one line, and no file suffers from it."""

import json
import sqlite3

import pytest

from stemma.cli import main as command

COMMANDS = (["stats"], ["inspect", "abc"], ["recall", "--tag", "x"], ["check"], ["graph"])
NAMES = [words[0] for words in COMMANDS]


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_an_unknown_option_is_wrong_usage(stemma_, made, words):
    ran = stemma_(*words, "--db", made.path, "--nonsense")
    assert ran.code == 2
    assert ran.out == ""
    assert "--nonsense" in ran.err


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_a_file_that_is_not_there_is_named_and_not_made(stemma_, tmp_path, words):
    nowhere = tmp_path / ("long name " * 9 + "nothing.db")
    ran = stemma_(*words, "--db", nowhere)
    assert ran.code == 2
    assert ran.err == f"stemma: there is no cache at {nowhere}; name its file with --db\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_a_file_of_somebody_else_is_refused_and_not_touched(stemma_, tmp_path, words):
    theirs = tmp_path / "theirs.db"
    connection = sqlite3.connect(theirs)
    connection.execute("CREATE TABLE entries (id TEXT)")
    connection.commit()
    connection.close()
    before = theirs.read_bytes(), theirs.stat().st_mtime_ns
    ran = stemma_(*words, "--db", theirs)
    assert ran.code == 1
    assert ran.err.startswith("stemma: ")
    assert ran.err.count("\n") == 1
    assert (theirs.read_bytes(), theirs.stat().st_mtime_ns) == before
    assert [file.name for file in tmp_path.iterdir()] == ["theirs.db"]


def test_a_text_file_is_refused_and_not_touched(stemma_, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database")
    ran = stemma_("check", "--db", notes)
    assert ran.code == 1
    assert notes.read_text() == "not a database"


def test_without_a_command_there_is_help(stemma_):
    ran = stemma_()
    assert "Usage: stemma" in ran.out + ran.err
    assert all(name in ran.out + ran.err for name in (*NAMES, "demo"))


class Point:
    """An entry point whose packages are not there."""

    name = "demo"

    def load(self):
        raise ModuleNotFoundError("No module named 'chromadb'", name="chromadb")


@pytest.mark.parametrize("words", [[], ["--json", "figures.json"], ["--docs", "handbook"]])
def test_a_command_without_its_packages_says_what_to_install(stemma_, monkeypatch, words):
    monkeypatch.setattr(command, "entry_points", lambda group: [Point()])
    ran = stemma_("demo", *words)
    assert ran.code == 1
    assert ran.err == ("stemma: `stemma demo` needs chromadb: pip install 'stemma-cache[demo]'\n")


def test_a_command_without_its_packages_hinders_no_other(stemma_, monkeypatch, made):
    monkeypatch.setattr(command, "entry_points", lambda group: [Point()])
    assert len(json.loads(stemma_("stats", "--db", made.path, "--json").out)) == 4


def test_the_demo_wants_both_address_and_model_or_neither(stemma_):
    ran = stemma_("demo", "--base-url", "http://localhost:1/v1")
    assert ran.code == 2
    assert "--base-url and --model together" in ran.err


def test_the_demo_overwrites_no_cache(stemma_, made):
    before = made.path.read_bytes()
    ran = stemma_("demo", "--db", made.path)
    assert ran.code == 2
    assert "name a new file" in ran.err
    assert made.path.read_bytes() == before


def test_the_demo_wants_a_folder_with_text_in_it(stemma_, tmp_path):
    assert stemma_("demo", "--docs", tmp_path / "nowhere").code == 2
    assert stemma_("demo", "--docs", tmp_path).code == 2


@pytest.mark.parametrize(
    "words", [["stats"], ["stats", "--json"], ["recall", "--source", "d", "--dry-run"]]
)
def test_who_only_looks_at_a_damaged_file_leaves_it(stemma_, made, words):
    """It says what is wrong; a check sets it aside, and says so."""
    made.path.write_bytes(b"noise" * 5000)
    looked = stemma_(*words, "--db", made.path)
    assert looked.code == 1
    assert "left as it is" in looked.err
    assert made.path.read_bytes() == b"noise" * 5000
    checked = stemma_("check", "--db", made.path)
    assert (checked.code, "set aside" in checked.out) == (0, True)
    assert stemma_("check", "--db", made.path).out.strip() == "nothing wrong"
