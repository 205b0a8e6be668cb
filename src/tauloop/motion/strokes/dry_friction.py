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
AT_REST = 1e-9
#: Distance, relative to the path, below which reversals coincide with each other or with an end.
SAME_PLACE = 1e-8
#: Number of intervals into which the grid is divided next to a smallest speed, so that two
#: reversals close to each other are found.
POINTS_NEAR_LEAST = 16
#: Number of bisections of an interval with a reversal, down to rounding.
FRICTION_HALVINGS = 52


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
        fallen = np.exp(-((speed / self.stribeck) ** 2))
        return np.asarray(self.sliding(side) + self.excess * fallen * side)


@lru_cache(maxsize=4)
def dry_friction(model: Model) -> JumpingFriction | None:
    """Return the friction that depends on the sign of a speed; None if there is none."""
    mechanism, topology = model.mechanism, model.topology
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
    names, terms, values = [], [], []
    for name, friction, ratios in laws:
        numbers = np.zeros(4) if friction is None else _numbers(model, friction)
        if numbers[:3].any():
            names.append(name)
            terms.append(ratios)
            values.append(numbers)
    if not names:
        return None
    coulomb, asymmetry, excess, stribeck = np.array(values).T
    free = tuple(map(given_friction, names))
    with_parameters = Model(
        mechanism.with_given_dry_friction(names),
        free,
        formulation=model.formulation,
        evaluator=model.given_evaluator,
    )
    return JumpingFriction(
        model=with_parameters.at(model.assembly.q),
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
    """Return where elements reverse, start and stop along a path.

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
    still = AT_REST * np.abs(values).max()
    states = np.where(np.abs(values) > still, np.sign(values), 0.0)
    parts = [_parts(speeds, grid, states[:, j], j, still) for j in range(values.shape[1])]
    reversals = _merged(
        np.concatenate([places for places, _ in parts]), np.array([0.0, *breaks, 1.0])
    )
    ends = np.concatenate([[0.0], reversals, [1.0]])
    middles = 0.5 * (ends[1:] + ends[:-1])
    sides = [side[np.searchsorted(places, middles, side="right")] for places, side in parts]
    return FrictionSides(reversals=reversals, sides=np.stack(sides, axis=1))


def _refined(grid: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return a grid with more points on both sides of the smallest speeds (N, k)."""
    inner = sizes[1:-1]
    is_least = ((inner <= sizes[:-2]) & (inner <= sizes[2:])).any(axis=1)
    i = np.flatnonzero(is_least) + 1
    shares = np.arange(1, POINTS_NEAR_LEAST) / POINTS_NEAR_LEAST
    starts = np.union1d(i - 1, i)
    points = grid[starts, None] + shares * (grid[starts + 1] - grid[starts])[:, None]
    return np.union1d(grid, points.ravel())


def _parts(
    speeds: Callable[[np.ndarray], np.ndarray],
    grid: np.ndarray,
    states: np.ndarray,
    j: int,
    still: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters at which element j reverses (R,), and its directions (R + 1,)."""
    is_zero = states == 0
    padded = np.concatenate([[False], is_zero, [False]])
    is_alone = is_zero & ~padded[:-2] & ~padded[2:]
    u, states = grid[~is_alone], states[~is_alone]
    if not len(u):
        return np.zeros(0), np.zeros(1)
    k = np.flatnonzero(states[1:] != states[:-1])
    before, behind, state = u[k], u[k + 1], states[k]
    rests = (state == 0) | (states[k + 1] == 0)
    for _ in range(FRICTION_HALVINGS if len(k) else 0):
        middle = 0.5 * (before + behind)
        value = speeds(middle)[:, j]
        state_there = np.where(np.abs(value) > still * rests, np.sign(value), 0.0)
        is_before = state_there == state
        before, behind = np.where(is_before, middle, before), np.where(is_before, behind, middle)
    return behind, np.concatenate([states[:1], states[k + 1]])


def _merged(places: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return ascending, separate parameters inside (0, 1).

    Parameters next to a known parameter are moved to it.
    """
    nearest = known[np.abs(places[:, None] - known).argmin(axis=1)]
    places = np.unique(np.where(np.abs(places - nearest) < SAME_PLACE, nearest, places))
    places = places[(places > 0.0) & (places < 1.0)]
    is_apart = np.append(np.diff(places) >= SAME_PLACE, True)[: len(places)]
    return np.asarray(places[is_apart])
