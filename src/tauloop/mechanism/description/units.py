"""Units, dimensions and numbers with a unit: from text such as ``N m s/rad`` and back.

Angle is a separate dimension. It is ignored when two dimensions are compared (torque times angle is
energy). Only angles and angular speeds need an angular unit, so that ``35`` is never 35 rad.

``0.5 mm``, ``0.5mm`` and ``+5e-1 mm`` are the same number. In a file only an exact zero may have no
unit; on the command line a number without a unit is in SI units.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import lru_cache

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.mechanism.suggestions import suggestion

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """Exponents of kg, m, s, rad and K."""

    mass: Fraction = _ZERO
    length: Fraction = _ZERO
    time: Fraction = _ZERO
    angle: Fraction = _ZERO
    temperature: Fraction = _ZERO

    def __mul__(self, other: Dimension) -> Dimension:
        return Dimension(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    def __truediv__(self, other: Dimension) -> Dimension:
        return self * other ** Fraction(-1)

    def __pow__(self, exponent: Fraction | int) -> Dimension:
        return Dimension(**{f.name: getattr(self, f.name) * exponent for f in fields(self)})

    @property
    def _without_angle(self) -> tuple[Fraction, ...]:
        return self.mass, self.length, self.time, self.temperature

    @property
    def is_one(self) -> bool:
        """Whether this is a plain number: no unit, not even rad."""
        return self == ONE

    @property
    def is_angular(self) -> bool:
        """Whether this is an angle or an angular speed, which must be written with a unit."""
        return self in (ANGLE, ANGULAR_SPEED)

    def matches(self, other: Dimension) -> bool:
        """Return whether both dimensions are equal when angles are ignored."""
        return self._without_angle == other._without_angle

    def suits(self, required: Dimension) -> bool:
        """Return whether this dimension is permitted where another is required.

        Angles and plain numbers are not interchangeable.
        """
        if (required.is_angular and self.angle == 0) or (required.is_one and self == ANGLE):
            return False
        return self.matches(required)

    def read(self, text: str, *others: Dimension) -> float:
        """Return a number in SI units from text such as ``0.5 mm``; without a unit it is SI.

        Args:
            text: number with a unit.
            others: further permitted dimensions.

        Raises:
            UnitError: the text is not a number with a unit of these dimensions.
        """
        read = read_quantity(text, self, *others, is_si=True)
        return read.tagged if others else read.value

    @property
    def noun(self) -> str:
        """Noun for a quantity of this dimension, such as "time"."""
        return NOUNS.get(self, "a quantity").partition(" ")[2]

    def __str__(self) -> str:
        return _SI_NAMES.get(self) or _product(self)


def _dimension(mass: int = 0, length: int = 0, time: int = 0, angle: int = 0) -> Dimension:
    return Dimension(
        mass=Fraction(mass), length=Fraction(length), time=Fraction(time), angle=Fraction(angle)
    )


ONE = _dimension()
LENGTH = _dimension(length=1)
ANGLE = _dimension(angle=1)
TIME = _dimension(time=1)
MASS = _dimension(mass=1)
FIRST_MOMENT = _dimension(mass=1, length=1)
INERTIA = _dimension(mass=1, length=2)
FREQUENCY = _dimension(time=-1)
SPEED = _dimension(length=1, time=-1)
ANGULAR_SPEED = _dimension(angle=1, time=-1)
ACCELERATION = _dimension(length=1, time=-2)
ANGULAR_ACCELERATION = _dimension(angle=1, time=-2)
JERK = _dimension(length=1, time=-3)
FORCE = _dimension(mass=1, length=1, time=-2)
TORQUE = FORCE * LENGTH
STIFFNESS = FORCE / LENGTH
ANGULAR_STIFFNESS = TORQUE / ANGLE
COMPLIANCE = LENGTH / FORCE
ANGULAR_COMPLIANCE = ANGLE / TORQUE
DAMPING = FORCE / SPEED
ANGULAR_DAMPING = TORQUE / ANGULAR_SPEED
ANGLE_PER_LENGTH = ANGLE / LENGTH
LENGTH_PER_ANGLE = LENGTH / ANGLE
TEMPERATURE = Dimension(temperature=Fraction(1))
EXPANSION = ONE / TEMPERATURE
PRESSURE = FORCE / LENGTH**2
DENSITY = MASS / LENGTH**3
LINE_DENSITY = MASS / LENGTH
BENDING_STIFFNESS = FORCE * LENGTH**2

#: Dimensions of quantities of a linear and of a rotational degree of freedom.
POSITIONS = (LENGTH, ANGLE)
SPEEDS = (SPEED, ANGULAR_SPEED)
ACCELERATIONS = (ACCELERATION, ANGULAR_ACCELERATION)
FORCES = (FORCE, TORQUE)
INERTIAS = (MASS, INERTIA)
STIFFNESSES = (STIFFNESS, ANGULAR_STIFFNESS)
DAMPINGS = (DAMPING, ANGULAR_DAMPING)
#: Dimensions of the winding losses of a linear and of a rotary motor per squared force.
WINDING_LOSSES = (TORQUE / TIME / FORCE**2, TORQUE / TIME / TORQUE**2)

#: Usual SI unit of a dimension, if it differs from the product of kg, m, s and rad.
_SI_NAMES: dict[Dimension, str] = {
    FORCE: "N",
    TORQUE: "N m",
    STIFFNESS: "N/m",
    ANGULAR_STIFFNESS: "N m/rad",
    COMPLIANCE: "m/N",
    ANGULAR_COMPLIANCE: "rad/N/m",
    DAMPING: "N s/m",
    ANGULAR_DAMPING: "N m s/rad",
    PRESSURE: "Pa",
    BENDING_STIFFNESS: "N m^2",
    WINDING_LOSSES[0]: "W/N^2",
    WINDING_LOSSES[1]: "W/N^2/m^2",
}

#: Noun for a quantity of a dimension in messages.
NOUNS: dict[Dimension, str] = {
    ONE: "a plain number",
    LENGTH: "a length",
    ANGLE: "an angle",
    TIME: "a time",
    FREQUENCY: "a frequency",
    MASS: "a mass",
    FIRST_MOMENT: "a first moment",
    INERTIA: "a moment of inertia",
    SPEED: "a speed",
    ANGULAR_SPEED: "an angular speed",
    ACCELERATION: "an acceleration",
    JERK: "a jerk",
    FORCE: "a force",
    TORQUE: "a torque",
    STIFFNESS: "a stiffness",
    ANGULAR_STIFFNESS: "an angular stiffness",
    COMPLIANCE: "a compliance",
    ANGULAR_COMPLIANCE: "an angular compliance",
    DAMPING: "a viscous coefficient",
    ANGULAR_DAMPING: "a viscous coefficient",
    TEMPERATURE: "a temperature difference",
    EXPANSION: "a coefficient of expansion",
    PRESSURE: "a stress",
    DENSITY: "a density",
    LINE_DENSITY: "a mass per length",
    BENDING_STIFFNESS: "a bending stiffness",
    WINDING_LOSSES[0]: "a winding loss per squared force",
    WINDING_LOSSES[1]: "a winding loss per squared torque",
}


def named(dimension: Dimension) -> str:
    """Return the noun of a dimension with its SI unit, such as ``a length (m)``."""
    unit = str(dimension)
    noun = NOUNS.get(dimension)
    if not noun:
        return f"a quantity in {unit or 'no unit'}"
    return f"{noun} ({unit})" if unit else noun


#: Units in which results are shown, by SI unit: the factor from the SI unit, and the name.
USUAL_UNITS: Mapping[str, tuple[float, str]] = {
    "m": (1e3, "mm"),
    "rad": (180 / math.pi, "deg"),
    "1": (1.0, ""),
    "N/m": (1e-6, "N/um"),
    "m/N": (1e6, "um/N"),
    "Pa": (1e-9, "GPa"),
    "1/K": (1e6, "1e-6/K"),
}
#: Magnitude below which a number with a usual unit is shown as zero, SI.
DISPLAY_ZERO = 1e-12


def usual_unit(unit: str) -> tuple[float, str]:
    """Return the factor and the name of the unit in which a result in an SI unit is shown."""
    return USUAL_UNITS.get(unit, (1.0, unit))


def in_usual_unit(value: float, unit: str) -> tuple[float, str]:
    """Convert a number in SI units to its usual unit; return the number and the unit's name."""
    factor, name = usual_unit(unit)
    return factor * value, name


