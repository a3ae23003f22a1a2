"""Damaged copies of a filled database, each opened and used by a process that may die of it.

Whatever is left of a copy, nothing is served that was not put under its key, or was taken back
(all of that had reached the database itself before: what stands in the log alone goes with the
log). A cache opens, sets aside at most one file and says so, and works afterwards. A file that
cannot be told to be ours any more, and has lost its marker, is left as it is.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Self

import stemma
from evals.reliability import Outcome, times
from evals.reliability.children import Process, calling, say
from evals.reliability.damage import KINDS, Files, spoiled
from stemma import frames
from stemma.entry import Source
from stemma.errors import StoreError
from stemma.outcome import Hit
from stemma.stores.sqlite_schema import APPLICATION
from stemma.testing import ManualClock

__all__ = ["run", "spoil", "use"]

COPIES = 200
QUESTIONS = 60
DOCUMENTS = 10
PATIENCE = 10.0
"""Seconds after which a process hangs."""

GONE = (1, 2)
"""Answers that are taken back before."""

DIED = "processes that died"
HUNG = "hangs over 10 s"
WRONG = "wrong answers"
BACK = "answers that were taken back"
OTHER = "errors that are not ours"
REFUSED = "files of ours refused"
TOUCHED = "files not known to be ours touched"
UNTOLD = "files set aside without one warning"
STUCK = "caches that did not work afterwards"
_PROMISES = (DIED, HUNG, WRONG, BACK, OTHER, REFUSED, TOUCHED, UNTOLD, STUCK)


class Filling(NamedTuple):
    """What a database was filled with.

    Args:
        answers: By entry, the answer.
        documents: By entry, the document that it was built from.
        gone: Entries that were taken back.
    """

    answers: dict[str, str]
    documents: dict[str, str]
    gone: list[str]


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    return spoil(copies=times(COPIES, size), seed=seed, folder=folder)


def spoil(
    *,
    copies: int,
    seed: int,
    folder: Path,
    kinds: Sequence[str] = tuple(KINDS),
    user: str | None = None,
) -> Outcome:
    """Damage copies.

    Args:
        copies: How many.
        seed: Of the damage.
        folder: Where to make them.
        kinds: Of which kinds, in turn.
        user: The script of the processes that use them; by default one that calls `use`.
    """
    lucky = random.Random(seed)
    filling, ours = _fill(folder / "ours.db", "ours")
    _, other = _fill(folder / "other.db", "other")
    known = folder / "filling.json"
    known.write_text(json.dumps(filling))
    tried: Counter[str] = Counter()
    wrong = Counter(dict.fromkeys(_PROMISES, 0))
    with _Users(calling(use) if user is None else user, known) as users:
        for number in range(copies):
            kind = kinds[number % len(kinds)]
            files = spoiled(lucky.choice(ours), other[0], kind, lucky)
            if lucky.random() < 0.3:
                del files["-stemma"]
            with tempfile.TemporaryDirectory(dir=folder) as place:
                path = Path(place) / "cache.db"
                _write(path, files)
                found = users.use(path)
                wrong.update(_judged(path, files, found))
            tried[kind] += 1
            tried["answers served"] += found.served
    return Outcome(tried=tried, violations=wrong)


class _Found(NamedTuple):
    """What became of a copy.

    Args:
        served: How many answers were served from it.
        refused: The error with which it was refused; empty if it was not.
        broken: The promises that were broken, each as often as it was.
    """

    served: int = 0
    refused: str = ""
    broken: Sequence[str] = ()


class _Users:
    """Processes that use copies: one, until it dies or hangs, then another one.

    Args:
        script: What they run.
        known: The file that says what the database was filled with.
    """

    def __init__(self, script: str, known: Path) -> None:
        self._running = ExitStack()
        self._command = (script, known)
        self._process = self._begun()

    def _begun(self) -> Process:
        process = self._running.enter_context(Process(*self._command))
        process.hear()  # that it has loaded everything
        return process

    def use(self, path: Path) -> _Found:
        """Have a copy used."""
        began = time.monotonic()
        self._process.tell(str(path))
        heard = self._process.hear(PATIENCE)
        if heard:
            return _Found(*json.loads(heard))
        broken = DIED if time.monotonic() - began < PATIENCE else HUNG
        self._running.close()
        self._process = self._begun()
        return _Found(broken=[broken])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


def _judged(path: Path, files: Files, found: _Found) -> Iterator[str]:
    """The promises that were broken, seen from outside."""
    yield from found.broken
    header = files[""][:100]
    ours = (
        header.startswith(b"SQLite format 3\x00")
        and int.from_bytes(header[68:72], "big") == APPLICATION
    )
    if found.refused and (ours or "-stemma" in files) and found.refused != "SchemaTooNew":
        yield REFUSED
    known = not header or ours or "-stemma" in files
    if (found.refused or not known) and _read(path) != files:
        yield TOUCHED


def _write(path: Path, files: Files) -> None:
    for ending, content in files.items():
        Path(f"{path}{ending}").write_bytes(content)


def _read(path: Path) -> Files:
    beside = path.parent.glob(f"{path.name}*")
    return {one.name.removeprefix(path.name): one.read_bytes() for one in beside}


# ------------------------------------------------------------------------- filled before


def _fill(path: Path, name: str) -> tuple[Filling, list[Files]]:
    """Fill a database; gives its files with half of it in the log, and closed."""
    filling = Filling({}, {}, [])
    with _opened(path) as cache:
        _answer(cache, name, range(QUESTIONS // 2), filling)
        for number in GONE:
            taken = cache.recall(source=f"gone-{number}").entries
            filling.gone.extend(one.entry for one in taken)
    with _opened(path) as cache:
        _answer(cache, name, range(QUESTIONS // 2, QUESTIONS), filling)
        logged = _read(path)
    return filling, [logged, _read(path)]


def _answer(cache: stemma.Cache, name: str, numbers: range, filling: Filling) -> None:
    for number in numbers:
        document = f"gone-{number}" if number in GONE else f"doc-{number % DOCUMENTS}"
        answer = f"{name} {number} " * (1 + number % 40 * 10)
        entry = _stored(cache, _question(number), answer, document)
        filling.answers[entry] = answer
        filling.documents[entry] = document


def _stored(cache: stemma.Cache, question: str, answer: str, document: str) -> str:
    """The entry of an answer that was built from a document."""
    source = Source(document=document, chunk=f"{document}-1", content="first edition")
    with cache.trace() as frame, cache.refresh():
        frame.read_sources([(source, "text")], frames.marks())
        stored = cache.answers.get_or_compute(question, lambda: answer).stored
    assert stored is not None
    assert stored.entry is not None
    return stored.entry.id


def _question(number: int) -> str:
    return f"What does section {number} say about lemons?"


def _opened(path: Path) -> stemma.Cache:
    clock = ManualClock()  # the same times in every run
    return stemma.open(path, tenant="acme", embedder="hashing", threshold=0.6, clock=clock)


# ------------------------------------------------------------ in the processes that may die


def use(known: str) -> None:
    """Use the copies named on standard input, and say what came of each, as JSON."""
    filling = Filling(*json.loads(Path(known).read_text(encoding="utf-8")))
    say("ready")
    for line in sys.stdin:
        say(json.dumps(_used(Path(line.strip()), filling)))


def _used(path: Path, filling: Filling) -> _Found:
    user = _User(filling)
    refused = ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with _opened(path) as cache:
                user.use(cache)
        except StoreError as error:
            refused = type(error).__name__
        except Exception:
            user.broken.append(OTHER)
    told = [*map(str, (one.message for one in warned)), *user.told]
    aside = [one for one in _read(path) if one.startswith("-damaged-") and one[9:].isdigit()]
    if len(aside) > 1 or len(aside) != sum("set aside" in one for one in told):
        user.broken.append(UNTOLD)
    return _Found(user.served, refused, user.broken)


class _User:
    """Who uses a cache on a damaged database, and notes what is wrong.

    Args:
        filling: What it was filled with.
    """

    def __init__(self, filling: Filling) -> None:
        self._filling = filling
        self._gone = set(filling.gone)
        self.served = 0
        self.broken: list[str] = []
        self.told: list[str] = []

    def use(self, cache: stemma.Cache) -> None:
        """Ask everything, put, take back, check, and do it again."""
        cache.listen(
            lambda event: self.told.append(event.detail) if event.kind == "warning" else None
        )
        self._ask(cache)
        self._put(cache, "first")
        if self._try(lambda: cache.recall(source="doc-3")):
            documents = self._filling.documents
            self._gone |= {one for one, document in documents.items() if document == "doc-3"}
        self._ask(cache)
        if self._try(cache.check) and cache.check():
            self.broken.append(STUCK)
        self._ask(cache)
        for again in ("second", "third"):
            works = self._put(cache, again)
        if not works:
            self.broken.append(STUCK)

    def _ask(self, cache: stemma.Cache) -> None:
        for number in range(QUESTIONS):
            for words in (_question(number), f"Please: {_question(number)}"):
                found = cache.answers.lookup(words)
                if isinstance(found, Hit):
                    self.served += 1
                    if self._filling.answers.get(found.entry.id) != found.value:
                        self.broken.append(WRONG)
                    if found.entry.id in self._gone:
                        self.broken.append(BACK)

    def _put(self, cache: stemma.Cache, name: str) -> bool:
        """Whether what was put is found."""
        for number in range(5):
            words = f"{name} zebra {number}"
            if cache.answers.get_or_compute(words, lambda: name).value != name:
                self.broken.append(WRONG)
        return all(cache.answers.lookup(f"{name} zebra {number}").hit for number in range(5))

    def _try(self, act: Callable[[], object]) -> bool:
        """Whether it was done; if not, why is told."""
        try:
            done = act()
        except StoreError as error:
            self.told.append(str(error))
            return False
        self.told.extend(done if isinstance(done, tuple) else ())
        return True
