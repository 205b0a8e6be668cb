"""Base parameters: the combinations of parameters that forces determine, by rank-revealing QR.

Source: Gautier 1991, Numerical calculation of the base inertial parameters of robots; Gautier and
Khalil 1990, Direct calculation of minimum set of inertial parameters of serial robots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """Options of the rank decision and of the choice of base parameters.

    All values except `no_effect` are for columns of unit norm. The remainder of a column is the
    part that is orthogonal to the columns chosen before.

    Attributes:
        tolerance: a column is independent if its remainder exceeds this norm.
        least_gap: smallest ratio of the last accepted to the first rejected remainder. With a
            smaller ratio the rank depends on the tolerance, and `base_parameters` raises an error.
        preference: among the columns whose remainder is at least this fraction of the largest, the
            first in the given order is chosen. With 1 this is ordinary column pivoting; with small
            values the given order decides.
        largest_share: largest coefficient with which a column may depend on a chosen column. With a
            larger coefficient, it replaces the chosen column, so that the given order does not
            impair the conditioning.
        no_effect: a column has no effect if its norm (SI, not scaled) is at most this fraction of
            the largest norm.
        smallest_share: a term of a regrouping is listed if it is at least this fraction of the
            column of its own parameter.
    """

    tolerance: float = option(1e-8, above=0.0, most=1.0)
    least_gap: float = option(10.0, above=1.0)
    preference: float = option(0.1, above=0.0, most=1.0)
    largest_share: float = option(4.0, above=1.0)
    no_effect: float = option(1e-10, above=0.0, most=1.0)
    smallest_share: float = option(1e-6, above=0.0, most=1.0)

    def __post_init__(self) -> None:
        """Check the ranges of the options."""
        require(self, IdentificationError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterTerm:
    """One regrouped parameter and its coefficient (SI) in a base parameter."""

    parameter: str
    coefficient: float

    def __str__(self) -> str:
        # Round to 10 digits first, so that rounding errors do not change the fourth digit.
        magnitude = f"{float(f'{abs(self.coefficient):.10g}'):.4g}"
        sign = "-" if self.coefficient < 0 else "+"
        return (
            f"{sign} {self.parameter}"
            if magnitude == "1"
            else f"{sign} {magnitude} {self.parameter}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseParameter(ReprMixin):
    """A parameter, or a linear combination of parameters, that the forces determine.

    Attributes:
        representative: the parameter with coefficient 1 that represents the combination.
        unit: unit of the representative.
        terms: the parameters that are regrouped with it.
    """

    representative: str
    unit: str
    terms: tuple[ParameterTerm, ...] = ()

    @property
    def name(self) -> str:
        """The combination, such as ``m_platform + 0.5 m_rod``, with coefficients to four digits."""
        return " ".join([self.representative, *map(str, self.terms)])

    def short_name(self, width: int = 48) -> str:
        """Return the name limited to `width` characters, with the number of omitted terms."""
        text = self.name
        for omitted in range(1, len(self.terms) + 1):
            if len(text) <= width:
                break
            terms = " ".join([self.representative, *map(str, self.terms[:-omitted])])
            text = f"{terms} … {omitted} more"
        return text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseParameters(ReprMixin):
    """The base parameters of a regressor Y (m, n): Y p = Y[:, independent] (regrouping p).

    Attributes:
        parameters: names of the n columns.
        independent: (r,) indices of the representatives' columns, ascending.
        regrouping: (r, n) coefficients of the parameters in the base parameters; the identity in
            the independent columns, zero in columns without effect.
        base: the r base parameters.
        no_effect: parameters whose column is zero in these data.
        singular_values: (n_effective,) singular values of the unit-norm columns, largest first.
            The gap between them confirms the rank independently of the pivoting.
        remainders: (n_effective,) largest remainder of the unit-norm columns before each choice.
            The rank is the number of values above the tolerance.
        condition: condition number of the base regressor with unit-norm columns.
        condition_si: condition number of the base regressor in SI units.
        options: options of the rank decision.
    """

    parameters: tuple[str, ...]
    independent: np.ndarray
    regrouping: np.ndarray
    base: tuple[BaseParameter, ...]
    no_effect: tuple[str, ...]
    singular_values: np.ndarray
    remainders: np.ndarray
    condition: float
    condition_si: float
    options: RankOptions

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.base)

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of the base parameters."""
        return tuple(parameter.name for parameter in self.base)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the base parameters."""
        return tuple(parameter.unit for parameter in self.base)

    @property
    def alone(self) -> tuple[str, ...]:
        """Parameters that are identifiable individually."""
        return tuple(parameter.representative for parameter in self.base if not parameter.terms)

    @property
    def combined(self) -> tuple[str, ...]:
        """Parameters that are identifiable only in combinations, in the given order."""
        excluded = {*self.alone, *self.no_effect}
        return tuple(name for name in self.parameters if name not in excluded)

    @property
    def gap(self) -> float | None:
        """Ratio of the last accepted to the first rejected remainder.

        None if every column is independent.
        """
        return _gap(self.remainders, self.rank)

    @property
    def singular_value_gap(self) -> float | None:
        """Ratio of the singular values at the rank, analogous to `gap`."""
        return _gap(self.singular_values, self.rank)

    def regroup(self, parameters: np.ndarray) -> np.ndarray:
        """Return the base parameters' values (..., r) for values (..., n) of the parameters."""
        return np.asarray(parameters) @ self.regrouping.T

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return parameters (..., n) with the same forces as base values (..., r).

        The representatives have the base values, and all other parameters are zero.
        """
        values = np.asarray(values)
        parameters = np.zeros((*values.shape[:-1], len(self.parameters)))
        parameters[..., self.independent] = values
        return parameters

    def mismatch(self, regressor: np.ndarray) -> float:
        """Return the largest relative misfit of the regrouping for another regressor (m, n).

        The misfit of a column is relative to the norm of the column. It is near zero if the
        dependences follow from the mechanism, and large if they are due to poor excitation.
        """
        norms = np.linalg.norm(regressor, axis=0)
        effective = norms > self.options.no_effect * norms.max(initial=0.0)
        misfits = regressor - regressor[:, self.independent] @ self.regrouping
        misfit_norms = np.linalg.norm(misfits, axis=0)
        return float((misfit_norms[effective] / norms[effective]).max(initial=0.0))


def base_parameters(
    regressor: np.ndarray,
    names: Sequence[str],
    units: Sequence[str],
    options: RankOptions | None = None,
) -> BaseParameters:
    """Return the base parameters of a regressor, by rank-revealing QR of its unit-norm columns.

    Every step chooses the first column in the given order whose remainder is at least `preference`
    times the largest, so that earlier parameters represent later ones. The other columns depend on
    the chosen columns, Y_2 = Y_1 B, and p_1 + B p_2 are the base parameters (Gautier 1991,
    Numerical calculation of the base inertial parameters of robots). A column with a coefficient in
    B above `largest_share` replaces the chosen column (Gu and Eisenstat 1996, Efficient algorithms
    for computing a strong rank-revealing QR factorization).

    Args:
        regressor: (m, n) or (N, n_out, n). A matrix with the same R^T R gives the same result, such
            as `RegressionData.triangles`.
        names, units: names and units of the n columns.
        options: tolerances.

    Raises:
        IdentificationError: the regressor is zero, not finite, of the wrong shape, or has no clear
            rank.
    """
    options = options or RankOptions()
    matrix = numbers(regressor, "regressor")
    if matrix.ndim > 2:
        matrix = matrix.reshape(-1, matrix.shape[-1])
    IdentificationError.raise_if_any(_check(matrix, names, units))
    if len(matrix) > matrix.shape[1]:
        matrix = np.asarray(np.linalg.qr(matrix, mode="r"))
    norms = np.linalg.norm(matrix, axis=0)
    effective = np.flatnonzero((norms > options.no_effect * norms.max()) & (norms > 0.0))
    if not len(effective):
        raise IdentificationError.of(
            "regressor",
            f"is zero in all columns ({', '.join(list(names)[:5])}, ...), so its rank is 0",
            "check that the samples contain a motion of the machine, and its units",
        )
    scaled = matrix[:, effective] / norms[effective]
    chosen, remainders = _pivot_order(scaled, options.preference)
    rank = int(np.sum(remainders > options.tolerance))
    if rank < len(remainders) and remainders[rank - 1] < options.least_gap * remainders[rank]:
        raise IdentificationError.of(
            "regressor",
            f"has an ambiguous numerical rank at the tolerance {options.tolerance:.3g}: the norm of "
            f"the remaining columns falls only by a factor of "
            f"{remainders[rank - 1] / remainders[rank]:.3g} after {counted(rank, 'column')}, from "
            f"{remainders[rank - 1]:.3g} to {remainders[rank]:.3g} (required: {options.least_gap:g})",
            "record a motion that excites more, or choose a tolerance within a larger gap",
        )
    basis, triangle, coefficients = _improve_conditioning(
        scaled, np.sort(chosen[:rank]), options.largest_share
    )
    independent = effective[basis]
    indices = [int(k) for k in effective]
    regrouping = np.zeros((rank, len(norms)))
    regrouping[:, effective] = coefficients * norms[effective] / norms[independent][:, None]
    base = []
    for i, representative in enumerate(basis.tolist()):
        terms = tuple(
            ParameterTerm(parameter=names[k], coefficient=float(regrouping[i, k]))
            for column, k in enumerate(indices)
            if column != representative and abs(coefficients[i, column]) >= options.smallest_share
        )
        j = indices[representative]
        base.append(BaseParameter(representative=names[j], unit=units[j], terms=terms))
    return BaseParameters(
        parameters=tuple(names),
        independent=independent,
        regrouping=regrouping,
        base=tuple(base),
        no_effect=tuple(name for k, name in enumerate(names) if k not in set(indices)),
        singular_values=np.linalg.svd(scaled, compute_uv=False),
        remainders=remainders,
        condition=float(np.linalg.cond(triangle)),
        condition_si=float(np.linalg.cond(triangle * norms[independent])),
        options=options,
    )


def _gap(values: np.ndarray, rank: int) -> float | None:
    """Return values[rank - 1] / values[rank]; None if there is no value at `rank`.

    The denominator is at least the rounding error of the first value.
    """
    if rank == len(values):
        return None
    return float(values[rank - 1] / max(values[rank], np.finfo(float).eps * values[0]))


def _pivot_order(columns: np.ndarray, preference: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the order in which columns (m, n) are chosen, and the largest remainder before each.

    The remainders are computed by modified Gram-Schmidt. Its error is
    a rounding error of the unit-norm columns, far below the tolerance.
    """
    remainders = columns.copy()
    count = columns.shape[1]
    order = np.empty(count, dtype=int)
    largest = np.empty(count)
    is_available = np.ones(count, dtype=bool)
    for step in range(count):
        norms = np.where(is_available, np.linalg.norm(remainders, axis=0), 0.0)
        largest[step] = norms.max()
        choice = int(np.argmax(is_available & (norms >= preference * largest[step])))
        order[step] = choice
        is_available[choice] = False
        if norms[choice] > 0.0:
            direction = remainders[:, choice] / norms[choice]
            remainders -= np.outer(direction, direction @ remainders)
    return order, largest


