"""Gradients of criteria by forward sensitivities, integrated in the compiled step together with the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, criteria_of, prepared_runs
from tauloop.drives.axis.source import REPORT
from tauloop.drives.criteria import NAMES, Criteria
from tauloop.errors import InputError, Problem
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.sensitivity import SensitivityDirection, along_constants, apart, by_parameter
from tauloop.mechanism.drive_line import DriveLine
from tauloop.mechanism.suggestions import suggestion
from tauloop.records import dataclass

#: Criteria that have a gradient here; the swing is the difference of two extremes, whose places are not kept.
DIFFERENTIABLE = tuple(name for name in NAMES if name != "swing")


class SensitiveAxis:
    """An axis with the derivatives of its states by some of its parameters, as compiled code.

    They are those of `tauloop.integrate.sensitivity`: through contacts, limits, bodies that stick, gaps of an exact
    backlash and samples of the control. The step size is held by their errors as well.
    """

    def __init__(self, line: DriveLine, names: Sequence[str], *, folder: Path | None = None) -> None:
        """Extend the equations and compile them (or find them in the cache).

        Args:
            line: the drive line.
            names: of the parameters (n) to differentiate by.
            folder: the cache; the user's own without it.

        Raises:
            InputError: a parameter that is none or that the criteria's scales depend on; encoders that count.
            EngineError: there is no C compiler, or it fails.
        """
        _require(line, names)
        self.names = tuple(names)
        self.axis = Axis(line, folder=folder, directions=len(self.names))
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
        directions = self._directions(p[0])
        p = along_constants(p[0], directions)[None]
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
        rows = self.axis.run(p, fixed, integrator, np.array([asked[name] for name in order]))[1][0]
        states, by = apart(rows, directions)
        factor, out, system = fixed[0, 0], self.axis.system.output, self.axis.system
        x = dict(zip(order, factor * states[:, out], strict=True))
        v = dict(zip(order, factor * states[:, system.coordinates + out], strict=True))
        dx, energy = dict(zip(order, factor * by[:, out], strict=True)), by[-1, -1]
        way, still = np.sign(step), np.zeros(n)
        rise = dx["begin"] / v["begin"] - dx["end"] / v["end"] if reached else still
        return CriteriaGradients(
            criteria=criteria,
            by={
                "rise_time": rise,
                "overshoot": way * dx["peak"] if criteria.overshoot[0] > 0 else still,
                "settling_time": -dx["settled"] / v["settled"] if settles else still,
                "energy": energy,
                "final_error": np.sign(x["last"] - step) * dx["last"],
            },
        )

    def _directions(self, p: np.ndarray) -> list[SensitivityDirection]:
        """By each of the parameters, at values (n_p,)."""
        start, rows, table = np.zeros(len(self.axis.system.state_names)), np.eye(len(p)), self.axis.line.parameters
        places = [self.axis.names.index(name) for name in self.names]
        return [
            by_parameter(table[name], start, rows[place], float(p[place]))
            for name, place in zip(self.names, places, strict=True)
        ]


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
    problems += [
        Problem(
            where=f"encoders.{encoder.name}",
            what="it counts, and torques jump there",
            remedy="leave its resolution out, or take differences of simulations instead",
        )
        for encoder in line.encoders
        if encoder.resolution is not None
    ]
    InputError.raise_if_any(problems)
