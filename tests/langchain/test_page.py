"""The page about LangChain shows what runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "langchain.md"


def test_the_examples_of_the_page_run_one_after_another():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    names["cache"].close()
