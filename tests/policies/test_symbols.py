"""What the symbols of a text are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.policies.symbols import Symbols, symbols

ANY_TEXT = st.text(st.characters(), max_size=60)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("pay 1,000 now", {"1000"}),
        ("pay 1000 now", {"1000"}),
        ("pay 1000.0 now", {"1000"}),
        ("pay one thousand now", {"1000"}),
        ("pay 1 thousand now", {"1000"}),
        ("pay 1.5 million now", {"1500000"}),
        ("pay ５０ now", {"50"}),
        ("付一千元", {"1000"}),
        ("付三百五十元", {"350"}),
        ("二〇二三年", {"2023"}),
        ("3天", {"3"}),
        ("三天", {"3"}),
        ("两万三千人", {"23000"}),
        ("twenty-five of them", {"25"}),
        ("two hundred and fifty", {"250"}),
        ("five six", {"5", "6"}),
        ("Python 3.8", {"3.8"}),
        ("Python 3.10", {"3.10"}),
        ("version v3.8.1", {"3.8.1"}),
        ("at -5 degrees", {"-5"}),
        ("on 2023-04-18", {"2023", "m4", "18"}),
        ("on April 18th, 2023", {"2023", "m4", "18"}),
        ("on the 18th of April 2023", {"2023", "m4", "18"}),
        ("you may march", set()),
        ("at 4:30 pm", {"t16:30"}),
        ("at 16:30", {"t16:30"}),
        ("at 10AM", {"t10:00"}),
        ("what is 1+1", {"1+1"}),
        ("what is 1 + 1", {"1+1"}),
        ("host 192.168.0.10", {"192.168.0.10"}),
        ("ipv6 and h264", {"6", "264"}),
        ("Leave no one behind", set()),
        ("", set()),
    ],
)
def test_numbers_have_one_form(text, numbers):
    assert symbols(text).numbers == numbers


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 kg", "5 kilograms"),
        ("$5", "5 dollars"),
        ("5 °C", "5 degrees Celsius"),
        ("5 %", "5 percent"),
        ("€10", "10 euros"),
        ("3 hrs", "3 hours"),
    ],
)
def test_units_have_one_form(one, other):
    assert symbols(one).units == symbols(other).units != frozenset()
    assert symbols(one).quantities == symbols(other).quantities


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("it works", 0),
        ("it does not work", 1),
        ("it doesn't work", 1),
        ("it doesn’t work", 1),
        ("it dont work", 1),
        ("without it, never", 2),
        ("I cannot", 1),
        ("不能登录", 1),
        ("没有收到", 1),
        ("能不能登录", 0),
        ("有没有发票", 0),
        ("无线网络", 0),
        ("不同的账户", 0),
    ],
)
def test_negating_words_are_counted(text, count):
    assert symbols(text).negations == count


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Who wrote it?", "who"),
        ("Which author wrote it?", "who"),
        ("When was it?", "when"),
        ("What year was it?", "when"),
        ("In what year was it?", "when"),
        ("Where is it?", "where"),
        ("Why is it so?", "why"),
        ("What is the reason for it?", "why"),
        ("How come it fails?", "why"),
        ("How do I do it?", "how"),
        ("How can I do it?", "how"),
        ("What is the way to do it?", "how"),
        ("What are the steps to do it?", "how"),
        ("I want to know how to do it", "how"),
        ("How many are there?", "many"),
        ("How much is it?", "much"),
        ("What is the price of it?", "much"),
        ("How old is it?", "age"),
        ("What is the age of it?", "age"),
        ("How long does it take?", "degree"),
        ("Is it open?", "polar"),
        ("Can I return it?", "polar"),
        ("Can you tell me what it is?", "what"),
        ("Could you please tell me: did she leave?", "polar"),
        ("Could you please tell me: when did she leave?", "when"),
        ("Could you tell me: more about it?", "what"),
        ("Tell me the capital", "what"),
        ("What is the capital?", "what"),
        ("Cancel my order", "what"),
        ("谁发明的", "who"),
        ("什么时候发货", "when"),
        ("在哪里下载", "where"),
        ("为什么失败", "why"),
        ("如何退款", "how"),
        ("怎么退款", "how"),
        ("多少钱", "much"),
        ("多少个", "many"),
        ("可以退吗", "polar"),
        ("这是什么", "what"),
    ],
)
def test_the_asked_for_kind_is_read(text, kind):
    assert symbols(text).question == kind


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("call `list.append` now", "list.append"),
        ("call list.append() now", "list.append"),
        ("set foo_bar now", "foo_bar"),
        ("read /etc/hosts now", "/etc/hosts"),
        ("write to a.b@example.org now", "a.b@example.org"),
        ('label it "Leave for home"', "leave for home"),
        ("label it 'Leave for home'", "leave for home"),
        ("用《三体》", "三体"),
    ],
)
def test_literals_are_kept_as_written(text, literal):
    assert literal in symbols(text).literals


def test_names_are_capitals_inside_a_sentence():
    assert symbols("Does Paris like Oslo?").names == {"paris", "oslo"}
    assert symbols("Paris is nice. Oslo too.").names == frozenset()
    assert symbols("WHY IS MY CARD NOT WORKING").names == frozenset()
    assert symbols("PyCharm is nice").names == {"pycharm"}
    assert "nasa" in symbols("NASA was founded").names


def test_a_text_is_read_once_and_remembered():
    text = "How do I remember this very text?"
    assert symbols(text) is symbols(text)


def test_a_long_text_is_not_kept():
    text = "word " * 1_000
    assert symbols(text) is not symbols(text)
    assert symbols(text) == symbols(text)


@given(ANY_TEXT)
def test_any_text_has_symbols(text):
    assert isinstance(symbols(text), Symbols)


@pytest.mark.parametrize(
    "text",
    ["\x00", "\ud800", "a" * 100_000, "1" * 100_000, "a/" * 50_000, "'" * 100_000, "一" * 100_000,
     "-" * 100_000, "1," * 50_000, "`" * 100_000, "twenty " * 15_000, "፩", "²thousand", "① thousand"],
    ids=lambda text: f"{text[:2]!a}x{len(text)}",
)  # fmt: skip
def test_odd_texts_have_symbols(text):
    assert isinstance(symbols(text), Symbols)


def test_nothing_of_the_text_is_in_the_repr():
    assert "Secret" not in repr(symbols("Tell Secretname about 'Secretword' in foo_Secret"))
