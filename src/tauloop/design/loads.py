"""Limits of forces at rest and of errors of the tool, and force distributions within limits.

At a pose, all velocities are v = G v_i with the independent velocities v_i, and the actuator
velocities are A v. The actuator forces u satisfy Q^T u = G^T (tau - J^T w) with Q = A G. Here tau are
the generalized forces at rest (gravity and springs), J is the Jacobian of the tool, and w is the
wrench on the tool.
"""

from __future__ import annotations

import itertools

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.design.certificate import ProofClaims
from tauloop.design.problem import PoseProblem

#: Directions of errors of the tool.
ERROR_DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
#: Distances that force distributions keep from their limits, as fractions of the range, in the
#: order of the trials.
RESERVES = (0.25, 0.1, 0.03, 0.003)
#: Number of alternating projections onto the balance of forces and onto the limits.
PROJECTIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLimits(ReprMixin):
    """Limits of forces at rest, and of errors of the tool due to errors of the actuators.

    The machine has n_u actuators, m independent and n dependent velocities.

    Attributes:
        quantities: names of the r limited forces: forces of motors, and tensions of cables.
        by_force: (r, n_u) value of each quantity per actuator force.
        by_load: (r, m + n) value of each quantity per dimensionless force at rest.
        lower, upper: limits (r,) of the quantities, N or N m; infinite where there is no limit.
        wrenches: (7, V) columns [1, -w] for the V vertices w of the range of the wrench on the
            tool.
        errors: limits (6,) of errors of the tool, m and rad; infinite where there is no limit.
        encoders: errors (n_u,) of the actuators, rad or m.
    """

    quantities: tuple[str, ...]
    by_force: np.ndarray
    by_load: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    wrenches: np.ndarray
    errors: np.ndarray
    encoders: np.ndarray


