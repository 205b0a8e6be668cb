"""The round trip: forces of a motion by inverse dynamics, fed to forward dynamics, give the motion back.

Source: Miller (NUWAR paper), sections 5 and 6, Figure 3. The forces are computed inside the right-hand side, at the
times that the integrator asks for, and never interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.integrate.integrators import DormandPrince, Integrator
from tauloop.model import Model
from tauloop.simulation.forces import InverseDynamicsForce, Motion
from tauloop.simulation.routes import Route
from tauloop.simulation.simulation import Simulation, simulate, start_state

#: Tolerances of a round trip: an error grows on the way, for nothing pulls the machine back.
TIGHT = DormandPrince(rtol=1e-12, atol=1e-13)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """A motion that went through inverse and forward dynamics.

    Attributes:
        columns, units: names and units of the platform's positions.
        simulation: forward dynamics.
        wanted: positions that inverse dynamics was given, at the simulation's times (N, n).
        error: positions that came back less these (N, n).
    """

    columns: tuple[str, ...]
    units: tuple[str, ...]
    simulation: Simulation
    wanted: np.ndarray
    error: np.ndarray

    @property
    def position_error(self) -> float:
        """Largest distance of the platform from where it was wanted, m; zero where it only turns."""
        moved = [i for i, unit in enumerate(self.units) if unit == "m"]
        return float(np.linalg.norm(self.error[:, moved], axis=1).max())

    @property
    def turning_error(self) -> float:
        """Largest error of an angle or of a quaternion's number, rad."""
        turned = [i for i, unit in enumerate(self.units) if unit != "m"]
        return float(np.abs(self.error[:, turned]).max()) if turned else 0.0


def round_trip(
    model: Model,
    motion: Motion,
    duration: float,
    *,
    route: Route | None = None,
    integrator: Integrator | None = None,
) -> RoundTrip:
    """Feed the forces of a motion to forward dynamics.

    Args:
        model: the machine.
        motion: of its platform.
        duration: s, from time zero.
        route: to forward dynamics; independent coordinates without it.
        integrator: Dormand and Prince's with tight tolerances without it.

    Raises:
        InputError, PoseError: as of `simulate` and of inverse dynamics.
    """
    first = motion.at(np.zeros(1))
    q, v = start_state(model, first.position[0], first.velocity[0])
    found = simulate(
        model,
        duration,
        q=q,
        v=v,
        force=InverseDynamicsForce(model, motion),
        route=route,
        integrator=TIGHT if integrator is None else integrator,
    )
    wanted = motion.at(found.time).position
    port = model.platform.ports.position
    return RoundTrip(
        columns=port.columns,
        units=port.units,
        simulation=found,
        wanted=wanted,
        error=model.platform_position(found.q) - wanted,
    )
