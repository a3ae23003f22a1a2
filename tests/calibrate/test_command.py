"""`stemma calibrate LOG`: what it says of a log, good or bad, and the file that it writes."""

import json
import math

import pytest

import stemma
from stemma.policies.verified import VerifiedPolicy
from stemma.replays.calibrating import needed
from stemma.replays.log import LONGEST

FAST = ("--orders", "2")


def test_an_unknown_embedder_is_refused(calibrate, written, asked):
    code, _, err = calibrate(written(asked()), embedder="magic")
    assert (code, "--embedder must be" in err) == (2, True)


def test_a_log_is_put_to_every_setting_and_one_is_recommended(calibrate, written, asked):
    code, out, _ = calibrate(written(asked()), *FAST, "--max-error", "0.05")
    assert code == 0
    for name in ("threshold 0.8 ", "threshold 0.98", "verified-strict 0.02", "verified 0.05"):
        assert name in out
    assert "recommended: " in out
    assert "wanted: 5.00%" in out


def test_the_figures_are_told_as_json(calibrate, written, asked):
    code, out, _ = calibrate(written(asked()), *FAST, "--max-error", "0.05", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["requests"] == 400
    assert told["skipped"] == []
    policies = {one["policy"] for one in told["settings"]}
    assert policies == {"threshold", "verified-strict", "verified"}
    best = next(
        one
        for one in told["settings"]
        if {name: one[name] for name in ("policy", "setting")} == told["recommended"]
    )
    fit = [one for one in told["settings"] if one["error_at_most"] <= 0.05]
    assert best["policy"] == "threshold" or best["setting"] <= 0.05
    assert best["hits"]["high"] >= max(one["hits"]["mean"] for one in fit)
    for one in told["settings"]:
        assert one["error_at_most"] >= one["error_decided"]["mean"]
        assert all(math.isfinite(one[rate]["mean"]) for rate in ("hits", "error_a_hit"))


def test_the_same_seed_gives_the_same_figures(calibrate, written, asked):
    log = written(asked())
    first, again = (calibrate(log, *FAST, "--json")[1] for _ in range(2))
    rows = [json.loads(one)["settings"] for one in (first, again)]
    assert rows[0] == rows[1]


def test_the_file_written_opens_a_cache(calibrate, written, tmp_path, asked):
    target = tmp_path / "policy.json"
    code, out, _ = calibrate(written(asked()), *FAST, "--max-error", "0.05", "--out", target)
    assert code == 0
    assert f"written to {target}" in out
    told = json.loads(target.read_text(encoding="utf-8"))
    assert told["calibrated"]["requests"] == 400
    assert told["calibrated"]["answers"] == 80
    for given in (target, str(target)):
        with stemma.open(policy=given, tenant="me", embedder="hashing") as cache:
            policy = cache.engine.parts.policy
            assert policy.name == told["policy"]


def test_an_error_of_nothing_is_exact_hits_only(calibrate, written, tmp_path, asked):
    target = tmp_path / "policy.json"
    code, out, _ = calibrate(written(asked()[:10]), "--max-error", "0", "--out", target)
    assert (code, "exact hits only" in out) == (0, True)
    with stemma.open(policy=target, tenant="me", embedder="hashing") as cache:
        policy = cache.engine.parts.policy
        assert (type(policy), policy.max_error) == (VerifiedPolicy, 0.0)
        cache.answers.get_or_compute("How do I pay?", lambda: "By card.")
        assert not cache.answers.lookup("how do i pay?").hit


@pytest.mark.parametrize("bound", ["0.51", "1", "-0.1", "nan"])
def test_an_error_out_of_range_is_refused(calibrate, written, bound, asked):
    code, out, err = calibrate(written(asked()), f"--max-error={bound}")
    assert (code, out) == (2, "")
    assert "max_error must be a share from 0 to 0.5" in err


def test_ten_lines_recommend_nothing_and_say_how_many_would(calibrate, written, tmp_path, asked):
    target = tmp_path / "policy.json"
    code, out, _ = calibrate(written(asked()[:10]), *FAST)
    assert code == 0
    assert "recommended: " not in out
    assert (
        f"the log has 10 different requests, and an error of 0.02 needs at least {needed(0.02)}"
        in (out)
    )
    code, _, err = calibrate(written(asked()[:10]), *FAST, "--out", target)
    assert code == 2
    assert "no policy to write: the log has 10" in err
    assert not target.exists()


def test_the_policies_names_are_whole_in_a_narrow_terminal(calibrate, written, asked, monkeypatch):
    log = written(asked()[:10])
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = calibrate(log, *FAST)
    assert "verified-strict" in out
    assert "…" not in out


def test_one_class_recommends_nothing(calibrate, written, asked):
    rows = [{**row, "group": "all"} for row in asked()]
    _, out, _ = calibrate(written(rows), *FAST)
    assert "no recommendation: all requests have the same answer" in out


def test_a_log_in_which_nothing_recurs_recommends_nothing(calibrate, written, asked):
    rows = [{**row, "group": f"{number}"} for number, row in enumerate(asked())]
    _, out, _ = calibrate(written(rows), *FAST)
    assert "no recommendation: only 0 requests ask in other words" in out


def test_how_many_are_needed_grows_with_what_is_wanted():
    assert needed(0.5) == needed(0.05) == 200
    assert 350 < needed(0.01) < 400
    assert needed(0.001) > 3_000


def test_without_answers_it_shows_how_near_requests_are_and_recommends_nothing(
    calibrate, written, tmp_path, asked
):
    log = written([{"text": row["text"]} for row in asked()])
    code, out, _ = calibrate(log)
    assert code == 0
    assert "similarity of 0.9 or more" in out
    assert 'no recommendation: no line has a "group" or an "answer"' in out
    told = json.loads(calibrate(log, "--json")[1])
    assert told["recommended"] is None
    shares = list(told["above"].values())
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.3
    for option in ("--out", "--plot"):
        code, out, err = calibrate(log, option, tmp_path / "x")
        assert (code, out, "nothing was written" in err) == (2, "", True)


def test_lines_that_cannot_be_read_are_named_and_counted(calibrate, written, asked):
    bad = [
        "not json",
        "[1, 2]",
        '{"txt": "How do I pay?"}',
        '{"text": 7, "group": "a"}',
        '{"text": "How do I pay?", "group": ["a"]}',
        '{"text": "How do I pay?"}',
        '{"text": "' + "x" * LONGEST + '", "group": "a"}',
        "",
        "[" * 100_000,
    ]
    log = written([*asked()[:3], *bad, {"text": "How do I pay?", "group": 3}])
    told = json.loads(calibrate(log, *FAST, "--json")[1])
    assert told["requests"] == 4
    assert [one["number"] for one in told["skipped"]] == [4, 5, 6, 7, 8, 9, 10, 12]
    why = [one["why"] for one in told["skipped"]]
    assert why[0] == "not JSON"
    assert why[1] == "not a JSON object"
    assert why[2] == why[3] == 'no "text"'
    assert why[4] == '"group" is not a text'
    assert why[5] == 'neither "group" nor "answer"'
    assert why[6] == "longer than 1,000,000 bytes"
    _, out, _ = calibrate(log, *FAST)
    assert "line 4: not JSON" in out
    assert "left out: 8 lines" in out


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"text,group\nHow do I pay?,pay\n", "line 1: not JSON"),
        (b"\xff\xfe\x00\x01\n", "line 1: not UTF-8"),
        (b"x" * (3 * LONGEST), "longer than"),
    ],
)
def test_what_is_no_log_is_refused(calibrate, tmp_path, content, why):
    log = tmp_path / "log.jsonl"
    log.write_bytes(content)
    code, out, err = calibrate(log)
    assert (code, out) == (2, "")
    assert why in err
    assert "is no log of requests" in err


