"""Observers of external forces on the platform, from momenta or from velocity differences.

Both follow the true force F with a first-order lag, r' = K (F - r). They differ only in their
sensitivity to noise and to the time between samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
from scipy.signal import lfilter

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.catalogue import EMBEDDING, INVERSE_DYNAMICS, MOMENTUM_OBSERVER
from tauloop.model import Model

#: Product K T of bandwidth and sampling period above which exp(-K T) is zero, so that an estimate
#: does not lag. An infinite bandwidth would count as an overflow in machine code.
WITHOUT_LAG = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMotion(ReprMixin):
    """A motion that is measured by encoders and drives.

    Attributes:
        period: sample period, s.
        position, velocity: actuator positions (N, n_u), m or rad, and velocities, m/s or rad/s.
        force: actuator forces from each sample to the next (N, n_u), N or N m.
        q: coordinates near the first sample (n_q,).
    """

    period: float
    position: np.ndarray
    velocity: np.ndarray
    force: np.ndarray
    q: np.ndarray


class ForceObserver(ABC):
    """An observer of external forces, from a measured motion and a model."""

    @abstractmethod
    def unfiltered(self, model: Model, motion: MeasuredMotion) -> np.ndarray:
        """Return the forces that the model does not explain, for each of the platform's velocities.

        Returns:
            Forces F (N - 1, n), N or N m; row k is the force between samples k and k + 1.
        """

    def forces(self, model: Model, motion: MeasuredMotion, bandwidth: float) -> np.ndarray:
        """Return the unexplained forces r (N, n) with a first-order lag of bandwidth K (rad/s).

        The forces are zero at the first sample.
        """
        unfiltered = self.unfiltered(model, motion)
        gain = -np.expm1(-bandwidth * motion.period)
        filtered = lfilter([gain], [1.0, gain - 1.0], unfiltered, axis=0)
        return np.concatenate([np.zeros((1, unfiltered.shape[1])), filtered])


@final
class MomentumObserver(ForceObserver):
    """Observer by generalized momenta, which needs no accelerations.

    The equations are in `tauloop.compiler.functions.observer`.
    """

    def unfiltered(self, model: Model, motion: MeasuredMotion) -> np.ndarray:
        """Return the part of dp/dt that the model and the actuator forces do not explain.

        p are the generalized momenta in the coordinates of the platform's velocities.
        """
        count, n = len(motion.position), len(model.assembly.independent)
        q = _coordinates(model, motion)
        arguments: dict[str, object] = {"position": motion.position, "velocity": motion.velocity}
        inputs = {
            "force": np.concatenate([motion.force[:1], motion.force[:-1]]),
            "last_momentum": np.zeros((count, model.topology.n_v)),
            "last_external_force": np.zeros((count, n)),
            "period": np.full((count, 1), motion.period),
            "bandwidth": np.full((count, 1), WITHOUT_LAG / motion.period),
        }
        runner = model.actuators.runner
        momentum = runner.run(MOMENTUM_OBSERVER, arguments, start=q, extra=inputs)[0]["momentum"]
        inputs["last_momentum"] = np.concatenate([momentum[:1], momentum[:-1]])
        return runner.run(MOMENTUM_OBSERVER, arguments, start=q, extra=inputs)[0]["external_force"][
            1:
        ]


@final
class DifferencedVelocities(ForceObserver):
    """Observer by inverse dynamics, with accelerations from velocity differences."""

    def unfiltered(self, model: Model, motion: MeasuredMotion) -> np.ndarray:
        """Return forces of inverse dynamics minus actuator forces, mapped to the platform."""
        q = _coordinates(model, motion)[1:]
        state: dict[str, object] = {
            "position": motion.position[1:],
            "velocity": motion.velocity[1:],
        }
        acceleration = np.diff(motion.velocity, axis=0) / motion.period
        runner = model.actuators.runner
        arguments = state | {"acceleration": acceleration}
        needed = runner.run(INVERSE_DYNAMICS, arguments, start=q)[0]["force"]
        embedding = runner.run(EMBEDDING, state, start=q)[0]["G"]
        G = embedding.reshape(len(q), -1, model.topology.n_v).transpose(0, 2, 1)
        # the transpose of the map from actuator to platform velocities: platform to actuator forces
        to_actuators = G[:, list(model.assembly.independent)].transpose(0, 2, 1)
        unexplained = (needed - motion.force[:-1])[:, :, None]
        return np.asarray(np.linalg.solve(to_actuators, unexplained)[:, :, 0])


def _coordinates(model: Model, motion: MeasuredMotion) -> np.ndarray:
    """Return all coordinates (N, n_q), on the branch of the first sample."""
    return np.asarray(model.actuators.track(motion.position, motion.q).q)


def platform_force(
    model: Model, position: np.ndarray, q: np.ndarray, wrench: np.ndarray
) -> np.ndarray:
    """Return the forces J^T w (N, n) of tool wrenches w (N, 6), for the platform's velocities."""
    at_rest = np.zeros((len(position), model.platform.ports.velocity.size))
    J = np.asarray(model.platform.tool(position, at_rest, start=q).jacobian)
    return np.asarray(np.einsum("kim,ki->km", J, wrench))


#: Observers by name.
OBSERVERS: dict[str, ForceObserver] = {
    "momentum": MomentumObserver(),
    "differences": DifferencedVelocities(),
}
