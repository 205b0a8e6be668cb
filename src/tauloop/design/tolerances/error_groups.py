"""Sources of error of one kind with their effect on the tool, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.tolerances.error_equations import Array, ErrorEquations, FirstOrder
from tauloop.design.tolerances.worst_case import farthest

#: Kinds of sources of error.
PARAMETER, ENCODER, CLEARANCE, HEAT, WRENCH = (
    "parameter",
    "encoder",
    "clearance",
    "heat",
    "wrench",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorGroup:
    """Sources of error of one kind.

    Attributes:
        kind: their kind.
        names: their names (p).
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
        """Largest error (N, 6, p) in each direction by each source alone."""
        size = np.linalg.norm(self.effects, axis=-1) * self.tolerances[:, None]
        return np.swapaxes(size, 1, 2)

    @property
    def with_tolerances(self) -> ErrorGroup:
        """The sources whose tolerances are not zero."""
        kept = np.flatnonzero(self.tolerances > 0.0)
        return replace(
            self,
            names=tuple(self.names[i] for i in kept),
            units=tuple(self.units[i] for i in kept),
            tolerances=self.tolerances[kept],
            effects=self.effects[:, kept],
        )

    @property
    def is_vector(self) -> bool:
        """Whether the errors are vectors in balls."""
        return self.effects.shape[-1] > 1

    @property
    def scaled(self) -> Array:
        """Twists (N, p, 6, k) by the whole tolerance."""
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
    """Return upper bounds of the distance (N,) and of the angle (N,) by all sources."""
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
    """Difference of exact errors from those of first order.

    Attributes:
        twist: (N, 6) largest difference at the errors that are worst in each direction.
        residual: (N,) largest residual of loops and encoders of these machines.
    """

    twist: Array
    residual: Array


def second_order(
    equations: ErrorEquations, first: FirstOrder, q: Array, groups: Sequence[ErrorGroup]
) -> SecondOrder:
    """Return how far the errors of machines at the limits of their tolerances are from first order.

    Args:
        equations: the machine with errors.
        first: derivatives at the coordinates.
        q: coordinates (N, n_q).
        groups: sources whose errors are those of the equations, in this order.
    """
    N = len(q)
    twist, residual = np.zeros((N, 6)), np.zeros(N)
    _, place, rotation = equations.value(q, np.zeros((N, equations.count)))
    for axis in range(6):
        errors = np.concatenate([_worst_errors(group, axis) for group in groups], axis=1)
        for sign in (1.0, -1.0):
            velocities = (first.velocities @ (sign * errors)[..., None])[..., 0]
            at, turned, left = equations.displaced(q, velocities, sign * errors)
            exact = np.concatenate([at - place, _rotation_vector(turned, rotation)], axis=1)
            linear = (first.twist @ (sign * errors)[..., None])[..., 0]
            twist = np.maximum(twist, np.abs(exact - linear))
            residual = np.maximum(residual, left)
    return SecondOrder(twist=twist, residual=residual)


def _worst_errors(group: ErrorGroup, axis: int) -> Array:
    """Return the errors (N, p k) of a group that move the tool farthest along an axis."""
    effect = group.effects[:, :, axis]
    size = np.linalg.norm(effect, axis=-1, keepdims=True)
    unit = np.divide(effect, size, out=np.zeros_like(effect), where=size > 0.0)
    return np.asarray((unit * group.tolerances[:, None]).reshape(len(effect), -1))


def _rotation_vector(rotation: Array, reference: Array) -> Array:
    """Return the rotation vectors (N, 3) of R R₀ᵀ, rad; below a right angle."""
    turn = rotation @ np.swapaxes(reference, -1, -2)
    skew = 0.5 * (turn - np.swapaxes(turn, -1, -2))
    axis = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=-1)
    sine = np.linalg.norm(axis, axis=-1, keepdims=True)
    factor = np.divide(
        np.arcsin(np.minimum(sine, 1.0)), sine, out=np.ones_like(sine), where=sine > 0.0
    )
    return np.asarray(axis * factor)
