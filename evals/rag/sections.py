"""`docs_fastapi_two_dates`: a manual at two dates, cut at its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evals.rag.texts import folder

__all__ = ["Section", "manual", "split", "statuses"]

TOP = "(top)"
"""The heading of what stands before the first one."""

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*(?:\{\s*#.*\})?\s*$")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """What stands under one heading.

    Args:
        path: The document.
        heading: The heading.
        text: Heading and text.
        question: The document's title with the heading: what somebody asks who needs it.
    """

    path: str
    heading: str
    text: str
    question: str


def manual(date: str) -> dict[str, Section]:
    """All sections at one of the two dates, `old` or `new`, by an id that outlives the update.

    The id is made of the document's path, the heading and how often that stood there before; so
    what changes under a heading keeps its id.
    """
    found: dict[str, Section] = {}
    root = folder("docs_fastapi_two_dates") / date
    for file in sorted(root.rglob("*.md")):
        path = file.relative_to(root).as_posix()
        for section in split(path, file.read_text(encoding="utf-8")):
            name = f"{path}#{section.heading}"
            number = sum(one == name or one.startswith(f"{name}#") for one in found)
            found[f"{name}#{number}" if number else name] = section
    return found


def split(path: str, text: str) -> Iterator[Section]:
    """A document's sections, those without any text left out."""
    parts: list[tuple[str, list[str]]] = [(TOP, [])]
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if opened and not fence:
            fence = opened[1]
        elif opened and line.strip().startswith(fence):
            fence = ""
        headed = None if fence or opened else _HEADING.match(line)
        if headed:
            parts.append((headed[1], [line]))
        else:
            parts[-1][1].append(line)
    title = parts[1][0] if len(parts) > 1 else Path(path).stem
    for heading, lines in parts:
        body = "\n".join(lines).strip()
        if body and (heading == TOP or (len(lines) > 1 and "".join(lines[1:]).strip())):
            yield Section(path=path, heading=heading, text=body, question=f"{title}: {heading}")


def statuses(old: Mapping[str, Section], new: Mapping[str, Section]) -> dict[str, str]:
    """Of every section of either date: `same`, `changed`, `removed` or `added`."""
    told = {}
    for name in {**old, **new}:
        if name not in new:
            told[name] = "removed"
        elif name not in old:
            told[name] = "added"
        else:
            told[name] = "same" if old[name].text == new[name].text else "changed"
    return told
