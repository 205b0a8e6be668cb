"""Gradients of criteria by forward sensitivities, in the compiled step together with the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, criteria_of, prepared_runs
from tauloop.drives.axis.source import MARKS, REPORT
from tauloop.drives.criteria import NAMES, Criteria, weighted
from tauloop.integrate.integrators import Integrator
from tauloop.mechanism.drive_line import DriveLine
from tauloop.mechanism.suggestions import unknown_names

#: Criteria that have a gradient here; the swing is the difference of two extremes, whose places are
#: not kept.
DIFFERENTIABLE = tuple(name for name in NAMES if name != "swing")


class SensitiveAxis:
    """An axis with the derivatives of its states by some of its parameters, as compiled code.

    They are those of `tauloop.integrate.sensitivity`: through contacts, limits, bodies that stick,
    gaps of an exact backlash and samples of the control. The step size is held by their errors as
    well.
    """

    def __init__(
        self,
        line: DriveLine,
        names: Sequence[str],
        *,
        folder: Path | None = None,
        runs: int = 1,
    ) -> None:
        """Extend the equations; runs compile them on demand.

        Args:
            line: the drive line.
            names: names of the parameters (n) to differentiate by.
            folder: the cache; the user's own without it.
            runs: number of runs that are expected in all, as of `Axis`.

        Raises:
            InputError: a parameter that is none or that the criteria's scales depend on; encoders
                that count.
        """
        _require(line, names)
        self.names = tuple(names)
        self.axis = Axis(line, folder=folder, directions=len(self.names), runs=runs)
        figures = self.axis.system.figures.function
        p = figures.sx_in()[0]
        by = ca.jacobian(figures(p)[-1], p)
        #: Derivatives (3, n_p) of the position's factor, the band and the sample time.
        self._scales = ca.Function("scales_by", [p], [by])
        wrong = [name for name in self.names if name not in differentiable_names(self.axis)]
        if wrong:
            what = (
                f"{' and '.join(wrong)} changes the scale of the judged position or the sample time"
            )
            raise InputError.of("names", what, "differentiate with respect to other parameters")

    def gradients(
        self,
        parameters: Mapping[str, float | np.ndarray] | None = None,
        *,
        step: float | np.ndarray = 0.1,
        duration: float = 10.0,
        integrator: Integrator | None = None,
    ) -> CriteriaGradients:
        """Return the criteria of steps, as `simulate_axis` does, and their gradients, in one batch.

        A time at which the position passes a level changes by -(dx/dp)/v; the overshoot by dx/dp
        where it is reached. A criterion that stays as it is (no overshoot; a level that is not
        reached) has the gradient zero; one of a run that failed has none (NaN).

        Args:
            parameters, step, duration, integrator: as of `simulate_axis`.

        Raises:
            InputError: what is given cannot be used.
        """
        p, fixed, sensible = prepared_runs(
            self.axis, parameters or {}, step, 0.0, duration, 0.0, 0.0
        )
        places, n = [self.axis.names.index(name) for name in self.names], len(self.names)
        scale = np.where(p[:, places] == 0.0, 1.0, np.abs(p[:, places]))
        tangents = (scale[:, :, None] * np.eye(p.shape[1])[places]).reshape(len(p), -1)
        size, system = len(self.axis.system.state_names), self.axis.system
        marks = np.full((len(p), len(MARKS), (1 + n) * size), np.nan)
        extended = np.ascontiguousarray(np.hstack([p, tangents]))
        report, *_ = self.axis.run(extended, fixed, integrator or LINE_INTEGRATOR, marks=marks)
        criteria = criteria_of(report, sensible, duration)
        parts = marks.reshape(len(p), len(MARKS), 1 + n, size)
        factor = fixed[:, 0, None]
        x, v = (factor * parts[:, :, 0, system.output + k] for k in (0, system.coordinates))
        slopes = factor[:, :, None] * parts[:, :, 1:, system.output] / scale[:, None]
        mark = dict(zip(MARKS, range(len(MARKS)), strict=True))
        band = np.array([np.asarray(self._scales(row))[1, places] for row in p])

        def passes(name: str, level: np.ndarray | float = 0.0) -> np.ndarray:
            """Return the changes (N, n) of the time at which the position passes a level."""
            return (level - slopes[:, mark[name]]) / v[:, mark[name], None]

        def where(holds: np.ndarray, values: np.ndarray) -> np.ndarray:
            changes = np.where(holds[:, None], values, 0.0)
            return np.where(criteria.failed[:, None], np.nan, changes)

        reference, settled = fixed[:, 4], criteria.settling_time
        with np.errstate(all="ignore"):
            sides = np.sign(x[:, mark["settled"]] - reference)[:, None]
            by = {
                "rise_time": where(
                    (report[:, REPORT.index("rise_start")] >= 0) & (criteria.rise_time < duration),
                    passes("risen") - passes("begin"),
                ),
                "overshoot": where(
                    criteria.overshoot > 0,
                    np.sign(reference - fixed[:, 3])[:, None] * slopes[:, mark["peak"]],
                ),
                "settling_time": where(
                    (0 < settled) & (settled < duration), passes("settled", sides * band)
                ),
                "energy": where(~criteria.failed, parts[:, mark["last"], 1:, -1] / scale),
                "final_error": where(
                    ~criteria.failed,
                    np.sign(x[:, mark["last"]] - reference)[:, None] * slopes[:, mark["last"]],
                ),
            }
        is_one = not any(np.ndim(value) for value in (*(parameters or {}).values(), step))
        return CriteriaGradients(
            criteria=criteria, by={name: rows[0] if is_one else rows for name, rows in by.items()}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaGradients:
    """Return the criteria (N,) and their gradients (N, n) by the parameters, SI.

    The gradients are (n,) where all inputs are numbers.
    """

    criteria: Criteria
    by: Mapping[str, np.ndarray]

    def weighted_sum(self, weights: Mapping[str, float]) -> np.ndarray:
        """Return the gradients of the weighted sum of criteria, in the shape of criteria."""
        return np.sum([self.by[name] / weight for name, weight in weights.items()], axis=0)

    def weighted_worst(self, weights: Mapping[str, float]) -> np.ndarray:
        """Return the gradients of the largest weighted criterion, in the shape of criteria."""
        worst = weighted(self.criteria, weights).argmax(axis=1)
        by = np.stack([np.atleast_2d(self.by[name]) / weight for name, weight in weights.items()])
        return by[worst, np.arange(len(worst))].reshape(next(iter(self.by.values())).shape)


def differentiable_names(axis: Axis) -> tuple[str, ...]:
    """Return the parameters by which criteria can be differentiated.

    These change neither the position's factor nor the sample time.

    Those of a line whose encoders count have none.
    """
    if any(encoder.resolution is not None for encoder in axis.line.encoders):
        return ()
    figures = axis.system.figures.function
    p = figures.sx_in()[0]
    moves = np.atleast_1d(
        np.asarray(ca.DM(ca.jacobian_sparsity(figures(p)[-1], p)))[[0, 2]].any(axis=0)
    )
    return tuple(name for name, scaled in zip(axis.names, moves, strict=True) if not scaled)


def _require(line: DriveLine, names: Sequence[str]) -> None:
    """Reject what has no sensitivities here.

    Raises:
        InputError: with all problems.
    """
    known = line.parameters.names
    problems = Problems(
        unknown_names(names, known, "no such parameter", remedy=f"use one of {', '.join(known)}")
    )
    if not names:
        problems.add("names", "are empty", "name the parameters of the derivatives")
    for encoder in line.encoders:
        if encoder.resolution is not None:
            remedy = "leave its resolution out, or take differences of simulations instead"
            problems.add(f"encoders.{encoder.name}", "it counts, and torques jump there", remedy)
    InputError.raise_if_any(problems)
