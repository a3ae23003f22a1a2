"""What is shipped: typed packages, one version, nothing of the machine it was made on."""

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import stemma

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = ("core", "integrations", "evals", "docs", "tests", "notebooks", ".ci")
LOOSE = ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "constraints.txt", ".gitignore")
HOSTS = {
    "www.w3.org",
    "keepachangelog.com",
    "semver.org",
    "localhost",
    "127.0.0.1",
}
"""The hosts that our texts may name; example and test hosts end in a reserved name."""


def texts():
    files = [ROOT / name for name in LOOSE]
    for room in ROOMS:
        files += [f for f in sorted((ROOT / room).rglob("*")) if f.is_file()]
    for file in files:
        if "__pycache__" in file.parts or file.suffix in {".pyc", ".db"}:
            continue
        yield file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8", errors="replace")


def packages() -> list[Path]:
    return [
        ROOT / path for path in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    ]


def test_every_import_package_is_shipped_and_typed():
    there = {
        child.relative_to(ROOT).as_posix()
        for root in ("core", "integrations")
        for child in (ROOT / root).iterdir()
        if (child / "__init__.py").is_file()
    }
    assert {path.relative_to(ROOT).as_posix() for path in packages()} == there
    assert all((path / "py.typed").is_file() for path in packages())


def test_there_is_one_version():
    assert stemma.__version__ == PROJECT["project"]["version"] == version("stemma-cache")


@pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling is not installed")
def test_the_wheel_holds_both_packages_their_markers_and_the_licence(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--quiet", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"stemma/py.typed", "stemma_langchain/py.typed", "stemma_llamaindex/py.typed"} <= names
    assert "stemma/cli/main.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "evals", "core", "docs"))]


def test_nothing_names_a_place_on_the_machine_it_was_written_on():
    place = re.compile(r"(?<![\w.~*}])/(?:work|tmp|root|home|Users)/[\w.]")
    assert place.search("see " + "/" + "tmp/x")
    found = [(file, match[0]) for file, text in texts() for match in place.finditer(text)]
    assert found == []


def test_nothing_names_a_package_index_or_an_unknown_host():
    option = re.compile(r"(?:extra-)?index-url|find-links|trusted-host")
    reserved = (".example", ".test", ".invalid", ".localhost", "example.com", "example.org")
    address = re.compile(r"https?://(?:[^/@\s]*@)?([a-z0-9][a-z0-9.-]*[a-z0-9])", re.IGNORECASE)
    for file, text in texts():
        if file == "tests/surface/test_package.py":
            continue
        assert not option.search(text), file
        hosts = {host.lower() for host in address.findall(text)}
        unknown = {h for h in hosts if h not in HOSTS and not h.endswith(reserved)}
        assert not unknown, f"{file}: {unknown}"
