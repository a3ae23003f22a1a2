"""A write transaction on PostgreSQL as the rules see it (`stemma.stores.rules.Pages`).

What the rules may ask about some puts is read in one trip, behind the lock on the row of numbers.
They then decide in memory, each put seeing what those before it in the batch did, and what comes
of it is written in one trip more, however many puts there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from stemma.entry import Entry, Lineage, Vector
from stemma.outcome import Stored
from stemma.policies.changes import Watched
from stemma.selector import Selector
from stemma.stores import postgres_journal
from stemma.stores.journal_rows import judged
from stemma.stores.postgres_rows import ROW, ends, escaped, selectors, state_of
from stemma.stores.postgres_steps import COMMIT, Rows, Say, Steps
from stemma.stores.postgres_writing import LOCK, Changed, Embedded, save, trim, write
from stemma.stores.protocol import Judgement, Put
from stemma.stores.rows import pack_lineage, unpack, unpack_lineage
from stemma.stores.rules import State, Vouched, admit, elements, judge
from stemma.stores.text import Damaged, escape, unescape

__all__ = ["Loaded", "judging", "putting"]

_ENTRIES = f"""SELECT {ROW}, asked.id, l.record, v."group"
    FROM unnest(%s::text[]) asked (id) LEFT JOIN entries e ON e.id = asked.id
    LEFT JOIN lineages l ON l.child = asked.id LEFT JOIN vectors v ON v.entry = asked.id"""  # noqa: S608 - constant

_CHILDREN = """SELECT asked.id, edges.child FROM unnest(%s::text[]) asked (id)
    CROSS JOIN LATERAL (SELECT child FROM edges WHERE parent = asked.id LIMIT %s) edges"""

_SOURCES = """SELECT s.owner, s."index", s.chunk, s.content, s.seen,
    s.first, s.last, s.checks, s.changes
    FROM unnest(%s::text[], %s::text[], %s::text[]) asked (owner, "index", chunk)
    JOIN sources s USING (owner, "index", chunk)"""

_TAKEN = "SELECT entry, max(recall) FROM recalled WHERE entry = ANY(%s) GROUP BY entry"

_RECALLS = """SELECT sequence, source, entry, tenant, tag, writer, subject, model, "index", node
    FROM recalls WHERE sequence > %s
    AND (tenant IS NULL OR tenant = ANY(%s)) AND (model IS NULL OR model = ANY(%s))
    AND (source IS NULL OR source = ANY(%s)) AND (entry IS NULL OR entry = ANY(%s))
    ORDER BY sequence DESC"""


class Loaded:
    """See the module's text. Ids in here are escaped, as in the tables, but those in judgements.

    Args:
        state: The store's numbers.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.changed = Changed()
        self._rows: dict[str, tuple[Entry, int] | None] = {}
        self._lineages: dict[str, str] = {}
        self._groups: dict[str, str] = {}
        self._children: dict[str, set[str]] = {}
        self._sources: dict[tuple[str, str, str], Vouched] = {}
        self._taken: dict[str, int] = {}
        self._recalls: list[tuple[int, Selector]] = []
        self._said: dict[str, list[Judgement]] = {}

    def load(self, entries: Rows, children: Rows, sources: Rows, taken: Rows) -> None:
        """Take in what was read."""
        for *row, key, record, group in entries:
            if row[0] is not None:
                self._rows[key] = None
                with suppress(Damaged):
                    self._rows[key] = unpack(row)
            if record is not None:
                self._lineages[key] = record
            if group is not None:
                self._groups[key] = group
        for parent, child in children:
            self._children.setdefault(parent, set()).add(child)
        for owner, index, chunk, content, seen, *watched in sources:
            known = Vouched(unescape(content), seen, Watched(*watched))
            self._sources[owner, index, chunk] = known
        self._taken = dict(taken)

    def load_said(self, judgements: Iterable[Judgement]) -> None:
        """Take in what was judged, in the order in which it was noted."""
        for one in judgements:
            self._said.setdefault(one.entry, []).append(one)

    def load_recalls(self, rows: Rows) -> None:
        """Take in the recalls that may concern the puts."""
        self._recalls = list(selectors(rows))

    def entry(self, id: str) -> Entry | None:
        """The stored entry, if it is undamaged."""
        found = self._rows.get(escape(id))
        return None if found is None else found[0]

    def value(self, id: str) -> str | None:
        """Its value hash; empty if the record is damaged."""
        key = escape(id)
        if key not in self._rows:
            return None
        found = self._rows[key]
        return "" if found is None else found[0].value

    def lineage(self, id: str) -> Lineage | None:
        """What it was built from; `None` also where that record is damaged."""
        record = self._lineages.get(escape(id))
        with suppress(Damaged):
            return None if record is None else unpack_lineage(record)
        return None

    def said(self, id: str) -> Sequence[Judgement]:
        """What was judged of it, where it is put or judged now."""
        return self._said.get(id, ())

    def lift(self, id: str) -> None:
        """End all holds on it."""
        key = escape(id)
        if key not in self._rows:
            return
        found = self._rows[key]
        if found is None:
            self.changed.lifted.add(key)
        elif found[0].held:
            self.changed.lifted.add(key)
            self._rows[key] = (replace(found[0], held=""), found[1])

    def is_parent(self, id: str) -> bool:
        """Whether anything was ever built on it."""
        return bool(self._children.get(escape(id)))

    def recalls(self, put: Put, after: int) -> Iterator[tuple[int, Selector]]:  # noqa: ARG002 - the rules look closer
        """The recalls after a sequence that may concern some put of the batch."""
        return (one for one in self._recalls if one[0] > after)

    def taken(self, id: str) -> int:
        """When a recall last took it back; 0 if none did."""
        return self._taken.get(escape(id), 0)

    def vouched(self, owner: str, index: str, chunk: str) -> Vouched | None:
        """What an index last said of a chunk."""
        return self._sources.get((escape(owner), escape(index), escape(chunk)))

    def vouch(self, owner: str, index: str, chunk: str, vouched: Vouched) -> None:
        """Enter what an index says of a chunk."""
        where = (escape(owner), escape(index), escape(chunk))
        self._sources[where] = self.changed.sources[where] = vouched

    def store(self, entry: Entry, lineage: Lineage, vector: Vector | None) -> None:
        """Write an entry in place of the one with the same id."""
        key = escape(entry.id)
        record, total = pack_lineage(lineage)
        self._link(key, entry, lineage, record)
        self._rows[key] = self.changed.entries[key] = (entry, total)
        group = None if vector is None else escape(entry.group)
        former = self._groups.pop(key, None)
        if former is not None and former != group:
            self.changed.removed.append((entry.sequence, former, key))
        if group is not None:
            self._groups[key] = group
        self.changed.vectors[key] = None if vector is None else Embedded(entry, vector)

    def mark(self, entry: Entry) -> None:
        """Write an entry of which something was judged."""
        key = escape(entry.id)
        found = self._rows.get(key)
        if found is not None:
            self._rows[key] = self.changed.marked[key] = (entry, found[1])

    def _link(self, key: str, entry: Entry, lineage: Lineage, record: str) -> None:
        former = self._lineages.get(key)
        if former == record:
            return
        changed = self.changed
        if former:
            with suppress(Damaged):  # edges too many only make a recall take more
                parents, _ = ends(unpack_lineage(former))
                for parent in parents:
                    self._children.get(parent, set()).discard(key)
            changed.unlinked.add(key)
        self._lineages[key] = record
        changed.lineages[key] = (entry.tenant, record, *ends(lineage))
        for parent in changed.lineages[key][2]:
            self._children.setdefault(parent, set()).add(key)


