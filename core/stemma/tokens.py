"""Counting tokens without ever touching the network.

tiktoken keeps its vocabularies in files that it downloads at first use. They are used here only
where they lie on the disk already (tiktoken's own cache folder, or the copy inside
`llama-index-core`); elsewhere tokens are estimated, and the result says so.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["TokenCount", "count_tokens"]

_ENCODINGS = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""The names under which tiktoken keeps its files, in the order of preference."""


_LATIN_END = 0x250


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of tokens, and whether it is only an estimate."""

    tokens: int
    estimated: bool


def count_tokens(text: str) -> TokenCount:
    """The tokens of a text by the newest vocabulary at hand, else about one per four characters.

    Characters beyond Latin count one token each in the estimate.
    """
    encoding = _encoding()
    if encoding is None:
        narrow = sum(1 for char in text if ord(char) < _LATIN_END)
        return TokenCount(-(-narrow // 4) + len(text) - narrow, estimated=True)
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return TokenCount(len(encoding.encode(clean, disallowed_special=())), estimated=False)


def _folders() -> list[Path]:
    named = [os.environ.get(name) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")]
    folders = [Path(name) for name in named if name]
    folders.append(Path(tempfile.gettempdir()) / "data-gym-cache")
    try:
        spec = importlib.util.find_spec("llama_index.core")
    except ImportError:
        spec = None
    if spec is not None and spec.submodule_search_locations:
        core = Path(next(iter(spec.submodule_search_locations)))
        folders.append(core / "_static" / "tiktoken_cache")
    return folders


@functools.cache
def _encoding() -> Any | None:
    for name, file in _ENCODINGS.items():
        for folder in _folders():
            if (folder / file).is_file():
                return _load(name, folder)
    return None


def _load(name: str, folder: Path) -> Any | None:
    import tiktoken  # noqa: PLC0415 - loaded only where its files are

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        return tiktoken.get_encoding(name)
    except Exception:
        return None  # a damaged file: estimating is better than failing
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
