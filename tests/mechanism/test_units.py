"""Units: text to scale and dimension, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import (
    UNITS,
    Dimension,
    UnitError,
    named,
    parse_unit,
    shown,
)

#: Products of a few factors in two orders differ by rounding only.
ROUNDING = 1e-14

FACTORS = st.lists(
    st.tuples(st.sampled_from(sorted(UNITS)), st.integers(1, 3)), min_size=1, max_size=3
)


@pytest.mark.parametrize(
    ("text", "scale", "dimension"),
    [
        ("mm", 1e-3, units.LENGTH),
        ("g", 1e-3, units.MASS),
        ("kg m^2", 1.0, units.INERTIA),
        ("g mm^2", 1e-9, units.INERTIA),
        ("N m s/rad", 1.0, units.ANGULAR_DAMPING),
        ("kN", 1e3, units.FORCE),
        ("m/s^2", 1.0, units.ACCELERATION),
        ("m s^-2", 1.0, units.ACCELERATION),
        ("N/mm", 1e3, units.STIFFNESS),
        ("N m/rad/s", 1.0, units.TORQUE / units.ANGULAR_SPEED * units.TIME ** Fraction(-2)),
        ("1/s", 1.0, units.FREQUENCY),
        ("deg", math.pi / 180, units.ANGLE),
        ("rpm", math.pi / 30, units.ANGULAR_SPEED),
        ("km/h", 1 / 3.6, units.SPEED),
        ("kg  m", 1.0, units.FIRST_MOMENT),
    ],
)
def test_known_units(text: str, scale: float, dimension: Dimension) -> None:
    unit = parse_unit(text)
    assert unit.scale == pytest.approx(scale, rel=ROUNDING)
    assert unit.dimension == dimension


def test_named_units_are_what_they_stand_for() -> None:
    for short, long in {
        "N": "kg m/s^2",
        "J": "N m",
        "W": "J/s",
        "Pa": "N/m^2",
        "Hz": "1/s",
    }.items():
        assert parse_unit(short).dimension == parse_unit(long).dimension
        assert parse_unit(short).scale == pytest.approx(parse_unit(long).scale, rel=ROUNDING)


@given(above=FACTORS, below=FACTORS)
def test_a_product_has_the_product_of_scales_and_dimensions(
    above: list[tuple[str, int]], below: list[tuple[str, int]]
) -> None:
    text = " ".join(f"{name}^{power}" for name, power in above) + "".join(
        f"/{name}^{power}" for name, power in below
    )
    unit = parse_unit(text)
    logarithm = sum(p * math.log(UNITS[n][0]) for n, p in above) - sum(
        p * math.log(UNITS[n][0]) for n, p in below
    )
    # logarithms up to some hundred
    assert math.log(unit.scale) == pytest.approx(logarithm, abs=1e-12)
    for exponent in ("mass", "length", "time", "angle"):
        expected = sum(p * getattr(UNITS[n][1], exponent) for n, p in above)
        expected -= sum(p * getattr(UNITS[n][1], exponent) for n, p in below)
        assert getattr(unit.dimension, exponent) == expected


def test_compliances_have_the_inverse_units_of_stiffnesses() -> None:
    assert str(units.ONE / units.STIFFNESS) == "m/N"
    assert str(units.ONE / units.ANGULAR_STIFFNESS) == "rad/N/m"


@given(exponents=st.tuples(*[st.integers(-4, 4)] * 4))
def test_the_text_of_a_dimension_is_read_back(exponents: tuple[int, int, int, int]) -> None:
    mass, length, time, angle = map(Fraction, exponents)
    dimension = Dimension(mass=mass, length=length, time=time, angle=angle)
    if not dimension.is_one:
        assert parse_unit(str(dimension)).dimension == dimension
        assert parse_unit(str(dimension)).scale == 1.0


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("Nm", "unknown unit 'Nm'", "did you mean N m?"),
        ("Kg", "unknown unit 'Kg'", "did you mean kg"),
        ("degrees", "unknown unit 'degrees'", "did you mean deg?"),
        ("parsec", "unknown unit 'parsec'", "known units are m, km"),
        ("inch", "unknown unit 'inch'", "write 25.4 mm for 1 inch, and 3 * 25.4 mm for 3 inch"),
        ("lb ft^2", "unknown unit 'lb'", "write 0.45359237 kg for 1 lb"),
        ("N/ft", "unknown unit 'ft'", "3 * 0.3048 m"),
        ("microns", "unknown unit 'microns'", "did you mean um?"),
        ("N m/rad s", "is ambiguous", "N m/rad/s"),
        ("m^", "not a unit", "factors such as"),
        ("m*s", "not a unit", "factors such as"),
        ("m^99", "exponent above 12", "smaller"),
        ("kg 1", "not a unit", "factors such as"),
        ("", "the unit is missing", "such as mm"),
    ],
)
def test_wrong_units_say_what_to_write(text: str, what: str, remedy: str) -> None:
    with pytest.raises(UnitError) as raised:
        parse_unit(text)
    assert what in raised.value.what
    assert remedy in raised.value.remedy


@pytest.mark.parametrize(
    ("unit", "si", "dimension"),
    [
        ("ft", 12 * 0.0254, units.LENGTH),
        ("mil", 0.0254 / 1000, units.LENGTH),
        ("oz", 0.45359237 / 16, units.MASS),
        ("slug", 0.45359237 * 9.80665 / 0.3048, units.MASS),
        ("lbf", 0.45359237 * 9.80665, units.FORCE),
        ("ozf", 0.45359237 * 9.80665 / 16, units.FORCE),
        ("kgf", 9.80665, units.FORCE),
        ("psi", 0.45359237 * 9.80665 / 0.0254**2, units.PRESSURE),
        ("hp", 550 * 0.3048 * 0.45359237 * 9.80665, units.TORQUE / units.TIME),
        ("rev", 2 * math.pi, units.ANGLE),
    ],
)
def test_the_quantity_suggested_for_another_unit_equals_it(
    unit: str, si: float, dimension: Dimension
) -> None:
    with pytest.raises(UnitError) as raised:
        parse_unit(unit)
    number, name = raised.value.remedy.removeprefix("write ").split(" for ")[0].split()
    suggested = parse_unit(name)
    assert float(number) * suggested.scale == pytest.approx(si, rel=1e-7)
    assert suggested.dimension == dimension


def test_angles_are_soft() -> None:
    assert units.TORQUE.matches(units.TORQUE * units.ANGLE)
    assert units.ANGULAR_DAMPING.matches(parse_unit("N m s").dimension)
    assert not units.TORQUE.matches(units.FORCE)
    assert units.ANGLE.is_angular
    assert units.ANGULAR_SPEED.is_angular
    assert not units.ANGULAR_STIFFNESS.is_angular


def test_words_for_messages() -> None:
    assert named(units.LENGTH) == "a length (m)"
    assert named(units.ONE) == "a plain number"
    assert named(units.LENGTH**3) == "a quantity in m^3"
    assert shown(math.pi / 6, units.ANGLE) == "30 deg"
    assert shown(0.25, units.LENGTH) == "0.25 m"
    assert shown(2.0, units.ONE) == "2"


@pytest.mark.parametrize("unit", [*units.USUAL_UNITS, "Hz", "kg"])
def test_a_usual_unit_is_the_si_unit_times_its_factor(unit: str) -> None:
    factor, name = units.usual_unit(unit)
    if name and not name[0].isdecimal():
        usual, si = parse_unit(name), parse_unit(unit)
        assert usual.dimension == si.dimension
        assert usual.scale * factor == pytest.approx(si.scale, rel=ROUNDING)
    assert units.in_usual_unit(0.25, unit) == (0.25 * factor, name)


def test_numbers_are_written_with_their_usual_unit() -> None:
    pairs = [(0.0125, "m"), (math.pi / 6, "rad"), (2.5e7, "N/m"), (-1e-13, "m"), (3.0, "Hz")]
    written = [units.with_usual_unit(*pair) for pair in pairs]
    assert written == ["12.5 mm", "30 deg", "25 N/um", "0 mm", "3 Hz"]
    assert units.with_usual_unit(0.5, "1") == "0.5"
