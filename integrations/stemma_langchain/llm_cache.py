"""`LLMCache`: Stemma behind LangChain's own cache interface."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.outputs import Generation

from stemma import (
    Cache,
    Cleaning,
    Frame,
    Hit,
    KnownScope,
    Miss,
    Query,
    Ticket,
    UsageError,
    forking,
    frames,
)
from stemma.policies.cleaning import checked
from stemma_langchain.asking import Sampling, ask
from stemma_langchain.calls import Live, take_pending, waiting_calls
from stemma_langchain.codec import CODEC
from stemma_langchain.prompts import ModelString, Turns, is_chat, plain_prompt, read_model
from stemma_langchain.replies import call_cost, handed_out, refused
from stemma_langchain.runs import runs
from stemma_langchain.tickets import late_ticket

__all__ = ["LLMCache"]

SAME = 256
"""Equal calls under way that are remembered."""

TICKETS = 10_000
"""Calls under way that are remembered between lookup and update."""

MODELS = 1_000


class LLMCache(BaseCache):
    """Caches the model calls of any LangChain model.

    Use it as `set_llm_cache(LLMCache(cache))`, or as `ChatOpenAI(cache=LLMCache(cache))`.

    Everything that LangChain says of the call must be equal: model and parameters, tools, response
    format, system prompt, images. What may be compared by meaning is the *focus*: in a chain the
    run's question, else the last user turn (see `read_prompt`); and, turn by turn, what user and
    model said before it. Ids and usage are not part of the key.

    A hit has fresh message ids, usage zero with the saved usage under
    `response_metadata["stemma"]`, and is a copy each time. Errors, refusals, replies cut off or
    filtered, and replies empty of text and tool calls are not stored.

    The tenant is the one named by the run's `metadata["tenant"]`, else by `cache.using`, else the
    cache's default. Without one the call goes through uncached, with one warning.

    Args:
        cache: The cache.
        sampling: What to do with calls that say they sample (temperature above 0, or n above 1):
            `"exact"` (the default) reuses a draw only for the very same call; `"never"` does not
            cache them; `"meaning"` treats them like any other.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        cleaning: What does not shape the replies and is left out of key and focus; the model gets
            its prompts as they are. What is detected is detected in system messages alone, so for
            a completion model only what is declared is left out.
    """

    def __init__(
        self,
        cache: Cache,
        *,
        sampling: Sampling = "exact",
        life: float | None = None,
        cleaning: Cleaning | None = None,
    ) -> None:
        if sampling not in ("exact", "never", "meaning"):
            raise UsageError(f'sampling must be "exact", "never" or "meaning", not {sampling!r}')
        self.cache = cache
        self.sampling = sampling
        self.life = life
        self.cleaning = checked(cleaning)
        self._models: dict[str, ModelString] = {}
        self._tickets: OrderedDict[tuple[str, str], list[tuple[tuple[int, int], Ticket]]]
        self._tickets = OrderedDict()
        self._lock = forking.Lock()

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """The stored generations, or `None`."""
        found = self._at_once(prompt, llm_string)
        if found is not None:
            return found
        query = self._query(prompt, llm_string)
        if query is None:
            return None
        return self._answer(prompt, llm_string, self.cache.calls.look(query))

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """As `lookup`."""
        found = self._at_once(prompt, llm_string)
        if found is not None:
            return found
        query = self._query(prompt, llm_string)
        if query is None:
            return None
        return self._answer(prompt, llm_string, await self.cache.calls.alook(query))

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Store generations, if they may be."""
        ticket = self._ticket(prompt, llm_string, return_val)
        if ticket is not None:
            cost = call_cost(self.cache, ticket, return_val)
            self.cache.calls.put(ticket, list(return_val), cost=cost)

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """As `update`."""
        ticket = self._ticket(prompt, llm_string, return_val)
        if ticket is not None:
            cost = call_cost(self.cache, ticket, return_val)
            await self.cache.calls.aput(ticket, list(return_val), cost=cost)

    def ticket(self, prompt: str, llm_string: str) -> Ticket | None:
        """A ticket without a lookup: to store with `cache.calls.put_all` what is known already.

        `None` where the call would not be cached.
        """
        query = self._query(prompt, llm_string)
        return None if query is None else self.cache.calls.ticket_for(query)

    def clear(self, **kwargs: Any) -> None:
        """Remove the current tenant's model calls.

        Args:
            **kwargs: As for `Cache.clear`, to name less.
        """
        self.cache.clear(**self._named(kwargs))

    async def aclear(self, **kwargs: Any) -> None:
        """As `clear`."""
        await self.cache.aclear(**self._named(kwargs))

    # ------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a handle: a copied model goes on using the same cache

    def __reduce__(self) -> tuple[partial[LLMCache], tuple[Cache]]:
        made = partial(LLMCache, sampling=self.sampling, life=self.life, cleaning=self.cleaning)
        return made, (self.cache,)

    def _named(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        tenant, _ = self.cache.context(frames.current())
        return {"tenant": tenant, "node": "call", **kwargs}

    def _at_once(self, prompt: str, llm_string: str) -> list[Generation] | None:
        """The exact hit, found without taking the prompt apart. What is not plain is left alone."""
        chat = is_chat(prompt)
        waiting = waiting_calls() if chat else []
        whole = plain_prompt(prompt)
        if whole is None or len(waiting) > 1 or not (chat or runs.clear()):
            return None
        model = self._model(llm_string)
        if model.sampled and self.sampling == "never":
            return None
        frame = waiting[0].frame if waiting else frames.current() if chat else runs.here()
        known = self._scope(model, llm_string, waiting[0].live if waiting else ())
        try:
            hit = self.cache.calls.look_whole(known, whole, CODEC, frame)
        except UsageError:
            return None  # met again, and told, by the long way
        if hit is None:
            return None
        waiting.clear()
        return handed_out(hit)

    def _scope(self, model: ModelString, llm_string: str, live: Live) -> KnownScope:
        """Everything that LangChain says of the model is in the scope."""
        fields = {"model": model.name, "parameters": [llm_string, live]}
        meaning = not model.sampled or self.sampling == "meaning"
        return KnownScope(fields, (llm_string, live, meaning), meaning)

    def _query(self, prompt: str, llm_string: str, made: Frame | None = None) -> Query | None:
        model = self._model(llm_string)
        if model.sampled and self.sampling == "never":
            return None
        chat = is_chat(prompt)
        if not (chat or made is not None or runs.clear()):
            return None
        turns = Turns(prompt, self.cleaning)
        pending = take_pending(turns.last) if chat else None
        if pending is not None:
            frame: Frame | None = pending.frame
        elif made is not None:
            frame = made
        else:
            frame = frames.current() if chat else runs.here()
        known = self._scope(model, llm_string, pending.live if pending is not None else ())
        asked = ask(turns, known, frame, self.life)
        query = self.cache.calls.resolve(asked, frame=frame)
        return None if isinstance(query, Miss) else query

    def _model(self, llm_string: str) -> ModelString:
        model = self._models.get(llm_string)
        if model is None:
            if len(self._models) >= MODELS:
                self._models.clear()
            model = self._models[llm_string] = read_model(llm_string)
        return model

    def _answer(self, prompt: str, llm_string: str, outcome: Hit | Miss) -> list[Generation] | None:
        if isinstance(outcome, Hit):
            return handed_out(outcome)
        if outcome.ticket is not None:
            self._remember(prompt, llm_string, outcome.ticket)
        return None

    def _remember(self, prompt: str, llm_string: str, ticket: Ticket) -> None:
        with self._lock:
            waiting = self._tickets.setdefault((prompt, llm_string), [])
            # A call that failed never comes for its ticket; its frame has been closed since.
            waiting[:] = [one for one in waiting[-SAME:] if not _over(one[1])]
            waiting.append((frames.lane(), ticket))
            if len(self._tickets) > TICKETS:
                self._tickets.popitem(last=False)

    def _ticket(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> Ticket | None:
        """The ticket of the lookup that this update follows, if the value may be stored."""
        ticket = self._recalled_ticket(prompt, llm_string)
        if not isinstance(return_val, Sequence) or refused(return_val) is not None:
            return None
        if ticket is not None and not self._is_callers(ticket):
            ticket = None
        made = None if is_chat(prompt) else runs.made_in(return_val)
        if ticket is not None and (
            made is None or made.tenant in (None, ticket.query.scope.tenant)
        ):
            return ticket
        query = self._query(prompt, llm_string, made)
        return None if query is None else late_ticket(self.cache, query)

    def _is_callers(self, ticket: Ticket) -> bool:
        """Whether the ticket is of the tenant whose call this is, as far as that can be told."""
        frame = frames.current()
        if frame is None or frame.tenant is None:
            return True
        return frame.tenant == ticket.query.scope.tenant

    def _recalled_ticket(self, prompt: str, llm_string: str) -> Ticket | None:
        """Lookup and update of one call run in one thread or task: that tells equal calls apart."""
        lane = frames.lane()
        with self._lock:
            waiting = self._tickets.get((prompt, llm_string))
            if not waiting:
                return None
            mine = [
                place
                for place, (where, ticket) in enumerate(waiting)
                if where == lane and not _over(ticket)
            ]
            if not mine and (len(waiting) > 1 or _over(waiting[0][1])):
                return None
            _, ticket = waiting.pop(mine[0] if mine else 0)
            if not waiting:
                del self._tickets[prompt, llm_string]
            return ticket


def _over(ticket: Ticket) -> bool:
    frame = ticket.query.frame
    return frame is not None and frame.closed