def with_usual_unit(value: float, unit: str) -> str:
    """Return a number in SI units as text with its usual unit, such as 12.5 mm or 30 deg."""
    number, name = in_usual_unit(0.0 if abs(value) < DISPLAY_ZERO else value, unit)
    return f"{number:.4g} {name}".strip()


def shown(value: float, dimension: Dimension) -> str:
    """Return a number in SI units as text with its unit for a message; angles are in degrees."""
    if dimension == ANGLE:
        return f"{math.degrees(value):.6g} deg"
    return f"{value:.6g} {dimension}".strip()


def _product(dimension: Dimension) -> str:
    """Return a dimension as a product of base units, such as ``kg m^2/s``."""
    exponents = [(f.name, getattr(dimension, f.name)) for f in fields(dimension)]
    symbols = {"mass": "kg", "length": "m", "time": "s", "angle": "rad", "temperature": "K"}

    def power(name: str, exponent: Fraction) -> str:
        return symbols[name] + ("" if exponent == 1 else f"^{exponent}")

    numerator = " ".join(power(name, e) for name, e in exponents if e > 0)
    denominator = "".join(f"/{power(name, -e)}" for name, e in exponents if e < 0)
    return (numerator or ("1" if denominator else "")) + denominator


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit as written in a text. A number with this unit times `scale` is in SI units."""

    text: str
    scale: float
    dimension: Dimension


class UnitError(ValueError):
    """Error of a unit, with what is wrong and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        """Store what is wrong and the remedy."""
        super().__init__(what)
        self.what, self.remedy = what, remedy


