"""Whose call a completion model makes when it asks the LLM cache.

A chat model tells its callbacks that it begins and then asks the cache. A completion model asks
first, from a function that is handed the prompts alone; only the caller of that function has the
callback managers, with the run each call belongs to and the metadata it names. So they are looked
for there. Where LangChain is built otherwise, nothing is found, and callers go on without.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from langchain_core.callbacks.base import BaseCallbackManager

__all__ = ["asking_manager"]

DEPTH = 12
"""How far up the caller is looked for: the faces of this package lie between."""


def asking_manager() -> BaseCallbackManager | None:
    """The callback manager of the completion call that is asking the cache right now."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no other way to see callers
    place: Any = None
    for _ in range(DEPTH):
        if frame is None:
            return None
        name, local = frame.f_code.co_name, frame.f_locals
        if name in ("get_prompts", "aget_prompts"):
            place = local.get("i")
        elif name in ("generate", "agenerate") and isinstance(place, int):
            managers = local.get("callback_managers")
            found = (
                managers[place] if isinstance(managers, list) and place < len(managers) else None
            )
            return found if isinstance(found, BaseCallbackManager) else None
        frame = frame.f_back
    return None
