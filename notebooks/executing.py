"""Notebooks, executed in a kernel of this environment."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

__all__ = ["NOTEBOOKS", "executed"]

FOLDER = Path(__file__).parent
NOTEBOOKS = tuple(sorted(FOLDER.glob("*.ipynb")))
LONGEST = 240
"""Seconds that one cell may take."""
TRANSPORT = "ipc" if os.name == "posix" else "tcp"
"""Sockets in a folder, where there are such: what goes over TCP, others on the machine can read."""


class _Here(KernelSpecManager):
    """The one kernel: this interpreter, whatever kernels are installed elsewhere."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python", name=kernel_name)


def executed(path: Path) -> Any:
    """A notebook with the outputs of this run.

    It is run in a temporary folder, with the shop's pages beside it.

    Args:
        path: The notebook.

    Raises:
        CellExecutionError: A cell raised.
    """
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder, "notebooks")
        shutil.copytree(FOLDER / "shop", here / "shop")
        kernel = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=_Here(),
            transport=TRANSPORT,
            connection_file=f"{folder}/kernel.json",
        )
        client = NotebookClient(
            notebook,
            km=kernel,
            resources={"metadata": {"path": str(here)}},
            timeout=LONGEST,
            coalesce_streams=True,
            record_timing=False,
        )
        client.execute(cleanup_kc=True)
    return notebook