_PREFIXES = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "c": 1e-2,
    "d": 1e-1,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
}
#: Symbols of units: scale to SI, dimension, and the permitted prefixes.
_SYMBOLS: dict[str, tuple[float, Dimension, str]] = {
    "m": (1.0, LENGTH, "kdcmun"),
    "g": (1e-3, MASS, "km"),
    "t": (1e3, MASS, ""),
    "s": (1.0, TIME, "mun"),
    "min": (60.0, TIME, ""),
    "h": (3600.0, TIME, ""),
    "rad": (1.0, ANGLE, "mu"),
    "deg": (math.pi / 180, ANGLE, ""),
    "Hz": (1.0, FREQUENCY, "k"),
    "rpm": (2 * math.pi / 60, ANGULAR_SPEED, ""),
    "N": (1.0, FORCE, "mkM"),
    "Pa": (1.0, PRESSURE, "kMG"),
    "bar": (1e5, PRESSURE, ""),
    "J": (1.0, TORQUE, "k"),
    "W": (1.0, TORQUE / TIME, "k"),
    "K": (1.0, TEMPERATURE, ""),
}
#: All units of files: scale to SI, and dimension.
UNITS: dict[str, tuple[float, Dimension]] = {
    prefix + symbol: (_PREFIXES[prefix] * scale, dimension)
    for symbol, (scale, dimension, prefixes) in _SYMBOLS.items()
    for prefix in ("", *prefixes)
}

#: Units, each with common other spellings.
_SPELLINGS = {
    "N m": "Nm",
    "N mm": "Nmm",
    "kg m": "kgm",
    "deg": "degree degrees",
    "rad": "radian radians",
    "m": "meter meter meters meters",
    "s": "sec second seconds",
    "N": "newton",
    "t": "tonne tonnes",
    "g": "gram grams",
    "kg": "kilogram kilograms",
    "mm": "millimeter millimeters millimetre millimetres",
    "um": "micron microns",
}
#: Quantities, each with the names of equivalent units that machine files do not support.
_EQUIVALENTS = {
    "25.4 mm": "in inch inches",
    "0.3048 m": "ft foot feet",
    "25.4 um": "mil mils thou",
    "0.45359237 kg": "lb lbs lbm pound pounds",
    "28.349523125 g": "oz ounce ounces",
    "14.593903 kg": "slug slugs",
    "4.4482216152605 N": "lbf",
    "0.27801385095378 N": "ozf",
    "9.80665 N": "kgf kp",
    "6.894757293168 kPa": "psi",
    "745.69987158227 W": "hp",
    "360 deg": "rev revs revolution revolutions turn turns",
}
_EQUIVALENT_OF_UNIT = {
    word: quantity for quantity, words in _EQUIVALENTS.items() for word in words.split()
}
_UNIT_OF_SPELLING = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}

