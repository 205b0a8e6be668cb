"""A frame that gives way: one mode, driven by the machine's reaction, in the steady state of a periodic motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMode:
    """M (a + 2 zeta w0 v + w0^2 x) = F along one direction.

    Attributes:
        mass: M, kg.
        frequency: w0 / (2 pi), Hz.
        damping: zeta.
        direction: unit vector in the base frame (3,).
    """

    mass: float
    frequency: float
    damping: float
    direction: tuple[float, ...]

    def acceleration(self, force: np.ndarray, rate: float) -> np.ndarray:
        """Acceleration (N,), m/s^2, under a force on the frame (N,), N, that repeats after its N samples."""
        w = 2 * np.pi * scipy.fft.rfftfreq(len(force), 1.0 / rate)
        w0 = 2 * np.pi * self.frequency
        answer = -(w**2) / (self.mass * (w0**2 - w**2 + 2j * self.damping * w0 * w))
        return np.asarray(scipy.fft.irfft(answer * scipy.fft.rfft(force), n=len(force)))
