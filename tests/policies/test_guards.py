"""What the guards refuse, and what they let pass."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stemma.outcome import REASONS
from stemma.policies import guards
from stemma.policies.guards import GUARDS, guard

HERE = Path(__file__).parent


def pairs(name):
    """The pairs of a file beside this one."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [(row["a"], row["b"]) for row in map(json.loads, lines)]


CONTRASTS = pairs("contrasts.jsonl")
PARAPHRASES = pairs("paraphrases.jsonl")

REFUSED = {
    "guard:number": [
        ("What is new in Python 3.8?", "What is new in Python 3.9?"),
        ("Is 1,000 enough?", "Is 10,000 enough?"),
        ("What is 1+1?", "What is 1-1?"),
        ("Set an alarm for 4:30 pm", "Set an alarm for 4:30 am"),
        ("The first president of France", "The second president of France"),
        ("订单三天内能退款吗？", "订单七天内能退款吗？"),
        ("2023年的销量", "二〇二四年的销量"),
    ],
    "guard:unit": [
        ("How heavy is it in kg?", "How heavy is it in pounds?"),
        ("Is 5 kg too much?", "Is 5 g too much?"),
        ("Is $100 enough?", "Is €100 enough?"),
        ("Is 5 kg of luggage free on this flight?", "Is 5 lb of luggage free on this flight?"),
        ("Interest of 5% over 2 years", "Interest of 2% over 5 years"),
    ],
    "guard:negation": [
        ("Which foods are safe for dogs?", "Which foods are not safe for dogs?"),
        ("Why does it work?", "Why doesn't it work?"),
        ("Running with shoes", "Running without shoes"),
        ("手机支持无线充电吗？", "手机不支持无线充电吗？"),
        ("我收到了包裹", "我没收到包裹"),
    ],
    "guard:antonym": [
        ("How do I enable two-factor login?", "How do I disable two-factor login?"),
        ("Is port 6379 open by default?", "Is port 6379 closed by default?"),
        ("Turn dark mode on", "Turn dark mode off"),
        ("How do I import contacts?", "How do I export contacts?"),
        ("How do I log in?", "How do I log out?"),
        (
            "Please enable automatic nightly backups for our whole production cluster",
            "We should disable the job that saves everything in our production cluster at night",
        ),
        ("Is the deposit refundable?", "Is the deposit non-refundable?"),
        ("What happens before the commit?", "What happens after the commit?"),
        ("怎么开启双重验证？", "怎么关闭双重验证？"),
        ("如何安装这个软件？", "如何卸载这个软件？"),
    ],
    "guard:name": [
        ("How long does shipping to Canada take?", "How long does shipping to Mexico take?"),
        ("How does `list.append` work?", "How does `list.extend` work?"),
        ("Play the song 'Blue Moon'", "Play the song 'Red Moon'"),
        ("How do I sort in C++?", "How do I sort in C#?"),
        ("How do I sort in C?", "How do I sort in C++?"),
        ("What is the tax in the US?", "What is the tax in the UK?"),
        ("add the -v flag", "add the -V flag"),
        ("Open /etc/hosts for me", "Open /etc/hostname for me"),
        (
            "Which cheap family hotels near the old harbour of Oslo allow pets?",
            "I look for an affordable pension beside the harbour in Bergen that takes children",
        ),
    ],
    "guard:question": [
        ("Who founded Apple?", "When was Apple founded?"),
        ("Why do cats purr?", "How do cats purr?"),
        ("How many tickets are left?", "How old are the tickets that are left?"),
        ("谁发明了电话？", "什么时候发明了电话？"),
    ],
    "guard:order": [
        ("Convert Celsius to Fahrenheit", "Convert Fahrenheit to Celsius"),
        ("Is Mercury bigger than Mars?", "Is Mars bigger than Mercury?"),
        ("Which flights go from Paris to Oslo?", "Which flights go from Oslo to Paris?"),
        ("How do I fly to Oslo?", "How do I fly from Oslo?"),
        ("Did Alice pay Bob?", "Did Bob pay Alice?"),
        ("小明比小红高吗？", "小红比小明高吗？"),
        ("从北京到上海的票", "从上海到北京的票"),
    ],
    "guard:word": [
        ("What is the function of a heart?", "What is the function of money?"),
        ("How do I cancel my order?", "How do I cancel my subscription?"),
        ("How do I delete a branch?", "How do I delete a remote branch?"),
        ("Who is the president of France?", "Who was the president of France?"),
        ("怎么修改收货地址？", "怎么修改发票抬头？"),
        ("怎么退款？", "How do I get a refund?"),
        ("Как отменить заказ?", "Как отменить подписку?"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "asked", "stored"),
    [(reason, *pair) for reason, found in REFUSED.items() for pair in found],
)
def test_another_question_is_refused_with_its_reason(reason, asked, stored):
    objection = guard(asked, stored)
    assert objection is not None
    assert objection.reason == reason


@pytest.mark.parametrize("reason", GUARDS)
def test_every_guard_is_needed(reason, monkeypatch):
    """Without it, at least one of its examples would pass."""
    monkeypatch.delitem(guards.GUARDS, reason)
    assert any(guard(*pair) is None for pair in REFUSED[reason])


def test_every_reason_is_a_reason_of_a_miss():
    of_guards = {reason for reason in REASONS if reason.startswith("guard:")}
    assert {*GUARDS, "guard:language"} == of_guards


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("How do I reset my password?", "How can I reset my password?"),
        ("How do I reset my password?", "What is the way to reset my password?"),
        ("What year was the company founded?", "When was the company founded?"),
        ("Which author wrote Emma?", "Who wrote Emma?"),
        ("Is 1,000 dollars enough?", "Is $1000 enough?"),
        ("Can I return it after 30 days?", "Can I return it after thirty days?"),
        ("Is 5 kg allowed?", "Is 5 kilograms allowed?"),
        ("How do I turn on dark mode?", "How do I turn dark mode on?"),
        ("How do I turn on dark mode?", "How can I enable dark mode?"),
        ("Which flights go from Paris to Oslo?", "Which flights go to Oslo from Paris?"),
        ("How do I sort a list in Python?", "In Python, how do I sort a list?"),
        ("How do I sort a list in Python?", "How to sort a Python list?"),
        ("What is the default port of Redis?", "What is Redis's default port?"),
        ("Does the warranty cover water?", "Is water covered by the warranty?"),
        ("The difference between TCP and UDP", "The difference between UDP and TCP"),
        ("How do I change the international plan?", "How do I change the internatoinal plan?"),
        ("What is the tax in the US?", "What is the tax in the United States?"),
        ("Set an alarm for 5pm", "Set an alarm for 17:00"),
        ("WHY IS MY CARD NOT WORKING", "Why is my card not working?"),
        ("怎么重置密码？", "请问如何重置密码？"),
        ("三天内可以退货吗？", "3天内能退货吗？"),
        ("谁发明了电话？", "电话是谁发明的？"),
        ("订单３天内能退款吗", "订单3天内能退款吗？"),
    ],
)
def test_the_same_question_in_other_words_passes(asked, stored):
    assert guard(asked, stored) is None


