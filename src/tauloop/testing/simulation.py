"""Checks of integrators, routes and controllers."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems
from tauloop.integrate import DormandPrince, Integrator
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation import Controller, Route, Sampling, Simulator, follow
from tauloop.testing.conformance import ConformanceError, compare

#: Integrator of the reference solution.
REFERENCE_INTEGRATOR = DormandPrince(rtol=1e-11, atol=1e-12)


def check_integrator(
    integrator: Integrator, mechanism: Mechanism, *, seconds: float = 0.1, error: float = 1e-5
) -> None:
    """Check the error of an integrator on a machine in free fall.

    Args:
        integrator: the integrator, with steps or tolerances for the allowed error.
        mechanism: a machine that does not reach a singularity when it falls from the reference
            pose.
        seconds: duration of the fall, s.
        error: allowed relative error of the final state.

    Raises:
        ConformanceError: lists all violations.
    """
    _check_fall(
        mechanism,
        seconds,
        error,
        integrator=integrator,
        remedy="use shorter steps, or correct the coefficients",
    )


def check_route(
    route: Route, mechanism: Mechanism, *, seconds: float = 0.1, error: float = 1e-6
) -> None:
    """Check a route to forward dynamics on a machine in free fall.

    Args:
        route: the route, as passed to `Simulator`.
        mechanism: a machine that does not reach a singularity when it falls from the reference
            pose.
        seconds: duration of the fall, s.
        error: allowed relative difference of the final state from that of the independent
            coordinates.

    Raises:
        ConformanceError: lists all violations.
    """
    _check_fall(
        mechanism,
        seconds,
        error,
        route=route,
        remedy="return the derivatives that follow from M a + h = S u + K^T lambda",
    )


def _check_fall(
    mechanism: Mechanism,
    seconds: float,
    error: float,
    *,
    remedy: str,
    integrator: Integrator = REFERENCE_INTEGRATOR,
    route: Route | None = None,
) -> None:
    """Compare the final state of a free fall with the reference solution.

    Raises:
        ConformanceError: the simulation stops, or the difference is too large.
    """
    problems = Problems()
    model = Model(mechanism)
    expected = Simulator(model, integrator=REFERENCE_INTEGRATOR).run(seconds)
    run = Simulator(model, integrator=integrator, route=route).run(seconds)
    if run.problem is not None:
        problems.append(run.problem)
    else:
        final = {
            "coordinates": (run.q[-1], expected.q[-1], error),
            "velocities": (run.v[-1], expected.v[-1], 10 * error),
        }
        for name, (values, expected_values, tolerance) in final.items():
            compare(problems, name, values, expected_values, tolerance=tolerance, remedy=remedy)
    ConformanceError.raise_if_any(problems)


def check_controller(
    controller: Controller, mechanism: Mechanism, *, reach: float = 0.01, share: float = 0.2
) -> None:
    """Check a controller on a short stroke of a machine's platform and back to rest.

    Args:
        controller: the controller, as passed to `follow`.
        mechanism: a machine whose first three platform coordinates are translations.
        reach: length of the stroke along each of these coordinates, m.
        share: allowed tool error, as a fraction of `reach`.

    Raises:
        ConformanceError: the simulation fails, or the tool error is too large.
    """
    problems = Problems()
    model = Model(mechanism)
    start = model.platform_position(model.assembly.q)
    path = Line(start, start + reach * (np.arange(len(start)) < 3))
    columns = model.platform.ports.position.columns
    run = follow(
        plan(stroke(model, path, columns), POLYNOMIAL_345, Seconds(0.2)), controller, Sampling()
    )
    if run.end:
        problems.add("run", run.end, "use a control law that can hold the machine")
    elif not np.isfinite(run.force).all():
        problems.add("force", "is not finite", "return finite forces (n_u,) at each sample")
    elif (error := np.abs(run.tool_error).max()) > share * reach:
        what = f"has an error of {error:.3g} m on a stroke of {reach:g} m"
        problems.add("tool", what, "increase the gains of the controller")
    ConformanceError.raise_if_any(problems)
