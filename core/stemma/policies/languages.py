"""Whether a text is in a language that the guards know: English or Chinese. Pure.

Another script says so by itself. In Latin script it is told by function words: those of other
languages against those of English. A text with none of either ('pip install foo', 'BERLIN weather')
is taken for English, unless it is a whole sentence: English has none without function words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stemma.policies.vocabulary import NEGATIONS, ROLES, STOP, listed

__all__ = ["known"]

_SENTENCE = 7
"""From so many words on, an English text has a function word."""

_SHARE = 0.5
"""Above this share of letters of other scripts a text is in one, and does not merely quote it."""

_KANA = 0.1
"""Above this share of kana among the letters, Chinese characters are Japanese."""

_SHARED = listed("a am an as at do he in me no on so us was we will")
"""English function words that others have as well: they tell nothing beside those."""

_ENGLISH = (
    STOP
    | ROLES
    | NEGATIONS
    | listed(
        "all more most other than only out up down over under again first between both own same "
        "new best good near use using show give make find list tell set"
    )
) - _SHARED

_OTHERS = (
    listed(  # German
        "der das dem den ein eine einen einem einer und oder aber nicht kein keine keinen ist sind "
        "wird werden wurde wurden kann können muss darf mein meine meinen meiner ich du er sie wir "
        "ihr mich mir dich dir sich wie wer wann warum wieso welche welcher welches welchen mit "
        "ohne für von vom zu zum zur im auf aus bei beim nach vor über unter durch gegen zwischen "
        "auch noch schon nur mehr wenn dass als bis gibt geht hat haben hatte"
    )
    | listed(  # French
        "le les un une du et ou mais ne pas est sont était sera peut peux dois doit mon ma mes ton "
        "ta tes ses notre votre vos je il elle nous vous ils elles que qui quoi où quand comment "
        "pourquoi quel quelle quels quelles combien avec sans dans par vers chez aux ce cette ces "
        "cet y a-t-il c'est qu'est-ce"
    )
    | listed(  # Spanish
        "el los las una unos unas y o pero no es son fue era puede puedo debo mi mis tu tus su sus "
        "yo él ella nosotros ellos que qué quién cuándo cómo dónde cuál cuáles cuánto cuántos por "
        "para con sin del al se lo más muy hay está están como cuando donde"
    )
    | listed(  # Portuguese
        "os as um uma e mas não é são foi pode posso meu minha meus minhas seu sua eu ele ela nós "
        "eles quem quando onde qual quais quanto quantos com sem em no na nos nas pelo pela ao à "
        "mais muito há está como para por que dos das da do"
    )
    | listed(  # Italian
        "il lo gli uno una ed ma non è sono era può posso devo mio mia miei tuo tua suo sua io lui "
        "lei noi loro che chi cosa dove come quando perché quale quali quanto quanti senza di da "
        "dal dalla del della dei delle nel nella al alla sul sulla per c'è cos'è"
    )
    | listed(  # Dutch
        "het een en maar niet geen zijn wordt worden kan kun mag moet mijn jouw uw ik jij hij zij "
        "wij jullie wat wie waar wanneer waarom hoe welke hoeveel met zonder voor naar uit bij op "
        "aan om ook nog meer heeft hebben dit deze"
    )
    | listed(  # Danish, Norwegian, Swedish
        "og och men ikke inte ej ingen är er var blir kan må skal ska jag jeg mig min mitt hvad "
        "hva vad hvem vem hvor var hvornår när hvordan hur hvorfor varför med uden utan för til "
        "till från fra på av af ett et en det den som"
    )
    | listed(  # Polish, Czech
        "nie jest są być może mogę mój moja moje jak co kto gdzie kiedy dlaczego który która które "
        "ile czy z ze bez dla od przez przy oraz ale się ne je jsou můj moje jaký kdo kde kdy proč "
        "který bez pro se si a že"
    )
    | listed(  # Turkish, Indonesian, Vietnamese, Romanian, Hungarian, Finnish
        "ve bir bu şu için ile değil mi mı mu mü nasıl ne zaman nerede neden hangi kaç benim yang "
        "dan di ke dari untuk dengan tanpa tidak bukan apa siapa kapan mana bagaimana berapa saya "
        "adalah của và là có không được cho với những làm thế nào ở đâu și nu este sunt cu fără "
        "pentru cum când unde cine care și az és hogy nem van hogyan hol mikor nélkül ja ei on "
        "miten missä milloin miksi kuinka ilman kanssa"
    )
)
_FOREIGN = (
    _OTHERS
    - _ENGLISH
    - _SHARED
    - listed(
        "die van sur plus pour or tu ton son ma mi mu o y e z men al hat "
        "come dove era den dos mag dan"
    )
)
"""Function words of other languages that are no English ones."""

_KANA_LETTERS = re.compile("[\u3040-\u30ff\uff66-\uff9f]")
_HAN_LETTERS = re.compile("[\u3400-\u9fff]")
_LATIN_LETTERS = re.compile("[A-Za-z\u00aa-\u024f\u1e00-\u1eff]")


def known(text: str, words: Iterable[str]) -> bool:
    """Whether the guards know the language of a text; one without words is in none to be unknown.

    Args:
        text: The text.
        words: Its words, case-folded, without names of code, addresses and numbers.
    """
    if not text.isascii():
        if not _known_script(text):
            return False
        if _HAN_LETTERS.search(text):
            return True
    return _english(tuple(words))


def _known_script(text: str) -> bool:
    kana, han, latin = (
        len(letters.findall(text)) for letters in (_KANA_LETTERS, _HAN_LETTERS, _LATIN_LETTERS)
    )
    letters = sum(map(str.isalpha, text))
    return kana <= _KANA * (kana + han) and letters - kana - han - latin <= _SHARE * letters


def _english(words: Sequence[str]) -> bool:
    ours = sum(word in _ENGLISH for word in words)
    theirs = sum(word in _FOREIGN or not word.isascii() for word in words)
    if ours or theirs:
        return ours >= theirs
    return len(words) < _SENTENCE or not _SHARED.isdisjoint(words)
