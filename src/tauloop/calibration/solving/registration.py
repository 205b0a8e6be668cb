"""The rigid motion that carries measured points onto predicted ones."""

from __future__ import annotations

import numpy as np


def kabsch(measured: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Turn (3, 3) that carries measured points onto predicted ones, best in the least squares (Kabsch 1976).

    Returns:
        R with p - mean(p) = R (y - mean(y)), the RMS distance left, and that with a mirror instead
        of a turn.
    """
    y, p = measured - measured.mean(axis=0), predicted - predicted.mean(axis=0)
    U, _, Vt = np.linalg.svd(p.T @ y)
    sign = np.sign(np.linalg.det(U @ Vt)) or 1.0
    turn, mirror = (U @ np.diag([1.0, 1.0, side]) @ Vt for side in (sign, -sign))
    return turn, rms_distance(p - y @ turn.T), rms_distance(p - y @ mirror.T)


def rms_distance(distances: np.ndarray) -> float:
    """Root mean square length of vectors (N, 3)."""
    return float(np.sqrt(np.mean(np.sum(distances**2, axis=1))))
