"""What makes a force follow its motion late: a delay, a held value, a bending transmission, or presliding friction.

All four leave similar residuals, so they compete. Each is fitted to the first part of the log in
its best size, and judged by its error on the last part. An explanation is given where it lessens
that error by more than the noise of the error itself; otherwise nothing is named. Explanations that
predict alike are told apart by their number of parameters.

Every output is fitted by itself, with all parameters of the machine free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.fft

from tauloop.common.errors import PoseError, Problem
from tauloop.common.records import dataclass
from tauloop.identification.faults.measured_motion import Measured
from tauloop.identification.faults.misfits import measured_outputs
from tauloop.identification.friction.presliding import dahl_state
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import leading_transmission, regressor_rows
from tauloop.model import Model

#: Samples of a log that are used, at most: its first ones.
LONGEST = 20_000
#: Share of them that is fitted; the rest judges.
FITTED = 0.7
#: Blocks of the part that judges, over which the noise of a difference of errors is taken.
BLOCKS = 15
#: An explanation must lessen the error (RMS) of the part that judges by this share, ...
BETTER = 0.05
#: ... and its squared error by this many standard deviations, and in this many blocks.
CERTAIN, ALIKE = 2.5, 11
#: Two explanations are told apart where their squared errors differ by this many standard
#: deviations.
APART = 2.0
#: A residual that follows a derivative of the force with this share of its power is worth the
#: search.
SUSPICIOUS = 0.02
#: So is one whose correlation with itself is above this at some lag of up to this many samples.
SWINGS, LAGS = 0.3, 20
#: Fewest samples for each parameter of an output.
SAMPLES = 10
#: Delays that are tried first, in samples, either way; and how often the steps about the best are
#: halved.
DELAYS, HALVINGS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0, 23.0, 32.0, 45.0, 64.0), 6
#: A hold is tried where the delay is this many samples or more, with lengths about those of that
#: mean delay: from and to these shares of it, and this many samples more; and first with this many
#: phases.
HELD, SHORTER, LONGER, NEIGHBOURS, PHASES = 0.3, 0.7, 1.35, 1, 6
#: Sizes are sought on samples spread over the fitted part: products of columns that one trial may
#: take, and at least this many samples.
PRODUCTS, LEAST_SOUGHT = 3e6, 2500
#: Lengths over which friction turns round that are tried first, as shares of a stroke, and
#: multiples of the best.
LENGTHS = tuple(np.geomspace(1e-4, 0.4, 13).tolist())
FINER = ((0.6, 0.77, 1.3, 1.7), (0.87, 1.15))
#: No length is tried below this share of what the drive moves from one sample to the next (RMS).
SHORTEST = 0.1
#: Frequencies of a bending transmission: how many are tried between twice that of the motion and
#: this share of the sampling rate, and multiples of the best; and its damping ratios.
FREQUENCIES, FASTEST = 14, 0.3
#: A delay by a smaller share of the sampling period is what samples next to reversals look like.
NEGLIGIBLE = 0.05
#: An error below this share of the force is rounding, and has no cause.
ROUNDING = 1e-6
#: Frequencies near the best of them are tried where that lessens the squared error by this share.
PROMISING = 0.03
NEARER = ((0.85, 0.92, 1.08, 1.16), (0.96, 1.04), (0.98, 1.02))
DAMPINGS = (0.03, 0.1, 0.4)
#: Kind of dry friction that turns before its reversal, which no machine has.
EARLY_FRICTION = "early friction"
#: Directions of unit-norm columns whose squares are below this share of the largest are none.
RANK = 1e-12

#: Makes columns at some samples.
_Columns = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """A cause of a late force in its best size, judged on the last part of a log.

    Attributes:
        kind: "delay", "hold", "bending", "presliding" or `EARLY_FRICTION`.
        size: delay, or lead of dry friction alone, s; samples of a hold; length over which friction
            turns round, m or rad; frequency at which the load swings with the motor held, Hz.
        parameters: how many it adds.
        errors: squared error of every block of the part that judges (BLOCKS,).
        error: RMS of the part that judges, SI.
        interval: of a frequency: those that are not told apart from it, Hz.
    """

    kind: str
    size: float
    parameters: int
    errors: np.ndarray
    error: float
    interval: tuple[float, float] = (np.nan, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LateForce:
    """The explanations of one output that are certain, the best first.

    Attributes:
        output, unit: name and unit of the output.
        length_unit: of its motion.
        step: sampling period, s.
        plain: RMS of the part that judges without any, SI.
        ranked: the explanations; of those that predict alike the one of fewest parameters is first.
        alike: how many of them predict as well as the first.
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
        """Kind of the best explanation."""
        return self.ranked[0].kind

    def problem(self, element: str) -> Problem:
        """The best explanation as a finding, with the runner-up.

        Args:
            element: name of the friction that acts on the output, for `--presliding`.
        """
        best, *others = self.ranked
        remedies = {
            "delay": f"align force and motion in time: the force belongs {1e3 * abs(best.size):.3g} ms "
            f"{'earlier' if best.size > 0.0 else 'later'}",
            "hold": f"record the force at its own rate, or keep one row in {best.size:.0f}, the first of each value",
            "bending": "excite less far up, measure on the load's side, or model the drive line",
            "presliding": f"fit it as well: --presliding {element}",
            EARLY_FRICTION: "make the simulator's friction stiffer (in MuJoCo a shorter solreffriction), or trust no "
            "value of friction",
        }
        what = (
            f"{self._words(best)}: with that the error on the last {100.0 * (1.0 - FITTED):.0f} % of the log falls "
            f"from {self.plain:.3g} to {best.error:.3g} {self.unit}"
        )
        for number, other in enumerate(others[:1], start=1):
            verdict = "as well explained" if number < self.alike else "next best"
            what += f"; {verdict}: it {self._words(other)} ({other.error:.3g} {self.unit})"
        where = element if best.kind in ("presliding", EARLY_FRICTION) else f"force.{self.output}"
        return Problem(where, what, remedies[best.kind])

    def _words(self, explanation: Explanation) -> str:
        size = explanation.size
        if explanation.kind == "delay":
            return (
                f"comes {1e3 * abs(size):.3g} ms {'after' if size > 0.0 else 'before'} the motion"
            )
        if explanation.kind == "hold":
            late = 0.5e3 * (size - 1.0) * self.step
            return f"is held for {size:.0f} samples, which is {late:.3g} ms late on average"
        if explanation.kind == "bending":
            low, high = explanation.interval
            between = (
                f"{low:.3g} to {high:.3g} Hz" if np.isfinite(high) else f"{low:.3g} Hz or more"
            )
            return f"passes a transmission that bends: its load swings at {size:.3g} Hz ({between}) with the motor held"
        if explanation.kind == EARLY_FRICTION:
            return (
                f"has dry friction that turns {1e3 * size:.3g} ms before its motion does, as only simulators with soft "
                "constraints make it"
            )
        return f"has friction that turns round over {size:.2g} {self.length_unit} after a reversal, not at once"


