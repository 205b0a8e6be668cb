"""Forces from outside on the platform along sampled motions: from momenta, or from differences of velocities.

Both follow the true force F as a first-order lag r' = K (F - r), so that they differ by what they
make of noise and of the time between two samples alone.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMotion(ReprMixin):
    """What encoders and drives tell at the samples of one motion.

    Attributes:
        period: between two samples, s.
        position, velocity: of the actuators (N, n_u), m or rad and their rates.
        force: of the actuators from each sample to the next (N, n_u), N or N m.
        q: coordinates near the first sample (n_q,).
    """

    period: float
    position: np.ndarray
    velocity: np.ndarray
    force: np.ndarray
    q: np.ndarray


class ForceObserver(ABC):
    """Forces from outside, from a measured motion and what a model explains of it."""

    @abstractmethod
    def unfiltered(self, model: Model, motion: MeasuredMotion) -> np.ndarray:
        """Forces on the platform's velocities that the model does not explain, of each step between two samples.

        Returns:
            F (N - 1, n), N or N m; row k belongs to the samples k and k + 1.
        """

    def forces(self, model: Model, motion: MeasuredMotion, bandwidth: float) -> np.ndarray:
        """The same behind a lag of K = `bandwidth`, rad/s, from zero at the first sample: r (N, n)."""
        raw = self.unfiltered(model, motion)
        share = -np.expm1(-bandwidth * motion.period)
        return np.concatenate(
            [np.zeros((1, raw.shape[1])), lfilter([share], [1.0, share - 1.0], raw, axis=0)]
        )


@final
class MomentumObserver(ForceObserver):
    """Generalized momenta: no acceleration is needed (`tauloop.compiler.functions.observer` has the equations)."""

    def unfiltered(self, model: Model, motion: MeasuredMotion) -> np.ndarray:
        """What the change of the momenta asks for beyond weight, transport, friction and the actuators."""
        count, n = len(motion.position), len(model.assembly.independent)
        q = _coordinates(model, motion)
        arguments: dict[str, object] = {"position": motion.position, "velocity": motion.velocity}
        inputs = {
            "force": np.concatenate([motion.force[:1], motion.force[:-1]]),
            "last_momentum": np.zeros((count, model.topology.n_v)),
            "last_external_force": np.zeros((count, n)),
            "period": np.full((count, 1), motion.period),
            "bandwidth": np.full((count, 1), np.inf),
        }
        runner = model.actuators.runner
        momentum = runner.run(MOMENTUM_OBSERVER, arguments, start=q, extra=inputs)[0]["momentum"]
        inputs["last_momentum"] = np.concatenate([momentum[:1], momentum[:-1]])
        return runner.run(MOMENTUM_OBSERVER, arguments, start=q, extra=inputs)[0]["external_force"][
            1:
        ]


@final
class DifferencedVelocities(ForceObserver):
    """Inverse dynamics with accelerations by differences of the velocities."""

    def unfiltered(self, model: Model, motion: MeasuredMotion) -> np.ndarray:
        """What inverse dynamics asks for beyond the actuators, by virtual work on the platform's velocities."""
        q = _coordinates(model, motion)[1:]
        moved: dict[str, object] = {
            "position": motion.position[1:],
            "velocity": motion.velocity[1:],
        }
        acceleration = np.diff(motion.velocity, axis=0) / motion.period
        runner = model.actuators.runner
        needed = runner.run(INVERSE_DYNAMICS, moved | {"acceleration": acceleration}, start=q)[0][
            "force"
        ]
        G = (
            runner.run(EMBEDDING, moved, start=q)[0]["G"]
            .reshape(len(q), -1, model.topology.n_v)
            .transpose(0, 2, 1)
        )
        platform = G[:, list(model.assembly.independent)].transpose(0, 2, 1)
        return np.asarray(
            np.linalg.solve(platform, (needed - motion.force[:-1])[:, :, None])[:, :, 0]
        )


def _coordinates(model: Model, motion: MeasuredMotion) -> np.ndarray:
    """All coordinates (N, n_q), from sample to sample on the branch of the first."""
    return np.asarray(model.actuators.track(motion.position, motion.q).q)


def platform_force(
    model: Model, position: np.ndarray, q: np.ndarray, wrench: np.ndarray
) -> np.ndarray:
    """Forces (N, n) on the platform's velocities of wrenches (N, 6) at the tool: J^T w."""
    still = np.zeros((len(position), model.platform.ports.velocity.size))
    J = np.asarray(model.platform.tool(position, still, start=q).jacobian)
    return np.asarray(np.einsum("kim,ki->km", J, wrench))


#: By name.
OBSERVERS: dict[str, ForceObserver] = {
    "momentum": MomentumObserver(),
    "differences": DifferencedVelocities(),
}
