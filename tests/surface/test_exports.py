"""`__all__` says exactly what a module offers, in order, and each of it is documented."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "stemma": ROOT / "core",
    "stemma_langchain": ROOT / "integrations",
    "stemma_llamaindex": ROOT / "integrations",
}
COMMANDS = {"stemma.cli.main": {"check", "inspect", "recall", "report", "stats"}}
"""Functions that are commands of the application: Typer calls them, nobody imports them."""


def modules() -> list[str]:
    found = []
    for package, root in PACKAGES.items():
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


MODULES = modules()


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts them."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def test_there_are_modules_to_look_at():
    assert {"stemma", "stemma.cache", "stemma_langchain", "stemma_langchain.chain"} <= set(MODULES)
    assert len(MODULES) > 60


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_offers_exists_in_order_and_is_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    offered = getattr(module, "__all__", None)
    if offered is None:
        body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
        assert len(body) == 1, f"{name} has code and no __all__"
        return
    assert list(offered) == sorted(set(offered), key=order)
    for public in offered:
        thing = getattr(module, public)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert inspect.getdoc(thing), f"{name}.{public} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_class_and_function_is_offered(name):
    module = importlib.import_module(name)
    defined = {
        public
        for public, thing in vars(module).items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == name
        and not public.startswith("_")
    }
    assert defined - COMMANDS.get(name, set()) <= set(getattr(module, "__all__", ()))


def test_the_two_packages_offer_nothing_besides():
    for name in PACKAGES:
        module = importlib.import_module(name)
        reachable = {
            public
            for public, thing in vars(module).items()
            if not public.startswith("_") and not inspect.ismodule(thing)
        }
        assert reachable - {"TYPE_CHECKING", "Any", "annotations"} <= set(module.__all__)


def test_a_face_that_does_not_exist_is_an_attribute_error():
    package = importlib.import_module("stemma_langchain")
    with pytest.raises(AttributeError, match="CachedNothing"):
        _ = package.CachedNothing
    assert set(package.__all__) <= set(dir(package))
