"""Causes of forces that lag their motion: delay, held values, compliance, presliding friction.

All four causes leave similar residuals, so they are compared. Each cause has a size, such as the
length of a delay. Model and size are fitted to the first part of the log, and evaluated by the
error on the last part. A cause is reported if it reduces this error by more than the noise of the
error, and by more than the error that the preparation of the log causes. Filters and
differentiation change a motion even without noise; the resulting error is estimated with the fitted
model along the motion after a second preparation. Among causes that predict equally well, the cause
with the fewest parameters is preferred.

All parameters of the machine are fitted to each output separately. One output determines some
directions of the parameters poorly, and errors in these directions would dominate the last part.
Therefore the other outputs, with unchanged motion, are added to the fit with a small weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import scipy.fft
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs

from tauloop.common.errors import PoseError, Problem
from tauloop.common.records import dataclass
from tauloop.identification.faults.measured_motion import LogMotion
from tauloop.identification.faults.misfits import measured_outputs
from tauloop.identification.friction.presliding import dahl_state
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import (
    leading_transmission,
    regressor_rows,
    regressor_start,
)
from tauloop.model import Model

#: Maximum number of samples of a log that are used, from its beginning.
MAX_LATE_SAMPLES = 20_000
#: Fraction of the samples that is fitted. The remaining samples are held out.
FITTED_SHARE = 0.7
#: Number of blocks of the held-out part. Their scatter is the noise of a difference of errors.
EVALUATION_BLOCKS = 15
#: Minimum relative reduction of the RMS error of the held-out part by a cause.
MIN_HELD_OUT_REDUCTION = 0.05
#: Minimum reduction of the squared error by a cause, in standard deviations of the reduction.
MIN_GAIN_DEVIATIONS = 2.5
#: Minimum number of held-out blocks in which a cause reduces the squared error.
MIN_BETTER_BLOCKS = 11
#: Two causes are distinguished if their squared errors differ by this number of standard
#: deviations.
MIN_DISTINCT_DEVIATIONS = 2.0
#: Causes of a late force are searched if a derivative of the force explains more than this fraction
#: of the residual's power.
MIN_DERIVATIVE_SHARE = 0.02
#: They are also searched if the autocorrelation of the residual exceeds this value.
MIN_AUTOCORRELATION = 0.3
#: Largest lag of this autocorrelation, in samples.
MAX_LAG = 20
#: A residual of unfiltered forces is white if its autocorrelation is below this value. A cause that
#: reduces its RMS by `MIN_HELD_OUT_REDUCTION` has 10 % of its power.
MAX_WHITE_AUTOCORRELATION = 0.05
#: Minimum number of samples for each parameter of an output.
MIN_SAMPLES_PER_PARAMETER = 10
#: Delays that are tried first, in samples, in both directions.
FIRST_DELAYS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0, 23.0, 32.0, 45.0, 64.0)
#: Number of times that the steps near the best delay are halved.
DELAY_HALVINGS = 6
#: Step of the central difference that gives the derivative of a force with respect to a shift, in
#: samples. With two steps of half a sample, every jump of Coulomb friction is in exactly one row.
SHIFT_DIFFERENCE = 0.5
#: A hold is tried if the delay is at least this number of samples.
MIN_HOLD_DELAY = 0.3
#: Shortest hold that is tried, as a fraction of the hold with the same mean delay.
MIN_HOLD_SHARE = 0.7
#: Longest hold that is tried, as a fraction of the hold with the same mean delay.
MAX_HOLD_SHARE = 1.35
#: Both limits are extended by this number of samples.
HOLD_MARGIN = 1
#: Number of phases of a hold that are tried first.
FIRST_HOLD_PHASES = 6
#: Sizes are searched on samples spread over the fitted part. Their number is limited so that a
#: trial computes at most this number of products of column entries.
MAX_TRIAL_PRODUCTS = 3e6
#: Minimum number of samples of the search, in spite of `MAX_TRIAL_PRODUCTS`.
MIN_SEARCH_SAMPLES = 2500
#: Presliding lengths that are tried first, as fractions of a stroke.
FIRST_PRESLIDING_SHARES = tuple(np.geomspace(1e-4, 0.4, 13).tolist())
#: Presliding lengths of two further rounds, as multiples of the best length.
PRESLIDING_REFINEMENT_FACTORS = ((0.6, 0.77, 1.3, 1.7), (0.87, 1.15))
#: Shortest presliding length, as a fraction of the drive's travel between two samples (RMS).
MIN_PRESLIDING_TRAVEL_SHARE = 0.1
#: Number of frequencies of a compliant transmission that are tried first. The lowest is twice the
#: highest frequency of the motion.
FIRST_FREQUENCIES = 14
#: Highest frequency that is tried first, as a fraction of the sampling rate.
MAX_FREQUENCY_SHARE = 0.3
#: Frequencies near the best frequency are tried if it reduces the squared error by this fraction.
MIN_FREQUENCY_REDUCTION = 0.03
#: Frequencies of further rounds, as multiples of the best.
FREQUENCY_REFINEMENT_FACTORS = ((0.85, 0.92, 1.08, 1.16), (0.96, 1.04), (0.98, 1.02))
#: Damping ratios of a compliant transmission.
DAMPING_RATIOS = (0.03, 0.1, 0.4)
#: Delays below this fraction of the sampling period are ignored, because friction at samples near
#: velocity reversals has the same effect.
NEGLIGIBLE_DELAY_SHARE = 0.05
#: Norms of an output's column below this fraction of the largest norm of the same parameter in all
#: outputs are rounding errors.
COLUMN_ROUNDING = 1e-11
#: Errors below this fraction of the force are rounding errors.
ERROR_ROUNDING = 1e-6
#: The error that a cause explains must be at least this multiple of the preparation's error.
MIN_PREPARATION_ERRORS = 6.0
#: Weight of the other outputs in the fit of one output, relative to their noise. It is small,
#: because their forces may be late as well.
OTHER_OUTPUTS_WEIGHT = 0.05
#: Delays of outputs count as equal if they differ by at most this fraction.
MAX_DELAY_SPREAD = 0.2
#: Kind of a cause: Coulomb friction that reverses before the motion does, which no real machine
#: has.
EARLY_FRICTION = "early friction"
#: Directions of unit-norm columns with a squared singular value below this fraction of the largest
#: are ignored.
DELAY_RANK_TOLERANCE = 1e-12
#: Reciprocal condition number of normal equations (1-norm) above which all directions are
#: determined.
WELL_CONDITIONED = 1e-9

#: A function that returns columns at samples.
_Columns = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """A cause of a late force with its best size, evaluated on the last part of a log.

    Attributes:
        kind: "delay", "hold", "bending", "presliding" or `EARLY_FRICTION`.
        size: delay, or lead of Coulomb friction alone, s; number of samples of a hold; presliding
            length, m or rad; frequency at which the load oscillates with the motor locked, Hz.
        parameters: number of parameters that the cause adds to the model.
        errors: squared error of every block of the held-out part (EVALUATION_BLOCKS,).
        error: RMS error of the held-out part, SI.
        interval: interval of the frequencies that are not distinguished from the best frequency,
            Hz; NaN for other causes than bending.
        deviation: standard deviation of a delay or of a lead of Coulomb friction, s; NaN for other
            causes.
    """

    kind: str
    size: float
    parameters: int
    errors: np.ndarray
    error: float
    interval: tuple[float, float] = (np.nan, np.nan)
    deviation: float = np.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LateForce:
    """The significant causes of the late force of one output, the best first.

    Attributes:
        output: name of the output.
        unit: unit of the output.
        length_unit: unit of the output's motion.
        step: sampling period, s.
        plain: RMS error of the held-out part without any cause, SI.
        ranked: the causes. Among causes that predict equally well, the cause with the fewest
            parameters is first.
        alike: number of causes that predict equally well, including the first.
    """

    output: str
    unit: str
    length_unit: str
    step: float
    plain: float
    ranked: tuple[Explanation, ...]
    alike: int

    @property
    def kind(self) -> str:
        """Kind of the best cause."""
        return self.ranked[0].kind

    @property
    def delay(self) -> float:
        """Delay of the force, s, if the best cause is a delay or a hold (mean delay); or zero."""
        best = self.ranked[0]
        delays = {"delay": best.size, "hold": 0.5 * (best.size - 1.0) * self.step}
        return delays.get(best.kind, 0.0)

    def problem(self, element: str) -> Problem:
        """Return the problem of the best cause; the text mentions the second best cause.

        Args:
            element: name of the element whose friction acts on the output, for `--presliding`.
        """
        best, *others = self.ranked
        direction = "earlier" if best.size > 0.0 else "later"
        remedies = {
            "delay": "align force and motion in time: move the force "
            f"{1e3 * abs(best.size):.3g} ms {direction}",
            "hold": "record the force at its own rate, or use only one row in "
            f"{best.size:.0f}, the first of each value",
            "bending": "excite lower frequencies, measure on the load's side, or model the drive line",
            "presliding": f"fit it as well: --presliding {element}",
            EARLY_FRICTION: "make the simulator's friction stiffer (in MuJoCo, a shorter "
            "solreffriction), or do not rely on values of friction",
        }
        what = (
            f"{self._description(best)}: with this cause, the error on the last "
            f"{100.0 * (1.0 - FITTED_SHARE):.0f} % of the log falls from {self.plain:.3g} to "
            f"{best.error:.3g} {self.unit}"
        )
        if others:
            verdict = "equally good" if self.alike > 1 else "next best"
            second = others[0]
            what += f"; {verdict} explanation: it {self._description(second)} ({second.error:.3g} {self.unit})"
        where = element if best.kind in ("presliding", EARLY_FRICTION) else f"force.{self.output}"
        return Problem(where, what, remedies[best.kind])

    def _description(self, explanation: Explanation) -> str:
        """Return a text that describes what a cause does to the force."""
        size = explanation.size
        if explanation.kind == "delay":
            verb = "lags" if size > 0.0 else "leads"
            return f"{verb} the motion by {_milliseconds(size, explanation.deviation)}"
        if explanation.kind == "hold":
            delay = 0.5e3 * (size - 1.0) * self.step
            return f"is held for {size:.0f} samples, which is a mean delay of {delay:.3g} ms"
        if explanation.kind == "bending":
            low, high = explanation.interval
            interval = f"{low:.3g} Hz or more"
            if np.isfinite(high):
                interval = f"{low:.3g} to {high:.3g} Hz"
            return (
                f"passes a compliant transmission: its load oscillates at {size:.3g} Hz "
                f"({interval}) with the motor locked"
            )
        if explanation.kind == EARLY_FRICTION:
            return (
                f"has Coulomb friction that reverses {_milliseconds(size, explanation.deviation)} "
                "before its motion, which only simulators with soft constraints produce"
            )
        return (
            f"has friction that builds up over {size:.2g} {self.length_unit} after a velocity "
            "reversal, not immediately (presliding)"
        )


def late_forces(
    model: Model,
    log: LogMotion,
    *,
    prepared_again: LogMotion | None = None,
    output: str = "actuators",
    only: Iterable[str] | None = None,
) -> tuple[LateForce, ...]:
    """Return the late forces of a log with their causes, for outputs with a significant cause.

    Args:
        model: the machine.
        log: motion and unfiltered forces of the log.
        prepared_again: motion of the log after the same preparation once more; None for a motion
            that no filter has changed.
        output: "actuators", or "joints" for forces on the driven coordinates.
        only: names of the outputs to check; None for all.
    """
    if model.assembly.is_redundant or log.periodic:
        return ()
    log = _beginning(log)
    names, units = model.output_ports(output)
    mixing, rows = measured_outputs(model, log, output)
    measured_rows = list(range(len(names))) if isinstance(rows, slice) else list(rows)
    motion = log.slow_motion()
    motion_again = (prepared_again or log).slow_motion().slow_motion()
    try:
        columns = _columns_along(model, motion, output)[:, rows]
        columns_again = _columns_along(model, motion_again, output)[:, rows]
    except PoseError:
        return ()
    _remove_rounding(columns)
    _remove_rounding(columns_again)
    speeds = motion.velocity
    if output == "joints":
        speeds = speeds @ np.linalg.pinv(leading_transmission(model)).T
    parameters = [parameter.name for parameter in model.parameters]
    forces = log.forces @ mixing
    highest = motion.highest * log.step
    settling = log.slow_settling
    outputs = [
        _Output(columns[:, k], parameters, forces[:, k], log.usable, highest, settling)
        for k in range(len(measured_rows))
    ]
    checked = set(names) if only is None else set(only)
    equations = _equations_of_others(outputs, columns)
    compared: list[tuple[_Output, LateForce | None, int]] = []
    for number, (single, others, row) in enumerate(
        zip(outputs, equations, measured_rows, strict=True)
    ):
        if names[row] not in checked or not single.can_evaluate:
            continue
        single.add_equations(*others)
        exact = None
        if len(columns_again) == len(columns):
            exact = _Output(
                columns_again[:, number],
                parameters,
                single.predicted,
                log.usable,
                highest,
                settling,
            )
        has_own_position = output == "actuators" and names[row] in log.names
        k = log.names.index(names[row]) if has_own_position else row
        compared.append((single, _explain(single, speeds[:, k], log.step, exact), row))
    explained = []
    for late, row in _with_common_delay(compared, log.step):
        unit = units[row]
        length_unit = "m" if unit == "N" else "rad"
        explained.append(replace(late, output=names[row], unit=unit, length_unit=length_unit))
    return tuple(explained)


def _remove_rounding(columns: np.ndarray) -> None:
    """Set columns (N, n_out, n_pi) of only rounding errors to zero, in place.

    A parameter may have no effect on one output, for example the mass of a link on a motor with a
    vertical axis. Rounding errors leave a column of 1e-16, which is compared with the columns of
    the same parameter in the other outputs.
    """
    norms = np.sqrt(np.einsum("nij,nij->ij", columns, columns))
    columns[:, (norms > 0.0) & (norms <= COLUMN_ROUNDING * norms.max(axis=0))] = 0.0


def _equations_of_others(
    outputs: Sequence[_Output], columns: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each output, the normal equations of all other outputs.

    Args:
        outputs: the measured outputs.
        columns: (N, n_out, n_pi) columns of the parameters.

    Returns:
        For each output, the matrix (n_pi, n_pi) and the right-hand side (n_pi,) of the equations,
        divided by the variances of the other outputs' noise.
    """
    matrices = np.zeros((len(outputs), columns.shape[2], columns.shape[2]))
    products = np.zeros((len(outputs), columns.shape[2]))
    for k, output in enumerate(outputs):
        if not output.can_evaluate:
            continue
        rows = columns[output.fitted, k]
        variance = max(output.misfit(output.rigid), np.finfo(float).tiny)
        matrices[k] = rows.T @ rows / variance
        products[k] = rows.T @ output.forces[output.fitted] / variance
    return [
        (matrices.sum(axis=0) - matrix, products.sum(axis=0) - product)
        for matrix, product in zip(matrices, products, strict=True)
    ]


