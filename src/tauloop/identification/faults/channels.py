"""Detection of wrong channels of a log: wrong sign, swapped, delayed, or with a wrong scale.

Each possible fault is corrected, and the model is fitted again. The channel is reported if the
misfit decreases by a minimum factor. If a wrong sign of a drive does not increase the misfit, it is
detected by negative friction (`faults.wrong_signs`).

Friction that builds up over some distance after a reversal of the motion (presliding, a hysteresis)
resembles a delay. A delay affects all terms, including inertia and gravity, whereas hysteresis
affects only friction. Both are fitted. A delay or hysteresis is only reported if it explains
clearly more than the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.faults.measured_motion import (
    ChannelChange,
    LogMotion,
    exchange_channels,
    scale_channel,
    scale_channels,
    shift_channel,
)
from tauloop.identification.faults.misfits import MISFIT_ROUNDING, SHIFT_STEPS, Misfits
from tauloop.identification.faults.recording.position_unit import POSSIBLE_UNITS
from tauloop.identification.regression.ties import Ties
from tauloop.model import Model

#: A wrong sign, swapped channels or a wrong scale are reported if the correction reduces the misfit
#: of all outputs by this factor.
MIN_MISFIT_FALL = 2.0
#: A wrong sign or swapped channels are also reported if the correction reduces the misfit of all
#: outputs by this factor and that of one output by `MIN_SINGLE_FALL`. On a measured arm whose model
#: leaves 17 % of the forces unexplained, the factors are 1.2 and 2.1 for a drive with a wrong sign,
#: and at most 1.03 for correct channels.
MIN_OVERALL_FALL = 1.1
#: The factor for the misfit of one output.
MIN_SINGLE_FALL = 1.4
#: Corrections whose misfits differ by less than this factor explain the log equally well. For equal
#: legs, for example, swapped forces are equivalent to swapped positions.
EQUAL_MISFIT_FACTOR = 1.2
#: A delay is reported if its correction reduces the misfit of all outputs by this factor and that
#: of one output by `MIN_DELAY_SINGLE_FALL`.
MIN_DELAY_OVERALL_FALL = 1.02
#: The factor for the misfit of one output.
MIN_DELAY_SINGLE_FALL = 1.25
#: A position is first shifted by this number of steps in both directions.
FIRST_SHIFT_STEPS = 2
#: Further shifts are tried if the first ones reduce the misfit by this factor, or if a force seems
#: to be faulty.
MIN_FIRST_SHIFT_FALL = 1.05
#: Hysteresis or delay is reported if the other leaves a misfit that is larger by this factor.
MIN_PREFERENCE = 1.2
#: Hysteresis is needed in addition to a delay, or the reverse, if it reduces the misfit by this
#: factor.
MIN_ADDITIONAL_FALL = 1.3
#: Other units are only tried if the relative misfit exceeds this value.
MIN_MISFIT_FOR_UNITS = 0.025
#: Sampling rates that are tried, as multiples of the log's sampling rate.
POSSIBLE_RATE_FACTORS = (0.1, 0.2, 0.25, 0.4, 0.5, 2.0, 2.5, 4.0, 5.0, 10.0)
#: A scale of a force is only tried if it differs from 1 by more than this factor.
MIN_SCALE_FACTOR = 1.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelFault:
    """A fault of a channel, with its correction.

    Attributes:
        misfit: misfit after the correction.
        corrected: the log after the correction.
        problem: the problem to report.
        alternatives: descriptions of faults of other channels that explain the log equally well, by
            channel.
        is_hysteresis: whether the fault is presliding friction.
        is_late: whether the fault is presliding friction or a delay.
    """

    misfit: float
    corrected: Misfits
    problem: Problem
    alternatives: Mapping[str, str] = field(default_factory=dict)
    is_hysteresis: bool = False
    is_late: bool = False

    @property
    def text(self) -> str:
        """Text with the channel and its fault, without the misfits."""
        return f"{self.problem.where} {self.problem.what.partition(':')[0]}"


def channel_faults(
    model: Model,
    log: LogMotion,
    *,
    output: str = "actuators",
    ties: Ties | None = None,
    step: int = 1,
    presliding: bool = False,
) -> tuple[ChannelFault, ...]:
    """Return channels with a wrong sign or scale, swapped channels, and delayed channels.

    The misfit of an output is the norm of its residual divided by the norm of its force. The misfit
    of all outputs is the root mean square of the outputs' misfits. Every change of a single force
    or position channel is tried, and every swap of two channels with the same unit. The change with
    the smallest misfit is applied and reported if it reduces the misfit enough (`MIN_MISFIT_FALL`,
    or `MIN_OVERALL_FALL` and `MIN_SINGLE_FALL`; for delays `MIN_DELAY_OVERALL_FALL` and
    `MIN_DELAY_SINGLE_FALL`). Then all changes are tried again.

    Args:
        model: the machine.
        log: motion and forces of the log.
        output: "actuators", or "joints" for forces on the driven coordinates.
        ties: relations between the parameters.
        step: shifts are multiples of this number of samples, up to 16 multiples. Shorter delays are
            not detected.
        presliding: whether presliding friction is fitted already, so that it is not reported.

    Returns:
        One fault for each wrong channel, with its misfit and with other faults that explain the
        log equally well. The result is empty if there are too few samples, or if actuators are
        redundant.
    """
    if model.assembly.is_redundant:
        # The outputs are combinations of all forces, and the combination depends on the position.
        return ()
    fit = Misfits(model, log, output, ties, step)
    faults: list[ChannelFault] = []
    for _ in log.names if fit.is_conclusive else ():
        fault = _best_fault(fit)
        if fault is None:
            break
        if not (presliding and fault.is_hysteresis):
            faults.append(fault)
        fit = fault.corrected
    return tuple(faults)


def wrong_channels(
    model: Model,
    log: LogMotion,
    *,
    output: str = "actuators",
    ties: Ties | None = None,
    step: int = 1,
) -> tuple[Problem, ...]:
    """Return the problems of `channel_faults`."""
    return tuple(
        fault.problem for fault in channel_faults(model, log, output=output, ties=ties, step=step)
    )


#: The three texts of a problem: where, what and remedy.
_ProblemTexts = tuple[str, str, str]


def _best_fault(fit: Misfits) -> ChannelFault | None:
    """Return the fault whose correction leaves the smallest misfit; None if no fault is certain."""
    if fit.misfit < MISFIT_ROUNDING:
        return None
    faults = _force_faults(fit)
    faults += _position_faults(fit, thorough=bool(faults))
    faults += _time_faults(fit)
    if not faults:
        return None
    best = min(faults, key=lambda candidate: candidate.misfit)
    alternatives: dict[str, str] = {}
    for other in faults:
        where = other.problem.where
        if other.misfit <= EQUAL_MISFIT_FACTOR * best.misfit and where != best.problem.where:
            alternatives[where] = other.text
    if not alternatives:
        return best
    what = f"{best.problem.what}; equally good explanation: {', or '.join(alternatives.values())}"
    return replace(best, problem=replace(best.problem, what=what), alternatives=alternatives)


def _sign_and_exchange_changes(
    quantity: str, names: Sequence[str], remedy: str, units: Mapping[str, str]
) -> Iterator[tuple[ChannelChange, _ProblemTexts]]:
    """Yield the sign change of each channel, and the swap of each pair with the same unit."""
    for k, name in enumerate(names):
        what = "has the wrong sign: after a change of sign"
        yield scale_channel(k, -1.0), (f"{quantity}.{name}", what, remedy)
    for (i, name), (k, other) in combinations(enumerate(names), 2):
        if units.get(name) == units.get(other):
            what = f"is swapped with {quantity}.{other}: after swapping them"
            remedy_names = "correct the columns' names"
            yield exchange_channels(i, k), (f"{quantity}.{name}", what, remedy_names)


def _force_faults(fit: Misfits) -> list[ChannelFault]:
    """Return the possible faults of single forces."""
    faults: list[ChannelFault] = []
    drives = fit.log.drives
    remedy = (
        "change the sign in the column's unit ('-1 N m'), or of the actuator's ratio in the "
        "machine file"
    )
    for change, texts in _sign_and_exchange_changes("force", drives, remedy, {}):
        misfits = fit.misfits_of(fit.regressor, fit.forces(change))
        faults += _fault_if_reduced(fit, "force", change, misfits, texts)
    for k, drive in enumerate(drives):
        scale = fit.best_scale(k)
        if scale is None or max(scale, 1.0 / scale) <= MIN_SCALE_FACTOR:
            continue
        change = scale_channel(k, scale)
        misfits = fit.misfits_of(fit.regressor, fit.forces(change))
        if overall(misfits) * MIN_MISFIT_FALL <= fit.misfit:
            texts = (
                f"force.{drive}",
                f"is {1.0 / scale:.3g} times as large as the other forces require: divided by this "
                "factor",
                "check the units, the torque constant and the gear of this drive (or of the others)",
            )
            faults += _fault_if_reduced(fit, "force", change, misfits, texts)
    largest = SHIFT_STEPS[-1]
    shifts = [n * fit.step for n in range(-largest, largest + 1) if abs(n) * fit.step <= fit.reach]
    for k in range(len(drives)):
        misfits_of_shifts = {shift: fit.misfit_of_late_force(k, shift) for shift in shifts}
        faults += _delay_fault(fit, "force", k, misfits_of_shifts)
    return faults


def _unit_faults(fit: Misfits) -> list[ChannelFault]:
    """Return positions that seem to have another unit than the declared unit.

    Any model fits a motion that is scaled down, because it is nearly linear. A unit that scales the
    motion down must therefore reduce the misfit by `MIN_MISFIT_FALL`.
    """
    if fit.misfit <= MIN_MISFIT_FOR_UNITS:
        return []
    faults: list[ChannelFault] = []
    changes = list(_unit_changes(fit))
    regressors = fit.regressors([change for change, _, _ in changes])
    for (change, texts, factor), regressor in zip(changes, regressors, strict=True):
        if regressor is None:
            continue
        misfits = fit.misfits_of(regressor, fit.forces())
        if factor > 1.0 or overall(misfits) * MIN_MISFIT_FALL <= fit.misfit:
            faults += _fault_if_reduced(fit, "position", change, misfits, texts)
    return faults


def _unit_changes(fit: Misfits) -> Iterator[tuple[ChannelChange, _ProblemTexts, float]]:
    """Yield changes of unit, of all positions of a dimension together and of each position alone.

    Each change comes with its texts and with the factor of the positions.
    """
    log = fit.log
    for unit, possible_units in POSSIBLE_UNITS.items():
        same_unit = [k for k, name in enumerate(log.names) if fit.units.get(name) == unit]
        groups = [same_unit] if len(same_unit) > 1 else []
        groups += [[k] for k in same_unit]
        for group in groups:
            where = " and ".join(f"position.{log.names[k]}" for k in group)
            verb = "seem" if len(group) > 1 else "seems"
            for actual, factor in possible_units.items():
                what = f"{verb} to be in {actual}, but the log states {unit}: in {actual}"
                column = f"position.{log.names[group[0]]} [{actual}]"
                remedy = f"correct the unit of the columns: '{column}'"
                yield scale_channels(group, factor), (where, what, remedy), factor


def _time_faults(fit: Misfits) -> list[ChannelFault]:
    """Return a wrong sampling rate, if another rate explains the log much better.

    With c times the sampling rate, velocities are c and accelerations c^2 times those of the log.
    Only parameters that act in several of these terms, such as masses with weight and inertia, show
    the difference.
    """
    if fit.misfit <= MIN_MISFIT_FOR_UNITS:
        return []
    log = fit.log
    tried: list[tuple[float, Misfits]] = []
    for factor in POSSIBLE_RATE_FACTORS:
        changed = replace(
            log, velocity=factor * log.velocity, acceleration=factor**2 * log.acceleration
        )
        corrected = fit.with_log(changed)
        if corrected.is_conclusive:
            tried.append((factor, corrected))
    if not tried:
        return []
    factor, corrected = min(tried, key=lambda pair: pair[1].misfit)
    if not fit.are_reduced(corrected.misfits, MIN_OVERALL_FALL, MIN_MISFIT_FALL):
        return []
    what = (
        f"has steps of {log.step:g} s, but they seem to be {log.step / factor:g} s long: with this "
        f"period {fit.describe_fall(corrected.misfits)}"
    )
    problem = Problem("time", what, "check the sampling rate, and the unit of the time column")
    return [ChannelFault(misfit=corrected.misfit, corrected=corrected, problem=problem)]


def _position_faults(fit: Misfits, *, thorough: bool) -> list[ChannelFault]:
    """Return the possible faults of positions; `thorough` tries all shifts of all positions."""
    log = fit.log
    faults: list[ChannelFault] = []
    changes = list(
        _sign_and_exchange_changes(
            "position", log.names, "change the sign in the column's unit", fit.units
        )
    )
    regressors = fit.regressors([change for change, _ in changes])
    for (change, texts), regressor in zip(changes, regressors, strict=True):
        if regressor is not None:
            misfits = fit.misfits_of(regressor, fit.forces())
            faults += _fault_if_reduced(fit, "position", change, misfits, texts)
    faults += _unit_faults(fit)
    first = FIRST_SHIFT_STEPS * fit.step
    for k in range(len(log.names)):
        misfits_of_shifts = {0: fit.misfit} | fit.misfits_of_shifts(k, (-first, first))
        is_promising = min(misfits_of_shifts.values()) * MIN_FIRST_SHIFT_FALL <= fit.misfit
        if is_promising or thorough:
            _try_further_shifts(fit, k, misfits_of_shifts)
            faults += _delay_fault(fit, "position", k, misfits_of_shifts)
    return faults


def _try_further_shifts(fit: Misfits, column: int, misfits_of_shifts: dict[int, float]) -> None:
    """Add misfits of further shifts of a position: doubled steps, then shifts near the best."""

    def add(shifts: Sequence[int]) -> None:
        untried = [s for s in shifts if s not in misfits_of_shifts and abs(s) <= fit.reach]
        misfits_of_shifts.update(fit.misfits_of_shifts(column, untried))

    best = min(misfits_of_shifts, key=misfits_of_shifts.__getitem__)
    sign = 1 if best > 0 else -1
    add([sign * n * fit.step for n in SHIFT_STEPS])
    best = min(misfits_of_shifts, key=misfits_of_shifts.__getitem__)
    add(sorted({round(best * factor) for factor in (0.625, 0.75, 0.875, 1.125, 1.25, 1.5)}))


def _delay_fault(
    fit: Misfits, quantity: str, column: int, misfits_of_shifts: Mapping[int, float]
) -> list[ChannelFault]:
    """Return the delay of a channel, or its hysteresis, if it reduces the misfit enough.

    A delay must also reduce the misfit of the slow part of the log.
    """
    shift = _best_shift(misfits_of_shifts)
    if shift is None or abs(shift) < max(fit.step, 2):
        return []
    if min(misfits_of_shifts.values()) * MIN_DELAY_OVERALL_FALL > fit.misfit:
        return []

    def shifted(unshifted: Misfits, shift: int) -> Misfits:
        """Return the misfits after a correction of the channel's delay."""
        return unshifted.with_log(unshifted.log.changed(quantity, shift_channel(column, shift)))

    corrected = shifted(fit, shift)
    slow = fit.with_log(fit.log.slow())
    slow_corrected = shifted(slow, shift)
    if not (corrected.is_conclusive and slow.is_conclusive and slow_corrected.is_conclusive):
        return []
    if slow_corrected.misfit > slow.misfit:
        return []
    if not fit.are_reduced(corrected.misfits, MIN_DELAY_OVERALL_FALL, MIN_DELAY_SINGLE_FALL):
        return []
    name = (fit.log.drives if quantity == "force" else fit.log.names)[column]
    has_both = name in fit.log.names and name in fit.log.drives
    if has_both and name not in fit.presliding_lengths:
        explanation = _delay_or_presliding(fit, name, shift, shifted)
        if explanation is None:
            return []
        if not isinstance(explanation, int):
            return _presliding_fault(fit, name, *explanation, shift)
        shift = explanation
        corrected = shifted(fit, shift)
    verb = "lags" if shift > 0 else "leads"
    what = (
        f"{verb} the other channels by {counted(abs(shift), 'sample')} "
        f"({1e3 * abs(shift) * fit.log.step:.3g} ms): with this shift corrected "
        f"{fit.describe_fall(corrected.misfits)}"
    )
    problem = Problem(f"{quantity}.{name}", what, "align the channels of the log")
    fault = ChannelFault(
        misfit=corrected.misfit, corrected=corrected, problem=problem, is_late=True
    )
    return [fault]


