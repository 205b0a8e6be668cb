"""Detection of wrong encoder zeros, gear ratios and torque constants from the forces.

Each cause adds a column to the regression: the derivative of the predicted forces with respect to
the zero, the ratio, or the factor of one force. A cause is reported if the coefficient of its
column is significant, and if the column explains a large fraction of the residual above the noise
of the forces. Therefore nothing is reported if the model lacks large effects. The coefficient (the
size of the cause) is refined by Gauss-Newton steps. Other causes that explain nearly as much are
reported together with the first cause, because the forces do not distinguish between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import AssemblyError, PoseError, Problem
from tauloop.common.records import dataclass
from tauloop.identification.faults.measured_motion import LogMotion
from tauloop.identification.faults.misfits import measured_outputs
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import regressor_rows, regressor_start
from tauloop.logs.signals import decimate
from tauloop.model import Model

#: Maximum number of samples that are used, spread evenly over the log.
MAX_COMPARED_SAMPLES = 1500
#: Logs with fewer samples are not checked.
MIN_COMPARED_SAMPLES = 120
#: Number of blocks of the log for the standard deviation of a size.
DEVIATION_BLOCKS = 12
#: The reported standard deviation is multiplied by this factor, so that an interval of plus or
#: minus two standard deviations contains 95 % (Student's distribution with 11 degrees of freedom).
STUDENT_FACTOR = 1.12
#: Minimum size of a significant cause, in standard deviations.
MIN_DEVIATIONS = {"zero": 6.0, "ratio": 4.5, "gear": 4.5, "force": 6.0}
#: Minimum fraction of the residual's power that a significant cause explains.
MIN_EXPLAINED = 0.015
#: Minimum fraction of the residual's power above the noise that a significant cause explains.
MIN_EXPLAINED_EXCESS = 0.4
#: Smallest sizes that are reported: a zero error as a fraction of the channel's range, and a
#: relative change of a ratio or of a force. Smaller causes still compete with the other causes,
#: because a small error of a ratio resembles a large error of a zero.
MIN_SIZE = {"zero": 0.02, "ratio": 0.01, "gear": 0.01, "force": 0.08}
#: Forces do not determine a size with a larger standard deviation than this value, in the units of
#: `MIN_SIZE`.
MAX_DEVIATION_SHARE = {"zero": 0.03, "ratio": 0.005, "gear": 0.005, "force": 0.1}
#: A cause is not distinguished from the best cause if it explains at least this fraction of what
#: the best cause explains.
MIN_EQUIVALENT_SHARE = 0.8
#: Step of difference quotients, as a fraction of the range of a position, or of the factor 1.
FAULT_DIFFERENCE_STEP = 1e-4
#: Number of Gauss-Newton steps.
GAUSS_NEWTON_STEPS = 4
#: Largest value of the size 1 - 1 / g of a ratio, where g is the factor by which a position is too
#: large.
MAX_RATIO_SIZE = 0.95
#: Directions of unit-norm columns with a singular value below this fraction of the largest are
#: ignored.
OFFSET_RANK_TOLERANCE = 1e-8
#: Smallest fraction of a column that must remain after the regressor is projected out. The limit is
#: larger for zeros, whose columns contain noise of the accelerations that the regressor lacks.
MIN_REMAINING_SHARE = {"zero": 0.02, "ratio": 5e-3, "gear": 5e-3, "force": 5e-3}
#: Standard deviation of the difference of white noise from a cubic through four neighbors, in
#: standard deviations of the noise.
CUBIC_DIFFERENCE_DEVIATION = float(np.sqrt(1.0 + 34.0 / 36.0))
#: The median of absolute values of a normal distribution, in standard deviations.
NORMAL_MEDIAN = 0.6745


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongScale:
    """An encoder zero, a gear ratio or a torque factor that the forces contradict.

    Attributes:
        kind: "zero", "ratio" (of a position alone), "gear" (a position is too large by the factor
            by which the force of the same drive is too small) or "force".
        channel: channel of the position or the force.
        size: for a zero, the offset of the positions, m or rad; otherwise the factor by which a
            position or a force is too large.
        deviation: standard deviation of the size.
        explained: explained fraction of the residual's power.
        unit: unit of a zero.
    """

    kind: str
    channel: str
    size: float
    deviation: float
    explained: float
    unit: str

    @property
    def where(self) -> str:
        """Name of the channel."""
        return f"{'force' if self.kind == 'force' else 'position'}.{self.channel}"

    def __str__(self) -> str:
        if self.kind == "zero":
            if self.unit == "rad":
                size = np.degrees(self.size)
                deviation = np.degrees(self.deviation)
                return f"has a zero error of {size:.3g} +- {deviation:.2g} deg"
            return f"has a zero error of {self.size:.3g} +- {self.deviation:.2g} {self.unit}"
        factor = f"{self.size:.4g} +- {self.deviation:.2g}"
        if self.kind == "gear":
            return (
                f"is based on a wrong gear ratio: it is {factor} times as large as the other "
                "channels require, and the force of its drive is smaller by the same factor"
            )
        return f"is {factor} times as large as the other channels require"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSearch:
    """The wrong zeros, ratios and factors of a log.

    Attributes:
        causes: the cause that explains most, followed by causes that explain nearly as much.
        not_shown: descriptions of zeros and factors that the forces do not determine. Their errors
            would distort the parameters without being noticed.
    """

    causes: tuple[WrongScale, ...] = ()
    not_shown: tuple[str, ...] = ()


def zeros_and_scales(
    model: Model,
    log: LogMotion,
    data: RegressionData,
    *,
    factor: int,
    cutoff: float | None = None,
    output: str = "actuators",
) -> ScaleSearch:
    """Return zeros, ratios and factors that forces contradict, and those they do not determine.

    Args:
        model: the machine.
        log: the beginning of the log: its motion, and forces as measured.
        data: the regression data of the log.
        factor: factor of the decimation.
        cutoff: cutoff of the filter of forces and regressor, as a fraction of the log's sampling
            rate; None for no filter.
        output: output of the data.
    """
    count = min(len(data), len(log.position) // factor)
    if model.assembly.is_redundant or log.periodic:
        return ScaleSearch()
    reach = data.reach
    used = count - 2 * reach
    if used < MIN_COMPARED_SAMPLES:
        return ScaleSearch()
    spread = np.linspace(reach, count - 1 - reach, min(used, MAX_COMPARED_SAMPLES))
    rows = np.unique(spread.round().astype(int))
    try:
        comparison = _Comparison(model, log, data, rows, factor, cutoff, output)
        columns = list(comparison.columns())
    except (PoseError, AssemblyError):
        return ScaleSearch()
    min_explained = max(MIN_EXPLAINED, MIN_EXPLAINED_EXCESS * comparison.excess)
    significant: list[tuple[_Derivative, _SizeEstimate]] = []
    not_shown: list[str] = []
    for column in columns:
        estimate = comparison.estimate(column.values, column.kind)
        is_significant = abs(estimate.size) > MIN_DEVIATIONS[column.kind] * estimate.deviation
        if is_significant and estimate.explained > min_explained:
            significant.append((column, estimate))
        max_deviation = MAX_DEVIATION_SHARE.get(column.kind, np.inf) * column.range
        if estimate.deviation > max_deviation:
            not_shown.append(_not_shown(column, estimate.deviation))
    largest_explained = max((estimate.explained for _, estimate in significant), default=0.0)
    equivalent = [
        pair
        for pair in significant
        if pair[1].explained >= MIN_EQUIVALENT_SHARE * largest_explained
    ]
    equivalent.sort(key=lambda pair: -pair[1].explained)
    if not any(_is_large(column, estimate) for column, estimate in equivalent):
        return ScaleSearch(not_shown=tuple(not_shown))
    causes = tuple(comparison.refined(column, estimate) for column, estimate in equivalent)
    return ScaleSearch(causes=causes, not_shown=tuple(not_shown))


def _is_large(column: _Derivative, estimate: _SizeEstimate) -> bool:
    """Return whether the size of a cause is at least the smallest reported size."""
    return abs(estimate.size) >= MIN_SIZE[column.kind] * column.range


def _not_shown(column: _Derivative, deviation: float) -> str:
    """Return the description of a zero or a factor that forces do not determine."""
    subjects = {
        "zero": f"the zero of position.{column.channel}",
        "ratio": f"the factor of position.{column.channel} (unit, gear ratio of the position)",
        "gear": f"the gear ratio of {column.channel} (position and force)",
        "force": f"the factor of force.{column.channel} (torque constant, gear)",
    }
    subject = subjects[column.kind]
    if not np.isfinite(deviation):
        return f"{subject}: not at all"
    if column.kind in ("ratio", "gear"):
        smallest = 100.0 * MIN_DEVIATIONS[column.kind] * deviation
        return (
            f"{subject}: to {100.0 * deviation:.2g} %; an error below {smallest:.2g} % is not "
            "reported"
        )
    if column.kind == "force":
        return f"{subject}: to {100.0 * deviation:.2g} %"
    size = (
        f"{np.degrees(deviation):.2g} deg"
        if column.unit == "rad"
        else f"{deviation:.2g} {column.unit}"
    )
    return f"{subject}: to {size}"


def wrong_scale_problem(causes: Sequence[WrongScale]) -> Problem:
    """Return the problem of the first cause, with causes that forces do not distinguish from it."""
    first, *others = causes
    what = f"{first} ({100.0 * first.explained:.2g} % of the residual)"
    if others:
        what += "; forces do not distinguish this from: " + ", or ".join(
            f"{cause.where} {cause}" for cause in others
        )
    remedies = {
        "zero": "calibrate the encoder's zero, or correct it in the log",
        "ratio": "check the gear ratio and the unit of the position",
        "gear": "correct the gear ratio with which position and force of this drive were converted",
        "force": "check the torque constant, the gear ratio and the unit of the force; a known mass "
        "distinguishes between drives (--known)",
    }
    return Problem(first.where, what, remedies[first.kind])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Derivative:
    """Derivative of the predicted forces with respect to one size.

    Attributes:
        kind, channel, unit: as in `WrongScale`.
        index: index of the position, or of the force among the measured outputs.
        range: range of the position for a zero; 1 for a ratio or a factor.
        values: derivative (M, n_out) at the M compared samples.
    """

    kind: str
    channel: str
    index: int
    range: float
    unit: str
    values: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class _SizeEstimate:
    """Estimate of the coefficient of a column.

    Attributes:
        size: the coefficient.
        deviation: its standard deviation; infinite if the column cannot be distinguished from the
            regressor.
        explained: explained fraction of the residual's power.
    """

    size: float
    deviation: float
    explained: float


class _Comparison:
    """Weighted forces and regressor at some samples, and estimates of additional columns."""

    def __init__(
        self,
        model: Model,
        log: LogMotion,
        data: RegressionData,
        rows: np.ndarray,
        factor: int,
        cutoff: float | None,
        output: str,
    ) -> None:
        """Fit the data at some rows, weighted by the residuals of the outputs."""
        self._model = model
        self._output = output
        self._log = log
        self._rows = rows
        self._factor = factor
        self._cutoff = cutoff
        samples = rows * factor
        slow = log.slow_motion()
        self._slow = slow
        self._measured_motion = (
            log.position[samples],
            log.velocity[samples],
            log.acceleration[samples],
        )
        self._slow_motion = (
            slow.position[samples],
            slow.velocity[samples],
            slow.acceleration[samples],
        )
        self._ranges = np.ptp(log.position, axis=0)
        self._outputs = data.outputs
        self._kept = data.kept
        self._ties = data.relations
        self._parameters = data.parameters
        self._measured = data.regressor[rows][:, data.kept]
        self._forces = data.forces[rows][:, data.kept]
        self._present = np.ones(self._forces.shape)
        if data.present is not None:
            self._present = data.present[rows][:, data.kept].astype(float)
        self._rigid = self._regressor(*self._measured_motion)
        self._slow_rigid = self._regressor(*self._slow_motion)
        self._weights = np.ones(len(data.kept))
        for _ in range(2):
            self._fit(self._measured, self._forces)
            rms_residuals = np.sqrt(np.mean(self._residual**2, axis=0)) * self._weights
            self._weights = np.maximum(rms_residuals, np.finfo(float).tiny)
        # Derivatives are computed for the motion without the filter of the data. They are compared
        # with columns without this filter.
        self._fit(self._rigid, self._forces)
        self._unfiltered_basis = self._basis
        self._fit(self._measured, self._forces)
        noise = _output_noise(model, log, data, cutoff, output)
        self.excess = float(np.mean(1.0 - np.minimum(noise / self._weights, 1.0) ** 2))

    def _regressor(
        self, position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray
    ) -> np.ndarray:
        """Return the regressor of a motion for the measured outputs, in the columns of the data."""
        start = regressor_start(self._model, position, self._output)
        rows = regressor_rows(self._model, (position, velocity, acceleration), self._output, start)
        names = tuple(parameter.name for parameter in self._model.parameters)
        if names == tuple(self._parameters):
            return rows[:, self._kept]
        columns = [self._parameters.index(name) for name in names]
        # The data have additional columns for payloads and friction laws.
        all_columns = np.zeros((*rows.shape[:2], len(self._parameters)))
        all_columns[:, :, columns] = rows
        return all_columns[:, self._kept]

    def _fit(self, regressor: np.ndarray, forces: np.ndarray) -> None:
        """Store the parameters of weighted least squares, the basis, and the weighted residual."""
        weights = self._present / self._weights
        forces = forces - regressor @ self._ties.offset
        regressor = regressor @ self._ties.matrix
        columns = (regressor * weights[:, :, None]).reshape(-1, regressor.shape[2])
        norms = np.linalg.norm(columns, axis=0)
        used = norms > 0.0
        left, singular_values, right = np.linalg.svd(
            columns[:, used] / norms[used], full_matrices=False
        )
        is_shown = singular_values > OFFSET_RANK_TOLERANCE * singular_values[0]
        self._basis = left[:, is_shown]
        weighted = (forces * weights).ravel()
        components = self._basis.T @ weighted
        values = np.zeros(regressor.shape[2])
        values[used] = (right[is_shown].T @ (components / singular_values[is_shown])) / norms[used]
        self._values = self._ties.expand(values)
        self._residual = (weighted - self._basis @ components).reshape(forces.shape)

    def columns(self) -> Iterator[_Derivative]:
        """Yield the columns of all possible causes."""
        port = self._model.actuators.ports.position
        units = dict(zip(port.columns, port.units, strict=True))
        for k, name in enumerate(self._log.names):
            if self._ranges[k] <= 0.0:
                continue
            zero = self._position_derivative("zero", name, k, float(self._ranges[k]), units[name])
            yield zero
            ratio = self._position_derivative("ratio", name, k, 1.0, units[name])
            yield ratio
            output = self._output_of_drive(name)
            if output is not None:
                values = ratio.values - self._prediction_of(output)
                yield replace(ratio, kind="gear", values=values)
        for output, k in enumerate(self._kept):
            yield _Derivative(
                kind="force",
                channel=self._outputs[k],
                index=output,
                range=1.0,
                unit="",
                values=self._prediction_of(output),
            )

    def _position_derivative(
        self, kind: str, name: str, k: int, size: float, unit: str
    ) -> _Derivative:
        """Return the derivative of the forces with respect to a zero or a ratio of a position.

        Args:
            kind: "zero" or "ratio".
            name: channel of the position.
            k: index of the position.
            size: range of the position for a zero; 1 for a ratio.
            unit: unit of the position.
        """
        step = FAULT_DIFFERENCE_STEP * size
        changed = self._regressor(*_changed_motion(self._measured_motion, kind, k, -step))
        # Forces of the true motion minus those of the measured motion, per unit of the size.
        values = (changed - self._rigid) @ self._values / step
        return _Derivative(kind=kind, channel=name, index=k, range=size, unit=unit, values=values)

    def _prediction_of(self, output: int) -> np.ndarray:
        """Return the predicted forces (M, n_out) of one output, with zeros for the others."""
        is_output = np.arange(len(self._kept)) == output
        return np.asarray((self._measured @ self._values) * is_output)

    def _output_of_drive(self, channel: str) -> int | None:
        """Return the index of a drive's force among the measured outputs; None if not measured."""
        names = [self._outputs[k] for k in self._kept]
        return names.index(channel) if self._output == "actuators" and channel in names else None

    def estimate(self, values: np.ndarray, kind: str) -> _SizeEstimate:
        """Return the estimate of a column's coefficient.

        Its standard deviation is computed from sums over blocks of the log.
        """
        column = (values * self._present / self._weights).ravel()
        remaining = column - self._basis @ (self._basis.T @ column)
        power = float(remaining @ remaining)
        unfiltered = column - self._unfiltered_basis @ (self._unfiltered_basis.T @ column)
        min_power = MIN_REMAINING_SHARE[kind] ** 2 * float(column @ column)
        if float(unfiltered @ unfiltered) <= min_power or power == 0.0:
            return _SizeEstimate(size=0.0, deviation=np.inf, explained=0.0)
        residual = self._residual.ravel()
        size = float(remaining @ residual) / power
        remaining_residual = residual - size * remaining
        scores = (remaining * remaining_residual).reshape(self._residual.shape)
        sums = np.array([block.sum() for block in np.array_split(scores, DEVIATION_BLOCKS)])
        deviation = (
            float(np.sqrt(DEVIATION_BLOCKS / (DEVIATION_BLOCKS - 1.0) * (sums @ sums))) / power
        )
        total_power = max(float(residual @ residual), np.finfo(float).tiny)
        return _SizeEstimate(
            size=size,
            deviation=deviation,
            explained=1.0 - float(remaining_residual @ remaining_residual) / total_power,
        )

    def _reported_deviation(self, values: np.ndarray) -> float:
        """Return the standard deviation of a column's coefficient by leaving out blocks of the log.

        The parameters are fitted again without each block (the jackknife estimator of MacKinnon,
        Nielsen and Webb 2023, Cluster-robust inference: a guide to empirical practice). Deviations
        from block sums of the residuals are too small if one block almost alone determines some
        parameters.
        """
        column = (values * self._present / self._weights).ravel()
        remaining = column - self._basis @ (self._basis.T @ column)
        norm = float(np.linalg.norm(remaining))
        if norm == 0.0:
            return float(np.inf)
        direction = remaining / norm
        basis = np.column_stack([self._basis, direction])
        residual = self._residual.ravel()
        remaining_residual = residual - direction * float(direction @ residual)
        outputs = len(self._weights)
        changes = []
        for rows in np.array_split(np.arange(len(self._residual)), DEVIATION_BLOCKS):
            block = slice(rows[0] * outputs, (rows[-1] + 1) * outputs)
            normal = np.eye(len(basis.T)) - basis[block].T @ basis[block]
            solution = np.linalg.lstsq(
                normal, basis[block].T @ remaining_residual[block], rcond=None
            )[0]
            changes.append(float(solution[-1]) / norm)
        spread = np.linalg.norm(np.array(changes) - np.mean(changes))
        factor = (DEVIATION_BLOCKS - 1.0) / DEVIATION_BLOCKS
        return STUDENT_FACTOR * float(np.sqrt(factor) * spread)

    def refined(self, column: _Derivative, first: _SizeEstimate) -> WrongScale:
        """Return the cause of a column, with its size refined by Gauss-Newton steps."""
        if column.kind == "force":
            return self._refined_force(column, first)
        weights = self._weights
        output = self._output_of_drive(column.channel)
        step = FAULT_DIFFERENCE_STEP * column.range
        size = 0.0
        change = first.size
        deviation = first.deviation
        try:
            for _ in range(GAUSS_NEWTON_STEPS):
                size += change
                if column.kind != "zero":
                    size = min(size, MAX_RATIO_SIZE)
                corrected = self._corrected_regressor(column, size)
                scale = np.ones(len(self._kept))
                if column.kind == "gear":
                    scale[output] = 1.0 / (1.0 - size)
                columns = self._corrected_columns(column, size, corrected)
                self._weights = weights * scale
                self._fit(columns, self._forces * scale)
                further = self._corrected_regressor(column, size + step)
                values = (further - corrected) @ self._values / step
                if column.kind == "gear":
                    is_output = np.arange(len(scale)) == output
                    values -= (columns @ self._values) * is_output * scale[output]
                change = self.estimate(values, column.kind).size
                deviation = self._reported_deviation(values)
        except (PoseError, AssemblyError):
            size = first.size
        self._weights = weights
        self._fit(self._measured, self._forces)
        if column.kind == "zero":
            return _wrong_scale(column, size, deviation, first.explained)
        factor = 1.0 / (1.0 - min(size, MAX_RATIO_SIZE))
        return _wrong_scale(column, factor, deviation * factor**2, first.explained)

    def _corrected_regressor(self, column: _Derivative, size: float) -> np.ndarray:
        """Return the regressor of the slow motion with a zero or a ratio corrected by a size."""
        return self._regressor(
            *_changed_motion(self._slow_motion, column.kind, column.index, -size)
        )

    def _corrected_columns(
        self, column: _Derivative, size: float, corrected: np.ndarray
    ) -> np.ndarray:
        """Return the columns of the data with a zero or a ratio corrected by a size.

        The columns are computed for the slow motion, because the noise of a measured motion makes
        all sizes too small. The filter of the slow motion cannot leave samples out. If samples are
        left out, the change of the slow motion's columns is added to the columns of the data.

        Args:
            column: column of the cause.
            size: size of the cause.
            corrected: result of `_corrected_regressor`.
        """
        if self._log.usable is not None and not self._log.usable.all():
            return np.asarray(self._measured + corrected - self._slow_rigid)
        slow = self._slow
        motion = slow.position, slow.velocity, slow.acceleration
        all_rows = self._regressor(*_changed_motion(motion, column.kind, column.index, -size))
        columns = decimate(all_rows, self._factor, self._cutoff)[self._rows]
        names = {parameter.name for parameter in self._model.parameters}
        additional = [k for k, name in enumerate(self._parameters) if name not in names]
        columns[:, :, additional] = self._measured[:, :, additional]
        return columns

    def _refined_force(self, column: _Derivative, first: _SizeEstimate) -> WrongScale:
        """Return the cause of a force's column, with its factor refined by Gauss-Newton steps.

        The force and its weight are divided by the factor.
        """
        weights = self._weights
        factor = 1.0
        k = column.index
        estimate = first
        deviation = first.deviation
        for _ in range(GAUSS_NEWTON_STEPS):
            factor *= 1.0 + max(estimate.size, -0.5)
            scale = np.where(np.arange(self._forces.shape[1]) == k, factor, 1.0)
            self._weights = weights / scale
            self._fit(self._measured, self._forces / scale)
            values = np.zeros(self._forces.shape)
            values[:, k] = self._measured[:, k] @ self._values
            estimate = self.estimate(values, column.kind)
            deviation = self._reported_deviation(values)
        self._weights = weights
        self._fit(self._measured, self._forces)
        size = factor * (1.0 + estimate.size)
        return _wrong_scale(column, size, factor * deviation, first.explained)