def late_forces(
    model: Model, log: Measured, *, output: str = "actuators", only: Iterable[str] | None = None
) -> tuple[LateForce, ...]:
    """Explain late forces of a log; outputs without an explanation that is certain are left out.

    Args:
        model: the machine.
        log: its motion, and forces that no filter has passed.
        output: of `regressor_rows`.
        only: names of outputs; all without it.
    """
    if model.assembly.is_redundant or log.periodic:
        return ()
    log = _first(log)
    names, units = model.output_ports(output)
    mixing, rows = measured_outputs(model, log, output)
    measured_rows = list(range(len(names))) if isinstance(rows, slice) else list(rows)
    motion = log.slow_motion()
    try:
        start = model.actuators.track(motion.position).q if model.assembly.rows else None
        columns = regressor_rows(
            model, (motion.position, motion.velocity, motion.acceleration), output, start
        )
    except PoseError:
        return ()
    speeds = motion.velocity
    if output == "joints":
        speeds = speeds @ np.linalg.pinv(leading_transmission(model)).T
    parameters = [parameter.name for parameter in model.parameters]
    forces = log.forces @ mixing
    wanted = None if only is None else set(only)
    explained = []
    for number, row in enumerate(measured_rows):
        if wanted is not None and names[row] not in wanted:
            continue
        single = _Output(
            columns[:, row], parameters, forces[:, number], log.usable, motion.highest * log.step
        )
        if not single.can_judge:
            continue
        k = _place(names[row], log.names, row, output)
        late = _explained(single, speeds[:, k], log.step)
        if late is not None:
            unit = units[row]
            length = "m" if unit == "N" else "rad"
            explained.append(replace(late, output=names[row], unit=unit, length_unit=length))
    return tuple(explained)


