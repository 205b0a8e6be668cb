"""Which channel of a log is wrong: turned, exchanged with another, late, or of another scale than the others.

Each such fault is tried by undoing it: the model is fitted again, and a channel is named where the
misfit falls by a stated factor. Friction that comes out negative names drives that nothing else
tells (`faults.wrong_signs`).

Friction that turns round over some way after a reversal (presliding) looks late too. A delay is in
all terms, inertia and gravity too, and hysteresis in friction alone: both are fitted, and named is
what explains more, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.faults.measured_motion import (
    Measured,
    Moved,
    all_scaled,
    exchanged,
    late_by,
    scaled,
)
from tauloop.identification.faults.misfits import ROUNDING, STEPS, Misfits
from tauloop.identification.regression.ties import Ties
from tauloop.model import Model

#: A sign, an exchange or a scale is wrong where undoing it lessens the misfit of all outputs by
#: this factor ...
WRONG = 2.0
#: ... or, but for scales, that of all by the first and of one by the second: on a measured arm
#: whose model leaves 17 % of the forces unexplained a turned drive has 1.2 and 2.1, and what is
#: right has 1.03 at most.
ALL, ONE = 1.1, 1.4
#: Changes whose misfits differ by less than this factor explain the same: of equal legs exchanged
#: forces are exchanged positions.
ALIKE = 1.2
#: A delay is one where undoing it lessens the misfit of all outputs by the first factor and of one
#: by the second, ...
LATE_ALL, LATE_ONE = 1.02, 1.25
#: A shift of a position by so many steps must lessen the misfit by this factor for further ones to
#: be tried, unless a force seems to have a fault.
NEAR, PROMISING = 2, 1.05
#: Hysteresis or delay: one has to lessen the misfit by this factor more than the other, and one
#: beside the other by the second.
CLEARLY, BESIDE = 1.2, 1.3
#: Units that positions may be in, by the unit that they are declared in, and how much of it is one
#: of them; and the misfit above which they are tried.
UNITS: Mapping[str, Mapping[str, float]] = {
    "rad": {"deg": np.pi / 180.0, "rev": 2.0 * np.pi, "mrad": 1e-3},
    "m": {"mm": 1e-3, "um": 1e-6},
}
BAD_UNITS = 0.025
#: A scale is far from one beyond this factor either way.
SCALE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelFault:
    """A fault of a channel, undone.

    Attributes:
        misfit: what is left.
        undone: the log without it.
        problem: the finding.
        is_hysteresis: whether it is friction that turns round over some length.
        is_late: whether it is that, or a delay.
    """

    misfit: float
    undone: Misfits
    problem: Problem
    is_hysteresis: bool = False
    is_late: bool = False


def channel_faults(
    model: Model,
    log: Measured,
    *,
    output: str = "actuators",
    ties: Ties | None = None,
    step: int = 1,
    presliding: bool = False,
) -> tuple[ChannelFault, ...]:
    """Find channels that are turned, exchanged, late or of another scale than the others, one after the other.

    The misfit of an output is the norm of its residual over that of its force, of all outputs the
    root of the mean square. Tried is every change of a single channel of force or position, and
    every exchange of two of one unit; the one with the least misfit is undone and named if that
    lessens the misfit enough (`WRONG`, or `ALL` and `ONE`; of delays `LATE_ALL` and `LATE_ONE`),
    and all are tried again.

    Args:
        model: the machine.
        log: its motion and forces.
        output: of `regressor_rows`.
        ties: relations between the parameters.
        step: shifts are multiples of so many samples, up to 16 of them, and no delay is less than
            one.
        presliding: whether friction that turns round over some way is fitted already, so that it
            need not be named.

    Returns:
        One for each, with the figures, and with other changes that explain it as well; none where
        there are too few samples, or actuators are redundant.
    """
    if model.assembly.is_redundant:
        return ()  # the rows are resultants of all forces, whose shares depend on the positions
    fit = Misfits(model, log, output, ties, step)
    faults: list[ChannelFault] = []
    for _ in log.names if fit.can_tell else ():
        change = _best(fit)
        if change is None:
            break
        if not (presliding and change.is_hysteresis):
            faults.append(change)
        fit = change.undone
    return tuple(faults)


def wrong_channels(
    model: Model,
    log: Measured,
    *,
    output: str = "actuators",
    ties: Ties | None = None,
    step: int = 1,
) -> tuple[Problem, ...]:
    """The findings of `channel_faults`."""
    return tuple(
        fault.problem for fault in channel_faults(model, log, output=output, ties=ties, step=step)
    )


#: Where a fault is, what it is, and what to do about it.
_Said = tuple[str, str, str]


def _best(fit: Misfits) -> ChannelFault | None:
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
    what = f"{change.problem.what}; as well explained: " + ", or ".join(
        " ".join(pair) for pair in others.items()
    )
    return replace(change, problem=replace(change.problem, what=what))


def _mixed_up(
    kind: str, names: Sequence[str], remedy: str, units: Mapping[str, str]
) -> Iterator[tuple[Moved, _Said]]:
    """Turned channels of one kind, and exchanged ones that have one unit."""
    for k, name in enumerate(names):
        yield scaled(k, -1.0), (f"{kind}.{name}", "has the wrong sign: with it turned", remedy)
    for (i, name), (k, other) in combinations(enumerate(names), 2):
        if units.get(name) == units.get(other):
            what = f"is exchanged with {kind}.{other}: with them exchanged back"
            yield exchanged(i, k), (f"{kind}.{name}", what, "correct the columns' names")


def _of_forces(fit: Misfits) -> list[ChannelFault]:
    accepted, drives = list[ChannelFault](), fit.log.drives
    remedy = (
        "turn the sign in the column's unit ('-1 N m'), or the actuator's ratio in the machine file"
    )
    for change, texts in _mixed_up("force", drives, remedy, {}):
        accepted += _accepted(
            fit, "force", change, fit.of(fit.regressor, fit.forces(change)), texts
        )
    for k, drive in enumerate(drives):
        scale = fit.scale(k)
        if scale is not None and max(scale, 1.0 / scale) > SCALE:
            what = f"is {1.0 / scale:.3g} times as large as suits the other forces: with it divided by that"
            remedy = "look at the units, the torque constant and the gear of this drive (or of the others)"
            misfits = fit.of(fit.regressor, fit.forces(scaled(k, scale)))
            if overall(misfits) * WRONG <= fit.misfit:
                accepted += _accepted(
                    fit, "force", scaled(k, scale), misfits, (f"force.{drive}", what, remedy)
                )
    shifts = [
        n * fit.step for n in range(-STEPS[-1], STEPS[-1] + 1) if abs(n) * fit.step <= fit.reach
    ]
    for k in range(len(drives)):
        accepted += _late(fit, "force", k, {s: fit.late(k, s) for s in shifts})
    return accepted


def _of_units(fit: Misfits) -> list[ChannelFault]:
    """Positions declared in a unit that they are not in.

    A motion made smaller is nearly linear, which any model fits: it must lessen the misfit by
    `WRONG`.
    """
    accepted = list[ChannelFault]()
    changes = list(_in_other_units(fit)) if fit.misfit > BAD_UNITS else []
    regressors = fit.regressors([change for change, _, _ in changes])
    for (change, texts, factor), regressor in zip(changes, regressors, strict=True):
        misfits = None if regressor is None else fit.of(regressor, fit.forces())
        if misfits is not None and (factor > 1.0 or overall(misfits) * WRONG <= fit.misfit):
            accepted += _accepted(fit, "position", change, misfits, texts)
    return accepted


def _in_other_units(fit: Misfits) -> Iterator[tuple[Moved, _Said, float]]:
    """Positions of one dimension, all and each, and the factor of the unit that they may be in."""
    log = fit.log
    for unit, wrong in UNITS.items():
        alike = [k for k, name in enumerate(log.names) if fit.units.get(name) == unit]
        groups = [alike] if len(alike) > 1 else []
        for group in (*groups, *([k] for k in alike)):
            where = " and ".join(f"position.{log.names[k]}" for k in group)
            for actual, factor in wrong.items():
                remedy = (
                    f"correct the unit of the columns: 'position.{log.names[group[0]]} [{actual}]'"
                )
                verb = "seem" if len(group) > 1 else "seems"
                what = f"{verb} to be in {actual} where the log has {unit}: with that"
                yield all_scaled(group, factor), (where, what, remedy), factor


def _of_positions(fit: Misfits, *, thorough: bool) -> list[ChannelFault]:
    log, accepted = fit.log, list[ChannelFault]()
    changes = list(
        _mixed_up("position", log.names, "turn the sign in the column's unit", fit.units)
    )
    regressors = fit.regressors([change for change, _ in changes])
    for (change, texts), regressor in zip(changes, regressors, strict=True):
        if regressor is not None:
            accepted += _accepted(fit, "position", change, fit.of(regressor, fit.forces()), texts)
    accepted += _of_units(fit)
    for k in range(len(log.names)):
        tried = {0: fit.misfit} | fit.shifted(k, (-NEAR * fit.step, NEAR * fit.step))
        if min(tried.values()) * PROMISING <= fit.misfit or thorough:
            _scan(fit, k, tried)
            accepted += _late(fit, "position", k, tried)
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
        tried |= fit.shifted(column, [s for s in shifts if s not in tried and abs(s) <= fit.reach])


def _late(fit: Misfits, kind: str, column: int, tried: Mapping[int, float]) -> list[ChannelFault]:
    """A delay that lessens the misfit enough, also where only the slow part of the log is looked at."""
    shift = _least(tried)
    if (
        shift is None
        or min(tried.values()) * LATE_ALL > fit.misfit
        or abs(shift) < max(fit.step, 2)
    ):
        return []

    def undone(of: Misfits, s: int) -> Misfits:
        return of.again(of.log.changed(kind, late_by(column, s)))

    trials, slow = undone(fit, shift), fit.again(fit.log.slow())
    slow_undone = undone(slow, shift)
    if (
        not (trials.can_tell and slow.can_tell and slow_undone.can_tell)
        or slow_undone.misfit > slow.misfit
    ):
        return []
    if not fit.lessened(trials.misfits, LATE_ALL, LATE_ONE):
        return []
    name = (fit.log.drives if kind == "force" else fit.log.names)[column]
    if name in fit.log.names and name in fit.log.drives and name not in fit.ways:
        which = _late_or_turning(fit, name, shift, undone)
        if which is None:
            return []  # both explain it alike
        if not isinstance(which, int):
            return _turning(fit, name, *which, shift)
        shift = which
        trials = undone(fit, shift)
    what = (
        f"comes {'behind' if shift > 0 else 'before'} the other channels by {abs(shift)} samples "
        f"({1e3 * abs(shift) * fit.log.step:.3g} ms): shifted back by that {fit.fall(trials.misfits)}"
    )
    problem = Problem(f"{kind}.{name}", what, "align the channels of the log")
    return [ChannelFault(misfit=trials.misfit, undone=trials, problem=problem, is_late=True)]


def _late_or_turning(
    fit: Misfits, drive: str, shift: int, undone: Callable[[Misfits, int], Misfits]
) -> int | tuple[float, np.ndarray] | None:
    """The delay, near a shift, or the way over which friction turns round and the misfits with it; or neither.

    Both are compared with friction at once beside the model's own, for that the shift must be right
    to a sample.
    """
    around = {shift: undone(fit, shift)}
    reach = fit.step
    while reach:
        best = min(around, key=lambda s: overall(around[s].with_friction(drive, None)))
        around |= {s: undone(fit, s) for s in (best - reach, best + reach) if s not in around}
        reach //= 2
    best = min(around, key=lambda s: overall(around[s].with_friction(drive, None)))
    late, both = (
        overall(around[best].with_friction(drive, None)),
        overall(around[best].best_way(drive)[1]),
    )
    way, turning = fit.best_way(drive)
    hysteresis = overall(turning)
    is_late, turns = hysteresis > BESIDE * both, late > BESIDE * min(both, hysteresis)
    if turns and (is_late or late > CLEARLY * hysteresis):
        return way, turning
    return best if is_late and hysteresis > CLEARLY * late else None


def _turning(
    fit: Misfits, drive: str, way: float, misfits: np.ndarray, shift: int
) -> list[ChannelFault]:
    """Friction that turns round over some way, if it lessens the misfit enough."""
    if not fit.lessened(misfits, LATE_ALL, LATE_ONE):
        return []
    what = (
        f"has friction that turns round over {way:.2g} {fit.units[drive]} after a reversal, not at once: with it "
        f"{fit.fall(misfits)}; no delay ({1e3 * abs(shift) * fit.log.step:.3g} ms) explains it"
    )
    problem = Problem(f"force.{drive}", what, f"fit it as well: --presliding {drive}")
    return [
        ChannelFault(
            misfit=overall(misfits),
            undone=fit.again(fit.log, {drive: way}),
            problem=problem,
            is_hysteresis=True,
            is_late=True,
        )
    ]


def _accepted(
    fit: Misfits, kind: str, change: Moved, misfits: np.ndarray, texts: _Said
) -> list[ChannelFault]:
    """A change of the channels of a kind, by the misfits with it, if these are enough less."""
    misfit, (where, text, remedy) = overall(misfits), texts
    if misfit * WRONG <= fit.misfit:
        text += f" the relative misfit of all outputs falls from {fit.misfit:.3g} to {misfit:.3g}"
    elif fit.lessened(misfits, ALL, ONE):
        text += f" {fit.fall(misfits)}"
    else:
        return []
    undone = fit.again(fit.log.changed(kind, change))
    return [ChannelFault(misfit=misfit, undone=undone, problem=Problem(where, text, remedy))]


def _least(tried: Mapping[int, float]) -> int | None:
    """Shift of the least value, by a parabola through it and its neighbours; None at the edge of the window."""
    x = np.array(sorted(tried))
    y = np.array([tried[s] for s in x.tolist()]) ** 2
    best = int(np.argmin(y))
    if not 0 < best < len(x) - 1:
        return None
    curve = np.polyfit(x[best - 1 : best + 2] - x[best], y[best - 1 : best + 2], 2)
    return int(x[best] + round(-0.5 * curve[1] / curve[0])) if curve[0] > 0.0 else int(x[best])
