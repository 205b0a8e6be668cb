"""Analytic regrouping: base parameters whose coefficients are formulas in the machine's lengths, exact and checked.

The numerical regrouping says that a mass enters a base parameter with the factor 1.277. Done again
with other lengths it says how that factor depends on them, and since it is a polynomial with simple
fractions (dimensions fix its degree), a few geometries determine it: d1^2. Geometries that took no
part in that judge it.
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
from tauloop.common.result import Result, diagnostic, plain, provenance
from tauloop.identification.regression.base_parameters import RankOptions, base_parameters
from tauloop.mechanism.description.units import Dimension, parse_unit

#: Stacked regressor (m, n) of the parameters at lengths by name, SI.
Regressor = Callable[[Mapping[str, float]], np.ndarray]
#: Lengths are drawn from this range about their nominal values: wide enough to tell monomials
#: apart.
SPREAD = (0.9, 1.1)
#: A length whose change by this share moves a coefficient by less than `UNMOVED` of its size does
#: not enter it.
STEP, UNMOVED = 0.05, 1e-8
#: Largest denominator of a factor, and how near to such a fraction a fitted factor must be.
DENOMINATOR, NEAR = 12, 1e-6
#: Of a factor that is no such fraction: as many digits as its geometries tell.
DECIMAL = 10**10
#: A coefficient below this share of its column is zero (columns of unit norm).
ZERO = 1e-9
#: Geometries beside those that determine the factors: they take part in the fit, and others judge.
MORE, JUDGES = 2, 3
#: The formulas must give the regressor's columns to this share of their norm.
EXACT = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnParameter:
    """A column's parameter: its name and SI unit."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Monomial:
    """A fraction times powers of lengths.

    Attributes:
        numerator, denominator: of the fraction.
        powers: lengths with their powers.
    """

    numerator: int
    denominator: int = 1
    powers: tuple[tuple[str, int], ...] = ()

    @property
    def factor(self) -> Fraction:
        """The fraction."""
        return Fraction(self.numerator, self.denominator)

    def value(self, lengths: Mapping[str, float]) -> float:
        """Its value, SI."""
        return float(self.factor) * prod(lengths[name] ** power for name, power in self.powers)

    def __str__(self) -> str:
        above = [
            name if power == 1 else f"{name}^{power}" for name, power in self.powers if power > 0
        ]
        below = [
            name if power == -1 else f"{name}^{-power}" for name, power in self.powers if power < 0
        ]
        size = abs(self.factor)
        number = str(size) if size.denominator <= DENOMINATOR else f"{float(size):.6g}"
        text = " ".join(([] if size == 1 and above else [number]) + above) + "".join(
            f"/{name}" for name in below
        )
        return f"-{text}" if self.factor < 0 else text


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticTerm:
    """A parameter with its coefficient, a sum of monomials."""

    parameter: str
    coefficient: tuple[Monomial, ...]

    def value(self, lengths: Mapping[str, float]) -> float:
        """Of the coefficient, SI."""
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
        parameters: the n columns.
        independent: (r,) columns of the representatives.
        base: one entry per base parameter.
        no_effect: parameters whose column is zero.
        lengths: nominal values by name, SI.
        singular_values: of the unit-norm columns at the nominal lengths, largest first: a second
            route to the rank.
        values: of the n parameters, SI; None where nobody said.
    """

    parameters: tuple[ColumnParameter, ...] = field(metadata=json_keys("columns", summary=len))
    independent: tuple[int, ...] = field(metadata=OMITTED)
    base: tuple[AnalyticParameter, ...] = field(metadata=OMITTED)
    no_effect: tuple[str, ...]
    lengths: Mapping[str, float]
    singular_values: np.ndarray
    values: np.ndarray | None = field(default=None, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """The base parameters, with values where these are known; singular values of the columns."""
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
        return records(
            parameter=[term.parameter for term in parameter.terms],
            coefficient=[term.coefficient_text for term in parameter.terms],
            value=[term.value(self.lengths) for term in parameter.terms],
        )

    def matrix(self, lengths: Mapping[str, float] | None = None) -> np.ndarray:
        """B (r, n) at other lengths by name, SI; the nominal ones without them."""
        names = [item.name for item in self.parameters]
        B = np.zeros((len(self.base), len(names)))
        for row, parameter in zip(B, self.base, strict=True):
            row[names.index(parameter.representative)] = 1.0
            for term in parameter.terms:
                row[names.index(term.parameter)] = term.value(lengths or self.lengths)
        return B

    def misfit(self, regressor: np.ndarray, lengths: Mapping[str, float]) -> float:
        """Largest misfit of a column (m, n) at lengths, over its norm (without effect, over the largest norm)."""
        norms = np.linalg.norm(regressor, axis=0)
        independent = regressor[:, list(self.independent)]
        misfit = np.linalg.norm(regressor - independent @ self.matrix(lengths), axis=0)
        return float((misfit / np.where(norms > ZERO * norms.max(), norms, norms.max())).max())

    @property
    @in_json()
    def dependent(self) -> dict[str, str]:
        """Columns that depend on those of the representatives, as formulas in these: parameter -> formula."""
        terms: dict[str, list[str]] = {}
        for parameter in self.base:
            for term in parameter.terms:
                formula = str(
                    AnalyticTerm(parameter=parameter.representative, coefficient=term.coefficient)
                )
                terms.setdefault(term.parameter, []).append(formula)
        return {name: " + ".join(parts).replace("+ -", "- ") for name, parts in terms.items()}

    def directions(self, lengths: Mapping[str, float] | None = None) -> np.ndarray:
        """Changes of the parameters (n - r, n) that change no force: one of each dependent or ineffective parameter."""
        B = self.matrix(lengths)
        others = [j for j in range(len(self.parameters)) if j not in self.independent]
        matrix = np.zeros((len(others), len(self.parameters)))
        for row, j in zip(matrix, others, strict=True):
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
    """Regroup a regressor's columns, with coefficients that are polynomials of the lengths.

    Which columns are independent is found at the nominal lengths (`base_parameters`). The
    coefficient of column j in base parameter i has the dimension of p_i / p_j, a power of a length,
    so it is a sum of monomials of that degree in the lengths; where polynomials do not suffice, one
    division by a length is allowed. Their factors are fitted over random geometries and rounded to
    simple fractions, or to decimals where they are none (the cosine of an angle that stays); other
    geometries judge the result (`EXACT`).

    Args:
        regressor: the stacked regressor (m, n) at given lengths; at least as many rows as columns.
        parameters: names and units of the n columns.
        lengths: nominal lengths by name, SI: those the coefficients may depend on.
        rng: source of other geometries.
        options: how the rank is decided.
        values: of the n parameters, SI, where they are known.
        progress: called with what is done and what there is to do.

    Raises:
        IdentificationError: there is no clear rank, or coefficients are no such sums; all of them.
    Source: Kroneis, Müller and Liu (SpiderMill), eqs. 6 to 10; the fit of the coefficients is ours.
    """
    nominal = np.asarray(regressor(lengths))
    names, units = [item.name for item in parameters], [item.unit for item in parameters]
    answer = base_parameters(nominal, names, units, options)
    independent = tuple(int(j) for j in answer.independent)
    norms = np.linalg.norm(nominal, axis=0)
    norms[[name in answer.no_effect for name in names]] = np.inf

    def shares(at: Mapping[str, float]) -> np.ndarray:
        """Coefficients at other lengths; those that are rounding are zero."""
        W = np.asarray(regressor(at))
        B = np.linalg.lstsq(W[:, list(independent)], W, rcond=None)[0]
        scaled = B * norms[list(independent), None] / norms
        return np.asarray(np.where(np.abs(scaled) > ZERO, B, 0.0))

    first = shares(lengths)
    stages = Stages(progress, len(lengths) + len(independent))
    entering = {
        name: np.abs(shares({**lengths, name: (1 + STEP) * lengths[name]}) - first)
        for name in stages.over(lengths)
    }
    draws = _Draws(shares, lengths, rng)
    problems = Problems()
    base = []
    for i, column in enumerate(stages.over(independent)):
        terms = []
        for j, quantity in enumerate(parameters):
            if j in independent or first[i, j] == 0.0:
                continue
            entry = [name for name in lengths if entering[name][i, j] > UNMOVED * abs(first[i, j])]
            monomials = _fitted(draws, i, j, entry, _degree(units[column], units[j]))
            if monomials is None:
                what = f"its share {first[i, j]:.6g} in {names[column]} is no sum of simple monomials of {entry}"
                problems.add(quantity.name, what, "name all lengths on which it depends, or fewer")
            else:
                terms.append(AnalyticTerm(parameter=quantity.name, coefficient=monomials))
        base.append(
            AnalyticParameter(representative=names[column], unit=units[column], terms=tuple(terms))
        )
    IdentificationError.raise_if_any(problems)
    result = AnalyticRegrouping(
        parameters=tuple(parameters),
        independent=independent,
        base=tuple(base),
        no_effect=answer.no_effect,
        lengths=dict(lengths),
        singular_values=answer.singular_values,
        values=values,
        diagnostics=(),
        provenance=provenance(
            packages=("numpy",),
            options={"rank": plain(answer.options)},
            inputs={"columns": len(names)},
        ),
    )
    diagnostics = (
        diagnostic(
            "largest misfit of a column by the formulas, over its norm, at other geometries",
            max(result.misfit(np.asarray(regressor(at)), at) for at in draws.judges),
            at_most=EXACT,
            advice="the formulas do not hold: lengths are missing among those named",
        ),
        diagnostic(
            "ratio of the last independent column's remainder to the next",
            answer.gap,
            at_least=answer.options.least_gap,
            advice="the rank is a matter of the tolerance",
        ),
    )
    return replace(result, diagnostics=diagnostics)


class _Draws:
    """Random geometries and their coefficients, as many as are asked for; the last ones judge."""

    def __init__(
        self,
        shares: Callable[[Mapping[str, float]], np.ndarray],
        lengths: Mapping[str, float],
        rng: np.random.Generator,
    ) -> None:
        self._shares, self._lengths, self._rng = shares, lengths, rng
        self.judges = [self._draw() for _ in range(JUDGES)]
        self._known: list[tuple[dict[str, float], np.ndarray]] = []

    def _draw(self) -> dict[str, float]:
        return {name: value * self._rng.uniform(*SPREAD) for name, value in self._lengths.items()}

    def take(self, count: int) -> list[tuple[dict[str, float], np.ndarray]]:
        """The first `count` geometries with their coefficients."""
        while len(self._known) < count:
            at = self._draw()
            self._known.append((at, self._shares(at)))
        return self._known[:count]


def _fitted(
    draws: _Draws, i: int, j: int, names: Sequence[str], degree: int
) -> tuple[Monomial, ...] | None:
    """The coefficient as a sum of monomials, polynomial or with one division; None if it is neither.

    Factors are simple fractions, or else decimals, such as the cosine of an angle that stays.
    """
    for largest, near in ((DENOMINATOR, NEAR), (DECIMAL, EXACT)):
        for powers in (_powers(len(names), degree, 0), _powers(len(names), degree, -1)):
            if not powers:
                continue
            known = draws.take(len(powers) + MORE)
            A = np.array(
                [
                    [prod(at[n] ** p for n, p in zip(names, row, strict=True)) for row in powers]
                    for at, _ in known
                ]
            )
            values = np.array([B[i, j] for _, B in known])
            factors = np.linalg.lstsq(A, values, rcond=None)[0]
            fractions = [Fraction(float(factor)).limit_denominator(largest) for factor in factors]
            exact = A @ np.array([float(fraction) for fraction in fractions])
            if np.abs(exact - values).max() <= near * np.abs(values).max():
                return tuple(
                    Monomial(
                        numerator=fraction.numerator,
                        denominator=fraction.denominator,
                        powers=tuple((n, p) for n, p in zip(names, row, strict=True) if p),
                    )
                    for fraction, row in zip(fractions, powers, strict=True)
                    if abs(fraction) > EXACT
                )
    return None


def _powers(count: int, degree: int, lowest: int) -> list[tuple[int, ...]]:
    """Powers of `count` lengths that add up to a degree, at most one of them negative and none below `lowest`."""
    highest = degree - lowest
    return [
        row
        for row in product(range(lowest, max(highest, 0) + 1), repeat=count)
        if sum(row) == degree and sum(power < 0 for power in row) <= 1
    ]


def _degree(of: str, part: str) -> int:
    """Power of a length that a coefficient has by its dimension.

    Raises:
        IdentificationError: the ratio of the units is no whole power of a length.
    """
    ratio = parse_unit(of).dimension / parse_unit(part).dimension
    length = Dimension(length=ratio.length)
    if not ratio.matches(length) or ratio.length.denominator != 1:
        what = f"the unit {of} over {part} is no power of a length"
        raise IdentificationError.of("units", what, "regroup parameters of inertia only")
    return int(ratio.length)
