"""Processes that are told what to do, a line at a time."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest


class Process:
    """A Python process that runs a script; it is killed at the end, if it is still there."""

    def __init__(self, script: str, *args: object):
        command = [sys.executable, "-c", script, *map(str, args)]
        pipe = subprocess.PIPE
        self.popen = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def tell(self, line: str) -> None:
        self.popen.stdin.write(f"{line}\n")
        self.popen.stdin.flush()

    def hear(self) -> str:
        return self.popen.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.hear()

    def end(self) -> int:
        self.popen.stdin.close()
        code = self.popen.wait(60)
        self.popen.stdout.close()
        return code


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Starts processes."""
    started = []

    def begin(script: str, *args: object) -> Process:
        one = Process(script, *args)
        started.append(one)
        return one

    yield begin
    for one in started:
        one.popen.kill()
        for pipe in (one.popen.stdin, one.popen.stdout):
            pipe.close()
        one.popen.wait(60)