def seem_late(data: RegressionData) -> tuple[str, ...]:
    """Names of the outputs whose residual follows a derivative of the force, or swings.

    This costs one fit of each output, and says where the explanations of `late_forces` are worth
    their time.

    Args:
        data: one log, evenly sampled, with its times.
    """
    if data.time is None or len(data) < 4 * BLOCKS:
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
        left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
        basis = left[:, sizes**2 > RANK * sizes[0] ** 2]
        predicted = basis @ (basis.T @ forces)
        residual = forces - predicted
        rate = np.gradient(predicted, step)
        power = float(residual @ residual)
        shares = [0.0]
        for column in (rate, np.gradient(rate, step)):
            other = column - basis @ (basis.T @ column)
            shares.append(
                float(other @ residual) ** 2
                / max(float(other @ other) * power, np.finfo(float).tiny)
            )
        lags = range(1, min(LAGS, len(residual) - 1) + 1)
        swings = max(abs(float(residual[lag:] @ residual[:-lag])) for lag in lags) / max(
            power, np.finfo(float).tiny
        )
        if max(shares) > SUSPICIOUS or swings > SWINGS:
            names.append(data.outputs[k])
    return tuple(names)


def _first(log: Measured) -> Measured:
    """The first `LONGEST` samples."""
    if len(log.position) <= LONGEST:
        return log
    parts: dict[str, Any] = {
        name: getattr(log, name)[:LONGEST]
        for name in ("position", "velocity", "acceleration", "forces")
    }
    return replace(log, **parts, usable=None if log.usable is None else log.usable[:LONGEST])


def _place(name: str, positions: Sequence[str], row: int, output: str) -> int:
    """Which column of speeds is the output's own motion."""
    return list(positions).index(name) if output == "actuators" and name in positions else row


