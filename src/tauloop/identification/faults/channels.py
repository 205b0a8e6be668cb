"""Which channel of a log is wrong: turned, exchanged with another, late, or of another scale than the others.

Each such fault is tried by undoing it: the model is fitted again, and a channel is named where the misfit falls by a
stated factor. Friction that comes out negative names drives that nothing else tells (`faults.wrong_signs`).

Friction that turns round over some way after a reversal (presliding) looks late too. A delay is in all terms, inertia
and gravity too, and hysteresis in friction alone: both are fitted, and named is what explains more, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations
from typing import TypeAlias

import numpy as np
import scipy.fft

from tauloop.errors import PoseError, Problem
from tauloop.identification.friction.presliding import dahl_state
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.data import Ties
from tauloop.identification.regression.from_log import driven_transmission, regressor_rows
from tauloop.logs import channels, sample_period, samples
from tauloop.logs.channels import Log
from tauloop.logs.saturation import LEFT_OUT
from tauloop.logs.signals import butterworth
from tauloop.model import Model
from tauloop.records import dataclass

#: Samples on which faults are tried, evenly spread over the log.
TRIED = 200
#: Equations per parameter, below which a change of the misfit says nothing.
EQUATIONS = 3
#: A sign, an exchange or a scale is wrong where undoing it lessens the misfit of all outputs by this factor ...
WRONG = 2.0
#: ... or, but for scales, that of all by the first and of one by the second: on a measured arm whose model leaves 17 %
#: of the forces unexplained a turned drive has 1.2 and 2.1, and what is right has 1.03 at most.
ALL, ONE = 1.1, 1.4
#: Changes whose misfits differ by less than this factor explain the same: of equal legs exchanged forces are exchanged
#: positions.
ALIKE = 1.2
#: A delay is one where undoing it lessens the misfit of all outputs by the first factor and of one by the second, ...
LATE_ALL, LATE_ONE = 1.02, 1.25
#: ... and does not add to it where motion and forces are filtered at so many times the frequency below which so much of
#: the velocities' power is: noise of the positions in the regressor can feign a delay, and is gone there.
PLAIN, POWER = 8.0, 0.98
#: Shifts of positions that are tried first, in steps; between them the minimum is that of a parabola.
STEPS = (1, 2, 4, 8, 16)
#: A shift of a position by so many steps must lessen the misfit by this factor for further ones to be tried, unless a
#: force seems to have a fault.
NEAR, PROMISING = 2, 1.05
#: Hysteresis or delay: one has to lessen the misfit by this factor more than the other, and one beside the other by the
#: second.
CLEARLY, BESIDE = 1.2, 1.3
#: Ways over which friction turns round that are tried, as shares of a channel's stroke.
WAYS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
#: Ways that are tried about the best of these, as multiples of it.
FINER = (0.62, 0.74, 0.86, 1.16, 1.34, 1.6)
#: A scale is far from one beyond this factor either way.
SCALE = 1.5
#: Of forces that are decimated, frequencies are kept up to this share of the new sampling rate.
PASSED = 0.4
#: Relative misfits below this are rounding.
ROUNDING = 1e-9


#: Makes samples of all channels at some places from channels (N, n) over a whole log.
Moved: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Motion and forces of one log, at even steps.

    Attributes:
        step: sampling period, s.
        names: of the positions (n).
        position, velocity, acceleration: (N, n), filtered alike, SI.
        drives: names of the measured forces (n_f).
        forces: (N, n_f), SI.
        periodic: the samples are whole periods, which may be shifted round.
        usable: (N,) samples of which all forces count; all without it.
        cutoff: of the low-pass of second order that the forces have passed, Hz; None for none.
    """

    step: float
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    drives: tuple[str, ...]
    forces: np.ndarray
    periodic: bool = False
    usable: np.ndarray | None = None
    cutoff: float | None = None

    def moved(self, change: Moved) -> Measured:
        """With other positions, velocities and accelerations."""
        at = np.arange(len(self.position))
        position, velocity, acceleration = (change(x, at) for x in (self.position, self.velocity, self.acceleration))
        return replace(self, position=position, velocity=velocity, acceleration=acceleration)

    def late_position(self, *, column: int, shift: int) -> Measured:
        """With a channel of position put right that came late by so many samples."""
        return self.moved(_late_by(column, shift))

    def late_force(self, *, column: int, shift: int) -> Measured:
        """With a channel of force put right that came late by so many samples."""
        return replace(self, forces=_late_by(column, shift)(self.forces, np.arange(len(self.forces))))

    def slow(self) -> Measured:
        """Low-passed a little above the motion's own frequencies."""
        power = np.sum(np.abs(scipy.fft.rfft(self.velocity, axis=0)) ** 2 / np.sum(self.velocity**2), axis=1)
        highest = np.searchsorted(np.cumsum(power), POWER * power.sum()) / (len(self.velocity) * self.step)
        cutoff = min(PLAIN * max(highest, 1.0 / (len(self.velocity) * self.step)), 0.4 / self.step)
        rate = 1.0 / self.step

        def filtered(x: np.ndarray) -> np.ndarray:
            return butterworth(x, rate=rate, cutoff=cutoff, order=2)

        return replace(self.moved(lambda x, at: filtered(x)), forces=filtered(self.forces))


