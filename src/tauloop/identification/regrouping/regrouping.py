"""Analytic regrouping: base parameters whose coefficients are formulas in the machine's lengths.

A numerical regrouping returns a factor such as 1.277 for a mass in a base parameter. Regrouping for
other lengths shows how this factor depends on the lengths. The factor is a polynomial in the
lengths with simple fractions as coefficients, and its degree follows from the dimensions. A few
geometries therefore determine the polynomial, for example d1^2. Other geometries check the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import IdentificationError, Problems
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, plain, provenance
from tauloop.identification.regression.base_parameters import (
    BaseParameters,
    RankOptions,
    base_parameters,
)
from tauloop.mechanism.description.units import Dimension, parse_unit
from tauloop.mechanism.suggestions import listing

#: Stacked regressor (m, n) of the parameters at lengths by name, SI.
Regressor = Callable[[Mapping[str, float]], np.ndarray]
#: Range of random lengths as a fraction of their nominal values. It is wide enough to distinguish
#: monomials.
GEOMETRY_RANGE = (0.9, 1.1)
#: Relative change of each length that shows which coefficients depend on it.
LENGTH_STEP = 0.05
#: A coefficient does not depend on a length if it changes by less than this fraction of its value.
MIN_RELATIVE_CHANGE = 1e-8
#: Largest denominator of a factor that is a simple fraction.
MAX_DENOMINATOR = 12
#: Relative accuracy of a simple fraction.
FRACTION_TOLERANCE = 1e-6
#: Largest denominator of other factors. It limits their digits to those that the fit determines.
MAX_DECIMAL_DENOMINATOR = 10**10
#: A coefficient is zero below this value, for columns of unit norm.
ZERO_TOLERANCE = 1e-9
#: Number of geometries in a fit in addition to the minimum that determines the factors.
EXTRA_GEOMETRIES = 2
#: Number of geometries that check the formulas.
CHECK_GEOMETRIES = 3
#: The formulas must reproduce the regressor's columns within this fraction of their norm.
FORMULA_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnParameter:
    """The name and SI unit of a column's parameter."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Monomial:
    """A fraction times powers of lengths.

    Attributes:
        numerator: numerator of the fraction.
        denominator: denominator of the fraction.
        powers: pairs of a length and its power.
    """

    numerator: int
    denominator: int = 1
    powers: tuple[tuple[str, int], ...] = ()

    @property
    def factor(self) -> Fraction:
        """The fraction."""
        return Fraction(self.numerator, self.denominator)

    def value(self, lengths: Mapping[str, float]) -> float:
        """Return the value, SI."""
        return float(self.factor) * prod(lengths[name] ** power for name, power in self.powers)

    def __str__(self) -> str:
        numerators: list[str] = []
        denominators: list[str] = []
        for name, power in self.powers:
            text = name if abs(power) == 1 else f"{name}^{abs(power)}"
            (numerators if power > 0 else denominators).append(text)
        magnitude = abs(self.factor)
        is_simple = magnitude.denominator <= MAX_DENOMINATOR
        number = str(magnitude) if is_simple else f"{float(magnitude):.6g}"
        factors = numerators if magnitude == 1 and numerators else [number, *numerators]
        text = " ".join(factors) + "".join(f"/{name}" for name in denominators)
        return f"-{text}" if self.factor < 0 else text


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticTerm:
    """A parameter with its coefficient, a sum of monomials."""

    parameter: str
    coefficient: tuple[Monomial, ...]

    def value(self, lengths: Mapping[str, float]) -> float:
        """Return the value of the coefficient, SI."""
        return sum(monomial.value(lengths) for monomial in self.coefficient)

    @property
    def coefficient_text(self) -> str:
        """The coefficient as a formula."""
        return " + ".join(map(str, self.coefficient)).replace("+ -", "- ")

    def __str__(self) -> str:
        text = self.coefficient_text
        if len(self.coefficient) > 1:
            return f"({text}) {self.parameter}"
        return {"1": self.parameter, "-1": f"-{self.parameter}"}.get(
            text, f"{text} {self.parameter}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticParameter:
    """A base parameter: its representative and the parameters regrouped with it."""

    representative: str
    unit: str
    terms: tuple[AnalyticTerm, ...] = ()

    @property
    def name(self) -> str:
        """The whole combination, such as ``m1 d_c1 + d1 m2 + 1/2 d1 m4``."""
        return " + ".join([self.representative, *map(str, self.terms)]).replace("+ -", "- ")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnalyticRegrouping(Result):
    """Base parameters as formulas: Y p = Y[:, independent] B(lengths) p.

    Attributes:
        parameters: parameters of the n columns.
        independent: (r,) indices of the representatives' columns.
        base: the r base parameters.
        no_effect: parameters whose column is zero.
        lengths: nominal lengths by name, SI.
        singular_values: singular values of the unit-norm columns at the nominal lengths, largest
            first. They are a second method to determine the rank.
        values: (n,) values of the parameters, SI; None if they are not known.
    """

    parameters: tuple[ColumnParameter, ...] = field(metadata=json_keys("columns", summary=len))
    independent: tuple[int, ...] = field(metadata=OMITTED)
    base: tuple[AnalyticParameter, ...] = field(metadata=OMITTED)
    no_effect: tuple[str, ...]
    lengths: Mapping[str, float]
    singular_values: np.ndarray
    values: np.ndarray | None = field(default=None, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield the base parameters, with values if these are known, and the singular values."""
        names, values = [parameter.name for parameter in self.base], self.base_values
        if values is not None:
            yield from rows(
                "parameter", names, (parameter.unit for parameter in self.base), value=values
            )
        yield Variable(name="singular_value", values=self.singular_values, over=("direction",))

    @property
    def base_values(self) -> np.ndarray | None:
        """Values (r,) of the base parameters at the nominal lengths, SI."""
        return None if self.values is None else self.matrix() @ self.values

    @property
    @in_json("base")
    def base_rows(self) -> list[dict[str, Any]]:
        """The base parameters with values of their coefficients at the nominal lengths."""
        values = [None] * len(self.base) if self.base_values is None else self.base_values.tolist()
        return records(
            name=[parameter.name for parameter in self.base],
            representative=[parameter.representative for parameter in self.base],
            unit=[parameter.unit for parameter in self.base],
            value=values,
            terms=[self._term_rows(parameter) for parameter in self.base],
        )

    def _term_rows(self, parameter: AnalyticParameter) -> list[dict[str, Any]]:
        """Return the terms of a base parameter as plain data."""
        return records(
            parameter=[term.parameter for term in parameter.terms],
            coefficient=[term.coefficient_text for term in parameter.terms],
            value=[term.value(self.lengths) for term in parameter.terms],
        )

    def matrix(self, lengths: Mapping[str, float] | None = None) -> np.ndarray:
        """Return B (r, n) at lengths by name, SI; by default at the nominal lengths."""
        names = [item.name for item in self.parameters]
        B = np.zeros((len(self.base), len(names)))
        for row, parameter in zip(B, self.base, strict=True):
            row[names.index(parameter.representative)] = 1.0
            for term in parameter.terms:
                row[names.index(term.parameter)] = term.value(lengths or self.lengths)
        return B

    def misfit(self, regressor: np.ndarray, lengths: Mapping[str, float]) -> float:
        """Return the largest relative misfit of a regressor's columns at given lengths.

        Args:
            regressor: (m, n) columns at these lengths.
            lengths: lengths by name, SI.

        Returns:
            Norm of the misfit divided by the norm of the column, or by the largest norm for a
            column without effect.
        """
        norms = np.linalg.norm(regressor, axis=0)
        independent = regressor[:, list(self.independent)]
        misfit = np.linalg.norm(regressor - independent @ self.matrix(lengths), axis=0)
        has_effect = norms > ZERO_TOLERANCE * norms.max()
        scales = np.where(has_effect, norms, norms.max())
        return float((misfit / scales).max())

    @property
    @in_json()
    def dependent(self) -> dict[str, str]:
        """Dependent columns as formulas in the representatives' columns, by parameter."""
        terms: dict[str, list[str]] = {}
        for parameter in self.base:
            for term in parameter.terms:
                formula = str(
                    AnalyticTerm(parameter=parameter.representative, coefficient=term.coefficient)
                )
                terms.setdefault(term.parameter, []).append(formula)
        return {name: " + ".join(parts).replace("+ -", "- ") for name, parts in terms.items()}

    def directions(self, lengths: Mapping[str, float] | None = None) -> np.ndarray:
        """Return changes of the parameters (n - r, n) that do not change any force.

        There is one row for each parameter that is dependent or has no effect.
        """
        B = self.matrix(lengths)
        dependent = [j for j in range(len(self.parameters)) if j not in self.independent]
        matrix = np.zeros((len(dependent), len(self.parameters)))
        for row, j in zip(matrix, dependent, strict=True):
            row[list(self.independent)] = -B[:, j]
            row[j] = 1.0
        return matrix


def analytic_regrouping(
    regressor: Regressor,
    parameters: Sequence[ColumnParameter],
    lengths: Mapping[str, float],
    rng: np.random.Generator,
    options: RankOptions | None = None,
    values: np.ndarray | None = None,
    progress: Progress | None = None,
) -> AnalyticRegrouping:
    """Regroup a regressor's columns, with coefficients that are polynomials in the lengths.

    The independent columns are found at the nominal lengths (`base_parameters`). The coefficient of
    column j in base parameter i has the dimension of p_i / p_j, which is a power of a length. It is
    therefore a sum of monomials of that degree in the lengths. If polynomials do not suffice, one
    division by a length is allowed. The factors are fitted to random geometries and rounded to
    simple fractions. Factors that are not simple fractions, such as the cosine of a constant angle,
    are rounded to decimals. Other geometries check the result (`FORMULA_TOLERANCE`).

    Args:
        regressor: function that returns the stacked regressor (m, n) at given lengths, with m >= n.
        parameters: names and units of the n columns.
        lengths: nominal lengths by name, SI, on which the coefficients may depend.
        rng: generator of the random geometries.
        options: options of the rank decision.
        values: (n,) values of the parameters, SI, if they are known.
        progress: called with the completed and the total number of steps.

    Raises:
        IdentificationError: the rank is ambiguous, or coefficients are not sums of monomials; lists
            all such coefficients.

    Source: Kroneis, Müller and Liu (SpiderMill), eqs. 6 to 10. The fit of the coefficients is
        Tauloop's own.
    """
    nominal = np.asarray(regressor(lengths))
    names = [item.name for item in parameters]
    units = [item.unit for item in parameters]
    numerical = base_parameters(nominal, names, units, options)
    independent = tuple(int(j) for j in numerical.independent)
    norms = np.linalg.norm(nominal, axis=0)
    norms[[name in numerical.no_effect for name in names]] = np.inf

    def coefficients(geometry: Mapping[str, float]) -> np.ndarray:
        """Return the coefficients (r, n) at given lengths, with zeros for rounding errors."""
        W = np.asarray(regressor(geometry))
        B = np.linalg.lstsq(W[:, list(independent)], W, rcond=None)[0]
        scaled = B * norms[list(independent), None] / norms
        return np.asarray(np.where(np.abs(scaled) > ZERO_TOLERANCE, B, 0.0))

    stages = Stages(progress, len(lengths) + len(independent))
    search = _TermSearch(parameters, independent, coefficients, lengths, rng, stages)
    base = [search.parameter(i, j) for i, j in enumerate(stages.over(independent))]
    IdentificationError.raise_if_any(search.problems)
    result = AnalyticRegrouping(
        parameters=tuple(parameters),
        independent=independent,
        base=tuple(base),
        no_effect=numerical.no_effect,
        lengths=dict(lengths),
        singular_values=numerical.singular_values,
        values=values,
        diagnostics=(),
        provenance=provenance(
            packages=("numpy",),
            options={"rank": plain(numerical.options)},
            inputs={"columns": len(names)},
        ),
    )
    misfit = max(
        result.misfit(np.asarray(regressor(geometry)), geometry)
        for geometry in search.geometries.check_geometries
    )
    return replace(result, diagnostics=_diagnostics(misfit, numerical))


class _TermSearch:
    """The search for the terms of base parameters.

    Attributes:
        geometries: random geometries to which coefficients are fitted.
        problems: coefficients that are not sums of monomials.
    """

    def __init__(
        self,
        parameters: Sequence[ColumnParameter],
        independent: tuple[int, ...],
        coefficients: Callable[[Mapping[str, float]], np.ndarray],
        lengths: Mapping[str, float],
        rng: np.random.Generator,
        stages: Stages,
    ) -> None:
        """Change each length, to find the lengths on which each coefficient depends."""
        self._parameters = parameters
        self._independent = independent
        self._lengths = tuple(lengths)
        self._nominal = coefficients(lengths)
        self._changes = {}
        for name in stages.over(lengths):
            geometry = {**lengths, name: (1 + LENGTH_STEP) * lengths[name]}
            self._changes[name] = np.abs(coefficients(geometry) - self._nominal)
        self.geometries = _RandomGeometries(coefficients, lengths, rng)
        self.problems = Problems()

    def parameter(self, i: int, column: int) -> AnalyticParameter:
        """Return base parameter i, whose representative has the index `column`."""
        representative = self._parameters[column]
        terms = []
        for j, quantity in enumerate(self._parameters):
            if j in self._independent or self._nominal[i, j] == 0.0:
                continue
            min_change = MIN_RELATIVE_CHANGE * abs(self._nominal[i, j])
            involved = [name for name in self._lengths if self._changes[name][i, j] > min_change]
            degree = _length_degree(representative.unit, quantity.unit)
            monomials = _fitted_coefficient(self.geometries, i, j, involved, degree)
            if monomials is None:
                self.problems.add(
                    quantity.name,
                    f"its coefficient {self._nominal[i, j]:.6g} in {representative.name} is not a "
                    f"sum of simple monomials in {listing(involved)}",
                    "name all lengths on which it depends, or fewer lengths",
                )
            else:
                terms.append(AnalyticTerm(parameter=quantity.name, coefficient=monomials))
        return AnalyticParameter(
            representative=representative.name, unit=representative.unit, terms=tuple(terms)
        )


def _diagnostics(misfit: float, numerical: BaseParameters) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the formulas and of the rank.

    Args:
        misfit: largest misfit of a column at other geometries, relative to its norm.
        numerical: base parameters at the nominal lengths.
    """
    return (
        diagnostic(
            "largest misfit of a column by the formulas, relative to its norm, at other geometries",
            misfit,
            at_most=FORMULA_TOLERANCE,
            advice="the formulas are wrong at other geometries: name further lengths on which the "
            "coefficients depend",
        ),
        diagnostic(
            "ratio of the last independent column's remainder to the next",
            numerical.gap,
            at_least=numerical.options.least_gap,
            advice="the rank depends on the tolerance: compare other tolerances",
        ),
    )


class _RandomGeometries:
    """Random geometries and their coefficients, computed on demand.

    Attributes:
        check_geometries: geometries that are not used in fits.
    """

    def __init__(
        self,
        coefficients: Callable[[Mapping[str, float]], np.ndarray],
        lengths: Mapping[str, float],
        rng: np.random.Generator,
    ) -> None:
        self._coefficients = coefficients
        self._lengths = lengths
        self._rng = rng
        self.check_geometries = [self._draw() for _ in range(CHECK_GEOMETRIES)]
        self._known: list[tuple[dict[str, float], np.ndarray]] = []

    def _draw(self) -> dict[str, float]:
        """Return a random geometry."""
        return {
            name: value * self._rng.uniform(*GEOMETRY_RANGE)
            for name, value in self._lengths.items()
        }

    def take(self, count: int) -> list[tuple[dict[str, float], np.ndarray]]:
        """Return the first `count` geometries with their coefficients."""
        while len(self._known) < count:
            geometry = self._draw()
            self._known.append((geometry, self._coefficients(geometry)))
        return self._known[:count]


def _fitted_coefficient(
    geometries: _RandomGeometries, i: int, j: int, names: Sequence[str], degree: int
) -> tuple[Monomial, ...] | None:
    """Return a coefficient as a polynomial in the lengths, or with one division by a length.

    Factors are simple fractions or else decimals, such as the cosine of a constant angle.

    Args:
        geometries: random geometries.
        i, j: row and column of the coefficient.
        names: lengths in the coefficient.
        degree: degree of the monomials.

    Returns:
        The monomials; None if the coefficient is not a sum of such monomials.
    """
    roundings = (
        (MAX_DENOMINATOR, FRACTION_TOLERANCE),
        (MAX_DECIMAL_DENOMINATOR, FORMULA_TOLERANCE),
    )
    for max_denominator, tolerance in roundings:
        for lowest in (0, -1):
            exponents = _exponents(len(names), degree, lowest)
            if not exponents:
                continue
            samples = geometries.take(len(exponents) + EXTRA_GEOMETRIES)
            A = np.array([_monomial_values(geometry, names, exponents) for geometry, _ in samples])
            values = np.array([B[i, j] for _, B in samples])
            factors = np.linalg.lstsq(A, values, rcond=None)[0]
            fractions = [
                Fraction(float(factor)).limit_denominator(max_denominator) for factor in factors
            ]
            rounded = A @ np.array([float(fraction) for fraction in fractions])
            if np.abs(rounded - values).max() <= tolerance * np.abs(values).max():
                return tuple(
                    _monomial(fraction, names, powers)
                    for fraction, powers in zip(fractions, exponents, strict=True)
                    if abs(fraction) > FORMULA_TOLERANCE
                )
    return None


def _monomial(fraction: Fraction, names: Sequence[str], powers: Sequence[int]) -> Monomial:
    """Return a fraction times powers of lengths."""
    return Monomial(
        numerator=fraction.numerator,
        denominator=fraction.denominator,
        powers=tuple((name, power) for name, power in zip(names, powers, strict=True) if power),
    )


def _monomial_values(
    geometry: Mapping[str, float], names: Sequence[str], exponents: Sequence[Sequence[int]]
) -> list[float]:
    """Return the values of monomials in lengths, one for each row of exponents."""
    lengths = [geometry[name] for name in names]
    return [prod(map(pow, lengths, powers)) for powers in exponents]


def _exponents(count: int, degree: int, lowest: int) -> list[tuple[int, ...]]:
    """Return all tuples of `count` exponents that add up to `degree`.

    At most one exponent is negative, and none is below `lowest`.
    """
    candidates = product(range(lowest, max(degree - lowest, 0) + 1), repeat=count)
    return [row for row in candidates if sum(row) == degree and _count_negative(row) <= 1]


def _count_negative(values: Sequence[int]) -> int:
    """Return the number of negative values."""
    return sum(value < 0 for value in values)


def _length_degree(numerator: str, denominator: str) -> int:
    """Return the power of a length that is the ratio of two units.

    Raises:
        IdentificationError: the ratio of the units is not an integer power of a length.
    """
    ratio = parse_unit(numerator).dimension / parse_unit(denominator).dimension
    length = Dimension(length=ratio.length)
    if not ratio.matches(length) or ratio.length.denominator != 1:
        raise IdentificationError.of(
            "units",
            f"the ratio of the units {numerator} and {denominator} is not an integer power of a length",
            "regroup only parameters of inertia",
        )
    return int(ratio.length)
