"""Recursive least squares in square-root form, with constant and slowly changing parameters.

The fit stores a triangle R and a vector z with R x = z, where R^T R is the inverse of the
covariance of x. New equations W Y x = W f are stacked below the triangle, and a QR decomposition
restores the triangular form. Between samples each tracked parameter changes by a random step, x+ =
x + w, whose variance is rate^2 times the elapsed time. A QR decomposition of the equations of x and
x+ eliminates x. A parameter is frozen while its standard deviation has reached its range, so its
estimate and interval stay constant without excitation.

Source: Bierman 1977, Factorization methods for discrete sequential estimation, chapters V and VI
(square-root information filter).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import solve_triangular

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.suggestions import unknown_names

#: Variance of directions that are known exactly, as a fraction of the largest variance.
EXACT_VARIANCE_SHARE = 1e-10
#: Negative variances up to this fraction of the largest are accepted, because the estimated
#: covariance for correlated errors need not be positive definite.
MAX_NEGATIVE_SHARE = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wander(ReprMixin):
    """The random walk of a tracked parameter.

    Attributes:
        rate: standard deviation of the parameter's change in one second, in its SI unit.
        range: standard deviation at which the parameter is frozen.
    """

    rate: float
    range: float


class RecursiveFit:
    """Estimates of parameters x and their covariance, updated with each sample Y x = f + e.

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
        """Set up the fit before the first sample.

        Args:
            names: names of the n parameters.
            noise: standard deviation of each of the m forces, N or N m.
            values, covariance: (n,) and (n, n) values and covariance of the parameters before the
                first sample; when not given, nothing is known.
            wander: random walks of tracked parameters, by name; the others are constant.

        Raises:
            InputError: names are unknown, sizes do not match, or the covariance is not positive
                definite.
        """
        self.names = tuple(names)
        self.wander = dict(wander or {})
        size = len(self.names)
        problems = Problems(
            unknown_names(self.wander, self.names, "{!r} is not a parameter of the fit", "wander")
        )
        if len(set(self.names)) < size:
            repeated = size - len(set(self.names))
            what = f"{repeated} of {size} names are repeated"
            problems.add("names", what, "name each parameter once")
        if not all(value > 0.0 for value in noise):
            problems.add(
                "noise",
                f"contains {min(noise):g}, which is not positive",
                "give the standard deviation of each force",
            )
        for name, step in self.wander.items():
            if not (step.rate > 0.0 and step.range > 0.0):
                problems.add(
                    f"wander.{name}",
                    f"has rate {step.rate:g} and range {step.range:g}, which must be positive",
                    "remove it if the parameter is constant",
                )
        if (values is None) != (covariance is None):
            problems.add(
                "covariance",
                "only one of values and covariance is given",
                "give both or neither",
            )
        InputError.raise_if_any(problems)
        self.weights = 1.0 / np.asarray(noise, dtype=float)
        tracked = [k for k, name in enumerate(self.names) if name in self.wander]
        #: Order of the parameters in the triangle: tracked parameters first.
        self.order = np.array([*tracked, *(k for k in range(size) if k not in tracked)], dtype=int)
        self._rates = np.array([self.wander[self.names[k]].rate for k in tracked])
        self._ranges = np.array([self.wander[self.names[k]].range for k in tracked])
        self.triangle = np.zeros((size, size + 1))
        if values is not None and covariance is not None:
            self.triangle = _information_triangle(
                np.asarray(values, float)[self.order], np.asarray(covariance, float), self.order
            )
        self.is_frozen = np.zeros(len(tracked), dtype=bool)

    @property
    def tracked(self) -> tuple[str, ...]:
        """Names of the tracked parameters, in the order of the triangle."""
        return tuple(self.names[k] for k in self.order[: len(self._rates)])

    def update(
        self,
        regressor: object,
        forces: object,
        elapsed: float = 0.0,
        used: Sequence[bool] | np.ndarray | None = None,
    ) -> None:
        """Update the parameters with one sample.

        Args:
            regressor: Y (m, n).
            forces: f (m,), N or N m.
            elapsed: time since the last sample, s.
            used: (m,) True for forces that are used; all are used when not given.
        """
        if elapsed > 0.0 and len(self._rates):
            self._random_step(elapsed)
        rows = np.column_stack(
            [np.asarray(regressor, float)[:, self.order], np.asarray(forces, float)]
        )
        rows *= self.weights[:, None]
        if used is not None:
            rows = rows[np.asarray(used, dtype=bool)]
        if len(rows):
            triangle = np.asarray(np.linalg.qr(np.vstack([self.triangle, rows]), mode="r"))
            self.triangle = triangle[: len(self.names)]

    def _random_step(self, elapsed: float) -> None:
        """Apply the random steps of the tracked parameters that are not frozen."""
        self.is_frozen = self.tracked_deviations >= self._ranges
        moving = np.flatnonzero(~self.is_frozen)
        steps = len(moving)
        if not steps:
            return
        count, size = len(self._rates), len(self.names)
        # Columns: moving parameters before the step, all parameters after it, the right-hand side.
        rows = np.zeros((steps + count, steps + size + 1))
        inverse = 1.0 / (self._rates[moving] * np.sqrt(elapsed))
        diagonal = np.arange(steps)
        rows[diagonal, diagonal] = -inverse
        rows[diagonal, steps + moving] = inverse
        rows[steps:, :steps] = self.triangle[:count, moving]
        others = np.setdiff1d(np.arange(size + 1), moving)
        rows[steps:, steps + others] = self.triangle[:count, others]
        triangle = np.asarray(np.linalg.qr(rows, mode="r"))
        self.triangle[:count] = triangle[steps:, steps:]

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
        """Standard deviations of the tracked parameters, in the order of `tracked`.

        They are infinite as long as the samples do not determine all parameters.
        """
        count = len(self._rates)
        if not np.abs(np.diag(self.triangle)).all():
            return np.full(count, np.inf)
        inverse = solve_triangular(self.triangle[:, :-1], np.eye(len(self.names)))[:count]
        return np.asarray(np.linalg.norm(inverse, axis=1))

    def value(self, name: str) -> float:
        """Return the estimate of one parameter."""
        return float(self.values[self._index(name)])

    def deviation(self, name: str) -> float:
        """Return the standard deviation of one parameter."""
        return float(np.sqrt(self.covariance[self._index(name), self._index(name)]))

    def _index(self, name: str) -> int:
        """Return the index of a parameter."""
        InputError.raise_if_any(
            unknown_names([name], self.names, "{!r} is not a parameter of the fit", "name")
        )
        return self.names.index(name)

    def _require_determined(self) -> None:
        """Raise an error if the samples do not determine all parameters yet."""
        undetermined = int(np.sum(np.diag(self.triangle) == 0.0))
        if undetermined:
            raise IdentificationError.of(
                "values",
                f"the samples do not determine {undetermined} of {len(self.names)} parameters yet",
                "start from a saved fit, or use more samples",
            )


