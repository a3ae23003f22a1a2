"""Every dotted name of ours that the pages mention can be reached."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOTTED = re.compile(r"`((?:stemma|stemma_langchain)(?:\.\w+)+)[`(]")
NAMES = sorted({name for page in PAGES for name in DOTTED.findall(page.read_text("utf-8"))})


def reached(dotted: str):
    """The object behind a dotted name: as far as it imports, then by attribute."""
    parts = dotted.split(".")
    found = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:place]))
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_a_page_mentions_exists(name):
    assert reached(name) is not None


def test_names_are_found_in_the_pages_and_a_wrong_one_would_be_noticed():
    assert "stemma.open" in NAMES
    with pytest.raises(ModuleNotFoundError):
        reached("stemma.stores.nowhere")
