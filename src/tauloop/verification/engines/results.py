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
    """Residuals of an engine's own loops, per sample (N,).

    Attributes:
        closure: largest residual, m or rad.
        closure_rate, closure_acceleration: values of its first and second derivatives.
    """

    closure: Array
    closure_rate: Array
    closure_acceleration: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeStates(ReprMixin):
    """States of an engine's tree with closed loops, in the coordinates of machine files (N samples).

    Attributes:
        names: names of the velocities.
        q, v, a: coordinates (N, n_q), velocities and accelerations (N, n_v).
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
        left = np.max(np.abs(times(self.jacobian, a) + self.bias), axis=1, initial=0.0)
        return replace(self.residuals, closure_acceleration=left)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineResult(ReprMixin):
    """Base of the results of engines.

    Attributes:
        residuals: residuals of the loops.
        method: which of the engine's outputs the numbers are based on.
    """

    residuals: Residuals
    method: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineForces(EngineResult):
    """Actuator forces that an engine computed.

    Attributes:
        actuators: names.
        forces: (N, n_u), N or N m; friction is left out.
        balance: largest force that neither actuators nor constraints can supply, divided by the
            largest tree force of that sample (N,). It is large if the motion needs an actuator that
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
        accelerations: (N, n_v).
        residuals: residuals of the loops, with these accelerations.
    """

    names: tuple[str, ...]
    accelerations: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineVelocities(EngineResult):
    """Velocities per unit of the independent ones that an engine computed.

    Attributes:
        names: names of the tree's velocities.
        embedding: G (N, n_v, m).
        actuator_jacobian: A G (N, n_u, m), with A from velocities to those of the actuators.
        residuals: residuals of the loops; `closure_rate` is the largest entry of K G.
    """

    names: tuple[str, ...]
    embedding: Array
    actuator_jacobian: Array
