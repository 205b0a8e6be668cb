"""The round trip: forces of a motion by inverse dynamics, fed to forward dynamics, give the motion back.

Source: Miller (NUWAR paper), sections 5 and 6, Figure 3. The forces are computed inside the
right-hand side, at the times that the integrator asks for, and never interpolated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import Variable, columns
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic
from tauloop.equations.assembly.limits import beyond_limits
from tauloop.integrate.integrators import DormandPrince, Integrator
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.forces import InverseDynamicsForce, MotionInTime
from tauloop.simulation.routes import Route
from tauloop.simulation.simulation import Simulation, Simulator, start_state

if TYPE_CHECKING:
    import xarray as xr

#: A round trip shall return to within this, characteristic lengths: a nanometre on a machine of 0.2
#: m.
RETURNED = 5e-9
#: Tolerances of a round trip: an error grows on the way, for nothing pulls the machine back.
TIGHT = DormandPrince(rtol=1e-12, atol=1e-13)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip(Result):
    """A motion that went through inverse and forward dynamics.

    Attributes:
        columns, units: names and units of the platform's positions.
        simulation: forward dynamics.
        wanted: positions that inverse dynamics was given, at the simulation's times (N, n).
        error: positions that came back less these (N, n).
        length: characteristic length of the machine, m.
    """

    columns: tuple[str, ...] = field(metadata=OMITTED)
    units: tuple[str, ...] = field(metadata=OMITTED)
    simulation: Simulation
    wanted: np.ndarray = field(metadata=OMITTED)
    error: np.ndarray = field(metadata=OMITTED)
    length: float = field(metadata=OMITTED)

    @property
    @in_json("limit_m")
    def limit(self) -> float:
        """Largest distance of a trip that returns, m."""
        return RETURNED * self.length

    @property
    @in_json("largest_position_error_m")
    def position_error(self) -> float:
        """Largest distance of the platform from where it was wanted, m; zero where it only turns."""
        moved = [i for i, unit in enumerate(self.units) if unit == "m"]
        return float(np.linalg.norm(self.error[:, moved], axis=1).max())

    @property
    @in_json("largest_turning_error_rad")
    def turning_error(self) -> float:
        """Largest error of an angle or of a quaternion's number, rad."""
        turned = [i for i, unit in enumerate(self.units) if unit != "m"]
        return float(np.abs(self.error[:, turned]).max()) if turned else 0.0

    def variables(self) -> Iterator[Variable]:
        """Those of the simulation; what was wanted, and what came back less this."""
        yield from self.simulation.variables()
        yield from columns("wanted", self.columns, self.units, self.wanted)
        yield from columns("error", self.columns, self.units, self.error)

    def log(self) -> xr.Dataset:
        """The motion that came back, as a log."""
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
    """Feed the forces of a motion to forward dynamics.

    Args:
        model: the machine.
        motion: of its platform.
        duration: s, from time zero.
        route: to forward dynamics; independent coordinates without it.
        integrator: Dormand and Prince's with tight tolerances without it.
        progress: as of `Simulator.run`.

    Raises:
        InputError, PoseError: as of `simulate` and of inverse dynamics.
    """
    first = motion.at(np.zeros(1))
    q, v = start_state(model, first.position[0], first.velocity[0])
    simulator = Simulator(
        model, route=route, integrator=TIGHT if integrator is None else integrator
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
        "largest distance from where it was wanted",
        trip.position_error,
        at_most=trip.limit,
        unit="m",
        advice="give smaller tolerances; near singularities errors grow without bound",
    )
    return replace(trip, diagnostics=(distance, *trip.diagnostics))
