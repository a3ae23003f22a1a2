"""What may be stored of a model's reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.policies.admission import CUT_OFF, FILTERED, UNFINISHED, refusal


@pytest.mark.parametrize("reason", sorted(CUT_OFF | FILTERED | UNFINISHED))
@pytest.mark.parametrize("form", [str, str.upper, str.title, "FinishReason.{}".format])
def test_a_reply_that_did_not_end_well_is_not_stored(reason, form):
    assert refusal(form(reason), "some text", has_tool_calls=True) is not None


@pytest.mark.parametrize(
    "reason",
    [None, "", "stop", "STOP", "end_turn", "stop_sequence", "tool_calls", "tool_use", "COMPLETE",
     "eos", "completed", "FinishReason.STOP", "FINISH_REASON_STOP", "something_new"],
)  # fmt: skip
def test_a_reply_that_ended_well_is_stored(reason):
    assert refusal(reason, "some text", has_tool_calls=False) is None


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_an_empty_reply_is_stored_only_with_tool_calls(text):
    assert refusal("stop", text, has_tool_calls=False) is not None
    assert refusal("tool_calls", text, has_tool_calls=True) is None


def test_a_declared_refusal_is_not_stored():
    assert refusal("stop", "I cannot help with that", has_tool_calls=False, refused=True)


@pytest.mark.parametrize("text", ["0", "false", "[]", "null"])
def test_a_short_text_is_a_text(text):
    assert refusal("stop", text, has_tool_calls=False) is None


@given(st.none() | st.text(st.characters()), st.text(st.characters()), st.booleans())
def test_any_reply_is_judged(reason, text, calls):
    assert isinstance(refusal(reason, text, calls), str | None)
