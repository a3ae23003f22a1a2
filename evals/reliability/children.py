"""Processes that are told what to do, a line at a time, and killed when it pleases."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

__all__ = ["PATIENCE", "Process", "calling", "say"]

ROOT = Path(__file__).parents[2]

PATIENCE = 60.0
"""Seconds after which a process that says nothing is taken to hang."""


class Process:
    """A Python process that runs a script; a context manager that leaves none behind.

    Args:
        script: What it runs. It is told things on its standard input, and answers by `say`.
        *args: Its arguments, as text.
    """

    def __init__(self, script: str, *args: object) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self._in, self._out = self.popen.stdin, self.popen.stdout

    def tell(self, line: str) -> None:
        """Send a line."""
        self._in.write(f"{line}\n")
        self._in.flush()

    def hear(self, patience: float = PATIENCE) -> str:
        """The next line it says; empty where it ended, or hung and was killed for it."""
        watch = threading.Timer(patience, self.popen.kill)
        watch.start()
        try:
            return self._out.readline().strip()
        finally:
            watch.cancel()

    def ask(self, line: str) -> str:
        """Send a line, and hear one."""
        self.tell(line)
        return self.hear()

    def kill(self) -> list[str]:
        """Kill it with SIGKILL; gives the lines it had said and that were not heard yet."""
        self.popen.kill()
        *whole, _ = self._out.read().split("\n")  # the last one may be cut short
        self.popen.wait(PATIENCE)
        return whole

    def end(self) -> int:
        """Tell it nothing more, and wait for its end."""
        self._in.close()
        code = self.popen.wait(PATIENCE)
        self._out.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        for pipe in (self._in, self._out):
            with suppress(OSError):
                pipe.close()
        self.popen.wait(PATIENCE)


def calling(function: Callable[..., None]) -> str:
    """The script that calls a function of a module with the process's arguments, as text."""
    module, name = function.__module__, function.__name__
    quiet = "import logging; logging.disable()"  # what goes wrong on purpose is counted
    return f"{quiet}; import sys; from {module} import {name}; {name}(*sys.argv[1:])"


def say(*words: object) -> None:
    """Say a line to the process that started this one."""
    print(*words, flush=True)
