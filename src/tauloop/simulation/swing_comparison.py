"""The same conservative swing by every route: whether the exact ones keep energy and loops, how the others drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import InputError
from tauloop.common.plain import in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic
from tauloop.equations.assembly.limits import beyond_limits
from tauloop.integrate.integrators import Integrator
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.routes import ROUTES
from tauloop.simulation.simulation import Simulation, Simulator
from tauloop.simulation.swing import DriveSpring, swing

#: A swing shall keep its energy to this share of its largest kinetic energy, and its loops to this,
#: m, by the routes on which nothing drifts.
ENERGY_KEPT, LOOPS_KEPT, EXACT = 1e-8, 1e-10, ("independent", "projected")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwingComparison(Result):
    """A conservative swing by every route.

    Attributes:
        machine: its name.
        duration: s.
        springs: at its drives.
        routes: the simulations by route.
        left_out: why a route cannot be gone, by its name.
    """

    machine: str = field(metadata=json_keys())
    duration: float = field(metadata=json_keys("duration_s"))
    springs: tuple[DriveSpring, ...]
    routes: Mapping[str, Simulation]
    left_out: Mapping[str, str]

    def keeps(self, name: str) -> bool:
        """Whether a route reaches the end and keeps energy and loops."""
        return all(item.is_good for item in _kept(name, self.routes[name]))

    def variables(self) -> Iterator[Variable]:
        """What every route keeps: energy, as a share of the largest kinetic energy, and loops."""
        errors = [
            run.relative_energy_error if np.isfinite(run.kinetic).all() else None
            for run in self.routes.values()
        ]
        residuals = [float(run.residual.max()) for run in self.routes.values()]
        return rows(
            "route", self.routes, {"residual": "m"}, energy_error=errors, residual=residuals
        )

    @property
    @in_json()
    def energy_limit(self) -> float:
        """Largest error of the energy, as a share of the largest kinetic energy."""
        return ENERGY_KEPT

    @property
    @in_json("loop_limit_m")
    def loop_limit(self) -> float:
        """Largest loop residual, m."""
        return LOOPS_KEPT


def compare_routes(
    model: Model,
    duration: float,
    integrator: Integrator,
    frequency: float,
    amplitude: float,
    progress: Progress | None = None,
) -> SwingComparison:
    """Swing a machine (see `swing`) by every route that it can go.

    Args:
        model: the machine.
        duration: s.
        integrator: of all routes.
        frequency, amplitude: as of `swing`.
        progress: called with what is done and what there is to do.

    Raises:
        InputError, AssemblyError: as of `swing`.
    """
    stages = Stages(progress, 1 + len(ROUTES.own))
    ready = swing(model.mechanism, frequency=frequency, amplitude=amplitude)
    stages.done()
    results: dict[str, Simulation] = {}
    left_out: dict[str, str] = {}
    for name, route in stages.over(ROUTES.own.items()):
        try:
            simulator = Simulator(ready.model, route=route, integrator=integrator)
        except InputError as error:
            left_out[name] = str(error.problems[0].what)
            continue
        results[name] = simulator.run(duration, q=ready.q, v=ready.v, progress=stages.part)
    first = results[EXACT[0]]
    kept = [item for name in EXACT for item in _kept(name, results[name])]
    return SwingComparison(
        diagnostics=(
            *kept,
            *beyond_limits(first.diagnostics),
            *omission_diagnostics(ready.model.mechanism),
        ),
        provenance=first.provenance,
        machine=ready.model.mechanism.name,
        duration=duration,
        springs=ready.springs,
        routes=results,
        left_out=left_out,
    )


def _kept(name: str, result: Simulation) -> tuple[Diagnostic, ...]:
    advice = "tighten the tolerances or shorten the step"
    reached = replace(result.diagnostics[0], name=f"{name}: {result.diagnostics[0].name}")
    return (
        reached,
        diagnostic(
            f"{name}: energy missing, of the largest kinetic energy",
            result.relative_energy_error,
            at_most=ENERGY_KEPT,
            advice=advice,
        ),
        diagnostic(
            f"{name}: largest residual of the loops",
            result.residual.max(),
            at_most=LOOPS_KEPT,
            unit="m",
            advice=advice,
        ),
    )
