"""Comparison of a free motion on all routes: energy errors and loop residuals."""

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
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.free_motion import DriveSpring, free_motion_setup
from tauloop.simulation.routes import ROUTES
from tauloop.simulation.simulation import Simulation, Simulator

#: Largest energy error of a route without drift, as a fraction of the largest kinetic energy.
COMPARISON_ENERGY_TOLERANCE = 1e-8
#: Largest loop residual of a route without drift, m.
COMPARISON_LOOP_TOLERANCE = 1e-10
#: Names of the routes whose loops do not drift apart.
DRIFT_FREE_ROUTES = ("independent", "projected")


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeMotionComparison(Result):
    """A free motion on all routes.

    Attributes:
        machine: name of the machine.
        duration: duration, s.
        springs: springs at the drives.
        routes: simulations, by name of the route.
        left_out: reasons why routes were not simulated, by name of the route.
    """

    machine: str = field(metadata=json_keys())
    duration: float = field(metadata=json_keys("duration_s"))
    springs: tuple[DriveSpring, ...]
    routes: Mapping[str, Simulation]
    left_out: Mapping[str, str]

    def is_within_limits(self, name: str) -> bool:
        """Return whether a route reaches the end with energy and loop errors within tolerance."""
        return all(item.is_good for item in _route_diagnostics(name, self.routes[name]))

    def variables(self) -> Iterator[Variable]:
        """Return the energy error and the loop residual of every route."""
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
        """Limit of the energy error, as a fraction of the largest kinetic energy."""
        return COMPARISON_ENERGY_TOLERANCE

    @property
    @in_json("loop_limit_m")
    def loop_limit(self) -> float:
        """Limit of the loop residual, m."""
        return COMPARISON_LOOP_TOLERANCE


def compare_routes(
    model: Model,
    duration: float,
    integrator: Integrator,
    frequency: float,
    amplitude: float,
    progress: Progress | None = None,
) -> FreeMotionComparison:
    """Simulate the free motion of a machine (see `free_motion_setup`) on all possible routes.

    Args:
        model: the machine.
        duration: duration, s.
        integrator: integrator of all routes.
        frequency, amplitude: see `free_motion_setup`.
        progress: called with the work done and the total work.

    Returns:
        The motion on every route, and the routes that were left out.

    Raises:
        InputError, AssemblyError: see `free_motion_setup`.
    """
    stages = Stages(progress, 1 + len(ROUTES.builtin))
    setup = free_motion_setup(model.mechanism, frequency=frequency, amplitude=amplitude)
    stages.done()
    results: dict[str, Simulation] = {}
    left_out: dict[str, str] = {}
    for name, route in stages.over(ROUTES.builtin.items()):
        try:
            simulator = Simulator(setup.model, route=route, integrator=integrator)
        except InputError as error:
            left_out[name] = str(error.problems[0].what)
            continue
        results[name] = simulator.run(duration, q=setup.q, v=setup.v, progress=stages.part)
    reference = results[DRIFT_FREE_ROUTES[0]]
    checks: list[Diagnostic] = []
    for name in DRIFT_FREE_ROUTES:
        checks += _route_diagnostics(name, results[name])
    return FreeMotionComparison(
        diagnostics=(
            *checks,
            *beyond_limits(reference.diagnostics),
            *omission_diagnostics(setup.model.mechanism),
        ),
        provenance=reference.provenance,
        machine=setup.model.mechanism.name,
        duration=duration,
        springs=setup.springs,
        routes=results,
        left_out=left_out,
    )


def _route_diagnostics(name: str, result: Simulation) -> tuple[Diagnostic, ...]:
    advice = "tighten the tolerances or shorten the step"
    reached = replace(result.diagnostics[0], name=f"{name}: {result.diagnostics[0].name}")
    return (
        reached,
        diagnostic(
            f"{name}: energy error, fraction of the largest kinetic energy",
            result.relative_energy_error,
            at_most=COMPARISON_ENERGY_TOLERANCE,
            advice=advice,
        ),
        diagnostic(
            f"{name}: largest residual of the loops",
            result.residual.max(),
            at_most=COMPARISON_LOOP_TOLERANCE,
            unit="m",
            advice=advice,
        ),
    )
