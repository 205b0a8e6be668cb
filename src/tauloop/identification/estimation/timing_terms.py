"""What a late force and a bending transmission would change: counted in the deviations, named where residuals show it.

Both add a column to an output: of a delay the first derivative of its force, of a load that swings
on its transmission the second derivative, and the same of a motion whose accelerations lost a
share. Left out, such a column shifts the parameters by what the fit with it would move them. Where
residuals do not show it beyond its own deviation the shift is not known to be there, nor to be
zero: its expected square is added to the covariance.

Source: Frisch and Waugh 1933, Partial time regressions as compared with individual trends, for the
fit with one more column.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.error_models import EstimatingEquations, score_variances
from tauloop.identification.estimation.estimators import Estimate
from tauloop.logs.rates import FEWEST, in_band

#: Last parts of the names of terms whose forces jump; no transmission is taken to bend by these.
JUMPING = ("coulomb", "coulomb_asymmetry", "stribeck", "presliding")
#: A term is shown by residuals from this many of its deviations on, ...
SHOWN = 3.5
#: ... if it shifts some parameter by as many of the parameter's, and has this share of the force of
#: its output.
SHIFTED, SIZE = 1.0, 3e-4
#: From this many of its deviations on a term of one output counts in those of the parameters; below
#: it is noise, and small. Drives are alike, so that a term of all outputs counts in whatever size
#: it is found.
COUNTED = 1.5
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
        is_of_all: whether it is one term of several outputs.
        is_shown: whether residuals show it.
    """

    outputs: tuple[str, ...]
    kind: str
    value: float
    deviation: float
    shift: np.ndarray
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

    def problem(self, deviations: np.ndarray, names: tuple[str, ...]) -> Problem:
        """Return the term as a finding.

        Args:
            deviations: of the parameters (r,).
            names: of the parameters.
        """
        most = int(np.argmax(np.abs(self.shift) / deviations))
        moved = f"it moves {names[most]} by {abs(self.shift[most]) / deviations[most]:.3g} of its standard deviations"
        if self.kind == "delay":
            what = f"comes {1e3 * abs(self.value):.3g} +- {1e3 * self.deviation:.2g} ms "
            what += "behind the motion" if self.value > 0.0 else "before the motion"
            remedy = "align force and motion in time"
        elif self.value > 0.0:
            frequency = 1.0 / (2.0 * np.pi * np.sqrt(self.value))
            what = "follows its own second derivative: the transmission bends, its load swings at "
            what += f"{frequency:.3g} +- {0.5 * frequency * self.deviation / self.value:.2g} Hz with the motor held"
            remedy = "excite less far up, measure on the load's side, or model the drive line"
        else:
            what = f"follows its own second derivative by {-self.value:.3g} +- {self.deviation:.2g} s^2: accelerations "
            what += "are wrong at high frequencies, by the noise of positions or by a cut-off that takes motion away"
            remedy = "state no cut-off, so that the noise of the positions decides, or record with finer steps"
        where = ", ".join(f"force.{name}" for name in self.outputs)
        return Problem(where, f"{what}; {moved}", remedy)


def timing_terms(
    regression: BaseRegression, estimate: Estimate, equations: EstimatingEquations
) -> tuple[TimingTerm, ...]:
    """Return a delay and a bending of every measured output, and of all together; none of data without a period.

    Args:
        regression: of the fit.
        estimate: least squares with weights of the outputs.
        equations: at the estimate.
    """
    data = regression.data
    if data.period is None or len(data) < FEWEST:
        return ()
    weights = estimate.weights
    weighted = equations.regressor * weights[:, None]
    rank = weighted.shape[-1]
    rows = weighted.reshape(-1, rank)
    gram = rows.T @ rows
    candidates = []
    for kind, every in _columns(regression, estimate).items():
        outputs = list(np.eye(len(weights), dtype=bool))
        if len(weights) > 1:
            outputs.append(np.ones(len(weights), dtype=bool))
        for chosen in outputs:
            own = every * np.where(chosen, weights, 0.0)
            carried = np.linalg.solve(gram, rows.T @ own.ravel())
            left = own - weighted @ carried
            if np.sum(left**2) > LEFT**2 * np.sum(own**2) > 0.0:
                forces = (weights * regression.forces)[:, chosen]
                size = float(np.sqrt(np.sum(forces**2) / len(forces)))
                candidates.append(
                    _Candidate(kind=kind, outputs=chosen, carried=carried, left=left, force=size)
                )
    residual = equations.residual * weights
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


def counted(estimate: Estimate, terms: tuple[TimingTerm, ...]) -> Estimate:
    """Return the estimate with the expected squares of the shifts in its covariance."""
    return replace(
        estimate, covariance=estimate.covariance + sum(term.expected_square for term in terms)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    """A column that may be missing.

    Attributes:
        kind: of the term.
        outputs: (n_out,) whose forces have it.
        carried: (r,) its share in the regressor.
        left: (N, n_out) the rest of it, weighted.
        force: weighted root mean square of the outputs' forces together.
    """

    kind: str
    outputs: np.ndarray
    carried: np.ndarray
    left: np.ndarray
    force: float

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
    scores = np.sum(left * (residual - value * left), axis=1, keepdims=True) / power
    deviation = float(np.sqrt(score_variances(scores, logs)[0]))
    shift = -candidate.carried * value
    is_of_all = int(np.sum(candidate.outputs)) > 1
    is_shown = (
        abs(value) > SHOWN * deviation
        and bool(np.any(np.abs(shift) > SHIFTED * estimate.standard_deviations))
        and abs(value) * np.sqrt(power / len(left)) > SIZE * candidate.force
    )
    data = regression.data
    return TimingTerm(
        outputs=tuple(data.outputs[k] for k in data.kept[candidate.outputs]),
        kind=candidate.kind,
        value=value,
        deviation=deviation,
        shift=shift,
        is_of_all=is_of_all,
        is_shown=is_shown,
    )


def _columns(regression: BaseRegression, estimate: Estimate) -> dict[str, np.ndarray]:
    """Return the columns (N, n_out) of all measured outputs, by kind of term."""
    data = regression.data
    parameters = data.expand(regression.base.spread(estimate.values))
    jumps = [name.rpartition(".")[2] in JUMPING for name in data.parameters]
    both = np.stack([parameters, np.where(jumps, 0.0, parameters)], axis=1)
    predicted = (data.regressor @ both)[:, data.kept]
    assert data.period is not None
    late, bent = np.zeros(predicted.shape[:2]), np.zeros(predicted.shape[:2])
    edges = (
        [0, len(data)]
        if data.logs is None
        else [0, *(np.flatnonzero(np.diff(data.logs)) + 1), len(data)]
    )
    for first, last in pairwise(edges):
        start, stop = first + data.reach, last - data.reach
        if stop - start < FEWEST:
            continue
        for k in range(predicted.shape[1]):
            whole, smooth = predicted[start:stop, k].T
            _, rate, bend = in_band(smooth, rate=1.0 / data.period)
            late[start:stop, k] = -rate - np.gradient(whole - smooth, data.period)
            bent[start:stop, k] = -bend
    if data.present is not None:  # next to rows that are left out there is no derivative
        absent = ~data.present[:, data.kept]
        near = absent.copy()
        for shift in (1, 2):
            near[shift:] |= absent[:-shift]
            near[:-shift] |= absent[shift:]
        late[near] = bent[near] = 0.0
    return {"delay": late, "bending": bent}
