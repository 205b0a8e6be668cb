"""One vibration mode of a frame, in the steady state of a periodic motion of the machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMode:
    """A mode M (a + 2 zeta w0 v + w0^2 x) = F along one direction.

    Attributes:
        mass: mass M, kg.
        frequency: natural frequency w0 / (2 pi), Hz.
        damping: damping ratio zeta.
        direction: unit vector in the base frame (3,).
    """

    mass: float
    frequency: float
    damping: float
    direction: tuple[float, ...]

    def acceleration(self, force: np.ndarray, rate: float) -> np.ndarray:
        """Return the acceleration (N,), m/s^2, under a periodic force (N,) on the frame, N."""
        w = 2 * np.pi * scipy.fft.rfftfreq(len(force), 1.0 / rate)
        w0 = 2 * np.pi * self.frequency
        answer = -(w**2) / (self.mass * (w0**2 - w**2 + 2j * self.damping * w0 * w))
        return np.asarray(scipy.fft.irfft(answer * scipy.fft.rfft(force), n=len(force)))
