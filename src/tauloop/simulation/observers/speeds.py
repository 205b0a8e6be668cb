"""Speeds without a tachometer: from what encoders count, sample by sample."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter


def differenced(position: np.ndarray, period: float) -> np.ndarray:
    """Speeds (N, n) by differences of positions (N, n) over a period, s; half a period late, zero at the first sample.

    The steps d of an encoder leave noise of d / (6^0.5 T), root mean square.
    """
    return np.diff(position, axis=0, prepend=position[:1]) / period


def tracked(position: np.ndarray, period: float, bandwidth: float) -> np.ndarray:
    """Speeds (N, n) of a tracking loop over positions (N, n), from rest at the first sample.

    x and v are led on by x + T v and corrected by the error e of the measurement: x += (1 - c^2) e
    and v += (1 - c)^2 e / T with c = exp(-w T), at which both roots of the loop lie. At constant
    acceleration a the speed stays 2 a / w behind; the steps d of an encoder leave noise of d (w^3
    T)^0.5 / 7, root mean square, for small w T.

    Args:
        position: measured.
        period: T, s.
        bandwidth: w, rad/s.

    Source: Morrison 1969, Introduction to Sequential Smoothing and Prediction (fading memory, first
        degree).
    """
    c = np.exp(-bandwidth * period)
    correction = (1.0 - c) ** 2 / period
    return np.asarray(
        lfilter([correction, -correction], [1.0, -2.0 * c, c**2], position - position[:1], axis=0)
    )
