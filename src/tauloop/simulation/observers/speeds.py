"""Estimation of speeds from encoder positions, sample by sample."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter


def differenced(position: np.ndarray, period: float) -> np.ndarray:
    """Return speeds (N, n) as differences of positions (N, n) over a period (s).

    They lag by half a period and are zero at the first sample. Encoder steps d cause noise of
    d / (6^0.5 T), root mean square.
    """
    return np.diff(position, axis=0, prepend=position[:1]) / period


def tracked(position: np.ndarray, period: float, bandwidth: float) -> np.ndarray:
    """Return speeds (N, n) of a tracking loop over positions (N, n), from rest at the first sample.

    The prediction x + T v, v is corrected by the measurement error e: x += (1 - c^2) e and
    v += (1 - c)^2 e / T with c = exp(-w T), the double root of the loop. At constant acceleration a
    the speed lags by 2 a / w. Encoder steps d cause noise of d (w^3 T)^0.5 / 7, root mean square, for
    small w T.

    Args:
        position: measured positions.
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
