"""Which part of a prompt's last turn may be compared by meaning."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["split"]


def split(
    said: str, question: str | None, sources: Iterable[str], within: str | None = None
) -> tuple[str, str | None, str]:
    """A turn as what comes before the focus, the focus, and what comes after it.

    The focus is the run's question where it occurs exactly once. Otherwise it is the whole turn,
    unless that holds the text of a retrieved chunk: by meaning, a chunk would drown the question.

    Args:
        said: The turn.
        question: The question of the run, where one is known.
        sources: The texts of what the run has retrieved.
        within: Where those are looked for: the turn as it was, if something was left out of it.
    """
    if question is not None and question.strip() != "":
        before, found, after = said.partition(question)
        if found and question not in after:
            return before, question, after
    held = said if within is None else within
    if any(text and text in held for text in sources):
        return "", None, ""
    return "", said, ""
