"""What does not shape an answer is left out, and nothing else; no pattern can hang a call."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma import Cleaning, LeftOut, UsageError
from stemma.policies.cleaning import DETECTED, KEPT, LINE, LONGEST, Sweep
from stemma.policies.patterns import bounded

TICKET = {"ticket": r"\[ref [A-Z]+-\d+\]"}


def cleaned(text: str, *, system: bool = True, **rules) -> str:
    return Sweep(Cleaning(**rules)).text(text, system=system)


def named(text: str, **rules) -> dict[str, int]:
    sweep = Sweep(Cleaning(**rules))
    sweep.text(text, system=True)
    return {one.name: one.count for one in sweep.left_out}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("You help. Today is Monday, 3 March 2026. Be brief.", "today"),
        ("Today's date is March 3rd, 2026", "today"),
        ("The current date is 2026-03-03.", "today"),
        ("Current date: 03.03.2026", "today"),
        ("current date and time: 2026-03-03T10:11:12Z", "today"),
        ("今天是2026年3月3日。你是助手", "today"),
        ("当前日期：2026-03-03", "today"),
        ("The current time is 10:15 pm UTC.", "time"),
        ("当前时间：10:15", "time"),
        ("Timestamp: 1772533000", "timestamp"),
        ("generated at: 2026-03-03 10:11:12.123", "timestamp"),
        ("x-request-id: 7f3a-11", "request_id"),
        ("Use trace_id=4bf92f3577b34da6 in logs", "request_id"),
        ("Session ID: s.17:2", "request_id"),
        ("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "trace_header"),
        ("id: 123e4567-e89b-12d3-a456-426614174000", "uuid"),
        ("[123e4567-e89b-12d3-a456-426614174000]", "uuid"),
    ],
)
def test_what_is_volatile_in_a_system_message_is_detected_on_request(text, rule):
    assert named(text, detect=True) == {rule: 1}
    assert cleaned(text, detect=True) != text
    assert cleaned(text) == text
    assert cleaned(text, detect=True, system=False) == text


@pytest.mark.parametrize(
    "text",
    [
        "Today is a good day to die.",
        "The flight leaves on 2026-03-03 at 10:00.",
        "Answer as of March 2026.",
        "The request id: required in every call",
        "Our customers are on plan 2026.",
        "Trace the origin of id 17.",
        "Explain what 123e4567-e89b-12d3-a456-426614174000 stands for.",
        "Never speak of today.",
        "The time is money.",
    ],
)
def test_what_may_be_content_is_not_detected(text):
    assert cleaned(text, detect=True) == text


def test_the_rest_stays_as_it_is_and_what_goes_is_told():
    sweep = Sweep(Cleaning(patterns=TICKET))
    assert sweep.text("[ref AB-1] What is due?\r\n [ref AB-2]\n") == " What is due?\r\n \n"
    assert sweep.text("nothing here") == "nothing here"
    assert sweep.left_out == (LeftOut(name="ticket", count=2, texts=("[ref AB-1]", "[ref AB-2]")),)


def test_a_question_that_is_nothing_else_keeps_its_words():
    assert cleaned("[ref AB-1]", system=False, patterns=TICKET) == "[ref AB-1]"
    assert cleaned("[ref AB-1]?", system=False, patterns=TICKET) == "[ref AB-1]?"
    assert named("[ref AB-1]", patterns=TICKET) == {"ticket": 1}


def test_overlapping_parts_are_left_out_once_under_the_first():
    rules = Cleaning(
        patterns={"a": r"<one.{0,9}>", "b": r"one two"}, functions={"c": lambda line: [(8, 14)]}
    )
    sweep = Sweep(rules)
    assert sweep.text("x <one two> three y") == "x ree y"
    assert sweep.left_out == (LeftOut(name="a", count=1, texts=("<one two> th",)),)


def test_functions_give_spans_and_one_that_fails_leaves_nothing_out():
    found = Cleaning(functions={"last": lambda line: [(len(line) - 1, len(line))]})
    assert Sweep(found).text("ab\ncd") == "a\nc"
    odd = Cleaning(functions={"odd": lambda line: [(5, 2), (-1, 3), (0, 99)]})
    assert Sweep(odd).text("abc") == "abc"
    broken = Cleaning(functions={"broken": lambda line: 1 / 0})
    with pytest.warns(RuntimeWarning, match="'broken' failed and leaves nothing out: ZeroDiv"):
        assert Sweep(broken).text("abc") == "abc"


def test_values_are_cleaned_inside_and_what_is_no_text_stays():
    sweep = Sweep(Cleaning(detect=True, patterns=TICKET))
    image = b"\x00[ref AB-1]"
    day = "Today is 2026-03-03."
    given = {
        "system": f"Be brief. {day}",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": day}, image, None, 7]},
            {"role": "user", "content": f"[ref AB-1] {day}"},
        ],
        "context": day,
    }
    assert sweep.value(given) == {
        "system": "Be brief. ",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": ""}, image, None, 7]},
            {"role": "user", "content": f" {day}"},
        ],
        "context": day,
    }
    assert sweep.value(day) == ""
    assert Sweep(None).value(given) is given
    assert Sweep(Cleaning()).left_out == ()


def test_much_is_kept_short():
    sweep = Sweep(Cleaning(patterns={"long": r"<[^>]*>"}))
    sweep.text(f"a<{'x' * 900}>\n" * 40)
    (one,) = sweep.left_out
    assert one.count == 40
    assert (len(one.texts), set(map(len, one.texts))) == (KEPT, {LONGEST})


def test_a_line_that_is_too_long_is_left_as_it_is():
    day = "Today is 2026-03-03."
    assert cleaned(f"{day}{'x' * LINE}\n{day}", detect=True) == f"{day}{'x' * LINE}\n"


@pytest.mark.parametrize(
    "pattern",
    [
        "", ".*", ".+", r"[\s\S]*", r"\w+", "x*", "(?:)", r"\S+ ?", "[", "(?P<a", b"bytes", 7, None,
        r"(a+)+b", r"(a|a)*b", r"(\w+\s?)*$", r"((?:a{1,9}){1,9}){1,9}", r"(?=(a+)+)b", r".*x.*x.*y",
        r"(x+x+)+y", r"a?" * 20 + "a" * 20, r"\d+\d+\d+z", r"(?:a|b|ab)*c", "(" * 5000 + ")" * 5000,
    ],
)  # fmt: skip
def test_a_pattern_that_takes_everything_or_for_ever_is_refused(pattern):
    with pytest.raises(UsageError, match="pattern"):
        Cleaning(patterns={"bad": pattern})


@pytest.mark.parametrize(
    "pattern",
    [
        r"[A-Z]{2}-\d+", r"Request-Id\s*:\s*\S+", r"(?:\d{1,3}\.){3}\d{1,3}", r"<ts>[^<]*</ts>",
        r"(?i)today is .*", r"\[.*?\]", r"^ref: .+$", r"(?:ab)+c", re.compile("X-(?:A|B): \\d+", re.IGNORECASE),
        r"https?://\S+", r"(?P<q>['\"])id(?P=q)", r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?",
    ],
)  # fmt: skip
def test_what_people_write_is_taken(pattern):
    assert bounded("fine", pattern).search("nothing of the kind") is None


@pytest.mark.parametrize(
    "rules",
    [
        {"patterns": {"": "x"}}, {"patterns": {7: "x"}}, {"patterns": ["x"]}, {"detect": 1},
        {"patterns": {"today": "x"}}, {"functions": {"f": "x"}}, {"functions": [len]},
        {"patterns": {"a": "x"}, "functions": {"a": len}},
    ],
)  # fmt: skip
def test_a_rule_needs_a_name_of_its_own(rules):
    with pytest.raises(UsageError):
        Cleaning(**rules)


HOSTILE = ("a", "1", " ", "-", "today is ", "current date: ", "1 jan ", "2026-01-01 10:11:", "id: ")


@pytest.mark.parametrize("name", DETECTED)
def test_the_built_in_rules_come_to_an_end_on_hostile_lines(name):
    """A search that backtracks by powers would run into the time limit of all tests."""
    pattern = re.compile(DETECTED[name], re.IGNORECASE)
    for piece in HOSTILE:
        line = piece * (LINE // len(piece))
        assert sum(len(match.group()) for match in pattern.finditer(line)) <= len(line)


@given(st.text(max_size=200))
def test_without_rules_every_text_stays(text):
    assert Sweep(Cleaning()).text(text) == text
    left = Sweep(Cleaning(patterns=TICKET)).text(text)
    assert left == text or "[ref " in text
