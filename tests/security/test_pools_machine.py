"""Tenants, pools, approvals, recalls and reports in any order, against a model of a few dicts."""

import itertools
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

import stemma
from stemma import Hit, PoolPolicy, Source, UsageError, frames

TENANTS = ("ann", "bob", "cem", "dan", "pool:open")
WRITERS = (None, "w", "ann")
MEMBERS = {"ann", "bob", "cem"}
POOLS = {
    "open": PoolPolicy(),
    "pair": PoolPolicy(witnesses=2),
    "closed": PoolPolicy(witnesses=2, members=MEMBERS),
    "ann": PoolPolicy(witnesses=None),
}
QUESTIONS = ("May it be returned?", "May it be exchanged?")
ANSWERS = ("Yes.", "No.")

tenants, questions = st.sampled_from(TENANTS), st.sampled_from(QUESTIONS)
pools, answers = st.sampled_from(sorted(POOLS)), st.sampled_from(ANSWERS)
often = st.sampled_from((True, True, True, False))


@dataclass
class Own:
    """What the model knows of a tenant's own answer."""

    id: str
    value: str
    principal: str
    pool: str
    shareable: bool
    wrong: bool = False


class Pooled(RuleBasedStateMachine):
    """Nobody is served what the rules forbid; and where nothing speaks against it, all agree."""

    url: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        url = ":memory:" if self.url is None else str(Path(self.place.name) / self.url)
        self.cache = stemma.open(url, embedder=None, pools=POOLS)
        self.heard = []
        self.cache.listen(self.heard.append)
        self.own: dict[tuple[str, str], Own] = {}
        self.copies: dict[tuple[str, str], tuple[str, str]] = {}
        self.touched: set[tuple[str, str]] = set()
        self.approved: str | None = None

    def teardown(self) -> None:
        assert self.cache.check() == ()
        assert self.cache.isolation()
        self.cache.close()
        self.place.cleanup()

    # ------------------------------------------------------------------ the model

    def witnesses(self, pool, question, value):
        """The tenants whose answers count, tried out one set after the other."""
        found = [
            (tenant, own)
            for (tenant, asked), own in self.own.items()
            if asked == question
            and (own.pool, own.value, own.wrong) == (pool, value, False)
            and own.shareable
            and (pool != "closed" or tenant in MEMBERS)
        ]
        for size in range(len(found), 0, -1):
            for some in itertools.combinations(found, size):
                if len({own.principal for _, own in some}) == size:
                    return size
        return 0

    def promoted(self):
        """What was promoted just now: the rules must allow it."""
        heard, self.heard[:] = list(self.heard), []
        for event in heard:
            if (event.kind, event.outcome) == ("promotion", "promoted"):
                self.allowed(event)

    def allowed(self, event):
        ((_, question), own) = next(one for one in self.own.items() if one[1].id == event.entry)
        assert not own.wrong
        if event.entry != self.approved:
            least = POOLS[own.pool].witnesses
            assert least is not None
            assert self.witnesses(own.pool, question, own.value) >= least
            assert (own.pool, question) not in self.copies or (
                own.pool,
                question,
            ) in self.touched
        maker = next(tenant for (tenant, _), one in self.own.items() if one is own)
        self.copies[own.pool, question] = (maker, own.value)

    def judge(self, outcome, tenant, question, pool):
        if not isinstance(outcome, Hit):
            return
        entry = outcome.entry
        if entry.pool is None:
            assert entry.tenant == tenant
            return
        assert entry.pool == pool
        assert pool != "closed" or tenant in MEMBERS
        assert self.copies[pool, question] == (entry.tenant, outcome.value)
        own = self.own[entry.tenant, question]
        assert (own.value, own.wrong) == (outcome.value, False)

    # ------------------------------------------------------------------ the rules

    def ask(self, tenant, question, answer, pool, writer, *, public, refresh):
        def compute():
            owner = "public" if public else ""
            read = Source(document=f"terms of {owner}", chunk="c", content="c", owner=owner)
            frames.current().read_sources([(read, "the terms")], frames.marks())
            former = self.own.get((tenant, question))
            if former is not None and former.value != answer:
                # Its copies are served no more, until it should come out as before.
                self.touched |= {(pool, question) for pool in POOLS}
            wrong = former is not None and former.value == answer and former.wrong
            if former is not None and former.value == answer:
                former.principal, former.pool = principal, offered
                former.shareable = public and offered != ""
            else:
                key = self.cache.answers.query(self.cache.answers.asked(question)).key
                self.own[tenant, question] = Own(
                    key.id, answer, principal, offered, public and offered != "", wrong
                )
            return answer

        principal = tenant if writer is None else writer
        offered = pool if (pool != "closed" or tenant in MEMBERS) else ""
        said = {} if writer is None else {"writer": writer}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.cache.using(tenant=tenant, pool=pool, **said):
                if refresh:
                    with self.cache.refresh():
                        return self.cache.answers.get_or_compute(question, compute)
                return self.cache.answers.get_or_compute(question, compute)

    @rule(
        asked=st.tuples(questions, answers, pools),
        callers=st.lists(
            st.tuples(tenants, st.sampled_from(WRITERS), often), min_size=2, max_size=5
        ),
        refresh=st.booleans(),
    )
    def several_ask_the_same(self, asked, callers, refresh):
        question, answer, pool = asked
        for tenant, writer, public in callers:
            self.compute((tenant, question, answer, pool, writer), public, refresh)
            self.those_who_agree_are_heard(question, pool)

    def compute(self, asked, public, refresh):
        tenant, question, _, pool, _ = asked
        served = self.ask(*asked, public=public, refresh=refresh)
        self.promoted()
        self.judge(served.outcome, tenant, question, pool)
        if not served.outcome.hit:
            assert served.stored.entry.pool is None
            assert served.stored.entry.tenant == tenant

    @rule(tenant=tenants, question=questions, pool=pools)
    def look(self, tenant, question, pool):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.cache.using(tenant=tenant, pool=pool):
                self.judge(self.cache.answers.lookup(question), tenant, question, pool)

    def those_who_agree_are_heard(self, question, pool):
        """Where nothing was ever taken back, and nobody differs, enough witnesses make a copy."""
        least, place = POOLS[pool].witnesses, (pool, question)
        offered = {
            own.value
            for (_, asked), own in self.own.items()
            if (asked, own.pool) == (question, pool)
        }
        if least is None or place in self.touched or len(offered) != 1:
            return
        shared = self.witnesses(pool, question, *offered) >= least
        assert not shared or place in self.copies

    @rule(tenant=tenants, question=questions, as_tenant=st.booleans())
    def approve(self, tenant, question, as_tenant):
        own = self.own.get((tenant, question))
        if own is None:
            return
        self.touched.add((own.pool, question))
        if as_tenant:
            with self.cache.using(tenant=tenant):
                refused = self.cache.pools.promote(own.id, by="me").refused
            assert refused == "not_an_operator"
            return
        self.approved = own.id
        promotion = self.cache.pools.promote(own.id, by="pam")
        self.promoted()
        self.approved = None
        assert not promotion or (own.shareable and not own.wrong)

    @rule(tenant=tenants)
    def recall_a_tenant(self, tenant):
        self.cache.recall(tenant=tenant)
        for maker, question in list(self.own):
            if maker == tenant:
                self.touched |= {(pool, question) for pool in POOLS}
                del self.own[maker, question]
        for place, (maker, _) in list(self.copies.items()):
            if maker == tenant:
                del self.copies[place]

    @rule(tenant=tenants, question=questions)
    def report_an_answer(self, tenant, question):
        own = self.own.get((tenant, question))
        if own is not None:
            self.cache.report(own.id, "hallucinated", by="pam")
            own.wrong = True
            self.touched |= {(pool, question) for pool in POOLS}

    @rule(pool=pools, question=questions, as_tenant=st.booleans())
    def revoke(self, pool, question, as_tenant):
        entries = {entry.id: entry for entry in self.cache.pools.entries(pool)}
        with self.cache.using(pool=pool, tenant="ann"):
            ((_, key),) = self.cache.answers.query(self.cache.answers.asked(question)).pools
        if key.id not in entries:
            return
        if as_tenant:
            with self.cache.using(tenant=entries[key.id].tenant), pytest.raises(UsageError):
                self.cache.pools.revoke(key.id, by="me")
            return
        self.cache.pools.revoke(key.id, by="pam")
        self.copies.pop((pool, question), None)
        self.touched.add((pool, question))


class PooledOnDisk(Pooled):
    """The same over SQLite."""

    url = "cache.db"


some = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestInMemory = Pooled.TestCase
TestInMemory.settings = some
TestInSqlite = PooledOnDisk.TestCase
TestInSqlite.settings = settings(some, max_examples=10)
