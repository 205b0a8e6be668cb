"""The effect of force delays and compliant transmissions on the estimated parameters.

Each effect adds a column to the regression. For a delay, it is the first derivative of the force.
For a compliant transmission, it is the change of the forces due to the motion of the load
(`bending`), or the second derivative of the force if the motion is not known. The second derivative
also appears if the accelerations are too small by a constant factor.

If such a column is left out, the estimated parameters are shifted. The fit with the column shows
the shift. If the residuals do not show the column, the shift is unknown but not necessarily zero,
so its expected square is added to the covariance. If the residuals show the column, a finding
reports it.

Source for the fit with an additional column: Frisch and Waugh 1933, Partial time regressions as
    compared
with individual trends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.bending import DISCONTINUOUS_TERMS, Bending, BendingColumns
from tauloop.identification.estimation.error_models import (
    MANY_SAMPLES,
    EstimatingEquations,
    score_variances,
    sum_variance,
)
from tauloop.identification.estimation.estimators import Estimate
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData
from tauloop.logs.checks.gaps import with_lines
from tauloop.logs.rates import MIN_SPECTRUM_SAMPLES, in_band, smooth_rates
from tauloop.logs.signals import HIGHEST_CUTOFF

#: A reported term exceeds this number of its standard deviations.
MIN_SIGNIFICANCE = 4.0
#: A reported term shifts a parameter by more than this number of the parameter's standard
#: deviations.
MIN_SHIFT = 1.0
#: A reported term is more than this fraction of the force of its output.
MIN_FORCE_SHARE = 3e-4
#: A term of one output is added to the parameters' covariance if it exceeds this number of its
#: standard deviations; a smaller term is noise.
MIN_COUNTED_RATIO = 1.5
#: The same for a common term of all outputs, which is likelier because the drives of a machine are
#: similar.
MIN_COMMON_RATIO = 1.0
#: Number of samples that a filter mixes on each side, as a multiple of the number of samples over
#: which the filter correlates errors.
REACH_PER_LOBE = 4
#: Number of parameters whose values a finding contains.
MAX_NAMED_PARAMETERS = 3
#: Minimum number of rows on each side of missing rows that are not used, because derivatives need
#: neighboring rows.
MIN_ABSENT_MARGIN = 2
#: A column is not identifiable if less than this fraction of it is independent of the regressor.
MIN_REMAINDER = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimingTerm:
    """A delay or a compliant transmission, of one output or of all outputs in common.

    Attributes:
        outputs: names of the outputs with this term.
        kind: "delay" or "bending".
        value: for a delay, the time in s by which the force lags the motion. For bending, the
            inverse square in s^2 of the angular frequency at which the load would vibrate with the
            motor locked; negative if accelerations are too small.
        deviation: standard deviation of the value.
        shift: (r,) change of the parameters in the fit with the term, SI.
        explained: (n_kept,) RMS force of each measured output that the term explains in addition to
            the parameters, SI.
        inertias: inertias of the load at the motors with compliant transmissions, kg m^2 or kg;
            empty if the motion is unknown.
        unit: unit of the outputs.
        is_of_all: whether the term is common to several outputs.
        is_shown: whether the residuals show the term.
    """

    outputs: tuple[str, ...]
    kind: str
    value: float
    deviation: float
    shift: np.ndarray
    explained: np.ndarray
    inertias: tuple[float, ...] = ()
    unit: str = ""
    is_of_all: bool = False
    is_shown: bool = False

    @property
    def expected_square(self) -> np.ndarray:
        """Expected square (r, r) of the shift: the square of its estimate minus its variance.

        The estimate's own noise does not shift parameters that are fitted without the term.
        """
        ratio = MIN_COMMON_RATIO if self.is_of_all else MIN_COUNTED_RATIO
        if abs(self.value) <= ratio * self.deviation:
            return np.zeros((len(self.shift), len(self.shift)))
        excess = 1.0 - (self.deviation / self.value) ** 2
        return np.asarray(excess * np.outer(self.shift, self.shift))

    @property
    def stiffnesses(self) -> tuple[float, ...]:
        """Stiffnesses of the transmissions, N m/rad or N/m.

        Empty for a delay, for rigid transmissions, and if the motion is unknown.
        """
        if self.kind != "bending" or self.value <= 0.0:
            return ()
        return tuple(inertia / self.value for inertia in self.inertias)

    def problem(self, base: BaseParameters, values: np.ndarray, deviations: np.ndarray) -> Problem:
        """Return the term as a finding.

        Args:
            base: the base parameters.
            values, deviations: (r,) their values and standard deviations.
        """
        if self.kind == "delay":
            lag = f"{1e3 * abs(self.value):.3g} +- {1e3 * self.deviation:.2g} ms"
            verb = "lags" if self.value > 0.0 else "leads"
            message = f"{verb} the motion by {lag}"
            remedy = "align force and motion in time"
        elif self.value > 0.0:
            message = f"shows a compliant transmission: {self._compliance_text}"
            remedy = (
                "excite at lower frequencies, measure on the load's side, or model the drive line"
            )
        else:
            size = f"{-self.value:.3g} +- {self.deviation:.2g} s^2"
            message = (
                f"contains {size} times its second derivative: accelerations are wrong at high frequencies, "
                "because of noise in the positions or a cutoff that removes part of the motion"
            )
            remedy = (
                "omit the cutoff (it is then chosen from the noise of the positions), or record with "
                "a finer encoder resolution"
            )
        where = ", ".join(f"force.{output}" for output in self.outputs)
        shifts = self._shift_text(base, values, deviations)
        return Problem(where, f"{message}. With this term in the fit, {shifts}", remedy)

    def _shift_text(self, base: BaseParameters, values: np.ndarray, deviations: np.ndarray) -> str:
        """Return a text with the values of the parameters that the term shifts most."""
        largest = np.argsort(-np.abs(self.shift) / deviations)[:MAX_NAMED_PARAMETERS]
        texts = []
        for k in largest:
            parameter = base.base[k]
            shifted = values[k] + self.shift[k]
            texts.append(
                f"{parameter.short_name()} is {shifted:.4g}, not {values[k]:.4g} {parameter.unit}"
            )
        return ", ".join(texts)

    @property
    def _compliance_text(self) -> str:
        """Text with the stiffness and the natural frequency."""
        relative_deviation = self.deviation / self.value
        frequency = 1.0 / (2.0 * np.pi * np.sqrt(self.value))
        frequency_deviation = 0.5 * frequency * relative_deviation
        vibration = (
            f"its load vibrates at {frequency:.3g} +- {frequency_deviation:.2g} Hz with the motor "
            "locked"
        )
        if not self.stiffnesses:
            return vibration
        unit = {"N m": "N m/rad", "N": "N/m"}.get(self.unit, self.unit)
        stiffness = float(np.mean(self.stiffnesses))
        deviation = stiffness * relative_deviation
        return f"its stiffness is {stiffness:.3g} +- {deviation:.2g} {unit}, {vibration}"


def timing_terms(
    regression: BaseRegression,
    estimate: Estimate,
    equations: EstimatingEquations,
    bending: Bending | None = None,
) -> tuple[TimingTerm, ...]:
    """Return the delay and bending terms of every measured output, and of all outputs together.

    Args:
        regression: the regression of the fit.
        estimate: weighted least-squares estimate.
        equations: estimating equations at the estimate.
        bending: effect of compliant transmissions, where the motion of the samples is known.

    Returns:
        The terms; none for data without a constant sampling period, or with few samples.
    """
    if regression.data.period is None or len(regression.data) < MIN_SPECTRUM_SAMPLES:
        return ()
    terms = _select_terms(
        regression, estimate, equations, _MissingColumns(regression, estimate.values, bending)
    )
    shown = [term.shift for term in terms if term.is_shown]
    if not shown:
        return terms
    # The columns depend on the parameters. The parameters of the fit with the terms are better.
    values = estimate.values + np.sum(shown, axis=0)
    return _select_terms(
        regression, estimate, equations, _MissingColumns(regression, values, bending)
    )


def _select_terms(
    regression: BaseRegression,
    estimate: Estimate,
    equations: EstimatingEquations,
    columns: _MissingColumns,
) -> tuple[TimingTerm, ...]:
    """Return the terms of columns by forward selection.

    Terms that the residuals show come first, by decreasing significance. Each term is fitted
    together with the terms before it.
    """
    candidates = _candidates(regression, estimate, equations, columns)
    residual = equations.residual * estimate.weights * columns.is_used
    selected: list[TimingTerm] = []
    while candidates:
        terms = [
            _term(regression, estimate, candidate, residual, equations.logs)
            for candidate in candidates
        ]
        shown = [number for number, term in enumerate(terms) if term.is_shown]
        if not shown:
            return (*selected, *terms)
        best = max(shown, key=lambda number: abs(terms[number].value / terms[number].deviation))
        selected.append(
            _with_instrument(terms[best], candidates[best], residual, estimate, equations, columns)
        )
        residual = residual - terms[best].value * candidates[best].remainder
        remaining = [candidate.without(candidates[best]) for candidate in candidates]
        candidates = [
            candidate
            for candidate, previous in zip(remaining, candidates, strict=True)
            if candidate.power > MIN_REMAINDER**2 * previous.power
        ]
    return tuple(selected)


def _candidates(
    regression: BaseRegression,
    estimate: Estimate,
    equations: EstimatingEquations,
    columns: _MissingColumns,
) -> list[_Candidate]:
    """Return the columns that are not linear combinations of the regressor's columns."""
    weights = estimate.weights * columns.is_used
    weighted = equations.regressor * weights[:, :, None]
    rows = weighted.reshape(-1, weighted.shape[-1])
    gram = rows.T @ rows
    norms = np.sqrt(np.diag(gram))
    if not norms.all():
        return []
    gram /= np.outer(norms, norms)
    missing = list(columns.columns())
    # The columns are projected together, because the regressor of a long log is large.
    values = np.stack([(column.values * weights).ravel() for column in missing], axis=1)
    coefficients = np.linalg.solve(gram, rows.T @ values / norms[:, None]) / norms[:, None]
    remainders = np.ascontiguousarray((values - rows @ coefficients).T)
    powers = np.sum(values**2, axis=0)
    remaining = np.sum(remainders**2, axis=1)
    forces = weights * regression.forces
    candidates = []
    for k, column in enumerate(missing):
        if remaining[k] > MIN_REMAINDER**2 * powers[k] > 0.0:
            force_power = max(float(np.sum(forces[:, column.outputs] ** 2)), np.finfo(float).tiny)
            candidates.append(
                _Candidate(
                    column=column,
                    coefficients=coefficients[:, k],
                    remainder=remainders[k].reshape(weights.shape),
                    share=float(np.sqrt(powers[k] / force_power)),
                )
            )
    return candidates


