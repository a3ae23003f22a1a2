"""Processes that put, look up, take back, clear and report on one file, all at once.

What one of them was told goes onto a board that all read. From then on the others must find it
where it was put, and must not find it where it was taken back. The subjects' answers carry an
edition: it rises before a recall, and after the recall an older one must not be served.
"""

from __future__ import annotations

import json
import os
import random
import string
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import stemma
from evals.reliability import Outcome, times
from evals.reliability.children import Process, calling, say
from stemma.events import Event

NAMES = "abcd"
OPERATIONS = 2_000
SUBJECTS = 8
"""Each is changed by one process alone, and asked about by all."""

ERRORS = "errors that reached the caller"
FAULTS = "faults told of"
LOST = "acknowledged answers lost"
UNSEEN = "answers of others not found at the next lookup"
STALE = "answers served after they were taken back"
WRONG = "answers to another question"
FOUND = "findings of a check"
ENDED = "processes that did not come to their end"
PROMISES = (ERRORS, FAULTS, LOST, UNSEEN, STALE, WRONG, FOUND, ENDED)


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    return share(operations=times(OPERATIONS, size), seed=seed, folder=folder)


def share(*, operations: int, seed: int, folder: Path, worker: str | None = None) -> Outcome:
    """Have four processes work on one file.

    Args:
        operations: How many each does.
        seed: Of what each does.
        folder: Where the file and the board are.
        worker: The script of a process; by default one that calls `work`.
    """
    script = calling(work) if worker is None else worker
    path, notes = folder / "cache.db", folder / "board"
    did: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Process(script, path, notes, name, operations, seed))
            for name in NAMES
        ]
        ready = [one.hear() for one in workers]
        began = time.perf_counter()
        for one, word in zip(workers, ready, strict=True):
            if word:
                one.tell("go")
        for one in workers:
            told = one.hear(patience=600)
            if told == "":
                broken[ENDED] += 1
                continue
            done, found = json.loads(told)
            did.update(done)
            broken.update(found)
        seconds = time.perf_counter() - began
    board = Board(notes)
    board.read()
    with opened(path) as cache:
        for word in board.kept:
            broken[LOST] += _value(cache, question(word)) != word
        broken[STALE] += sum(cache.answers.lookup(question(word)).hit for word in board.wrong)
        broken[FOUND] += len(cache.check())
    return Outcome(
        tried=dict(sorted(did.items())),
        violations={promise: broken[promise] for promise in PROMISES},
        figures={"operations a second": sum(did.values()) / seconds},
    )


def opened(path: str | Path) -> stemma.Cache:
    """The cache that all share: hits by meaning are of texts with the same words."""
    return stemma.open(path, tenant="shared", embedder="hashing", threshold=0.8)


def question(word: str) -> str:
    """Where a word is asked for."""
    return f"Where do we keep the {word}?"


def reworded(word: str) -> str:
    """The same in other words."""
    return f"where do we keep the {word}"


def _value(cache: stemma.Cache, asked: str) -> object:
    found = cache.answers.lookup(asked)
    return found.value if isinstance(found, stemma.Hit) else None