def test_a_log_that_is_not_there_is_refused(calibrate, tmp_path):
    code, _, err = calibrate(tmp_path / "nowhere.jsonl")
    assert (code, "cannot read" in err) == (2, True)


def test_answers_in_other_words_are_the_same_answer(calibrate, written, asked):
    """Text equality first, then what `SameAnswer` says; the groups are found again by it."""
    ends = ("", ".", "!", " ")
    rows = [
        {
            "text": row["text"],
            "answer": f"Open the page {row['group']} and press the button{ends[number % 4]}",
        }
        for number, row in enumerate(asked())
    ]
    by_answer = json.loads(calibrate(written(rows), *FAST, "--json")[1])
    by_group = json.loads(calibrate(written(asked()), *FAST, "--json")[1])
    assert by_answer["requests"] == 400
    assert by_answer["settings"] == by_group["settings"]


def test_the_last_requests_are_taken(calibrate, written, asked):
    rows = [*asked(), *({"text": f"x {n}", "group": f"{n}"} for n in range(50))]
    told = json.loads(calibrate(written(rows), *FAST, "--limit", "50", "--json")[1])
    assert told["requests"] == 50
    assert told["recommended"] is None


def test_the_trade_off_is_drawn(calibrate, written, tmp_path, asked):
    pytest.importorskip("matplotlib")
    target = tmp_path / "figure.png"
    code, _, _ = calibrate(written(asked()), *FAST, "--plot", target)
    assert code == 0
    assert target.read_bytes().startswith(b"\x89PNG")


def test_where_results_cannot_be_written_nothing_long_is_begun(calibrate, written, tmp_path, asked):
    for option in ("--out", "--plot"):
        code, out, err = calibrate(written(asked()), option, tmp_path / "nowhere" / "file")
        assert (code, out, "there is no folder" in err) == (2, "", True)