def _delay_or_presliding(
    fit: Misfits, drive: str, shift: int, shifted: Callable[[Misfits, int], Misfits]
) -> int | tuple[float, np.ndarray] | None:
    """Return the delay near a shift, in samples, or the presliding length and its misfits.

    Delay and presliding friction are compared in fits with additional Coulomb and viscous friction
    of the drive. For this comparison the delay must be accurate to one sample. The result is None
    if neither explains the force clearly better than the other.
    """
    fits = {shift: shifted(fit, shift)}

    def misfit_of(delay: int) -> float:
        return overall(fits[delay].misfits_with_friction(drive, None))

    reach = fit.step
    while reach:
        best = min(fits, key=misfit_of)
        for neighbor in (best - reach, best + reach):
            if neighbor not in fits:
                fits[neighbor] = shifted(fit, neighbor)
        reach //= 2
    best = min(fits, key=misfit_of)
    delay_alone = misfit_of(best)
    misfit_with_both = overall(fits[best].best_presliding(drive)[1])
    length, misfits = fit.best_presliding(drive)
    presliding_alone = overall(misfits)
    needs_delay = presliding_alone > MIN_ADDITIONAL_FALL * misfit_with_both
    needs_presliding = delay_alone > MIN_ADDITIONAL_FALL * min(misfit_with_both, presliding_alone)
    if needs_presliding and (needs_delay or delay_alone > MIN_PREFERENCE * presliding_alone):
        return length, misfits
    return best if needs_delay and presliding_alone > MIN_PREFERENCE * delay_alone else None


