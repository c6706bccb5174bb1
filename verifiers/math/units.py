r"""Units, currencies, magnitudes and counted things that may follow a number.

Only what is listed here may be dropped from an answer (anything else that trails a number makes it unreadable), and
single letters are units only inside `\text{...}`: elsewhere they are variables.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit as a multiple of its dimension's base: `1 km` is `1000` of `length`."""

    dimension: str
    factor: Fraction


def _make() -> dict[str, Unit]:
    rows: list[tuple[str, dict[str, str]]] = [
        ("length", {
            "1": "m meter meters metre metres", "1/100": "cm centimeter centimeters centimetre centimetres",
            "1/1000": "mm millimeter millimeters millimetre millimetres",
            "1/10": "dm decimeter decimeters",
            "1000": "km kilometer kilometers kilometre kilometres",
            "1/1000000": "um micrometer micrometers micron microns",
            "1/1000000000": "nm nanometer nanometers", "127/5000": "in inch inches", "381/1250": "ft foot feet",
            "1143/1250": "yd yard yards", "201168/125": "mi mile miles",
        }),
        ("time", {
            "1": "s sec secs second seconds", "60": "min mins minute minutes", "3600": "h hr hrs hour hours",
            "86400": "day days", "604800": "week weeks wk wks", "1/1000": "ms millisecond milliseconds",
            "1/1000000": "microsecond microseconds", "31557600": "yr yrs year years", "2629800": "month months",
        }),
        ("mass", {
            "1": "g gm gms gram grams gramme grammes", "1000": "kg kgs kilogram kilograms",
            "1/1000": "mg milligram milligrams",
            "1000000": "tonne tonnes", "45359237/100000": "lb lbs pound pounds", "45359237/1600000": "oz ounce ounces",
            "90718474/100": "ton tons",
        }),
        ("volume", {
            "1": "l L liter liters litre litres", "1/1000": "ml mL milliliter milliliters millilitre millilitres cc",
            "473176473/125000000": "gal gallon gallons", "473176473/500000000": "qt quart quarts",
            "473176473/1000000000": "pt pint pints", "473176473/2000000000": "cup cups",
        }),
        ("energy", {"1": "J joule joules", "1000": "kJ kilojoule kilojoules", "4184/1000": "cal calorie calories",
                    "3600000": "kWh"}),
        ("power", {"1": "W watt watts", "1000": "kW kilowatt kilowatts"}),
        ("force", {"1": "N newton newtons", "1000": "kN"}),
        ("pressure", {"1": "Pa pascal pascals", "1000": "kPa", "101325": "atm"}),
        ("frequency", {"1": "Hz hertz", "1000": "kHz", "1000000": "MHz"}),
        ("charge", {"1": "C coulomb coulombs"}),
        ("voltage", {"1": "V volt volts", "1000": "kV"}),
        ("current", {"1": "A amp amps ampere amperes", "1/1000": "mA"}),
        ("resistance", {"1": "ohm ohms"}),
        ("temperature", {"1": "K kelvin kelvins"}),
        ("amount", {"1": "mol mole moles"}),
        ("speed", {"1": "mps", "1397/3125": "mph", "5/18": "kph kmh kmph", "463/900": "knot knots"}),
        ("data", {"1": "bit bits", "8": "byte bytes B", "8000": "kB KB", "8000000": "MB", "8000000000": "GB"}),
        ("angle", {"1": "rad rads radian radians"}),
        ("dollar", {"1": "dollar dollars usd USD buck bucks", "1/100": "cent cents penny pennies",
                    "1/10": "dime dimes", "1/20": "nickel nickels"}),
        ("euro", {"1": "euro euros eur EUR"}),
        ("yuan", {"1": "yuan rmb RMB cny CNY"}),
        ("rupee", {"1": "rupee rupees rs Rs INR"}),
        ("yen", {"1": "yen JPY"}),
        ("area", {"4046.8564224": "acre acres", "10000": "hectare hectares ha"}),
    ]  # fmt: skip
    table: dict[str, Unit] = {}
    for dimension, units in rows:
        for factor, names in units.items():
            for name in names.split():
                table[name] = Unit(dimension, Fraction(factor))
    return table


