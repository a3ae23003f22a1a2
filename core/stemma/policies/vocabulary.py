# ruff: noqa: PLR2004  (numbers of letters in endings)
"""The English words that the guards know, in small tables, to be read and extended.

Every table is a text with one row a line. Nothing here decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stemma.policies.chinese import ANTONYMS as HAN_ANTONYMS
from stemma.policies.chinese import lines
from stemma.policies.remembering import remembered

__all__ = [
    "AUXILIARIES",
    "DETERMINERS",
    "FILLERS",
    "GENERIC",
    "NEGATIONS",
    "PHRASES",
    "POLARITY",
    "ROLES",
    "STOP",
    "UNITS",
    "UNITS_AFTER_NUMBER",
    "canonical",
    "listed",
    "opposites",
]


def listed(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


DETERMINERS = listed("a an the my your our his her its their this that these those any")
AUXILIARIES = listed(
    "is are was were am be do does did can could will would shall should has have had may might "
    "must isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't "
    "shouldn't hasn't haven't hadn't cannot"
)
STOP = (
    DETERMINERS
    | AUXILIARIES
    | listed(
        "i me we us you he she it they them him myself yourself itself there here and or but if "
        "then so as of to in on at for from by with about into onto than through during within via "
        "per across please kindly hi hello hey thanks thank ok just really very actually usually "
        "normally exactly also quite simply some been being get got getting possible able able's "
        "what which who whom whose when where why how s t re ve ll d m let's vs versus such "
        "one ones someone something anyone too ever even still yet while because whether each "
        "every off meant"
    )
)
FILLERS = listed(
    "need want like find list provide retrieve look looking help explain describe define say "
    "share try trying wonder wondering curious understand learn interested know tell show give "
    "let question answer search fetch see understanding want wanted need trying question "
    "assist assistance information details figure quick wondered"
)
"""Words that only lead up to what is asked; left out until the first word that is not one."""

GENERIC = listed(
    "command function method formula step process procedure exact actual city server way actor "
    "actress singer artist require need allow permit use contain help mean take find go have"
)
"""Words that one side may have more without asking for anything else: 'the git rebase *command*',
'how much vitamin C does an orange *contain*'."""

NEGATIONS = listed(
    "not no never without cannot none nothing nobody neither nor unable impossible dont doesnt "
    "didnt cant wont isnt arent wasnt couldnt shouldnt"
)

ROLES = listed(
    "to from into than before after by over under against of in on at for with via onto about "
    "without not through since until"
)
"""Function words that give the words after them a part to play."""

_IRREGULAR = """
wrote written write | bought buy | sent send | paid pay | made make | gave given give
built build | sold sell | went gone goes go | lost lose | won win | broke broken break
chose chosen choose | ran run | grew grown grow | began begun begin | spoke spoken speak
took taken take | knew known know | drew drawn draw | drove driven drive | held hold | found find
used using uses use | children child | men man | women woman | people person
feet foot | teeth tooth | mice mouse
"""

_SYNONYMS = """
buy purchase
deliver delivery ship shipping shipment
remove delete erase
change update modify alter edit
create make build generate construct
fix resolve solve repair
start begin
stop halt
choose select pick
use utilize employ utilise
enable activate
disable deactivate
large big
largest biggest greatest
smallest tiniest
fast quick
picture photo photograph image
movie film
price cost
maximum max
minimum min
app application
database db
folder directory
repository repo
parameter param
environment env
configuration config configure
documentation docs
javascript js
postgresql postgres
kubernetes k8s
split divide
compute calculate
display show
get obtain acquire retrieve
purpose goal aim objective
amount quantity
author writer write
place location
wifi wi-fi
login signin
logout signout
phone telephone
required require need needed mandatory necessary essential
method way
parcel package
help helpful
reduce decrease
move migrate
specify indicate define determine
allow permit
provide offer supply
contain include comprise
improve enhance
ensure guarantee
execute run
attempt try
specific certain particular
additional extra further
numeric numerical
kind type
issue problem
convert transform
happen occur
live reside
job occupation
verify confirm
often frequently
difficult hard
easy simple
whole entire complete
center centre
grey gray
"""

_ANTONYMS = """
enable allow permit | disable block deny forbid prohibit ban
on | off
open | close closed shut
with | without
increase raise | decrease reduce lower
before | after
import | export
login | logout
start | stop end finish
add insert append create install attach | remove drop detach
install | uninstall
maximum | minimum
first | last
lock | unlock
encrypt encode compress | decrypt decode decompress extract
upload | download
push send | pull receive
show reveal | hide
buy | sell
borrow | lend
deposit | withdraw withdrawal
accept approve | reject decline deny refuse
connect join | disconnect leave split
above over | below under
up | down
in | out
left | right
input | output
ascending | descending
public | private
internal | external
inside | outside
local | remote
online | offline
largest highest longest tallest fastest best most newest oldest | \
smallest lowest shortest slowest worst least
more | less fewer
high higher | low lower
large | small
long | short
fast faster | slow slower
hot warm | cold cool
old older | new newer young younger
early earlier earliest | late later latest
cheap cheaper cheapest | expensive
hard | soft easy
safe | dangerous
true | false
positive | negative
win | lose
gain profit | loss
pass succeed success | fail failure
male man | female woman
husband | wife
father | mother
son | daughter
brother | sister
north northern | south southern
east eastern | west western
gross | net
primary | foreign secondary
billing | shipping
free | paid
adult | child
arrive arrival | depart departure
employer | employee
buyer | seller
client | server
read | write
save | discard
freeze | thaw
expand | collapse
forward | backward
horizontal | vertical
row | column
today | tomorrow yesterday
day | night
morning | evening
weekday | weekend
legal | illegal
fat | thin
full | empty
alive | dead
always | never
begin | end
sync | async
born birth | died death die
rise rising | fall falling
keep | discard
marry | divorce
"""

_PREFIXES = listed("un dis in im ir il non de mis anti a")

_PHRASES = """
united states of america > usa
united states > usa
u s > usa
united kingdom > uk
great britain > uk
new york city > nyc
log in > login
sign in > login
log on > login
log out > logout
log off > logout
sign out > logout
set up > setup
shut down > shutdown
per cent > percent
degrees celsius > celsius
degrees fahrenheit > fahrenheit
degree celsius > celsius
turn on > enable
switch on > enable
turn off > disable
switch off > disable
far away > far
e g >
meant by >
i d like to >
would like to >
want to know >
as well as > and
in order to > to
such as >
for example >
be able to > can
"""

_UNITS = """
kilogram kilograms kilo kilos kgs
pound pounds lbs lb
gram grams
milligram milligrams mg
ounce ounces
tonne tonnes tons
kilometre kilometres kilometer kilometers km
metre metres meter meters
centimetre centimetres centimeter centimeters cm
millimetre millimetres millimeter millimeters mm
mile miles mph
feet ft
inch inches
litre litres liter liters
millilitre millilitres milliliter milliliters ml
gallon gallons
celsius centigrade
fahrenheit
kelvin
percent percentage
usd dollar dollars us$
eur euro euros
gbp sterling
jpy yen
cny rmb yuan renminbi
inr rupee rupees
bitcoin btc
megabyte megabytes mb
gigabyte gigabytes gb
terabyte terabytes tb
kilobyte kilobytes kb
watt watts
kilowatt kilowatts kw
volt volts
calorie calories kcal
joule joules
hectare hectares
acre acres
"""

_UNITS_AFTER_NUMBER = """
kilogram kg
gram g
metre m
litre l
ounce oz
inch in
celsius c
fahrenheit f
kelvin k
second seconds sec secs s
minute minutes mins
hour hours hr hrs h
day days
week weeks
month months
year years
millisecond ms
watt w
volt v
byte bytes
bit bits
cent cents
degree degrees
"""

_VOWEL = re.compile("[aeiouy]")
_IRREGULAR_FORMS: Mapping[str, str] = {
    form: row.split()[-1]
    for line in lines(_IRREGULAR)
    for row in line.split("|")
    for form in row.split()
}


def _stem(word: str) -> str:
    """The word without its plural, -ing, -ed and final -e; British spellings made American."""
    word = _IRREGULAR_FORMS.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if 2 < len(root) < len(word) and _VOWEL.search(root):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    if len(word) > 5 and word.endswith("our"):
        word = word[:-3] + "or"
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-2] + "iz" if len(word) > 5 and word.endswith("is") else word


_SYNONYM_OF: Mapping[str, str] = {
    _stem(word): _stem(line.split()[0]) for line in lines(_SYNONYMS) for word in line.split()
}


@remembered(16_384)
def canonical(word: str) -> str:
    """A case-folded word's stem, or that of its synonym: what makes two words the same one."""
    stem = _stem(word)
    return _SYNONYM_OF.get(stem, stem)