#: Maximum number of characters of a unit.
MAX_UNIT = 100
_UNIT_FACTOR = re.compile(
    r"\s*(?:(?P<slash>/)\s*)?(?P<name>[A-Za-z]+|1)(?:\^(?P<exponent>-?\d{1,2}))?"
)


@lru_cache(maxsize=1024)
def parse_unit(text: str) -> Unit:
    """Return the unit of a text: factors, powers with ``^``, and ``/`` before each divisor.

    Raises:
        UnitError: a name is unknown, or the text is ambiguous (``N m/rad s``).
    """
    scale, dimension = 1.0, ONE
    position, has_divided = 0, False
    text = text.strip()
    if not text:
        raise UnitError("the unit is missing", "write a unit, such as mm")
    if len(text) > MAX_UNIT:
        raise UnitError(f"the unit has {len(text)} characters", f"write at most {MAX_UNIT}")
    while position < len(text):
        match = _UNIT_FACTOR.match(text, position)
        if match is None or (match["name"] == "1" and (position or match["exponent"])):
            raise UnitError(
                f"{text!r} is not a unit", "write factors such as kg m^2/s^2 or N m s/rad"
            )
        is_divisor = match["slash"] is not None
        if has_divided and not is_divisor:
            raise UnitError(
                f"the unit {text!r} is ambiguous: is {match['name']} a factor or a divisor?",
                "write all factors first, then each divisor with its own /, as in N m/rad/s",
            )
        if position and not is_divisor and not text[position].isspace():
            raise UnitError(
                f"{text!r} is not a unit", "write a space between factors, as in kg m^2"
            )
        factor, factor_dimension = _factor(match["name"])
        exponent = int(match["exponent"] or 1) * (-1 if is_divisor else 1)
        if abs(exponent) > 12:
            raise UnitError(f"{text!r} has an exponent above 12", "write a smaller power")
        scale *= factor**exponent
        dimension *= factor_dimension**exponent
        has_divided = has_divided or is_divisor
        position = match.end()
    return Unit(text=" ".join(text.split()), scale=scale, dimension=dimension)


def si_unit(text: str) -> str:
    """Return the SI unit for a unit as written in a file; "1" if it is empty or unknown."""
    try:
        return (str(parse_unit(text).dimension) if text.strip() else "") or "1"
    except UnitError:
        return "1"


def _factor(name: str) -> tuple[float, Dimension]:
    """Return the scale to SI and the dimension of a unit name."""
    if name == "1":
        return 1.0, ONE
    if name in UNITS:
        return UNITS[name]
    what = f"unknown unit {name!r}"
    if name in _UNIT_OF_SPELLING:
        raise UnitError(what, f"did you mean {_UNIT_OF_SPELLING[name]}?")
    if name in _EQUIVALENT_OF_UNIT:
        quantity = _EQUIVALENT_OF_UNIT[name]
        raise UnitError(what, f"write {quantity} for 1 {name}, and 3 * {quantity} for 3 {name}")
    known = f"known units are {', '.join(UNITS)}"
    raise UnitError(what, suggestion(name, UNITS) or known)


#: Longest text of one value.
MAX_CHARACTERS = 1000
NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
LITERAL = re.compile(
    # the unit must not start with a digit directly after the number: 21/s is not 2 1/s
    rf"(?P<number>[+-]?\s*{NUMBER})(?:\s*(?P<unit>[A-Za-z][A-Za-z0-9^/\s-]*|(?<=\s)1/[A-Za-z0-9^/\s-]+))?",
    re.ASCII,
)


_BEGINNING = re.compile(rf"[+-]?\s*{NUMBER}", re.ASCII)


NOT_FINITE = re.compile(r"[+-]?\.?(inf|infinity|nan)(\s+[A-Za-z1][^()]*)?", re.IGNORECASE)


