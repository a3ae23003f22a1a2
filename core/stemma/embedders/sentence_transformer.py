"""What a `SentenceTransformer` says of itself. The library is not imported: it is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np

from stemma.keys import digest

__all__ = ["is_sentence_transformer", "query_prompt", "query_side", "weights_revision"]

_SAMPLED = 64
"""Numbers looked at of each tensor of weights."""


def is_sentence_transformer(thing: Any) -> bool:
    """Whether it is one, or of a class made of it."""
    return any(base.__name__ == "SentenceTransformer" for base in type(thing).__mro__)


def query_side(model: Any) -> Callable[[list[str]], Any]:
    """What embeds texts as queries: with the model's prompt and task for them, if it has one."""
    if hasattr(model, "encode_query"):
        side: Callable[[list[str]], Any] = model.encode_query
        return side
    return partial(model.encode, prompt_name="query" if "query" in model.prompts else None)


def query_prompt(model: Any) -> str:
    """What is put before each query; it takes room in the model's window."""
    prompts = model.prompts
    named = "query" if "query" in prompts else model.default_prompt_name
    prompt = prompts.get(named) if named is not None else None
    return prompt if prompt is not None else ""


def weights_revision(model: Any) -> str:
    """A name for a model by what it computes with, wherever its files lie.

    A digest of samples of every tensor of weights, and of the settings that shape a query's
    vector: the modules, the window, the prompt, the length it is cut to. Two models, or one model
    with other weights, precision, prompt or length, are never taken for one. A model whose
    weights are in another runtime's hands (ONNX, OpenVINO) is known by its place.
    """
    place = str(getattr(getattr(model[0], "config", None), "_name_or_path", ""))
    weights = [
        [name, list(tensor.shape), str(tensor.dtype), _sample(tensor)]
        for name, tensor in model.state_dict().items()
    ]
    told = digest(
        "sentence-transformer/1",
        weights or place,
        list(_modules(model)),
        str(getattr(model, "backend", "torch")),
        model.max_seq_length,
        query_prompt(model),
        getattr(model, "truncate_dim", None),
    )
    name = PurePath(place).name
    return f"sentence-transformer:{name}@{told[:16]}" if name else f"sentence-transformer@{told}"


def _sample(tensor: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    flat = tensor.detach().reshape(-1)
    step = max(1, len(flat) // _SAMPLED)
    sample: np.ndarray[Any, np.dtype[np.float64]] = flat[::step].double().cpu().numpy()
    return sample


def _modules(model: Any) -> Iterator[Any]:
    """The steps from text to vector, with the settings they name."""
    for module in model:
        named: dict[str, Any] = getattr(module, "get_config_dict", dict)()
        plain = {name: value for name, value in named.items() if _is_plain(value)}
        yield [type(module).__qualname__, plain]


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool, type(None)))
