"""The local embedder: MiniLM over ONNX Runtime, on the CPU, without network or torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from stemma import forking
from stemma.embedders.health import unit_rows
from stemma.embedders.model_files import find_model_files
from stemma.embedders.protocol import Matrix
from stemma.errors import EmbedderError, MissingDependency, UsageError

__all__ = ["WINDOW", "LocalEmbedder"]

WINDOW = 256
"""Tokens that the model reads, its two special ones included. MiniLM was trained on no more."""

_LONGEST = 8192
"""Characters beyond which a text is cut before it is tokenised: 32 a token, far above any prose."""

_SURELY_ASCII = 100
"""An ASCII text gives at most a token a character, and words up to 100 characters are known."""

_BATCH = 32


class LocalEmbedder:
    """Sentence vectors of MiniLM (or a like BERT model with mean pooling) from an ONNX file.

    The files are found and identified at construction (about 2 ms); the model is loaded at first
    use, once, and may be used from any thread. An empty text gets the vector that the model gives
    for no words at all, like in sentence-transformers.

    Args:
        path: An ONNX file or a folder with one; by default MiniLM's, wherever it lies on this
            machine (see `stemma.embedders.model_files`).
        tokenizer: The `tokenizer.json` that belongs to it; by default the one beside it.
        threads: Threads that one call may use, 1 or more.

    Raises:
        EmbedderError: The model or its tokenizer is not there. Says which install brings it.
        MissingDependency: ONNX Runtime or tokenizers is not installed.
        UsageError: `threads` is below 1.

    Example:
        ```python
        embedder = LocalEmbedder()
        near, far = embedder.embed(["a fast car", "a quick automobile"])
        ```
    """

    revision: str

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        threads: int = 1,
    ) -> None:
        if threads < 1:
            raise UsageError(f"threads must be 1 or more, not {threads}")
        self._files = find_model_files(path, tokenizer)
        for package in ("onnxruntime", "tokenizers"):
            if find_spec(package) is None:
                raise MissingDependency(
                    f"the local embedder needs {package}: pip install 'stemma-cache[local]'"
                )
        self._threads = threads
        self._lock = forking.Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        self.revision = f"local/1-mean{WINDOW}-{self._files.identity()}"

    def __repr__(self) -> str:
        return f"LocalEmbedder(revision={self.revision!r})"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (texts, dimensions), each of length 1. A longer text is cut.

        Raises:
            EmbedderError: The model cannot be loaded or run.
        """
        pooled = np.empty((len(texts), self._dimensions()), dtype=np.float32)
        for chosen, hidden, mask in self._run(texts):
            weight = mask[:, :, None].astype(np.float32)
            pooled[chosen] = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
        return unit_rows(pooled, len(texts))

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """For each text, its tokens' vectors without the special ones, each of length 1.

        Raises:
            EmbedderError: The model cannot be loaded or run.
        """
        found: dict[int, Matrix] = {}
        for chosen, hidden, mask in self._run(texts):
            lengths = mask.sum(axis=1)
            for row, number in enumerate(chosen):
                tokens = hidden[row, 1 : lengths[row] - 1]
                found[number] = unit_rows(tokens, len(tokens), dimensions=tokens.shape[1])
        return [found[number] for number in range(len(texts))]

    def fits(self, text: str) -> bool:
        """Whether the model reads the whole text: it is inside the window, and every word known.

        An emoji or a letter that the vocabulary lacks is the same `[UNK]` to the model, whichever
        it is: two texts that differ only there would have equal vectors.

        Raises:
            EmbedderError: The tokenizer cannot be loaded.
        """
        if text.isascii():
            if len(text) <= _SURELY_ASCII:
                return True
        elif not _encodable(text):
            return False
        if len(text) > _LONGEST:
            return False
        tokenizer = self._loaded_tokenizer()
        ids: list[int] = tokenizer.encode(text).ids
        return len(ids) <= WINDOW and tokenizer.token_to_id("[UNK]") not in ids

    def _run(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Any, Any]]:
        """By batches of like length: which texts, their hidden states, and the mask of tokens."""
        tokens = self._tokens(texts)
        order = sorted(range(len(texts)), key=lambda number: len(tokens[number]))
        session = self._loaded_session()
        wanted = {put.name for put in session.get_inputs()}
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            ids = np.zeros((len(chosen), len(tokens[chosen[-1]])), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, number in enumerate(chosen):
                ids[row, : len(tokens[number])] = tokens[number]
                mask[row, : len(tokens[number])] = 1
            given = {
                "input_ids": ids,
                "attention_mask": mask,
                "token_type_ids": np.zeros_like(ids),
            }
            try:
                hidden = session.run(
                    None, {name: value for name, value in given.items() if name in wanted}
                )[0]
            except Exception as error:
                raise EmbedderError(f"{self._files.model} could not be run: {error}") from error
            yield chosen, hidden, mask

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        tokenizer = self._loaded_tokenizer()
        found = []
        for text in texts:
            ids: list[int] = tokenizer.encode(_readable(text[:_LONGEST])).ids
            found.append(ids if len(ids) <= WINDOW else [*ids[: WINDOW - 1], ids[-1]])
        return found

    def _dimensions(self) -> int:
        size = self._loaded_session().get_outputs()[0].shape[-1]
        if not isinstance(size, int):
            raise EmbedderError(
                f"{self._files.model} does not say how long its vectors are; export it with a "
                "fixed last axis"
            )
        return size

    def _loaded_tokenizer(self) -> Any:
        if self._tokenizer is None:
            with self._lock:
                if self._tokenizer is None:
                    self._tokenizer = _load_tokenizer(str(self._files.tokenizer))
        return self._tokenizer

    def _loaded_session(self) -> Any:
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._session = _load_session(str(self._files.model), self._threads)
        return self._session


def _load_tokenizer(path: str) -> Any:
    import tokenizers  # noqa: PLC0415 - loaded at first use: importing Stemma loads no model library

    try:
        tokenizer = tokenizers.Tokenizer.from_file(path)
    except Exception as error:
        raise EmbedderError(f"{path} cannot be loaded as a tokenizer: {error}") from error
    tokenizer.no_truncation()  # the file may carry its own; `fits` must see the whole text
    tokenizer.no_padding()
    return tokenizer


def _load_session(path: str, threads: int) -> Any:
    import onnxruntime  # noqa: PLC0415 - as above

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads that spin take the processor away from the application.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbedderError(f"{path} cannot be loaded as an ONNX model: {error}") from error


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _readable(text: str) -> str:
    if text.isascii() or _encodable(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
