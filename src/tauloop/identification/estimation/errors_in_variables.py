"""Noise in the regressor: total least squares and instrumental variables.

Source: Golub and Van Loan 1980, An analysis of the total least squares problem; Janot, Vandanjon
and Gautier 2014, A generic instrumental variable approach for industrial robot identification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

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

#: Instruments with a smaller correlation with the regressor are weak.
WEAK = 0.1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TotalLeastSquares(Estimator):
    """Errors in the base regressor beside those of the forces: the smallest corrections of both that make them agree.

    min |[dY D^-1, df]| with (W Y + dY) p = W f + df, by the last right singular vector of [W Y
    D^-1, W f] (Golub and Van Loan 1980, An analysis of the total least squares problem; Gautier,
    Vandanjon and Presse 1994, Identification of inertial and drive gain parameters of robots). D
    holds the columns' errors in units of the force noise: `column_error` of each column's own root
    mean square, after outputs are weighted by the noise of weighted least squares. The columns'
    errors are taken as independent of each other, which those of one filtered position are not:
    compare instrumental variables.

    Attributes:
        column_error: error of each column as a share of its root mean square, such as 0.01.
    """

    column_error: float = option(
        above=0.0,
        below=1.0,
        remedy="give it as a share of the column, above 0 and below 1, such as 0.01",
    )

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`.

        Raises:
            IdentificationError: the errors assumed of the columns leave nothing of some direction.
        """
        weighted = WeightedLeastSquares().estimate_from(regression)
        rows, errors = self._rows(regression, weighted.weights)
        sizes = np.linalg.svd(rows[:, :-1] / errors, compute_uv=False)
        _, both, directions = np.linalg.svd(rows / np.append(errors, 1.0), full_matrices=False)
        if not both[-1] < (1.0 - 1e-9) * sizes[-1]:
            raise IdentificationError.of(
                "TotalLeastSquares.column_error",
                f"errors of {100 * self.column_error:g} % hide a direction of the parameters: its singular "
                f"value {sizes[-1]:.3g} is not above that of the errors, {both[-1]:.3g}",
                "take smaller column errors, or record a motion that excites more",
            )
        values = -directions[-1, :-1] / directions[-1, -1] / errors
        residual = regression.residual(values)
        freedom = np.maximum(regression.samples - len(values) / residual.shape[1], 1.0)
        noise = np.sqrt(np.sum(residual**2, axis=0) / freedom)
        estimate = replace(weighted, values=values, noise=noise)
        return white(self.equations(regression, estimate), estimate)

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z = W^2 (Y + dY), the corrected regressor, dY = D^2 p e / (1 + |D p|^2) with weighted e."""
        weights = estimate.weights
        _, errors = self._rows(regression, weights)
        residual = regression.residual(estimate.values) * weights
        pull = errors**2 * estimate.values / (1.0 + np.sum((errors * estimate.values) ** 2))
        corrected = regression.regressor * weights[:, None] + residual[:, :, None] * pull
        return np.asarray(corrected * weights[:, None])

    def _rows(
        self, regression: BaseRegression, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Triangle of [W Y, W f], and errors (r,) of the columns in units of the weighted forces' noise, which is 1."""
        triangles = regression.triangles
        whole = (weights[:, None, None] * triangles).reshape(-1, triangles.shape[-1])
        rows = np.asarray(np.linalg.qr(whole, mode="r"))
        equations = regression.samples.sum()
        return rows, self.column_error * np.linalg.norm(rows[:, :-1], axis=0) / np.sqrt(equations)