class Board:
    """Lines that every process posts and reads.

    `kept` are words with an acknowledged answer, `wrong` those reported as wrong; `edition` is each
    subject's present one, `floor` the one below which everything has been taken back.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._at = 0
        self.kept: list[str] = []
        self.wrong: list[str] = []
        self.edition = dict.fromkeys(map(str, range(SUBJECTS)), 0)
        self.floor = dict(self.edition)

    def post(self, what: str, word: str, number: int = 0) -> None:
        """Tell the others."""
        os.write(self._file, f"{what} {word} {number}\n".encode())

    def read(self) -> None:
        """Take in what was posted since."""
        while new := os.pread(self._file, 1 << 16, self._at):
            whole = new[: new.rfind(b"\n") + 1]
            if not whole:
                return
            self._at += len(whole)
            for what, word, number in (line.split() for line in whole.decode().splitlines()):
                held = getattr(self, what)
                if isinstance(held, list):
                    held.append(word)
                else:
                    held[word] = int(number)


# ------------------------------------------------------------------------- in the processes


class Worker:
    """One process's operations, each of which counts what it finds against a promise."""

    def __init__(self, path: str, board: str, name: str, seed: str) -> None:
        self.cache = opened(path)
        self.cache.listen(self._heard)
        self.board = Board(board)
        self.lucky = random.Random(f"{seed}.{name}")
        self.mine = [str(one) for one in range(SUBJECTS) if one % len(NAMES) == NAMES.index(name)]
        self.broken: Counter[str] = Counter()

    def _heard(self, event: Event) -> None:
        self.broken[FAULTS] += event.kind == "fault"

    def _word(self) -> str:
        return "".join(self.lucky.choices(string.ascii_lowercase, k=12))

    def put(self) -> None:
        """An answer that must stay."""
        word = self._word()
        served = self.cache.answers.get_or_compute(question(word), lambda: word)
        if served.stored:
            self.board.post("kept", word)

    def hit(self) -> None:
        """An answer of anybody's, by the exact question."""
        self._look_for(question)

    def meaning(self) -> None:
        """An answer of anybody's, by another wording."""
        self._look_for(reworded)

    def _look_for(self, wording: Callable[[str], str]) -> None:
        self.board.read()
        if not self.board.kept:
            return
        word = self.lucky.choice(self.board.kept[-self.lucky.choice((1, 10_000)) :])
        value = _value(self.cache, wording(word))
        self.broken[UNSEEN] += value is None
        self.broken[WRONG] += value not in (None, word)

    def ask(self) -> None:
        """A subject's answer, built on a hop; it may be anybody's, but not an old one."""
        subject = self.lucky.choice([*self.board.floor])
        self.board.read()
        floor = self.board.floor[subject]
        with self.cache.using(subject=subject), self.cache.trace():
            self.cache.hops.get_or_compute(subject, lambda: self._edition(subject))
            served = self.cache.answers.get_or_compute(
                f"subject {subject}", lambda: self._edition(subject), meaning=False
            )
        self.broken[WRONG] += served.value[0] != subject
        self.broken[STALE] += served.value[1] < floor

    def _edition(self, subject: str) -> list[object]:
        self.board.read()
        return [subject, self.board.edition[subject]]

    def recall(self) -> None:
        """A subject of one's own has a new edition; the answers of the old one are taken back."""
        self._change(self.cache.recall)

    def clear(self) -> None:
        """The same by `clear`."""
        self._change(self.cache.clear)

    def _change(self, take_back: Callable[..., object]) -> None:
        subject = self.lucky.choice(self.mine)
        self.board.read()
        edition = self.board.edition[subject] + 1
        self.board.post("edition", subject, edition)
        take_back(subject=subject)
        self.board.post("floor", subject, edition)

    def report(self) -> None:
        """An answer that is reported as wrong, and is nobody's from then on."""
        word = self._word()
        stored = self.cache.answers.get_or_compute(question(word), lambda: word).stored
        if stored is not None and stored.entry is not None:
            self.cache.report(stored.entry.id, "hallucinated", by="reviewer")
            self.board.post("wrong", word)
        self.board.read()
        if self.board.wrong:
            asked = self.lucky.choice((question, reworded))(self.lucky.choice(self.board.wrong))
            self.broken[STALE] += self.cache.answers.lookup(asked).hit

    def stats(self) -> None:
        """The statistics, which are written first."""
        self.cache.stats()


OFTEN = {
    Worker.put: 4,
    Worker.hit: 6,
    Worker.meaning: 3,
    Worker.ask: 6,
    Worker.recall: 1,
    Worker.clear: 1,
    Worker.report: 1,
    Worker.stats: 1,
}


def work(path: str, board: str, name: str, operations: str, seed: str) -> None:
    """Do operations at random; say how many of each, and what was against a promise."""
    worker = Worker(path, board, name, seed)
    did: Counter[str] = Counter()
    say("ready")
    input()
    for operation in worker.lucky.choices([*OFTEN], [*OFTEN.values()], k=int(operations)):
        did[operation.__name__] += 1
        try:
            operation(worker)
        except Exception:
            worker.broken[ERRORS] += 1
    worker.cache.close()
    say(json.dumps([did, worker.broken]))
