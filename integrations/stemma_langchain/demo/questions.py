"""What the demo asks: questions written for networkx, or made from the headings of any text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["NETWORKX_QUESTIONS", "Question", "headings", "made_from"]

ASKED_AT_MOST = 12
QUESTION_WORDS = frozenset(
    "are can could do does how is should what when where which who why will".split()  # noqa: SIM905 - a row of words
)

FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(
    r"^#{1,6}[ \t]+(?P<marked>[^\n]{1,200}?)[ \t]*#*$"
    r"|^(?P<underlined>\S[^\n]{0,200})\n(?:={3,}|-{3,}|~{3,})$",
    re.MULTILINE,
)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NUMBER = re.compile(r"^\d+(?:\.\d+)*[.)]?\s+")
ASIDE = re.compile(r"\s*[:(\[].*")
SENTENCE = re.compile(r"[.!?:]\s|\n\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked, and how others would put the same."""

    text: str
    rewordings: tuple[str, ...]


NETWORKX_QUESTIONS = tuple(
    Question(text=text, rewordings=tuple(rewordings))
    for text, *rewordings in (
        (
            "How do I find the shortest path between two nodes?",
            "How can I find the shortest path between two nodes?",
            "how do i find the shortest path between two nodes",
        ),
        (
            "What does betweenness centrality measure?",
            "What is measured by betweenness centrality?",
            "What does the betweenness centrality measure?",
        ),
        (
            "How is PageRank computed?",
            "How is the PageRank computed?",
            "How is PageRank calculated?",
            "how does one compute PageRank",
        ),
        (
            "What is a minimum spanning tree?",
            "What is meant by a minimum spanning tree?",
            "what's a minimum spanning tree?",
        ),
        (
            "What is a topological sort of a directed graph?",
            "What is a topological sorting of a directed graph?",
            "Please tell me, what is a topological sort of a directed graph?",
        ),
        (
            "When is a graph connected?",
            "When is a graph called connected?",
            "When do we say a graph is connected?",
        ),
        (
            "What is a maximal matching?",
            "What is meant by a maximal matching?",
            "what's a maximal matching?",
        ),
        (
            "How does the Louvain algorithm find communities?",
            "How does the Louvain method find communities?",
            "How do communities get found by the Louvain algorithm?",
            "How does the Louvain algorithm detect communities?",
        ),
        (
            "What is the diameter of a graph?",
            "What is meant by the diameter of a graph?",
            "What's the diameter of a graph?",
            "what is the diameter of the graph",
        ),
        (
            "What is a bridge in a graph?",
            "What is meant by a bridge in a graph?",
            "What's a bridge in a graph?",
        ),
        (
            "What is an Eulerian circuit?",
            "What's an Eulerian circuit?",
            "What is meant by an Eulerian circuit?",
        ),
        (
            "What is the clustering coefficient of a node?",
            "What is meant by the clustering coefficient of a node?",
            "What's the clustering coefficient of a node?",
            "what is a node's clustering coefficient",
        ),
    )
)


def made_from(texts: Iterable[str]) -> tuple[Question, ...]:
    """At most `ASKED_AT_MOST` questions that some pages answer, each with rewordings.

    They are made from headings, else from first sentences: one from each page in turn, then the
    next of each.
    """
    per_page = [_asked_of(text) for text in texts]
    depth = max(len(asked) for asked in per_page)
    turns = [asked[turn] for turn in range(depth) for asked in per_page if turn < len(asked)]
    found = list({text.casefold(): text for text in reversed(turns)}.values())[::-1]
    return tuple(Question(text=text, rewordings=_reworded(text)) for text in found[:ASKED_AT_MOST])


def headings(text: str) -> list[str]:
    """The headings of a text without their mark-up, in order; those in code are none."""
    found = (
        match["marked"] if match["marked"] is not None else match["underlined"]
        for match in HEADING.finditer(FENCE.sub("", text))
    )
    plain = (re.sub(r"[`*]", "", LINK.sub(r"\1", heading)).strip() for heading in found)
    return [heading for heading in plain if re.search(r"\w", heading)]


def _asked_of(text: str) -> list[str]:
    """Questions that one page answers: about its sections, else about what it begins with."""
    found = headings(text)
    if not found:
        start = SENTENCE.split(text, maxsplit=1)[0].rstrip(".!?:")
        return [f'What else is said about "{" ".join(start.split()[:12])}"?']
    title, *sections = found
    about = f"the page on {_topic(title)}"
    if not sections:
        return [title if title.endswith("?") else f"What is {about} about?"]
    return [
        section if section.endswith("?") else f"What does {about} say about {_topic(section)}?"
        for section in sections
    ]


def _topic(heading: str) -> str:
    """A heading without its number, and without what follows a bracket or colon."""
    return ASIDE.sub("", NUMBER.sub("", heading)) or heading


def _reworded(question: str) -> tuple[str, ...]:
    """The same question as others type it: politely, in a hurry, and in passing."""
    first, _, rest = question.partition(" ")
    lowered = f"{first.lower()} {rest}" if first.lower() in QUESTION_WORDS else question
    return (f"Please tell me: {lowered}", lowered.rstrip("?"), f"I would like to know, {lowered}")