class UnitFloat(float):
    """A number in SI units with the dimension of the unit with which it was written.

    Values given by name are read before their parameters, and thus their dimensions, are known.
    `require_unit` compares the dimensions later.

    Attributes:
        dimension: dimension of the unit.
    """

    __slots__ = ("dimension",)
    dimension: Dimension

    def __new__(cls, value: float, dimension: Dimension) -> UnitFloat:
        """Store the number and the dimension."""
        instance = super().__new__(cls, value)
        instance.dimension = dimension
        return instance

    def __reduce__(self) -> tuple[type, tuple[float, Dimension]]:
        """Return the constructor and its arguments, so that copies keep the dimension."""
        return UnitFloat, (float(self), self.dimension)


def require_unit(where: str, value: float, unit: str) -> None:
    """Raise an error if a number was written with a unit of another dimension.

    Args:
        where: name of the value, for the message.
        value: the number, in SI units.
        unit: SI unit that it should have.

    Raises:
        InputError: the dimensions differ.
    """
    required = parse_unit(unit or "1").dimension
    if isinstance(value, UnitFloat) and not value.dimension.suits(required):
        error = misfit(shown(float(value), value.dimension), value.dimension, (required,), value)
        raise InputError.of(where, error.what, error.remedy)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number with its unit as written."""

    number: float
    unit: str
    scale: float
    dimension: Dimension

    @property
    def value(self) -> float:
        """The number in SI units."""
        return self.number * self.scale

    @property
    def tagged(self) -> float:
        """The number in SI units, with its dimension if it was written with a unit."""
        return UnitFloat(self.value, self.dimension) if self.unit else self.value


@lru_cache(maxsize=1024)
def literal(text: str, wanted: str = "one such as 0.5 mm") -> Literal:
    """Return a number with any unit, or a plain number.

    Args:
        text: text of the number.
        wanted: permitted forms, for the message.

    Raises:
        UnitError: the text is not a number, its unit is unknown, or the number is not finite.
    """
    text = text.strip()
    if NOT_FINITE.fullmatch(text):
        raise UnitError(
            f"{text} is not a finite number", "write a finite value, or leave the key out"
        )
    if len(text) > MAX_CHARACTERS:
        what = f"the value has {len(text)} characters, more than {MAX_CHARACTERS}"
        raise UnitError(what, "round the number, or split the expression into named parameters")
    match, beginning = LITERAL.fullmatch(text), _BEGINNING.match(text)
    if match is None and beginning is not None:
        parse_unit(text[beginning.end() :])  # raises a more specific error
    if match is None:
        raise UnitError(f"{text!r} is not a number with a unit", f"write {wanted}")
    number = float("".join(match["number"].split()))
    if match["unit"] is None:
        read = Literal(number, "", 1.0, ONE)
    else:
        unit = parse_unit(match["unit"])
        read = Literal(number, unit.text, unit.scale, unit.dimension)
    if not math.isfinite(read.value):
        raise UnitError(f"the number {match['number']} is too large", "check its exponent")
    return read


def _permitted_text(dimensions: Sequence[Dimension]) -> str:
    return " or ".join(named(dimension) for dimension in dimensions)


def misfit(
    written: str, dimension: Dimension, permitted: Sequence[Dimension], number: float | None
) -> UnitError:
    """Return the error for a text whose dimension is not permitted.

    Args:
        written: the text, for the message.
        dimension: dimension of the text.
        permitted: permitted dimensions.
        number: the number if the text is a literal; None for an expression.
    """
    permitted_text = _permitted_text(permitted)
    if dimension.is_one:
        remedy = (
            f"write the unit, such as {number:g} {_unit(permitted)}"
            if number is not None
            else "give units to its parameters"
        )
        return UnitError(f"{written} has no unit where {permitted_text} is needed", remedy)
    if any(other.is_angular and dimension.matches(other) for other in permitted):
        what = f"{written} has no angular unit where {permitted_text} is needed"
        return UnitError(
            what, "write rad, deg or rpm; Hz and 1/s could mean revolutions or radians"
        )
    what = f"{written} is {named(dimension)} where {permitted_text} is needed"
    return UnitError(
        what, "check the unit" if number is not None else "check the unit or the expression"
    )


def _unit(dimensions: Sequence[Dimension]) -> str:
    return "deg" if dimensions[0] == ANGLE else str(dimensions[0])


def read_quantity(text: str, *permitted: Dimension, is_si: bool = False) -> Literal:
    """Return a number with a unit of one of the permitted dimensions.

    Args:
        text: text of the number.
        permitted: permitted dimensions.
        is_si: whether a number without a unit has the SI unit of the first dimension. Otherwise
            only zero may have no unit.

    Raises:
        UnitError: the text is not a number of these dimensions.
    """
    number = literal(text, f"{_permitted_text(permitted)}, such as 0.5 {_unit(permitted)}".rstrip())
    for dimension in permitted:
        if number.dimension.suits(dimension):
            return replace(number, dimension=dimension)
    if not number.unit and (is_si or number.number == 0.0):
        return replace(number, dimension=permitted[0])
    raise misfit(repr(text.strip()), number.dimension, permitted, number.number)


def quantity(where: str, text: str, *permitted: Dimension) -> float:
    """Return a number in SI units from text such as ``1 kHz``; without a unit it is SI.

    Args:
        where: name of the option or argument, for the message.
        text: number with a unit.
        permitted: permitted dimensions; a number without a unit has the first one.

    Raises:
        InputError: the text is not a number, or its unit is unknown or has another dimension.
    """
    try:
        number = read_quantity(text, *permitted, is_si=True)
    except UnitError as error:
        raise InputError.of(where, error.what, error.remedy) from None
    return number.tagged if len(permitted) > 1 else number.value


def quantity_reader(where: str, *wanted: Dimension) -> Callable[[str], float]:
    """Return a converter from text (see `quantity`) or SI number, for an options field."""

    def read(text: str | float) -> float:
        return quantity(where, text if isinstance(text, str) else f"{text:.17g}", *wanted)

    return read


def quantities_reader(where: str, *wanted: Dimension) -> Callable[[str], tuple[float, ...]]:
    """Return a converter from comma-separated quantities, for an options field."""
    return lambda text: tuple(
        quantity(where, item, *wanted) for item in text.split(",") if item.strip()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Lower and upper bound of a range in SI units, and their dimension.

    An open bound is infinite. A bound that was written with a unit is a `UnitFloat`.
    """

    lower: float
    upper: float
    dimension: Dimension