def _presliding_fault(
    fit: Misfits, drive: str, length: float, misfits: np.ndarray, shift: int
) -> list[ChannelFault]:
    """Return presliding friction of a drive, if it reduces the misfit enough."""
    if not fit.are_reduced(misfits, MIN_DELAY_OVERALL_FALL, MIN_DELAY_SINGLE_FALL):
        return []
    what = (
        f"has friction that builds up over {length:.2g} {fit.units[drive]} after a velocity "
        f"reversal, not immediately (presliding): with this friction {fit.describe_fall(misfits)}; "
        f"a delay ({1e3 * abs(shift) * fit.log.step:.3g} ms) does not explain it"
    )
    problem = Problem(f"force.{drive}", what, f"fit it as well: --presliding {drive}")
    fault = ChannelFault(
        misfit=overall(misfits),
        corrected=fit.with_log(fit.log, {drive: length}),
        problem=problem,
        is_hysteresis=True,
        is_late=True,
    )
    return [fault]


def _fault_if_reduced(
    fit: Misfits,
    quantity: str,
    change: ChannelChange,
    misfits: np.ndarray,
    texts: _ProblemTexts,
) -> list[ChannelFault]:
    """Return the fault that a change corrects, if the misfits with it are small enough."""
    misfit = overall(misfits)
    where, what, remedy = texts
    if misfit * MIN_MISFIT_FALL <= fit.misfit:
        what += f" the relative misfit of all outputs falls from {fit.misfit:.3g} to {misfit:.3g}"
    elif fit.are_reduced(misfits, MIN_OVERALL_FALL, MIN_SINGLE_FALL):
        what += f" {fit.describe_fall(misfits)}"
    else:
        return []
    corrected = fit.with_log(fit.log.changed(quantity, change))
    return [ChannelFault(misfit=misfit, corrected=corrected, problem=Problem(where, what, remedy))]


def _best_shift(misfits_of_shifts: Mapping[int, float]) -> int | None:
    """Return the shift at the minimum of a parabola through the smallest misfit and its neighbors.

    The result is None if the smallest misfit is at the first or the last shift.
    """
    x = np.array(sorted(misfits_of_shifts))
    y = np.array([misfits_of_shifts[shift] for shift in x.tolist()]) ** 2
    best = int(np.argmin(y))
    if not 0 < best < len(x) - 1:
        return None
    rows = slice(best - 1, best + 2)
    curvature, slope, _ = np.polyfit(x[rows] - x[best], y[rows], 2)
    if curvature <= 0.0:
        return int(x[best])
    return int(x[best] + round(-0.5 * slope / curvature))
