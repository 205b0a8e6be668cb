"""Round trips: inverse dynamics computes the forces of a motion, forward dynamics reproduces it.

Source: Miller (NUWAR paper), sections 5 and 6, Figure 3. The forces are computed inside the
right-hand side at the times of the integrator's evaluations; they are not interpolated.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import channels, tabulated
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic
from tauloop.equations.assembly.limits import beyond_limits
from tauloop.integrate.integrators import DormandPrince, Integrator
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.forces import InverseDynamicsForce, MotionInTime
from tauloop.simulation.routes import Route
from tauloop.simulation.simulation import Simulation, Simulator, start_state

if TYPE_CHECKING:
    import xarray as xr

#: Largest position error of a round trip, in characteristic lengths: 1 nm for a machine with a
#: characteristic length of 0.2 m.
POSITION_TOLERANCE = 5e-9
#: Default integrator of a round trip. Its tolerances are tight because errors grow with time.
DEFAULT_INTEGRATOR = DormandPrince(rtol=1e-12, atol=1e-13)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip(Result):
    """A motion passed through inverse dynamics and then forward dynamics.

    Attributes:
        columns, units: names and units of the platform's positions.
        simulation: the simulation with forward dynamics.
        wanted: desired positions, which inverse dynamics takes, at the simulation's times (N, n).
        error: simulated positions minus given positions (N, n).
        length: characteristic length of the machine, m.
    """

    columns: tuple[str, ...] = field(metadata=OMITTED)
    units: tuple[str, ...] = field(metadata=OMITTED)
    simulation: Simulation = field(metadata=tabulated())
    wanted: np.ndarray = field(metadata=OMITTED | channels("time", names="columns", units="units"))
    error: np.ndarray = field(metadata=OMITTED | channels("time", names="columns", units="units"))
    length: float = field(metadata=OMITTED)

    @property
    @in_json("limit_m")
    def limit(self) -> float:
        """Limit of the position error, m."""
        return POSITION_TOLERANCE * self.length

    @property
    @in_json("largest_position_error_m")
    def position_error(self) -> float:
        """Largest distance of the platform from the given motion, m; zero if it only rotates."""
        translational = [i for i, unit in enumerate(self.units) if unit == "m"]
        return float(np.linalg.norm(self.error[:, translational], axis=1).max())

    @property
    @in_json("largest_turning_error_rad")
    def turning_error(self) -> float:
        """Largest error of an angle (rad) or of a quaternion component."""
        rotational = [i for i, unit in enumerate(self.units) if unit != "m"]
        return float(np.abs(self.error[:, rotational]).max()) if rotational else 0.0

    def log(self) -> xr.Dataset:
        """Return the simulated motion as a log."""
        return self.simulation.log()


def round_trip(
    model: Model,
    motion: MotionInTime,
    duration: float,
    *,
    route: Route | None = None,
    integrator: Integrator | None = None,
    progress: Progress | None = None,
) -> RoundTrip:
    """Compute the forces of a motion by inverse dynamics, and simulate the motion with them.

    Args:
        model: the machine.
        motion: motion of the platform.
        duration: duration from time zero, s.
        route: method of forward dynamics; independent coordinates by default.
        integrator: integration method; Dormand-Prince with tight tolerances by default.
        progress: see `Simulator.run`.

    Returns:
        The simulated and the given motion, with their difference.

    Raises:
        InputError, PoseError: see `simulate` and inverse dynamics.
    """
    first = motion.at(np.zeros(1))
    q, v = start_state(model, first.position[0], first.velocity[0])
    simulator = Simulator(
        model, route=route, integrator=DEFAULT_INTEGRATOR if integrator is None else integrator
    )
    run = simulator.run(
        duration, q=q, v=v, force=InverseDynamicsForce(model, motion), progress=progress
    )
    wanted = motion.at(run.time).position
    port = model.platform.ports.position
    trip = RoundTrip(
        diagnostics=(
            run.diagnostics[0],
            *beyond_limits(run.diagnostics),
            *omission_diagnostics(model.mechanism),
        ),
        provenance=run.provenance,
        columns=port.columns,
        units=port.units,
        simulation=run,
        wanted=wanted,
        error=model.platform_position(run.q) - wanted,
        length=model.assembly.loops.length,
    )
    distance = diagnostic(
        "largest distance from the given motion",
        trip.position_error,
        at_most=trip.limit,
        unit="m",
        advice="use smaller tolerances; near singularities errors grow without bound",
    )
    return replace(trip, diagnostics=(distance, *trip.diagnostics))
