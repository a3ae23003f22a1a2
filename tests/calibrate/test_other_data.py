"""What is recommended on one half of a stream keeps its promise on the other half."""

import random

import pytest
from evals.measuring import Skipped
from evals.quality.texts import stream
from evals.quality.vectors import vectors

from stemma.embedders import LocalEmbedder
from stemma.errors import EmbedderError, MissingDependency
from stemma.policies.learning import Learns
from stemma.replays.answers import Prepared
from stemma.replays.calibrating import calibrate, policy_file
from stemma.replays.log import Log
from stemma.replays.replay import replay
from stemma.replays.tally import tally

HALF = 700
WANTED = 0.05


@pytest.fixture(scope="module")
def halves():
    try:
        requests = stream("banking77")
        embedder = LocalEmbedder()
        assert embedder.revision
    except (Skipped, EmbedderError, MissingDependency) as error:
        pytest.skip(str(error))
    random.Random(11).shuffle(requests)
    chosen = requests[: 2 * HALF]
    at = vectors((one.text for one in chosen), embedder)
    return chosen[:HALF], chosen[HALF:], at, embedder.revision


@pytest.mark.real
@pytest.mark.timeout(300)
def test_what_is_recommended_on_one_half_holds_on_the_other(halves):
    first, second, at, revision = halves
    given = Prepared(log=Log(lines=[]), requests=first, at=at, skipped=[], embedder=revision)
    found = calibrate(given, max_error=WANTED, number=3)
    assert found.best is not None
    file = policy_file(found, given)
    policy = file.made(revision)
    sparse = file.policy == "verified-strict"
    rates = tally(replay(second, at, policy, sparse=sparse))
    assert rates["error_decided"] <= WANTED
    assert rates["semantic"] > 0.1
    assert isinstance(policy, Learns) or file.policy == "threshold"
