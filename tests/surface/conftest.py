"""Where our source is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Tree:
    """The source of a package as syntax trees, by the path under its root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self) -> Iterator[tuple[str, ast.Module]]:
        for file in sorted(self.root.rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            yield file.relative_to(self.root).as_posix(), tree

    def imports(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """File, module, and the names taken from it; none for a plain import."""
        for file, tree in self.files():
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    yield from ((file, alias.name, ()) for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    assert node.level == 0, f"{file} has a relative import"
                    yield file, str(node.module), tuple(alias.name for alias in node.names)


@pytest.fixture(scope="session")
def core() -> Tree:
    return Tree(ROOT / "core")


@pytest.fixture(scope="session")
def integrations() -> Tree:
    return Tree(ROOT / "integrations")


@pytest.fixture(scope="session", params=["core", "integrations", "evals"])
def source(request) -> Tree:
    return Tree(ROOT / request.param)
