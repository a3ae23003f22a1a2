"""Every part of `python -m evals speed`, at a size that takes no time: its figures agree.

Times are never judged here.
"""

import json
import math

import numpy as np
import pytest
from evals.measuring import Figure, Measured, Skipped, fresh, in_turns, scaled
from evals.speed.given import Given, question, questions
from evals.speed.vectors import clustered, missed
from rich.console import Console

from evals import parts, speed

SMALL = {
    "exact": 0.002,
    "semantic": 0.01,
    "index": 0.042,  # 4,200 entries: they go by bits
    "lookup": 0.002,
    "chroma": 0.01,
    "start": 0.003,
    "put": 0.01,
    "growth": 0.002,
    "throughput": 0.02,
}


@pytest.fixture(scope="module", params=speed.PARTS)
def part(request) -> tuple[str, Measured]:
    return request.param, speed.measured(request.param, size=SMALL[request.param], seed=3)


def test_figures_are_whole_and_can_be_written_down(part):
    _, found = part
    assert found.figures
    for figure in found.figures:
        assert figure.what
        assert math.isfinite(figure.value), figure
    assert json.loads(json.dumps(found.details))


def test_what_was_measured_agrees_with_itself(part):
    """Ratios are quotients, counts are those of the size."""
    name, found = part
    AGREES[name](json.loads(json.dumps(found.details)))


def exact(told):
    us = told["microseconds"]
    assert set(us) == {"ours", "raw", "langchain"}
    assert min(us.values()) > 0
    assert told["entries"] == 200
    assert 800 < told["prompt_bytes"] < 1300
    assert 400 < told["answer_bytes"] < 600
    assert told["times_raw_read"] == pytest.approx(us["ours"] / us["raw"])
    assert told["times_faster_than_langchain"] == pytest.approx(us["langchain"] / us["ours"])
    assert told["events_heard"] >= told["entries"]


def by_meaning(entries, asked, *others):
    def agrees(told):
        us = told["microseconds"]
        assert set(us) == {"hit", "miss", "product", *others}
        assert told["entries"] == entries
        assert told["nearest"] == {"asked": asked, "missed": 0}
        for kind in ("hit", "miss"):
            assert told["times_bare_product"][kind] == pytest.approx(us[kind] / us["product"])
        if others:
            ratio = us["chroma"] / us["hit"]
            assert told["times_faster_than_chroma"] == pytest.approx(ratio)

    return agrees


def index(told):
    us = told["microseconds"]
    kinds = {"exact", "bits", "graph"}
    assert set(us) == {"product", *kinds}
    assert told["entries"] == 4_200
    for kind in kinds:
        assert told["missed"][kind] == {"asked": 200, "missed": 0}
        assert told["times_bare_product"][kind] == pytest.approx(us[kind] / us["product"])
    assert set(told["seconds_to_build"]) == kinds
    assert told["graph"]["seconds_to_load"] > 0
    assert told["graph"]["bytes_an_entry_in_the_file"] > 48


def start(told):
    assert told["entries"] == 300
    assert min(told["seconds"], told["processor_seconds"], told["import_seconds"]) > 0


def put(told):
    assert told["entries"] == 40
    for name in ("normal", "full"):
        us = told[name]["microseconds"]
        assert told[name]["times_bare"] == pytest.approx(us["put"] / us["bare"])


def growth(told):
    assert [level["entries"] for level in told["levels"]] == [20, 40, 200, 2_000]
    for level in told["levels"]:
        assert set(level["microseconds"]) == {"get", "hit", "product", "put"}
        assert level["file_bytes_an_entry"] > 800  # the vector alone is 768


def throughput(told):
    assert told["workers"] == [1, 2, 4]
    assert {*told["stores"], *told["skipped"]} == {
        "memory",
        "sqlite",
        "guarded",
        "two-level",
        "postgresql",
    }
    assert set(told["skipped"]) <= {"postgresql"}
    for rates in told["stores"].values():
        assert len(rates["gets"]) == len(rates["puts"]) == 3
        assert min(*rates["gets"], *rates["puts"]) > 0


