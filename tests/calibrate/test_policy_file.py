"""A policy in a file belongs to the embedder and verifier that it was calibrated with."""

import json

import pytest

import stemma
from stemma import UsageError
from stemma.embedders import HashingEmbedder
from stemma.judges import FunctionJudge
from stemma.policies.standing import KNOWN
from stemma.policies.threshold import ThresholdPolicy
from stemma.policies.verified import VerifiedPolicy
from stemma.policies.verifier import shipped
from stemma.policy_file import PolicyFile

EMBEDDER = HashingEmbedder().revision
VERIFIER = VerifiedPolicy(embedder=EMBEDDER).identity["verifier"]
WEIGHTS = dict.fromkeys(KNOWN, 0.5)


def made(**rest) -> PolicyFile:
    given = {
        "policy": "verified",
        "setting": 0.01,
        "embedder": EMBEDDER,
        "verifier": VERIFIER,
        "weights": WEIGHTS,
        "calibrated": {"requests": 7},
    }
    return PolicyFile(**{**given, **rest})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.json"


def opened(path, **rest) -> stemma.Cache:
    return stemma.open(**{"policy": path, "tenant": "me", "embedder": "hashing", **rest})


def test_a_file_comes_back_as_it_was(path):
    made().write(path)
    assert PolicyFile.read(path) == made()


def test_each_tenant_begins_with_the_files_weights(path):
    made().write(path)
    with opened(path) as cache:
        policies = cache.engine.parts.policies
        for tenant in ("me", "other"):
            record = policies.load(tenant, "answer").policy.record()
            assert record["weights"] == WEIGHTS
        assert cache.engine.parts.policy.max_error == 0.01
    assert shipped()["standing"] != WEIGHTS


@pytest.mark.parametrize(
    ("setting", "policy"),
    [(("threshold", 0.93), "threshold"), (("verified-strict", 0.05), "verified-strict")],
)
def test_the_other_policies_come_from_files_too(path, setting, policy):
    made(policy=setting[0], setting=setting[1], verifier="", weights={}).write(path)
    with opened(str(path)) as cache:
        assert cache.engine.parts.policy.name == policy
    if policy == "threshold":
        assert PolicyFile.read(path).made(EMBEDDER) == ThresholdPolicy(0.93)


@pytest.mark.parametrize("policy", ["verified", "threshold"])
@pytest.mark.parametrize("embedder", ["other", None])
def test_an_embedder_swapped_under_it_is_refused(path, tmp_path, policy, embedder):
    made(
        policy=policy,
        embedder="sentence-transformers/another",
        **({} if policy == "verified" else {"verifier": "", "weights": {}}),
    ).write(path)
    store = tmp_path / "cache.db"
    with pytest.raises(UsageError, match="belongs to the embedder and verifier"):
        opened(path, url=store, embedder=None if embedder is None else "hashing")
    assert not store.exists()


def test_another_verifier_is_refused(path):
    made(verifier="features/of-another-version").write(path)
    with pytest.raises(UsageError, match="verifier"):
        opened(path)


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "magic"},
        {"policy": 7},
        {"setting": 0.6},
        {"setting": -0.1},
        {"setting": "0.02"},
        {"setting": True},
        {"embedder": None},
        {"weights": {"constant": 1.0}},
        {"weights": {**WEIGHTS, "constant": "high"}},
        {"weights": {**WEIGHTS, "constant": float("inf")}},
        {"weights": [1.0]},
        {"calibrated": "yesterday"},
        {"stemma policy": 2},
    ],
)
def test_nonsense_in_a_file_is_refused_and_named(path, change):
    made().write(path)
    told = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**told, **change}), encoding="utf-8")
    with pytest.raises(UsageError, match="is no policy file"):
        opened(path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'"text"', b"\xff", b"[" * 100_000, b" " * 2_000_000, b"{}"]
)
def test_what_is_no_policy_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is no policy file"):
        opened(path)


@pytest.mark.parametrize("name", ["embedder", "weights", "policy", "setting", "verifier"])
def test_a_missing_field_is_named(path, name):
    made().write(path)
    told = json.loads(path.read_text(encoding="utf-8"))
    del told[name]
    path.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(UsageError, match=f"has no '{name}'"):
        opened(path)


def test_a_file_that_is_not_there_is_refused(path):
    with pytest.raises(UsageError, match="cannot read"):
        opened(path)


@pytest.mark.parametrize("policy", ["threshold", "verified-strict"])
def test_a_file_that_leaves_nothing_to_a_judge_takes_none(path, tmp_path, policy):
    """Else it would silently never be asked."""
    made(policy=policy, setting=0.5, verifier="", weights={}).write(path)
    judge, store = FunctionJudge(function=lambda *_: 1.0, name="mine"), tmp_path / "cache.db"
    with pytest.raises(UsageError, match="judge goes with"):
        opened(path, url=store, judge=judge)
    assert not store.exists()
    made().write(path)
    with opened(path, judge=judge) as cache:
        assert cache.engine.parts.hearing.trusted


def test_a_bound_does_not_go_with_a_file(path):
    made().write(path)
    for other in ({"max_error": 0.02}, {"threshold": 0.9}):
        with pytest.raises(UsageError):
            opened(path, **other)


def test_it_cannot_be_written_into_nothing(tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        made().write(tmp_path / "nowhere" / "policy.json")
