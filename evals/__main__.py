"""Run an evaluation by its name."""

from __future__ import annotations

import os

# One thread for linear algebra: ratios between one-threaded steps are what is measured. Must be
# said before NumPy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import importlib
import json
import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evals.provenance import provenance

EVALUATIONS = {
    "speed": "exact and semantic hits against a raw read, a bare product, LangChain's SQLiteCache",
    "rag": "retrieval, reranking, embeddings and changing documents, against no cache and peers",
    "agents": "tool calls spared in a world that changes, chains out of date, what a hop costs",
    "quality": "hits and wrong hits of the decision policies, side by side with what there is",
    "propagation": "answers without ground, and how well the spread of a wrong one is foretold",
    "reliability": "kills, power cuts, damage, races, outages: how often a promise was broken",
}

for _name in ("stemma", "psycopg"):  # what goes wrong on purpose is counted, not logged
    logging.getLogger(_name).setLevel(logging.CRITICAL)

app = typer.Typer(add_completion=False)
out = Console()


@app.command()
def main(
    name: Annotated[str | None, typer.Argument(help="Which; without one, the list.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write results here.")] = None,
    size: Annotated[float, typer.Option(help="1 is the full size; 0.01 a smoke test.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    part: Annotated[str | None, typer.Option(help="Only this part of it.")] = None,
) -> None:
    """Run an evaluation, print its figures beside their targets, and write them as JSON."""
    if name is None:
        for known, what in EVALUATIONS.items():
            out.print(f"{known:12} {what}")
        return
    if name not in EVALUATIONS:
        raise typer.BadParameter(f"unknown evaluation {name!r}; one of {', '.join(EVALUATIONS)}")
    if not 0 < size <= 1:
        raise typer.BadParameter(f"size must be above 0 and at most 1, not {size}")
    evaluation = importlib.import_module(f"evals.{name}")
    if part is not None and part not in evaluation.PARTS:
        raise typer.BadParameter(
            f"{name} has no part {part!r}; one of {', '.join(evaluation.PARTS)}"
        )
    results = evaluation.run(size=size, seed=seed, out=out, part=part)
    if json_file is not None:
        told = {"evaluation": name, **provenance(size=size, seed=seed), "results": results}
        json_file.write_text(json.dumps(told, indent=2), encoding="utf-8")
        out.print(f"written to {json_file}", markup=False)


app()
