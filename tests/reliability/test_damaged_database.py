"""The experiment with damaged databases sees what it looks for."""

from pathlib import Path

import pytest
from evals.reliability import damaged_database
from evals.reliability.damaged_database import DIED, STUCK, TOUCHED, UNTOLD, WRONG

BROKEN = """
import os, sys, warnings
from evals.reliability import damaged_database
from stemma.stores import connections, rows
from stemma.stores.connections import Connections

class Anything(int):
    def __ne__(self, other):
        return False

def no_checksums():
    rows._sum = lambda body: Anything(0)

def no_header():
    connections.examine = lambda *_, **__: None

def no_warning():
    connections.warnings = type("Silent", (), {"warn": staticmethod(lambda *_, **__: None)})

def no_setting_aside():
    Connections.failed = lambda self, error, cursor: connections.explain(error, self.path)

def no_life():
    Connections.take = lambda self: os.abort()

BREAK
damaged_database.use(*sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("broken", "kind", "copies", "promise"),
    [
        ("no_checksums", "bits flipped", 4, WRONG),
        ("no_header", "a first page of noise", 3, TOUCHED),
        ("no_warning", "cut short", 3, UNTOLD),
        ("no_setting_aside", "a page zeroed", 3, STUCK),
        ("no_life", "bytes appended", 1, DIED),
    ],
)
def test_what_is_broken_is_found_out(
    tmp_path: Path, broken: str, kind: str, copies: int, promise: str
):
    found = damaged_database.spoil(
        copies=copies,
        seed=1,
        folder=tmp_path,
        kinds=[kind],
        user=BROKEN.replace("BREAK", f"{broken}()"),
    )
    assert found.violations[promise] > 0, found
