"""Both stores against a model that keeps the whole history and looks everything up in it."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stemma.entry import QUARANTINED, Edge, Lineage, SourceEdge
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Judgement, Put
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, source, vector
from stemma.testing.store_holds import quarantine

TENANTS = ("acme", "Acme", "acme ", "a\x00b", "a\x00c")
NAMES = ("a", "b", "c", "d", "e", "f", "\ud800", "%")
DOCUMENTS = ("doc-1", "doc-2")
names, values = st.sampled_from(NAMES), st.sampled_from(("one", "two"))
tenants, documents = st.sampled_from(TENANTS), st.sampled_from(DOCUMENTS)


@dataclass
class Known:
    """An entry as the model knows it."""

    value: str
    tenant: str
    tag: str
    parents: dict[str, str]
    documents: frozenset[str]
    verdict: str = "unknown"

    def came_of(self, other: "Known") -> bool:
        """Whether it came of the same parents and documents."""
        same = (self.parents, self.documents) == (other.parents, other.documents)
        return same and (not self.documents or self.tenant == other.tenant)  # who owns them


@dataclass
class Model:
    """Everything that was ever done."""

    entries: dict[str, Known] = field(default_factory=dict)
    said: dict[tuple[str, str], str] = field(default_factory=dict)
    built: dict[str, Known] = field(default_factory=dict)
    recalls: list[tuple[int, dict[str, str], set[str]]] = field(default_factory=list)
    barred: dict[str, set[str]] = field(default_factory=dict)
    held: dict[str, list[str]] = field(default_factory=dict)
    quarantines: set[str] = field(default_factory=set)

    def holds(self, parts: dict[str, str], name: str, one: Known) -> bool:
        checks = {
            "entry": lambda v: name == v,
            "tenant": lambda v: one.tenant == v,
            "tag": lambda v: one.tag == v,
            "source": lambda v: v in one.documents,
        }
        return all(checks[part](value) for part, value in parts.items())

    def reached(self, parts: dict[str, str], cascade: bool) -> set[str]:
        seeds = {name for name, one in self.entries.items() if self.holds(parts, name, one)}
        if not cascade:
            return seeds
        if set(parts) == {"source"}:
            seeds |= {name for name, one in self.built.items() if parts["source"] in one.documents}
        if set(parts) == {"entry"}:
            seeds.add(parts["entry"])
        grown: set[str] = set()
        while seeds != grown:
            grown = set(seeds)
            seeds |= {name for name, one in self.built.items() if seeds & one.parents.keys()}
        return {name for name in seeds if name in self.entries}

    def outcome(self, name: str, one: Known, since: int, read: dict[str, int]) -> str | None:
        for at, parts, went in self.recalls:
            if any(parent in went and read[parent] < at for parent in one.parents):
                return "recalled"
            late = {document for document in one.documents if read[document] < at}
            others = {k: v for k, v in parts.items() if k not in ("source", "entry")}
            covered = self.holds(others, name, one) and (not others or since < at)
            if "source" in parts:
                covered = covered and parts["source"] in late
            if parts.get("entry") == name:
                covered = covered and since < at
            elif "entry" in parts:
                covered = covered and read.get(parts["entry"], at) < at
                covered = covered and parts["entry"] in one.parents
            if covered:
                return "recalled"
        for parent, value in one.parents.items():
            held = self.entries.get(parent)
            quarantined = self.held.get(parent) or (held and held.verdict in QUARANTINED)
            if held is None or held.value != value or quarantined:
                return "parent_gone"
        return None


class Stores(RuleBasedStateMachine):
    """What is done to one is done to all."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.stores = (MemoryStore(), SqliteStore(Path(self.place.name) / "cache.db"))
        self.model = Model()
        self.moments = [0]

    def teardown(self) -> None:
        for store in self.stores:
            assert store.check() == ()
            store.close()
        self.place.cleanup()

    def both(self, use):
        one, other = (use(store) for store in self.stores)
        assert one == other
        return one

    @rule(
        name=names,
        value=values,
        tenant=tenants,
        tag=st.sampled_from(("red", "blue")),
        parents=st.dictionaries(names, values, max_size=2),
        documents=st.frozensets(documents, max_size=2),
        moments=st.lists(st.integers(0, 3), min_size=5, max_size=5),
        by_meaning=st.booleans(),
    )
    def put(self, *, name, value, tenant, tag, parents, documents, moments, by_meaning) -> None:
        """A put whose lookup and reads were now, or some writes ago."""
        parents = {k: v for k, v in parents.items() if k != name}
        one = Known(value, tenant, tag, parents, documents)
        ago = [self.moments[-min(moment + 1, len(self.moments))] for moment in moments]
        since, read = ago[0], dict(zip((*parents, *sorted(documents)), ago[1:], strict=False))
        lineage = Lineage(
            parents=tuple(Edge(parent=k, value=v) for k, v in parents.items()),
            sources=tuple(
                SourceEdge(source=source(document, document, index=""))
                for document in sorted(documents)
            ),
        )
        put = Put(
            entry=entry(name, value, tenant=tenant, labels=Labels(tags=(tag,))),
            lineage=lineage,
            vector=vector(1, 0) if by_meaning else None,
            since=since,
            read_at=read,
        )
        (stored,) = self.both(lambda store: store.put([put], NOW))
        expected = self.model.outcome(name, one, since, read)
        assert stored.refused == expected
        if expected is None:
            former = self.model.entries.get(name)
            built = self.model.built.get(name)
            if former is None or former.value != value or not one.came_of(built):
                self.model.held.pop(name, None)
            if former is not None and former.value == value:
                one.verdict = former.verdict  # the same answer is as wrong again
                if one.verdict == "suspect":
                    one.verdict = "unknown"
            else:
                one.verdict = self.model.said.get((name, value), "unknown")
            self.model.entries[name] = self.model.built[name] = one
            self.moments.append(stored.entry.sequence)

    @rule(
        parts=st.fixed_dictionaries(
            {},
            optional={
                "entry": names,
                "tenant": tenants,
                "tag": st.just("red"),
                "source": documents,
            },
        ).filter(bool),
        cascade=st.booleans(),
        dry_run=st.booleans(),
    )
    def recall(self, parts, cascade, dry_run) -> None:
        """Or a rehearsal of one."""
        receipt = self.both(
            lambda store: store.recall(Selector(**parts), now=NOW, dry_run=dry_run, cascade=cascade)
        )
        went = self.model.reached(parts, cascade)
        assert {one.entry for one in receipt.entries} == went
        if not dry_run:
            self.model.recalls.append((receipt.sequence, parts, went))
            for name in went:
                del self.model.entries[name]
                self.model.held.pop(name, None)
            self.moments.append(receipt.sequence)

    @rule(name=names, value=values, verdict=st.sampled_from(("hallucinated", "supported")))
    def judge(self, name, value, verdict) -> None:
        """Of the present value, or of another."""
        judgement = Judgement(
            entry=name, value=value, verdict=verdict, by="t", confidence=1.0, at=NOW
        )
        changed = self.both(lambda store: store.judge(judgement))
        self.model.said[name, value] = verdict
        held = self.model.entries.get(name)
        assert (changed is not None) == (held is not None and held.value == value)
        if changed is not None:
            held.verdict = verdict
            if verdict == "supported":
                self.model.held.pop(name, None)

    @rule(named=st.lists(names, max_size=3, unique=True), id=st.sampled_from(("q", "r", "\ud800")))
    def hold(self, named, id) -> None:
        """A quarantine; with an id that there was before, it changes nothing."""
        known = id in self.model.quarantines
        self.model.quarantines.add(id)
        receipt = self.both(lambda store: store.hold(quarantine(id, *named)))
        if not known:
            stored = [name for name in named if name in self.model.entries]
            assert [one.entry for one in receipt.entries] == stored
            for name in stored:
                self.model.held.setdefault(name, []).append(id)
            self.moments.append(receipt.sequence)

    @rule(id=st.sampled_from(("q", "r", "\ud800")))
    def release(self, id) -> None:
        """Of one that there is, that there was, or that there never was."""
        self.both(lambda store: store.release(id, now=NOW))
        for by in self.model.held.values():
            by[:] = [one for one in by if one != id]

    @rule(name=names, value=values, question=names)
    def report(self, name, value, question) -> None:
        """A wrong hit, of an entry that is there with that value, or not."""
        judgement = Judgement(
            entry=name,
            value=value,
            verdict="wrong_hit",
            by="t",
            confidence=1.0,
            at=NOW,
            question=question,
        )
        self.both(lambda store: store.judge(judgement, NAMES[:2]))
        bars = self.model.barred.setdefault(name, set())
        held = self.model.entries.get(name)
        if held is not None and held.value == value and judgement.barred not in bars:
            held.verdict = "hallucinated" if held.verdict == "hallucinated" else "suspect"
        bars.add(judgement.barred)

    @precondition(lambda self: self.model.entries)
    @rule(name=names)
    def remove(self, name) -> None:
        """As a reader does that found it damaged."""
        gone = self.both(lambda store: store.remove([name]))
        self.model.held.pop(name, None)
        assert gone == (self.model.entries.pop(name, None) is not None)

    @invariant()
    def agree(self) -> None:
        """What is given is what was put, under its own id and tenant, and nothing else is."""
        fetched = self.both(lambda store: store.get(NAMES))
        found = {k: (v.value, v.tenant, v.verdict) for k, v in fetched.entries.items()}
        assert found == {k: (v.value, v.tenant, v.verdict) for k, v in self.model.entries.items()}
        for name, one in fetched.entries.items():
            assert one.held == next(iter(self.model.held.get(name, ())), "")
            assert set(one.judged.barred) == self.model.barred.get(name, set())
        for name in NAMES:
            self.both(lambda store, name=name: (store.ancestry(name), store.lineage(name)))
            children = self.both(lambda store, name=name: store.children(name))
            expected = {k for k, v in self.model.entries.items() if name in v.parents}
            assert set(children) == expected
        self.both(lambda store: [(one.id, one.held) for one in store.find()])
        self.both(lambda store: (store.quarantines(), store.shared()))
        for edges in (lambda store: store.descent(NAMES[:2]), lambda store: store.crossed()):
            self.both(lambda store, edges=edges: sorted(edges(store)))
        self.both(lambda store: (store.sizes(), store.judgements(), store.recalls()))
        for after in {0, self.moments[-1], self.moments[len(self.moments) // 2]}:
            self.both(lambda store, after=after: self._told(store.changes(after)))

    @staticmethod
    def _told(changes):
        numbers = [one.tolist() for one in changes.vectors]
        return (
            list(changes.ids),
            list(changes.groups),
            numbers,
            sorted(changes.removed),
            changes.sequence,
        )


Stores.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestStores = Stores.TestCase
