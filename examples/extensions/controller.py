"""A controller of one's own: PD with gravity compensation and an integral of the error, in joint space."""

from dataclasses import dataclass

import numpy as np

import tauloop
from tauloop.simulation import Compensation, Controller
from tauloop.testing import check_controller


@dataclass(frozen=True, slots=True, kw_only=True)
class PID(Controller):
    """u = K_p (e + integral of e / T) + K_d e' + tau(x, 0, 0).

    Attributes:
        integral_time: T, s.
    """

    integral_time: float = 0.05

    @property
    def compensation(self) -> Compensation:
        """Gravity and springs, computed by the compiled loop."""
        return Compensation.GRAVITY

    def force_callback(self, loop):
        """What is made in Python of the compiled loop's forces at each sample."""
        total, sample = np.zeros(len(loop.limit)), 0

        def corrected(time, measured, speed, force):
            nonlocal total, sample
            total = total + (loop.reference[0][sample] - measured) * loop.period
            sample += 1
            return force + loop.gains[0] / self.integral_time * total

        return corrected


if __name__ == "__main__":
    check_controller(PID(bandwidth=80.0), tauloop.load("delta"))
    print("PID is a controller: follow(trajectory, PID(bandwidth=80.0), Sampling())")
