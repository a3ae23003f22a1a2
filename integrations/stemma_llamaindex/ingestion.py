"""`CachedTransformation`: a step of an ingestion behind the cache, each document by itself.

LlamaIndex's own ingestion cache asks by the text of all documents run together, and gives whoever
asks the nodes of who asked first, with their ids. Its interface is told neither documents nor ids,
so that nothing put in its place could do better. This wraps the step instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.extractors import BaseExtractor
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, TransformComponent
from pydantic import Field

from stemma import (
    Asked,
    Cache,
    Frame,
    Query,
    Request,
    UsageError,
    digest,
    frames,
)
from stemma_llamaindex.codec import CODEC
from stemma_llamaindex.describing import Walk, describe
from stemma_llamaindex.node_groups import (
    Group,
    shared_out,
    storable,
    together,
    untransformed,
)
from stemma_llamaindex.sources import document_id

__all__ = ["CachedTransformation"]

Per = Literal["document", "batch"]

_TOKENIZERS = ("_tokenizer", "_chunking_tokenizer_fn")
"""The functions by which LlamaIndex's splitters count and cut."""

_PROBE = "A codex, bound in 1453. Is it a book? Scrolls aren't; naïve readers (of 抄本) differ."


class CachedTransformation(TransformComponent):
    """A transformation (splitter, parser, extractor, embedder) that runs once a document.

    ```python
    pipeline = IngestionPipeline(
        transformations=[CachedTransformation(cache, SentenceSplitter()), embedder],
        disable_cache=True,
    )
    ```

    A document whose content, metadata and transformation are as before gets the nodes that were
    made then, as fresh copies. They are its own: one that has another id but equal content gets
    nodes with ids of its own, always the same ones, and with relationships to itself. Documents
    are told apart, whatever they are run with. Of a batch, the missing ones are transformed in one
    call. The cached nodes are taken back with their document (`recall(source=…)`).

    All metadata counts, since a splitter copies it into its nodes: name in `ignored` what moves
    with each run, such as a date of modification; such a field is what it is now on every node
    that has it. Not stored are: results that hold what the codec has no form for, or nodes of no
    document that was given.

    Args:
        cache: The cache.
        inner: The transformation.
        per: What is cached by itself: each `"document"`, or the whole `"batch"` where it is not
            transformed by itself; by default documents for node parsers, extractors and
            embedding models, else batches.
        identity: What the transformation is, instead of its description (its class, `__call__`,
            fields, and what its tokenizers do): for one of which no key can be made, or to say
            that it has changed.
        ignored: Metadata that does not count.
        life: Base life of what is stored, seconds; by default as the cache's policy says.

    Raises:
        UsageError: An argument is wrong.
    """

    cache: Cache = Field(exclude=True, repr=False)
    inner: TransformComponent = Field(exclude=True)
    per: Per
    identity: str | None = None
    ignored: tuple[str, ...] = ()
    life: float | None = None

    def __init__(
        self,
        cache: Cache,
        inner: TransformComponent,
        *,
        per: Per | None = None,
        identity: str | None = None,
        ignored: Sequence[str] = (),
        life: float | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if not isinstance(inner, TransformComponent):
            raise UsageError(f"inner must be a transformation, not {type(inner).__name__}")
        if per not in ("document", "batch", None):
            raise UsageError(f'per must be "document" or "batch", not {per!r}')
        if isinstance(ignored, str):
            raise UsageError("ignored must be a list of names, not one name")
        alone = isinstance(inner, (NodeParser, BaseExtractor, BaseEmbedding))
        named: dict[str, Any] = {
            "cache": cache,
            "inner": inner,
            "per": per if per is not None else ("document" if alone else "batch"),
            "identity": identity,
            "ignored": tuple(ignored),
            "life": life,
        }
        super().__init__(**named)

    @classmethod
    def class_name(cls) -> str:
        """The name in stored settings."""
        return "CachedTransformation"

    @property
    def stemma_identity(self) -> Any:
        """What the transformation is: a cached one makes the same nodes."""
        return self.identity if self.identity is not None else _describe(self.inner)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Its settings; of the transformation a digest."""
        settings: dict[str, Any] = super().to_dict(**kwargs)
        return {**settings, "stemma_identity": digest("transformation/1", self.stemma_identity)}

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """The nodes that the transformation makes of these, document by document."""
        groups = self._groups(nodes, kwargs)
        for group in groups:
            if group.query is not None:
                group.outcome = self.cache.calls.look(group.query)
        missing = untransformed(groups)
        if not missing:
            return together(groups, [])
        rest = shared_out(groups, self.inner(missing, **kwargs))
        self.cache.calls.put_all(storable(groups) if not rest else [])
        return together(groups, rest)

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """As `__call__`."""
        groups = self._groups(nodes, kwargs)
        for group in groups:
            if group.query is not None:
                group.outcome = await self.cache.calls.alook(group.query)
        missing = untransformed(groups)
        if not missing:
            return together(groups, [])
        rest = shared_out(groups, await self.inner.acall(missing, **kwargs))
        await self.cache.calls.aput_all(storable(groups) if not rest else [])
        return together(groups, rest)

    def _groups(self, nodes: Sequence[BaseNode], kwargs: Mapping[str, Any]) -> list[Group]:
        """What is cached by itself: the nodes of each document, or all of them."""
        by_document: dict[str, list[BaseNode]] = {}
        for node in nodes:
            name = document_id(node) if self.per == "document" else ""
            by_document.setdefault(name, []).append(node)
        asked_with = {name: value for name, value in kwargs.items() if name != "show_progress"}
        parameters = {"transformation": self.stemma_identity, "with": describe(asked_with)}
        current = frames.current()
        tenant = current.tenant if current is not None else None
        groups = []
        for name, given in by_document.items():
            group = Group(name=name, given=given, ignored=self.ignored)
            # A frame of its own, for nothing else in this run is what its nodes are made of.
            query = self.cache.calls.resolve(
                self._asked(group, parameters), frame=Frame(tenant=tenant)
            )
            group.query = query if isinstance(query, Query) else None
            groups.append(group)
        return groups

    def _asked(self, group: Group, parameters: Any) -> Asked:
        content = group.content()
        return Asked(
            scope={"template": "ingestion", "parameters": parameters},
            request=Request(
                exact=content if _names_at_random(self.inner) else [content, group.ids],
                meaning=False,
            ),
            codec=CODEC,
            life=self.life,
        )


class _Walk(Walk):
    """As any walk over LlamaIndex's objects, but of a transformation only its fields count.

    What it keeps besides is made from them, or is a function of a tokenizer's, which is tried.
    """

    def private_counts(self, kind: type) -> bool:
        return not issubclass(kind, TransformComponent) and super().private_counts(kind)


def _describe(inner: TransformComponent) -> Any:
    """A transformation as plain values; what its splits depend on is told by trying it."""
    tried = {name: _tried(getattr(inner, name, None)) for name in _TOKENIZERS}
    return {"is": _Walk().describe(inner), "tokenizers": tried}


def _tried(tokenizer: Any) -> Any:
    if tokenizer is None:
        return None
    try:
        return digest("tokenizer/1", list(tokenizer(_PROBE)))
    except Exception:
        return describe(tokenizer)


def _names_at_random(inner: TransformComponent) -> bool:
    """Whether the ids of what it makes say nothing, so that others do as well."""
    if isinstance(inner, NodeParser):
        return inner.id_func is default_id_func
    return isinstance(inner, (BaseExtractor, BaseEmbedding))  # these make none
