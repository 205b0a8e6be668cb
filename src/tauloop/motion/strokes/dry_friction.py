"""Dry friction along a path, whose direction follows from the path, also at rest.

Coulomb and static friction jump where the speed of their element changes sign, and are set-valued
at rest. Along a path u(t), the sign of each speed is that of dq/du. At the start and the end of a
motion, and at reversals of an element, friction therefore equals its limit from the adjoining part
of the motion. An element that is at rest over a part of the path, dq/du = 0, has no dry friction
there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.model import Friction, given_friction
from tauloop.model import Model

#: Speed, relative to the largest speed along a path, below which an element is at rest.
REST_SPEED_RATIO = 1e-9
#: Distance in the path's parameter below which reversals coincide with each other or with an end.
MIN_REVERSAL_DISTANCE = 1e-8
#: Number of subintervals of the grid's intervals next to a local minimum of a speed, so that two
#: reversals close to each other are detected.
SUBINTERVALS_NEAR_MINIMUM = 16
#: Number of bisections of an interval with a reversal, down to rounding.
REVERSAL_BISECTIONS = 52


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpingFriction(ReprMixin):
    """Friction of a machine that depends on the sign of a speed, in k elements.

    The elements are velocities, actuators and losses. As in `mechanism.Friction`, the force is

        F = (coulomb + excess exp(-(v / stribeck)^2)) sign(v) + asymmetry |sign(v)|.

    Attributes:
        model: the machine, with these forces (k,) as its free parameters.
        elements: names of the elements (k,).
        terms: speeds of the elements per velocity (k, n_v).
        coulomb, asymmetry, excess: coefficients (k,), N or N m.
        stribeck: Stribeck speeds (k,), m/s or rad/s; infinite without this effect.
    """

    model: Model
    elements: tuple[str, ...]
    terms: np.ndarray
    coulomb: np.ndarray
    asymmetry: np.ndarray
    excess: np.ndarray
    stribeck: np.ndarray

    @property
    def depends_on_speed(self) -> bool:
        """Whether the friction of an element decreases with speed."""
        return bool(self.excess.any())

    def sliding(self, side: np.ndarray) -> np.ndarray:
        """Return the forces (N, k) of elements that move in directions (N, k): -1, 0 or 1.

        The term that decreases with speed is not included.
        """
        return np.asarray(self.coulomb * side + self.asymmetry * np.abs(side))

    def forces(self, side: np.ndarray, speed: np.ndarray) -> np.ndarray:
        """Return the forces (N, k) of elements that move in directions (N, k) at speeds (N, k)."""
        decay = np.exp(-((speed / self.stribeck) ** 2))
        return np.asarray(self.sliding(side) + self.excess * decay * side)


@lru_cache(maxsize=4)
def dry_friction(model: Model) -> JumpingFriction | None:
    """Return the friction that depends on the sign of a speed; None if there is none."""
    mechanism = model.mechanism
    topology = model.topology
    unit = np.eye(topology.n_v)
    laws: list[tuple[str, Friction | None, np.ndarray]] = []
    for i, name in enumerate(topology.velocity_names):
        laws.append((name, topology.freedoms[i].friction, unit[i]))
    for actuator, ratios in zip(
        mechanism.actuators, model.assembly.loops.transmission, strict=True
    ):
        laws.append((actuator.name, actuator.friction, ratios))
    for loss in mechanism.losses:
        ratios = np.zeros(topology.n_v)
        for name, ratio in loss.terms:
            ratios[topology.velocity_names.index(name)] += mechanism.value(ratio)
        laws.append((loss.name, loss.friction, ratios))
    names = []
    terms = []
    values = []
    for name, friction, ratios in laws:
        numbers = np.zeros(4) if friction is None else _numbers(model, friction)
        if numbers[:3].any():
            names.append(name)
            terms.append(ratios)
            values.append(numbers)
    if not names:
        return None
    coulomb, asymmetry, excess, stribeck = np.array(values).T
    model_with_inputs = Model(
        mechanism.with_given_dry_friction(names),
        tuple(map(given_friction, names)),
        formulation=model.formulation,
        evaluator=model.given_evaluator,
    )
    return JumpingFriction(
        model=model_with_inputs.at(model.assembly.q),
        elements=tuple(names),
        terms=np.array(terms),
        coulomb=coulomb,
        asymmetry=asymmetry,
        excess=excess,
        stribeck=stribeck,
    )


def _numbers(model: Model, friction: Friction) -> np.ndarray:
    """Return Coulomb friction, its asymmetry, excess of static friction and Stribeck speed, SI."""
    parts = (friction.coulomb, friction.coulomb_asymmetry, friction.excess, friction.stribeck)
    defaults = (0.0, 0.0, 0.0, np.inf)
    value = model.mechanism.value
    return np.array(
        [d if part is None else value(part) for part, d in zip(parts, defaults, strict=True)]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionSides(ReprMixin):
    """Directions in which k elements move along a path.

    Attributes:
        reversals: ascending parameters inside (0, 1) at which a direction changes (R,).
        sides: directions -1, 0 or 1 on each part of the path between them (R + 1, k).
    """

    reversals: np.ndarray
    sides: np.ndarray

    def at(self, u: np.ndarray) -> np.ndarray:
        """Return the directions (N, k) at parameters u (N,); at a reversal, those after it."""
        return np.asarray(self.sides[np.searchsorted(self.reversals, u, side="right")])


def friction_sides(
    speeds: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, breaks: tuple[float, ...]
) -> FrictionSides:
    """Return the parameters at which elements reverse, start and stop along a path.

    Args:
        speeds: function from parameters u (N,) to the elements' speeds (N, k) at du/dt = 1.
        grid: parameters from 0 to 1 that resolve the shape of the path.
        breaks: parameters at which the second derivative of the path jumps. A reversal next to a
            break is moved to it.

    Returns:
        Reversals, and the direction of every element between them.
    """
    grid = _refined(grid, np.abs(speeds(grid)))
    values = speeds(grid)
    rest_speed = REST_SPEED_RATIO * np.abs(values).max()
    directions = np.where(np.abs(values) > rest_speed, np.sign(values), 0.0)
    by_element = [
        _reversals(speeds, grid, directions[:, j], j, rest_speed) for j in range(values.shape[1])
    ]
    all_reversals = np.concatenate([reversals for reversals, _ in by_element])
    merged = _merged(all_reversals, np.array([0.0, *breaks, 1.0]))
    ends = np.concatenate([[0.0], merged, [1.0]])
    middles = 0.5 * (ends[1:] + ends[:-1])
    sides = [
        element_sides[np.searchsorted(reversals, middles, side="right")]
        for reversals, element_sides in by_element
    ]
    return FrictionSides(reversals=merged, sides=np.stack(sides, axis=1))


def _refined(grid: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """Return a grid with more points next to local minima of the absolute speeds (N, k)."""
    inner = speeds[1:-1]
    is_minimum = ((inner <= speeds[:-2]) & (inner <= speeds[2:])).any(axis=1)
    i = np.flatnonzero(is_minimum) + 1
    fractions = np.arange(1, SUBINTERVALS_NEAR_MINIMUM) / SUBINTERVALS_NEAR_MINIMUM
    starts = np.union1d(i - 1, i)
    points = grid[starts, None] + fractions * (grid[starts + 1] - grid[starts])[:, None]
    return np.union1d(grid, points.ravel())


def _reversals(
    speeds: Callable[[np.ndarray], np.ndarray],
    grid: np.ndarray,
    directions: np.ndarray,
    j: int,
    rest_speed: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters at which element j reverses (R,), and its directions (R + 1,).

    Args:
        speeds: function from parameters (N,) to the speeds of all elements (N, k).
        grid: parameters (N,).
        directions: directions of element j on the grid (N,): -1, 0 or 1.
        j: index of the element.
        rest_speed: speed below which the element is at rest.
    """
    # a single point with zero speed is a reversal, not a part of the path at rest
    is_zero = directions == 0
    padded = np.concatenate([[False], is_zero, [False]])
    is_single = is_zero & ~padded[:-2] & ~padded[2:]
    u = grid[~is_single]
    directions = directions[~is_single]
    if not len(u):
        return np.zeros(0), np.zeros(1)
    k = np.flatnonzero(directions[1:] != directions[:-1])
    low, high = u[k], u[k + 1]
    is_rest = (directions[k] == 0) | (directions[k + 1] == 0)
    for _ in range(REVERSAL_BISECTIONS if len(k) else 0):
        middle = 0.5 * (low + high)
        speed = speeds(middle)[:, j]
        direction = np.where(np.abs(speed) > rest_speed * is_rest, np.sign(speed), 0.0)
        is_before = direction == directions[k]
        low = np.where(is_before, middle, low)
        high = np.where(is_before, high, middle)
    return high, np.concatenate([directions[:1], directions[k + 1]])


def _merged(parameters: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Return ascending, separate parameters inside (0, 1).

    Parameters next to one of the fixed parameters are moved to it.
    """
    nearest = fixed[np.abs(parameters[:, None] - fixed).argmin(axis=1)]
    is_near = np.abs(parameters - nearest) < MIN_REVERSAL_DISTANCE
    parameters = np.unique(np.where(is_near, nearest, parameters))
    parameters = parameters[(parameters > 0.0) & (parameters < 1.0)]
    is_separate = np.diff(parameters) >= MIN_REVERSAL_DISTANCE
    return np.asarray(parameters[np.append(is_separate, True)[: len(parameters)]])