def with_bias_covariance(estimate: Estimate, terms: tuple[TimingTerm, ...]) -> Estimate:
    """Return the estimate with the expected squares of the shifts added to its covariance."""
    squares = sum(term.expected_square for term in terms)
    return replace(estimate, covariance=estimate.covariance + squares)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MissingColumn:
    """A column that may be missing in the regression.

    Attributes:
        kind: kind of the term, "delay" or "bending".
        outputs: (n_out,) True for outputs with the term.
        values: (N, n_out) values in the measured outputs.
        inertias: see `TimingTerm`.
    """

    kind: str
    outputs: np.ndarray
    values: np.ndarray
    inertias: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    """A missing column, split into a combination of the regressor's columns and a remainder.

    Attributes:
        column: the column.
        coefficients: (r,) coefficients of the regressor's columns.
        remainder: (N, n_out) the part that is orthogonal to the regressor, weighted.
        share: ratio of the column to the outputs' forces, for a value of 1.
    """

    column: _MissingColumn
    coefficients: np.ndarray
    remainder: np.ndarray
    share: float

    @property
    def power(self) -> float:
        """Sum of the squares of the remainder."""
        return float(np.sum(self.remainder**2))

    def without(self, other: _Candidate) -> _Candidate:
        """Return the column minus its projection on another column."""
        factor = np.sum(self.remainder * other.remainder) / np.sum(other.remainder**2)
        return replace(
            self,
            coefficients=self.coefficients - factor * other.coefficients,
            remainder=self.remainder - factor * other.remainder,
        )


