"""Base parameters: what the forces can tell of the parameters, by rank-revealing QR, named by their regrouping.

Source: Gautier 1991, Numerical calculation of the base inertial parameters of robots; Gautier and
Khalil 1990, Direct calculation of minimum set of inertial parameters of serial robots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """How the rank is decided and the base parameters are chosen. All figures are for columns of unit norm.

    Attributes:
        tolerance: a column is independent when what is left of it after taking out the columns
            chosen before is larger than this.
        least_gap: least ratio of the last accepted to the first refused of these remainders; below
            it the rank is a matter of taste and `base_parameters` refuses to decide.
        preference: of the columns whose remainder is at least this share of the largest, the first
            in the given order is chosen. 1 is ordinary column pivoting, small values keep the given
            order.
        largest_share: a column that depends on a chosen one with a larger share takes its place, so
            that keeping the given order does not spoil the conditioning.
        no_effect: a column whose norm (SI, not scaled) is at most this share of the largest norm
            has no effect.
        smallest_share: a term of a regrouping is named when it is at least this share of its own
            column.
    """

    tolerance: float = option(1e-8, above=0.0, most=1.0)
    least_gap: float = option(10.0, above=1.0)
    preference: float = option(0.1, above=0.0, most=1.0)
    largest_share: float = option(4.0, above=1.0)
    no_effect: float = option(1e-10, above=0.0, most=1.0)
    smallest_share: float = option(1e-6, above=0.0, most=1.0)

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        require(self, IdentificationError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One regrouped parameter and its coefficient (SI) in a base parameter."""

    parameter: str
    coefficient: float

    def __str__(self) -> str:
        # rounding errors must not tip the fourth digit
        size = f"{float(f'{abs(self.coefficient):.10g}'):.4g}"
        return f"{'-' if self.coefficient < 0 else '+'} {self.parameter if size == '1' else f'{size} {self.parameter}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseParameter(ReprMixin):
    """A parameter, or a linear combination of parameters, that the forces determine.

    Attributes:
        representative: the parameter that stands for the combination; its coefficient is 1.
        unit: unit of the representative.
        terms: the parameters regrouped with it.
    """

    representative: str
    unit: str
    terms: tuple[Term, ...] = ()

    @property
    def name(self) -> str:
        """The whole combination, such as ``m_platform + 0.5 m_rod``; coefficients to four digits."""
        return " ".join([self.representative, *map(str, self.terms)])

    def short_name(self, width: int = 48) -> str:
        """The name with as many terms as fit into `width` characters, and the number of the others."""
        text = self.name
        for dropped in range(1, len(self.terms) + 1):
            if len(text) <= width:
                break
            text = (
                " ".join([self.representative, *map(str, self.terms[:-dropped])])
                + f" … {dropped} more"
            )
        return text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseParameters(ReprMixin):
    """The base parameters of a regressor Y (m, n): Y p = Y[:, independent] (regrouping p).

    Attributes:
        parameters: names of the n columns.
        independent: (r,) columns of the representatives, in the given order.
        regrouping: (r, n); the identity in the independent columns, zero in columns without effect.
        base: one entry per base parameter.
        no_effect: parameters whose column is zero on these data.
        singular_values: (n_effective,) of the unit-norm columns, largest first; a second route to
            the rank.
        remainders: (n_effective,) largest remainder before each choice, unit-norm columns; the rank
            is the number above the tolerance.
        condition: condition number of the base regressor with unit-norm columns.
        condition_si: the same in SI units as they are.
        options: how the rank was decided.
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
        """Whole names of the base parameters."""
        return tuple(parameter.name for parameter in self.base)

    @property
    def units(self) -> tuple[str, ...]:
        """Their units."""
        return tuple(parameter.unit for parameter in self.base)

    @property
    def alone(self) -> tuple[str, ...]:
        """Parameters that are identifiable by themselves."""
        return tuple(parameter.representative for parameter in self.base if not parameter.terms)

    @property
    def combined(self) -> tuple[str, ...]:
        """Parameters that are identifiable in combinations only, in the given order."""
        apart = {*self.alone, *self.no_effect}
        return tuple(name for name in self.parameters if name not in apart)

    @property
    def gap(self) -> float | None:
        """Ratio of the last accepted to the first refused remainder; None when every column is independent."""
        return _gap(self.remainders, self.rank)

    @property
    def singular_value_gap(self) -> float | None:
        """The same ratio of the singular values."""
        return _gap(self.singular_values, self.rank)

    def regroup(self, parameters: np.ndarray) -> np.ndarray:
        """Values (..., r) of the base parameters from values (..., n) of the parameters."""
        return np.asarray(parameters) @ self.regrouping.T

    def spread(self, values: np.ndarray) -> np.ndarray:
        """One set of parameters (..., n) that gives the same forces as base values (..., r): all others zero."""
        values = np.asarray(values)
        parameters = np.zeros((*values.shape[:-1], len(self.parameters)))
        parameters[..., self.independent] = values
        return parameters

    def mismatch(self, regressor: np.ndarray) -> float:
        """How badly the regrouping fits another regressor (m, n): the largest misfit of a column, by its norm.

        Near zero where the dependences are those of the mechanism; large where they came from poor
        excitation.
        """
        norms = np.linalg.norm(regressor, axis=0)
        effective = norms > self.options.no_effect * norms.max(initial=0.0)
        misfit = np.linalg.norm(
            regressor - regressor[:, self.independent] @ self.regrouping, axis=0
        )
        return float((misfit[effective] / norms[effective]).max(initial=0.0))


def base_parameters(
    regressor: np.ndarray,
    names: Sequence[str],
    units: Sequence[str],
    options: RankOptions | None = None,
) -> BaseParameters:
    """Find the base parameters of a regressor by rank-revealing QR of its unit-norm columns.

    At every step the first column in the given order whose remainder is at least `preference` times
    the largest is taken, so that earlier parameters represent later ones. The columns left over
    depend on the chosen ones, Y_2 = Y_1 B, and p_1 + B p_2 are the base parameters (Gautier 1991,
    Numerical calculation of the base inertial parameters of robots). A column whose share in B is
    above `largest_share` takes the place of the chosen one (Gu and Eisenstat 1996, Efficient
    algorithms for computing a strong rank-revealing QR factorization).

    Args:
        regressor: (m, n), or (N, n_out, n); any matrix with the same R^T R will do, such as
            `RegressionData.triangles`.
        names, units: of the n columns.
        options: tolerances.

    Raises:
        IdentificationError: the regressor is zero, not finite, of the wrong shape, or has no clear
            rank.
    """
    options = options or RankOptions()
    matrix = numbers(regressor, "regressor")
    matrix = matrix.reshape(-1, matrix.shape[-1]) if matrix.ndim > 2 else matrix
    IdentificationError.raise_if_any(_check(matrix, names, units))
    if len(matrix) > matrix.shape[1]:
        matrix = np.asarray(np.linalg.qr(matrix, mode="r"))
    norms = np.linalg.norm(matrix, axis=0)
    effective = np.flatnonzero((norms > options.no_effect * norms.max()) & (norms > 0.0))
    if not len(effective):
        raise IdentificationError.of(
            "regressor",
            f"is zero in all columns ({', '.join(list(names)[:5])}, ...), so its rank is 0",
            "check that the samples hold the motion of the machine, and its units",
        )
    scaled = matrix[:, effective] / norms[effective]
    chosen, remainders = _threshold_pivoting(scaled, options.preference)
    rank = int(np.sum(remainders > options.tolerance))
    if rank < len(remainders) and remainders[rank - 1] < options.least_gap * remainders[rank]:
        raise IdentificationError.of(
            "regressor",
            f"has no clear rank: at the tolerance {options.tolerance:.3g} the remainders of unit-norm columns "
            f"fall from {remainders[rank - 1]:.3g} ({rank} columns) only to {remainders[rank]:.3g}, by a factor of "
            f"{remainders[rank - 1] / remainders[rank]:.3g} (at least {options.least_gap:g} is asked)",
            "record a motion that excites more, or set the tolerance inside a larger gap",
        )
    basis, triangle, shares = _well_conditioned(
        scaled, np.sort(chosen[:rank]), options.largest_share
    )
    independent = effective[basis]
    indices = [int(k) for k in effective]
    regrouping = np.zeros((rank, len(norms)))
    regrouping[:, effective] = shares * norms[effective] / norms[independent][:, None]
    return BaseParameters(
        parameters=tuple(names),
        independent=independent,
        regrouping=regrouping,
        base=tuple(
            BaseParameter(
                representative=names[j],
                unit=units[j],
                terms=tuple(
                    Term(parameter=names[k], coefficient=float(regrouping[i, k]))
                    for column, k in enumerate(indices)
                    if k != j and abs(shares[i, column]) >= options.smallest_share
                ),
            )
            for i, j in enumerate(int(j) for j in independent)
        ),
        no_effect=tuple(name for k, name in enumerate(names) if k not in set(indices)),
        singular_values=np.linalg.svd(scaled, compute_uv=False),
        remainders=remainders,
        condition=float(np.linalg.cond(triangle)),
        condition_si=float(np.linalg.cond(triangle * norms[independent])),
        options=options,
    )


def _gap(values: np.ndarray, rank: int) -> float | None:
    """Ratio of value number `rank` to the next; a next one below rounding counts as rounding."""
    if rank == len(values):
        return None
    return float(values[rank - 1] / max(values[rank], np.finfo(float).eps * values[0]))


def _threshold_pivoting(columns: np.ndarray, preference: float) -> tuple[np.ndarray, np.ndarray]:
    """Order in which columns (m, n) are chosen, and the largest remainder before each choice (n,).

    Modified Gram-Schmidt on the remainders: its error stays at rounding of the unit columns, far
    below the tolerance.
    """
    rest = columns.copy()
    count = columns.shape[1]
    order, largest = np.empty(count, dtype=int), np.empty(count)
    waiting = np.ones(count, dtype=bool)
    for step in range(count):
        norms = np.where(waiting, np.linalg.norm(rest, axis=0), 0.0)
        largest[step] = norms.max()
        pick = int(np.argmax(waiting & (norms >= preference * largest[step])))
        order[step] = pick
        waiting[pick] = False
        if norms[pick] > 0.0:
            direction = rest[:, pick] / norms[pick]
            rest -= np.outer(direction, direction @ rest)
    return order, largest


def _well_conditioned(
    columns: np.ndarray, basis: np.ndarray, largest_share: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Swap columns into the basis until no share is above the largest; each swap widens the basis by that factor.

    Returns:
        basis (r,) in ascending order, triangle of its columns (r, r), shares (r, n): columns =
        (basis columns) shares.
    """
    while True:
        q, triangle = np.linalg.qr(columns[:, basis])
        shares = solve_triangular(triangle, q.T @ columns)
        shares[:, basis] = np.eye(len(basis))
        i, k = np.unravel_index(np.argmax(np.abs(shares)), shares.shape)
        if abs(shares[i, k]) <= largest_share:
            return basis, triangle, shares
        basis = np.sort(np.append(np.delete(basis, i), k))


def _check(matrix: np.ndarray, names: Sequence[str], units: Sequence[str]) -> list[Problem]:
    if matrix.ndim != 2 or 0 in matrix.shape:
        remedy = "give (rows, parameters) or (samples, outputs, parameters), none of them zero"
        return [Problem("regressor", f"has shape {matrix.shape}", remedy)]
    problems = Problems(
        Problem(where, f"has {len(items)} entries", f"give {matrix.shape[1]}, one for each column")
        for where, items in (("names", names), ("units", units))
        if len(items) != matrix.shape[1]
    )
    if not np.isfinite(matrix).all():
        count = int(np.sum(~np.isfinite(matrix)))
        problems.add(
            "regressor",
            f"{count} of {matrix.size} numbers are not finite",
            "repair or leave out these samples",
        )
    return problems
