"""Static equilibrium of passive degrees of freedom while the motors hold their positions.

In equilibrium, the forces of gravity and springs on every passive degree of freedom vanish or press
a coordinate against its stop. The search follows the damped motion x' = -f(x) of the passive
degrees of freedom x, where f are the forces that would hold them in place. The implicit steps grow
as the forces vanish. Each step d solves

    min d^T (f' + m I) d / 2 + f^T d   over d   with   s + s' d >= 0,

where s are the distances of the coordinates from their stops, f' = df/dx and s' = ds/dx. The
damping m falls towards zero, so that the last steps are Newton steps.

Source: Lawson and Hanson 1974, Solving Least Squares Problems, ch. 23, for the quadratic program by
non-negative least squares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.kinematics.inspection import undriven
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model

#: Maximum number of steps of the search.
MAX_EQUILIBRIUM_STEPS = 400
#: Largest step of a passive degree of freedom, rad or characteristic lengths. It is limited because
#: Newton's method closes the loops from the pose before the step.
MAX_STEP = 0.2
#: Displacement beyond which a passive degree of freedom counts as falling without limit, rad or
#: characteristic lengths.
MAX_DISPLACEMENT = 20.0
#: Stiffness used instead of zero, so that quotients stay finite.
MIN_POSITIVE_STIFFNESS = 1e-60
#: The search stops when the next Newton step of every passive degree of freedom is smaller than
#: this, rad or characteristic lengths.
REST_TOLERANCE = 1e-10
#: Step of the finite differences for f' and s', rad or characteristic lengths.
DIFFERENCE = 1e-5
#: Size of the next Newton step below which the result still counts as at rest. It exceeds
#: `REST_TOLERANCE`, because rounding errors of badly conditioned loops limit the step.
SETTLED_TOLERANCE = 1e-8
#: A direction is undetermined if its stiffness, relative to the largest stiffness, is below this.
MIN_STIFFNESS = 1e-6
#: Factor on the damping m after a successful step.
SUCCESS_DAMPING_FACTOR = 0.3
#: Factor on the damping m after a failed step.
FAILURE_DAMPING_FACTOR = 5.0
#: Kinds of passive degrees of freedom whose positions are arbitrary: without a given position they
#: stay at the reference pose.
CONVENTIONAL = ("floating base", "spin of")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestingFreedoms:
    """Passive degrees of freedom at rest.

    Attributes:
        names: names of the passive degrees of freedom whose positions were found.
        position: position of leading actuators and passive degrees of freedom (n,).
        q: coordinates (n_q,) of the pose.
        at_stops: names of the coordinates that press against a stop.
        loose: names of the passive degrees of freedom that neither springs, gravity nor stops
            determine.
        next_step: largest component of the next Newton step, rad or characteristic lengths.
    """

    names: tuple[str, ...]
    position: np.ndarray
    q: np.ndarray
    at_stops: tuple[str, ...]
    loose: tuple[str, ...]
    next_step: float

    @property
    def is_at_rest(self) -> bool:
        """Whether all are at rest in a pose that gravity, springs or stops determine."""
        return bool(self.next_step <= SETTLED_TOLERANCE) and not self.loose

    def diagnostics(self, model: Model) -> tuple[Diagnostic, ...]:
        """Return two diagnostics: whether all are at rest, and whether all are determined."""
        names = ", ".join(self.names)
        remedy = (
            "they stay at the reference pose; give their positions too "
            f"(`--actuators '{self.names[0]}=...'`)"
        )
        has_settled = self.next_step <= SETTLED_TOLERANCE
        resting = diagnostic(
            "passive degrees of freedom that do not come to rest",
            0.0 if has_settled else float(len(self.names)),
            at_most=0.0,
            advice=f"the search reached no equilibrium of {names}: {remedy}",
        )
        determined = diagnostic(
            "passive degrees of freedom that nothing holds",
            len(self.loose),
            at_most=0.0,
            advice=f"neither springs, gravity nor stops determine {', '.join(self.loose)}: {remedy}",
        )
        return (resting, determined, *omission_diagnostics(model.mechanism))


def unstated_passive(model: Model, stated: Sequence[str]) -> tuple[int, ...]:
    """Return the columns of passive degrees of freedom without a given position.

    Degrees of freedom whose positions are arbitrary (a floating base, spins) and components of a
    rotation are left out: they stay at the reference pose.

    Args:
        model: the machine.
        stated: names of the columns with given positions.
    """
    if model.mechanism.unstated_motors or not model.assembly.passive:
        return ()
    columns = model.actuators.ports.position.columns
    names = [
        item.name for item in undriven(model.assembly) if not item.kind.startswith(CONVENTIONAL)
    ]
    return tuple(columns.index(name) for name in names if name in columns and name not in stated)


def static_equilibrium(
    model: Model, position: np.ndarray, free: tuple[int, ...]
) -> RestingFreedoms:
    """Return the rest positions of passive degrees of freedom after a slow motion of the motors.

    The motors move from the reference pose to their positions so slowly that the passive degrees of
    freedom are always in equilibrium.

    Args:
        model: the machine.
        position: position of leading actuators and passive degrees of freedom (n,); the values of
            the columns in `free` are start values of the search.
        free: columns of the passive degrees of freedom whose rest positions are computed.

    Raises:
        PoseError: the loops do not close at the start values.
        AssemblyError: the machine file does not specify the positions of the motors.
    """
    ports, loops = model.actuators.ports, model.assembly.loops
    reference = ports.at(model.assembly.q)
    change = ports.given_coordinates(position) - ports.given_coordinates(reference)
    largest = float(np.abs(change / loops.coordinate_scale[list(ports.q)]).max())
    count = max(1, int(np.ceil(largest / MAX_STEP)))
    x, q = position[list(free)], model.assembly.q
    for fraction in np.linspace(1.0 / count, 1.0, count)[:-1]:
        start = reference + fraction * (position - reference)
        start[list(free)] = x
        rest = _search_result(_Search(model, start, free), q)
        x, q = rest.position[list(free)], rest.q
    start = np.array(position)
    start[list(free)] = x
    return _search_result(_Search(model, start, free), q)


def _search_result(search: _Search, near: np.ndarray) -> RestingFreedoms:
    """Return the rest positions of a search that starts at a nearby pose (n_q,)."""
    point = search.at(search.start, near)
    damping = search.first_damping(point)
    next_step = np.inf
    for _ in range(MAX_EQUILIBRIUM_STEPS):
        newton, _ = search.step(point, 0.0)
        next_step = float(np.abs(newton).max())
        if next_step < REST_TOLERANCE or np.abs(point.x - search.start).max() > MAX_DISPLACEMENT:
            break
        step, _ = search.step(point, damping)
        next_point = search.after_step(point, step) if np.abs(step).max() <= MAX_STEP else None
        if next_point is None:
            damping *= FAILURE_DAMPING_FACTOR
        else:
            point = next_point
            damping *= SUCCESS_DAMPING_FACTOR
    return search.outcome(point, next_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchPoint:
    """Forces and distances from stops at one position of the k free coordinates.

    Attributes:
        x: position (k,), rad or characteristic lengths.
        q: coordinates (n_q,).
        force: f (k,), energy per unit of x.
        slope: f' (k, k), symmetric.
        stop_distance: distances s (m,) from the lower stops, then from the upper stops.
        stop_distance_slope: s' (m, k).
    """

    x: np.ndarray
    q: np.ndarray
    force: np.ndarray
    slope: np.ndarray
    stop_distance: np.ndarray
    stop_distance_slope: np.ndarray


class _Search:
    """Forces on the free coordinates of a machine whose motors hold their positions."""

    def __init__(self, model: Model, position: np.ndarray, free: tuple[int, ...]) -> None:
        ports, topology = model.actuators.ports, model.topology
        self._model, self._position, self._free = model, position, list(free)
        self._names = tuple(ports.position.columns[i] for i in free)
        self._rates = [ports.velocity.columns.index(name) for name in self._names]
        velocities = [topology.velocity_names.index(name) for name in self._names]
        self._unit = model.assembly.loops.velocity_scale[velocities]
        self.start = position[self._free] / self._unit
        self._stops = model.limits.of(("stop",))

    def at(self, x: np.ndarray, near: np.ndarray) -> _SearchPoint:
        """Return the forces and distances at a position; the loops are solved from a nearby pose.

        Raises:
            PoseError: the position is out of reach.
        """
        k = len(x)
        steps = np.concatenate([np.zeros((1, k)), DIFFERENCE * np.eye(k), -DIFFERENCE * np.eye(k)])
        positions = np.repeat(self._position[None], len(steps), axis=0)
        positions[:, self._free] = (x + steps) * self._unit
        motion = self._model.actuators
        q = np.asarray(motion.follow(positions, near).q)
        rest = np.zeros((len(steps), motion.ports.velocity.size))
        force = motion.bias(positions, rest, start=q)[:, self._rates] * self._unit
        stop_distance = self._stop_distances(q)
        slope = (force[1 : k + 1] - force[k + 1 :]) / (2 * DIFFERENCE)
        return _SearchPoint(
            x=x,
            q=q[0],
            force=force[0],
            slope=0.5 * (slope + slope.T),
            stop_distance=stop_distance[0],
            stop_distance_slope=(stop_distance[1 : k + 1] - stop_distance[k + 1 :]).T
            / (2 * DIFFERENCE),
        )

    def _stop_distances(self, q: np.ndarray) -> np.ndarray:
        """Return the distances (N, m) from the lower stops, then from the upper stops.

        The unit is rad or characteristic lengths.
        """
        limits = self._model.limits
        values = limits.values(q)
        distances = np.concatenate([values - limits.lower, limits.upper - values], axis=1)
        scaled = distances / np.concatenate([limits.scale, limits.scale])
        return np.asarray(scaled[:, np.concatenate([self._stops, self._stops])])

    def first_damping(self, point: _SearchPoint) -> float:
        """Return m of the first step, chosen so that the step is short."""
        return max(
            float(np.abs(point.force).max()) / (0.1 * MAX_STEP), self.stiffness(point), 1e-12
        )

    def stiffness(self, point: _SearchPoint) -> float:
        """Return the largest stiffness in any direction."""
        return float(np.abs(np.linalg.eigvalsh(point.slope)).max())

    def step(self, point: _SearchPoint, damping: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the step d (k,) of the quadratic program, and the forces (m,) of the stops."""
        from scipy.optimize import nnls  # slow to import, and rarely used

        eigenvalues, vectors = np.linalg.eigh(point.slope)
        # Go downhill in directions of negative stiffness, but not in undetermined directions. A
        # force that only a stop can balance must also give a finite step.
        min_stiffness = max(
            MIN_STIFFNESS * self.stiffness(point),
            np.abs(point.force).max() / MAX_DISPLACEMENT,
            MIN_POSITIVE_STIFFNESS,
        )
        stiffness = np.maximum(np.abs(eigenvalues) + damping, min_stiffness)
        # The quadratic program becomes a least-distance problem in z, with d = root z.
        root = vectors / np.sqrt(stiffness)
        is_near = np.isfinite(point.stop_distance) & (point.stop_distance < 2 * MAX_STEP)
        rows = point.stop_distance_slope[is_near] @ root
        unconstrained = -root.T @ point.force
        excess = -point.stop_distance[is_near] - rows @ unconstrained
        forces = np.zeros(len(point.stop_distance))
        if not (excess > 0.0).any():
            return root @ unconstrained, forces
        target = np.zeros(len(unconstrained) + 1)
        target[-1] = 1.0
        dual, _ = nnls(np.vstack([rows.T, excess]), target)
        residual = np.append(rows.T @ dual, excess @ dual) - target
        forces[is_near] = dual / -residual[-1]
        return root @ (unconstrained - residual[:-1] / residual[-1]), forces

    def after_step(self, point: _SearchPoint, step: np.ndarray) -> _SearchPoint | None:
        """Return the forces and distances after a step; None if the loops do not close there."""
        try:
            return self.at(point.x + step, point.q)
        except PoseError:
            return None

    def outcome(self, point: _SearchPoint, next_step: float) -> RestingFreedoms:
        """Return the result at the last point."""
        _, forces = self.step(point, 0.0)
        is_pressed = forces > 0.0
        pressed_names = dict.fromkeys(
            name for name, force in zip(self._stop_names(), forces, strict=True) if force > 0.0
        )
        return RestingFreedoms(
            names=self._names,
            position=self._full_position(point.x),
            q=point.q,
            at_stops=tuple(pressed_names),
            loose=self._undetermined(point, point.stop_distance_slope[is_pressed]),
            next_step=next_step,
        )

    def _stop_names(self) -> list[str]:
        """Return the names of the coordinates of the lower stops, then of the upper stops."""
        names = [
            name for name, stops in zip(self._model.limits.names, self._stops, strict=True) if stops
        ]
        return [*names, *names]

    def _full_position(self, x: np.ndarray) -> np.ndarray:
        """Return the position (n,) with the values x (k,) of the free coordinates."""
        position = np.array(self._position)
        position[self._free] = x * self._unit
        return position

    def _undetermined(self, point: _SearchPoint, stop_slopes: np.ndarray) -> tuple[str, ...]:
        """Return the degrees of freedom that neither stiffness nor stops determine.

        Args:
            point: the rest position.
            stop_slopes: rows of s' (r, k) for the stops against which coordinates press.
        """
        _, sigma, directions = np.linalg.svd(np.vstack([stop_slopes, np.zeros((1, len(point.x)))]))
        rank = int((sigma > MIN_STIFFNESS).sum())
        free_directions = directions[rank:]
        if not len(free_directions):
            return ()
        eigenvalues, vectors = np.linalg.eigh(free_directions @ point.slope @ free_directions.T)
        largest = max(self.stiffness(point), MIN_POSITIVE_STIFFNESS)
        is_soft = eigenvalues <= MIN_STIFFNESS * largest
        components = np.abs(vectors[:, is_soft].T @ free_directions).max(axis=0, initial=0.0)
        return tuple(name for name, c in zip(self._names, components, strict=True) if c > 0.1)
