"""Rigid registration of measured points to predicted points."""

from __future__ import annotations

import numpy as np


def kabsch(measured: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the least-squares rotation of measured points y onto predicted points p (Kabsch 1976).

    Returns:
        R (3, 3) with p - mean(p) = R (y - mean(y)), the remaining RMS distance, and the RMS
        distance with the best reflection instead of a rotation.
    """
    y, p = measured - measured.mean(axis=0), predicted - predicted.mean(axis=0)
    U, _, Vt = np.linalg.svd(p.T @ y)
    sign = np.sign(np.linalg.det(U @ Vt)) or 1.0
    rotation = U @ np.diag([1.0, 1.0, sign]) @ Vt
    reflection = U @ np.diag([1.0, 1.0, -sign]) @ Vt
    return rotation, rms_distance(p - y @ rotation.T), rms_distance(p - y @ reflection.T)


def rms_distance(distances: np.ndarray) -> float:
    """Return the root mean square length of vectors (N, 3)."""
    return float(np.sqrt(np.mean(np.sum(distances**2, axis=1))))
