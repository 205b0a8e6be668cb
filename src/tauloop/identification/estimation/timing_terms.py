"""What a late force and a bending transmission would change: counted in the deviations, named where residuals show it.

Both add a column to the regression: of a delay the first derivative of its force; of a transmission
that bends what the forces change with the motion of its load (`bending`), or the second derivative
of its force where the motion is not at hand. The latter is also that of a motion whose
accelerations lost a share. Left out, such a column shifts the parameters by what the fit with it
would move them. Where residuals do not show it beyond its own deviation the shift is not known to
be there, nor to be zero: its expected square is added to the covariance.

Source: Frisch and Waugh 1933, Partial time regressions as compared with individual trends, for the
fit with one more column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.bending import JUMPING, Bending, BendingColumns
from tauloop.identification.estimation.error_models import (
    MANY_SAMPLES,
    EstimatingEquations,
    score_variances,
    sum_variance,
)
from tauloop.identification.estimation.estimators import Estimate
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.logs.rates import MIN_SPECTRUM_SAMPLES, in_band, smooth_rates
from tauloop.logs.signals import HIGHEST_CUTOFF

#: A term is shown by residuals from this many of its deviations on, ...
SHOWN = 4.0
#: ... if it shifts some parameter by as many of the parameter's, and has this share of the force of
#: its output.
SHIFTED, SIZE = 1.0, 3e-4
#: From this many of its deviations on a term of one output counts in those of the parameters; below
#: it is noise, and small. Drives are alike, so that a term of all outputs counts in whatever size
#: it is found.
COUNTED = 1.5
#: A filter correlates errors over this part of its reach.
FILTER_LOBE = 4
#: Parameters that a finding gives values of.
MOVED = 3
#: A column of which a smaller share is left next to the regressor cannot be told from it.
LEFT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimingTerm:
    """One term of one output, or of all alike.

    Attributes:
        outputs: names of those that have it.
        kind: "delay" or "bending".
        value: of a delay, s, the force behind the motion; of bending, s^2, the inverse square of
            the angular frequency at which the load would swing with the motor held; negative where
            accelerations are too small.
        deviation: of the value.
        shift: (r,) what the fit with the term adds to the parameters, SI.
        inertias: of the load at the motors whose transmissions bend, kg m^2 or kg; none where their
            motion is unknown.
        unit: of the outputs.
        is_of_all: whether it is one term of several outputs.
        is_shown: whether residuals show it.
    """

    outputs: tuple[str, ...]
    kind: str
    value: float
    deviation: float
    shift: np.ndarray
    inertias: tuple[float, ...] = ()
    unit: str = ""
    is_of_all: bool = False
    is_shown: bool = False

    @property
    def expected_square(self) -> np.ndarray:
        """Expected square (r, r) of the shift: that of the estimate less what its own deviation adds.

        Of a term of all outputs nothing is taken off: the parameters that it shifts are the masses
        that all share.
        """
        if self.is_of_all:
            return np.outer(self.shift, self.shift)
        if abs(self.value) <= COUNTED * self.deviation:
            return np.zeros((len(self.shift), len(self.shift)))
        excess = 1.0 - (self.deviation / self.value) ** 2
        return np.asarray(excess * np.outer(self.shift, self.shift))

    @property
    def stiffnesses(self) -> tuple[float, ...]:
        """Stiffnesses of the transmissions, N m/rad or N/m; none where nothing bends or the motion is unknown."""
        if self.kind != "bending" or self.value <= 0.0:
            return ()
        return tuple(inertia / self.value for inertia in self.inertias)

    def problem(self, base: BaseParameters, values: np.ndarray, deviations: np.ndarray) -> Problem:
        """Return the term as a finding.

        Args:
            base: the base parameters.
            values, deviations: of them (r,).
        """
        if self.kind == "delay":
            what = f"comes {1e3 * abs(self.value):.3g} +- {1e3 * self.deviation:.2g} ms "
            what += "behind the motion" if self.value > 0.0 else "before the motion"
            remedy = "align force and motion in time"
        elif self.value > 0.0:
            what = f"shows a transmission that bends: {self._swinging}"
            remedy = "excite less far up, measure on the load's side, or model the drive line"
        else:
            what = f"follows its own second derivative by {-self.value:.3g} +- {self.deviation:.2g} s^2: accelerations "
            what += "are wrong at high frequencies, by the noise of positions or by a cut-off that takes motion away"
            remedy = "state no cut-off, so that the noise of the positions decides, or record with finer steps"
        where = ", ".join(f"force.{output}" for output in self.outputs)
        return Problem(
            where, f"{what}; fitted with it {self._moved(base, values, deviations)}", remedy
        )

    def _moved(self, base: BaseParameters, values: np.ndarray, deviations: np.ndarray) -> str:
        """Values of the parameters that the term shifts most, in words."""
        most = np.argsort(-np.abs(self.shift) / deviations)[:MOVED]
        return ", ".join(
            f"{base.base[k].short_name()} is {values[k] + self.shift[k]:.4g}, not {values[k]:.4g} {base.base[k].unit}"
            for k in most
        )

    @property
    def _swinging(self) -> str:
        """Stiffness and frequency in words."""
        share = self.deviation / self.value
        frequency = 1.0 / (2.0 * np.pi * np.sqrt(self.value))
        swinging = f"its load swings at {frequency:.3g} +- {0.5 * frequency * share:.2g} Hz with the motor held"
        if not self.stiffnesses:
            return swinging
        unit = {"N m": "N m/rad", "N": "N/m"}.get(self.unit, self.unit)
        stiffness = float(np.mean(self.stiffnesses))
        return f"its stiffness is {stiffness:.3g} +- {stiffness * share:.2g} {unit}, {swinging}"


def timing_terms(
    regression: BaseRegression,
    estimate: Estimate,
    equations: EstimatingEquations,
    bending: Bending | None = None,
) -> tuple[TimingTerm, ...]:
    """Return a delay and a bending of every measured output, and of all together; none of data without a period.

    Args:
        regression: of the fit.
        estimate: least squares with weights of the outputs.
        equations: at the estimate.
        bending: what bending transmissions change, where the motion of the samples is at hand.
    """
    if regression.data.period is None or len(regression.data) < MIN_SPECTRUM_SAMPLES:
        return ()
    terms = _judged(
        regression, estimate, equations, _MissingColumns(regression, estimate.values, bending)
    )
    shown = [term.shift for term in terms if term.is_shown]
    if not shown:
        return terms
    # the parameters make the columns, and those of the fit with the terms make better ones
    values = estimate.values + np.sum(shown, axis=0)
    return _judged(regression, estimate, equations, _MissingColumns(regression, values, bending))


def _judged(
    regression: BaseRegression,
    estimate: Estimate,
    equations: EstimatingEquations,
    columns: _MissingColumns,
) -> tuple[TimingTerm, ...]:
    """Return the terms of some columns: those that residuals show first, each next to those before it."""
    candidates = _candidates(regression, estimate, equations, columns)
    residual = equations.residual * estimate.weights * columns.is_judged
    terms: list[TimingTerm] = []
    while candidates:
        judged = [
            _term(regression, estimate, candidate, residual, equations.logs)
            for candidate in candidates
        ]
        shown = [number for number, term in enumerate(judged) if term.is_shown]
        if not shown:
            return (*terms, *judged)
        best = max(shown, key=lambda number: abs(judged[number].value / judged[number].deviation))
        terms.append(judged[best])
        taken = candidates[best].left
        residual = residual - judged[best].value * taken
        rest = [candidate.without(candidates[best]) for candidate in candidates]
        candidates = [
            candidate
            for candidate, before in zip(rest, candidates, strict=True)
            if np.sum(candidate.left**2) > LEFT**2 * np.sum(before.left**2)
        ]
    return tuple(terms)


def _candidates(
    regression: BaseRegression,
    estimate: Estimate,
    equations: EstimatingEquations,
    columns: _MissingColumns,
) -> list[_Candidate]:
    """Return the columns of which something is left next to the regressor."""
    weights = estimate.weights * columns.is_judged
    weighted = equations.regressor * weights[:, :, None]
    rows = weighted.reshape(-1, weighted.shape[-1])
    gram = rows.T @ rows
    norms = np.sqrt(np.diag(gram))
    if not norms.all():
        return []
    gram /= np.outer(norms, norms)
    candidates = []
    for column in columns.every():
        own = column.values * weights
        carried = np.linalg.solve(gram, rows.T @ own.ravel() / norms) / norms
        left = own - weighted @ carried
        if np.sum(left**2) > LEFT**2 * np.sum(own**2) > 0.0:
            forces = (weights * regression.forces)[:, column.outputs]
            share = float(np.sqrt(np.sum(own**2) / np.sum(forces**2)))
            candidates.append(_Candidate(column=column, carried=carried, left=left, share=share))
    return candidates


def counted(estimate: Estimate, terms: tuple[TimingTerm, ...]) -> Estimate:
    """Return the estimate with the expected squares of the shifts in its covariance."""
    return replace(
        estimate, covariance=estimate.covariance + sum(term.expected_square for term in terms)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MissingColumn:
    """A column that may be missing.

    Attributes:
        kind: of the term.
        outputs: (n_out,) those that have it.
        values: (N, n_out) of the measured outputs.
        inertias: as of `TimingTerm`.
    """

    kind: str
    outputs: np.ndarray
    values: np.ndarray
    inertias: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    """A column next to the regressor.

    Attributes:
        column: as it is.
        carried: (r,) its share in the regressor.
        left: (N, n_out) the rest of it, weighted.
        share: of the outputs' forces, for a value of one.
    """

    column: _MissingColumn
    carried: np.ndarray
    left: np.ndarray
    share: float

    def without(self, other: _Candidate) -> _Candidate:
        """Return the column less its share in another."""
        share = np.sum(self.left * other.left) / np.sum(other.left**2)
        return replace(
            self, carried=self.carried - share * other.carried, left=self.left - share * other.left
        )


def _term(
    regression: BaseRegression,
    estimate: Estimate,
    candidate: _Candidate,
    residual: np.ndarray,
    logs: np.ndarray | None,
) -> TimingTerm:
    """Return the term of a column."""
    left = candidate.left
    power = np.sum(left**2)
    value = float(np.sum(left * residual) / power)
    errors = residual - value * left
    variance = float(score_variances(np.sum(left * errors, axis=1, keepdims=True), logs)[0])
    data = regression.data
    if len(data) <= MANY_SAMPLES:
        variance = max(
            variance, sum_variance(left, errors, logs, max(data.reach // FILTER_LOBE, 2))
        )
    deviation = float(np.sqrt(variance) / power)
    shift = -candidate.carried * value
    is_shown = (
        abs(value) > SHOWN * deviation
        and bool(np.any(np.abs(shift) > SHIFTED * estimate.standard_deviations))
        and abs(value) * candidate.share > SIZE
    )
    column = candidate.column
    outputs = data.kept[column.outputs]
    return TimingTerm(
        outputs=tuple(data.outputs[k] for k in outputs),
        kind=column.kind,
        value=value,
        deviation=deviation,
        shift=shift,
        inertias=column.inertias,
        unit=data.output_units[outputs[0]],
        is_of_all=len(outputs) > 1,
        is_shown=is_shown,
    )


class _MissingColumns:
    """The columns that may be missing, and the samples by which they are judged.

    A filter makes regressor and forces smaller at the ends of a log, and next to rows that are left
    out there is no derivative: these rows are not judged.
    """

    def __init__(
        self, regression: BaseRegression, values: np.ndarray, bending: Bending | None
    ) -> None:
        """Make the columns at values (r,) of the base parameters."""
        data = regression.data
        assert data.period is not None
        self._data = data
        self._parameters = data.expand(regression.base.spread(values))
        edges = (
            [0, len(data)]
            if data.logs is None
            else [0, *(np.flatnonzero(np.diff(data.logs)) + 1), len(data)]
        )
        self._pieces = []
        self.is_judged = np.zeros((len(data), len(data.kept)), dtype=bool)
        for first, last in pairwise(edges):
            start, stop = first + data.reach, last - data.reach
            if stop - start >= MIN_SPECTRUM_SAMPLES:
                self._pieces.append(slice(start, stop))
                self.is_judged[start:stop] = True
        if data.present is not None:
            absent = ~data.present[:, data.kept]
            near = absent.copy()
            for shift in (1, 2):
                near[shift:] |= absent[:-shift]
                near[:-shift] |= absent[shift:]
            self.is_judged[near] = False
        self._bent: BendingColumns | None = None
        if bending is not None:
            named = dict(zip(data.parameters, self._parameters, strict=True))
            self._bent = bending.columns(named, np.diff(edges).tolist(), data.period)

    def every(self) -> Iterator[_MissingColumn]:
        """Yield the columns of all measured outputs, each by itself and then together."""
        late, bent = self._derivatives()
        count = late.shape[1]
        choices = list(np.eye(count, dtype=bool))
        if count > 1:
            choices.append(np.ones(count, dtype=bool))
        for outputs in choices:
            yield _MissingColumn(kind="delay", outputs=outputs, values=late * outputs)
        for outputs in choices:
            if self._bent is None:
                yield _MissingColumn(kind="bending", outputs=outputs, values=bent * outputs)
            else:
                yield self._bending(outputs, self._bent)

    def _bending(self, outputs: np.ndarray, bent: BendingColumns) -> _MissingColumn:
        """Return what the transmissions of some actuators, or of all, change of all measured forces."""
        kept = self._data.kept
        actuators = np.arange(bent.values.shape[2]) if np.sum(outputs) > 1 else kept[outputs]
        values = bent.values[:, :, actuators].sum(axis=2)[:, kept]
        inertias = tuple(bent.inertias[kept[outputs]].tolist())
        return _MissingColumn(kind="bending", outputs=outputs, values=values, inertias=inertias)

    def _derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the second derivative (N, n_out) of the predicted forces, both with a minus."""
        data = self._data
        assert data.period is not None
        jumps = [name.rpartition(".")[2] in JUMPING for name in data.parameters]
        both = np.stack([self._parameters, np.where(jumps, 0.0, self._parameters)], axis=1)
        predicted = (data.regressor @ both)[:, data.kept]
        late, bent = np.zeros(predicted.shape[:2]), np.zeros(predicted.shape[:2])
        widest = HIGHEST_CUTOFF / data.period  # friction jumps: it has all frequencies
        for piece in self._pieces:
            for k in range(predicted.shape[1]):
                whole, smooth = predicted[piece, k].T
                _, rate, bend = in_band(smooth, rate=1.0 / data.period)
                _, jumping = smooth_rates(
                    whole - smooth, rate=1.0 / data.period, cutoffs=(widest, widest), order=4
                )
                late[piece, k] = -rate - jumping
                bent[piece, k] = -bend
        return late, bent