def _term(
    regression: BaseRegression,
    estimate: Estimate,
    candidate: _Candidate,
    residual: np.ndarray,
    logs: np.ndarray | None,
) -> TimingTerm:
    """Return the term of a column."""
    remainder = candidate.remainder
    power = np.sum(remainder**2)
    value = float(np.sum(remainder * residual) / power)
    errors = residual - value * remainder
    scores = np.sum(remainder * errors, axis=1, keepdims=True)
    variance = float(score_variances(scores, logs)[0])
    data = regression.data
    if len(data) <= MANY_SAMPLES:
        lags = max(data.reach // REACH_PER_LOBE, 2)
        variance = max(variance, sum_variance(remainder, errors, logs, lags))
    deviation = float(np.sqrt(variance) / power)
    shift = -candidate.coefficients * value
    is_shown = (
        abs(value) > MIN_SIGNIFICANCE * deviation
        and bool(np.any(np.abs(shift) > MIN_SHIFT * estimate.standard_deviations))
        and abs(value) * candidate.share > MIN_FORCE_SHARE
    )
    column = candidate.column
    outputs = data.kept[column.outputs]
    return TimingTerm(
        outputs=tuple(data.outputs[k] for k in outputs),
        kind=column.kind,
        value=value,
        deviation=deviation,
        shift=shift,
        explained=abs(value) * np.sqrt(np.mean(remainder**2, axis=0)) / estimate.weights,
        inertias=column.inertias,
        unit=data.output_units[outputs[0]],
        is_of_all=len(outputs) > 1,
        is_shown=is_shown,
    )


def _with_instrument(
    term: TimingTerm,
    candidate: _Candidate,
    residual: np.ndarray,
    estimate: Estimate,
    equations: EstimatingEquations,
    columns: _MissingColumns,
) -> TimingTerm:
    """Return a delay whose deviation contains its difference from an instrumental estimate.

    The column of a delay contains noise of the positions, which makes the estimate too small. The
    derivative of the measured forces does not contain this noise, and is uncorrelated with the
    noise of the forces. It is therefore an instrument of the column (Fuller 1987, Measurement error
    models, section 1.4). Other terms are returned unchanged.

    Args:
        term: the term.
        candidate: its column.
        residual: (N, n_kept) residual that the term explains, weighted.
        estimate, equations, columns: as of `_select_terms`.
    """
    if term.kind != "delay":
        return term
    weights = estimate.weights * columns.is_used
    regressor = equations.regressor * weights[:, :, None]
    rows = regressor.reshape(-1, regressor.shape[-1])
    instrument = columns.force_rates() * candidate.column.outputs * weights
    basis = np.linalg.qr(rows)[0]
    remainder = instrument.ravel() - basis @ (basis.T @ instrument.ravel())
    product = float(remainder @ candidate.remainder.ravel())
    if product <= 0.0:
        return term
    difference = float(remainder @ residual.ravel()) / product - term.value
    return replace(term, deviation=float(np.hypot(term.deviation, difference)))


def _near_absent(data: RegressionData) -> np.ndarray:
    """Return a mask (N, n_kept) of the missing rows and the rows that a filter mixes with them.

    If less than half of the rows would remain, only the missing rows and their neighbors are
    masked.
    """
    if data.present is None:
        return np.zeros((len(data), len(data.kept)), dtype=bool)
    absent = ~data.present[:, data.kept]
    affected = _widened(absent, max(data.reach, MIN_ABSENT_MARGIN))
    return affected if affected.mean() < 0.5 else _widened(absent, MIN_ABSENT_MARGIN)


def _widened(mask: np.ndarray, margin: int) -> np.ndarray:
    """Return a mask (N, n) extended by `margin` rows on both sides of the masked rows."""
    wide = mask.copy()
    for shift in range(1, min(margin, len(mask) - 1) + 1):
        wide[shift:] |= mask[:-shift]
        wide[:-shift] |= mask[shift:]
    return wide


class _MissingColumns:
    """The columns that may be missing, and the samples that are used to test them.

    At the ends of a log and next to missing rows, filters attenuate regressor and forces, and
    derivatives are undefined. These rows are not used.
    """

    def __init__(
        self, regression: BaseRegression, values: np.ndarray, bending: Bending | None
    ) -> None:
        """Prepare the columns for values (r,) of the base parameters."""
        data = regression.data
        assert data.period is not None
        self._data = data
        self._parameters = data.expand(regression.base.spread(values))
        edges = [0, len(data)]
        if data.logs is not None:
            edges[1:1] = (np.flatnonzero(np.diff(data.logs)) + 1).tolist()
        self._segments = []
        self.is_used = np.zeros((len(data), len(data.kept)), dtype=bool)
        for first, last in pairwise(edges):
            start = first + data.reach
            stop = last - data.reach
            if stop - start >= MIN_SPECTRUM_SAMPLES:
                self._segments.append(slice(start, stop))
                self.is_used[start:stop] = True
        self._is_near_absent = _near_absent(data)
        self.is_used[self._is_near_absent] = False
        self._bending_columns: BendingColumns | None = None
        if bending is not None:
            named = dict(zip(data.parameters, self._parameters, strict=True))
            self._bending_columns = bending.columns(named, np.diff(edges).tolist(), data.period)

    def columns(self) -> Iterator[_MissingColumn]:
        """Yield the columns of every measured output, then the columns of all outputs together."""
        first_derivative, second_derivative = self._derivatives()
        count = first_derivative.shape[1]
        choices = list(np.eye(count, dtype=bool))
        if count > 1:
            choices.append(np.ones(count, dtype=bool))
        for outputs in choices:
            yield _MissingColumn(kind="delay", outputs=outputs, values=first_derivative * outputs)
        for outputs in choices:
            if self._bending_columns is None:
                values = second_derivative * outputs
                yield _MissingColumn(kind="bending", outputs=outputs, values=values)
            else:
                yield self._bending(outputs, self._bending_columns)

    def _bending(self, outputs: np.ndarray, columns: BendingColumns) -> _MissingColumn:
        """Return the change of all measured forces by compliant transmissions.

        Args:
            outputs: (n_out,) True for the actuators with a compliant transmission.
            columns: the columns of all actuators.
        """
        kept = self._data.kept
        if np.sum(outputs) > 1:
            actuators = np.arange(columns.values.shape[2])
        else:
            actuators = kept[outputs]
        values = columns.values[:, :, actuators].sum(axis=2)[:, kept]
        inertias = tuple(columns.inertias[kept[outputs]].tolist())
        return _MissingColumn(kind="bending", outputs=outputs, values=values, inertias=inertias)

    def force_rates(self) -> np.ndarray:
        """Return the negative time derivatives (N, n_out) of the low-passed measured forces."""
        data = self._data
        assert data.period is not None
        rates = np.zeros((len(data), len(data.kept)))
        for segment in self._segments:
            for k, output in enumerate(data.kept):
                force = with_lines(data.forces[segment, output], self._is_near_absent[segment, k])
                rates[segment, k] = -in_band(force, rate=1.0 / data.period)[1]
        return rates

    def _derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the negative first and second derivatives (N, n_out) of the predicted forces.

        The second derivative is that of the forces without discontinuous terms.
        """
        data = self._data
        assert data.period is not None
        rate = 1.0 / data.period
        endings = [name.rpartition(".")[2] for name in data.parameters]
        is_discontinuous = [ending in DISCONTINUOUS_TERMS for ending in endings]
        smooth_parameters = np.where(is_discontinuous, 0.0, self._parameters)
        both = np.stack([self._parameters, smooth_parameters], axis=1)
        predicted = (data.regressor @ both)[:, data.kept]
        first = np.zeros(predicted.shape[:2])
        second = np.zeros(predicted.shape[:2])
        # Friction is discontinuous and contains all frequencies, so it has the highest cutoff.
        cutoff = HIGHEST_CUTOFF / data.period
        for segment in self._segments:
            for k in range(predicted.shape[1]):
                is_near_absent = self._is_near_absent[segment, k]
                total, smooth = (with_lines(x, is_near_absent) for x in predicted[segment, k].T)
                _, smooth_first, smooth_second = in_band(smooth, rate=rate)
                _, friction_first = smooth_rates(
                    total - smooth, rate=rate, cutoffs=(cutoff, cutoff), order=4
                )
                first[segment, k] = -smooth_first - friction_first
                second[segment, k] = -smooth_second
        return first, second
