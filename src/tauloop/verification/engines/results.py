"""Results of engines, with measures of their accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.least_squares import times


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Residuals:
    """Largest residuals (N,) of an engine's loops at each sample.

    Attributes:
        closure: largest residual, m or rad.
        closure_rate: largest first time derivative of the residuals.
        closure_acceleration: largest second time derivative of the residuals.
    """

    closure: Array
    closure_rate: Array
    closure_acceleration: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeStates(ReprMixin):
    """N states of an engine's tree with closed loops, in the coordinates of machine files.

    Attributes:
        names: names of the velocities.
        q: coordinates (N, n_q).
        v: velocities (N, n_v).
        a: accelerations (N, n_v).
        jacobian: K of all constraint rows (N, n_c, n_v).
        bias: (dK/dt) v (N, n_c).
        residuals: residuals of the loops.
    """

    names: tuple[str, ...]
    q: Array
    v: Array
    a: Array
    jacobian: Array
    bias: Array
    residuals: Residuals

    def moving(self, a: Array) -> Residuals:
        """Return the residuals with other accelerations (N, n_v)."""
        residual = np.max(np.abs(times(self.jacobian, a) + self.bias), axis=1, initial=0.0)
        return replace(self.residuals, closure_acceleration=residual)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineResult(ReprMixin):
    """Base class of the results of engines.

    Attributes:
        residuals: residuals of the loops.
        method: output of the engine from which the values are computed.
    """

    residuals: Residuals
    method: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineForces(EngineResult):
    """Actuator forces that an engine computed.

    Attributes:
        actuators: names of the actuators.
        forces: (N, n_u) actuator forces without friction, N or N m.
        balance: (N,) largest force that neither actuators nor constraints can supply, divided by
            the largest tree force of the sample. It is large if the motion needs an actuator that
            the machine does not have.
    """

    actuators: tuple[str, ...]
    forces: Array
    balance: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineAccelerations(EngineResult):
    """Accelerations under actuator forces that an engine computed.

    Attributes:
        names: names of the tree's velocities.
        accelerations: (N, n_v) accelerations of the tree.
        residuals: residuals of the loops with these accelerations.
    """

    names: tuple[str, ...]
    accelerations: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineVelocities(EngineResult):
    """Velocities per independent velocity that an engine computed.

    Attributes:
        names: names of the tree's velocities.
        embedding: matrix G (N, n_v, m) from independent to all velocities.
        actuator_jacobian: A G (N, n_u, m) with the matrix A from velocities to actuator velocities.
        residuals: residuals of the loops; `closure_rate` is the largest entry of K G.
    """

    names: tuple[str, ...]
    embedding: Array
    actuator_jacobian: Array
