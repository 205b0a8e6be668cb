"""A recursive least-squares fit in square-root form: parameters that are held by what is known, and others that wander.

The fit keeps a triangle R and a vector z with R x = z: R^T R is the inverse of the covariance of x.
New equations W Y x = W f go below the triangle, and QR makes it a triangle again. Between samples
each tracked parameter takes a random step, x+ = x + w, whose variance grows by rate^2 a second; QR
of the equations of x and x+ takes x out. A parameter whose standard deviation has reached its range
takes no step: without excitation its estimate and interval stay.

Source: Bierman 1977, Factorization methods for discrete sequential estimation, chapters V and VI
(square-root information filter).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import solve_triangular

from tauloop.common.errors import IdentificationError, InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.suggestions import unknown_names

#: Share of the largest variance that a direction has at least which is known exactly; and up to
#: which a negative one is an error of the estimated covariance (that of correlated errors is not
#: positive definite in itself).
EXACT, NEGATIVE = 1e-10, 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wander(ReprMixin):
    """How a tracked parameter may change.

    Attributes:
        rate: standard deviation of its change in one second, in the parameter's SI unit.
        range: standard deviation at which it is frozen: no more is forgotten of it.
    """

    rate: float
    range: float


class RecursiveFit:
    """Parameters x with their covariance, renewed by each sample of Y x = f + e.

    Examples:
        >>> import numpy as np
        >>> fit = RecursiveFit(["mass"], noise=[0.1], values=[1.0], covariance=[[0.01]])
        >>> for _ in range(100):
        ...     fit.update([[9.81]], [9.81 * 1.2])
        >>> round(fit.value("mass"), 3)
        1.2
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        noise: Sequence[float],
        values: Sequence[float] | np.ndarray | None = None,
        covariance: Sequence[Sequence[float]] | np.ndarray | None = None,
        wander: Mapping[str, Wander] | None = None,
    ) -> None:
        """Start from what is known.

        Args:
            names: of the n parameters.
            noise: standard deviation of each of the m forces, N or N m.
            values, covariance: of the parameters before the first sample (n,), (n, n); nothing is
                known without them.
            wander: the parameters that may change, by name; the others are constant.

        Raises:
            InputError: names that are none, sizes that do not fit, or a covariance that is not
                positive definite.
        """
        self.names = tuple(names)
        self.wander = dict(wander or {})
        size = len(self.names)
        problems = Problems(
            unknown_names(self.wander, self.names, "{!r} is not a parameter of the fit", "wander")
        )
        if len(set(self.names)) < size:
            problems.add("names", "one is given twice", "name each parameter once")
        if not all(value > 0.0 for value in noise):
            problems.add("noise", "is not positive", "give the standard deviation of each force")
        for name, step in self.wander.items():
            if not (step.rate > 0.0 and step.range > 0.0):
                problems.add(
                    f"wander.{name}",
                    "has no positive rate and range",
                    "leave it out to hold the parameter",
                )
        if (values is None) != (covariance is None):
            problems.add(
                "covariance", "one of values and covariance is given alone", "give both or neither"
            )
        InputError.raise_if_any(problems)
        self.weights = 1.0 / np.asarray(noise, dtype=float)
        tracked = [k for k, name in enumerate(self.names) if name in self.wander]
        #: Places of the parameters in the triangle: those that wander come first.
        self.order = np.array([*tracked, *(k for k in range(size) if k not in tracked)], dtype=int)
        self._rates = np.array([self.wander[self.names[k]].rate for k in tracked])
        self._ranges = np.array([self.wander[self.names[k]].range for k in tracked])
        self.triangle = np.zeros((size, size + 1))
        if values is not None and covariance is not None:
            self.triangle = _known(
                np.asarray(values, float)[self.order], np.asarray(covariance, float), self.order
            )
        self.is_frozen = np.zeros(len(tracked), dtype=bool)

    @property
    def tracked(self) -> tuple[str, ...]:
        """Names of the parameters that wander, in the order of the triangle."""
        return tuple(self.names[k] for k in self.order[: len(self._rates)])

    def update(
        self,
        regressor: object,
        forces: object,
        elapsed: float = 0.0,
        used: Sequence[bool] | np.ndarray | None = None,
    ) -> None:
        """Take one sample.

        Args:
            regressor: Y (m, n).
            forces: f (m,), N or N m.
            elapsed: time since the last sample, s.
            used: which of the forces count (m,); all without it.
        """
        if elapsed > 0.0 and len(self._rates):
            self._step(elapsed)
        rows = np.column_stack(
            [np.asarray(regressor, float)[:, self.order], np.asarray(forces, float)]
        )
        rows *= self.weights[:, None]
        if used is not None:
            rows = rows[np.asarray(used, dtype=bool)]
        if len(rows):
            triangle = np.asarray(np.linalg.qr(np.vstack([self.triangle, rows]), mode="r"))
            self.triangle = triangle[: len(self.names)]

    def _step(self, elapsed: float) -> None:
        """Let the tracked parameters that are not frozen take their random steps."""
        self.is_frozen = self.tracked_deviations >= self._ranges
        moving = np.flatnonzero(~self.is_frozen)
        if not len(moving):
            return
        count, size = len(self._rates), len(self.names)
        # columns: x before the step, x after it, the other parameters, and the right side
        rows = np.zeros((len(moving) + count, len(moving) + size + 1))
        inverse = 1.0 / (self._rates[moving] * np.sqrt(elapsed))
        rows[np.arange(len(moving)), np.arange(len(moving))] = -inverse
        rows[np.arange(len(moving)), len(moving) + moving] = inverse
        rows[len(moving) :, : len(moving)] = self.triangle[:count, moving]
        rest = np.setdiff1d(np.arange(size + 1), moving)
        rows[len(moving) :, len(moving) + rest] = self.triangle[:count, rest]
        triangle = np.asarray(np.linalg.qr(rows, mode="r"))
        self.triangle[:count] = triangle[len(moving) :, len(moving) :]

    @property
    def values(self) -> np.ndarray:
        """Estimates (n,), SI.

        Raises:
            IdentificationError: the samples do not determine all parameters yet.
        """
        self._require_determined()
        values = np.empty(len(self.names))
        values[self.order] = solve_triangular(self.triangle[:, :-1], self.triangle[:, -1])
        return values

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the estimates (n, n), SI.

        Raises:
            IdentificationError: the samples do not determine all parameters yet.
        """
        self._require_determined()
        inverse = solve_triangular(self.triangle[:, :-1], np.eye(len(self.names)))
        covariance = np.empty((len(self.names), len(self.names)))
        covariance[np.ix_(self.order, self.order)] = inverse @ inverse.T
        return covariance

    @property
    def tracked_deviations(self) -> np.ndarray:
        """Standard deviations of the tracked parameters, in the order of `tracked`; infinite where nothing is known."""
        count = len(self._rates)
        if not np.abs(np.diag(self.triangle)).all():
            return np.full(count, np.inf)
        inverse = solve_triangular(self.triangle[:, :-1], np.eye(len(self.names)))[:count]
        return np.asarray(np.linalg.norm(inverse, axis=1))

    def value(self, name: str) -> float:
        """Return the estimate of one parameter."""
        return float(self.values[self._place(name)])

    def deviation(self, name: str) -> float:
        """Return the standard deviation of one parameter."""
        return float(np.sqrt(self.covariance[self._place(name), self._place(name)]))

    def _place(self, name: str) -> int:
        InputError.raise_if_any(
            unknown_names([name], self.names, "{!r} is not a parameter of the fit", "name")
        )
        return self.names.index(name)

    def _require_determined(self) -> None:
        if not np.abs(np.diag(self.triangle)).all():
            what = "the samples do not determine all parameters yet"
            raise IdentificationError.of(
                "values", what, "start from a saved fit, or take more samples"
            )


def _known(values: np.ndarray, covariance: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the triangle (n, n + 1) of parameters that are known with a covariance.

    Raises:
        InputError: the covariance has another size, or is not positive definite.
    """
    if covariance.shape != (len(values), len(values)):
        what = f"has shape {covariance.shape} for {len(values)} parameters"
        raise InputError.of("covariance", what, "give a row and a column for each")
    ordered = covariance[np.ix_(order, order)]
    scale = np.sqrt(np.maximum(np.diag(ordered), 0.0))
    scale = np.maximum(scale, EXACT * np.maximum(np.abs(values), scale.max()))
    sizes, directions = np.linalg.eigh(ordered / np.outer(scale, scale))
    if not sizes.min() > -NEGATIVE * sizes.max():
        what = "is not positive definite"
        raise InputError.of("covariance", what, "give the covariance of a fit of base parameters")
    # directions that are known exactly, up to rounding, are known to a small share
    sizes = np.maximum(sizes, EXACT * sizes.max())
    whole = (directions / np.sqrt(sizes)).T / scale
    triangle = np.linalg.qr(whole, mode="r")
    return np.column_stack([triangle, triangle @ values])