def load_limits(problem: PoseProblem, claims: ProofClaims) -> LoadLimits | None:
    """Return the limits of claims; None without claims on forces and errors.

    Raises:
        InputError: there are no limits, limits of errors are given for redundant actuators, several
            motors act on one cable, or a cable has a fixed length.
    """
    if not (claims.forces or claims.limits):
        return None
    n_u = len(problem.transmission)
    m = len(problem.axes)
    if claims.limits and n_u != m:
        what = (
            f"{counted(n_u, 'actuator', 'drive')} {counted(m, 'degree of freedom')}: errors of single "
            "actuators strain the machine"
        )
        raise InputError.of("limits", what, "omit `limits` for redundant machines")
    names = [actuator.name for actuator in problem.model.mechanism.actuators]
    rows = _force_rows(problem) if claims.forces else []
    by_force = np.array([row.by_force for row in rows]).reshape(len(rows), n_u)
    if n_u > m and ((by_force != 0.0).sum(axis=1) != 1).any():
        what = "several motors act on one cable, or none does"
        raise InputError.of("forces", what, "give each cable its own winch")
    return LoadLimits(
        quantities=tuple(row.name for row in rows),
        by_force=by_force,
        by_load=np.array([row.by_load for row in rows]).reshape(
            len(rows), problem.transmission.shape[1]
        ),
        lower=np.array([row.lower for row in rows]),
        upper=np.array([row.upper for row in rows]),
        wrenches=_vertex_wrenches(claims.wrench),
        errors=np.array([claims.limits.get(name, np.inf) for name in ERROR_DIRECTIONS]),
        encoders=np.array([claims.encoders.get(name, 0.0) for name in names]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForceRow:
    """A force that has limits: a row of the arrays of `LoadLimits`."""

    name: str
    by_force: np.ndarray
    by_load: np.ndarray
    lower: float
    upper: float


def _force_rows(problem: PoseProblem) -> list[_ForceRow]:
    """Return the limited forces of motors, and the tensions T = tau - A^T u of cables.

    Raises:
        InputError: no force or tension is limited, or a cable has a fixed length.
    """
    mechanism = problem.model.mechanism
    n_u, n_c = problem.transmission.shape
    rows = []
    for i, actuator in enumerate(mechanism.actuators):
        if np.isfinite(actuator.force):
            unit = np.eye(n_u)[i]
            force = actuator.force
            rows.append(
                _ForceRow(
                    name=f"{actuator.name}: force",
                    by_force=unit,
                    by_load=np.zeros(n_c),
                    lower=-force,
                    upper=force,
                )
            )
    for name, tension in mechanism.cables.items():
        if name not in problem.velocity_names:
            what = f"{name} is a cable of fixed length, whose tension proofs do not cover"
            raise InputError.of("forces", what, "describe it as `telescopic` with a winch")
        column = problem.velocity_names.index(name)
        scale = problem.velocity_scale[column]
        rows.append(
            _ForceRow(
                name=f"{name}: tension",
                by_force=-problem.transmission[:, column] / scale,
                by_load=np.eye(n_c)[column] / scale,
                lower=tension.least,
                upper=tension.greatest,
            )
        )
    if not rows:
        what = "no actuator states its largest force, and no cable its tension"
        remedy = "specify `force` for the actuators in the machine file"
        raise InputError.of("forces", what, remedy)
    return rows


def _vertex_wrenches(ranges: tuple[tuple[float, float], ...]) -> np.ndarray:
    """Return columns [1, -w] (7, V) for the vertices w of the ranges of a wrench."""
    # `dict.fromkeys` removes the second end of a range of a single value.
    ends = [dict.fromkeys(map(float, pair)) for pair in ranges] or [{0.0: None}] * 6
    vertices = np.array(list(itertools.product(*ends)))
    return np.concatenate([np.ones((1, len(vertices))), -vertices.T])


def force_ranges(limits: LoadLimits, loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper limits (N, n_u) of the actuator forces.

    Each limited quantity must depend on a single actuator.

    Args:
        limits: limits of forces and errors.
        loads: generalized forces at rest (N, m + n).
    """
    shape = (len(loads), limits.by_force.shape[1])
    lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
    offsets = loads @ limits.by_load.T
    for r, row in enumerate(limits.by_force):
        i = int(np.flatnonzero(row)[0])
        ends = np.stack([limits.lower[r] - offsets[:, r], limits.upper[r] - offsets[:, r]]) / row[i]
        lower[:, i] = np.maximum(lower[:, i], ends.min(axis=0))
        upper[:, i] = np.minimum(upper[:, i], ends.max(axis=0))
    return lower, upper


def distribution(Qt: np.ndarray, h: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return forces (N, n_u, V) with Q^T u = h that are far from their limits if possible.

    Projections onto the balance alternate with projections onto the limits, narrowed by a reserve.
    Among the results for all reserves, the forces farthest from their limits are returned.

    Args:
        Qt: Q^T (N, m, n_u), the transposed actuator velocities per independent velocity.
        h: generalized forces to balance (N, m, V).
        lower, upper: limits of u (N, n_u).

    Source: Cheney and Goldstein 1959, Proximity maps for convex sets (alternating projections).
    """
    B = np.linalg.pinv(np.where(np.isfinite(Qt), Qt, 0.0))
    low, high = lower[:, :, None], upper[:, :, None]
    width = np.where(np.isfinite(high - low), high - low, np.abs(np.where(low > -np.inf, low, 1.0)))
    best = B @ h
    for reserve in RESERVES:
        first, last = low + reserve * width, high - reserve * width
        u = np.clip(np.zeros_like(best), first, last)
        for _ in range(PROJECTIONS):
            u = u + B @ (h - Qt @ u)
            u = np.clip(u, first, last)
        u = u + B @ (h - Qt @ u)
        is_better = _limit_distance(u, low, high) > _limit_distance(best, low, high)
        best = np.where(is_better[:, None, :], u, best)
    return np.asarray(best)


def _limit_distance(u: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the smallest distance (N, V) of forces from their limits."""
    return np.asarray(np.minimum(u - low, high - u).min(axis=1))


def separation(
    Qt: np.ndarray, h: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the largest distance of balanced forces from their limits, and the multipliers (m,).

    If the distance is negative, no forces within the limits balance the load. The multipliers y of
    the linear program prove it: y^T h is beyond y^T Q^T u for all forces u within the limits.

    Args:
        Qt: Q^T (m, n_u), the transposed actuator velocities per independent velocity.
        h: generalized forces to balance (m,).
        lower, upper: limits of u (n_u,).
    """
    from scipy.optimize import linprog

    m, n_u = Qt.shape
    has_lower = np.isfinite(lower)
    has_upper = np.isfinite(upper)
    eye = np.eye(n_u)
    rows = np.concatenate([-eye[has_lower], eye[has_upper]])
    sides = np.concatenate([-lower[has_lower], upper[has_upper]])
    solution = linprog(
        np.append(np.zeros(n_u), -1.0),
        A_ub=np.hstack([rows, np.ones((len(rows), 1))]),
        b_ub=sides,
        A_eq=np.hstack([Qt, np.zeros((m, 1))]),
        b_eq=h,
        bounds=[(None, None)] * n_u + [(None, float(np.abs(sides).max(initial=1.0)))],
    )
    if solution.x is None:
        return np.inf, np.zeros(m)
    return float(solution.x[-1]), np.asarray(solution.eqlin.marginals)
