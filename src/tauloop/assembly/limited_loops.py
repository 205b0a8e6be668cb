"""Loops with the ranges of their coordinates: closing them from afar without leaving these."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.assembly.batch import BatchFunction
from tauloop.assembly.closing import coordinate_limits
from tauloop.assembly.loops import Loops

#: A coordinate is beyond its limit by more than rounding, m or rad.
BEYOND = 1e-9
#: Share of a range by which poses that are sought keep off its ends.
MARGIN = 0.02


def excess(loops: Loops, q: np.ndarray) -> np.ndarray:
    """By how much coordinates (..., n_q) are beyond their limits (..., n_q), m or rad; negative below the lower one."""
    lower, upper = coordinate_limits(loops)
    beyond = q - np.clip(q, lower, upper)
    return np.asarray(np.where(np.abs(beyond) > BEYOND, beyond, 0.0))


def moved_inside(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Coordinates (..., n_q), those beyond their limits in the middle of their range, or at its only end."""
    lower, upper = coordinate_limits(loops)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        middle = np.where(bounded, 0.5 * (lower + upper), np.clip(q, lower, upper))
    return np.where((q < lower) | (q > upper), middle, q)


def limited(found: Loops) -> Loops:
    """The same loops with one more equation for every limited coordinate: by how much it leaves its range.

    They serve to close the loops from afar; poses within the limits satisfy them.
    """
    shape = found.topology
    lower, upper = coordinate_limits(found)
    margin = np.where(np.isfinite(upper - lower), MARGIN * (upper - lower), 0.0)
    chosen = [i for i, j in enumerate(shape.q_of_v) if j >= 0 and np.isfinite([lower[j], upper[j]]).any()]
    q = ca.SX.sym("q", shape.n_q)
    phi, K = found.function.function(q) if found.names else (ca.SX(0, 1), ca.SX(0, 1))
    rows, columns = [], []
    for i in chosen:
        j = shape.q_of_v[i]
        above = q[j] - (upper[j] - margin[j]) if np.isfinite(upper[j]) else ca.SX(-1)
        below = (lower[j] + margin[j]) - q[j] if np.isfinite(lower[j]) else ca.SX(-1)
        rows.append(ca.fmax(above, 0) - ca.fmax(below, 0))
        columns.append((i, ca.logic_or(above > 0, below > 0)))
    K = ca.reshape(K, len(found.names), shape.n_v)
    extra = ca.SX(len(chosen), shape.n_v)
    for row, (i, active) in enumerate(columns):
        extra[row, i] = active
    phi, K = ca.vertcat(phi, *rows), ca.vertcat(K, extra)
    names = tuple(shape.velocity_names[i] for i in chosen)
    return replace(
        found,
        names=(*found.names, *(f"{name}: limits" for name in names)),
        elements=(*found.elements, *names),
        is_length=np.concatenate([found.is_length, [not shape.angular[i] for i in chosen]]).astype(bool),
        function=BatchFunction(ca.Function("limited", [q], [ca.densify(phi), ca.densify(ca.vec(K))])),
    )
