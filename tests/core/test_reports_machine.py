"""Whatever else is done, in whatever order and by whichever process: no reported pair hits again.

Neither way round.
"""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import stemma

QUESTIONS = tuple(
    start.format(thing)
    for thing in ("order", "subscription")
    for start in ("How do I cancel my {}?", "How can I cancel my {}?", "How do I cancel an {}?")
)
questions = st.sampled_from(QUESTIONS)
answers = st.sampled_from(("Press Cancel.", "Write to us.", "In 30 days."))


class Reports(RuleBasedStateMachine):
    """Two caches over one file, as two processes have them."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.caches = [self.opened(), self.opened()]
        self.hits: list[stemma.Hit] = []
        self.reported: set[tuple[str, str]] = set()

    def opened(self) -> stemma.Cache:
        path = Path(self.place.name) / "cache.db"
        return stemma.open(path, tenant="me", embedder="hashing", threshold=0.5)

    def teardown(self) -> None:
        for cache in self.caches:
            cache.close()
        self.place.cleanup()

    @rule(which=st.integers(0, 1), question=questions, answer=answers, refresh=st.booleans())
    def ask(self, which, question, answer, refresh) -> None:
        cache = self.caches[which]
        if refresh:
            with cache.refresh():
                served = cache.answers.get_or_compute(question, lambda: answer)
        else:
            served = cache.answers.get_or_compute(question, lambda: answer)
        if served.outcome.hit:
            self.hits.append(served.outcome)

    @rule(which=st.integers(0, 1), data=st.data(), as_note=st.booleans())
    def report(self, which, data, as_note) -> None:
        """Of any hit that there ever was."""
        if not self.hits:
            return
        hit = data.draw(st.sampled_from(self.hits))
        own = hit.question == hit.entry.id
        self.caches[which].report(hit.note() if as_note and not own else hit, "wrong_hit", by="ann")
        self.reported.add((hit.question, hit.entry.value if own else hit.entry.id))
        if not own:
            self.reported.add((hit.entry.id, hit.question))

    @rule(which=st.integers(0, 1), data=st.data())
    def vouch(self, which, data) -> None:
        """Somebody says that an entry is right, which ends a quarantine."""
        entries = [one.id for one in self.caches[which].engine.parts.store.find()]
        if entries:
            self.caches[which].report(data.draw(st.sampled_from(entries)), "supported", by="bob")

    @rule(question=questions)
    def take_back(self, question) -> None:
        found = self.caches[0].answers.lookup(question)
        if found.hit:
            self.caches[0].recall(entry=found.entry.id)

    @rule(which=st.integers(0, 1))
    def restart(self, which) -> None:
        self.caches[which].close()
        self.caches[which] = self.opened()

    @invariant()
    def no_reported_pair_hits(self) -> None:
        for cache in self.caches:
            for question in QUESTIONS:
                found = cache.answers.lookup(question)
                if found.hit:
                    self.hits.append(found)
                    served = found.entry.id if found.tier == "semantic" else found.entry.value
                    assert (found.question, served) not in self.reported


Reports.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestReports = Reports.TestCase
