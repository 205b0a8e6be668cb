"""Rigid registration of measured points to predicted points."""

from __future__ import annotations

import numpy as np


def kabsch(measured: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the least-squares rotation of measured points y onto predicted points p (Kabsch 1976).

    Returns:
        R (3, 3) with p - mean(p) = R (y - mean(y)), the remaining RMS distance, and the RMS
        distance with the best reflection instead of a rotation.
    """
    return rotation_between(measured - measured.mean(axis=0), predicted - predicted.mean(axis=0))


def rotation_between(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the least-squares rotation of vectors y (N, n) onto vectors p (N, n).

    Returns:
        R (n, n) with p = R y, the remaining RMS distance, and the RMS distance with the best
        reflection instead of a rotation.
    """
    U, _, Vt = np.linalg.svd(p.T @ y)
    signs = np.ones(y.shape[1])
    signs[-1] = np.sign(np.linalg.det(U @ Vt)) or 1.0
    rotation = U @ np.diag(signs) @ Vt
    signs[-1] *= -1.0
    reflection = U @ np.diag(signs) @ Vt
    return rotation, rms_distance(p - y @ rotation.T), rms_distance(p - y @ reflection.T)


def rms_distance(vectors: np.ndarray) -> float:
    """Return the root mean square length of vectors (N, n)."""
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1))))
