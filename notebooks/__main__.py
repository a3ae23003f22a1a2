"""Execute the notebooks anew and keep what they print: `python -m notebooks [NAME …]`."""

from __future__ import annotations

import sys
import time

import nbformat

from notebooks.executing import NOTEBOOKS, executed


def main(names: list[str]) -> None:
    """Execute the notebooks named, by default all of them, and write their outputs."""
    for path in NOTEBOOKS:
        if names and path.stem not in names:
            continue
        began = time.perf_counter()
        nbformat.write(executed(path), path)  # type: ignore[no-untyped-call]
        print(f"{path.name}: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
