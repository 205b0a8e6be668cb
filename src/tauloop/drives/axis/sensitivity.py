"""Gradients of criteria by forward sensitivities, integrated in the compiled step together with the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, criteria_of, prepared_runs
from tauloop.drives.axis.source import REPORT
from tauloop.drives.criteria import NAMES, Criteria
from tauloop.drives.equations.system import AxisSystem, build_system
from tauloop.errors import InputError, Problem
from tauloop.integrate.integrators import Integrator
from tauloop.mechanism.drive_line import DriveLine, ExactBacklash
from tauloop.mechanism.suggestions import suggestion
from tauloop.records import dataclass

#: Criteria that have a gradient here; the swing is the difference of two extremes, whose places are not kept.
DIFFERENTIABLE = tuple(name for name in NAMES if name != "swing")


class SensitiveAxis:
    """An axis with the derivatives of its states by some of its parameters, as compiled code.

    With dy/dt = f(y, p) between events and S = dy/dp: dS/dt = f_y S + f_p, S(0) = 0. At an event where f is continuous
    (contacts, limits and the switching function make kinks, no jumps; slipping begins at the force that held) S goes
    on; where the state is reset to r(y, p) (a body that sticks) it becomes r_y S + r_p. The step size is held by the
    errors of S as well.

    Source:
        Hairer, Norsett, Wanner 1993, Solving Ordinary Differential Equations I, section I.14; events as in Galan,
        Feehery, Barton 1999, "Parametric sensitivity functions for hybrid discrete/continuous systems".
    """

    def __init__(self, line: DriveLine, names: Sequence[str], *, folder: Path | None = None) -> None:
        """Extend the equations and compile them (or find them in the cache).

        Args:
            line: the drive line.
            names: of the parameters (n) to differentiate by.
            folder: the cache; the user's own without it.

        Raises:
            InputError: a parameter that is none or that the criteria's scales depend on; a sampled control or an exact
                backlash, whose events make S jump.
            EngineError: there is no C compiler, or it fails.
        """
        _require(line, names)
        self.names = tuple(names)
        self.axis = Axis(line, folder=folder, system=_extended(build_system(line), self.names))
        scales = self.axis.system.figures.function
        p = scales.sx_in()[0]
        moves = ca.which_depends(scales(p)[-1], p, 1, False)
        wrong = [name for name in self.names if moves[self.axis.names.index(name)]]
        if wrong:
            what = f"{' and '.join(wrong)} changes the band, the scale of the judged position or the sample time"
            raise InputError.of("names", what, "differentiate by other parameters")

    def gradients(
        self,
        parameters: Mapping[str, float] | None = None,
        *,
        step: float = 0.1,
        duration: float = 10.0,
        integrator: Integrator | None = None,
    ) -> CriteriaGradients:
        """Criteria of one step, as `simulate_axis` gives them, and their gradients.

        A time at which the position passes a level changes by -(dx/dp)/v; the overshoot by dx/dp where it is reached.
        A criterion that stays as it is (no overshoot; a level that is not reached) has the gradient zero; one of a
        run that failed has none (NaN).

        Args:
            parameters, step, duration, integrator: as of `simulate_axis`, for one run.

        Raises:
            InputError: what is given cannot be used.
        """
        integrator = integrator or LINE_INTEGRATOR
        p, fixed, sensible = prepared_runs(self.axis, parameters or {}, step, 0.0, duration, 0.0, 0.0)
        if len(p) != 1:
            what = f"{len(p)} parameter sets"
            raise InputError.of("gradients", what, "give numbers: one run at a time")
        report, *_ = self.axis.run(p, fixed, integrator)
        criteria, n = criteria_of(report, sensible, duration), len(self.names)
        if criteria.failed[0]:
            return CriteriaGradients(criteria=criteria, by={name: np.full(n, np.nan) for name in DIFFERENTIABLE})
        begin, peak = report[0, REPORT.index("rise_start")], report[0, REPORT.index("overshoot_at")]
        end, settled = begin + float(criteria.rise_time[0]), float(criteria.settling_time[0])
        reached, settles = begin >= 0 and end < duration, 0 < settled < duration
        asked = {
            "begin": begin if reached else 0.0,
            "end": end if reached else 0.0,
            "peak": peak,
            "settled": settled if settles else 0.0,
            "last": duration,
        }
        order = sorted(asked, key=lambda name: asked[name])
        states = self.axis.run(p, fixed, integrator, np.array([asked[name] for name in order]))[1][0]
        x, v, dx, energy = self._parts(dict(zip(order, states, strict=True)), fixed[0, 0])
        way, still = np.sign(step), np.zeros(n)
        rise = dx["begin"] / v["begin"] - dx["end"] / v["end"] if reached else still
        return CriteriaGradients(
            criteria=criteria,
            by={
                "rise_time": rise,
                "overshoot": way * dx["peak"] if criteria.overshoot[0] > 0 else still,
                "settling_time": -dx["settled"] / v["settled"] if settles else still,
                "energy": energy["last"],
                "final_error": np.sign(x["last"] - step) * dx["last"],
            },
        )

    def _parts(
        self, states: Mapping[str, np.ndarray], factor: float
    ) -> tuple[dict[str, float], dict[str, float], dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Judged position and velocity, and the derivatives of position and energy, by the names of instants."""
        system = self.axis.system
        n = len(self.names)
        size, count = len(system.state_names) // (1 + n), sum(name.endswith(".velocity") for name in system.state_names)
        x, v, dx, energy = {}, {}, {}, {}
        for name, y in states.items():
            x[name], v[name] = factor * y[system.output], factor * y[count + system.output]
            S = y[size - 1 : -1].reshape(n, size).T
            dx[name], energy[name] = factor * S[system.output], S[-1]
        return x, v, dx, energy


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaGradients:
    """Criteria of one run (1,), and by criterion its gradient (n,) by the parameters, SI."""

    criteria: Criteria
    by: Mapping[str, np.ndarray]

    def weighted_sum(self, weights: Mapping[str, float]) -> np.ndarray:
        """Gradient (n,) of the sum of criteria over their weights."""
        return np.sum([self.by[name] / weight for name, weight in weights.items()], axis=0)

    def weighted_worst(self, weights: Mapping[str, float]) -> np.ndarray:
        """Gradient (n,) of the largest of the criteria over their weights."""
        worst = max(weights, key=lambda name: float(getattr(self.criteria, name)[0]) / weights[name])
        return self.by[worst] / weights[worst]


