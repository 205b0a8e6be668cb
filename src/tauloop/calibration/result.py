"""The result of a calibration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import ClassVar

import numpy as np

from tauloop.calibration.judging.identifiability import Identifiability
from tauloop.calibration.judging.prior_tightness import PriorTightness
from tauloop.calibration.judging.residual_analysis import ResidualAnalysis, analyse_residuals
from tauloop.calibration.judging.statistics import ErrorFigures, Outlier
from tauloop.calibration.judging.validation import Bootstrap, Comparison, HeldOut
from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.problem.unknowns import Corrected
from tauloop.calibration.solving.exchanges import Exchanges
from tauloop.calibration.solving.solver import Solution
from tauloop.common.datasets import Variable, columns, rows
from tauloop.common.errors import Problem
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result
from tauloop.mechanism.expression import Parameter, ParameterTable
from tauloop.mechanism.model import Mechanism

#: First entry of the JSON file; a change of its meaning changes the number.
FORMAT = "tauloop-calibration/1"
#: Correlations beyond this size are told.
STRONG = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedUnknown(Corrected):
    """One unknown after the fit, SI.

    Attributes:
        name, members, unit, tolerance, has_prior, is_nuisance: as in `Unknown`.
        nominal: value of its first member before.
        value, correction: after the fit, and their difference.
        deviation: standard deviation; None where no degree of freedom is left to size the noise by,
            or where the fitted geometry does not determine the unknown.
        half_width: of its 95 % interval, by Student's t with the fit's degrees of freedom; None
            where `deviation` is.
        bound: the bound at which the estimate ends, SI, where the data would have it go further;
            None without.
    """

    nominal: float
    value: float
    correction: float
    deviation: float | None
    half_width: float | None
    bound: float | None = None


def _number(value: float | None) -> float:
    """A number for a table: NaN where a value is not defined."""
    return np.nan if value is None else value


def _stated_deviation(deviation: float | None, parameter: Parameter) -> str:
    """A standard deviation in the unit of a parameter, in words."""
    if deviation is None:
        return "no standard deviation: the readings leave none"
    return f"standard deviation {deviation / parameter.scale:.3g} {parameter.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration(Result):
    """A geometry with error bars, and what the data cannot say.

    Attributes:
        problem: with the unknowns that were estimated free.
        solution: the optimum.
        estimates: all estimated unknowns.
        covariance: of the estimates (n, n), SI; None where no estimate has a standard deviation.
        correlations: of the estimates (n, n).
        degrees_of_freedom: number of residuals and priors less the number of unknowns.
        variance_factor: weighted sum of squares over degrees of freedom; None without any.
        identifiability: what can be told, and what was left out and why.
        findings: what is wrong with the measurements, where it was accepted.
        before, after: errors of every quantity with nominal and calibrated geometry, SI.
        errors: errors (N, n_errors) of every series after, SI.
        outliers: poses that do not belong.
        prior_tightness: whether the priors are as wide as the data want them; None without priors.
        exchanges, leave_one_out, bootstrap, comparison: further judgements (`calibrate`); None
            where nobody asked.
    """

    needs_forces: ClassVar[bool] = False
    json_format: ClassVar[str] = FORMAT
    problem: CalibrationProblem = field(metadata=OMITTED)
    solution: Solution = field(metadata=json_keys(evaluations="evaluations"))
    estimates: tuple[EstimatedUnknown, ...] = field(metadata=json_keys("parameters"))
    covariance: np.ndarray | None
    correlations: np.ndarray
    degrees_of_freedom: int
    variance_factor: float | None
    identifiability: Identifiability
    findings: tuple[Problem, ...]
    before: tuple[ErrorFigures, ...] = field(metadata=json_keys("errors_before"))
    after: tuple[ErrorFigures, ...] = field(metadata=json_keys("errors_after"))
    errors: tuple[np.ndarray, ...] = field(metadata=OMITTED)
    outliers: tuple[Outlier, ...]
    prior_tightness: PriorTightness | None = None
    exchanges: Exchanges | None = field(
        default=None,
        metadata=json_keys("exchanges", optional=True, indistinguishable_swaps="pairs"),
    )
    leave_one_out: HeldOut | None = field(default=None, metadata=json_keys(optional=True))
    bootstrap: Bootstrap | None = field(default=None, metadata=json_keys(optional=True))
    comparison: Comparison | None = field(default=None, metadata=json_keys(optional=True))

    def variables(self) -> Iterator[Variable]:
        """Estimates by `parameter`; errors of every instrument after the fit, by its poses."""
        unknowns = self.estimates
        names = ("nominal", "value", "correction", "deviation", "half_width")
        values = {name: [_number(getattr(unknown, name)) for unknown in unknowns] for name in names}
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
        """Values of all parameters, nuisances included, that were estimated, SI."""
        return self.problem.values(self.solution.correction)

    @property
    @in_json()
    def strong_correlations(self) -> tuple[tuple[str, str, float], ...]:
        """Pairs of estimates whose correlation is beyond 0.9, the strongest first."""
        n = len(self.estimates)
        pairs = [
            (self.estimates[i].name, self.estimates[j].name, float(self.correlations[i, j]))
            for i in range(n)
            for j in range(i + 1, n)
            if abs(self.correlations[i, j]) > STRONG
        ]
        return tuple(sorted(pairs, key=lambda pair: -abs(pair[2])))

    @property
    def mechanism(self) -> Mechanism:
        """The machine with calibrated values; each says so, with its error bar and its nominal value."""
        nominal, values = self.problem.mechanism, self.values
        deviations = {member: e.deviation for e in self.estimates for member in e.members}
        poses = ", ".join(f"{len(s)} poses of {s.instrument.name}" for s in self.problem.series)
        table = ParameterTable(
            tuple(
                replace(
                    p,
                    value=values[p.name],
                    status="calibrated",
                    source=f"tauloop calibrate, {poses}; {_stated_deviation(deviations[p.name], p)}; "
                    f"nominal {p.value / p.scale:.9g} {p.unit}".rstrip(),
                )
                if p.name in values
                else p
                for p in nominal.parameters
            )
        )
        return replace(nominal, parameters=table)