UNITS = _make()

COUNTED = frozenset(
    """unit units people person persons student students child children boy boys girl girls man men woman women adult
    adults teacher teachers worker workers friend friends player players member members customer customers guest guests
    passenger passengers voter voters employee employees apple apples orange oranges egg eggs banana bananas cookie
    cookies cake cakes pie pies pizza pizzas slice slices candy candies chocolate chocolates muffin muffins cupcake
    cupcakes donut donuts sandwich sandwiches meal meals glass glasses bottle bottles can cans box boxes bag bags packet
    packets pack packs basket baskets bucket buckets jar jars carton cartons book books page pages word words letter
    letters digit digits number numbers integer integers value values term terms solution solutions root roots
    factor factors divisor divisors multiple multiples prime primes pair pairs triple triples way ways case cases
    combination combinations permutation permutations arrangement arrangements possibility possibilities path paths
    route routes point points vertex vertices edge edges face faces side sides diagonal diagonals angle angles triangle
    triangles square squares circle circles rectangle rectangles cube cubes region regions line lines element elements
    subset subsets set sets group groups team teams game games match matches goal goals round rounds card cards coin
    coins marble marbles ball balls stone stones block blocks tile tiles brick bricks piece pieces part parts toy toys
    doll dolls car cars bus buses truck trucks train trains bike bikes bicycle bicycles ticket tickets seat seats row
    rows column columns floor floors room rooms house houses building buildings tree trees flower flowers plant plants
    rose roses dog dogs cat cats chicken chickens cow cows pig pigs rabbit rabbits horse horses sheep bird birds duck
    ducks fish fishes animal animals leg legs head heads foot feet pencil pencils pen pens crayon crayons sticker
    stickers stamp stamps photo photos picture pictures shirt shirts dress dresses shoe shoes hat hats sock socks
    button buttons step steps lap laps trip trips ride rides visit visits call calls message messages email emails
    video videos song songs movie movies episode episodes class classes lesson lessons question questions
    problem problems test tests exam exams mark marks vote votes time times turn turns night nights
    weekend weekends item items object objects thing things share shares bean beans seed seeds bolt bolts
    bead beads ribbon ribbons rope ropes stick sticks rock rocks shell shells gift gifts present presents
    balloon balloons lego legos puzzle puzzles handshake handshakes outcome outcomes event events sequence sequences
    function functions zero zeros zeroes dot dots hop hops jump jumps scores kid kids fruit fruits
    vegetable vegetables potato potatoes tomato tomatoes lemon lemons lime limes pear pears peach peaches grape grapes
    mango mangoes mangos watermelon watermelons sweets loaf loaves biscuits drinks toppings flavors colors colours
    inhabitants residents citizens families pets eagles frogs bees ants spiders snakes fans pupils trucks boats ships
    planes rows bulbs lamps tables chairs desks doors windows plates bowls spoons forks knives towels blankets
    pillows beds books notebooks folders magazines newspapers articles essays""".split()
)

MAGNITUDES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip

CURRENCY = {"$": "dollar", "euro": "euro", "pounds": "sterling", "yen": "yen", "rupee": "rupee", "textdollar": "dollar"}
"""Currency sign (as tokenised) to its unit dimension."""

ORDINALS = frozenset({"st", "nd", "rd", "th"})
PERCENT_WORDS = frozenset({"percent", "percentage", "pct", "percents"})
DEGREE_WORDS = frozenset({"degree", "degrees", "deg", "degs"})
TEMPERATURES = frozenset({"c", "f", "celsius", "fahrenheit", "centigrade"})
"""What may follow a degree sign that is no angle's."""

CLOCK_WORDS = frozenset({"am", "pm", "a.m", "p.m", "a.m.", "p.m.", "AM", "PM"})

POWER_WORDS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cubed": 3, "cu": 3}
_PLURALS = {
    "people": "person", "children": "child", "men": "man", "women": "woman", "vertices": "vertex", "feet": "foot",
    "loaves": "loaf", "knives": "knife", "leaves": "leaf", "halves": "half", "mice": "mouse", "geese": "goose",
}  # fmt: skip
_ANYTHING = frozenset("unit item object thing".split())
_NOT_A_THING = frozenset(
    """is are was be not no or and if when where for wrong right correct incorrect maybe false true than then but nor
    neither except unless hundred thousand million billion trillion dozen percent half halves third thirds quarter
    tenth tenths hundredth hundredths minus plus times over more less at least most about approximately roughly to
    answer answers equals equal""".split()
)