def _with_common_delay(
    compared: Sequence[tuple[_Output, LateForce | None, int]], step: float
) -> list[tuple[LateForce, int]]:
    """Return the late forces and their rows, after trying the median delay in each output.

    A single output with many parameters determines its own delay poorly. All forces of one bus have
    the same delay, so an output gets the median delay of all outputs if this delay explains the
    output as well as its own cause.

    Args:
        compared: for each output, the output, its late force (None without a significant cause) and
            its row.
        step: sampling period, s.
    """
    delays = [late.delay for _, late, _ in compared if late is not None and late.kind == "delay"]
    common = float(np.median(delays)) if delays else 0.0
    similar = [delay for delay in delays if abs(delay - common) <= MAX_DELAY_SPREAD * abs(common)]
    is_common = len(similar) > 1 and 2 * len(similar) > len(compared)
    explained = []
    for single, late, row in compared:
        if is_common and (late is None or late.kind != "delay"):
            late = _explained_by_delay(single, late, common, step)
        if late is not None:
            explained.append((late, row))
    return explained


def _explained_by_delay(
    single: _Output, late: LateForce | None, delay: float, step: float
) -> LateForce | None:
    """Return a late force with a given delay as its cause, unless another cause is clearly better.

    Args:
        single: the output.
        late: its late force; None without a significant cause.
        delay: the delay, s.
        step: sampling period, s.
    """
    plain_errors, plain_error = single.evaluate(single.rigid)
    errors, error = single.evaluate(single.delayed(delay / step))
    best_errors = plain_errors if late is None else late.ranked[0].errors
    if late is None and _deviations(best_errors, errors) < MIN_DISTINCT_DEVIATIONS:
        return None
    if _deviations(errors, best_errors) >= MIN_DISTINCT_DEVIATIONS:
        return late
    deviation = step * single.shift_deviation(single.delayed, delay / step)
    cause = Explanation(
        kind="delay", size=delay, parameters=1, errors=errors, error=error, deviation=deviation
    )
    others = () if late is None else tuple(item for item in late.ranked if item.kind != "delay")
    is_alike = [_deviations(item.errors, errors) < MIN_DISTINCT_DEVIATIONS for item in others]
    return LateForce(
        output="",
        unit="",
        length_unit="",
        step=step,
        plain=plain_error,
        ranked=(cause, *others),
        alike=1 + sum(is_alike),
    )


