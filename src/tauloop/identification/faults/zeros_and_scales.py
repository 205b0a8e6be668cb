"""Zeros of encoders, ratios of gears and torque constants that are wrong, as far as forces show them.

Each adds a column to the regression: the derivative of the predicted forces by the zero, by the
ratio, or by the factor of one force. It is named where the column explains the residual beyond its
own deviation, and explains most of what is above the noise of the forces, so that a model which
lacks much names nothing. Its size is refined by Gauss and Newton. Causes that explain as much are
named with it: forces do not distinguish them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tauloop.common.errors import AssemblyError, PoseError, Problem
from tauloop.common.records import dataclass
from tauloop.identification.faults.measured_motion import Measured
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import regressor_rows
from tauloop.model import Model

#: Samples that are compared, at most, spread over the log; and fewest.
COMPARED, FEWEST = 1500, 120
#: Blocks over which the deviation of a size is taken.
BLOCKS = 12
#: A size is certain beyond this many standard deviations, ...
CERTAIN = 6.0
#: ... if its column explains this share of the residual's power, and of what of it is above the
#: noise.
EXPLAINED, OF_EXCESS = 0.015, 0.4
#: Least zero, as a share of the channel's range, and least change of a ratio and of a force that
#: are named.
LEAST = {"zero": 0.02, "ratio": 0.03, "gear": 0.03, "force": 0.08}
#: Forces do not show a zero or a factor whose standard deviation is above this share.
COARSE = {"zero": 0.03, "force": 0.1}
#: Causes whose columns explain this share of what the best explains are not distinguished from it.
ALIKE = 0.8
#: Step of derivatives, as a share of the range or of one; steps of Gauss and Newton.
STEP, REFINED = 1e-4, 4
#: A position too large by a factor g is known by 1 - 1 / g, which is at most this.
LARGEST = 0.95
#: Directions of unit-norm columns below this share of the largest are none; a column of which less
#: than the second share is left next to them shows nothing (a zero's column has noise of
#: accelerations that they have not).
RANK = 1e-8
LEFT = {"zero": 0.02, "ratio": 5e-3, "gear": 5e-3, "force": 5e-3}
#: A cubic through four neighbours misses white noise by this many of its standard deviations.
OFF_CUBIC = float(np.sqrt(1.0 + 34.0 / 36.0))
#: The median of absolute values of a normal distribution, in standard deviations.
MEDIAN = 0.6745


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongScale:
    """A zero, a ratio or a factor that the forces contradict.

    Attributes:
        kind: "zero", "ratio" (of a position alone), "gear" (a position is too large by the factor
            by which the force of the same drive is too small) or "force".
        channel: of the position or the force.
        size: by how much positions are off, m or rad; the factor by which a position or a force is
            too large.
        deviation: standard deviation of the size.
        explained: share of the residual's power.
        unit: of a zero.
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
                return f"has its zero off by {np.degrees(self.size):.3g} +- {np.degrees(self.deviation):.2g} deg"
            return f"has its zero off by {self.size:.3g} +- {self.deviation:.2g} {self.unit}"
        if self.kind == "gear":
            return (
                f"belongs to another gear ratio: it is {self.size:.4g} +- {self.deviation:.2g} times as large as the "
                "other channels make it, and the force of its drive smaller by the same factor"
            )
        return f"is {self.size:.4g} +- {self.deviation:.2g} times as large as the other channels make it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSearch:
    """What forces show of zeros, ratios and factors.

    Attributes:
        causes: those that they contradict: the one that explains most, then those that explain as
            much.
        not_shown: zeros and factors that they do not show, in words: an error would go unnoticed
            into the parameters.
    """

    causes: tuple[WrongScale, ...] = ()
    not_shown: tuple[str, ...] = ()