AGREES = {
    "exact": exact,
    "semantic": by_meaning(100, 100),
    "index": index,
    "lookup": by_meaning(200, 200),
    "chroma": by_meaning(100, 100, "chroma"),
    "start": start,
    "put": put,
    "growth": growth,
    "throughput": throughput,
}


def test_a_target_is_met_at_its_bound():
    bounds = [
        Figure(what="x", value=1.0, unit="s", at_most=1.0),
        Figure(what="x", value=1.1, unit="s", at_most=1.0),
        Figure(what="x", value=20.0, unit="×", at_least=20),
        Figure(what="x", value=19.9, unit="×", at_least=20),
        Figure(what="x", value=19.9, unit="×"),
    ]
    assert [figure.met for figure in bounds] == [True, False, True, False, None]
    assert [figure.target for figure in bounds[1:]] == [
        "at most 1 s",
        "at least 20 ×",
        "at least 20 ×",
        "",
    ]


@pytest.mark.parametrize(("size", "said"), [(1.0, True), (0.5, False)])
def test_a_missed_target_is_said_at_the_full_size_alone(monkeypatch, size, said):
    slow = Measured(
        figures=[Figure(what="it", value=2, unit="s", at_most=1)], details={"seconds": 2}
    )
    monkeypatch.setattr(parts, "measured", lambda *_, **__: slow)
    out = Console(record=True, quiet=False, width=200)
    told = speed.run(size=size, seed=0, out=out, part="put")
    assert ("missed" in out.export_text()) is said
    assert told["put"]["figures"][0]["met"] is False
    assert told["put"]["measured"] == {"seconds": 2}


def test_a_part_that_lacks_what_it_needs_is_skipped_and_says_so(monkeypatch):
    def lacking(**_):
        raise Skipped("no such texts")

    monkeypatch.setattr("evals.speed.put.run", lacking)
    out = Console(record=True, quiet=False, width=200)
    told = speed.run(size=1.0, seed=0, out=out, part="put")
    assert told["put"]["skipped"] == "no such texts"
    assert told["put"]["figures"] == []
    assert "skipped: no such texts" in out.export_text()


def test_a_nearest_entry_that_was_not_found_is_counted():
    rows = clustered(np.random.default_rng(5), 50)
    asked = {0: rows[0], 1: rows[1], 2: -rows[2]}
    assert missed(rows, asked, lambda _: 1.0) == {"asked": 2, "missed": 0}
    assert missed(rows, asked, lambda number: [1.0, 0.9, 0.0][number])["missed"] == 1
    assert missed(rows, asked, lambda _: None)["missed"] == 2


def test_calls_are_made_in_turns_and_all_of_them():
    made = []
    calls = {name: lambda one, name=name: made.append((name, one)) for name in "ab"}
    times = in_turns(calls, range(5), block=2)
    assert set(times) == {"a", "b"}
    blocks = ["a0 a1 b0 b1", "a2 a3 b2 b3", "a4 b4"]
    measured = [(one[0], int(one[1])) for block in blocks for one in block.split()]
    assert made[4:] == measured
    made.clear()
    in_turns(calls, range(5), block=2, once=True)
    assert sorted(made) == sorted(measured)


def test_the_same_seed_asks_the_same():
    one, same, other = (questions(40, asked=5, seed=seed) for seed in (1, 1, 2))
    assert one.near == same.near
    assert np.array_equal(one.rows, same.rows)
    assert not np.array_equal(one.rows, other.rows)
    assert len({question(number) for number in range(3_000)}) == 3_000
    similarities = one.rows @ Given(one.vectors).embed([one.near[0]])[0]
    assert one.near[0].endswith(one.stored[int(similarities.argmax())])


def test_a_fresh_process_that_fails_says_why():
    with pytest.raises(RuntimeError, match="no_such_function"):
        fresh("evals.speed.start", "no_such_function")
    assert [scaled(1_000, size, least=20) for size in (1, 0.5, 0.001)] == [1_000, 500, 20]