def _milliseconds(size: float, deviation: float) -> str:
    """Return a text with a time and its standard deviation, both in s, in milliseconds."""
    return f"{1e3 * abs(size):.3g} +- {1e3 * deviation:.2g} ms"


def _columns_along(model: Model, motion: LogMotion, output: str) -> np.ndarray:
    """Return the columns (N, n_out, n_pi) of the parameters along a motion."""
    start = regressor_start(model, motion.position, output)
    rates = motion.position, motion.velocity, motion.acceleration
    return regressor_rows(model, rates, output, start)


def possibly_late_outputs(data: RegressionData) -> tuple[str, ...]:
    """Return the outputs whose residual follows a derivative of the force, or is autocorrelated.

    Only for these outputs, `late_forces` may find a cause. The selection requires a single fit of
    each output; `late_forces` takes much longer.

    Args:
        data: regression data of one log, evenly sampled, with their times.
    """
    if data.time is None or len(data) < 4 * EVALUATION_BLOCKS:
        return ()
    step = float(data.time[-1] - data.time[0]) / (len(data) - 1)
    names = []
    for k in data.kept:
        if len(data.rows(k)) != len(data):
            continue
        regressor, forces = data.of_output(k)
        norms = np.linalg.norm(regressor, axis=0)
        columns = regressor[:, norms > 0.0] / norms[norms > 0.0]
        if not columns.shape[1]:
            continue
        left_vectors, singular_values, _ = np.linalg.svd(columns, full_matrices=False)
        basis = left_vectors[:, singular_values**2 > DELAY_RANK_TOLERANCE * singular_values[0] ** 2]
        predicted = basis @ (basis.T @ forces)
        residual = forces - predicted
        rate = np.gradient(predicted, step)
        tiny = np.finfo(float).tiny
        power = float(residual @ residual)
        fractions = [0.0]
        for column in (rate, np.gradient(rate, step)):
            remaining = column - basis @ (basis.T @ column)
            product = float(remaining @ residual)
            fractions.append(product**2 / max(float(remaining @ remaining) * power, tiny))
        lags = range(1, min(MAX_LAG, len(residual) - 1) + 1)
        products = [abs(float(residual[lag:] @ residual[:-lag])) for lag in lags]
        autocorrelation = max(products) / max(power, tiny)
        if max(fractions) > MIN_DERIVATIVE_SHARE or autocorrelation > MIN_AUTOCORRELATION:
            names.append(data.outputs[k])
    return tuple(names)


