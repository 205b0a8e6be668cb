"""Gradients of criteria by forward sensitivities, integrated with the axis's equations of motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.names.deprecated import old_attribute, with_old_keywords
from tauloop.common.records import dataclass
from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, criteria_of, prepared_runs
from tauloop.drives.axis.source import MARKS, REPORT
from tauloop.drives.criteria import NAMES, Criteria, scaled
from tauloop.integrate.integrators import Integrator
from tauloop.mechanism.drive_line import DriveLine
from tauloop.mechanism.suggestions import unknown_names

#: Criteria that have a gradient. The swing has none: it is the difference of two extremes, and the
#: states at the extremes are not recorded.
DIFFERENTIABLE = tuple(name for name in NAMES if name != "swing")


class SensitiveAxis:
    """An axis with the derivatives of its states with respect to some parameters, as compiled code.

    The derivatives (forward sensitivities) are computed as in `tauloop.integrate.sensitivity`, also
    across discontinuities: contact, limits, stiction, backlash (exact model) and samples of the
    controller. The step-size control also bounds their error.
    """

    def __init__(
        self,
        line: DriveLine,
        names: Sequence[str],
        *,
        folder: Path | None = None,
        runs: int = 1,
    ) -> None:
        """Set up the sensitivity equations; the first run compiles them.

        Args:
            line: the drive line.
            names: names of the n parameters with respect to which to differentiate.
            folder: folder of compiled code; default: the user's cache.
            runs: expected total number of runs, as in `Axis`.

        Raises:
            InputError: unknown parameters, parameters that change the scale of the evaluated position
                or the sample time, or encoders with a resolution.
        """
        _check_names(line, names)
        self.names = tuple(names)
        self.axis = Axis(line, folder=folder, directions=len(self.names), runs=runs)
        checks = self.axis.system.parameter_checks.function
        p = checks.sx_in()[0]
        #: Derivatives (3, n_p) of the position factor, the settling band and the sample time.
        self._scales = ca.Function("scales_by", [p], [ca.jacobian(checks(p)[-1], p)])
        excluded = [name for name in self.names if name not in differentiable_names(self.axis)]
        if excluded:
            verb = "changes" if len(excluded) == 1 else "change"
            what = (
                f"{' and '.join(excluded)} {verb} the scale of the evaluated position or the sample "
                "time"
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
        """Simulate a batch of steps, and return their criteria (as `simulate_axis`) and gradients.

        The time at which the position x passes a constant level with the velocity v has the
        derivative -(dx/dp)/v with respect to a parameter p. The overshoot has the derivative dx/dp
        at the peak. A criterion that does not change locally (no
        overshoot, or a level that is not reached) has the gradient zero. The gradients of a run
        that failed are NaN.

        Args:
            parameters, step, duration, integrator: as in `simulate_axis`.

        Raises:
            InputError: invalid arguments.
        """
        p, fixed, is_valid = prepared_runs(
            self.axis, parameters or {}, step, 0.0, duration, 0.0, 0.0
        )
        system = self.axis.system
        size = len(system.state_names)
        n = len(self.names)
        indices = [self.axis.names.index(name) for name in self.names]
        # sensitivities with respect to relative changes of the parameters have similar magnitudes
        scale = np.where(p[:, indices] == 0.0, 1.0, np.abs(p[:, indices]))
        tangents = (scale[:, :, None] * np.eye(p.shape[1])[indices]).reshape(len(p), -1)
        marks = np.full((len(p), len(MARKS), (1 + n) * size), np.nan)
        extended = np.ascontiguousarray(np.hstack([p, tangents]))
        report, *_ = self.axis.run(extended, fixed, integrator or LINE_INTEGRATOR, marks=marks)
        criteria = criteria_of(report, is_valid, duration)
        # by run and mark: the state, followed by its sensitivities
        states = marks.reshape(len(p), len(MARKS), 1 + n, size)
        factor = fixed[:, 0, None]
        x = factor * states[:, :, 0, system.output]
        v = factor * states[:, :, 0, system.output + system.coordinates]
        dx_dp = factor[:, :, None] * states[:, :, 1:, system.output] / scale[:, None]
        mark = dict(zip(MARKS, range(len(MARKS)), strict=True))
        d_band = np.array([np.asarray(self._scales(row))[1, indices] for row in p])

        def d_crossing(name: str, d_level: np.ndarray | float = 0.0) -> np.ndarray:
            """Return the derivatives (N, n) of the time at which the position passes a level."""
            return (d_level - dx_dp[:, mark[name]]) / v[:, mark[name], None]

        def masked(condition: np.ndarray, values: np.ndarray) -> np.ndarray:
            """Return the values, zero where the condition is false, and NaN for failed runs."""
            gradient = np.where(condition[:, None], values, 0.0)
            return np.where(criteria.failed[:, None], np.nan, gradient)

        reference, settling_time = fixed[:, 4], criteria.settling_time
        with np.errstate(all="ignore"):
            sides = np.sign(x[:, mark["settled"]] - reference)[:, None]
            gradients = {
                "rise_time": masked(
                    (report[:, REPORT.index("rise_start")] >= 0) & (criteria.rise_time < duration),
                    d_crossing("risen") - d_crossing("begin"),
                ),
                "overshoot": masked(
                    criteria.overshoot > 0,
                    np.sign(reference - fixed[:, 3])[:, None] * dx_dp[:, mark["peak"]],
                ),
                "settling_time": masked(
                    (0 < settling_time) & (settling_time < duration),
                    d_crossing("settled", sides * d_band),
                ),
                "energy": masked(~criteria.failed, states[:, mark["last"], 1:, -1] / scale),
                "final_error": masked(
                    ~criteria.failed,
                    np.sign(x[:, mark["last"]] - reference)[:, None] * dx_dp[:, mark["last"]],
                ),
            }
        is_single = not any(np.ndim(value) for value in (*(parameters or {}).values(), step))
        return CriteriaGradients(
            criteria=criteria,
            gradients={name: rows[0] if is_single else rows for name, rows in gradients.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaGradients:
    """Criteria (N,) and their gradients (N, n) with respect to the parameters, SI.

    The gradients have the shape (n,) if all inputs are numbers.

    Attributes:
        criteria: criteria of the runs.
        gradients: gradients by name of the criterion.
    """

    criteria: Criteria
    gradients: Mapping[str, np.ndarray]
    by = old_attribute("by", "gradients")

    weighted_sum = old_attribute("weighted_sum", "scaled_sum")
    weighted_worst = old_attribute("weighted_worst", "scaled_worst")

    @with_old_keywords
    def scaled_sum(self, scales: Mapping[str, float]) -> np.ndarray:
        """Return the gradients of the sum of the criteria, each divided by its scale.

        Args:
            scales: divisors of the criteria: their acceptable values, SI, by name. A larger scale
                lowers the influence of a criterion.

        Returns:
            Gradients (N, n), or (n,) if all inputs of the runs are numbers.
        """
        return np.sum([self.gradients[name] / scale for name, scale in scales.items()], axis=0)

    @with_old_keywords
    def scaled_worst(self, scales: Mapping[str, float]) -> np.ndarray:
        """Return the gradients of the criterion that is largest after division by its scale.

        Arguments and shapes are those of `scaled_sum`.
        """
        worst = scaled(self.criteria, scales).argmax(axis=1)
        rows = [np.atleast_2d(self.gradients[name]) / scale for name, scale in scales.items()]
        gradients = np.stack(rows)[worst, np.arange(len(worst))]
        return gradients.reshape(next(iter(self.gradients.values())).shape)


def differentiable_names(axis: Axis) -> tuple[str, ...]:
    """Return the names of the parameters with respect to which criteria can be differentiated.

    These parameters change neither the position factor nor the sample time. There are none if an
    encoder has a resolution.
    """
    if any(encoder.resolution is not None for encoder in axis.line.encoders):
        return ()
    checks = axis.system.parameter_checks.function
    p = checks.sx_in()[0]
    # the last output has the position factor, the settling band and the sample time
    dependencies = np.asarray(ca.DM(ca.jacobian_sparsity(checks(p)[-1], p)))
    is_excluded = np.atleast_1d(dependencies[[0, 2]].any(axis=0))
    return tuple(
        name for name, excluded in zip(axis.names, is_excluded, strict=True) if not excluded
    )


def _check_names(line: DriveLine, names: Sequence[str]) -> None:
    """Reject unknown parameters, an empty list, and encoders with a resolution.

    Raises:
        InputError: all problems at once.
    """
    known = line.parameters.names
    problems = Problems(
        unknown_names(names, known, "no such parameter", remedy=f"use one of {', '.join(known)}")
    )
    if not names:
        problems.add(
            "names", "are empty", "name the parameters with respect to which to differentiate"
        )
    for encoder in line.encoders:
        if encoder.resolution is not None:
            what = "has a resolution, so the torque jumps at each count and has no derivative"
            remedy = "remove the resolution, or use finite differences of simulations"
            problems.add(f"encoders.{encoder.name}", what, remedy)
    InputError.raise_if_any(problems)