def _changed_motion(
    motion: tuple[np.ndarray, np.ndarray, np.ndarray], kind: str, k: int, size: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a motion with an offset of one position, or with this position scaled by 1 + size."""
    position, velocity, acceleration = (x.copy() for x in motion)
    if kind == "zero":
        position[:, k] += size
    else:
        for x in (position, velocity, acceleration):
            x[:, k] *= 1.0 + size
    return position, velocity, acceleration


def _wrong_scale(
    column: _Derivative, size: float, deviation: float, explained: float
) -> WrongScale:
    """Return the cause that belongs to a column."""
    return WrongScale(
        kind=column.kind,
        channel=column.channel,
        size=size,
        deviation=deviation,
        explained=explained,
        unit=column.unit,
    )


def _output_noise(
    model: Model, log: LogMotion, data: RegressionData, cutoff: float | None, output: str
) -> np.ndarray:
    """Return the standard deviation (n_kept,) of the noise in the forces of the data.

    The noise is estimated from the measured forces, because the noise of filtered forces is as
    smooth as the forces. The filter passes the fraction of white noise below its cutoff.

    Args:
        model, log, data, cutoff, output: as for `zeros_and_scales`.
    """
    mixing, rows = measured_outputs(model, log, output)
    variances = _white_noise(log.forces) ** 2 @ mixing**2
    if isinstance(rows, slice):
        variances = variances[data.kept]
    passed_fraction = 1.0 if cutoff is None else min(2.0 * cutoff, 1.0)
    return np.asarray(np.sqrt(passed_fraction * variances))


def _white_noise(forces: np.ndarray) -> np.ndarray:
    """Return the standard deviation (n,) of the white noise of smooth signals (N, n)."""
    cubic = (4.0 * (forces[1:-3] + forces[3:-1]) - forces[:-4] - forces[4:]) / 6.0
    median = np.median(np.abs(forces[2:-2] - cubic), axis=0)
    return np.asarray(median / (NORMAL_MEDIAN * CUBIC_DIFFERENCE_DEVIATION))
