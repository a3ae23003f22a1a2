"""Products in an environment of their own: none of what they need is ever beside Stemma's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evals.measuring import Skipped
from stemma.entry import content_digest

__all__ = ["Peer", "environment", "started"]

_READY = "ready"
_BESIDE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def environment(name: str, pins: Sequence[str]) -> Path:
    """The interpreter of an environment that holds these packages; made where it is not there.

    It is kept under `XDG_CACHE_HOME` (by default `.cache` in the home folder), in a folder of
    `stemma-evals` that is named by the packages, so that other versions are another environment.

    Args:
        name: Of the product.
        pins: Packages with their versions, as pip takes them.

    Raises:
        Skipped: pip could not install them.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "stemma-evals")
    folder = home / f"{name}-{content_digest(' '.join(pins))[:12]}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / _READY).is_file():
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *pins]
        ran = subprocess.run(pip, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            last = (ran.stderr.strip().splitlines() or ["no word why"])[-1]
            raise Skipped(f"pip could not install {name} in an environment of its own: {last}")
        (folder / _READY).touch()
    return python


class Peer:
    """A process that answers one line of JSON with one line of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What it answers.

        Raises:
            RuntimeError: It ended without an answer.
        """
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        try:
            asked.write(json.dumps(question) + "\n")
            asked.flush()
            line = answered.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the peer ended with {self._process.wait()} before it answered")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def started(script: Path, folder: Path, *, python: Path | None = None) -> Iterator[Peer]:
    """A peer that runs a script, alone with what its environment holds, until the block ends.

    Args:
        script: Reads lines from its standard input and answers each on its standard output.
        folder: Where it runs, and may write.
        python: The interpreter of its environment; by default ours.
    """
    run = [sys.executable if python is None else str(python), "-I", str(script.absolute())]
    with subprocess.Popen(
        run,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env={**os.environ, **_BESIDE},
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()