def _improve_conditioning(
    columns: np.ndarray, basis: np.ndarray, largest_share: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Swap columns into the basis until no coefficient exceeds `largest_share`.

    Each swap multiplies the volume of the basis by the size of the coefficient, so the loop ends.

    Returns:
        Indices of the basis (r,) in ascending order; QR factor (r, r) of its columns; coefficients
        (r, n) with columns = (basis columns) coefficients.
    """
    while True:
        q, triangle = np.linalg.qr(columns[:, basis])
        coefficients = solve_triangular(triangle, q.T @ columns)
        coefficients[:, basis] = np.eye(len(basis))
        i, k = np.unravel_index(np.argmax(np.abs(coefficients)), coefficients.shape)
        if abs(coefficients[i, k]) <= largest_share:
            return basis, triangle, coefficients
        basis = np.sort(np.append(np.delete(basis, i), k))


def _check(matrix: np.ndarray, names: Sequence[str], units: Sequence[str]) -> list[Problem]:
    """Return the problems of a regressor and of the names and units of its columns."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        remedy = "give (rows, parameters) or (samples, outputs, parameters), none of them zero"
        return [Problem("regressor", f"has shape {matrix.shape}", remedy)]
    problems = Problems(
        Problem(
            where,
            f"has {counted(len(items), 'entry')}",
            f"give {matrix.shape[1]}, one for each column",
        )
        for where, items in (("names", names), ("units", units))
        if len(items) != matrix.shape[1]
    )
    if not np.isfinite(matrix).all():
        count = int(np.sum(~np.isfinite(matrix)))
        problems.add(
            "regressor",
            f"{count} of {matrix.size} numbers are not finite",
            "repair or remove these samples",
        )
    return problems
