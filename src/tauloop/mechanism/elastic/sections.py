"""Materials and cross sections, with their stiffness, mass and strength.

The x axis of a cross section points along the beam; y and z are in the plane of the section.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from tauloop.common.records import dataclass
from tauloop.mechanism.expression import (
    ONE,
    ZERO,
    Call,
    Constant,
    Expression,
    add,
    divide,
    multiply,
    subtract,
)

SectionKind = Literal["tube", "round", "rectangle", "box", "section"]
#: Keys of each kind of cross section, in the order of `Section.dimensions`: dimensions, or the
#: stiffnesses and masses of a composite section.
SECTION_DIMENSIONS: dict[SectionKind, tuple[str, ...]] = {
    "tube": ("outer", "wall"),
    "round": ("diameter",),
    "rectangle": ("width", "height"),
    "box": ("width", "height", "wall"),
    "section": ("EA", "EIy", "EIz", "GJ", "mass_per_length"),
}


def number(value: float) -> Constant:
    """Return a number as an expression."""
    return Constant(float(value))


def power(x: Expression, exponent: int) -> Expression:
    """Return a power of an expression."""
    if isinstance(x, Constant):
        return Constant(x.value**exponent)
    return Call("^", (x, number(exponent)))


def scaled(factor: float, *factors: Expression) -> Expression:
    """Return the product of a number and expressions."""
    return multiply(number(factor), *factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A material along the axis of a beam.

    Attributes:
        name: name in the file or in the table of materials.
        young_modulus: E along the beam, Pa.
        shear_modulus: G, Pa.
        poisson_ratio: Poisson's ratio, used for the shear coefficient.
        density: kg/m^3.
        expansion: coefficient of thermal expansion along the beam, 1/K; None if not stated.
        strength: stress at which the material yields or breaks, Pa; None if not stated.
    """

    name: str
    young_modulus: Expression
    shear_modulus: Expression
    poisson_ratio: Expression
    density: Expression
    expansion: Expression | None = None
    strength: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionProperties:
    """Stiffness, mass and strength of a cross section.

    Attributes:
        axial_stiffness: EA, N.
        bending_stiffness: EI_y and EI_z, N m^2, with I_y the integral of z^2 over the section.
        torsional_stiffness: GJ, N m^2.
        shear_stiffness: k G A along y and along z, N; None for a composite section.
        mass_per_length: kg/m.
        rotary_inertia: rho I_y and rho I_z, kg m; zeros for a composite section.
        expansion: coefficient of thermal expansion, 1/K; None if not stated.
        strength: stress at which the material yields or breaks, Pa; None if not stated.
        area: m^2; None for a composite section.
        extent: largest distances from the axis along y and along z, m; None for a composite
            section.
    """

    axial_stiffness: Expression
    bending_stiffness: tuple[Expression, Expression]
    torsional_stiffness: Expression
    shear_stiffness: tuple[Expression, Expression] | None = None
    mass_per_length: Expression
    rotary_inertia: tuple[Expression, Expression] = (ZERO, ZERO)
    expansion: Expression | None = None
    strength: Expression | None = None
    area: Expression | None = None
    extent: tuple[Expression, Expression] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A cross section as the file states it.

    Attributes:
        kind: key of `SECTION_DIMENSIONS`.
        dimensions: values of its keys, in the order of `SECTION_DIMENSIONS`.
        material: None for a composite section.
        expansion: coefficient of thermal expansion of a composite section, 1/K; None if not stated.
    """

    kind: SectionKind
    dimensions: tuple[Expression, ...]
    material: Material | None = None
    expansion: Expression | None = None

    @property
    def is_round(self) -> bool:
        """Whether the kind of section is rotationally symmetric."""
        return self.kind in ("tube", "round")

    def excessive_wall(self, value: Callable[[Expression], float]) -> tuple[float, float] | None:
        """Return the wall and the largest possible wall, m; None if the wall fits.

        The largest possible wall is half of the smallest outer dimension.

        Args:
            value: returns the value of an expression.
        """
        if self.kind not in ("tube", "box"):
            return None
        *outer_dimensions, wall = (value(dimension) for dimension in self.dimensions)
        largest_wall = min(outer_dimensions) / 2.0
        return (wall, largest_wall) if wall > largest_wall else None

    @property
    def properties(self) -> SectionProperties:
        """Stiffness, mass and strength."""
        if self.material is None:
            EA, EIy, EIz, GJ, mass_per_length = self.dimensions
            return SectionProperties(
                axial_stiffness=EA,
                bending_stiffness=(EIy, EIz),
                torsional_stiffness=GJ,
                mass_per_length=mass_per_length,
                expansion=self.expansion,
            )
        geometry = _GEOMETRIES[self.kind](self.dimensions, self.material.poisson_ratio)
        E = self.material.young_modulus
        G = self.material.shear_modulus
        density = self.material.density
        I_y, I_z = geometry.second_moments
        k_y, k_z = geometry.shear_coefficients
        return SectionProperties(
            axial_stiffness=multiply(E, geometry.area),
            bending_stiffness=(multiply(E, I_y), multiply(E, I_z)),
            torsional_stiffness=multiply(G, geometry.torsion_constant),
            shear_stiffness=(multiply(k_y, G, geometry.area), multiply(k_z, G, geometry.area)),
            mass_per_length=multiply(density, geometry.area),
            rotary_inertia=(multiply(density, I_y), multiply(density, I_z)),
            expansion=self.material.expansion,
            strength=self.material.strength,
            area=geometry.area,
            extent=geometry.extent,
        )

    def between(self, other: Section, fraction: float) -> Section:
        """Return the section of a taper between this one and another of the same kind.

        Args:
            other: section at the other end.
            fraction: position between the sections, from 0 (this section) to 1 (`other`).
        """
        if self == other:
            return self
        dimensions = tuple(
            add(scaled(1.0 - fraction, a), scaled(fraction, b))
            for a, b in zip(self.dimensions, other.dimensions, strict=True)
        )
        return Section(
            kind=self.kind,
            dimensions=dimensions,
            material=self.material,
            expansion=self.expansion,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Geometry:
    """Area, second moments (I_y, I_z), torsion constant, shear coefficients and extent."""

    area: Expression
    second_moments: tuple[Expression, Expression]
    torsion_constant: Expression
    shear_coefficients: tuple[Expression, Expression]
    extent: tuple[Expression, Expression]


def _tube(dimensions: Sequence[Expression], poisson: Expression) -> _Geometry:
    """Return the geometry of a round tube; the shear coefficient is Cowper's (1966)."""
    outer, wall = dimensions
    inner = subtract(outer, scaled(2.0, wall))
    area = scaled(math.pi / 4, subtract(power(outer, 2), power(inner, 2)))
    squares = add(power(outer, 2), power(inner, 2))
    moment = scaled(1 / 16, area, squares)
    # k = 6 (1 + nu) (1 + m^2)^2 / ((7 + 6 nu) (1 + m^2)^2 + (20 + 12 nu) m^2), m = inner / outer
    m2 = divide(power(inner, 2), power(outer, 2))
    s = power(add(ONE, m2), 2)
    numerator = scaled(6.0, add(ONE, poisson), s)
    denominator = add(
        multiply(add(number(7), scaled(6.0, poisson)), s),
        multiply(add(number(20), scaled(12.0, poisson)), m2),
    )
    k = divide(numerator, denominator)
    radius = scaled(0.5, outer)
    return _Geometry(
        area=area,
        second_moments=(moment, moment),
        torsion_constant=scaled(2.0, moment),
        shear_coefficients=(k, k),
        extent=(radius, radius),
    )


