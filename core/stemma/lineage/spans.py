"""The spans that users open themselves: a trace, and a hop in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stemma.errors import UsageError
from stemma.lineage import frames
from stemma.lineage.chains import Chain
from stemma.lineage.frames import Frame
from stemma.lineage.paths import Step
from stemma.policies.shares import share
from stemma.walk import checked_intent

__all__ = ["hop", "trace"]


@contextmanager
def trace(intent: str | None, budget: float | None, nested: int | None) -> Iterator[Frame]:
    """See `stemma.Cache.trace`."""
    checked_intent(intent)
    current = frames.current()
    chain = _chain(current, budget, nested)
    if current is not None and intent is None and chain is None:
        yield current
        return
    frame = Frame(current, exports=current is not None, intent=intent, chain=chain)
    with frames.entered(frame):
        yield frame


@contextmanager
def hop(name: str, intent: str | None, budget: float | None) -> Iterator[Frame]:
    """See `stemma.Cache.hop`."""
    if not isinstance(name, str) or name == "":
        raise UsageError("a hop needs a name: a text that is not empty")
    checked_intent(intent)
    above = frames.current()
    forked, number = None, 1
    if above is not None:
        forked = ("hop", id(above)) if frames.lane() != above.lane else None
        number = max(above.reached, above.hop if above.hop is not None else 0) + 1
    frame = Frame(
        above,
        exports=above is not None,
        batch=forked,
        hop=number,
        name=name,
        intent=intent,
        chain=_chain(above, budget, None),
    )
    with frames.entered(frame):
        try:
            yield frame
        except BaseException:
            frame.steps.append(Step("", "left"))
            raise


def _chain(above: Frame | None, budget: float | None, nested: int | None) -> Chain | None:
    """A chain with bounds of its own, or `None` where none are given."""
    if budget is not None:
        budget = share("budget", budget)
    if nested is not None and (
        isinstance(nested, bool) or not isinstance(nested, int) or nested < 1
    ):
        raise UsageError(f"nested must be a whole number from 1, not {nested!r}")
    if budget is None and nested is None:
        return None
    return Chain(above=None if above is None else above.chain, budget=budget, nested=nested)