class _Output:
    """One output of a log: its columns, and fits of them with changed or further ones.

    Columns of dry friction jump where the speed changes its sign, between two samples. They are
    kept apart, as their size and the column of viscous friction of the same element, whose sign
    they have.
    """

    def __init__(
        self,
        columns: np.ndarray,
        parameters: Sequence[str],
        forces: np.ndarray,
        usable: np.ndarray | None,
        highest: float,
    ) -> None:
        """Take the columns (N, n_pi) of an output.

        Args:
            columns: by parameter.
            parameters: names.
            forces: (N,).
            usable: samples (N,) that count.
            highest: frequency of the motion, per sample.
        """
        moved = np.linalg.norm(columns, axis=0) > 0.0
        place = {name: k for k, name in enumerate(parameters) if moved[k]}
        pairs = [
            (k, place[f"{name.rpartition('.')[0]}.viscous"])
            for name, k in place.items()
            if name.endswith(".coulomb") and f"{name.rpartition('.')[0]}.viscous" in place
        ]
        dry = [k for k, _ in pairs]
        smooth = columns[:, [k for k in place.values() if k not in dry]]
        smooth = smooth / np.linalg.norm(smooth, axis=0)
        sizes, directions = np.linalg.eigh(smooth.T @ smooth)
        self.smooth = smooth @ directions[:, sizes > RANK * sizes[-1]]
        self.dry, self.viscous = columns[:, dry], columns[:, [k for _, k in pairs]]
        self.columns = np.hstack([self.smooth, self.dry])
        self.forces, self.highest, self.count = forces, highest, len(forces)
        self._spectra: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._usable = np.ones(self.count, dtype=bool) if usable is None else usable
        edge = int(FITTED * self.count)
        self.reach = max(min(int(DELAYS[-1]), self.count // 20), 1)
        fitted = np.arange(self.reach, edge)
        self._fitted = fitted[self._usable[fitted]]
        sought = max(int(PRODUCTS / self.columns.shape[1] ** 2), LEAST_SOUGHT)
        self._stride = max(len(self._fitted) // sought, 1)
        self._sought = self._fitted[:: self._stride]
        judging = np.arange(edge, self.count - self.reach)
        self._blocks = [block[self._usable[block]] for block in np.array_split(judging, BLOCKS)]
        self.can_judge = (
            min(map(len, self._blocks)) >= SAMPLES
            and len(self._sought) > SAMPLES * self.columns.shape[1]
        )

    def misfit(self, columns: _Columns) -> float:
        """Mean squared error of a fit to some samples of the first part, by which sizes are sought."""
        rows = columns(self._sought)
        return float(
            np.mean((self.forces[self._sought] - rows @ self._solved(rows, self._sought)) ** 2)
        )

    def judged(self, columns: _Columns) -> tuple[np.ndarray, float]:
        """Squared errors of the blocks of the last part with a fit to the first, and their RMS."""
        values = self._solved(columns(self._fitted), self._fitted)
        judging = np.concatenate(self._blocks)
        squares = (self.forces[judging] - columns(judging) @ values) ** 2
        edges = np.cumsum([len(block) for block in self._blocks])[:-1]
        return np.array([block.sum() for block in np.split(squares, edges)]), float(
            np.sqrt(squares.mean())
        )

    def _solved(self, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Least squares at some samples."""
        norms = np.linalg.norm(rows, axis=0)
        norms[norms == 0.0] = 1.0
        gram = (rows.T @ rows) / np.outer(norms, norms)
        return np.asarray(
            np.linalg.lstsq(gram, (rows.T @ self.forces[at]) / norms, rcond=RANK)[0] / norms
        )

    def rigid(self, at: np.ndarray) -> np.ndarray:
        """Columns as they are."""
        return np.asarray(self.columns[at])

    def late(self, delay: float) -> _Columns:
        """Columns of a force that comes late by some samples."""

        def columns(at: np.ndarray) -> np.ndarray:
            dry = _delayed(np.abs(self.dry), at, delay) * np.sign(_delayed(self.viscous, at, delay))
            return np.hstack([_delayed(self.smooth, at, delay), dry])

        return columns

    def with_early_friction(self, lead: float) -> _Columns:
        """Columns of a force whose dry friction alone comes early by some samples."""

        def columns(at: np.ndarray) -> np.ndarray:
            dry = _delayed(np.abs(self.dry), at, -lead) * np.sign(_delayed(self.viscous, at, -lead))
            return np.hstack([self.smooth[at], dry])

        return columns

    def held(self, length: int, phase: int) -> _Columns:
        """Columns of a force that is held for some samples."""
        return lambda at: np.asarray(self.columns[np.maximum(at - (at - phase) % length, 0)])

    def sliding(self, speed: np.ndarray, step: float, length: float) -> _Columns:
        """Columns with friction that turns round over some length next to them."""
        state = dahl_state(speed[:, None], step, np.array([length]))
        return lambda at: np.hstack([self.columns[at], state[at]])

    def bent(self, frequency: float, damping: float) -> _Columns:
        """Columns of a force that passes a spring: tau'' / w^2 + 2 d tau' / w + tau = rigid force.

        Of a load J x'' + F(x') = k (q - x) that a motor at q moves through a spring, tau = k (q -
        x) obeys this, with w^2 = k / J; the speed of the load, whose sign dry friction has, is
        taken as that of the motor.

        Args:
            frequency: per sample.
            damping: ratio d.
        """
        sought, stride = self._sought, self._stride
        is_even = len(sought) > 1 and bool((np.diff(sought) == stride).all())
        every: list[np.ndarray] = []

        def columns(at: np.ndarray) -> np.ndarray:
            if at is sought and is_even:
                return self._passed_spring(frequency, damping, int(sought[0]), stride)[
                    : len(sought)
                ]
            if not every:
                every.append(self._passed_spring(frequency, damping, 0, 1))
            return np.asarray(every[0][at])

        return columns

    def _passed_spring(
        self, frequency: float, damping: float, first: int, stride: int
    ) -> np.ndarray:
        """Return columns that passed a spring (see `bent`), at every `stride`-th sample from the first on.

        Frequencies that look alike at these samples are added up before the inverse transform,
        which is shorter then.
        """
        spectrum, frequencies = self._spectrum_from(first, stride)
        ratio = frequencies / frequency
        gain = 1.0 / (1.0 - ratio**2 + 2.0j * damping * ratio)
        added = np.zeros((spectrum.shape[0], spectrum.shape[2]), dtype=complex)
        for alias in range(stride):
            added += spectrum[:, alias] * gain[alias]
        passed = scipy.fft.irfft(added, n=2 * (added.shape[1] - 1), axis=1) / stride
        return np.asarray(passed.T + self.columns[0])

    def _spectrum_from(self, first: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the spectrum (n, stride, m) of the columns from a sample on, and its frequencies (stride, m).

        Along the second axis are the frequencies that look alike where only every `stride`-th
        sample is kept.
        """
        if (first, stride) not in self._spectra:
            half = stride * scipy.fft.next_fast_len(-(-self.count // stride))
            whole = scipy.fft.rfft((self.columns - self.columns[0]).T, n=2 * half, axis=1)
            length = 2 * half // stride
            places = np.arange(length // 2 + 1) + length * np.arange(stride)[:, None]
            is_negative = places > half
            places = np.where(is_negative, places - 2 * half, places)
            spectrum = whole[:, np.abs(places)]
            np.conjugate(spectrum, out=spectrum, where=is_negative)
            frequencies = places / (2.0 * half)
            spectrum *= np.exp(2.0j * np.pi * frequencies * first)
            self._spectra[first, stride] = spectrum, frequencies
        return self._spectra[first, stride]


def _delayed(columns: np.ndarray, at: np.ndarray, delay: float) -> np.ndarray:
    """Columns (N, n) later by some samples, at samples (M,) inside, by a cubic through four of them."""
    whole = int(np.floor(delay))
    f = delay - whole
    weights = (
        -f * (f - 1.0) * (f - 2.0) / 6.0,
        (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0,
        -(f + 1.0) * f * (f - 2.0) / 2.0,
        (f + 1.0) * f * (f - 1.0) / 6.0,
    )
    if f == 0.0:
        return np.asarray(columns[at - whole])
    parts = (
        weight * columns[at - whole - k] for k, weight in zip((-1, 0, 1, 2), weights, strict=True)
    )
    return np.asarray(sum(parts))


def _explained(single: _Output, speed: np.ndarray, step: float) -> LateForce | None:
    """The explanations of one output, if any is certain."""
    plain_errors, plain = single.judged(single.rigid)
    if plain <= ROUNDING * float(np.sqrt(np.mean(single.forces**2))):
        return None
    every = [_as_delay(single, step)]
    every += _as_hold(single, every[0].size / step)
    every += _as_bending(single, step)
    every += _as_presliding(single, speed, step)
    if every[0].size < 0.0:
        every += _as_early_friction(single, step)
    certain = [
        explanation
        for explanation in every
        if not (explanation.kind == "delay" and abs(explanation.size) < NEGLIGIBLE * step)
        and explanation.error <= (1.0 - BETTER) * plain
        and _deviations(plain_errors, explanation.errors) >= CERTAIN
        and np.sum(explanation.errors < plain_errors) >= ALIKE
    ]
    if not certain:
        return None
    certain.sort(key=lambda explanation: explanation.error)
    alike = [other for other in certain if _deviations(other.errors, certain[0].errors) < APART]
    others = [other for other in certain if other not in alike]
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
    """By how many standard deviations squared errors of blocks are smaller after than before."""
    gain = before - after
    noise = float(gain.std(ddof=1)) / np.sqrt(len(gain))
    return float(gain.mean()) / max(noise, np.finfo(float).tiny)


def _as_delay(single: _Output, step: float) -> Explanation:
    tried = {0.0: single.misfit(single.rigid)}
    for delay in DELAYS:
        if delay <= single.reach - 2:
            tried |= {
                sign * delay: single.misfit(single.late(sign * delay)) for sign in (-1.0, 1.0)
            }
    for _ in range(HALVINGS):
        sizes = sorted(tried)
        place = sizes.index(min(tried, key=tried.__getitem__))
        for other in (place - 1, place + 1):
            if 0 <= other < len(sizes):
                middle = 0.5 * (sizes[place] + sizes[other])
                tried[middle] = single.misfit(single.late(middle))
    best = min(tried, key=tried.__getitem__)
    errors, error = single.judged(single.late(best))
    return Explanation(kind="delay", size=best * step, parameters=1, errors=errors, error=error)


def _as_early_friction(single: _Output, step: float) -> list[Explanation]:
    """Dry friction that turns before its reversal: no machine has it, but simulators with soft constraints do."""
    if not single.dry.shape[1]:
        return []
    tried = {0.0: single.misfit(single.rigid)}
    tried |= {
        lead: single.misfit(single.with_early_friction(lead))
        for lead in DELAYS
        if lead <= single.reach - 2
    }
    for _ in range(HALVINGS):
        sizes = sorted(tried)
        place = sizes.index(min(tried, key=tried.__getitem__))
        for other in (place - 1, place + 1):
            if 0 <= other < len(sizes):
                middle = 0.5 * (sizes[place] + sizes[other])
                tried[middle] = single.misfit(single.with_early_friction(middle))
    best = min(tried, key=tried.__getitem__)
    errors, error = single.judged(single.with_early_friction(best))
    return [
        Explanation(kind=EARLY_FRICTION, size=best * step, parameters=1, errors=errors, error=error)
    ]


def _as_hold(single: _Output, delay: float) -> list[Explanation]:
    """A hold whose mean delay is about that of the force, in samples."""
    if delay < HELD:
        return []
    mean_length = 2.0 * delay + 1.0
    shortest = max(int(SHORTER * mean_length) - NEIGHBOURS, 2)
    longest = min(int(LONGER * mean_length) + NEIGHBOURS, single.reach - 1)
    tried: dict[tuple[int, int], float] = {}
    for length in range(shortest, longest + 1):
        for phase in range(0, length, -(-length // PHASES)):
            tried[length, phase] = single.misfit(single.held(length, phase))
    if not tried:
        return []
    length, _ = min(tried, key=tried.__getitem__)
    phases = {phase: single.misfit(single.held(length, phase)) for phase in range(length)}
    errors, error = single.judged(single.held(length, min(phases, key=phases.__getitem__)))
    return [Explanation(kind="hold", size=float(length), parameters=2, errors=errors, error=error)]


def _as_bending(single: _Output, step: float) -> list[Explanation]:
    """A transmission whose load swings at some frequency above the motion's own."""
    lowest = 2.0 * single.highest
    if lowest >= FASTEST:
        return []
    damping = DAMPINGS[1]
    grid = np.geomspace(lowest, FASTEST, FREQUENCIES).tolist()
    tried = {frequency: single.misfit(single.bent(frequency, damping)) for frequency in grid}
    if min(tried.values()) > (1.0 - PROMISING) * single.misfit(single.rigid):
        return []
    for factors in NEARER:
        best = min(tried, key=tried.__getitem__)
        for factor in factors:
            if best * factor < 0.5:
                tried[best * factor] = single.misfit(single.bent(best * factor, damping))
    best = min(tried, key=tried.__getitem__)
    dampings = {other: single.misfit(single.bent(best, other)) for other in DAMPINGS}
    damping = min(dampings, key=dampings.__getitem__)
    errors, error = single.judged(single.bent(best, damping))

    def first_apart(frequencies: Iterable[float], otherwise: float) -> float:
        """The first frequency, away from the best, that is told apart from it."""
        for frequency in frequencies:
            if _deviations(single.judged(single.bent(frequency, damping))[0], errors) >= APART:
                return frequency
        return otherwise

    below = first_apart((x for x in sorted(tried, reverse=True) if x < best), lowest)
    above = first_apart((x for x in sorted(tried) if x > best), np.inf)
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


def _as_presliding(single: _Output, speed: np.ndarray, step: float) -> list[Explanation]:
    """Friction of the output's own motion that turns round over some length."""
    stroke = float(np.ptp(np.cumsum(speed) * step))
    if stroke <= 0.0:
        return []
    shortest = SHORTEST * float(np.sqrt(np.mean(speed**2))) * step
    lengths = [share * stroke for share in LENGTHS if share * stroke >= shortest]
    tried = {length: single.misfit(single.sliding(speed, step, length)) for length in lengths}
    for factors in FINER:
        best = min(tried, key=tried.__getitem__)
        for factor in factors:
            tried[best * factor] = single.misfit(single.sliding(speed, step, best * factor))
    best = min(tried, key=tried.__getitem__)
    errors, error = single.judged(single.sliding(speed, step, best))
    return [Explanation(kind="presliding", size=best, parameters=2, errors=errors, error=error)]
