"""Which channel of a log is wrong: turned, exchanged with another, late, or of another scale than the others.

Each such fault is tried by undoing it: the model is fitted again, and a channel is named where the misfit falls by a
stated factor. Friction that comes out negative names drives that nothing else tells (`faults.wrong_signs`).

Friction that turns round over some way after a reversal (presliding) looks late too. A delay is in all terms, inertia
and gravity too, and hysteresis in friction alone: both are fitted, and named is what explains more, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from tauloop.errors import Problem
from tauloop.identification.faults.measured_motion import Measured, Moved, exchanged, late_by, turned
from tauloop.identification.faults.misfits import ROUNDING, STEPS, Misfits, mean
from tauloop.identification.regression.data import Ties
from tauloop.model import Model
from tauloop.records import dataclass

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
#: A shift of a position by so many steps must lessen the misfit by this factor for further ones to be tried, unless a
#: force seems to have a fault.
NEAR, PROMISING = 2, 1.05
#: Hysteresis or delay: one has to lessen the misfit by this factor more than the other, and one beside the other by the
#: second.
CLEARLY, BESIDE = 1.2, 1.3
#: A scale is far from one beyond this factor either way.
SCALE = 1.5


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
    fit = Misfits(model, log, output, ties, step)
    problems: list[Problem] = []
    for _ in log.names if fit.can_tell else ():
        change = _best(fit)
        if change is None:
            break
        if not (presliding and change.is_hysteresis):
            problems.append(change.problem)
        fit = change.undone
    return tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Change:
    """A fault undone: what is left, and what to say of it."""

    misfit: float
    undone: Misfits
    problem: Problem
    is_hysteresis: bool = False


#: Where a fault is, what it is, and what to do about it.
_Said = tuple[str, str, str]


def _best(fit: Misfits) -> _Change | None:
    """The change that lessens the misfit most, if one does by enough."""
    if fit.misfit < ROUNDING:
        return None
    changes = _of_forces(fit)
    changes += _of_positions(fit, thorough=bool(changes))
    if not changes:
        return None
    change = min(changes, key=lambda candidate: candidate.misfit)
    others = {
        other.problem.where: other.problem.what.partition(":")[0]
        for other in changes
        if other.misfit <= ALIKE * change.misfit and other.problem.where != change.problem.where
    }
    if not others:
        return change
    what = f"{change.problem.what}; as well explained: " + ", or ".join(" ".join(pair) for pair in others.items())
    return replace(change, problem=replace(change.problem, what=what))


def _mixed_up(kind: str, names: Sequence[str], remedy: str, units: Mapping[str, str]) -> Iterator[tuple[Moved, _Said]]:
    """Turned channels of one kind, and exchanged ones that have one unit."""
    for k, name in enumerate(names):
        yield turned(k), (f"{kind}.{name}", "has the wrong sign: with it turned", remedy)
    for (i, first), (k, second) in combinations(enumerate(names), 2):
        if units.get(first) == units.get(second):
            what = f"is exchanged with {kind}.{second}: with them exchanged back"
            yield exchanged(i, k), (f"{kind}.{first}", what, "correct the columns' names")


def _of_forces(fit: Misfits) -> list[_Change]:
    log = fit.log
    every, changes = np.arange(len(log.forces)), list[_Change]()
    remedy = "turn the sign in the column's unit ('-1 N m'), or the actuator's ratio in the machine file"
    for change, words in _mixed_up("force", log.drives, remedy, {}):
        forces = change(log.forces, every)
        changes += _accepted(fit, fit.regressor, forces, partial(replace, forces=forces), words)
    for k, drive in enumerate(log.drives):
        scale = fit.scale(k)
        if scale is not None and max(scale, 1.0 / scale) > SCALE:
            what = f"is {1.0 / scale:.3g} times as large as suits the other forces: with it divided by that"
            remedy = "look at the units, the torque constant and the gear of this drive (or of the others)"
            forces = log.forces * np.where(np.arange(len(log.drives)) == k, scale, 1.0)
            words = f"force.{drive}", what, remedy
            scaled = _accepted(fit, fit.regressor, forces, partial(replace, forces=forces), words)
            changes += [candidate for candidate in scaled if candidate.misfit * WRONG <= fit.misfit]
    for k, drive in enumerate(log.drives):
        shifts = [n * fit.step for n in range(-STEPS[-1], STEPS[-1] + 1) if abs(n) * fit.step <= fit.reach]
        values = [fit.late(late_by(k, s)(log.forces, fit.at)) for s in shifts]
        shift = _least(shifts, values)
        if shift is not None and min(values) * LATE_ALL <= fit.misfit:
            changes += _late(fit, f"force.{drive}", shift, partial(Measured.late_force, column=k))
    return changes


def _of_positions(fit: Misfits, *, thorough: bool) -> list[_Change]:
    log, accepted = fit.log, list[_Change]()
    changes = list(_mixed_up("position", log.names, "turn the sign in the column's unit", fit.units))
    near = [(k, s) for k in range(len(log.names)) for s in (-NEAR * fit.step, NEAR * fit.step)]
    regressors = fit.regressors([change for change, _ in changes] + [late_by(k, s) for k, s in near])
    for (change, words), regressor in zip(changes, regressors, strict=False):
        if regressor is not None:
            accepted += _accepted(fit, regressor, log.forces, partial(Measured.moved, change=change), words)
    for k, name in enumerate(log.names):
        tried = {0: fit.misfit}
        for (column, s), regressor in zip(near, regressors[len(changes) :], strict=True):
            if column == k and regressor is not None:
                tried[s] = fit.misfit_of(regressor)
        if min(tried.values()) * PROMISING > fit.misfit and not thorough:
            continue
        _scan(fit, k, tried)
        shift = _least(list(tried), list(tried.values()))
        if shift is not None and min(tried.values()) * LATE_ALL <= fit.misfit:
            accepted += _late(fit, f"position.{name}", shift, partial(Measured.late_position, column=k))
    return accepted


def _scan(fit: Misfits, column: int, tried: dict[int, float]) -> None:
    """Misfits of further shifts of a position: doubled steps, then those about the best."""
    for steps in (STEPS, None):
        best = min(tried, key=lambda s: tried[s])
        sign = 1 if best > 0 else -1
        shifts = (
            [sign * n * fit.step for n in steps]
            if steps
            else sorted({round(best * share) for share in (0.625, 0.75, 0.875, 1.125, 1.25, 1.5)})
        )
        shifts = [s for s in shifts if s not in tried and abs(s) <= fit.reach]
        regressors = fit.regressors([late_by(column, s) for s in shifts])
        for s, regressor in zip(shifts, regressors, strict=True):
            if regressor is not None:
                tried[s] = fit.misfit_of(regressor)


def _late(fit: Misfits, where: str, shift: int, undo: Callable[..., Measured]) -> list[_Change]:
    """A delay that lessens the misfit enough, also where only the slow part of the log is looked at."""
    if abs(shift) < fit.step or abs(shift) <= 1:
        return []
    trials, slow = fit.again(undo(fit.log, shift=shift)), fit.again(fit.log.slow())
    slow_undone = fit.again(undo(slow.log, shift=shift))
    if not (trials.can_tell and slow.can_tell and slow_undone.can_tell) or slow_undone.misfit > slow.misfit:
        return []
    if trials.misfit * LATE_ALL > fit.misfit or np.all(trials.misfits * LATE_ONE > fit.misfits):
        return []
    drive = where.partition(".")[2]
    if drive in fit.log.names and drive in fit.log.drives and drive not in fit.ways:
        which = _late_or_turning(fit, drive, shift, undo)
        if which is None:
            return []  # both explain it alike
        if not isinstance(which, int):
            return _turning(fit, drive, *which, shift)
        shift = which
        trials = fit.again(undo(fit.log, shift=shift))
    ratios = fit.misfits / np.maximum(trials.misfits, ROUNDING)
    best = int(np.argmax(ratios))
    what = (
        f"comes {'behind' if shift > 0 else 'before'} the other channels by {abs(shift)} samples "
        f"({1e3 * abs(shift) * fit.log.step:.3g} ms): shifted back by that the relative misfit of one output "
        f"falls from {fit.misfits[best]:.3g} to {trials.misfits[best]:.3g}, of all from {fit.misfit:.3g} to "
        f"{trials.misfit:.3g}"
    )
    problem = Problem(where, what, "align the channels of the log")
    return [_Change(misfit=trials.misfit, undone=trials, problem=problem)]


def _late_or_turning(
    fit: Misfits, drive: str, shift: int, undo: Callable[..., Measured]
) -> int | tuple[float, np.ndarray] | None:
    """The delay, near a shift, or the way over which friction turns round and the misfits with it; or neither.

    Both are compared with friction at once beside the model's own, for that the shift must be right to a sample.
    """
    around = {shift: fit.again(undo(fit.log, shift=shift))}
    reach = fit.step
    while reach:
        best = min(around, key=lambda s: mean(around[s].with_friction(drive, None)))
        around |= {s: fit.again(undo(fit.log, shift=s)) for s in (best - reach, best + reach) if s not in around}
        reach //= 2
    best = min(around, key=lambda s: mean(around[s].with_friction(drive, None)))
    late, both = mean(around[best].with_friction(drive, None)), mean(around[best].best_way(drive)[1])
    way, turning = fit.best_way(drive)
    hysteresis = mean(turning)
    is_late, turns = hysteresis > BESIDE * both, late > BESIDE * min(both, hysteresis)
    if turns and (is_late or late > CLEARLY * hysteresis):
        return way, turning
    return best if is_late and hysteresis > CLEARLY * late else None


def _turning(fit: Misfits, drive: str, way: float, misfits: np.ndarray, shift: int) -> list[_Change]:
    """Friction that turns round over some way, if it lessens the misfit enough."""
    misfit = mean(misfits)
    best = int(np.argmax(fit.misfits / np.maximum(misfits, ROUNDING)))
    if misfit * LATE_ALL > fit.misfit or misfits[best] * LATE_ONE > fit.misfits[best]:
        return []
    unit = fit.units[drive]
    what = (
        f"has friction that turns round over {way:.2g} {unit} after a reversal, not at once: with it the relative "
        f"misfit of one output falls from {fit.misfits[best]:.3g} to {misfits[best]:.3g}, of all from "
        f"{fit.misfit:.3g} to {misfit:.3g}; no delay ({1e3 * abs(shift) * fit.log.step:.3g} ms) explains it"
    )
    problem = Problem(f"force.{drive}", what, f"fit it as well: --presliding {drive}")
    return [_Change(misfit=misfit, undone=fit.again(fit.log, {drive: way}), problem=problem, is_hysteresis=True)]


def _accepted(
    fit: Misfits, regressor: np.ndarray, forces: np.ndarray, undo: Callable[[Measured], Measured], words: _Said
) -> list[_Change]:
    """A change, by the regressor and forces that it makes, if it lessens the misfit enough."""
    misfits = fit.of(regressor, fit.forces(forces))
    misfit, (where, text, remedy) = mean(misfits), words
    best = int(np.argmax(fit.misfits / np.maximum(misfits, ROUNDING)))
    if misfit * WRONG <= fit.misfit:
        text += f" the relative misfit of all outputs falls from {fit.misfit:.3g} to {misfit:.3g}"
    elif misfit * ALL <= fit.misfit and misfits[best] * ONE <= fit.misfits[best]:
        text += (
            f" the relative misfit of one output falls from {fit.misfits[best]:.3g} to {misfits[best]:.3g}, "
            f"of all from {fit.misfit:.3g} to {misfit:.3g}"
        )
    else:
        return []
    return [_Change(misfit=misfit, undone=fit.again(undo(fit.log)), problem=Problem(where, text, remedy))]


def _least(shifts: list[int], values: list[float]) -> int | None:
    """Shift of the least value, by a parabola through it and its neighbours; None at the edge of the window."""
    order = np.argsort(shifts)
    x, y = np.asarray(shifts)[order], np.asarray(values)[order] ** 2
    best = int(np.argmin(y))
    if not 0 < best < len(x) - 1:
        return None
    curve = np.polyfit(x[best - 1 : best + 2] - x[best], y[best - 1 : best + 2], 2)
    return int(x[best] + round(-0.5 * curve[1] / curve[0])) if curve[0] > 0.0 else int(x[best])