def _round(dimensions: Sequence[Expression], poisson: Expression) -> _Geometry:
    """Return the geometry of a solid round bar: k = 6 (1 + nu) / (7 + 6 nu) (Cowper 1966)."""
    (diameter,) = dimensions
    moment = scaled(math.pi / 64, power(diameter, 4))
    k = divide(scaled(6.0, add(ONE, poisson)), add(number(7), scaled(6.0, poisson)))
    radius = scaled(0.5, diameter)
    return _Geometry(
        area=scaled(math.pi / 4, power(diameter, 2)),
        second_moments=(moment, moment),
        torsion_constant=scaled(2.0, moment),
        shear_coefficients=(k, k),
        extent=(radius, radius),
    )


def _rectangle(dimensions: Sequence[Expression], poisson: Expression) -> _Geometry:
    """Return the geometry of a solid rectangle, `width` along y and `height` along z.

    k = 10 (1 + nu) / (12 + 11 nu) (Cowper 1966).
    """
    width, height = dimensions
    k = divide(scaled(10.0, add(ONE, poisson)), add(number(12), scaled(11.0, poisson)))
    return _Geometry(
        area=multiply(width, height),
        second_moments=(
            scaled(1 / 12, width, power(height, 3)),
            scaled(1 / 12, height, power(width, 3)),
        ),
        torsion_constant=_rectangle_torsion(width, height),
        shear_coefficients=(k, k),
        extent=(scaled(0.5, width), scaled(0.5, height)),
    )


