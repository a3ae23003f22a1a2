"""The README and the pages of docs/ show what runs, and print what they say."""

import re
from pathlib import Path

import pytest

from stemma import Cache
from stemma.stores.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_THE_LOCAL_MODEL = {"README.md", "docs/embedders.md", "docs/reranking.md"}

BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FIGURE = re.compile(r"\d+\.\d+")
"""Similarities differ in the last digits from one processor to another."""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def runnable() -> list:
    return [
        pytest.param(
            page,
            id=name(page),
            marks=[pytest.mark.real] if name(page) in WITH_THE_LOCAL_MODEL else [],
        )
        for page in PAGES
        if any(language == "python" for language, _ in blocks(page))
    ]


def close(names: dict) -> None:
    for value in names.values():
        if isinstance(value, Cache | SqliteStore):
            value.close()


def printed(told: str) -> str:
    return FIGURE.sub("#", "\n".join(line.rstrip() for line in told.strip().splitlines()))


@pytest.mark.parametrize("page", runnable())
def test_the_examples_of_a_page_run_one_after_another(page, tmp_path, monkeypatch, capsys):
    """In a folder of their own, sharing their names; the README also prints what it shows."""
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    found = blocks(page)
    try:
        for place, (language, code) in enumerate(found):
            if language != "python":
                continue
            capsys.readouterr()
            exec(compile(code, f"{name(page)}, block {place}", "exec"), names)
            follows = found[place + 1] if place + 1 < len(found) else ("", "")
            if page.name == "README.md" and page.parent == ROOT and follows[0] == "text":
                assert printed(capsys.readouterr().out) == printed(follows[1])
    finally:
        close(names)


def test_the_pages_are_all_there_and_listed_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = {target for target in LINK.findall(index) if target.endswith(".md")}
    assert listed == {"../README.md", *(p.name for p in PAGES[1:] if p.name != "README.md")}
    assert len(runnable()) >= 8


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings_that_exist(page):
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{name(page)} links to {target}"
        if anchor:
            headings = HEADING.findall(file.read_text(encoding="utf-8"))
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{name(page)} links to {target}"
