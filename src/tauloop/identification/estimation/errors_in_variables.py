"""Estimators for noise in the regressor: total least squares and instrumental variables.

Source: Golub and Van Loan 1980, An analysis of the total least squares problem; Janot, Vandanjon
and Gautier 2014, A generic instrumental variable approach for industrial robot identification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError
from tauloop.common.options import option
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.identification.estimation.base_columns import BaseRegression, base_columns
from tauloop.identification.estimation.error_models import EstimatingEquations
from tauloop.identification.estimation.estimators import (
    ROUNDING_SHARE,
    Estimate,
    Estimator,
    WeightedLeastSquares,
    white,
)

#: Instruments are weak if their smallest canonical correlation with the regressor is below this
#: value.
MIN_INSTRUMENT_CORRELATION = 0.1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TotalLeastSquares(Estimator):
    """Total least squares, for errors in the base regressor as well as in the forces.

    The method finds the smallest corrections dY and df of regressor and forces that satisfy the
    equations exactly: min |[dY D^-1, df]| with (W Y + dY) p = W f + df, where W are the weights of
    the outputs. The solution is the last right singular vector of [W Y D^-1, W f] (Golub and Van
    Loan 1980, An analysis of the total least squares problem; Gautier, Vandanjon and Presse 1994,
    Identification of inertial and drive gain parameters of robots). The diagonal matrix D contains
    the columns' errors in units of the force noise: `column_error` times the root mean square of
    each column, after the outputs are weighted by the noise of weighted least squares.

    The columns' errors are assumed to be independent of each other. This assumption does not hold
    for columns from the same filtered position; compare the result with `InstrumentalVariables`.

    Attributes:
        column_error: error of each column as a fraction of its root mean square, such as 0.01.
    """

    column_error: float = option(
        above=0.0,
        below=1.0,
        remedy="give a fraction of the column, above 0 and below 1, such as 0.01",
    )

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`.

        Raises:
            IdentificationError: the assumed errors of the columns hide a direction of the
                parameters.
        """
        weighted = WeightedLeastSquares().estimate_from(regression)
        rows, errors = self._rows(regression, weighted.weights)
        smallest = np.linalg.svd(rows[:, :-1] / errors, compute_uv=False)[-1]
        scaled = rows / np.append(errors, 1.0)
        _, singular_values, directions = np.linalg.svd(scaled, full_matrices=False)
        if not singular_values[-1] < (1.0 - 1e-9) * smallest:
            raise IdentificationError.of(
                "TotalLeastSquares.column_error",
                f"column errors of {100 * self.column_error:g} % hide a direction of the parameters: its "
                f"singular value {smallest:.3g} is not above that of the errors, "
                f"{singular_values[-1]:.3g}",
                "use smaller column errors, or record a motion that excites more",
            )
        values = -directions[-1, :-1] / directions[-1, -1] / errors
        residual = regression.residual(values)
        freedom = np.maximum(regression.samples - len(values) / residual.shape[1], 1.0)
        noise = np.sqrt(np.sum(residual**2, axis=0) / freedom)
        estimate = replace(weighted, values=values, noise=noise)
        return white(self.equations(regression, estimate), estimate)

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z = W^2 (Y + dY), with the corrected regressor.

        The correction is dY = D^2 p e / (1 + |D p|^2) with the weighted residual e.
        """
        weights = estimate.weights
        _, errors = self._rows(regression, weights)
        residual = regression.residual(estimate.values) * weights
        direction = errors**2 * estimate.values / (1.0 + np.sum((errors * estimate.values) ** 2))
        corrected = regression.regressor * weights[:, None] + residual[:, :, None] * direction
        return np.asarray(corrected * weights[:, None])

    def _rows(
        self, regression: BaseRegression, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the triangle of [W Y, W f] and the errors (r,) of the columns.

        The errors are in units of the weighted forces' noise, which is 1.
        """
        triangles = regression.triangles
        weighted = (weights[:, None, None] * triangles).reshape(-1, triangles.shape[-1])
        rows = np.asarray(np.linalg.qr(weighted, mode="r"))
        column_rms = np.linalg.norm(rows[:, :-1], axis=0) / np.sqrt(regression.samples.sum())
        return rows, self.column_error * column_rms


