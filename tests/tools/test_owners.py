"""Results of tools are shared between tenants only where the tool's declaration allows it."""

import pytest

from stemma import UsageError
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry, cacheable

POOL = "support"


def terms(topic):
    return f"the terms of {topic}"


def policies(**rest):
    """Without resources, and with one."""
    return [ToolPolicy(ttl=60, **rest), ToolPolicy(reads=["terms:{topic}"], **rest)]


def caching(cache, policy):
    registry = ToolRegistry()
    registry.declare("terms", policy)
    return ToolCaching(cache, registry)


def promoted(cache, do, tools):
    """Why the results that three tenants came to alike are not shared; `None` if they are."""
    heard = []
    cache.listen(lambda event: heard.append(event) if event.kind == "promotion" else None)
    for tenant in ("ann", "bob", "cem"):
        with cache.using(tenant=tenant, pool=POOL):
            do(tools, terms, "gifts")
    (event,) = heard
    return None if event.outcome == "promoted" else event.outcome


@pytest.mark.parametrize("policy", policies())
def test_what_a_tool_gives_a_tenant_is_the_tenants(cache, do, policy):
    assert promoted(cache, do, caching(cache, policy)) == "private_source"


@pytest.mark.parametrize("policy", [*policies(owner="public"), *policies(owner="pool:support")])
def test_a_tool_that_says_so_is_shared(cache, do, policy):
    tools = caching(cache, policy)
    assert promoted(cache, do, tools) is None
    with cache.using(tenant="eve", pool=POOL):
        assert do(tools, terms, "gifts") == terms("gifts")
        assert len(cache.pools.entries(POOL)) == 1


def test_another_pools_tool_is_not(cache, do):
    tools = caching(cache, ToolPolicy(ttl=60, owner="pool:other"))
    assert promoted(cache, do, tools) == "private_source"


@pytest.mark.parametrize("declared", [None, ToolPolicy(ttl=0)])
def test_an_answer_built_on_a_live_call_is_the_tenants(cache, do, declared):
    tools = ToolCaching(cache) if declared is None else caching(cache, declared)
    with cache.using(tenant="ann", pool=POOL), cache.trace():
        do(tools, terms, "gifts")
        made = cache.answers.get_or_compute("May they be returned?", lambda: "No.")
    assert cache.pools.promote(made.stored.entry.id, by="pam").refused == "private_source"


def test_a_write_to_what_everybody_reads_takes_it_back_from_everybody(cache, do):
    registry = ToolRegistry()
    registry.declare("terms", ToolPolicy(reads=["terms:{topic}"], owner="public"))
    registry.declare("change", ToolPolicy(writes=["terms:{topic}"], owner="public"))
    registry.declare("note", ToolPolicy(writes=["terms:{topic}"]))
    tools = ToolCaching(cache, registry)

    def change(topic):
        return topic

    def note(topic):
        return topic

    def kept():
        return cache.stats().of(tenant="ann", node="hop").entries

    def read():
        with cache.using(tenant="ann"):
            do(tools, terms, "gifts")

    read()
    with cache.using(tenant="bob"):
        do(tools, note, "gifts")
        assert kept() == 1  # of bob's own
        do(tools, change, "gifts")
        assert kept() == 0
        read()
        assert kept() == 1
        tools.changed("terms:gifts")
        assert kept() == 0


@pytest.mark.parametrize("owner", ["me", "pool:", "tenant:ann", 3])
def test_an_owner_is_the_public_or_a_pool(owner):
    with pytest.raises(UsageError, match="owner"):
        ToolPolicy(ttl=60, owner=owner)


def test_a_users_result_is_nobody_elses():
    with pytest.raises(UsageError, match="user"):
        cacheable(ttl=60, scope="user", owner="public")