def putting(puts: Sequence[Put], reach: int) -> Steps[tuple[Stored, ...]]:
    """Store entries under their conditions. See `Store.put`.

    Args:
        puts: The puts.
        reach: How many removed vectors are remembered.
    """
    if not puts:
        return ()
    numbers, *read, said, recalls = yield [LOCK, *_reads(puts), _said(puts), _recalls(puts)]
    pages = Loaded(state_of(numbers))
    pages.load(*read)
    pages.load_said(judged(said))
    pages.load_recalls(recalls)
    stored = tuple([admit(put, pages) for put in puts])
    log = [trim(reach)] if pages.changed.removed else []
    yield [*write(pages.changed), *log, *save(pages.state), COMMIT]
    return stored


def judging(judgement: Judgement, near: Sequence[str], tenant: str | None) -> Steps[Entry | None]:
    """Journal a judgement, and note it on entries. See `Store.judge`.

    Args:
        judgement: The judgement.
        near: The entries near a wrong hit.
        tenant: Whose judgement it is, where the entry is not there to say so.
    """
    asked = dict.fromkeys((judgement.entry, judgement.question, *near))
    said = postgres_journal.said([escape(judgement.entry)])
    numbers, entries, before = yield [LOCK, Say(_ENTRIES, (escaped(asked),)), said]
    pages = Loaded(state_of(numbers))
    pages.load(entries, [], [], [])
    pages.load_said((*judged(before), judgement))
    there = pages.entry(judgement.entry)
    after = judge(judgement, near, pages)
    owner = tenant if there is None else there.tenant
    noted = postgres_journal.note(judgement, "" if owner is None else owner)
    yield [noted, *write(pages.changed), *save(pages.state), COMMIT]
    return after


def _reads(puts: Sequence[Put]) -> list[Say]:
    """Everything that the rules may ask about some puts, but for recalls."""
    own = {escape(put.entry.id) for put in puts}
    parents = {escape(edge.parent) for put in puts for edge in put.lineage.parents}
    chunks = {
        (s.owner or f"tenant:{put.entry.tenant}", s.index, s.chunk)
        for put in puts
        for s in (edge.source for edge in put.lineage.sources)
        if s.index
    }
    columns = [[escape(chunk[part]) for chunk in chunks] for part in range(3)]
    # A batch can take no more children from an entry than it has puts: one more is enough to know.
    return [
        Say(_ENTRIES, (list(own | parents),)),
        Say(_CHILDREN, (list(own | parents), len(puts) + 1)),
        Say(_SOURCES, columns),
        Say(_TAKEN, (list(parents),)),
    ]


def _said(puts: Sequence[Put]) -> Say:
    return postgres_journal.said({escape(put.entry.id) for put in puts})


def _recalls(puts: Sequence[Put]) -> Say:
    """The recalls that may concern some puts: those since their earliest reading."""
    after = min(min((put.since, *put.read_at.values())) for put in puts)
    named = {name for put in puts for name in elements(put)}
    entries = {edge.parent for put in puts for edge in put.lineage.parents}
    entries |= {put.entry.id for put in puts}
    sets = ({p.entry.tenant for p in puts}, {p.entry.model for p in puts}, named, entries)
    return Say(_RECALLS, (after, *map(escaped, sets)))
