"""`stemma demo` as it is typed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stemma.cli import main as command


@pytest.fixture
def typed(monkeypatch, capsys):
    """Runs `stemma demo …` in this process, and gives the exit status and what was printed."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(command.app, "registered_commands", list(command.app.registered_commands))

    def run(*words) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["stemma", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            command.main()
        told = capsys.readouterr()
        return ended.value.code or 0, told.out + told.err

    return run


@pytest.mark.real
def test_it_asks_an_endpoint_keeps_the_cache_and_writes_its_figures(docs, reader, tmp_path, typed):
    """With the real embedding model; the endpoint's model is one that counts."""
    db, figures = tmp_path / "kept.db", tmp_path / "figures.json"
    endpoint = ("--base-url", "http://localhost:9/v1", "--model", "none")
    code, page = typed("demo", "--docs", docs, *endpoint, "--db", db, "--json", figures)
    assert code == 0, page
    assert "exactly these were computed anew" in page
    told = json.loads(figures.read_text(encoding="utf-8"))
    assert told["documents"] == 5
    assert len(reader.prompts) >= 5
    code, listed = typed("stats", "--db", db)
    assert code == 0
    assert "globex" in listed


def test_a_file_that_cannot_be_read_is_told_and_left_out(docs, reader, tmp_path, typed):
    folder = tmp_path / "some"
    folder.mkdir()
    (folder / "empty.md").write_text("", encoding="utf-8")
    (folder / "strange.txt").write_bytes(b"\xff\xfe\xfa")
    code, page = typed("demo", "--docs", folder)
    assert code == 2
    assert "empty.md: empty" in page
    assert "strange.txt: not UTF-8 at byte 0" in page


@pytest.mark.real
def test_it_runs_with_real_models_from_a_shell(docs, tmp_path, tmp_path_factory):
    """A fresh process, the real embedder, the real language model on loopback, three pages."""
    three = tmp_path_factory.mktemp("three")
    for page in ("codex.md", "scroll.md", "tablet.md"):
        shutil.copy(docs / page, three)
    figures = tmp_path / "figures.json"
    program = Path(sys.executable).with_name("stemma")
    done = subprocess.run(
        [program, "demo", "--docs", three, "--json", figures],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "160"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "The family tree of one answer" in done.stdout
    told = json.loads(figures.read_text(encoding="utf-8"))
    phases = {phase["name"]: phase["asked"] for phase in told["phases"]}
    assert {one["outcome"] for one in phases["again"]} == {"exact"}
    assert not {"exact", "semantic"} & {one["outcome"] for one in phases["other tenant"]}
    assert all(one["answer"].strip() for one in phases["cold"])
    computed = [
        one["question"]
        for one in phases["after the edit"]
        if one["outcome"] not in ("exact", "semantic")
    ]
    assert computed == told["edit"]["questions"]
    assert [file.name for file in tmp_path.iterdir()] == ["figures.json"]
