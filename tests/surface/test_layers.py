"""Imports point one way, and the integrations use only what the core offers."""

import importlib
import sys

BORROWED = {
    "numpy": None,  # anywhere
    "networkx": {
        "stemma/cli/graph.py",
        "stemma/lineage/figure.py",
        "stemma/lineage/tree.py",
        "stemma/propagation/attributes.py",
        "stemma/propagation/cut.py",
        "stemma/propagation/appearance.py",
        "stemma/propagation/drawing.py",
        "stemma/propagation/edges.py",
        "stemma/propagation/graph.py",
        "stemma/propagation/outbreak.py",
        "stemma/propagation/excerpt.py",
        "stemma/propagation/exporting.py",
        "stemma/propagation/layout.py",
        "stemma/propagation/picture.py",
        "stemma/propagation/shown.py",
        "stemma/propagation/table.py",
    },
    "onnxruntime": {"stemma/embedders/local.py"},
    "psycopg": {
        "stemma/stores/postgres_connections.py",
        "stemma/stores/postgres_errors.py",
        "stemma/stores/postgres_trips.py",
        "stemma/testing/postgres.py",
    },
    "pytest": {
        "stemma/testing/embedders.py",
        "stemma/testing/indexes.py",
        "stemma/testing/store_arrivals.py",
        "stemma/testing/store_entries.py",
        "stemma/testing/store_following.py",
        "stemma/testing/store_holds.py",
        "stemma/testing/store_judgements.py",
        "stemma/testing/store_lessons.py",
        "stemma/testing/store_lineage.py",
        "stemma/testing/store_recalls.py",
        "stemma/testing/store_sharing.py",
        "stemma/testing/store_watching.py",
        "stemma/testing/stores.py",
    },
    "pydantic": {"stemma/describing.py"},
    "matplotlib": {
        "stemma/plotting.py",
        "stemma/propagation/drawing.py",
        "stemma/propagation/lanes.py",
        "stemma/replays/figure.py",
    },
    "rich": {
        "stemma/cli/calibrate.py",
        "stemma/cli/main.py",
        "stemma/cli/printing.py",
        "stemma/cli/promote.py",
        "stemma/cli/quarantine.py",
    },
    "tiktoken": {"stemma/tokens.py"},
    "tokenizers": {"stemma/embedders/local.py"},
    "typer": {
        "stemma/cli/calibrate.py",
        "stemma/cli/database.py",
        "stemma/cli/graph.py",
        "stemma/cli/main.py",
        "stemma/cli/printing.py",
        "stemma/cli/promote.py",
        "stemma/cli/quarantine.py",
    },
    "usearch": {"stemma/indexes/hnsw.py"},
}
"""Every package of others that the core imports, and where."""

SUBMODULES = {
    "stemma.classes",
    "stemma.context",
    "stemma.describing",
    "stemma.embedders",
    "stemma.embedders.local",
    "stemma.errors",
    "stemma.nodes.hop",
    "stemma.policies.admission",
    "stemma.policies.cleaning",
    "stemma.policies.confidence",
    "stemma.policies.focus",
    "stemma.rerankers",
    "stemma.tools",
    "stemma.tools.binding",
}
"""The modules of the core besides `stemma` itself from which integrations may import."""


def test_the_core_imports_no_framework_and_of_others_only_what_is_listed(core):
    seen: dict[str, set[str]] = {}
    for file, module, _ in core.imports():
        top = module.split(".")[0]
        if top != "stemma" and top not in sys.stdlib_module_names:
            seen.setdefault(top, set()).add(file)
    assert set(seen) == set(BORROWED)
    for package, files in seen.items():
        allowed = BORROWED[package]
        assert allowed is None or files <= allowed, package


def test_nothing_in_the_core_knows_of_the_integrations_or_the_evaluations(core):
    tops = {module.split(".")[0] for _, module, _ in core.imports()}
    assert not {"stemma_langchain", "stemma_llamaindex", "evals", "tests"} & tops
    assert "stemma" in tops


def test_the_library_never_needs_its_own_tests(core):
    for file, module, _ in core.imports():
        if module.startswith("stemma.testing"):
            assert file.startswith("stemma/testing/"), file


def test_values_know_nothing_of_stores_nodes_or_the_engine(core):
    """The ground floor, and the pure decisions, do no I/O and import nothing that does."""
    reading = {
        f"propagation/{name}" for name in ("audits", "descent", "graph", "outbreak", "timeline")
    }
    ground = {"scope", "request", "keys", "entry", "codec", "clock", "errors", "events"}
    above = ("stemma.stores", "stemma.nodes", "stemma.engine", "stemma.cache", "stemma.indexes")
    for file, module, _ in core.imports():
        name = file.removeprefix("stemma/").removesuffix(".py")
        if name in reading:
            continue  # what the pure parts beside them are told, they fetch from a store
        if name in ground or name.startswith(("policies/", "propagation/")):
            assert not module.startswith(above), f"{file} imports {module}"


def test_integrations_use_only_public_names_of_the_core(integrations):
    used = set()
    for file, module, names in integrations.imports():
        if module.split(".")[0] != "stemma":
            continue
        if module != "stemma":
            used.add(module)
            assert module in SUBMODULES, f"{file} imports {module}"
        public = set(importlib.import_module(module).__all__)
        assert set(names) <= public, f"{file} takes {set(names) - public} from {module}"
    assert used == SUBMODULES, "the list names what nobody uses"
