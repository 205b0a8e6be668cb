"""A loss of one's own: Tukey's biweight, which forgets gross errors altogether (Beaton and Tukey 1974)."""

from dataclasses import dataclass

import numpy as np

from tauloop.calibration import Loss
from tauloop.testing import check_loss


@dataclass(frozen=True, slots=True)
class Tukey(Loss):
    """rho = c^2/3 (1 - (1 - z/c^2)^3) up to c^2, and constant beyond.

    Attributes:
        threshold: c, in standard deviations.
    """

    threshold: float = 4.685

    def rho(self, z: np.ndarray) -> np.ndarray:
        """See `Loss`."""
        c2 = self.threshold**2
        left = np.maximum(1.0 - z / c2, 0.0)
        return np.stack([c2 / 3 * (1.0 - left**3), left**2, -2.0 * left / c2])


if __name__ == "__main__":
    check_loss(Tukey())
    print("Tukey's biweight is a loss: FitOptions(loss=Tukey())")
