"""Checks of what is added to simulations: integrators, routes and controllers."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted
from tauloop.integrate import DormandPrince, Integrator
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation import Controller, Route, Sampling, Simulator, follow
from tauloop.testing.conformance import ConformanceError, compare

#: What compiled and interpreted steps may differ by: rounding, carried along.
SAME = 1e-9
#: What everything is compared with.
REFERENCE = DormandPrince(rtol=1e-11, atol=1e-12)


def check_integrator(
    integrator: Integrator, mechanism: Mechanism, *, seconds: float = 0.1, error: float = 1e-5
) -> None:
    """Check an integrator on a machine that falls from its reference pose: its error, and C against Python.

    Args:
        integrator: with steps or tolerances that should give that error.
        mechanism: a machine that falls without meeting a singularity.
        seconds: how long it falls.
        error: largest share by which the fallen machine may differ from the reference's.

    Raises:
        ConformanceError: everything that does not hold.
    """
    _check_fall(
        mechanism,
        seconds,
        error,
        integrator=integrator,
        remedy="shorter steps, or weights of another order",
    )


def check_route(
    route: Route, mechanism: Mechanism, *, seconds: float = 0.1, error: float = 1e-6
) -> None:
    """Check a route to forward dynamics on a machine that falls from its reference pose.

    Args:
        route: as it is handed to `Simulator`.
        mechanism: a machine that falls without meeting a singularity.
        seconds: how long it falls.
        error: largest share by which the fallen machine may differ from that of the independent
            coordinates.

    Raises:
        ConformanceError: everything that does not hold.
    """
    _check_fall(
        mechanism,
        seconds,
        error,
        route=route,
        remedy="rates are those of M a + h = S u + K^T lambda",
    )


def _check_fall(
    mechanism: Mechanism,
    seconds: float,
    error: float,
    *,
    remedy: str,
    integrator: Integrator = REFERENCE,
    route: Route | None = None,
) -> None:
    problems = Problems()
    models = {
        "compiled": Model(mechanism, evaluator=Compiled()),
        "interpreted": Model(mechanism, evaluator=Interpreted()),
    }
    expected = Simulator(models["compiled"], integrator=REFERENCE).run(seconds)
    ends = {}
    for how, model in models.items():
        run = Simulator(model, integrator=integrator, route=route).run(seconds)
        if run.problem is not None:
            problems.append(run.problem)
            continue
        ends[how] = run.q[-1]
        compare(
            problems,
            f"{how}, coordinates",
            run.q[-1],
            expected.q[-1],
            tolerance=error,
            remedy=remedy,
        )
        compare(
            problems,
            f"{how}, velocities",
            run.v[-1],
            expected.v[-1],
            tolerance=10 * error,
            remedy=remedy,
        )
    if len(ends) == 2:
        remedy = "the same numbers in C and in Python"
        compare(
            problems,
            "compiled",
            ends["compiled"],
            ends["interpreted"],
            tolerance=SAME,
            remedy=remedy,
        )
    ConformanceError.raise_if_any(problems)


def check_controller(
    controller: Controller, mechanism: Mechanism, *, reach: float = 0.01, share: float = 0.2
) -> None:
    """Check a controller on a short stroke of a machine's platform and back to rest.

    Args:
        controller: as it is handed to `follow`.
        mechanism: a machine whose platform has three translations first.
        reach: length of the stroke along each of them, m.
        share: largest tool error, of the stroke's length.

    Raises:
        ConformanceError: the run fails, or the tool strays.
    """
    problems, model = Problems(), Model(mechanism)
    here = model.platform_position(model.assembly.q)
    path = Line(here, here + reach * (np.arange(len(here)) < 3))
    columns = model.platform.ports.position.columns
    run = follow(
        plan(stroke(model, path, columns), POLYNOMIAL_345, Seconds(0.2)), controller, Sampling()
    )
    if run.end:
        problems.add("run", run.end, "a law that holds the machine")
    elif not np.isfinite(run.force).all():
        problems.add("force", "is not finite", "forces (n_u,) at each sample")
    elif (error := np.abs(run.tool_error).max()) > share * reach:
        problems.add(
            "tool", f"strays by {error:.3g} m on a stroke of {reach:g} m", "gains that follow it"
        )
    ConformanceError.raise_if_any(problems)