def is_unit_word(word: str) -> bool:
    """Whether this word, written after a number, names a known unit or counted thing."""
    return word in UNITS or word.lower() in UNITS or word.lower() in COUNTED or word.lower() in POWER_WORDS


def is_thing(phrase: str) -> bool:
    """Whether a trailing phrase reads as the name of what was counted (`ducks`, `red marbles`).

    Only references use this: a reference's author named a thing, while a model could write anything there.
    """
    words = phrase.lower().replace("^", " ").split()
    return 0 < len(words) <= 4 and not any(word in _NOT_A_THING for word in words)


def same_thing(reference: str, answer: str) -> bool:
    """Whether two phrases, not both measures, may name one thing: `eggs` and `egg`, `red marbles` and `marbles`.

    `units` and `items` may be anything. An answer may leave out words of the reference; words of its own must be known.
    """
    ours, theirs = _stems(reference), _stems(answer)
    if "?" in reference[:1] and not is_thing(reference[1:]):
        return False
    if theirs <= ours:
        return not measure(reference)
    if answer.startswith("?") or CLOCK_WORDS & (ours | theirs):
        return False
    return bool((ours | theirs) & _ANYTHING) or (ours <= theirs and not measure(answer))


def _stems(phrase: str) -> set[str]:
    """The words of a phrase by their stems, ways to do something under one name."""
    stems = {_stem(word) for word in phrase.lstrip("?").casefold().split()}
    return stems - _WAYS | {"way"} if stems & _WAYS else stems


def _stem(word: str) -> str:
    """What the singular and the plural of a noun share: `cooky` of `cookies`, `box` of `boxes`, `cas` of `cases`."""
    word = re.sub(r"(?<![su])s$", "", _PLURALS.get(word, word))
    return re.sub(r"(?<=[sxzho])e$", "", re.sub(r"ie$", "y", word))


_WAYS = frozenset(map(_stem, "way case combination permutation arrangement possibility choice outcome".split()))


def measure(phrase: str) -> Unit | None:
    """The dimension and factor of a unit phrase such as `cm^2`, `square feet`, `miles per hour`, `km/h`.

    None for counted things (`eggs`) and unknown words: those are compared as words.
    """
    tokens = phrase.replace("/", " per ").replace("^", " ^").split()
    total, sign, pending = Fraction(1), 1, 1
    dims: dict[str, int] = {}
    last: tuple[Unit, int] | None = None
    for token in tokens:
        if token in ("per", "a", "an"):
            sign, last = -1, None
            continue
        power = POWER_WORDS.get(token.lower())
        if power is not None and token.lower() not in ("squared", "cubed"):
            pending = power
            continue
        if power is not None or token.startswith("^"):
            exponent = power or (int(token[1:]) if token[1:].lstrip("-").isdigit() and len(token) < 5 else 0)
            if last is None or exponent == 0:
                return None
            unit, used = last
            total *= unit.factor ** (used * (exponent - 1))
            dims[unit.dimension] += used * (exponent - 1)
            last = None
            continue
        found = UNITS.get(token) or UNITS.get(token.lower())
        if found is None:
            return None
        if found.dimension in ("volume", "area") and pending == 1:
            cubic = 3 if found.dimension == "volume" else 2
            found = Unit("length", found.factor / 1000 if cubic == 3 else found.factor)
            exponent = cubic * sign
            total *= found.factor**sign
        else:
            exponent = pending * sign
            total *= found.factor**exponent
        if found.dimension == "speed":
            dims["length"] = dims.get("length", 0) + exponent
            dims["time"] = dims.get("time", 0) - exponent
        else:
            dims[found.dimension] = dims.get(found.dimension, 0) + exponent
        last, pending = (found, sign), 1
    named = ",".join(f"{name}:{power}" for name, power in sorted(dims.items()) if power)
    return Unit(named, total) if named and pending == 1 else None
