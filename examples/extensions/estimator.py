"""An estimator of one's own: least absolute deviations, by weighted least squares repeated (Schlossmacher 1973)."""

from dataclasses import dataclass

import numpy as np

from tauloop.identification import Estimate, Estimator
from tauloop.testing import check_estimator


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastAbsoluteDeviations(Estimator):
    """Minimizes the sum of |residual| / scale of its output: a tenth of wrong samples hardly moves it.

    Attributes:
        repetitions: of the weighted least squares.
        smallest: residuals below this fraction of an output's typical one count alike.
    """

    repetitions: int = 30
    smallest: float = 1e-3

    def estimate_from(self, regression) -> Estimate:
        """See `Estimator`."""
        Y, f = regression.regressor, regression.forces
        outputs, r = Y.shape[1:]
        scale, weights = np.ones(outputs), np.ones(f.shape)
        for _ in range(self.repetitions):
            rows = (weights**0.5 / scale)[:, :, None]
            values = np.linalg.lstsq(
                (rows * Y).reshape(-1, r), (rows[..., 0] * f).ravel(), rcond=None
            )[0]
            residual = np.abs(f - Y @ values)
            least = 1e-12 * np.abs(f).max(axis=0)
            scale = np.maximum(np.median(residual, axis=0) / 0.6745, least)
            weights = 1.0 / np.maximum(residual / scale, self.smallest)
        # of a median's kind: pi / 2 times the variance of least squares with normal errors
        information = np.einsum("nor,no,nos->rs", Y, np.broadcast_to(scale**-2.0, f.shape), Y)
        return Estimate(
            values=values,
            covariance=np.pi / 2 * np.linalg.inv(information),
            noise=scale,
            weights=1.0 / scale,
        )

    def instruments(self, regression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`."""
        return regression.regressor * estimate.weights[:, None] ** 2


if __name__ == "__main__":
    check_estimator(LeastAbsoluteDeviations())
    print("least absolute deviations: fit(training, held_out, LeastAbsoluteDeviations())")
