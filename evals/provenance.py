"""Where a figure comes from: machine, versions, sizes, seeds."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["provenance"]

_PACKAGES = ("stemma-cache", "numpy", "langchain-core", "langchain-community", "onnxruntime")


def provenance(*, size: float, seed: int) -> dict[str, Any]:
    """What must be known of a run to judge its figures."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "size": size,
        "seed": seed,
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()}",
            "linear_algebra_threads": os.environ.get("OPENBLAS_NUM_THREADS"),
        },
        "versions": {
            "python": sys.version.split()[0],
            "sqlite": sqlite3.sqlite_version,
            **{name: _version(name) for name in _PACKAGES},
        },
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    git = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(
        git, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return found.stdout.strip() or None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
