"""Hybrid inverse dynamics of a machine: actuator forces and passive accelerations."""

from __future__ import annotations

from typing import final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.catalogue import HYBRID_INVERSE_DYNAMICS
from tauloop.compiler.state import Forces
from tauloop.equations.ports import Port
from tauloop.model.forces.force_sharing import EQUAL_SHARES, ForceSharing
from tauloop.model.motion import Motion


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridForces(ReprMixin):
    """Hybrid inverse dynamics of a motion.

    Attributes:
        passive_names: names of the passive degrees of freedom; empty for most machines.
        passive_acceleration: accelerations of the passive degrees of freedom (N, n_p), rad/s^2 or
            m/s^2.
        forces: actuator forces and multipliers, and the full motion including the passive
            accelerations.
    """

    passive_names: tuple[str, ...]
    passive_acceleration: np.ndarray
    forces: Forces


@final
class HybridFunctions:
    """Inverse dynamics with given actuator accelerations and unknown passive accelerations."""

    preload = old_attribute("preload", "preload_directions")

    def __init__(self, actuators: Motion) -> None:
        """Store the functions of the actuators' motion."""
        self._actuators = actuators

    @property
    def ports(self) -> dict[str, Port]:
        """Ports of the motion; accelerations are those of the leading actuators only.

        The leading actuators are independent; redundant ones follow them.
        """
        ports = self._actuators.ports
        acceleration = ports.leading_acceleration(len(self._actuators.assembly.leading))
        return {
            "position": ports.position,
            "velocity": ports.velocity,
            "acceleration": acceleration,
        }

    def inverse_dynamics(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        start: object | None = None,
        theta: object | None = None,
        sharing: ForceSharing = EQUAL_SHARES,
    ) -> HybridForces:
        """Return actuator forces and the resulting accelerations of passive degrees of freedom.

        The forces u and the accelerations a_p of the passive degrees of freedom solve
        `[G^T S, -G^T M G_p] [u; a_p] = G^T (M (G_m a_m + gamma) + h)`. Here a_m are the
        accelerations of the leading actuators, and G_m and G_p are the columns of G for a_m and
        a_p. gamma are the accelerations of all coordinates if a_m and a_p are zero. M, h and S are
        the mass matrix, the bias forces (Coriolis, gravity, friction), and the directions of the
        actuator forces, in all coordinates.

        Args:
            position, velocity: leading actuators and passive degrees of freedom (N, m) or (m,), SI;
                columns as in `ports`.
            acceleration: accelerations of the leading actuators (N, n_m) or (n_m,).
            start: start values (N, n_q) for Newton blocks.
            theta: free parameters.
            sharing: force sharing of redundant actuators, and preloads of cables.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular; or no tensions within bounds produce this motion.
            AssemblyError: a passive degree of freedom has no inertia.
        """
        arguments = {
            "position": position,
            "velocity": velocity,
            "actuator_acceleration": acceleration,
        }
        weights = self._actuators.weights(sharing)
        outputs, diagnostics, single = self._actuators.runner.run(
            HYBRID_INVERSE_DYNAMICS,
            arguments,
            start=start,
            theta=theta,
            weights=weights,
            preloads=sharing.preloads(self._actuators.runner.mechanism),
        )
        passive = outputs["passive_acceleration"]
        return HybridForces(
            passive_names=self._actuators.assembly.passive_names,
            passive_acceleration=passive[0] if single else passive,
            forces=self._actuators.forces(outputs, diagnostics, single, weights, start=start),
        )

    def preload_directions(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Return directions of actuator forces without effect on the motion: R^T u = 0.

        Args:
            position: leading actuators and passive degrees of freedom (N, m) or (m,), SI.
            start: start values (N, n_q) for Newton blocks.

        Returns:
            Orthonormal directions (N, n_u, n_u - rank) or (n_u, n_u - rank), in the units of the
            forces: N m for rotary and N for linear actuators. Adding any multiple of them to the
            forces does not change the motion.

        Raises:
            InputError: wrong names, shapes or values; or the machine has no redundant actuators.
            PoseError: out of reach or singular.
        """
        assembly = self._actuators.assembly
        if not assembly.is_redundant:
            count = len(assembly.leading)
            what = (
                f"{counted(count, 'actuator', 'drive')} {counted(count, 'degree of freedom')}, so no "
                "internal preload is possible"
            )
            raise InputError.of(
                "actuators",
                what,
                "omit the preload, or use a machine with redundant actuators",
            )
        R = self._actuators.actuator_jacobian(position, start=start)[..., : len(assembly.leading)]
        U, _, _ = np.linalg.svd(R, full_matrices=True)
        return np.asarray(U[..., len(assembly.leading) :])
