"""The commands in the README and in docs/ exist: make targets, subcommands and options, extras."""

import importlib.util
import re
import shlex
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest
import typer

from stemma.cli.main import _load_more, app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BASH = re.compile(r"```bash\n(.*?)```", re.DOTALL)
SPOKEN = re.compile(r"`((?:stemma|make|python -m|pip install)(?: [^`\n]*)?)`")


def commands() -> list[tuple[str, list[str]]]:
    """Every command line of the pages, in blocks and in running text, with where it stands."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [line for block in BASH.findall(text) for line in block.splitlines()]
        for line in [*lines, *SPOKEN.findall(text)]:
            words = shlex.split(line, comments=True)
            if words:
                found.append((page.relative_to(ROOT).as_posix(), words))
    return found


def of(program: str) -> list:
    return [
        pytest.param(words, id=f"{page}: {' '.join(words)}")
        for page, words in {(page, tuple(words)): None for page, words in commands()}
        if words[0] == program
    ]


@pytest.fixture
def group(monkeypatch):
    """The command with all its subcommands, those of other packages included."""
    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
    _load_more(["demo"])
    return typer.main.get_command(app)


def test_every_program_that_is_named_is_checked_here():
    assert {words[0] for _, words in commands()} == {"make", "stemma", "pip", "python"}


@pytest.mark.parametrize("words", of("make"))
def test_a_make_target_exists(words):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z]+) *\?=", makefile, re.MULTILINE))
    for word in words[1:]:
        assert word in targets or word.partition("=")[0] in variables


@pytest.mark.parametrize("words", of("stemma"))
def test_a_subcommand_exists_and_takes_the_options(words, group):
    _, *rest = (word for word in words if word != "…")
    if rest in ([], ["--help"]):
        return
    assert rest[0] in group.commands
    command = group.commands[rest[0]]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest[1:] if word.startswith("--")} <= {*known, "--help"}


@pytest.mark.parametrize("words", of("pip"))
def test_what_is_installed_is_us_with_extras_that_exist(words):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    packages = [word for word in words[2:] if not word.startswith("-")]
    assert packages
    for package in packages:
        title, _, extras = package.rstrip("]").partition("[")
        if title == project["name"]:
            assert set(extras.split(",")) <= set(project["optional-dependencies"])
        else:
            assert re.search(rf"^MODELS_demo +:= .*\b{title}\b", makefile, re.MULTILINE)


@pytest.mark.parametrize("words", of("python"))
def test_a_module_that_is_run_exists(words):
    assert words[1] == "-m"
    names = takewhile(lambda word: not word.startswith("-"), words[3:])
    named = [words[2], *(f"{words[2]}.{name}" for name in names)]
    assert all(importlib.util.find_spec(module) for module in named)


def test_the_first_screen_of_the_readme_holds_both_commands():
    start = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:12]
    assert any(line.startswith("make demo") for line in start)
    assert any(line.startswith("make test") for line in start)


def test_the_readme_lists_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(project["optional-dependencies"])


def test_the_page_lists_every_command(group):
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (\w+)$", page, re.MULTILINE)) == set(group.commands)
