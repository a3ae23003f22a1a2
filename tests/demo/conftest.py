"""A small corpus, and a model that answers from its context and remembers what it was asked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

PAGES = {
    "codex.md": "# The codex\n\n## Binding\n\nThe leaves of a codex are folded, sewn and bound "
    "between boards of oak or beech.\n",
    "scroll.md": "# The scroll\n\n## Rollers\n\nThe rollers of a scroll are turned by hand; its "
    "papyrus sheets are glued side by side.\n",
    "tablet.md": "# The tablet\n\n## Clay\n\nClay for a tablet is dug from river banks, kneaded, "
    "written on while wet, and fired.\n",
    "ostracon.md": "# The ostracon\n\n## Shards\n\nShards of broken pottery for an ostracon cost "
    "nothing, and served for ballots and receipts.\n",
    "palimpsest.md": "# The palimpsest\n\n## Scraping\n\nScraping a palimpsest with pumice removes "
    "the older writing, which multispectral cameras find again.\n",
}


@pytest.fixture(scope="module")
def docs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "docs"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


class Reader(BaseChatModel):
    """Answers with the first sentence of its context."""

    model_name: str = "reader-1"
    _prompts: list[str] = PrivateAttr(default_factory=list)

    @property
    def prompts(self) -> list[str]:
        """What it was asked, in order."""
        return self._prompts

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        prompt = str(messages[-1].content)
        self._prompts.append(prompt)
        said = AIMessage(
            prompt.partition("\n\n")[0].removeprefix("Context:\n").replace("\n", " "),
            response_metadata={"finish_reason": "stop"},
            usage_metadata={"input_tokens": 40, "output_tokens": 10, "total_tokens": 50},
        )
        return ChatResult(generations=[ChatGeneration(message=said)])


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """The model that the demo's chain gets, whatever endpoint it is given."""
    model = Reader()

    def chat_model(endpoint, *, cache):
        model.cache = cache
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stemma_langchain.demo.chain.chat_model", chat_model)
        yield model