def interval(text: str, separator: str, *permitted: Dimension, is_si: bool = False) -> Interval:
    """Return the range of a text such as ``1.2 m:1.3 m`` or ``:5 deg``.

    A unit after only the second end, as in ``200:230 mm``, applies to both.

    Args:
        text: text of the range.
        separator: text between the ends.
        permitted: permitted dimensions; both ends have the same one.
        is_si: whether a number without a unit is in SI units.

    Raises:
        UnitError: the separator or both ends are missing, an end is not a quantity, or the ends
            have different dimensions or the wrong order.
    """
    lower_text, mark, upper_text = (piece.strip() for piece in f" {text} ".partition(separator))
    form = f"LOW{separator}HIGH"
    if not mark or not (lower_text or upper_text):
        raise UnitError(
            f"{text.strip()!r} is not {form}", f"write {form}, such as 1 mm{separator}2 mm"
        )
    upper = read_quantity(upper_text, *permitted, is_si=is_si) if upper_text else None
    if lower_text and upper is not None and upper.unit and not literal(lower_text).unit:
        lower_text = f"{lower_text} {upper.unit}"
    lower = read_quantity(lower_text, *permitted, is_si=is_si) if lower_text else None
    ends = [end for end in (lower, upper) if end is not None]
    if len({end.dimension for end in ends if end.number or end.unit}) > 1:
        raise UnitError(f"the ends of {text.strip()!r} have different dimensions", "correct a unit")
    dimension = next((end.dimension for end in ends if end.number or end.unit), ends[0].dimension)
    if lower is not None and upper is not None and lower.value > upper.value:
        names = (shown(end.value, dimension) for end in (lower, upper))
        raise UnitError(
            "the lower end {} is above the upper end {}".format(*names), "swap or correct them"
        )
    return Interval(
        lower=-math.inf if lower is None else lower.tagged,
        upper=math.inf if upper is None else upper.tagged,
        dimension=dimension,
    )