def test_nearly_all_contrasts_are_refused():
    """Written by hand; the guards know nothing of their meaning, so a few may pass."""
    passed = [pair for pair in CONTRASTS if guard(*pair) is None]
    assert len(CONTRASTS) >= 140
    assert len(passed) <= 4, passed


def test_most_paraphrases_pass():
    refused = [pair for pair in PARAPHRASES if guard(*pair) is not None]
    assert len(PARAPHRASES) >= 110
    assert len(refused) <= 0.12 * len(PARAPHRASES), refused


def test_a_long_text_must_be_equal():
    """A common prefix says nothing about what comes after it."""
    prefix = "a shared instruction " * 600
    objection = guard(prefix + "write a poem", prefix + "drop the users table")
    assert objection is not None
    assert objection.reason == "guard:word"
    assert guard(prefix, prefix) is None


@pytest.mark.parametrize("pair", CONTRASTS)
def test_a_detail_holds_no_word_of_the_texts(pair):
    objection = guard(*pair)
    if objection is None:
        return
    own = {
        "numbers",
        "words",
        "names",
        "units",
        "or",
        "literals",
        "on",
        "one",
        "side",
        "only",
        "two",
        "against",
        "have",
    }
    for text in pair:
        for word in text.replace("?", "").split():
            if len(word) > 4 and word.casefold() not in own:
                assert word not in objection.detail.split()


