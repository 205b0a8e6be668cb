"""Comparison of forces, accelerations and Jacobians with the results of other engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import EngineError, InputError, Problem, Problems, TauloopError
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.engine import Engine
from tauloop.verification.engines.in_mujoco import mujoco_engine
from tauloop.verification.engines.motion import NamedMotion
from tauloop.verification.engines.pinocchio.in_pinocchio import pinocchio_engine
from tauloop.verification.engines.results import (
    EngineAccelerations,
    EngineForces,
    EngineResult,
    EngineVelocities,
)

#: Functions that create the engines, by name.
ENGINES: Mapping[str, Callable[[Mechanism], Engine]] = {
    "Pinocchio": pinocchio_engine,
    "MuJoCo": mujoco_engine,
}

#: Smallest scale of a sample's forces, as a fraction of the largest force of all samples. It avoids
#: meaningless relative differences if all forces of a sample are close to zero.
MIN_SCALE = 1e-3


#: Names of the compared quantities. "Own solver" is the constraint solver of the engine.
INVERSE_DYNAMICS = "inverse dynamics"
FORWARD_DYNAMICS = "forward dynamics"
UNDER_WRENCH = "forward dynamics, wrench at the tool"
OWN_UNDER_WRENCH = "forward dynamics, wrench, own solver"
OWN_FORWARD = "forward dynamics, own solver"
OWN_INVERSE = "inverse dynamics, own solver"
EMBEDDING = "embedding"
ACTUATOR_JACOBIAN = "actuator Jacobian"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineComparison:
    """Difference between Tauloop's values and those of an engine.

    Attributes:
        quantity: name of the compared quantity.
        engine: name of the engine.
        version: version of the engine.
        method: output of the engine from which its values are computed.
        largest_difference: largest difference of a value, divided by the largest value of its
            sample (both in natural units if their units differ).
        sample: the sample with the largest difference, counted from zero.
        column: the value with the largest difference: an actuator, a velocity, or a velocity per
            unit of another.
        compared: number of values per sample that were compared.
        closure: largest loop residual of the engine, m or rad.
        closure_rate: largest first time derivative of the residuals.
        closure_acceleration: largest second time derivative of the residuals.
        balance: largest fraction of the forces that neither actuators nor constraints of the engine
            can supply; None if no forces are computed.
    """

    quantity: str
    engine: str
    version: str
    method: str
    largest_difference: float
    sample: int
    column: str
    compared: int
    closure: float
    closure_rate: float
    closure_acceleration: float
    balance: float | None

    @property
    def label(self) -> str:
        """Name of the comparison in tables."""
        return f"{self.quantity}: {self.engine}, {self.method}"

    @property
    def residual(self) -> float:
        """Largest of the engine's force imbalance and loop residuals, SI."""
        rates = (self.closure_rate, self.closure_acceleration)
        return float(np.max((self.balance or 0.0, self.closure, *rates)))

    @property
    def worst(self) -> float:
        """Larger of difference and residual; both must be small for correct results.

        The residuals are included because equal values mean nothing if the loops are not closed.
        """
        return float(np.max([self.largest_difference, self.residual]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(ReprMixin):
    """Comparison with all engines.

    Attributes:
        mechanism: name of the machine.
        samples: number of compared states.
        distinct_states: number of distinct states among them; None if the caller chose them.
        comparisons: a comparison for each engine and quantity that could be compared.
        not_run: engines and quantities that could not be compared, with the reason.
        q: coordinates of the distinct states (N, n_q); None if the caller chose them.
    """

    mechanism: str
    samples: int
    comparisons: tuple[EngineComparison, ...]
    not_run: tuple[tuple[str, str], ...]
    distinct_states: int | None = None
    q: Array | None = None
    different = old_attribute("different", "distinct_states")

    @property
    def worst(self) -> float:
        """Largest `worst` of all comparisons."""
        return float(np.max([comparison.worst for comparison in self.comparisons]))


def compare_forces(
    mechanism: Mechanism,
    motion: NamedMotion,
    forces: Array,
    *,
    engines: Mapping[str, Callable[[Mechanism], Engine]] = ENGINES,
) -> Verification:
    """Compare actuator forces with those of the engines, at the nominal parameters.

    Args:
        mechanism: the machine. Engines neglect friction, so that `forces` must be the forces of
            `frictionless(mechanism)`.
        motion: N states with closed loops.
        forces: (N, n_u) in the order of `mechanism.actuators`, N or N m.
        engines: functions that create engines, by name.

    Returns:
        The largest differences, with the residuals that the engines report.

    Raises:
        EngineError: no engine could be run; the error lists all reasons.
        InputError: forces have the wrong shape or are not finite, or the motion does not fit the
            machine.
    """
    forces = _checked(mechanism, motion, forces)
    comparisons: list[EngineComparison] = []
    problems = Problems()
    for name, make in engines.items():
        try:
            engine = make(mechanism)
            comparisons.append(
                force_comparison(INVERSE_DYNAMICS, engine, engine.inverse_dynamics(motion), forces)
            )
        except EngineError as error:
            problems += with_location(name, error)
    return verification(mechanism, len(forces), comparisons, problems)


def with_location(where: str, error: TauloopError) -> list[Problem]:
    """Return the problems of an error, with a prefix that states the engine and the quantity."""
    return [replace(problem, where=f"{where}: {problem.where}") for problem in error.problems]


def verification(
    mechanism: Mechanism,
    samples: int,
    comparisons: Sequence[EngineComparison],
    problems: Problems,
    distinct_states: int | None = None,
) -> Verification:
    """Return the comparisons, and the reasons why other comparisons were not possible.

    Raises:
        EngineError: nothing could be compared; the error lists all reasons.
    """
    if not comparisons:
        raise EngineError(
            problems
            or Problem(where="engines", what="no engine is selected", remedy="select an engine")
        )
    return Verification(
        mechanism=mechanism.name,
        samples=samples,
        distinct_states=distinct_states,
        comparisons=tuple(comparisons),
        not_run=tuple((problem.where, f"{problem.what}; {problem.remedy}") for problem in problems),
    )


def frictionless(mechanism: Mechanism) -> Mechanism:
    """Return the same machine without friction in its joints, telescopic rods and actuators."""
    return mechanism.without_friction()


def _checked(mechanism: Mechanism, motion: NamedMotion, forces: Array) -> Array:
    """Return forces as an array (N, n_u).

    Raises:
        InputError: the shape is wrong, or values are not finite.
    """
    forces = np.asarray(forces, dtype=float)
    samples = len(next(iter(motion.q.values()))) if motion.q else 0
    expected = (samples, len(mechanism.actuators))
    if forces.shape != expected or forces.size == 0:
        raise InputError.of(
            "forces", f"have the shape {forces.shape}", f"give (samples, actuators) = {expected}"
        )
    if not np.all(np.isfinite(forces)):
        raise InputError.of(
            "forces",
            f"{counted(np.sum(~np.isfinite(forces)), 'number', 'are')} not finite",
            "correct or remove these samples",
        )
    return forces


def force_comparison(
    quantity: str, engine: Engine, computed: EngineForces, forces: Array
) -> EngineComparison:
    """Compare actuator forces of inverse dynamics (N, n_u) with those of an engine.

    Returns:
        The largest difference, with its sample and column.
    """
    return _comparison(
        quantity,
        engine,
        computed,
        (computed.forces, forces),
        computed.actuators,
        float(np.max(computed.balance)),
    )


def acceleration_comparison(
    quantity: str,
    engine: Engine,
    computed: EngineAccelerations,
    names: tuple[str, ...],
    accelerations: Array,
    scale: Array,
) -> EngineComparison:
    """Compare accelerations of forward dynamics in the velocities that both sides have.

    Args:
        quantity: name of the quantity: forward dynamics with or without the engine's solver.
        engine: engine to compare with.
        computed: accelerations of the engine.
        names: names of Tauloop's velocities.
        accelerations: accelerations (N, n_v) of Tauloop.
        scale: scale of the velocities (n_v,), m or 1, which makes meters and radians comparable.

    Returns:
        The largest difference, with its sample and column.
    """
    ours, theirs = _common(names, computed.names)
    sides = (computed.accelerations[:, theirs] / scale[ours], accelerations[:, ours] / scale[ours])
    return _comparison(quantity, engine, computed, sides, tuple(names[i] for i in ours))


def velocity_comparisons(
    engine: Engine,
    computed: EngineVelocities,
    names: tuple[str, ...],
    independent: tuple[str, ...],
    embedding: Array,
    actuator_jacobian: Array,
    scale: Array,
) -> tuple[EngineComparison, ...]:
    """Compare Jacobians: velocities of joints and actuators per unit of each independent velocity.

    Args:
        engine: engine to compare with.
        computed: velocities of the engine.
        names: names of Tauloop's velocities.
        independent: names of the independent velocities.
        embedding: G (N, n_v, m) of Tauloop.
        actuator_jacobian: A G (N, n_u, m) of Tauloop.
        scale: scale of the velocities (n_v,), m or 1.

    Returns:
        A comparison for each of the two Jacobians.
    """
    ours, theirs = _common(names, computed.names)
    unit = scale[[names.index(name) for name in independent]]
    loads = engine.tree.loads
    scale_of = dict(zip(names, scale, strict=True))
    tree_scale = np.array([scale_of.get(name, 1.0) for name in computed.names])
    actuator_scale = np.abs(loads.transmission) @ tree_scale
    sides: dict[str, tuple[Array, Array, Array, Sequence[str]]] = {
        EMBEDDING: (
            computed.embedding[:, theirs],
            embedding[:, ours],
            scale[ours],
            [names[i] for i in ours],
        ),
        ACTUATOR_JACOBIAN: (
            computed.actuator_jacobian,
            actuator_jacobian,
            actuator_scale,
            loads.actuators,
        ),
    }

    def comparison(quantity: str) -> EngineComparison:
        their_values, our_values, row_scale, rows = sides[quantity]
        factor = unit / row_scale[:, None]
        samples = len(our_values)
        columns = tuple(f"{row} per {column}" for row in rows for column in independent)
        scaled_sides = (
            (their_values * factor).reshape(samples, -1),
            (our_values * factor).reshape(samples, -1),
        )
        return _comparison(quantity, engine, computed, scaled_sides, columns)

    return tuple(comparison(quantity) for quantity, (*_, rows) in sides.items() if rows)


def _common(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[list[int], list[int]]:
    """Return the indices of the common names in both tuples."""
    both = [name for name in ours if name in theirs]
    return [ours.index(name) for name in both], [theirs.index(name) for name in both]


def _comparison(
    quantity: str,
    engine: Engine,
    result: EngineResult,
    sides: tuple[Array, ...],
    columns: tuple[str, ...],
    balance: float | None = None,
) -> EngineComparison:
    """Return the comparison of an engine's values (N, k) with Tauloop's values (N, k)."""
    theirs, ours = sides
    largest = np.maximum(np.max(np.abs(theirs), axis=1), np.max(np.abs(ours), axis=1))
    scale = np.maximum(largest, MIN_SCALE * np.max(largest))
    difference = np.abs(ours - theirs) / np.where(scale > 0.0, scale, 1.0)[:, None]
    sample, column = np.unravel_index(np.argmax(difference), difference.shape)
    return EngineComparison(
        quantity=quantity,
        engine=engine.name,
        version=engine.version,
        method=result.method,
        largest_difference=float(difference[sample, column]),
        sample=int(sample),
        column=columns[int(column)],
        compared=len(columns),
        **{key: float(np.max(values)) for key, values in asdict(result.residuals).items()},
        balance=balance,
    )
