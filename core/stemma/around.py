"""Whose calls follow, and what they belong to: what users say around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from stemma import context
from stemma.context import Context
from stemma.errors import TenantRequired
from stemma.lineage import frames, spans
from stemma.lineage.frames import Frame
from stemma.options import Options
from stemma.worlds import World

__all__ = ["Around"]


class Around:
    """The context managers of a cache. Made for `Cache`, which is one.

    Args:
        options: What `stemma.open` was given.
        number: The cache's number, by which what is said for it is kept apart.
    """

    def __init__(self, options: Options, number: int) -> None:
        self._options = options
        self._number = number

    def using(self, **said: Any) -> AbstractContextManager[Context]:
        """Say whose calls follow, until the block ends.

        Args:
            **said: `tenant` (where a run names one, that counts, unless this is said inside the
                run); `pool` (search that pool too); `permissions`; the labels `session`,
                `user`, `arm`, `tags`, `subject`, `writer`; every other keyword is a factor of the
                Scope: entries made with another value of it are never served.

        Raises:
            UsageError: A value is of the wrong kind.
        """
        before = context.current(self._number)
        return context.entered(self._number, before.using(within=frames.current(), **said))

    def bypass(self) -> AbstractContextManager[Context]:
        """Keep out of the way until the block ends: nothing is read and nothing is stored."""
        return self._in_mode("bypass")

    def refresh(self) -> AbstractContextManager[Context]:
        """Compute anew and replace what is stored, until the block ends."""
        return self._in_mode("refresh")

    def _in_mode(self, mode: context.Mode) -> AbstractContextManager[Context]:
        said = dataclasses.replace(context.current(self._number), mode=mode)
        return context.entered(self._number, said)

    def world(self, world: World | str = "") -> AbstractContextManager[World]:
        """Act in a private world until the block ends: what is written there, nobody else reads.

        For runs that each start from the same beginning. Writes of tools take nothing back here:
        the versions of what they concern move on, and are part of the key of what is read (see
        `stemma.worlds`). All else that is kept here, as answers and hops, is kept under the version
        of the whole world. Tasks, and threads with a copied context, act in it as well. What is
        built on more than one world is not stored.

        Args:
            world: What it is at its beginning: worlds that begin alike say the same. Or one that
                was begun before, to go on in it, as from another thread.

        Raises:
            UsageError: The argument is neither.
        """
        here = world if isinstance(world, World) else World(world)
        return self._in_world(here)

    @contextmanager
    def _in_world(self, world: World) -> Iterator[World]:
        said = dataclasses.replace(context.current(self._number), world=world)
        with context.entered(self._number, said):
            yield world

    @property
    def current_world(self) -> World | None:
        """The private world in which calls are made here, if it is one."""
        return context.current(self._number).world

    def context(self, frame: Frame | None) -> tuple[str, Context]:
        """Whose call it is: the run's own tenant, else `using`'s, else the default.

        Raises:
            TenantRequired: Nothing names a tenant.
        """
        tenant, said = self._named(frame), context.current(self._number)
        if tenant is None:
            tenant = self._options.tenant
        if tenant is None:
            raise TenantRequired(
                "no tenant: give one to stemma.open(…, tenant=…), or say "
                "`with cache.using(tenant=…):` around the call"
            )
        return tenant, said

    @property
    def speaker(self) -> str:
        """In whose name a report is made here; empty: an operator's, whom no tenant is named for.

        Raises:
            TenantRequired: The run's metadata names a tenant that is not a text.
        """
        tenant = self._named(frames.current())
        return "" if tenant is None else tenant

    def _named(self, frame: Frame | None) -> str | None:
        """The tenant that the run or `using` names."""
        said = context.current(self._number)
        tenant = frame.tenant if frame is not None else None
        if tenant is not None and said.tenant is not None and said.within is not None:
            # Said inside the run that names the tenant, as by who reads a stream: nearer counts.
            tenant = said.tenant if said.within.tenant == tenant else tenant
        if tenant == "":
            raise TenantRequired("the run's metadata names a tenant that is not a text")
        return said.tenant if tenant is None else tenant

    def trace(
        self, *, intent: str | None = None, budget: float | None = None, nested: int | None = None
    ) -> AbstractContextManager[Frame]:
        """One frame: what is read inside becomes a parent of what is stored later inside.

        Inside a frame that is open already, it changes nothing but what is said here.

        Args:
            intent: What the run is after, in words. A step that was stored for something else is
                not served (`intent_drift`).
            budget: What the risks of the hits by meaning in it may add up to, 0 to 1; by default
                as `open` was told. A hit that would overdraw it is refused (`budget`).
            nested: How deep hops may be nested in it; by default 1,000.

        Raises:
            UsageError: An argument is wrong.
        """
        return spans.trace(intent, budget, nested)

    def hop(
        self, name: str, *, intent: str | None = None, budget: float | None = None
    ) -> AbstractContextManager[Frame]:
        """One step of an agent. What is read inside becomes the parents of what follows.

        Hops that follow one another in a trace are numbered from 1; a hop inside a hop comes
        after it. If the block raises, the hop is closed all the same.

        Args:
            name: The step's name, part of the lineage key of what follows.
            intent: What the agent is after in it, as a running summary says; by default as the
                trace says.
            budget: As for `trace`, for this hop and what it is built on.

        Raises:
            UsageError: An argument is wrong.
            HopLimit: More hops are nested than the trace allows.
        """
        return spans.hop(name, intent, budget)