def _beginning(log: LogMotion) -> LogMotion:
    """Return the first `MAX_LATE_SAMPLES` samples of a log."""
    if len(log.position) <= MAX_LATE_SAMPLES:
        return log
    return replace(
        log,
        position=log.position[:MAX_LATE_SAMPLES],
        velocity=log.velocity[:MAX_LATE_SAMPLES],
        acceleration=log.acceleration[:MAX_LATE_SAMPLES],
        forces=log.forces[:MAX_LATE_SAMPLES],
        usable=None if log.usable is None else log.usable[:MAX_LATE_SAMPLES],
    )


class _Output:
    """One output of a log, and its fits with changed or additional columns.

    Columns of Coulomb friction jump between two samples where the speed changes sign. They are
    stored separately, together with the columns of viscous friction of the same elements, which
    have the same signs.
    """

    def __init__(
        self,
        columns: np.ndarray,
        parameters: Sequence[str],
        forces: np.ndarray,
        usable: np.ndarray | None,
        highest: float,
        settling: int = 0,
    ) -> None:
        """Sort the columns of an output, and choose the samples for fitting and for evaluation.

        Args:
            columns: (N, n_pi) columns of the parameters.
            parameters: names of the parameters.
            forces: (N,) measured forces.
            usable: (N,) whether a sample is valid; None if all are valid.
            highest: highest frequency of the motion, as a fraction of the sampling rate.
            settling: number of samples at each end that are distorted by the transient of a filter.
        """
        is_excited = np.linalg.norm(columns, axis=0) > 0.0
        index = {name: k for k, name in enumerate(parameters) if is_excited[k]}
        dry: list[int] = []
        viscous: list[int] = []
        for name, k in index.items():
            element, _, coefficient = name.rpartition(".")
            if coefficient == "coulomb" and f"{element}.viscous" in index:
                dry.append(k)
                viscous.append(index[f"{element}.viscous"])
        others = [k for k in index.values() if k not in dry]
        smooth = columns[:, others]
        norms = np.linalg.norm(smooth, axis=0)
        smooth = smooth / norms
        sizes, directions = np.linalg.eigh(smooth.T @ smooth)
        directions = directions[:, sizes > DELAY_RANK_TOLERANCE * sizes[-1]]
        self.smooth = smooth @ directions
        self.dry = columns[:, dry]
        count = directions.shape[1]
        # Maps coefficients of the smooth and the dry columns to parameters (n_pi,).
        self._basis = np.zeros((len(parameters), count + len(dry)))
        self._basis[others, :count] = directions / norms[:, None]
        self._basis[dry, count:] = np.eye(len(dry))
        self._free = np.setdiff1d(np.arange(len(parameters)), [*others, *dry])
        self._equations: tuple[np.ndarray, np.ndarray] | None = None
        self.viscous = columns[:, viscous]
        self.columns = np.hstack([self.smooth, self.dry])
        self.forces = forces
        self.highest = highest
        self.count = len(forces)
        self._spectra: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._usable = np.ones(self.count, dtype=bool) if usable is None else usable
        edge = int(FITTED_SHARE * self.count)
        self.reach = max(min(max(int(FIRST_DELAYS[-1]), settling), self.count // 20), 1)
        inner = np.arange(self.reach, edge)
        self.fitted = inner[self._usable[inner]]
        parameter_count = self.columns.shape[1]
        search_count = max(int(MAX_TRIAL_PRODUCTS / parameter_count**2), MIN_SEARCH_SAMPLES)
        self._stride = max(len(self.fitted) // search_count, 1)
        self._searched = self.fitted[:: self._stride]
        held_out = np.arange(edge, self.count - self.reach)
        self._blocks = [
            block[self._usable[block]] for block in np.array_split(held_out, EVALUATION_BLOCKS)
        ]
        smallest_block = min(map(len, self._blocks))
        self.can_evaluate = (
            smallest_block >= MIN_SAMPLES_PER_PARAMETER
            and len(self._searched) > MIN_SAMPLES_PER_PARAMETER * parameter_count
        )

    def add_equations(self, matrix: np.ndarray, products: np.ndarray) -> None:
        """Add normal equations of other outputs to all fits, with `OTHER_OUTPUTS_WEIGHT`.

        Parameters without effect on this output are eliminated from these equations.

        Args:
            matrix: (n_pi, n_pi) normal matrix, relative to the noise of the other outputs.
            products: (n_pi,) right-hand side, relative to the same noise.
        """
        free = self._free
        norms = np.sqrt(np.diag(matrix))
        norms[norms == 0.0] = 1.0
        matrix = matrix / np.outer(norms, norms)
        products = products / norms
        inverse = np.linalg.pinv(matrix[np.ix_(free, free)], rcond=DELAY_RANK_TOLERANCE)
        gain = matrix[:, free] @ inverse
        reduced = matrix - gain @ matrix[free]
        basis = norms[:, None] * self._basis
        weight = OTHER_OUTPUTS_WEIGHT * self.misfit(self.rigid)
        self._equations = (
            weight * basis.T @ reduced @ basis,
            weight * basis.T @ (products - gain @ products[free]),
        )

    def misfit(self, columns: _Columns) -> float:
        """Return the mean squared error of a fit to samples of the first part.

        The search for the best size minimizes this error.
        """
        rows = columns(self._searched)
        values = self._least_squares(rows, self._searched)
        return float(np.mean((self.forces[self._searched] - rows @ values) ** 2))

    def evaluate(self, columns: _Columns) -> tuple[np.ndarray, float]:
        """Fit the first part, and return the errors on the last part.

        Returns:
            Squared error of every block (EVALUATION_BLOCKS,), and the RMS error.
        """
        values = self._least_squares(columns(self.fitted), self.fitted)
        held_out = np.concatenate(self._blocks)
        squares = (self.forces[held_out] - columns(held_out) @ values) ** 2
        edges = np.cumsum([len(block) for block in self._blocks])[:-1]
        errors = np.array([block.sum() for block in np.split(squares, edges)])
        return errors, float(np.sqrt(squares.mean()))

    @property
    def predicted(self) -> np.ndarray:
        """Forces (N,) that the fit of the first part predicts along the whole motion."""
        values = self._least_squares(self.columns[self.fitted], self.fitted)
        return np.asarray(self.columns @ values)

    def has_white_residual(self) -> bool:
        """Return whether the residual is white, and hardly contains a small delay of the force.

        A late force differs from the rigid force in several samples after each change, which
        correlates the residual of neighboring samples. Only a delay of less than a sample changes
        single samples at jumps of Coulomb friction; its force is proportional to the delay.
        """
        if not self._usable.all():
            return False
        inner = np.arange(self.reach, self.count - self.reach)
        values = self._least_squares(self.columns[self.fitted], self.fitted)
        residual = self.forces[inner] - self.columns[inner] @ values
        power = float(residual @ residual)
        lags = range(1, MAX_LAG + 1)
        largest = max(abs(float(residual[lag:] @ residual[:-lag])) for lag in lags)
        if largest > MAX_WHITE_AUTOCORRELATION * power:
            return False
        later, earlier = self.delayed(SHIFT_DIFFERENCE), self.delayed(-SHIFT_DIFFERENCE)
        change = later(inner) - earlier(inner)
        count = self.smooth.shape[1]
        for effect in (change @ values, change[:, count:] @ values[count:]):
            product = float(effect @ residual)
            if product**2 > MIN_DERIVATIVE_SHARE * float(effect @ effect) * power:
                return False
        return True

    def _least_squares(
        self, columns: np.ndarray, rows: np.ndarray, target: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the parameters of a least-squares fit at some samples.

        Args:
            columns: columns at the samples.
            rows: indices of the samples.
            target: signal to fit, for which the other outputs have zero forces; None for the
                measured forces.
        """
        gram = columns.T @ columns
        products = columns.T @ (self.forces[rows] if target is None else target)
        if self._equations is not None:
            fraction = len(rows) / len(self.fitted)
            matrix, others = self._equations
            count = len(others)
            gram[:count, :count] += fraction * matrix
            if target is None:
                products[:count] += fraction * others
        norms = np.sqrt(np.maximum(np.diag(gram), 0.0))  # rounding may leave -1e-20
        norms[norms == 0.0] = 1.0
        scaled = gram / np.outer(norms, norms)
        return _normal_solution(scaled, products / norms) / norms

    def shift_deviation(self, shifted: Callable[[float], _Columns], size: float) -> float:
        """Return the standard deviation of a shift in samples, fitted together with the parameters.

        The result is the sandwich estimate over blocks of the fitted part, for the derivative of
        the predicted force with respect to the shift (Frisch and Waugh 1933). In an interval of
        shifts that move no jump of Coulomb friction to another sample, jumps contain no
        information. The standard deviation is therefore at least the smaller of two values: that of
        a force without jumps, and the RMS distance to the shifts in this interval.

        Args:
            shifted: function that returns the columns for a shift.
            size: the fitted shift, in samples.
        """
        rows = self.fitted
        columns = shifted(size)(rows)
        change = shifted(size + SHIFT_DIFFERENCE)(rows) - shifted(size - SHIFT_DIFFERENCE)(rows)
        change /= 2.0 * SHIFT_DIFFERENCE
        values = self._least_squares(columns, rows)
        residual = self.forces[rows] - columns @ values
        count = self.smooth.shape[1]
        whole = self._slope_deviation(columns, change @ values, residual)
        smooth = self._slope_deviation(columns, change[:, :count] @ values[:count], residual)
        return max(whole, min(smooth, self._distance_without_jumps(size)))

    def _slope_deviation(
        self, columns: np.ndarray, derivative: np.ndarray, residual: np.ndarray
    ) -> float:
        """Return the standard deviation of the coefficient of an additional column.

        The coefficient itself, which is the distance to the best shift, is added in quadrature,
        because the search uses only some shifts and samples.

        Args:
            columns: columns of the fit, at the fitted samples.
            derivative: the additional column.
            residual: residual of the fit.
        """
        remaining = derivative - columns @ self._least_squares(columns, self.fitted, derivative)
        power = float(derivative @ remaining)
        if power <= 0.0:
            return float(np.inf)
        coefficient = float(derivative @ residual) / power
        scores = remaining * (residual - coefficient * remaining)
        sums = np.array([block.sum() for block in np.array_split(scores, EVALUATION_BLOCKS)])
        variance = EVALUATION_BLOCKS / (EVALUATION_BLOCKS - 1.0) * float(sums @ sums)
        return float(np.hypot(np.sqrt(variance) / power, coefficient))

    def _distance_without_jumps(self, size: float) -> float:
        """Return the RMS distance from a shift to all shifts around it that move no jump.

        With all these shifts, the jumps of Coulomb friction are at the same samples. The distance
        is infinite if there are no jumps.
        """
        fractions: list[np.ndarray] = []
        for speed in self.viscous[self.fitted[0] : self.fitted[-1] + 1].T:
            before = np.flatnonzero(speed[1:] * speed[:-1] < 0.0)
            jumps = before + speed[before] / (speed[before] - speed[before + 1]) + size
            fractions.append(jumps % 1.0)
        all_fractions = np.concatenate(fractions) if fractions else np.empty(0)
        if not len(all_fractions):
            return float(np.inf)
        below = float(all_fractions.min())
        above = 1.0 - float(all_fractions.max())
        return float(np.sqrt((below**2 - below * above + above**2) / 3.0))

    def rigid(self, rows: np.ndarray) -> np.ndarray:
        """Return the unchanged columns at some samples."""
        return np.asarray(self.columns[rows])

    def delayed(self, delay: float) -> _Columns:
        """Return the columns of a force with a delay in samples."""

        def columns(rows: np.ndarray) -> np.ndarray:
            return np.hstack([_delayed(self.smooth, rows, delay), self._shifted_dry(rows, delay)])

        return columns

    def with_early_friction(self, lead: float) -> _Columns:
        """Return the columns of a force whose Coulomb friction alone has a lead in samples."""

        def columns(rows: np.ndarray) -> np.ndarray:
            return np.hstack([self.smooth[rows], self._shifted_dry(rows, -lead)])

        return columns

    def _shifted_dry(self, rows: np.ndarray, delay: float) -> np.ndarray:
        """Return the columns of Coulomb friction with a delay in samples."""
        sign = np.sign(_delayed(self.viscous, rows, delay))
        return np.asarray(_delayed(np.abs(self.dry), rows, delay) * sign)

    def held(self, length: int, phase: int) -> _Columns:
        """Return the columns of a force that is held for a number of samples."""
        return lambda rows: np.asarray(self.columns[np.maximum(rows - (rows - phase) % length, 0)])

    def with_presliding(self, speed: np.ndarray, step: float, length: float) -> _Columns:
        """Return the columns with an additional column of presliding friction."""
        state = dahl_state(speed[:, None], step, np.array([length]))
        return lambda rows: np.hstack([self.columns[rows], state[rows]])

    def through_spring(self, frequency: float, damping: float) -> _Columns:
        """Return the columns of a force that a spring transmits.

        With w = 2 pi f, the force tau obeys tau'' / w^2 + 2 d tau' / w + tau = rigid force. For a
        load J x'' + F(x') = k (q - x), which a motor at q moves through a spring, this holds for
        tau = k (q - x) with w^2 = k / J. The sign of Coulomb friction is taken from the speed of
        the motor instead of the load.

        Args:
            frequency: frequency f, per sample.
            damping: damping ratio d.
        """
        searched = self._searched
        stride = self._stride
        is_even = len(searched) > 1 and bool((np.diff(searched) == stride).all())
        all_rows: list[np.ndarray] = []

        def columns(rows: np.ndarray) -> np.ndarray:
            if rows is searched and is_even:
                first = int(searched[0])
                transmitted = self._transmitted(frequency, damping, first, stride)
                return transmitted[: len(searched)]
            if not all_rows:
                all_rows.append(self._transmitted(frequency, damping, 0, 1))
            return np.asarray(all_rows[0][rows])

        return columns

    def _transmitted(self, frequency: float, damping: float, first: int, stride: int) -> np.ndarray:
        """Return the columns of `through_spring` at every `stride`-th sample from `first` on.

        Frequencies that are aliases of each other at these samples are added before the inverse
        transform, which is then shorter.
        """
        spectrum, frequencies = self._spectrum_from(first, stride)
        ratio = frequencies / frequency
        gain = 1.0 / (1.0 - ratio**2 + 2.0j * damping * ratio)
        added = np.zeros((spectrum.shape[0], spectrum.shape[2]), dtype=complex)
        for alias in range(stride):
            added += spectrum[:, alias] * gain[alias]
        filtered = scipy.fft.irfft(added, n=2 * (added.shape[1] - 1), axis=1) / stride
        return np.asarray(filtered.T + self.columns[0])

    def _spectrum_from(self, first: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the spectrum (n, stride, m) of the columns, and its frequencies (stride, m).

        The columns start at the sample `first`. The second axis has the frequencies that are
        aliases of each other if only every `stride`-th sample is used.
        """
        if (first, stride) not in self._spectra:
            half = stride * scipy.fft.next_fast_len(-(-self.count // stride))
            whole = scipy.fft.rfft((self.columns - self.columns[0]).T, n=2 * half, axis=1)
            length = 2 * half // stride
            indices = np.arange(length // 2 + 1) + length * np.arange(stride)[:, None]
            is_negative = indices > half
            indices = np.where(is_negative, indices - 2 * half, indices)
            spectrum = whole[:, np.abs(indices)]
            np.conjugate(spectrum, out=spectrum, where=is_negative)
            frequencies = indices / (2.0 * half)
            spectrum *= np.exp(2.0j * np.pi * frequencies * first)
            self._spectra[first, stride] = spectrum, frequencies
        return self._spectra[first, stride]


def _normal_solution(matrix: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the solution (n,) of normal equations, without directions that are not determined.

    Cholesky's factors are several times faster than singular values. They are used if no singular
    value is near `DELAY_RANK_TOLERANCE`, so that both give the same solution.
    """
    factor, failure = dpotrf(matrix)
    if failure == 0:
        reciprocal_condition, _ = dpocon(factor, np.linalg.norm(matrix, 1))
        if reciprocal_condition > WELL_CONDITIONED:
            return np.asarray(dpotrs(factor, products)[0])
    return np.asarray(np.linalg.lstsq(matrix, products, rcond=DELAY_RANK_TOLERANCE)[0])


def _delayed(columns: np.ndarray, rows: np.ndarray, delay: float) -> np.ndarray:
    """Return columns (N, n) with a delay in samples, at inner samples (M,).

    Values between samples are those of a cubic through four neighbors.
    """
    whole = int(np.floor(delay))
    f = delay - whole
    weights = (
        -f * (f - 1.0) * (f - 2.0) / 6.0,
        (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0,
        -(f + 1.0) * f * (f - 2.0) / 2.0,
        (f + 1.0) * f * (f - 1.0) / 6.0,
    )
    stride = _stride(rows)
    if not stride:
        neighbors = [columns[rows - whole - k] for k in (-1, 0, 1, 2)]
    else:
        # slices are much faster than lists of indices
        first, last = int(rows[0]) - whole, int(rows[-1]) - whole
        neighbors = [columns[first - k : last - k + 1 : stride] for k in (-1, 0, 1, 2)]
    if f == 0.0:
        return np.array(neighbors[1])
    total = weights[0] * neighbors[0]
    for weight, values in zip(weights[1:], neighbors[1:], strict=True):
        total += weight * values
    return np.asarray(total)


def _stride(rows: np.ndarray) -> int:
    """Return the step between indices (M,); zero if they are not increasing by equal steps."""
    steps = np.diff(rows)
    if not len(steps) or steps[0] <= 0 or np.any(steps != steps[0]):
        return 0
    return int(steps[0])


def _explain(
    single: _Output, speed: np.ndarray, step: float, exact: _Output | None
) -> LateForce | None:
    """Return the significant causes of the late force of one output; None if there are none.

    Args:
        single: the output.
        speed: (N,) speed of the output's own motion.
        step: sampling period, s.
        exact: the same output with the model's forces, so that its errors are only those of the
            preparation; None if there is no second preparation.
    """
    plain_errors, plain = single.evaluate(single.rigid)
    least_explained = ERROR_ROUNDING * float(np.sqrt(np.mean(single.forces**2)))
    least_misfit = 0.0
    if exact is not None:
        _, error_of_exact = exact.evaluate(exact.rigid)
        least_explained = max(least_explained, MIN_PREPARATION_ERRORS * error_of_exact)
        least_misfit = MIN_PREPARATION_ERRORS**2 * exact.misfit(exact.rigid)
    # The error of the held-out part is large if the fitted part hardly determines the parameters,
    # because it is extrapolated. The misfit of the fitted part does not have this problem.
    if plain <= least_explained or single.misfit(single.rigid) <= least_misfit:
        return None
    if single.has_white_residual():
        return None
    delay = _explain_by_delay(single, step)
    explanations = [delay]
    explanations += _explain_by_hold(single, delay.size / step)
    explanations += _explain_by_bending(single, step)
    explanations += _explain_by_presliding(single, speed, step)
    if delay.size < 0.0:
        explanations += _explain_by_early_friction(single, step)
    if abs(delay.size) < NEGLIGIBLE_DELAY_SHARE * step:
        explanations.remove(delay)
    certain = [
        explanation
        for explanation in explanations
        if explanation.error <= (1.0 - MIN_HELD_OUT_REDUCTION) * plain
        and explanation.error**2 <= plain**2 - least_explained**2
        and _deviations(plain_errors, explanation.errors) >= MIN_GAIN_DEVIATIONS
        and np.sum(explanation.errors < plain_errors) >= MIN_BETTER_BLOCKS
    ]
    if not certain:
        return None
    certain.sort(key=lambda explanation: explanation.error)
    best_errors = certain[0].errors
    alike: list[Explanation] = []
    others: list[Explanation] = []
    for explanation in certain:
        is_distinct = _deviations(explanation.errors, best_errors) >= MIN_DISTINCT_DEVIATIONS
        if is_distinct:
            others.append(explanation)
        else:
            alike.append(explanation)
    alike.sort(key=lambda other: (other.parameters, other.kind == EARLY_FRICTION, other.error))
    return LateForce(
        output="",
        unit="",
        length_unit="",
        step=step,
        plain=plain,
        ranked=(*alike, *others),
        alike=len(alike),
    )


def _deviations(before: np.ndarray, after: np.ndarray) -> float:
    """Return the mean decrease of the blocks' squared errors, divided by its standard deviation."""
    gain = before - after
    noise = float(gain.std(ddof=1)) / np.sqrt(len(gain))
    return float(gain.mean()) / max(noise, np.finfo(float).tiny)


def _explain_by_delay(single: _Output, step: float) -> Explanation:
    """Return the best delay (or lead, if negative) of the whole force."""
    tried = {0.0: single.misfit(single.rigid)}
    for delay in FIRST_DELAYS:
        if delay <= single.reach - 2:
            tried[-delay] = single.misfit(single.delayed(-delay))
            tried[delay] = single.misfit(single.delayed(delay))
    best = _refined_by_halving(tried, lambda size: single.misfit(single.delayed(size)))
    errors, error = single.evaluate(single.delayed(best))
    return Explanation(
        kind="delay",
        size=best * step,
        parameters=1,
        errors=errors,
        error=error,
        deviation=step * single.shift_deviation(single.delayed, best),
    )


def _explain_by_early_friction(single: _Output, step: float) -> list[Explanation]:
    """Return the best lead of Coulomb friction alone, as in simulators with soft constraints."""
    if not single.dry.shape[1]:
        return []
    tried = {0.0: single.misfit(single.rigid)}
    for lead in FIRST_DELAYS:
        if lead <= single.reach - 2:
            tried[lead] = single.misfit(single.with_early_friction(lead))
    best = _refined_by_halving(tried, lambda size: single.misfit(single.with_early_friction(size)))
    errors, error = single.evaluate(single.with_early_friction(best))
    return [
        Explanation(
            kind=EARLY_FRICTION,
            size=best * step,
            parameters=1,
            errors=errors,
            error=error,
            deviation=step * single.shift_deviation(single.with_early_friction, best),
        )
    ]


def _refined_by_halving(tried: dict[float, float], misfit_of: Callable[[float], float]) -> float:
    """Return the size of the smallest misfit, after halving the steps next to the best size.

    Args:
        tried: misfits by size; further sizes are added.
        misfit_of: function that returns the misfit of a size.
    """
    for _ in range(DELAY_HALVINGS):
        sizes = sorted(tried)
        index = sizes.index(min(tried, key=tried.__getitem__))
        for neighbor in (index - 1, index + 1):
            if 0 <= neighbor < len(sizes):
                middle = 0.5 * (sizes[index] + sizes[neighbor])
                tried[middle] = misfit_of(middle)
    return min(tried, key=tried.__getitem__)


def _explain_by_hold(single: _Output, delay: float) -> list[Explanation]:
    """Return the best hold whose mean delay is close to the delay of the force, in samples."""
    if delay < MIN_HOLD_DELAY:
        return []
    mean_length = 2.0 * delay + 1.0
    shortest = max(int(MIN_HOLD_SHARE * mean_length) - HOLD_MARGIN, 2)
    longest = min(int(MAX_HOLD_SHARE * mean_length) + HOLD_MARGIN, single.reach - 1)
    tried: dict[tuple[int, int], float] = {}
    for length in range(shortest, longest + 1):
        for phase in range(0, length, -(-length // FIRST_HOLD_PHASES)):
            tried[length, phase] = single.misfit(single.held(length, phase))
    if not tried:
        return []
    length, _ = min(tried, key=tried.__getitem__)
    phases = {phase: single.misfit(single.held(length, phase)) for phase in range(length)}
    errors, error = single.evaluate(single.held(length, min(phases, key=phases.__getitem__)))
    return [Explanation(kind="hold", size=float(length), parameters=2, errors=errors, error=error)]


def _explain_by_bending(single: _Output, step: float) -> list[Explanation]:
    """Return the best compliant transmission whose load oscillates faster than the motion."""
    lowest = 2.0 * single.highest
    if lowest >= MAX_FREQUENCY_SHARE:
        return []
    damping = DAMPING_RATIOS[1]
    tried: dict[float, float] = {}

    def try_frequency(frequency: float) -> None:
        tried[frequency] = single.misfit(single.through_spring(frequency, damping))

    for frequency in np.geomspace(lowest, MAX_FREQUENCY_SHARE, FIRST_FREQUENCIES).tolist():
        try_frequency(frequency)
    if min(tried.values()) > (1.0 - MIN_FREQUENCY_REDUCTION) * single.misfit(single.rigid):
        return []
    for factors in FREQUENCY_REFINEMENT_FACTORS:
        best = min(tried, key=tried.__getitem__)
        for factor in factors:
            if best * factor < 0.5:
                try_frequency(best * factor)
    best = min(tried, key=tried.__getitem__)
    misfits = {ratio: single.misfit(single.through_spring(best, ratio)) for ratio in DAMPING_RATIOS}
    best_damping = min(misfits, key=misfits.__getitem__)
    errors, error = single.evaluate(single.through_spring(best, best_damping))

    def first_distinct(frequencies: Iterable[float], otherwise: float) -> float:
        """Return the first frequency that is distinguished from the best frequency."""
        for frequency in frequencies:
            others, _ = single.evaluate(single.through_spring(frequency, best_damping))
            if _deviations(others, errors) >= MIN_DISTINCT_DEVIATIONS:
                return frequency
        return otherwise

    below = first_distinct((x for x in sorted(tried, reverse=True) if x < best), lowest)
    above = first_distinct((x for x in sorted(tried) if x > best), np.inf)
    return [
        Explanation(
            kind="bending",
            size=best / step,
            parameters=2,
            errors=errors,
            error=error,
            interval=(below / step, above / step),
        )
    ]


def _explain_by_presliding(single: _Output, speed: np.ndarray, step: float) -> list[Explanation]:
    """Return the best presliding friction of the output's own motion."""
    stroke = float(np.ptp(np.cumsum(speed) * step))
    if stroke <= 0.0:
        return []
    shortest = MIN_PRESLIDING_TRAVEL_SHARE * float(np.sqrt(np.mean(speed**2))) * step
    tried: dict[float, float] = {}

    def try_length(length: float) -> None:
        tried[length] = single.misfit(single.with_presliding(speed, step, length))

    for share in FIRST_PRESLIDING_SHARES:
        if share * stroke >= shortest:
            try_length(share * stroke)
    for factors in PRESLIDING_REFINEMENT_FACTORS:
        best = min(tried, key=tried.__getitem__)
        for factor in factors:
            try_length(best * factor)
    best = min(tried, key=tried.__getitem__)
    errors, error = single.evaluate(single.with_presliding(speed, step, best))
    return [Explanation(kind="presliding", size=best, parameters=2, errors=errors, error=error)]