def measured(model: Model, log: Log, *, decimation: int = 1, periodic: bool = False) -> Measured:
    """Motion and measured forces of a log.

    Args:
        model: the machine.
        log: prepared.
        decimation: forces are filtered as this decimation would.
        periodic: whether the samples are whole periods.
    """
    names = tuple(model.actuators.ports.position.columns)
    drives = tuple(a.name for a in model.mechanism.actuators if a.name in channels(log, "force"))
    step, forces = sample_period(log), samples(log, "force", drives)
    cutoff = PASSED / (step * decimation) if decimation > 1 else None
    if cutoff is not None:
        forces = butterworth(forces, rate=1.0 / step, cutoff=cutoff, order=2)
    return Measured(
        step=step,
        names=names,
        position=samples(log, "position", names),
        velocity=samples(log, "velocity", names),
        acceleration=samples(log, "acceleration", names),
        drives=drives,
        forces=forces,
        periodic=periodic,
        usable=np.all(samples(log, LEFT_OUT) == 0.0, axis=1) if channels(log, LEFT_OUT) else None,
        cutoff=cutoff,
    )


def wrong_channels(
    model: Model,
    log: Measured,
    *,
    output: str = "actuators",
    ties: Ties | None = None,
    step: int = 1,
    presliding: bool = False,
) -> tuple[Problem, ...]:
    """Channels that are turned, exchanged, late or of another scale than the others, one after the other.

    The misfit of an output is the norm of its residual over that of its force, of all outputs the root of the mean
    square. Tried is every change of a single channel of force or position, and every exchange of two of one unit; the
    one with the least misfit is undone and named if that lessens the misfit enough (`WRONG`, or `ALL` and `ONE`; of
    delays `LATE_ALL` and `LATE_ONE`), and all are tried again.

    Args:
        model: the machine.
        log: its motion and forces.
        output: of `regressor_rows`.
        ties: relations between the parameters.
        step: shifts are multiples of so many samples, up to 16 of them, and no delay is less than one.
        presliding: whether friction that turns round over some way is fitted already, so that it need not be named.

    Returns:
        One problem for each, with the figures, and with other changes that explain it as well; none where there are too
        few samples, or actuators are redundant.
    """
    if model.assembly.is_redundant:
        return ()  # the rows are resultants of all forces, whose shares depend on the positions
    trials = _Trials(model, log, output, ties, step)
    found: list[Problem] = []
    for _ in log.names if trials.can_tell else ():
        change = trials.best()
        if change is None:
            break
        if not (presliding and change.is_hysteresis):
            found.append(change.problem)
        trials = change.undone
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Change:
    """A fault undone: what is left, and what to say of it."""

    undone: _Trials
    problem: Problem
    is_hysteresis: bool = False


