"""The result of a calibration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from tauloop.calibration.judging.base_combinations import BaseCombination
from tauloop.calibration.judging.identifiability import Identifiability
from tauloop.calibration.judging.prior_tightness import PriorTightness
from tauloop.calibration.judging.residual_analysis import ResidualAnalysis, analyse_residuals
from tauloop.calibration.judging.statistics import ErrorStatistics, Outlier
from tauloop.calibration.judging.validation import Bootstrap, HeldOut, UnknownsComparison
from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.problem.unknowns import Corrected
from tauloop.calibration.solving.exchanges import Exchanges
from tauloop.calibration.solving.solver import Solution
from tauloop.common.counts import counted
from tauloop.common.datasets import Variable, columns, rows
from tauloop.common.errors import Problem
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result
from tauloop.mechanism.expression import Parameter, ParameterTable
from tauloop.mechanism.model import Mechanism

#: First entry of the JSON file. The number increases when the meaning of an entry changes.
CALIBRATION_FORMAT = "tauloop-calibration/1"
#: Correlations larger than this are listed.
STRONG_CORRELATION = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedUnknown(Corrected):
    """One unknown after the fit, SI.

    Attributes:
        name, members, unit, tolerance, has_prior, is_nuisance: as in `Unknown`.
        nominal: value of the first member before the fit.
        value: value of the first member after the fit.
        correction: `value` minus `nominal`.
        deviation: standard deviation; None if there is no degree of freedom to estimate the noise,
            or if the fitted geometry does not determine the unknown.
        half_width: half-width of the 95 % interval, from Student's t distribution with the degrees
            of freedom of the fit; None if `deviation` is None.
        bound: the bound that the estimate has reached, SI, if the best fit is beyond it; None
            otherwise.
    """

    nominal: float
    value: float
    correction: float
    deviation: float | None
    half_width: float | None
    bound: float | None = None


def _number(value: float | None) -> float:
    """Return a number for a table; NaN if the value is None."""
    return np.nan if value is None else value


def _deviation_text(deviation: float | None, parameter: Parameter) -> str:
    """Return a standard deviation as text, in the unit of a parameter."""
    if deviation is None:
        return "no standard deviation: too few readings to estimate it"
    return f"standard deviation {deviation / parameter.scale:.3g} {parameter.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration(Result):
    """A calibrated geometry with standard deviations and diagnostics.

    Attributes:
        problem: the calibration problem; its free unknowns are those that were estimated.
        solution: the optimum.
        estimates: all estimated unknowns.
        covariance: covariance of the estimates (n, n), SI; None if no estimate has a standard
            deviation.
        correlations: correlations of the estimates (n, n).
        degrees_of_freedom: number of residuals and priors minus the number of unknowns.
        variance_factor: reduced chi-square (weighted sum of squares divided by the degrees of
            freedom); None if there are no degrees of freedom.
        identifiability: identifiable unknowns, and the unknowns that were left out, with reasons.
        findings: problems of the measurements that were accepted (`FitOptions.reject_implausible`
            is False).
        before: statistics of the errors with the nominal geometry, SI.
        after: statistics of the errors with the calibrated geometry, SI.
        errors: errors (N, n_errors) of every series after the fit, SI.
        outliers: poses with outlying residuals.
        base_combinations: combinations of stiffnesses, expansions and offsets of thermometers with
            independent errors, the best determined first; empty without loads and temperatures.
        prior_tightness: consistency of the priors' width with the data; None if there are no
            priors.
        exchanges: swaps of encoder columns that fit equally well; None unless requested.
        leave_one_out: errors at poses that the fit does not use; None unless requested.
        bootstrap: fits to resampled poses; None unless requested.
        comparison: comparison with other unknowns; None unless requested.
    """

    needs_forces: ClassVar[bool] = False
    json_format: ClassVar[str] = CALIBRATION_FORMAT
    problem: CalibrationProblem = field(metadata=OMITTED)
    solution: Solution = field(metadata=json_keys(evaluations="evaluations"))
    estimates: tuple[EstimatedUnknown, ...] = field(metadata=json_keys("parameters"))
    covariance: np.ndarray | None
    correlations: np.ndarray
    degrees_of_freedom: int
    variance_factor: float | None
    identifiability: Identifiability
    findings: tuple[Problem, ...]
    before: tuple[ErrorStatistics, ...] = field(metadata=json_keys("errors_before"))
    after: tuple[ErrorStatistics, ...] = field(metadata=json_keys("errors_after"))
    errors: tuple[np.ndarray, ...] = field(metadata=OMITTED)
    outliers: tuple[Outlier, ...]
    prior_tightness: PriorTightness | None = None
    base_combinations: tuple[BaseCombination, ...] = ()
    exchanges: Exchanges | None = field(
        default=None,
        metadata=json_keys("exchanges", optional=True, indistinguishable_swaps="pairs"),
    )
    leave_one_out: HeldOut | None = field(default=None, metadata=json_keys(optional=True))
    bootstrap: Bootstrap | None = field(default=None, metadata=json_keys(optional=True))
    comparison: UnknownsComparison | None = field(default=None, metadata=json_keys(optional=True))

    def variables(self) -> Iterator[Variable]:
        """Yield estimates by `parameter`, and errors of every instrument after the fit by pose."""
        unknowns = self.estimates
        values: dict[str, list[float]] = {}
        for name in ("nominal", "value", "correction", "deviation", "half_width"):
            values[name] = [_number(getattr(unknown, name)) for unknown in unknowns]
        yield from rows(
            "parameter", (u.name for u in unknowns), (u.unit for u in unknowns), **values
        )
        for k, (series, errors) in enumerate(zip(self.problem.series, self.errors, strict=True)):
            pose = ("pose" if len(self.errors) == 1 else f"pose_{k + 1}",)
            yield Variable(name=pose[0], values=np.arange(1, len(errors) + 1), over=pose)
            names, units = zip(*series.instrument.errors, strict=True)
            yield from columns(f"error_{series.instrument.name}", names, units, errors, pose)

    @property
    @in_json()
    def residual_analysis(self) -> ResidualAnalysis:
        """Trends, correlation from pose to pose and distribution of the errors after the fit."""
        return analyse_residuals(self.problem, self.solution, self.errors)

    @property
    def values(self) -> dict[str, float]:
        """Values of all estimated parameters, including nuisance parameters, SI."""
        return self.problem.values(self.solution.correction)

    @property
    @in_json()
    def strong_correlations(self) -> tuple[tuple[str, str, float], ...]:
        """Pairs of estimates with an absolute correlation above 0.9, the strongest first."""
        names = [estimate.name for estimate in self.estimates]
        pairs = [
            (names[i], names[j], float(self.correlations[i, j]))
            for i, j in combinations(range(len(names)), 2)
            if abs(self.correlations[i, j]) > STRONG_CORRELATION
        ]
        return tuple(sorted(pairs, key=lambda pair: -abs(pair[2])))

    @property
    def mechanism(self) -> Mechanism:
        """The machine with calibrated values.

        The source of each calibrated parameter contains its standard deviation and nominal value.
        """
        nominal = self.problem.mechanism
        values = self.values
        deviations = {member: e.deviation for e in self.estimates for member in e.members}
        poses = ", ".join(
            f"{counted(len(s), 'pose')} of {s.instrument.name}" for s in self.problem.series
        )

        def calibrated(parameter: Parameter) -> Parameter:
            if parameter.name not in values:
                return parameter
            deviation = _deviation_text(deviations[parameter.name], parameter)
            nominal_value = f"{parameter.value / parameter.scale:.9g} {parameter.unit}".rstrip()
            return replace(
                parameter,
                value=values[parameter.name],
                status="calibrated",
                source=f"tauloop calibrate, {poses}; {deviation}; nominal {nominal_value}",
            )

        table = ParameterTable(tuple(calibrated(parameter) for parameter in nominal.parameters))
        return replace(nominal, parameters=table)