def _information_triangle(
    values: np.ndarray, covariance: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Return the triangle (n, n + 1) of parameters with a known covariance.

    Args:
        values: (n,) in the order of the triangle.
        covariance: (n, n) in the order of the names.
        order: order of the triangle.

    Raises:
        InputError: the covariance has a wrong size, or is not positive definite.
    """
    if covariance.shape != (len(values), len(values)):
        raise InputError.of(
            "covariance",
            f"has shape {covariance.shape} for {counted(len(values), 'parameter')}",
            "give a row and a column for each parameter",
        )
    ordered = covariance[np.ix_(order, order)]
    scale = np.sqrt(np.maximum(np.diag(ordered), 0.0))
    scale = np.maximum(scale, EXACT_VARIANCE_SHARE * np.maximum(np.abs(values), scale.max()))
    sizes, directions = np.linalg.eigh(ordered / np.outer(scale, scale))
    if not sizes.min() > -MAX_NEGATIVE_SHARE * sizes.max():
        raise InputError.of(
            "covariance",
            f"is not positive definite: its smallest scaled eigenvalue is {sizes.min():.3g}",
            "give the covariance of a fit of base parameters",
        )
    sizes = np.maximum(sizes, EXACT_VARIANCE_SHARE * sizes.max())
    root = (directions / np.sqrt(sizes)).T / scale
    triangle = np.linalg.qr(root, mode="r")
    return np.column_stack([triangle, triangle @ values])