def zeros_and_scales(
    model: Model, log: Measured, data: RegressionData, *, factor: int, output: str = "actuators"
) -> ScaleSearch:
    """Find a zero, a ratio or a factor that forces contradict, and those that they do not show.

    Args:
        model: the machine.
        log: the beginning of its motion.
        data: the regression data of the log.
        factor: of the decimation.
        output: of the data.
    """
    count = min(len(data), len(log.position) // factor)
    if model.assembly.is_redundant or log.periodic or count < FEWEST:
        return ScaleSearch()
    rows = np.unique(np.linspace(0, count - 1, min(count, COMPARED)).round().astype(int))
    try:
        comparison = _Comparison(model, log, data, rows, factor, output)
        columns = list(comparison.columns())
    except (PoseError, AssemblyError):
        return ScaleSearch()
    judged = [(column, *comparison.judged(column.values, column.kind)) for column in columns]
    certain = [
        (column, size, deviation, explained)
        for column, size, deviation, explained in judged
        if abs(size) > max(CERTAIN * deviation, LEAST[column.kind] * column.range)
        and explained > max(EXPLAINED, OF_EXCESS * comparison.excess)
    ]
    not_shown = [
        _not_shown(column, deviation)
        for column, _, deviation, _ in judged
        if deviation > COARSE.get(column.kind, np.inf) * column.range
    ]
    if not certain:
        return ScaleSearch(not_shown=tuple(not_shown))
    certain.sort(key=lambda entry: -entry[3])
    alike = [entry for entry in certain if entry[3] >= ALIKE * certain[0][3]]
    causes = tuple(
        comparison.refined(column, size, deviation, share)
        for column, size, deviation, share in alike
    )
    return ScaleSearch(causes=causes, not_shown=tuple(not_shown))


def _not_shown(column: _Derivative, deviation: float) -> str:
    """A zero or a factor that forces do not show."""
    subject = f"the zero of position.{column.channel}"
    if column.kind == "force":
        subject = f"the factor of force.{column.channel} (torque constant, gear)"
    if not np.isfinite(deviation):
        return f"{subject}: not at all"
    if column.kind == "force":
        return f"{subject}: to {100.0 * deviation:.2g} %"
    size = (
        f"{np.degrees(deviation):.2g} deg"
        if column.unit == "rad"
        else f"{deviation:.2g} {column.unit}"
    )
    return f"{subject}: to {size}"


def wrong_scale_problem(causes: Sequence[WrongScale]) -> Problem:
    """The first cause as a finding, with those that forces do not distinguish from it."""
    first, *others = causes
    what = f"{first} ({100.0 * first.explained:.2g} % of the residual)"
    if others:
        what += "; forces do not distinguish this from: " + ", or ".join(
            f"{cause.where} {cause}" for cause in others
        )
    remedies = {
        "zero": "calibrate the encoder's zero, or correct it in the log",
        "ratio": "check the gear ratio and the unit of the position",
        "gear": "correct the gear ratio by which position and force of this drive are converted",
        "force": "check the torque constant, the gear ratio and the unit of the force; a known mass decides between "
        "drives (--known)",
    }
    return Problem(first.where, what, remedies[first.kind])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Derivative:
    """Derivative (M, n_out) of the predicted forces by one size, and the motion or forces with the size taken out."""

    kind: str
    channel: str
    index: int
    range: float
    unit: str
    values: np.ndarray


class _Comparison:
    """Forces and regressor at some samples, weighted, and what of the residual further columns explain."""

    def __init__(
        self,
        model: Model,
        log: Measured,
        data: RegressionData,
        rows: np.ndarray,
        factor: int,
        output: str,
    ) -> None:
        self._model, self._output, self._log = model, output, log
        at, slow = rows * factor, log.slow_motion()
        self._measured_motion = (log.position[at], log.velocity[at], log.acceleration[at])
        self._slow_motion = (slow.position[at], slow.velocity[at], slow.acceleration[at])
        self._ranges = np.ptp(log.position, axis=0)
        self._outputs, self._kept = data.outputs, data.kept
        self._ties, self._parameters = data.relations, data.parameters
        self._measured = data.regressor[rows][:, data.kept]
        forces = data.forces[rows][:, data.kept]
        present = (
            np.ones(forces.shape)
            if data.present is None
            else data.present[rows][:, data.kept].astype(float)
        )
        self._forces, self._present = forces, present
        self._rigid, self._slow_rigid = (
            self._rows_at(*self._measured_motion),
            self._rows_at(*self._slow_motion),
        )
        self._weights = np.ones(len(data.kept))
        for _ in range(2):
            self._fit(self._measured, self._forces)
            sizes = np.sqrt(np.mean(self._residual**2, axis=0)) * self._weights
            self._weights = np.maximum(sizes, np.finfo(float).tiny)
        # derivatives by sizes are of the motion without the filter that data have passed, as these
        # columns are
        self._fit(self._rigid, self._forces)
        self._unfiltered_basis = self._basis
        self._fit(self._measured, self._forces)
        noise = _white_noise(data.forces[:, data.kept])
        self.excess = max(1.0 - float(np.mean((noise / self._weights) ** 2)), 0.0)

    def _rows_at(
        self, position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray
    ) -> np.ndarray:
        start = self._model.actuators.track(position).q if self._model.assembly.rows else None
        rows = regressor_rows(self._model, (position, velocity, acceleration), self._output, start)
        names = [parameter.name for parameter in self._model.parameters]
        columns = [self._parameters.index(name) for name in names]
        # payloads and further friction have columns as well
        every = np.zeros((*rows.shape[:2], len(self._parameters)))
        every[:, :, columns] = rows
        return every[:, self._kept]

    def _fit(self, regressor: np.ndarray, forces: np.ndarray) -> None:
        """Weighted least squares; keeps parameters, the basis of the columns and the weighted residual."""
        weights = self._present / self._weights
        forces = forces - regressor @ self._ties.offset
        regressor = regressor @ self._ties.matrix
        columns = (regressor * weights[:, :, None]).reshape(-1, regressor.shape[2])
        norms = np.linalg.norm(columns, axis=0)
        used = norms > 0.0
        left, sizes, right = np.linalg.svd(columns[:, used] / norms[used], full_matrices=False)
        shown = sizes > RANK * sizes[0]
        self._basis = left[:, shown]
        wanted = (forces * weights).ravel()
        along = self._basis.T @ wanted
        values = np.zeros(regressor.shape[2])
        values[used] = (right[shown].T @ (along / sizes[shown])) / norms[used]
        self._values = self._ties.expand(values)
        self._residual = (wanted - self._basis @ along).reshape(forces.shape)

    def columns(self) -> Iterator[_Derivative]:
        """All columns that are tried."""
        port = self._model.actuators.ports.position
        units = dict(zip(port.columns, port.units, strict=True))
        for k, name in enumerate(self._log.names):
            if self._ranges[k] <= 0.0:
                continue
            for kind, size in (("zero", float(self._ranges[k])), ("ratio", 1.0)):
                step = STEP * size
                moved = self._rows_at(*_changed(self._measured_motion, kind, k, -step))
                # forces of the true motion less those of the measured one, per unit of the size
                values = (moved - self._rigid) @ self._values / step
                yield _Derivative(
                    kind=kind, channel=name, index=k, range=size, unit=units[name], values=values
                )
                place = self._place_of(name)
                if kind == "ratio" and place is not None:
                    both = values - self._prediction_of(place)
                    yield _Derivative(
                        kind="gear",
                        channel=name,
                        index=k,
                        range=size,
                        unit=units[name],
                        values=both,
                    )
        for place, k in enumerate(self._kept):
            values = self._prediction_of(place)
            yield _Derivative(
                kind="force",
                channel=self._outputs[k],
                index=place,
                range=1.0,
                unit="",
                values=values,
            )

    def _prediction_of(self, place: int) -> np.ndarray:
        """Predicted forces (M, n_out) of one output, and zero of the others."""
        alone = np.arange(len(self._kept)) == place
        return np.asarray((self._measured @ self._values) * alone)

    def _place_of(self, channel: str) -> int | None:
        """Place of the force of the same drive among the outputs, if it is one."""
        names = [self._outputs[k] for k in self._kept]
        return names.index(channel) if self._output == "actuators" and channel in names else None

    def judged(self, values: np.ndarray, kind: str) -> tuple[float, float, float]:
        """Size of a column, its deviation over blocks of the log, and the share of the residual that it explains."""
        column = (values * self._present / self._weights).ravel()
        own = column - self._basis @ (self._basis.T @ column)
        power = float(own @ own)
        alone = column - self._unfiltered_basis @ (self._unfiltered_basis.T @ column)
        if float(alone @ alone) <= LEFT[kind] ** 2 * float(column @ column) or power == 0.0:
            return 0.0, np.inf, 0.0
        residual = self._residual.ravel()
        size = float(own @ residual) / power
        rest = residual - size * own
        scores = (own * rest).reshape(self._residual.shape)
        parts = np.array([part.sum() for part in np.array_split(scores, BLOCKS)])
        deviation = float(np.sqrt(BLOCKS / (BLOCKS - 1.0) * (parts @ parts))) / power
        whole = float(residual @ residual)
        return size, deviation, 1.0 - float(rest @ rest) / max(whole, np.finfo(float).tiny)

    def refined(
        self, column: _Derivative, size: float, deviation: float, explained: float
    ) -> WrongScale:
        """The cause, its size by some steps of Gauss and Newton."""
        if column.kind == "force":
            return self._refined_force(column, size, deviation, explained)
        weights, place, total, change = self._weights, self._place_of(column.channel), 0.0, size
        step = STEP * column.range
        try:
            for _ in range(REFINED):
                total = min(total + change, LARGEST) if column.kind != "zero" else total + change
                rows = self._rows_at(
                    *_changed(self._slow_motion, column.kind, column.index, -total)
                )
                scale = np.ones(len(self._kept))
                if column.kind == "gear":
                    scale[place] = 1.0 / (1.0 - total)
                # the filtered columns of the log, changed as those of a motion without noise, which
                # would make all sizes smaller
                columns = self._measured + rows - self._slow_rigid
                self._weights = weights * scale
                self._fit(columns, self._forces * scale)
                moved = self._rows_at(
                    *_changed(self._slow_motion, column.kind, column.index, -total - step)
                )
                values = (moved - rows) @ self._values / step
                if column.kind == "gear":
                    values -= (
                        (columns @ self._values) * (np.arange(len(scale)) == place) * scale[place]
                    )
                change, deviation, _ = self.judged(values, column.kind)
        except (PoseError, AssemblyError):
            total = size
        self._weights = weights
        self._fit(self._measured, self._forces)
        if column.kind == "zero":
            return _as_cause(column, total, deviation, explained)
        factor = 1.0 / (1.0 - min(total, LARGEST))
        return _as_cause(column, factor, deviation * factor**2, explained)

    def _refined_force(
        self, column: _Derivative, size: float, deviation: float, explained: float
    ) -> WrongScale:
        """As `refined`, of the factor of a force: it and its weight are divided by the factor."""
        weights, factor, k = self._weights, 1.0, column.index
        for _ in range(REFINED):
            factor *= 1.0 + max(size, -0.5)
            scale = np.where(np.arange(self._forces.shape[1]) == k, factor, 1.0)
            self._weights = weights / scale
            self._fit(self._measured, self._forces / scale)
            values = np.zeros(self._forces.shape)
            values[:, k] = self._measured[:, k] @ self._values
            size, deviation, _ = self.judged(values, column.kind)
        self._weights = weights
        self._fit(self._measured, self._forces)
        return _as_cause(column, factor * (1.0 + size), factor * deviation, explained)


def _changed(
    motion: tuple[np.ndarray, np.ndarray, np.ndarray], kind: str, k: int, size: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A motion with one position moved by a size, or made larger by it."""
    position, velocity, acceleration = (x.copy() for x in motion)
    if kind == "zero":
        position[:, k] += size
    else:
        for x in (position, velocity, acceleration):
            x[:, k] *= 1.0 + size
    return position, velocity, acceleration


def _as_cause(column: _Derivative, size: float, deviation: float, explained: float) -> WrongScale:
    return WrongScale(
        kind=column.kind,
        channel=column.channel,
        size=size,
        deviation=deviation,
        explained=explained,
        unit=column.unit,
    )


def _white_noise(forces: np.ndarray) -> np.ndarray:
    """Standard deviation (n,) of white noise on smooth signals (N, n), without a model of them."""
    off = forces[2:-2] - (4.0 * (forces[1:-3] + forces[3:-1]) - forces[:-4] - forces[4:]) / 6.0
    return np.asarray(np.median(np.abs(off), axis=0) / (MEDIAN * OFF_CUBIC))