WORDS = st.lists(
    st.sampled_from(
        [
            "how",
            "do",
            "I",
            "what",
            "when",
            "Paris",
            "Oslo",
            "from",
            "to",
            "not",
            "5",
            "kg",
            "one",
            "two",
            "enable",
            "disable",
            "than",
            "不",
            "北京",
            "三天",
            "到",
            "list.append",
            "'x'",
            "and",
            "by",
            "in",
            ".",
            "?",
            "the",
            "bigger",
        ]
    ),
    max_size=12,
).map(" ".join)
TEXTS = st.one_of(WORDS, st.text(st.characters(), max_size=40))


@given(TEXTS, TEXTS)
@settings(max_examples=400)
def test_guards_are_symmetric(one, other):
    assert guard(one, other) == guard(other, one)


@given(TEXTS)
def test_a_text_never_contradicts_itself(text):
    assert guard(text, text) is None


@given(TEXTS)
def test_a_text_read_again_does_not_contradict_itself(text):
    """Also where the two are not equal as strings: blanks at the end are no difference."""
    assert guard(text, text + "  ") is None


@pytest.mark.parametrize(
    "text", ["\x00", "\ud800\ud801", "", " ", "🎉", "x" * 100_000, "é", "e\u0301"]
)
def test_odd_texts_are_compared(text):
    assert guard(text, text) is None
    assert guard(text, "How do I log in?") == guard("How do I log in?", text)


def test_composed_and_decomposed_letters_are_the_same():
    assert guard("Où est le café ?", "Où est le cafe\u0301 ?") is None


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("Is 1,5 mg safe?", "Is 15 mg safe?"),
        ("Is 0,125 mg safe?", "Is 125 mg safe?"),
        ("Which rows have price > 100?", "Which rows have price < 100?"),
        ("rows where age >= 18", "rows where age <= 18"),
        ("rows where age = 18", "rows where age != 18"),
        ("what does a && b do", "what does a || b do"),
        ("what does a & b do in C", "what does a | b do in C"),
        ("regex for [abc]", "regex for [^abc]"),
        ("what does i++ do", "what does i-- do"),
        ("Must I pay first?", "May I pay first?"),
        ("Should I pay first?", "Must I pay first?"),
        ("What is your refund policy?", "What is my refund policy?"),
        ("How old is his daughter?", "How old is her daughter?"),
        ("Is he allowed to drive?", "Is she allowed to drive?"),
        ("Compare Polish and English", "Compare polish and English"),
    ],
)
def test_small_signs_and_words_tell_questions_apart(asked, stored):
    objection = guard(asked, stored)
    assert objection is not None
    assert objection == guard(stored, asked)


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("Is 1,5 mg safe?", "Is 1.5 mg safe?"),
        ("Is 1,00,000 rupees enough?", "Is 100000 rupees enough?"),
        ("rows where age ≥ 18", "rows where age >= 18"),
        ("Can I pay first?", "May I pay first?"),
        ("What is my refund?", "What is the refund?"),
    ],
)
def test_small_signs_and_words_that_agree_pass(asked, stored):
    assert guard(asked, stored) is None
