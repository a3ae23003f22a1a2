"""What a recall names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from stemma.entry import Entry, Lineage, Source
from stemma.errors import UsageError

__all__ = ["Selector"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Selector:
    """A conjunction: an entry is selected when every part that is set holds for it.

    Args:
        source: A document's id, or a chunk's.
        entry: An entry's id.
        tenant: A tenant.
        tag: A tag among the entry's labels.
        writer: The writer label.
        subject: The subject label.
        model: The scope's model.
        index: The scope's index identity.
        node: A node; narrows the others.

    Raises:
        UsageError: Nothing is set, or something is not a text.
    """

    source: str | None = None
    entry: str | None = None
    tenant: str | None = None
    tag: str | None = None
    writer: str | None = None
    subject: str | None = None
    model: str | None = None
    index: str | None = None
    node: str | None = None

    def __post_init__(self) -> None:
        parts = self.parts()
        if not parts:
            names = ", ".join(field.name for field in fields(self))
            raise UsageError(f"name what to take back: at least one of {names}")
        for name, value in parts.items():
            if not isinstance(value, str):
                raise UsageError(f"{name} must be a text, not {type(value).__name__}")

    def parts(self) -> Mapping[str, str]:
        """The parts that are set, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def covers(self, entry: Entry, lineage: Lineage) -> bool:
        """Whether the entry itself (not its ancestors) is selected."""
        return all(
            self.holds(name, value, entry, [edge.source for edge in lineage.sources])
            for name, value in self.parts().items()
        )

    @staticmethod
    def holds(name: str, value: str, entry: Entry, sources: Sequence[Source]) -> bool:
        """Whether one part holds for an entry that was built from these sources."""
        labels = entry.labels
        if name == "source":
            return any(value in (source.document, source.chunk) for source in sources)
        if name == "tag":
            return value in labels.tags
        named = {
            "entry": entry.id,
            "tenant": entry.tenant,
            "writer": labels.writer,
            "subject": labels.subject,
            "model": entry.model,
            "index": entry.index,
            "node": entry.node,
        }
        return bool(named[name] == value)
