"""Follow-ups of `python -m evals quality`, a few of them: the figures agree with each other."""

import pytest
from evals.measuring import Skipped
from evals.quality import followups

from stemma import MissingDependency


def test_follow_ups_hit_in_their_own_conversation_alone(tmp_path):
    try:
        found = followups.run(size=0.02, seed=0, folder=tmp_path)
    except (Skipped, MissingDependency) as missing:
        pytest.skip(str(missing))
    asked = found.details["follow-ups"]
    assert found.details["own"] == {"asked": asked, "hits": asked, "equal": asked, "misses": {}}
    assert found.details["reworded"]["hits"] > asked // 2
    for name in ("foreign", "nearest foreign", "alone"):
        told = found.details[name]
        assert told["hits"] == told["equal"]
        assert told["hits"] + sum(told["misses"].values()) == told["asked"]