class _Trials:
    """A log, its misfit, and the misfits when one fault is undone.

    `ways` has the drives whose friction is known to turn round over some way, m or rad: their columns are beside the
    model's own.
    """

    def __init__(
        self,
        model: Model,
        log: Measured,
        output: str,
        ties: Ties | None,
        step: int,
        ways: Mapping[str, float] | None = None,
    ) -> None:
        self._model, self._log, self._output, self._ties, self._step = model, log, output, ties, step
        self._ways = dict(ways or {})
        self._mixing = np.eye(len(log.drives))
        self._rows: Sequence[int] | slice = slice(None)
        names = [a.name for a in model.mechanism.actuators]
        if output == "joints":
            self._mixing = driven_transmission(model)[[names.index(drive) for drive in log.drives]]
        else:
            self._rows = [names.index(drive) for drive in log.drives]
        reach = 0 if log.periodic else min(STEPS[-1] * step, len(log.position) // 10)
        self._reach = min(STEPS[-1] * step, len(log.position) // 10)
        count = len(log.position) - 2 * reach
        self._base: list[int] | slice = slice(None)
        places = reach + np.arange(count)
        places = places if log.usable is None else places[log.usable[places]]
        self._at = places[np.unique(np.linspace(0, len(places) - 1, min(TRIED, len(places))).round().astype(int))]
        (regressor,) = self._regressors([lambda x, at: x[at]])
        self.can_tell = regressor is not None
        if regressor is None:
            return
        unknowns = regressor.shape[-1]
        columns = regressor.transpose(1, 0, 2)
        self._base = list(base_parameters(columns, tuple(map(str, range(unknowns))), ("",) * unknowns).independent)
        self._regressor = self._beside(regressor[:, :, self._base], lambda x, at: x[at])
        self.can_tell = self._regressor.shape[0] * self._regressor.shape[1] >= EQUATIONS * len(self._base)
        if self.can_tell:
            self.misfits = self._misfits(self._regressor, self._forces())
            self.misfit = _mean(self.misfits)

    def best(self) -> _Change | None:
        """The change that lessens the misfit most, if one does by enough."""
        if self.misfit < ROUNDING:
            return None
        found = self._of_forces()
        found += self._of_positions(thorough=bool(found))
        if not found:
            return None
        least, change = min(found, key=lambda pair: pair[0])
        others = {
            one.problem.where: one.problem.what.partition(":")[0]
            for misfit, one in found
            if misfit <= ALIKE * least and one.problem.where != change.problem.where
        }
        if not others:
            return change
        what = f"{change.problem.what}; as well explained: " + ", or ".join(" ".join(pair) for pair in others.items())
        return replace(change, problem=replace(change.problem, what=what))

    def _of_forces(self) -> list[tuple[float, _Change]]:
        log, found = self._log, []
        columns = range(len(log.drives))
        for k in columns:
            signs = np.where(np.arange(len(log.drives)) == k, -1.0, 1.0)
            what = f"force.{log.drives[k]}", "has the wrong sign: with it turned"
            remedy = "turn the sign in the column's unit ('-1 N m'), or the actuator's ratio in the machine file"
            found += self._judged(log.forces * signs, *what, remedy)
            scale = self._scale(k)
            if scale is not None and max(scale, 1.0 / scale) > SCALE:
                what = (
                    f"force.{log.drives[k]}",
                    f"is {1.0 / scale:.3g} times as large as suits the other forces: with it divided by that",
                )
                remedy = "look at the units, the torque constant and the gear of this drive (or of the others)"
                scaled = self._judged(log.forces * np.where(np.arange(len(log.drives)) == k, scale, 1.0), *what, remedy)
                found += [pair for pair in scaled if pair[0] * WRONG <= self.misfit]
        for i, k in combinations(columns, 2):
            order = list(columns)
            order[i], order[k] = k, i
            what = f"force.{log.drives[i]}", f"is exchanged with force.{log.drives[k]}: with them exchanged back"
            found += self._judged(log.forces[:, order], *what, "correct the columns' names")
        for k in columns:
            shifts = [n * self._step for n in range(-STEPS[-1], STEPS[-1] + 1) if abs(n) * self._step <= self._reach]
            values = [self._misfit_late(_late_by(k, s)(log.forces, self._at)) for s in shifts]
            shift = _least(shifts, values)
            if shift is not None and min(values) * LATE_ALL <= self.misfit:
                found += self._late(f"force.{log.drives[k]}", shift, partial(Measured.late_force, column=k))
        return found

    def _of_positions(self, *, thorough: bool) -> list[tuple[float, _Change]]:
        log, found = self._log, []
        kinds = units_of(self._model)
        changes: list[tuple[Moved, tuple[str, str, str]]] = []
        for k, name in enumerate(log.names):
            signs = np.where(np.arange(len(log.names)) == k, -1.0, 1.0)
            what = f"position.{name}", "has the wrong sign: with it turned"
            changes.append((_turned(signs), (*what, "turn the sign in the column's unit")))
        for i, k in combinations(range(len(log.names)), 2):
            if kinds[log.names[i]] == kinds[log.names[k]]:
                order = list(range(len(log.names)))
                order[i], order[k] = k, i
                both = (
                    f"position.{log.names[i]}",
                    f"is exchanged with position.{log.names[k]}: with them exchanged back",
                )
                changes.append((_ordered(order), (*both, "correct the columns' names")))
        near = [(k, s) for k in range(len(log.names)) for s in (-NEAR * self._step, NEAR * self._step)]
        regressors = self._regressors([change for change, _ in changes] + [_late_by(k, s) for k, s in near])
        for (change, said), regressor in zip(changes, regressors, strict=False):
            if regressor is not None:
                found += self._accepted(regressor, self._forces(), change, said)
        for k, name in enumerate(log.names):
            tried = {0: self.misfit}
            for (column, s), regressor in zip(near, regressors[len(changes) :], strict=True):
                if column == k and regressor is not None:
                    tried[s] = self._misfit_of(self._forces(), regressor)
            if min(tried.values()) * PROMISING > self.misfit and not thorough:
                continue
            self._scan(k, tried)
            shift = _least(list(tried), list(tried.values()))
            if shift is not None and min(tried.values()) * LATE_ALL <= self.misfit:
                found += self._late(f"position.{name}", shift, partial(Measured.late_position, column=k))
        return found

    def _scan(self, column: int, tried: dict[int, float]) -> None:
        """Misfits of further shifts of a position: doubled steps, then those about the best."""
        for steps in (STEPS, None):
            best = min(tried, key=lambda s: tried[s])
            sign = 1 if best > 0 else -1
            shifts = (
                [sign * n * self._step for n in steps]
                if steps
                else sorted({round(best * share) for share in (0.625, 0.75, 0.875, 1.125, 1.25, 1.5)})
            )
            shifts = [s for s in shifts if s not in tried and abs(s) <= self._reach]
            regressors = self._regressors([_late_by(column, s) for s in shifts])
            for s, regressor in zip(shifts, regressors, strict=True):
                if regressor is not None:
                    tried[s] = self._misfit_of(self._forces(), regressor)

    @property
    def log(self) -> Measured:
        """The log."""
        return self._log

    def _late(self, where: str, shift: int, undo: Callable[..., Measured]) -> list[tuple[float, _Change]]:
        """A delay that lessens the misfit enough, also where only the slow part of the log is looked at."""
        if abs(shift) < self._step or abs(shift) <= 1:
            return []
        trials, slow = self._again(undo(self._log, shift=shift)), self._again(self._log.slow())
        slow_undone = self._again(undo(slow.log, shift=shift))
        if not (trials.can_tell and slow.can_tell and slow_undone.can_tell) or slow_undone.misfit > slow.misfit:
            return []
        if trials.misfit * LATE_ALL > self.misfit or np.all(trials.misfits * LATE_ONE > self.misfits):
            return []
        drive = where.partition(".")[2]
        if drive in self._log.names and drive in self._log.drives and drive not in self._ways:
            which = self._late_or_turning(drive, shift, undo)
            if which is None:
                return []  # both explain it alike
            if not isinstance(which, int):
                return self._turning(drive, *which, shift)
            shift = which
            trials = self._again(undo(self._log, shift=shift))
        ratios = self.misfits / np.maximum(trials.misfits, ROUNDING)
        best = int(np.argmax(ratios))
        what = (
            f"comes {'behind' if shift > 0 else 'before'} the other channels by {abs(shift)} samples "
            f"({1e3 * abs(shift) * self._log.step:.3g} ms): shifted back by that the relative misfit of one output "
            f"falls from {self.misfits[best]:.3g} to {trials.misfits[best]:.3g}, of all from {self.misfit:.3g} to "
            f"{trials.misfit:.3g}"
        )
        problem = Problem(where, what, "align the channels of the log")
        return [(trials.misfit, _Change(undone=trials, problem=problem))]

    def _late_or_turning(
        self, drive: str, shift: int, undo: Callable[..., Measured]
    ) -> int | tuple[float, np.ndarray] | None:
        """The delay, near a shift, or the way over which friction turns round and the misfits with it; or neither.

        Both are compared with friction at once beside the model's own, for that the shift must be right to a sample.
        """
        around = {shift: self._again(undo(self._log, shift=shift))}
        reach = self._step
        while reach:
            best = min(around, key=lambda s: _mean(around[s].with_friction(drive, None)))
            around |= {
                s: self._again(undo(self._log, shift=s)) for s in (best - reach, best + reach) if s not in around
            }
            reach //= 2
        best = min(around, key=lambda s: _mean(around[s].with_friction(drive, None)))
        late, both = _mean(around[best].with_friction(drive, None)), _mean(around[best].best_way(drive)[1])
        way, turning = self.best_way(drive)
        hysteresis = _mean(turning)
        is_late, turns = hysteresis > BESIDE * both, late > BESIDE * min(both, hysteresis)
        if turns and (is_late or late > CLEARLY * hysteresis):
            return way, turning
        return best if is_late and hysteresis > CLEARLY * late else None

    def _turning(self, drive: str, way: float, misfits: np.ndarray, shift: int) -> list[tuple[float, _Change]]:
        """Friction that turns round over some way, if it lessens the misfit enough."""
        misfit = _mean(misfits)
        best = int(np.argmax(self.misfits / np.maximum(misfits, ROUNDING)))
        if misfit * LATE_ALL > self.misfit or misfits[best] * LATE_ONE > self.misfits[best]:
            return []
        unit = units_of(self._model)[drive]
        what = (
            f"has friction that turns round over {way:.2g} {unit} after a reversal, not at once: with it the relative "
            f"misfit of one output falls from {self.misfits[best]:.3g} to {misfits[best]:.3g}, of all from "
            f"{self.misfit:.3g} to {misfit:.3g}; no delay ({1e3 * abs(shift) * self._log.step:.3g} ms) explains it"
        )
        problem = Problem(f"force.{drive}", what, f"fit it as well: --presliding {drive}")
        trials = _Trials(self._model, self._log, self._output, self._ties, self._step, self._ways | {drive: way})
        return [(misfit, _Change(undone=trials, problem=problem, is_hysteresis=True))]

    def _judged(self, forces: np.ndarray, where: str, what: str, remedy: str) -> list[tuple[float, _Change]]:
        return self._accepted(self._regressor, self._forces(forces), forces, (where, what, remedy))

    def _accepted(
        self, regressor: np.ndarray, forces: np.ndarray, undone: np.ndarray | Moved, what: tuple[str, str, str]
    ) -> list[tuple[float, _Change]]:
        misfits = self._misfits(regressor, forces)
        misfit = _mean(misfits)
        best = int(np.argmax(self.misfits / np.maximum(misfits, ROUNDING)))
        where, text, remedy = what
        if misfit * WRONG <= self.misfit:
            text += f" the relative misfit of all outputs falls from {self.misfit:.3g} to {misfit:.3g}"
        elif misfit * ALL <= self.misfit and misfits[best] * ONE <= self.misfits[best]:
            text += (
                f" the relative misfit of one output falls from {self.misfits[best]:.3g} to {misfits[best]:.3g}, "
                f"of all from {self.misfit:.3g} to {misfit:.3g}"
            )
        else:
            return []
        log = self._log.moved(undone) if callable(undone) else replace(self._log, forces=undone)
        return [(misfit, _Change(undone=self._again(log), problem=Problem(where, text, remedy)))]

    @cached_property
    def _weighed(self) -> tuple[np.ndarray, np.ndarray]:
        """Norms of the outputs' forces (n_out,), and a basis of the regressor weighted by them."""
        sizes = np.maximum(np.linalg.norm(self._forces(), axis=0), np.finfo(float).tiny)
        return sizes, np.linalg.qr((self._regressor / sizes[:, None]).reshape(-1, self._regressor.shape[-1]))[0]

    def _again(self, log: Measured) -> _Trials:
        return _Trials(self._model, log, self._output, self._ties, self._step, self._ways)

    def _forces(self, forces: np.ndarray | None = None) -> np.ndarray:
        """Forces of the outputs (M, n_out) at the tried samples."""
        return np.asarray((self._log.forces if forces is None else forces)[self._at] @ self._mixing)

    def _regressors(self, changes: Sequence[Moved]) -> list[np.ndarray | None]:
        """Regressors (M, n_out, r) of changed motions, all made at once; None where the machine cannot move so."""
        log = self._log
        motions, starts, possible = [], [], []
        for change in changes:
            motion = [change(x, self._at) for x in (log.position, log.velocity, log.acceleration)]
            try:
                starts += [self._model.actuators.track(motion[0]).q] if self._model.assembly.rows else []
            except PoseError:
                possible.append(False)
                continue
            possible.append(True)
            motions.append(motion)
        if not motions:
            return [None] * len(changes)
        together = [np.concatenate(parts) for parts in zip(*motions, strict=True)]
        start = np.concatenate(starts) if starts else None
        try:
            rows = regressor_rows(self._model, (together[0], together[1], together[2]), self._output, start)
        except PoseError:
            return [None] * len(changes)
        rows = rows[:, self._rows]
        rows = (rows if self._ties is None else rows @ self._ties.matrix)[:, :, self._base]
        whole = iter(np.split(rows, len(motions)))
        return [
            self._beside(next(whole), change) if one else None for one, change in zip(possible, changes, strict=True)
        ]

    def _beside(self, regressor: np.ndarray, change: Moved) -> np.ndarray:
        """The regressor with the columns of friction that turns round over some way, changed as the motion is."""
        if not self._ways or isinstance(self._base, slice):
            return regressor
        columns = [self._friction(drive, way, change) for drive, way in self._ways.items()]
        return np.concatenate([regressor, *columns], axis=2)

    def _friction(self, drive: str, way: float | None, change: Moved) -> np.ndarray:
        """Columns (M, n_out, 2 or 3) of a drive's friction: at once, viscous, and turning round over some way.

        They pass the filter that the forces have passed.
        """
        log, k = self._log, self._log.names.index(drive)
        velocity = log.velocity[:, [k]]
        states = [np.sign(velocity), velocity]
        states += [dahl_state(velocity, log.step, np.array([way]))] if way is not None else []
        acting = self._mixing[log.drives.index(drive)]
        every = np.zeros(log.velocity.shape)
        found = []
        for state in states:
            if log.cutoff is not None:
                state = butterworth(state, rate=1.0 / log.step, cutoff=log.cutoff, order=2)
            every[:, k] = state[:, 0]
            found.append(change(every, self._at)[:, k])
        return np.asarray(np.stack(found, axis=1)[:, None, :] * acting[None, :, None])

    def with_friction(self, drive: str, way: float | None) -> np.ndarray:
        """Misfits with a drive's friction beside the model's own, turning round over some way if there is one."""
        columns = self._friction(drive, way, lambda x, at: x[at])
        return self._misfits(np.concatenate([self._regressor, columns], axis=2), self._forces())

    def best_way(self, drive: str) -> tuple[float, np.ndarray]:
        """The way over which a drive's friction turns round best, and the misfits with it."""
        stroke = float(np.ptp(self._log.position[:, self._log.names.index(drive)]))
        found = [(share * stroke, self.with_friction(drive, share * stroke)) for share in WAYS]
        best = min(found, key=lambda pair: _mean(pair[1]))
        found += [(best[0] * factor, self.with_friction(drive, best[0] * factor)) for factor in FINER]
        return min(found, key=lambda pair: _mean(pair[1]))

    def _misfit_of(self, forces: np.ndarray, regressor: np.ndarray | None = None) -> float:
        return _mean(self._misfits(self._regressor if regressor is None else regressor, forces))

    def _misfits(self, regressor: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Norm of every output's residual over that of its force, fitted together with these as weights."""
        sizes = np.maximum(np.linalg.norm(forces, axis=0), np.finfo(float).tiny)
        columns = (regressor / sizes[:, None]).reshape(-1, regressor.shape[-1])
        scaled = forces / sizes
        basis = np.linalg.qr(columns)[0]
        left = scaled.ravel() - basis @ (basis.T @ scaled.ravel())
        return np.linalg.norm(left.reshape(forces.shape), axis=0)

    def _misfit_late(self, forces: np.ndarray) -> float:
        """As `_misfit_of`, of forces (M, n_f) at the tried samples, with the weights of those as they are."""
        sizes, basis = self._weighed
        scaled = (forces @ self._mixing / sizes).ravel()
        power = scaled @ scaled - np.sum((basis.T @ scaled) ** 2)
        return float(np.sqrt(max(power, 0.0) / len(sizes)))

    def _scale(self, drive: int) -> float | None:
        """Factor of one drive's force that suits the others best, by least squares; None where it is not positive."""
        log = self._log
        others = np.where(np.arange(len(log.drives)) == drive, 0.0, 1.0)
        sizes, basis = self._weighed
        own = (self._forces(log.forces * (1.0 - others)) / sizes).ravel()
        known = (self._forces(log.forces * others) / sizes).ravel()
        own, known = (x - basis @ (basis.T @ x) for x in (own, known))
        power = float(own @ own)
        scale = -float(own @ known) / power if power > 0.0 else 0.0
        return scale if scale > 0.0 else None


def units_of(model: Model) -> dict[str, str]:
    """Unit of every position."""
    port = model.actuators.ports.position
    return dict(zip(port.columns, port.units, strict=True))


def _turned(signs: np.ndarray) -> Moved:
    return lambda x, at: x[at] * signs


def _ordered(order: list[int]) -> Moved:
    return lambda x, at: x[at][:, order]


def _late_by(column: int, shift: int) -> Moved:
    """A channel that came late by so many samples, put right; the ends of a log that is not periodic are not tried."""

    def moved(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        found = x[at]
        found[:, column] = x[(at + shift) % len(x), column]
        return np.asarray(found)

    return moved


def _least(shifts: list[int], values: list[float]) -> int | None:
    """Shift of the least value, by a parabola through it and its neighbours; None at the edge of the window."""
    order = np.argsort(shifts)
    x, y = np.asarray(shifts)[order], np.asarray(values)[order] ** 2
    best = int(np.argmin(y))
    if not 0 < best < len(x) - 1:
        return None
    curve = np.polyfit(x[best - 1 : best + 2] - x[best], y[best - 1 : best + 2], 2)
    return int(x[best] + round(-0.5 * curve[1] / curve[0])) if curve[0] > 0.0 else int(x[best])


def _mean(misfits: np.ndarray) -> float:
    return float(np.sqrt(np.mean(misfits**2)))