def _polarity() -> dict[str, frozenset[tuple[int, bool]]]:
    sides: dict[str, set[tuple[int, bool]]] = {}
    tables = ((_ANTONYMS, canonical), (HAN_ANTONYMS, str))
    rows = [(line, form) for table, form in tables for line in lines(table)]
    for row, (line, form) in enumerate(rows):
        for side, words in enumerate(line.split("|")):
            for word in words.split():
                sides.setdefault(form(word), set()).add((row, bool(side)))
    return {word: frozenset(found) for word, found in sides.items()}


POLARITY: Mapping[str, frozenset[tuple[int, bool]]] = _polarity()
"""For each canonical word with an opposite: its rows in the table, and on which side it stands."""


def opposites(ours: frozenset[str], theirs: frozenset[str]) -> int:
    """How many of our canonical words have an opposite among theirs.

    Opposite by the table, or by a negating prefix ('refundable' and 'non-refundable').
    """
    if not ours or not theirs:
        return 0
    sides = {side for word in theirs for side in POLARITY.get(word, ())}
    negated = {base for word in theirs for base in _bases(word)}
    return sum(
        word in negated
        or not theirs.isdisjoint(_bases(word))
        or (bool(sides) and any((row, not side) in sides for row, side in POLARITY.get(word, ())))
        for word in ours
    )


@remembered(16_384)
def _bases(word: str) -> tuple[str, ...]:
    """What a word is the negation of, by each of the prefixes that it begins with."""
    return tuple(
        word[len(prefix) :]
        for prefix in _PREFIXES
        if word.startswith(prefix) and len(word) > len(prefix) + 3
    )


def _phrases() -> dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for line in lines(_PHRASES):
        left, right = line.split(">")
        first, *rest = left.split()
        found.setdefault(first, []).append((tuple(rest), tuple(right.split())))
    return {
        first: tuple(sorted(rows, key=lambda row: -len(row[0]))) for first, rows in found.items()
    }


PHRASES = _phrases()
"""By their first word, the word groups that count as one word, longest first."""


def _units(table: str) -> dict[str, str]:
    return {name: line.split()[0] for line in lines(table) for name in line.split()}


UNITS: Mapping[str, str] = _units(_UNITS)
"""Names that are always a unit or currency, and the unit they mean."""

UNITS_AFTER_NUMBER: Mapping[str, str] = _units(_UNITS_AFTER_NUMBER)
"""Names that are a unit only behind a number."""
