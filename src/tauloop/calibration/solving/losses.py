"""Loss functions of whitened residuals: least squares, Huber and Cauchy.

Source: Huber 1964, Robust estimation of a location parameter; Triggs, McLauchlan, Hartley and
Fitzgibbon 2000, Bundle adjustment: a modern synthesis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tauloop.common.extensions import Registry
from tauloop.common.records import dataclass


class Loss(ABC):
    """A loss function rho(r^2) of a whitened residual r.

    To add a loss, derive a class from this one, test it with `tauloop.testing.check_loss` and pass
    an instance to `FitOptions`. A package can provide it with an entry point in `tauloop.losses`.
    """

    __slots__ = ()

    @abstractmethod
    def rho(self, z: np.ndarray) -> np.ndarray:
        """Return rho and its first and second derivative (3, m) at squares z (m,)."""


@dataclass(frozen=True, slots=True)
class Squares(Loss):
    """Least squares: rho = z."""

    def rho(self, z: np.ndarray) -> np.ndarray:
        """See `Loss`."""
        return np.stack([z, np.ones_like(z), np.zeros_like(z)])


@dataclass(frozen=True, slots=True)
class Huber(Loss):
    """Huber's loss: squares up to a threshold, beyond it 2 c sqrt(z) - c^2 (Huber 1964).

    Attributes:
        threshold: c, in standard deviations.
    """

    threshold: float = 2.0

    def rho(self, z: np.ndarray) -> np.ndarray:
        """See `Loss`."""
        c = self.threshold
        root = np.sqrt(np.maximum(z, c * c))
        is_beyond = z > c * c
        return np.stack(
            [
                np.where(is_beyond, 2 * c * root - c * c, z),
                np.where(is_beyond, c / root, 1.0),
                np.where(is_beyond, -c / (2 * root**3), 0.0),
            ]
        )


@dataclass(frozen=True, slots=True)
class Cauchy(Loss):
    """Cauchy's loss c^2 ln(1 + z/c^2), in which gross errors have nearly no weight.

    Attributes:
        threshold: c, in standard deviations.
    """

    threshold: float = 3.0

    def rho(self, z: np.ndarray) -> np.ndarray:
        """See `Loss`."""
        c2 = self.threshold**2
        t = 1.0 + z / c2
        return np.stack([c2 * np.log(t), 1.0 / t, -1.0 / (c2 * t * t)])


#: Losses by the names that the command line uses.
LOSSES = Registry(
    "tauloop.losses", Loss, {"squares": Squares(), "huber": Huber(), "cauchy": Cauchy()}
)
