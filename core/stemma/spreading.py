"""What a cache tells of how wrong answers spread, and how it holds them back."""

from __future__ import annotations

from stemma.effects import arun, run
from stemma.engine import Engine
from stemma.outcome import Quarantine
from stemma.pollution import pollution
from stemma.propagation.descent import Seeds
from stemma.propagation.exposure import Pollution
from stemma.propagation.graph import HALF_LIFE, Propagation, graph_of
from stemma.propagation.quarantine import THRESHOLD
from stemma.quarantining import quarantine, quarantines, release

__all__ = ["Spreading"]


class Spreading:
    """The part of a cache that is about errors travelling. Made for `Cache`, which is one."""

    engine: Engine

    def quarantine(
        self,
        *seeds: Seeds,
        by: str,
        threshold: float = THRESHOLD,
        reason: str = "",
        dry_run: bool = False,
        source: str | None = None,
        tenant: str | None = None,
    ) -> Quarantine:
        """Serve what may be wrong no more, until it is known.

        Held are the seeds that are stored, and of all that was built on them, over all nodes, hops,
        tenants and pools, what is at least as likely wrong as the threshold. From when this returns
        it is not served (`quarantined`), and nothing new is built on it. An entry is held until its
        quarantine is released, it is reported as supported, or it is computed again with another
        value or from another lineage.

        Args:
            *seeds: Entries' ids, taken for wrong; or mappings from ids to how likely each is
                wrong, above 0 to 1. They may have gone: what was built on them is held.
            by: Who suspects it.
            threshold: How likely wrong an entry must be to be held, above 0 to 1.
            reason: Why, in words.
            dry_run: Only list what would be held.
            source: All that was built on this document, or chunk, is suspected.
            tenant: All that this tenant made is.

        Raises:
            UsageError: Nothing is named, an entry of which nothing was ever known, or an argument
                is wrong.
            StoreError: The store could not do it; do it again.
        """
        return run(
            quarantine(
                self.engine.parts,
                seeds,
                threshold=threshold,
                by=by,
                reason=reason,
                dry_run=dry_run,
                source=source,
                tenant=tenant,
            )
        )

    async def aquarantine(
        self,
        *seeds: Seeds,
        by: str,
        threshold: float = THRESHOLD,
        reason: str = "",
        dry_run: bool = False,
        source: str | None = None,
        tenant: str | None = None,
    ) -> Quarantine:
        """As `quarantine`."""
        return await arun(
            quarantine(
                self.engine.parts,
                seeds,
                threshold=threshold,
                by=by,
                reason=reason,
                dry_run=dry_run,
                source=source,
                tenant=tenant,
            )
        )

    def release(self, told: Quarantine | str) -> Quarantine:
        """End a quarantine: what it alone held is served again, as far as it is still there.

        Args:
            told: The receipt, or its id. One that was released before stays as it is.

        Returns:
            The receipt, with what is `gone` of its entries.

        Raises:
            UsageError: There is no such quarantine.
            StoreError: The store could not do it; do it again.
        """
        return run(release(self.engine.parts, told))

    async def arelease(self, told: Quarantine | str) -> Quarantine:
        """As `release`."""
        return await arun(release(self.engine.parts, told))

    def quarantines(self) -> tuple[Quarantine, ...]:
        """The receipts of the last thousand quarantines, newest first."""
        return run(quarantines(self.engine.parts))

    async def aquarantines(self) -> tuple[Quarantine, ...]:
        """As `quarantines`."""
        return await arun(quarantines(self.engine.parts))

    def propagation(
        self,
        *,
        entries: bool = False,
        sources: bool = True,
        tools: bool = True,
        half_life: float | None = HALF_LIFE,
        now: float | None = None,
    ) -> Propagation:
        """How answers travelled between tenants: who was served, or built on, whose.

        Of the servings the newest million are known (`stemma.stores.rules.SERVINGS`).

        Args:
            entries: Whether entries are nodes as well: those that another tenant built on, and
                those that were promoted (`stemma.propagation.graph.MOST` of each, the newest).
            sources: Whether documents are, on which entries of several tenants were built.
            tools: Whether what tools read is, likewise.
            half_life: Seconds after which what happened counts half in `recent`, and an audit
                does; `None`: never.
            now: As of when, seconds since 1970-01-01 UTC; by default, now.

        Raises:
            UsageError: A number is out of its range.
            StoreError: The store could not be read.
        """
        return graph_of(
            self.engine.parts,
            entries=entries,
            sources=sources,
            tools=tools,
            half_life=half_life,
            now=now,
        )

    def pollution(self, *, entry: str | None = None, tenant: str | None = None) -> Pollution:
        """How evenly what came of an entry, or of all that a tenant made, lies over partitions.

        Counted are the copies (what was reached with the same answer) and descendants, by who owns
        them (`tenant:…` or `pool:…`), with the entry, or the tenant's entries, themselves.

        Args:
            entry: The entry's id.
            tenant: The tenant; one of the two.

        Raises:
            UsageError: Not one of them is named, or nothing was ever known of it.
            StoreError: The store could not be read.
        """
        return pollution(self.engine.parts, entry=entry, tenant=tenant)
