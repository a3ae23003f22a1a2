"""How far errors have spread from some entries: whom they reached, and what would stop them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stemma.propagation.cut import Cut, Promotion, smallest_cut
from stemma.propagation.descent import Descent
from stemma.propagation.exposure import (
    BlastRadius,
    Exposure,
    blast_radius,
    exposures,
    reproduction,
)
from stemma.propagation.quarantine import THRESHOLD, Suspects, quarantine
from stemma.propagation.shown import Shown
from stemma.propagation.spread import Spread, spread
from stemma.propagation.timeline import Moment, timeline
from stemma.stores.protocol import Store
from stemma.stores.sharing import Flow

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Outbreak", "outbreak_of"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Outbreak(Shown):
    """What came of some wrong entries. Prints as a table, shows as a picture in Jupyter.

    A tenant is exposed by its own entries and by what it was served. A serving is as wrong as the
    entry; each weighs as one answer. So an exposure's `share` is of all answers of the tenant.

    Args:
        graph: As `Propagation.graph`; tenants have `exposure` (the share of their answers that is
            likely wrong, 0 to 1) and `wrong` (how many) as well, and entries `probability`. What
            was built on the seeds is in it if entries are, as many edges of it as of each kind.
        seeds: How likely each seed is wrong of itself.
        likely: How likely all that was built on them is, with the errors of sampling.
        exposures: Of each tenant that was reached, the most wrong first.
        blast_radius: The same over all tenants but the seeds' own.
        reproduction: The reproduction number among the entries that were reached: above 1, tenants
            make each other's errors more.
        below: What was built on the seeds.
        servings: To whom all that was served.
        homes: Who made the seeds, as far as that is known.
        store: What it was read from.
    """

    graph: nx.DiGraph[Any] = field(repr=False)
    seeds: Mapping[str, float]
    likely: Spread = field(repr=False)
    exposures: tuple[Exposure, ...]
    blast_radius: BlastRadius
    reproduction: float
    below: Descent = field(repr=False)
    servings: Sequence[Flow] = field(repr=False)
    homes: Mapping[str, str]
    store: Store = field(repr=False)

    @property
    def probabilities(self) -> dict[str, float]:
        """How likely each entry is wrong, of those that may be, the likeliest first."""
        return self.likely.wrong()

    def quarantine(self, threshold: float = THRESHOLD) -> Suspects:
        """Which entries would be held. Nothing is: see `Cache.quarantine`.

        Raises:
            UsageError: The threshold is out of its range.
        """
        return quarantine(self.likely, threshold=threshold)

    def cut(self) -> Cut:
        """The cheapest promotions without which nothing had reached another tenant.

        One costs as many servings as there were of its copy.
        """
        below, uses = self.below, dict[str, int]()
        for flow in self.servings:
            uses[flow.entry] = uses.get(flow.entry, 0) + flow.uses
        promotions = [
            Promotion(parent=pair[0], child=pair[1], uses=uses.get(pair[1], 0))
            for pair in below.pairs
            if pair in below.copies
        ]
        built: list[tuple[Any, Any]] = [pair for pair in below.pairs if pair not in below.copies]
        built += [(flow.entry, _serving(flow)) for flow in self.servings]
        served = {_serving(flow): flow.consumer for flow in self.servings}
        owners = {**_owners(below), **self.homes, **served}
        # A copy that is as wrong as its original began nowhere but there.
        copies = {child for parent, child in below.copies if parent in below.seeds}
        return smallest_cut(promotions, built, owners, seeds=below.seeds.keys() - copies)

    def timeline(self) -> list[Moment]:
        """What happened to the entries that were reached, in the order of time."""
        return timeline(self.store, self.below, self.servings)


def outbreak_of(
    store: Store,
    below: Descent,
    *,
    graph: nx.DiGraph[Any],
    worlds: int,
) -> Outbreak:
    """Reckon what came of some wrong entries.

    Args:
        store: Where the servings are.
        below: What was built on the seeds.
        graph: The tenants'; it is marked with what is reckoned.
        worlds: How many are sampled.
    """
    likely = spread(below.edges, below.seeds, worlds=worlds)
    servings = store.flows(now=0.0, entries=below.ids)
    told = _exposures(likely, below, servings, graph)
    homes = _homes(store, below)
    _mark(graph, likely, told)
    return Outbreak(
        graph=graph,
        seeds=below.seeds,
        likely=likely,
        exposures=told,
        blast_radius=blast_radius(told, origin=set(homes.values())),
        reproduction=reproduction(
            below.edges, {one: entry.tenant for one, entry in below.entries.items()}
        ),
        below=below,
        servings=servings,
        homes=homes,
        store=store,
    )


def _serving(flow: Flow) -> tuple[str, ...]:
    """A name for the servings of an entry to a tenant: no entry has it."""
    return ("served", flow.entry, flow.consumer, flow.producer, flow.pool, flow.node)


def _owners(below: Descent) -> dict[Any, str]:
    """Whose the entries are, save the pools': those are nobody's."""
    return {one: entry.tenant for one, entry in below.entries.items() if entry.pool is None}


def _homes(store: Store, below: Descent) -> dict[str, str]:
    """Where it began: who made the seeds. Of those that were recalled, the receipts tell."""
    homes = {one: below.entries[one].tenant for one in below.seeds if one in below.entries}
    gone = below.seeds.keys() - homes.keys()
    if gone:
        for receipt in store.recalls():
            homes |= {one.entry: one.tenant for one in receipt.entries if one.entry in gone}
    return homes


def _exposures(
    likely: Spread, below: Descent, servings: Sequence[Flow], graph: nx.DiGraph[Any]
) -> tuple[Exposure, ...]:
    """Of each tenant, by its own entries, what it was served, and all its other answers."""
    wrong = dict(zip(likely.names, likely.probabilities.tolist(), strict=True))
    owners = _owners(below)
    weights: dict[Any, float] = dict.fromkeys(owners, 1.0)
    for flow in servings:
        owners[_serving(flow)] = flow.consumer
        weights[_serving(flow)] = flow.uses
        wrong[_serving(flow)] = wrong[flow.entry]
    told: dict[str, float] = {}
    for name, tenant in owners.items():
        told[tenant] = told.get(tenant, 0.0) + weights[name]
    for tenant, weight in told.items():
        answers = graph.nodes[tenant]["answers"] if tenant in graph else 0
        owners["others", tenant] = tenant
        weights["others", tenant] = max(answers - weight, 0.0)
    both = Spread(
        names=tuple(wrong),
        probabilities=np.array(list(wrong.values()), dtype=float),
        standard_errors=np.zeros(len(wrong)),
        exact=np.zeros(len(wrong), dtype=bool),
    )
    return tuple(exposures(both, owners, servings=weights))


def _mark(graph: nx.DiGraph[Any], likely: Spread, told: Sequence[Exposure]) -> None:
    exposed = {one.tenant: one for one in told}
    wrong = dict(zip(likely.names, likely.probabilities.tolist(), strict=True))
    for node, data in graph.nodes(data=True):
        if data["kind"] == "tenant":
            one = exposed.get(node)
            data["exposure"], data["wrong"] = (0.0, 0.0) if one is None else (one.share, one.wrong)
        elif data["kind"] == "entry":
            data["probability"] = wrong.get(node[1], 0.0)