#: Makes instruments (N, n_out, n_p) from values of all columns of the regressor (n_p,): a simulated
#: closed loop.
Simulation = Callable[[np.ndarray], np.ndarray]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InstrumentalVariables(Estimator):
    """IDIM-IV: p = (Z^T W^2 Y)^-1 Z^T W^2 f with instruments Z that are free of the measurement's noise.

    Z is the regressor of a motion without noise: the commanded one (ideal tracking), or that of the
    machine simulated in closed loop with the parameters found so far, repeated until they rest
    (Janot, Vandanjon and Gautier 2014, A generic instrumental variable approach for industrial
    robot identification). Noise of the positions then does not bias the parameters, as it does in
    least squares.

    Attributes:
        instruments_of: regressor (N, n_out, n_p) of the noise-free motion, at the samples and with
            the decimation of the data; or a `Simulation`, which makes it from parameters.
        reweightings: how many times the weights of the outputs are renewed.
        tolerance: a simulation is repeated until no parameter changes by more than this share of
            its standard deviation.
        repetitions: at most so many.
    """

    instruments_of: np.ndarray | Simulation
    reweightings: int = 3
    tolerance: float = 1e-3
    repetitions: int = 20

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`.

        Raises:
            IdentificationError: the instruments have another shape, hardly follow the regressor, or
                the repetition does not come to rest.
        """
        estimate = WeightedLeastSquares().estimate_from(regression)
        if not callable(self.instruments_of):
            return self._solve(regression, estimate)
        for _ in range(self.repetitions):
            last, estimate = estimate, self._solve(regression, estimate)
            if np.all(
                np.abs(estimate.values - last.values)
                <= self.tolerance * estimate.standard_deviations
            ):
                return estimate
        raise IdentificationError.of(
            "InstrumentalVariables",
            f"the parameters do not come to rest in {self.repetitions} simulations",
            "start from better parameters, allow more repetitions, or use the commanded motion",
        )

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z W^2."""
        return np.asarray(
            self._columns(regression, estimate.values) * estimate.weights[:, None] ** 2
        )

    def diagnostics(self, regression: BaseRegression, estimate: Estimate) -> tuple[Diagnostic, ...]:
        """See `Estimator`: the least canonical correlation of instruments and regressor, both weighted.

        One for a motion without noise, zero for instruments that say nothing of some direction of
        the parameters (weak instruments: Bound, Jaeger and Baker 1995). Of noise that is a times as
        large as a column its square is 1 / (1 + a^2).
        """
        rank = regression.regressor.shape[-1]
        spaces = [
            np.linalg.qr((columns * estimate.weights[:, None]).reshape(-1, rank))[0]
            for columns in (self._columns(regression, estimate.values), regression.regressor)
        ]
        least = float(np.linalg.svd(spaces[0].T @ spaces[1], compute_uv=False)[-1])
        name = "least correlation of the instruments with the regressor (canonical)"
        advice = "the instruments say little of some parameters: give the commanded motion of this log, filter the "
        advice += "positions more, or record a motion that excites more"
        return (diagnostic(name, least, at_least=WEAK, advice=advice),)

    def _solve(self, regression: BaseRegression, start: Estimate) -> Estimate:
        columns, regressor = self._columns(regression, start.values), regression.regressor
        forces, rank = regression.forces, regressor.shape[-1]
        least = np.maximum(
            ROUNDING_SHARE * np.sqrt(np.mean(forces**2, axis=0)), np.finfo(float).tiny
        )
        freedom = np.maximum(regression.samples - rank / forces.shape[1], 1.0)
        noise, values, weights = start.noise, start.values, start.weights
        for _ in range(self.reweightings):
            weights = 1.0 / np.maximum(noise, least)
            weighted = (columns * weights[:, None] ** 2).reshape(-1, rank)
            q, triangle = np.linalg.qr(weighted)
            square = q.T @ regressor.reshape(-1, rank)
            _require_strong(square, triangle)
            values = np.linalg.solve(square, q.T @ forces.ravel())
            noise = np.sqrt(np.sum((forces - regressor @ values) ** 2, axis=0) / freedom)
        estimate = replace(start, values=values, noise=noise, weights=weights)
        equations = EstimatingEquations.of(columns * weights[:, None] ** 2, regression, values)
        return white(equations, estimate)

    def _columns(self, regression: BaseRegression, values: np.ndarray) -> np.ndarray:
        """Base columns (N, n_out, r) of the noise-free regressor."""
        data = regression.data
        if callable(self.instruments_of):
            whole = self.instruments_of(data.expand(regression.base.spread(values)))
        else:
            whole = self.instruments_of
        if np.shape(whole) != data.regressor.shape or not np.isfinite(whole).all():
            raise IdentificationError.of(
                "InstrumentalVariables.instruments_of",
                f"has shape {np.shape(whole)} or numbers that are not finite",
                f"give {data.regressor.shape}, as the training data's regressor",
            )
        rows = np.asarray(whole, dtype=float)
        if data.present is not None:
            rows = np.where(data.present[:, :, None], rows, 0.0)
        return base_columns(data, rows, regression.base)


def _require_strong(square: np.ndarray, triangle: np.ndarray) -> None:
    """Refuse instruments that do not move with the regressor (q^T Y nearly singular)."""
    sizes = np.linalg.svd(square / np.linalg.norm(square, axis=0), compute_uv=False)
    if np.abs(np.diag(triangle)).min() == 0.0 or sizes[-1] < 1e-8 * sizes[0]:
        raise IdentificationError.of(
            "InstrumentalVariables.instruments_of",
            f"the instruments say nothing of some parameter: least singular value of their product with the "
            f"regressor {sizes[-1] / sizes[0]:.3g} of the largest",
            "give the regressor of the same motion, sample by sample, without noise",
        )
