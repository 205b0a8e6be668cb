"""Groups of sources of error of the same kind, their effects on the tool, and worst-case sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.tolerances.error_equations import Array, ErrorEquations, FirstOrder
from tauloop.design.tolerances.worst_case import farthest

#: Kinds of sources of error.
PARAMETER = "parameter"
ENCODER = "encoder"
CLEARANCE = "clearance"
HEAT = "heat"
WRENCH = "wrench"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorGroup:
    """Sources of error of the same kind.

    Attributes:
        kind: kind of the sources.
        names: names of the p sources.
        units: SI units of their tolerances.
        tolerances: (p,) largest deviations, SI; radii of clearances.
        effects: (N, p, 6, k) twist of the tool per unit of each component: k = 1 for an error in an
            interval, 3 for a vector in a ball.
    """

    kind: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    tolerances: Array
    effects: Array

    @property
    def contributions(self) -> Array:
        """Largest error (N, 6, p) in each direction due to each source alone."""
        largest = np.linalg.norm(self.effects, axis=-1) * self.tolerances[:, None]
        return np.swapaxes(largest, 1, 2)

    @property
    def with_tolerances(self) -> ErrorGroup:
        """The group of the sources whose tolerances are not zero."""
        indices = np.flatnonzero(self.tolerances > 0.0)
        return replace(
            self,
            names=tuple(self.names[i] for i in indices),
            units=tuple(self.units[i] for i in indices),
            tolerances=self.tolerances[indices],
            effects=self.effects[:, indices],
        )

    @property
    def is_vector(self) -> bool:
        """Whether the errors are vectors in balls."""
        return self.effects.shape[-1] > 1

    @property
    def scaled(self) -> Array:
        """Twists (N, p, 6, k) due to the full tolerances."""
        return np.asarray(self.effects * self.tolerances[:, None, None])


def interval_group(
    kind: str, names: Sequence[str], units: Sequence[str], tolerances: Array, twist: Array
) -> ErrorGroup:
    """Return a group of errors in intervals, with the twists (N, 6, p) per unit."""
    return ErrorGroup(
        kind=kind,
        names=tuple(names),
        units=tuple(units),
        tolerances=np.asarray(tolerances, dtype=float),
        effects=np.swapaxes(twist, 1, 2)[..., None],
    )


def worst_sizes(groups: Sequence[ErrorGroup]) -> tuple[Array, Array]:
    """Return upper bounds of the distance (N,) and of the angle (N,) due to all sources."""
    N = len(groups[0].effects)
    intervals = [group.scaled[..., 0] for group in groups if not group.is_vector]
    balls = [group.scaled for group in groups if group.is_vector]
    rows = np.concatenate([np.zeros((N, 0, 6)), *intervals], axis=1)
    columns = np.swapaxes(rows, 1, 2)
    vectors = np.concatenate([np.zeros((N, 0, 6, 3)), *balls], axis=1)
    distance, _ = farthest(columns[:, :3], vectors[:, :, :3])
    angle, _ = farthest(columns[:, 3:], vectors[:, :, 3:])
    return distance, angle


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SecondOrder:
    """Difference between exact and first-order errors of the tool.

    Attributes:
        twist: (N, 6) largest difference at the errors that are worst in each direction.
        residual: (N,) largest residual of loops and encoders of the machines with these errors.
    """

    twist: Array
    residual: Array


def second_order(
    equations: ErrorEquations, first: FirstOrder, q: Array, groups: Sequence[ErrorGroup]
) -> SecondOrder:
    """Return the difference between exact and first-order errors at the limits of the tolerances.

    Args:
        equations: the machine with errors.
        first: derivatives at the coordinates.
        q: coordinates (N, n_q).
        groups: sources whose errors are those of the equations, in this order.
    """
    N = len(q)
    twist = np.zeros((N, 6))
    residual = np.zeros(N)
    _, position, rotation = equations.value(q, np.zeros((N, equations.count)))
    for axis in range(6):
        errors = np.concatenate([_worst_errors(group, axis) for group in groups], axis=1)
        for sign in (1.0, -1.0):
            velocities = (first.velocities @ (sign * errors)[..., None])[..., 0]
            displaced = equations.displaced(q, velocities, sign * errors)
            displaced_position, displaced_rotation, displaced_residual = displaced
            rotation_vector = _rotation_vector(displaced_rotation, rotation)
            exact = np.concatenate([displaced_position - position, rotation_vector], axis=1)
            linear = (first.twist @ (sign * errors)[..., None])[..., 0]
            twist = np.maximum(twist, np.abs(exact - linear))
            residual = np.maximum(residual, displaced_residual)
    return SecondOrder(twist=twist, residual=residual)


def _worst_errors(group: ErrorGroup, axis: int) -> Array:
    """Return the errors (N, p k) of a group that move the tool farthest along an axis."""
    effect = group.effects[:, :, axis]
    norm = np.linalg.norm(effect, axis=-1, keepdims=True)
    unit = np.divide(effect, norm, out=np.zeros_like(effect), where=norm > 0.0)
    return np.asarray((unit * group.tolerances[:, None]).reshape(len(effect), -1))


def _rotation_vector(rotation: Array, reference: Array) -> Array:
    """Return the rotation vectors (N, 3) of R R₀ᵀ, rad, for angles below a right angle."""
    relative = rotation @ np.swapaxes(reference, -1, -2)
    skew = 0.5 * (relative - np.swapaxes(relative, -1, -2))
    axis = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=-1)
    sine = np.linalg.norm(axis, axis=-1, keepdims=True)
    factor = np.divide(
        np.arcsin(np.minimum(sine, 1.0)), sine, out=np.ones_like(sine), where=sine > 0.0
    )
    return np.asarray(axis * factor)
