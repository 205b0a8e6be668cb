"""Estimation of speeds from encoder positions."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter


def differenced(position: np.ndarray, period: float) -> np.ndarray:
    """Return speeds (N, n) as differences of positions (N, n) over a period (s).

    They lag by half a period T and are zero at the first sample. Encoder steps d cause noise with a
    root mean square of d / (6^0.5 T).
    """
    return np.diff(position, axis=0, prepend=position[:1]) / period


def tracked(position: np.ndarray, period: float, bandwidth: float) -> np.ndarray:
    """Return speeds (N, n) from a tracking loop that follows positions (N, n).

    The loop starts at rest at the first sample. Its prediction (x + T v, v) is corrected by the
    measurement error e: x += (1 - c^2) e and v += (1 - c)^2 e / T with c = exp(-w T), the double
    root of the loop. At a constant acceleration a, the speed lags by 2 a / w. For small w T,
    encoder steps d cause noise with a root mean square of d (w^3 T)^0.5 / 7.

    Args:
        position: measured positions (N, n).
        period: sample period T, s.
        bandwidth: bandwidth w, rad/s.

    Source: Morrison 1969, Introduction to Sequential Smoothing and Prediction (fading memory, first
        degree).
    """
    c = np.exp(-bandwidth * period)
    correction = (1.0 - c) ** 2 / period
    return np.asarray(
        lfilter([correction, -correction], [1.0, -2.0 * c, c**2], position - position[:1], axis=0)
    )