#: Sum of 1 / n^5 over all odd n.
_ODD_FIFTH_POWERS = 1.0045237627951383


def _rectangle_torsion(width: Expression, height: Expression) -> Expression:
    """Return Saint-Venant's torsion constant of a rectangle to 1e-9.

    J = a b^3 / 3 (1 - 192 b / (pi^5 a) sum over odd n of tanh(n pi a / (2 b)) / n^5) with a >= b
    (Timoshenko and Goodier, Theory of Elasticity, section 109). With tanh(x) = 1 - 2 / (e^2x + 1),
    the sum is a constant minus a series whose first two terms suffice for an error of 1e-10.
    """
    difference = Call("abs", (subtract(width, height),))
    a = scaled(0.5, add(add(width, height), difference))
    b = scaled(0.5, subtract(add(width, height), difference))
    series: Expression = number(_ODD_FIFTH_POWERS)
    for n in (1, 3):
        exponential = Call("^", (number(math.e), scaled(n * math.pi, divide(a, b))))
        series = subtract(series, divide(number(2.0 / n**5), add(exponential, ONE)))
    bracket = subtract(ONE, scaled(192 / math.pi**5, divide(b, a), series))
    return scaled(1 / 3, a, power(b, 3), bracket)


def _box(dimensions: Sequence[Expression], poisson: Expression) -> _Geometry:
    """Return the geometry of a hollow rectangle with sharp corners.

    The torsion constant is Bredt's for a thin wall: J = 4 A_m^2 t / U_m, where A_m is the area
    within the center line of the wall, U_m its length and t the wall thickness.
    """
    width, height, wall = dimensions
    inner_width = subtract(width, scaled(2.0, wall))
    inner_height = subtract(height, scaled(2.0, wall))
    mean_width, mean_height = subtract(width, wall), subtract(height, wall)

    def moment(
        b: Expression, h: Expression, b_inner: Expression, h_inner: Expression
    ) -> Expression:
        solid = multiply(b, power(h, 3))
        return scaled(1 / 12, subtract(solid, multiply(b_inner, power(h_inner, 3))))

    torsion = divide(
        scaled(2.0, wall, power(mean_width, 2), power(mean_height, 2)),
        add(mean_width, mean_height),
    )
    return _Geometry(
        area=subtract(multiply(width, height), multiply(inner_width, inner_height)),
        second_moments=(
            moment(width, height, inner_width, inner_height),
            moment(height, width, inner_height, inner_width),
        ),
        torsion_constant=torsion,
        shear_coefficients=(
            _box_shear(divide(mean_height, mean_width), poisson),
            _box_shear(divide(mean_width, mean_height), poisson),
        ),
        extent=(scaled(0.5, width), scaled(0.5, height)),
    )


def _box_shear(n: Expression, poisson: Expression) -> Expression:
    """Return Cowper's (1966) shear coefficient of a thin-walled box of uniform wall thickness.

    Args:
        n: width (across the shear force) / height (along it), both at the wall's center line.
        poisson: Poisson's ratio.
    """

    def polynomial(*coefficients: float) -> Expression:
        return add(*(scaled(c, power(n, exponent)) for exponent, c in enumerate(coefficients) if c))

    numerator = scaled(10.0, add(ONE, poisson), power(polynomial(1, 3), 2))
    # 10 n^2 ((3 + nu) m + 3 m^2) with m = n
    denominator = add(
        polynomial(12, 72, 150, 120, 30), multiply(poisson, polynomial(11, 66, 135, 100))
    )
    return divide(numerator, denominator)


_GEOMETRIES: dict[str, Callable[[Sequence[Expression], Expression], _Geometry]] = {
    "tube": _tube,
    "round": _round,
    "rectangle": _rectangle,
    "box": _box,
}
