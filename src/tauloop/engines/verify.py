"""Comparison of given actuator forces with those of every engine that is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tauloop.engines.engine import Engine, EngineForces
from tauloop.engines.in_mujoco import mujoco_engine
from tauloop.engines.in_pinocchio import pinocchio_engine
from tauloop.engines.motion import Motion
from tauloop.engines.poses import Array
from tauloop.errors import EngineError, InputError, Problem
from tauloop.mechanism.model import Freedom, Joint, Mechanism

#: How each engine is made, by its name.
ENGINES: Mapping[str, Callable[[Mechanism], Engine]] = {"Pinocchio": pinocchio_engine, "MuJoCo": mujoco_engine}

#: Least scale of a sample's forces, as a share of the largest force of all samples: where all forces of a sample
#: pass through zero a relative difference would say nothing.
LEAST_SCALE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineComparison:
    """How far given forces are from one engine's.

    Attributes:
        engine, version: of the engine.
        largest_difference: largest difference of a force, divided by the largest force of its sample.
        sample: where that is, counted from zero.
        actuator: on which actuator.
        closure: largest loop residual of the engine, m or rad.
        closure_rate, closure_acceleration: of the first and second derivatives of the residuals.
        balance: largest share of the forces that no actuator or constraint of the engine can supply.
    """

    engine: str
    version: str
    largest_difference: float
    sample: int
    actuator: str
    closure: float
    closure_rate: float
    closure_acceleration: float
    balance: float

    @property
    def worst(self) -> float:
        """Largest of difference, imbalance and residuals (m, rad, s): all must be small for the forces to be right.

        Equal forces say nothing of states that are off the loops' manifold, hence the residuals.
        """
        residuals = (self.closure, self.closure_rate, self.closure_acceleration)
        return max(self.largest_difference, self.balance, *residuals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Comparison with all engines.

    Attributes:
        mechanism: name of the machine.
        samples: how many states were compared.
        comparisons: one for each engine that ran.
        not_run: engines that did not run, with the reason.
    """

    mechanism: str
    samples: int
    comparisons: tuple[EngineComparison, ...]
    not_run: tuple[tuple[str, str], ...]

    @property
    def worst(self) -> float:
        """The largest `worst` of the engines that ran."""
        return max(comparison.worst for comparison in self.comparisons)


def compare(
    mechanism: Mechanism,
    motion: Motion,
    forces: Array,
    *,
    engines: Mapping[str, Callable[[Mechanism], Engine]] = ENGINES,
) -> Verification:
    """Compare actuator forces with those of the engines, at the nominal parameters.

    Args:
        mechanism: the machine. Engines leave friction out, so `forces` must be those of `frictionless(mechanism)`.
        motion: states on the loops' manifold, N samples.
        forces: (N, n_u) in the order of `mechanism.actuators`, N or N m.
        engines: makers of engines by name.

    Returns:
        The largest differences, with what the engines say of their own residuals.

    Raises:
        EngineError: no engine could be run; all reasons.
        InputError: forces of the wrong shape or not finite, or a motion that does not fit the machine.
    """
    forces = _checked(mechanism, motion, forces)
    comparisons: list[EngineComparison] = []
    problems: list[Problem] = []
    for name, make in engines.items():
        try:
            found = make(mechanism).inverse_dynamics(motion)
        except EngineError as error:
            problems += [replace(problem, where=f"{name}: {problem.where}") for problem in error.problems]
            continue
        comparisons.append(_comparison(found, forces))
    if not comparisons:
        raise EngineError(problems or Problem(where="engines", what="none was named", remedy="name an engine"))
    return Verification(
        mechanism=mechanism.name,
        samples=len(forces),
        comparisons=tuple(comparisons),
        not_run=tuple((problem.where, f"{problem.what}; {problem.remedy}") for problem in problems),
    )


def frictionless(mechanism: Mechanism) -> Mechanism:
    """The same machine without friction in its joints, telescopic rods and actuators."""
    return replace(
        mechanism,
        joints=tuple(_without(joint) for joint in mechanism.joints),
        rods=tuple(
            rod
            if rod.telescope is None
            else replace(rod, telescope=replace(rod.telescope, freedom=replace(rod.telescope.freedom, friction=None)))
            for rod in mechanism.rods
        ),
        actuators=tuple(replace(actuator, friction=None) for actuator in mechanism.actuators),
    )


def _without(joint: Joint) -> Joint:
    def smooth(freedom: Freedom) -> Freedom:
        return replace(freedom, friction=None)

    return replace(joint, freedoms=tuple(smooth(freedom) for freedom in joint.freedoms))


def _checked(mechanism: Mechanism, motion: Motion, forces: Array) -> Array:
    forces = np.asarray(forces, dtype=float)
    samples = len(next(iter(motion.q.values()))) if motion.q else 0
    wanted = (samples, len(mechanism.actuators))
    if forces.shape != wanted or forces.size == 0:
        raise InputError(
            Problem(where="forces", what=f"shape {forces.shape}", remedy=f"give (samples, actuators) = {wanted}")
        )
    if not np.all(np.isfinite(forces)):
        raise InputError(Problem(where="forces", what=f"{np.sum(~np.isfinite(forces))} numbers are not finite"))
    return forces


def _comparison(found: EngineForces, forces: Array) -> EngineComparison:
    size = np.maximum(np.max(np.abs(found.forces), axis=1), np.max(np.abs(forces), axis=1))
    scale = np.maximum(size, LEAST_SCALE * np.max(size))
    difference = np.abs(forces - found.forces) / np.where(scale > 0.0, scale, 1.0)[:, None]
    sample, actuator = np.unravel_index(np.argmax(difference), difference.shape)
    return EngineComparison(
        engine=found.engine,
        version=found.version,
        largest_difference=float(difference[sample, actuator]),
        sample=int(sample),
        actuator=found.actuators[int(actuator)],
        closure=float(np.max(found.closure)),
        closure_rate=float(np.max(found.closure_rate)),
        closure_acceleration=float(np.max(found.closure_acceleration)),
        balance=float(np.max(found.balance)),
    )