def _extended(system: AxisSystem, names: Sequence[str]) -> AxisSystem:
    """The same system with S behind its states; the energy stays the last."""
    arguments = system.rate.sx_in()
    y, p = arguments[0], arguments[-1]
    index = [system.line.parameters.names.index(name) for name in names]
    size, n = y.numel(), len(names)
    S = ca.SX.sym("S", size, n)

    def along(x: ca.SX) -> ca.SX:
        """Derivative of an expression by the chosen parameters, through the states as well."""
        return ca.vec(ca.jtimes(x, y, S) + ca.jacobian(x, p)[:, index])

    def extended(x: ca.SX) -> ca.SX:
        return ca.vertcat(x[:-1], along(x), x[-1])

    (rate, guards), reset, hold = system.rate(*arguments), system.reset(*arguments), system.hold(*arguments)
    both = [ca.vertcat(y[:-1], ca.vec(S), y[-1]), *arguments[1:]]
    derived = tuple(f"{state} by {name}" for name in names for state in system.state_names)
    return replace(
        system,
        state_names=(*system.state_names[:-1], *derived, system.state_names[-1]),
        rate=ca.Function("drive_rate", both, [extended(rate), guards]),
        reset=ca.Function("drive_reset", both, [extended(reset)]),
        hold=ca.Function("drive_hold", both, [hold]),
    )


def _require(line: DriveLine, names: Sequence[str]) -> None:
    """Refuse what has no sensitivities here.

    Raises:
        InputError: with all problems.
    """
    known = line.parameters.names
    problems = [
        Problem(where=name, what="no such parameter", remedy=suggestion(name, known) or f"known: {', '.join(known)}")
        for name in names
        if name not in known
    ]
    if not names:
        problems.append(Problem(where="names", what="are none", remedy="name the parameters to differentiate by"))
    remedy = "take differences of simulations instead"
    if line.control.sample_time is not None:
        problems.append(Problem(where="control.sample_time", what="samples make the derivatives jump", remedy=remedy))
    for connection in line.connections:
        if isinstance(connection.compliance, ExactBacklash):
            what = "the force jumps where an exact backlash meets its contact, and the derivatives with it"
            problems.append(Problem(where=f"connections.{connection.name}", what=what, remedy=remedy))
    InputError.raise_if_any(problems)