#: Function that simulates the closed loop with parameters (n_p,), the values of all columns of the
#: regressor, and returns instruments (N, n_out, n_p).
Simulation = Callable[[np.ndarray], np.ndarray]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InstrumentalVariables(Estimator):
    """Instrumental variables (IDIM-IV), with instruments Z that are free of measurement noise.

    The estimate is p = (Z^T W^2 Y)^-1 Z^T W^2 f. Z is the regressor of a motion without noise:
    either the commanded motion (ideal tracking), or the motion of the machine simulated in closed
    loop with the current parameters, repeated until the parameters converge (Janot, Vandanjon and
    Gautier 2014, A generic instrumental variable approach for industrial robot identification).
    Position noise biases least squares but not this estimate.

    Attributes:
        instruments_of: regressor (N, n_out, n_p) of the noise-free motion, at the samples and with
            the decimation of the data; or a `Simulation`, which computes it from parameters.
        reweightings: number of times that the weights of the outputs are updated.
        tolerance: the simulation is repeated until no parameter changes by more than this fraction
            of its standard deviation.
        repetitions: maximum number of simulations.
    """

    instruments_of: np.ndarray | Simulation
    reweightings: int = 3
    tolerance: float = 1e-3
    repetitions: int = 20

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`.

        Raises:
            IdentificationError: the instruments have a wrong shape or hardly correlate with the
                regressor, or the parameters do not converge.
        """
        estimate = WeightedLeastSquares().estimate_from(regression)
        if not callable(self.instruments_of):
            return self._solve(regression, estimate)
        for _ in range(self.repetitions):
            previous = estimate.values
            estimate = self._solve(regression, estimate)
            changes = np.abs(estimate.values - previous)
            if np.all(changes <= self.tolerance * estimate.standard_deviations):
                return estimate
        raise IdentificationError.of(
            "InstrumentalVariables",
            f"the parameters do not converge in {counted(self.repetitions, 'simulation')}",
            "start from better parameters, allow more simulations (`repetitions`), or use the "
            "commanded motion",
        )

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z W^2."""
        return np.asarray(
            self._columns(regression, estimate.values) * estimate.weights[:, None] ** 2
        )

    def diagnostics(self, regression: BaseRegression, estimate: Estimate) -> tuple[Diagnostic, ...]:
        """See `Estimator`: the smallest canonical correlation of instruments and regressor.

        Both are weighted. The correlation is 1 for a motion without noise. It is 0 for instruments
        that are uncorrelated with some direction of the parameters (weak instruments: Bound, Jaeger
        and Baker 1995). If the noise of a column is a times as large as the column, the square of
        the correlation is 1 / (1 + a^2).
        """
        rank = regression.regressor.shape[-1]
        spaces = [
            np.linalg.qr((columns * estimate.weights[:, None]).reshape(-1, rank))[0]
            for columns in (self._columns(regression, estimate.values), regression.regressor)
        ]
        smallest = float(np.linalg.svd(spaces[0].T @ spaces[1], compute_uv=False)[-1])
        return (
            diagnostic(
                "least correlation of the instruments with the regressor (canonical)",
                smallest,
                at_least=MIN_INSTRUMENT_CORRELATION,
                advice="the instruments hardly determine some parameters: give the commanded motion of this log, "
                "filter the positions more, or record a motion that excites more",
            ),
        )

    def _solve(self, regression: BaseRegression, start: Estimate) -> Estimate:
        """Return the instrumental-variable estimate with instruments from the values of `start`."""
        columns = self._columns(regression, start.values)
        regressor = regression.regressor
        forces = regression.forces
        rank = regressor.shape[-1]
        rounding = ROUNDING_SHARE * np.sqrt(np.mean(forces**2, axis=0))
        min_noise = np.maximum(rounding, np.finfo(float).tiny)
        freedom = np.maximum(regression.samples - rank / forces.shape[1], 1.0)
        noise = start.noise
        values = start.values
        weights = start.weights
        for _ in range(self.reweightings):
            weights = 1.0 / np.maximum(noise, min_noise)
            weighted = (columns * weights[:, None] ** 2).reshape(-1, rank)
            q, triangle = np.linalg.qr(weighted)
            product = q.T @ regressor.reshape(-1, rank)
            _require_strong(product, triangle)
            values = np.linalg.solve(product, q.T @ forces.ravel())
            noise = np.sqrt(np.sum((forces - regressor @ values) ** 2, axis=0) / freedom)
        estimate = replace(start, values=values, noise=noise, weights=weights)
        equations = EstimatingEquations.of(columns * weights[:, None] ** 2, regression, values)
        return white(equations, estimate)

    def _columns(self, regression: BaseRegression, values: np.ndarray) -> np.ndarray:
        """Return the base columns (N, n_out, r) of the noise-free regressor."""
        data = regression.data
        if callable(self.instruments_of):
            regressor = self.instruments_of(data.expand(regression.base.spread(values)))
        else:
            regressor = self.instruments_of
        has_shape = np.shape(regressor) == data.regressor.shape
        if not has_shape or not np.isfinite(regressor).all():
            raise IdentificationError.of(
                "InstrumentalVariables.instruments_of",
                "contains values that are not finite"
                if has_shape
                else f"has shape {np.shape(regressor)}",
                f"give finite values of shape {data.regressor.shape}, like the training data's regressor",
            )
        rows = np.asarray(regressor, dtype=float)
        if data.present is not None:
            rows = np.where(data.present[:, :, None], rows, 0.0)
        return base_columns(data, rows, regression.base)


def _require_strong(product: np.ndarray, triangle: np.ndarray) -> None:
    """Raise an error if the instruments hardly correlate with the regressor.

    The product of instruments and regressor is then nearly singular.

    Args:
        product: product (r, r) of orthonormal instruments and the regressor.
        triangle: (r, r) QR factor of the weighted instruments.
    """
    scaled = product / np.linalg.norm(product, axis=0)
    singular_values = np.linalg.svd(scaled, compute_uv=False)
    is_singular = singular_values[-1] < 1e-8 * singular_values[0]
    if np.abs(np.diag(triangle)).min() == 0.0 or is_singular:
        raise IdentificationError.of(
            "InstrumentalVariables.instruments_of",
            "the instruments do not determine all parameters: the smallest singular value of their "
            "product "
            f"with the regressor is {singular_values[-1] / singular_values[0]:.3g} of the largest",
            "give the regressor of the same motion, sample by sample, without noise",
        )
