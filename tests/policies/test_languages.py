"""What is taken for a language that the guards do not know, and what that means for a hit."""

import pytest

from stemma.outcome import REASONS
from stemma.policies.guards import UNGUARDED, guard, guarded
from stemma.policies.symbols import symbols
from stemma.policies.threshold import Candidate, ThresholdPolicy
from stemma.policies.verified import VerifiedPolicy
from stemma.policies.verifier import shipped

KNOWN = [
    "",
    "42",
    "How do I cancel my order?",
    "pip install foo",
    "BERLIN weather",
    "Tom Hanks movies",
    "SELECT * FROM users WHERE id = 5",
    "docker run -it ubuntu bash",
    "A girl dancing on a sandy beach.",
    "Who won the war in Vietnam?",
    "how to make café con leche",
    "Rio de Janeiro hotels",
    "What does привет mean?",
    "What is the Saxon Garden in Polish?",
    "怎么取消订单？",
    "用Python怎么排序？",
]
UNKNOWN = [
    "Wie kündige ich mein Abo?",
    "Was verlangt die Richtlinie von den Mitgliedern?",
    "Zimmer mit Balkon",
    "Comment annuler ma commande ?",
    "Un café sans sucre",
    "¿Cómo cancelo mi pedido?",
    "Cancelar o meu pedido",
    "Come posso annullare il mio ordine?",
    "Hoe kan ik mijn bestelling annuleren?",
    "Jak mogę anulować zamówienie?",
    "Siparişimi nasıl iptal ederim?",
    "Miten voin peruuttaa tilaukseni?",
    "Bagaimana saya membatalkan pesanan?",
    "Как отменить заказ?",
    "كيف ألغي طلبي؟",
    "मैं अपना ऑर्डर कैसे रद्द करूँ?",
    "注文をキャンセルするには？",
    "주문을 취소하려면 어떻게 하나요?",
    "Πώς ακυρώνω την παραγγελία μου;",
    "Nawezaje kufuta oda yangu niliyoweka jana jioni?",
]
OPPOSITE = [
    ("Gibt es das Hotelzimmer mit Frühstück?", "Gibt es das Hotelzimmer ohne Frühstück?"),
    (
        "Kann ich die Bestellung nach dem Versand stornieren und das Geld zurückbekommen?",
        "Kann ich die Bestellung nicht nach dem Versand stornieren und das Geld zurückbekommen?",
    ),
    ("Une chambre avec petit déjeuner", "Une chambre sans petit déjeuner"),
    ("Puis-je payer avec une carte ?", "Puis-je payer sans une carte ?"),
    ("¿Puedo viajar con mi perro?", "¿Puedo viajar sin mi perro?"),
    ("Это безопасно для собак?", "Это не безопасно для собак?"),
    ("номер с завтраком", "номер без завтрака"),
    ("هل هذا آمن للكلاب؟", "هل هذا غير آمن للكلاب؟"),
    ("क्या यह कुत्तों के लिए सुरक्षित है?", "क्या यह कुत्तों के लिए सुरक्षित नहीं है?"),
    ("コーヒーは犬に安全ですか？", "コーヒーは犬に安全ではないですか？"),
]
GERMAN = ("Wie kann ich die Bestellung stornieren?", "wie kann ich die Bestellung stornieren")


@pytest.mark.parametrize("text", KNOWN)
def test_english_and_chinese_are_known_however_short(text):
    assert symbols(text).guarded


@pytest.mark.parametrize("text", UNKNOWN)
def test_another_language_is_unguarded(text):
    assert not symbols(text).guarded


@pytest.mark.parametrize(("asked", "stored"), OPPOSITE)
@pytest.mark.parametrize("similarity", [UNGUARDED, 0.999])
def test_an_opposite_in_an_unknown_language_is_never_served(asked, stored, similarity):
    assert not guarded(asked, stored)
    near = [Candidate("a", stored, similarity)]
    decision = ThresholdPolicy().decide(asked, near)
    assert not decision.accepted
    assert decision.reason in {"guard:word", "guard:name"}
    learning = VerifiedPolicy(0.5, embedder=shipped()["embedder"], seed=1)
    assert not any(learning.decide(asked, near).accepted for _ in range(20))


@pytest.mark.parametrize("similarity", [0.9, UNGUARDED - 1e-9])
def test_the_same_words_need_a_higher_similarity_there(similarity):
    asked, stored = GERMAN
    assert guard(asked, stored) is None
    assert guard(asked, stored, similarity).reason == "guard:language"
    assert guard(stored, asked, similarity).reason == "guard:language"
    near = [Candidate("a", stored, similarity)]
    assert ThresholdPolicy().decide(asked, near).reason == "guard:language"
    learning = VerifiedPolicy(0.5, embedder=shipped()["embedder"], seed=1)
    decision = learning.decide(asked, near)
    assert (decision.accepted, decision.reason) == ((), "guard:language")
    assert decision.reason in REASONS


def test_the_same_words_at_that_similarity_are_served():
    asked, stored = GERMAN
    near = [Candidate("a", stored, UNGUARDED)]
    assert ThresholdPolicy().decide(asked, near).accepted
    learning = VerifiedPolicy(0.5, embedder=shipped()["embedder"], seed=1)
    assert any(learning.decide(asked, near).accepted for _ in range(20))


def test_english_needs_no_more_than_the_threshold():
    near = [Candidate("a", "How do I cancel my order?", 0.9)]
    assert ThresholdPolicy().decide("how can I cancel my order", near).accepted


def test_a_text_in_two_languages_is_compared_as_the_unknown_one():
    assert not guarded("Wie kann ich das stornieren?", "How can I cancel this?")
    assert not guarded("How can I cancel this?", "Wie kann ich das stornieren?")
    assert guarded("How can I cancel this?", "怎么取消？")
