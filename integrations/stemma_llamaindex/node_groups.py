"""Nodes that a transformation takes by themselves, and nodes made for an equal document before."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.schema import BaseNode, IndexNode, RelatedNodeInfo

from stemma import Hit, Miss, Query, Ticket, frames
from stemma_llamaindex.events import tell_hit
from stemma_llamaindex.sources import document_id, nodes_as_sources

__all__ = ["Group", "shared_out", "storable", "together", "untransformed"]

_MADE = uuid.UUID("3b1f1e0c-6f0e-5d0a-9d5c-7b5a0e5f4b1d")
"""Names the ids of nodes that one document gets from what was made for an equal one."""


@dataclass(slots=True, eq=False)
class Group:
    """Nodes that are transformed by themselves, and what became of them.

    Args:
        name: The document's id; empty for a whole batch.
        given: The nodes.
        ignored: Metadata that does not count.
        marks: The sequence numbers known before anything was looked up.
        query: The question; `None` where the cache is bypassed.
        outcome: What the cache said.
        made: What the transformation made of them now.
    """

    name: str
    given: list[BaseNode]
    ignored: tuple[str, ...]
    marks: Mapping[int, int] = field(default_factory=frames.marks)
    query: Query | None = None
    outcome: Hit | Miss | None = None
    made: list[BaseNode] = field(default_factory=list)
    ids: list[str] = field(init=False)
    """The nodes' ids and those they are related to, each once, in order."""

    def __post_init__(self) -> None:
        own = [node.node_id for node in self.given]
        related = [info.node_id for node in self.given for _, info in _infos(node)]
        self.ids = list(dict.fromkeys([*own, *related]))

    def content(self) -> list[Any]:
        """All that may shape what is made of the nodes; ids are only told apart, not named."""
        places = {name: place for place, name in enumerate(self.ids)}
        return [_content(node, places, self.ignored) for node in self.given]

    def nodes(self) -> list[BaseNode]:
        """The transformed nodes."""
        return self._own(self.outcome) if isinstance(self.outcome, Hit) else self.made

    def _own(self, hit: Hit) -> list[BaseNode]:
        """Nodes made for an equal document, as this document's own."""
        tell_hit(hit)
        before, nodes = hit.value["ids"], hit.value["nodes"]
        names = dict(zip(before, self.ids, strict=True))
        for node in nodes:
            made = node.node_id if before == self.ids else _renamed(node.node_id, self.ids[0])
            names.setdefault(node.node_id, made)
        known, fresh = _related(self.given), self._refreshed()
        for node in nodes:
            node.id_ = names[node.node_id]
            if isinstance(node, IndexNode):
                node.index_id = names.get(node.index_id, node.index_id)
            node.metadata |= {key: fresh[key] for key in node.metadata.keys() & fresh.keys()}
            for kind, related in node.relationships.items():
                several = related if isinstance(related, list) else [related]
                moved = [_moved(one, names, known) for one in several]
                node.relationships[kind] = moved if isinstance(related, list) else moved[0]
        return list(nodes)

    def _refreshed(self) -> dict[str, Any]:
        """The present values of metadata that does not count."""
        found: dict[str, Any] = {}
        for node in self.given:
            found |= {key: node.metadata[key] for key in self.ignored if key in node.metadata}
        return found


def untransformed(groups: Sequence[Group]) -> list[BaseNode]:
    """The nodes of the groups for which the cache had nothing."""
    return [node for one in groups if not isinstance(one.outcome, Hit) for node in one.given]


def shared_out(groups: Sequence[Group], made: Sequence[BaseNode]) -> list[BaseNode]:
    """Give each group what was made of it; what is left is of no document that was given."""
    open_groups = {one.name: one for one in groups if not isinstance(one.outcome, Hit)}
    rest: list[BaseNode] = []
    for node in made:
        group = open_groups.get("" if "" in open_groups else document_id(node))
        (rest if group is None else group.made).append(node)
    return rest


def storable(groups: Sequence[Group]) -> list[tuple[Ticket, Any]]:
    """What was made now, each under its group's ticket, with the document as its source."""
    found: list[tuple[Ticket, Any]] = []
    for group in groups:
        if isinstance(group.outcome, Miss) and group.outcome.ticket is not None and group.made:
            frame = group.outcome.ticket.query.frame
            if frame is not None:
                frame.read_sources(nodes_as_sources(group.given), group.marks)
            found.append((group.outcome.ticket, {"ids": group.ids, "nodes": group.made}))
    return found


def together(groups: Sequence[Group], rest: Sequence[BaseNode]) -> list[BaseNode]:
    """All transformed nodes, in the order of the groups."""
    return [*(node for group in groups for node in group.nodes()), *rest]


def _renamed(made: str, document: str) -> str:
    return str(uuid.uuid5(_MADE, f"{document} {made}"))


def _infos(node: BaseNode) -> Iterator[tuple[str, RelatedNodeInfo]]:
    """Each relation of a node: its kind, and to what."""
    for kind, related in node.relationships.items():
        for one in related if isinstance(related, list) else [related]:
            yield str(kind), one


def _content(node: BaseNode, places: Mapping[str, int], ignored: Sequence[str]) -> Any:
    fields = {
        name: getattr(node, name)
        for name in type(node).model_fields
        if name not in ("id_", "metadata", "relationships")
    }
    return {
        "class": type(node).__qualname__,
        "place": places[node.node_id],
        "fields": fields,
        "metadata": _counted(node.metadata, ignored),
        "relations": [
            [kind, places[info.node_id], _counted(info.metadata, ignored)]
            for kind, info in _infos(node)
        ],
    }


def _counted(metadata: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in ignored}


def _related(given: Sequence[BaseNode]) -> dict[str, RelatedNodeInfo]:
    """What the nodes that were given say of each other, and of what they are related to."""
    known = {node.node_id: node.as_related_node_info() for node in given}
    return known | {info.node_id: info for node in given for _, info in _infos(node)}


def _moved(
    info: RelatedNodeInfo, names: Mapping[str, str], known: Mapping[str, RelatedNodeInfo]
) -> RelatedNodeInfo:
    """A relation of a node that was made for an equal document, as its own."""
    name = names.get(info.node_id, info.node_id)
    found = known.get(name)
    return copy.deepcopy(found) if found is not None else info.model_copy(update={"node_id": name})
