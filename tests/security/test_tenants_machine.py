"""Five tenants who ask the same things, at threshold 0: nobody is ever given another's value."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

import stemma
from stemma import Hit, ThresholdPolicy

TENANTS = ("acme", "Acme", "acme ", "аcme", "pool")
POOLS = ("pool", "acme", "shared")
QUESTIONS = ("Who leads Acme?", "who leads acme", "Where is Acme?", "Why is the sky blue?", "")
MODELS = ("m", "m2")

tenants, questions = st.sampled_from(TENANTS), st.sampled_from(QUESTIONS)
models, pools = st.sampled_from(MODELS), st.sampled_from(POOLS)
nodes = st.sampled_from(("answers", "calls", "retrievals", "reranks", "hops"))


def asked_of(node, cache, question, model):
    """The arguments under which a node is asked; for each of its kinds there is one."""
    caches = {
        "answers": ((question,), {"chain": model}),
        "calls": ((question,), {"model": model, "exact": "system"}),
        "retrievals": ((question,), {"index": model}),
        "reranks": ((question,), {"chunk": "c", "model": model}),
        "hops": ((question or "-",), {"agent": model}),
    }
    return getattr(cache, node), *caches[node]


class Tenants(RuleBasedStateMachine):
    """Every stored value says whose it is; in a pool, also which pool's."""

    url: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        url = ":memory:" if self.url is None else str(Path(self.place.name) / self.url)
        policy = ThresholdPolicy(threshold=0, guards=False)
        self.cache = stemma.open(url, embedder="hashing", policy=policy)
        self.tickets: list = []
        self.hits = 0

    def teardown(self) -> None:
        assert self.cache.check() == ()
        self.cache.close()
        self.place.cleanup()

    def judge(self, outcome, node, tenant, pool=None):
        if not isinstance(outcome, Hit):
            return
        kind, owner = outcome.value[0], outcome.value[1]
        assert kind == node
        assert ("tenant", tenant) == (outcome.value[2], owner) or (
            pool is not None and ("pool", pool) == (outcome.value[2], owner)
        )
        assert outcome.entry.tenant == tenant or outcome.entry.pool == pool is not None

    @rule(node=nodes, tenant=tenants, question=questions, model=models)
    def ask_and_store(self, node, tenant, question, model):
        with self.cache.using(tenant=tenant):
            face, args, named = asked_of(node, self.cache, question, model)
            served = face.get_or_compute(args[0], lambda: [node, tenant, "tenant"], **named)
        self.judge(served.outcome, node, tenant)
        assert served.value == [node, tenant, "tenant"]

    @rule(node=nodes, tenant=tenants, question=questions, model=models, pool=pools)
    def look_in_a_pool_too(self, node, tenant, question, model, pool):
        with self.cache.using(tenant=tenant, pool=pool):
            face, args, named = asked_of(node, self.cache, question, model)
            self.judge(face.lookup(args[0], **named), node, tenant, pool)

    @rule(node=nodes, tenant=tenants, question=questions, model=models)
    def look_and_store_later(self, node, tenant, question, model):
        with self.cache.using(tenant=tenant):
            face, args, named = asked_of(node, self.cache, question, model)
            outcome = face.lookup(args[0], **named)
        self.judge(outcome, node, tenant)
        if not outcome.hit:
            self.tickets.append((face, outcome.ticket, [node, tenant, "tenant"]))

    @rule(other=tenants, last=st.booleans())
    def store_now_as_somebody_else(self, other, last):
        """A ticket stands for the tenant who looked, whoever holds it when it is used."""
        if self.tickets:
            face, ticket, value = self.tickets.pop(-1 if last else 0)
            with self.cache.using(tenant=other):
                face.put(ticket, value)

    @rule(tenant=tenants, text=questions, model=models)
    def embed(self, tenant, text, model):
        number = float(TENANTS.index(tenant))
        with self.cache.using(tenant=tenant):
            served = self.cache.embeddings.get_or_compute(text, lambda: [number, 1.0], model=model)
        assert served.value == [number, 1.0]

    @rule(tenant=tenants, question=questions)
    def answer_from_what_was_read(self, tenant, question):
        """A chain of two, so that recalls have something to follow."""

        def compute():
            self.cache.calls.get_or_compute(
                question, lambda: ["calls", tenant, "tenant"], model="m", exact="system"
            )
            return ["answers", tenant, "tenant"]

        with self.cache.using(tenant=tenant):
            served = self.cache.answers.get_or_compute(question, compute, chain="m")
        assert served.value == ["answers", tenant, "tenant"]

    @rule(tenant=tenants, cascade=st.booleans())
    def take_back(self, tenant, cascade):
        before = self.cache.engine.parts.store.sizes()
        act = self.cache.recall if cascade else self.cache.clear
        gone = act(tenant=tenant)
        assert set(gone.by_tenant) <= {tenant}
        after = self.cache.engine.parts.store.sizes()
        others = {key: count for key, count in before.items() if key[0] != tenant and count}
        assert {key: count for key, count in after.items() if count} == others

    @rule(tenant=tenants, model=models)
    def take_back_by_model(self, tenant, model):
        gone = self.cache.recall(model=model, tenant=tenant)
        assert set(gone.by_tenant) <= {tenant}


class TenantsOnDisk(Tenants):
    """The same over SQLite."""

    url = "cache.db"


often = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestInMemory = Tenants.TestCase
TestInMemory.settings = often
TestInSqlite = TenantsOnDisk.TestCase
TestInSqlite.settings = settings(often, max_examples=15)


@pytest.mark.parametrize("node", ["answers", "calls"])
def test_the_threshold_of_the_machine_lets_everything_through(node):
    """Or it would prove nothing: for one's own tenant any question is answered by any other."""
    policy = ThresholdPolicy(threshold=0, guards=False)
    with stemma.open(embedder="hashing", policy=policy) as cache, cache.using(tenant="a"):
        for question, hit in (("Who leads Acme?", False), ("Why is the sky blue?", True)):
            face, args, named = asked_of(node, cache, question, "m")
            assert face.get_or_compute(args[0], lambda: "x", **named).outcome.hit is hit
