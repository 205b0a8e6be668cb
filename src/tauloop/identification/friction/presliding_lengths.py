"""Presliding lengths, chosen by validation.

A presliding length is the displacement over which friction reverses after a velocity reversal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tauloop.common.errors import IdentificationError, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.block_fits import BLOCKS_PER_LOG, BlockFits, gained, pooled
from tauloop.identification.estimation.estimators import WeightedLeastSquares
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.estimation.fitting import fit_regression
from tauloop.identification.estimation.result import Identification
from tauloop.identification.friction.element_motion import ElementMotion
from tauloop.identification.friction.presliding import (
    PreslidingElement,
    initial_state_decay,
    presliding_columns,
)
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.streaming import merge_data, split_each

#: Lengths of the first trials, as fractions of an element's stroke.
FIRST_LENGTH_FRACTIONS = tuple(np.geomspace(1e-4, 0.2, 7).tolist())
#: Lengths of further rounds, as multiples of the best length so far.
LENGTH_REFINEMENT_FACTORS = ((0.53, 1.9), (0.73, 1.37), (0.85, 1.17), (0.94, 1.06))
#: Number of the last, finest rounds that refine a length which is already close to the best length.
FINEST_ROUNDS = 2
#: Ratio of neighboring lengths after the last refinement.
LENGTH_RESOLUTION = LENGTH_REFINEMENT_FACTORS[-1][-1]
#: Two lengths count as equal if their ratio is at most this value.
LENGTH_TOLERANCE = 1.01
#: A length is chosen if it reduces the error of an output over all blocks by this fraction, and in
#: every block.
MIN_PRESLIDING_GAIN = 0.02
#: Errors below this value, % of the largest force, are due to filters on a log without noise.
NEGLIGIBLE_ERROR = 1e-4
#: A standard deviation from 6 blocks is multiplied by this factor, so that an interval of plus or
#: minus 1.96 standard deviations contains 95 % (Student's distribution with 5 degrees of freedom).
JACKKNIFE_FACTOR = 1.31
#: The motion between two samples is assumed to be monotonic. This assumption changes the lengths by
#: an amount proportional to the square of the sampling period. The search is repeated with this
#: number of steps between samples to measure the change.
SUBSTEPS = 2
#: Factor from the measured change to the whole change (Richardson extrapolation).
SAMPLING_FACTOR = 1.0 / (1.0 - 1.0 / SUBSTEPS**2)
#: Number of fixed-point steps to the length whose simulated measurements give the length that fits
#: the log best.
CORRECTION_STEPS = 2
#: Maximum number of sweeps over all elements.
MAX_LENGTH_SWEEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PreslidingChoice(ReprMixin):
    """Presliding lengths that were chosen by validation, with the validation errors.

    The state of an element is its friction force divided by the Coulomb friction, -1 to 1.

    Attributes:
        lengths: presliding lengths, over which friction reverses, m or rad, by element. Elements
            for which no length reduces the error are not included.
        deviations: standard deviations of the searched lengths, m or rad, by element. They contain
            a jackknife over the blocks of the logs, the correction for errors of the motion, and
            the effect of the sampling period.
        staying: elements in `lengths` whose friction acts also at standstill. The friction of
            other elements is zero at standstill.
        starts: initial states, at the first sample of each log, by element, from a fit to all
            blocks.
        without: elements for which no length reduces the error.
        errors: validation errors without any presliding friction, and with the chosen lengths, %
            of each output's largest force (root mean square over outputs).
        stated: elements whose length was given by the user.
    """

    lengths: Mapping[str, float]
    deviations: Mapping[str, float]
    staying: tuple[str, ...]
    starts: tuple[Mapping[str, float], ...]
    without: tuple[str, ...]
    errors: tuple[float, float]
    stated: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepeatedMeasurement:
    """A simulated measurement of a log (see `measured_again`).

    The motion of the log is treated as exact, and measured and prepared again.

    Attributes:
        exact: regression data and element motion without measurement errors.
        measured: regression data and element motion after the simulated measurement and
            preparation.
    """

    exact: tuple[RegressionData, ElementMotion]
    measured: tuple[RegressionData, ElementMotion]


@solving(IdentificationError)
def choose_presliding(
    parts: Sequence[RegressionData],
    motions: Sequence[ElementMotion],
    names: Sequence[str],
    *,
    stated: Mapping[str, float] | None = None,
    share: float = 0.7,
    again: Sequence[RepeatedMeasurement] = (),
) -> PreslidingChoice:
    """Return the presliding lengths that reduce the validation error in every part of the logs.

    Lengths are tried for one element after another. Each block of the logs (`BlockFits`) is
    predicted by a fit to all other blocks. A length is chosen if the error of the output that
    improves most falls by `MIN_PRESLIDING_GAIN` over all blocks, falls in each block, and if the
    errors of other outputs do not grow too much (`Gain.is_fair`). The longest length is never
    chosen, because such a slow change is not friction after a reversal. Friction acts at standstill
    only if this reduces the error by `MIN_PRESLIDING_GAIN` again. The initial states are estimated
    after each sweep over the elements; wrong initial states make the lengths of slow motions too
    short.

    Args:
        parts: regression data of each log; their held-out parts are not used.
        motions: motions of the same logs, with the same preparation.
        names: elements whose length is searched.
        stated: lengths of other elements, m or rad.
        share: fraction of each log before its held-out part.
        again: simulated measurements with which lengths are corrected for the errors of the motion:
            the same number for each log, in the order of the logs.

    Raises:
        IdentificationError: the data cannot support the identification.
    """
    before = split_each(parts, share)[0] if share < 1.0 else list(parts)
    result = fit_regression(merge_data(before), None, WeightedLeastSquares())
    fits = BlockFits.of(before, result)
    search = _LengthSearch(fits, motions, dict(stated or {}))
    errors_without = search.errors({}, ())
    search.estimate_initial_states()
    for name in tuple(search.lengths):
        search.choose_standstill(name)
    for _ in range(MAX_LENGTH_SWEEPS):
        changes = [search.choose_length(name) for name in names]
        if not any(changes):
            break
        search.estimate_initial_states()
    if again and search.lengths:
        _correct_lengths(search, again, result, share, names)
    errors_with = search.errors(search.lengths, search.staying)
    return PreslidingChoice(
        lengths=search.lengths,
        deviations={name: search.deviations[name] for name in names if name in search.lengths},
        staying=tuple(sorted(search.staying)),
        starts=tuple(search.initial_states),
        without=tuple(name for name in names if name not in search.lengths),
        errors=(overall(errors_without), overall(errors_with)),
        stated=tuple(stated or ()),
    )


def _correct_lengths(
    search: _LengthSearch,
    simulated: Sequence[RepeatedMeasurement],
    result: Identification,
    share: float,
    names: Sequence[str],
) -> None:
    """Correct searched lengths for the errors of the motion, and add corrections to the deviations.

    Errors of the motion at reversals change the length that fits best. The same search in simulated
    measurements with known lengths determines this change (Gourieroux, Monfort and Renault 1993,
    Indirect inference). The simulated errors are only similar to those of the log, so the standard
    deviation contains the whole correction. It also contains the change of the length due to the
    discretization of reversals between samples.
    """
    exact_logs = [entry.exact[0] for entry in simulated]
    measured_logs = [entry.measured[0] for entry in simulated]
    if share < 1.0:
        exact_logs = split_each(exact_logs, share)[0]
        measured_logs = split_each(measured_logs, share)[0]
    exact = BlockFits.of(exact_logs, result)
    measured = BlockFits.of(measured_logs, result)
    best = {name: search.lengths[name] for name in names if name in search.lengths}
    for _ in range(CORRECTION_STEPS):
        simulated_search = search.simulated(exact, measured, simulated)
        for name, length in best.items():
            search.lengths[name] *= length / simulated_search.best_length(name)
    finer = search.with_substeps(SUBSTEPS)
    for name, length in best.items():
        corrected = search.lengths[name]
        sampling_error = SAMPLING_FACTOR * np.log(
            finer.best_length(name) / search.best_length(name)
        )
        correction = np.log(corrected / length)
        relative_errors = (search.deviations[name] / length, correction, sampling_error)
        search.deviations[name] = corrected * float(np.linalg.norm(relative_errors))
    search.estimate_initial_states()


class _LengthSearch:
    """State of the search for presliding lengths.

    Attributes:
        lengths: lengths so far, m or rad, by element.
        deviations: their standard deviations, m or rad, by element.
        staying: elements whose friction acts also at standstill.
        initial_states: states at the first sample of each log, by element.
    """

    def __init__(
        self, fits: BlockFits, motions: Sequence[ElementMotion], lengths: dict[str, float]
    ) -> None:
        """Start with the given lengths and zero initial states."""
        self._fits = fits
        self._motions = motions
        self._scales = fits.largest
        self.lengths = lengths
        self.deviations: dict[str, float] = {}
        self.staying: set[str] = set()
        self.initial_states: list[dict[str, float]] = [{} for _ in motions]
        self._substeps = 1
        self._elements: dict[tuple[int, str], PreslidingElement] = {}
        self._last: dict[tuple[int, str], tuple[tuple[float, bool, float], np.ndarray]] = {}
        self._strokes: dict[str, float] = {}
        self._effects: dict[str, np.ndarray] = {}
        self._last_others: tuple[tuple[object, ...], BlockFits] | None = None

    def errors(self, lengths: Mapping[str, float], staying: Collection[str]) -> np.ndarray:
        """Return the held-out errors (BLOCKS_PER_LOG, n_kept), % of each output's largest force.

        `NEGLIGIBLE_ERROR` is added in quadrature, so that changes of smaller errors do not matter.
        """
        columns = None
        if lengths:
            logs = range(len(self._motions))
            columns = [self._columns_of_log(number, lengths, staying) for number in logs]
        return self._percent(self._fits.errors(columns))

    def _percent(self, errors: np.ndarray) -> np.ndarray:
        """Convert errors (BLOCKS_PER_LOG, n_kept) from SI to % of each output's largest force.

        `NEGLIGIBLE_ERROR` is added in quadrature.
        """
        return np.hypot(100.0 * errors / self._scales, NEGLIGIBLE_ERROR)

    def _fits_with_others(self, name: str) -> BlockFits:
        """Return the fits with the columns of all elements except `name`.

        Trials of this element then only add its own column.
        """
        others = {other: length for other, length in self.lengths.items() if other != name}
        if not others:
            return self._fits
        logs = range(len(self._motions))
        initial_states = [
            self.initial_states[number].get(other, 0.0) for number in logs for other in others
        ]
        stays = [other in self.staying for other in others]
        arguments = (*others.items(), *stays, *initial_states)
        if self._last_others is None or self._last_others[0] != arguments:
            columns = [self._columns_of_log(number, others, self.staying) for number in logs]
            self._last_others = arguments, self._fits.with_columns(columns)
        return self._last_others[1]

    def _errors_of(self, fits: BlockFits, name: str, length: float, stays: bool) -> np.ndarray:
        """Return the errors of fits with the column of an additional element."""
        logs = range(len(self._motions))
        columns = [self._column(number, name, length, stays) for number in logs]
        return self._percent(fits.errors(columns))

    def _columns_of_log(
        self, number: int, lengths: Mapping[str, float], staying: Collection[str]
    ) -> np.ndarray:
        """Return the columns (N, n_out, n) of elements in a log."""
        columns = [
            self._column(number, name, length, name in staying) for name, length in lengths.items()
        ]
        return np.concatenate(columns, axis=2)

    def _column(self, number: int, name: str, length: float, stays: bool) -> np.ndarray:
        """Return the column (N, n_out, 1) of an element in a log, from the cache if possible."""
        start = self.initial_states[number].get(name, 0.0)
        arguments = (length, stays, start)
        last = self._last.get((number, name))
        if last is not None and last[0] == arguments:
            return last[1]
        if (number, name) not in self._elements:
            self._elements[number, name] = PreslidingElement(
                self._motions[number], name, substeps=self._substeps
            )
        column = self._elements[number, name].column(length, stays=stays, start=start)
        self._last[number, name] = (arguments, column)
        return column

    def estimate_initial_states(self) -> None:
        """Estimate the states at the first samples of all logs, by one fit to all blocks.

        The state is linear in its initial value. The decay of the initial value is therefore an
        additional column for each element and log, which is zero in other logs.
        """
        names = tuple(self.lengths)
        if not names:
            return
        count = len(names)
        lengths = np.array(list(self.lengths.values()))
        log_count = len(self._motions)
        columns = []
        for number, motion in enumerate(self._motions):
            states, _, _ = presliding_columns(motion, self.lengths, self.staying)
            speed, rows = motion.of(names)
            decay = initial_state_decay(speed, motion.period, lengths)
            decay_columns = np.zeros((*states.shape[:2], count * log_count))
            log_columns = slice(count * number, count * (number + 1))
            decay_columns[:, :, log_columns] = motion.decimated(rows * decay[:, None, :])
            columns.append(np.concatenate([states, decay_columns], axis=2))
        _, values = self._fits.both(columns)
        # The last values are the friction levels of the elements, followed for each log by the
        # products of friction level and initial state.
        added = values[-count * (1 + log_count) :].reshape(1 + log_count, count)
        levels = added[0]
        for initial_states, products in zip(self.initial_states, added[1:], strict=True):
            for name, level, product in zip(names, levels.tolist(), products.tolist(), strict=True):
                state = product / level if level > 0.0 else 0.0
                initial_states[name] = float(np.clip(state, -1.0, 1.0))

    def choose_length(self, name: str) -> bool:
        """Choose the length of an element, and return whether it has changed."""
        if name not in self._strokes:
            self._strokes[name] = max(motion.stroke(name) for motion in self._motions)
        stroke = self._strokes[name]
        before = self.lengths.get(name)
        stayed_before = name in self.staying
        others = {other: length for other, length in self.lengths.items() if other != name}
        self.lengths = others
        self.staying = self.staying - {name}
        if stroke <= 0.0:
            return before is not None
        errors_without = self._percent(self._fits_with_others(name).errors())
        if before is None:
            first = [fraction * stroke for fraction in FIRST_LENGTH_FRACTIONS]
            moving_trials = self._first_trials(name, False, first)
            staying_trials = self._first_trials(name, True, first)
            stays = staying_trials.error < (1.0 - MIN_PRESLIDING_GAIN) * moving_trials.error
            trials = staying_trials if stays else moving_trials
            trials.refine(*LENGTH_REFINEMENT_FACTORS)
        else:
            stays = stayed_before
            trials = self._first_trials(name, stays, [before])
            trials.refine_near()
        deviation = trials.interpolate()
        is_short = trials.best < FIRST_LENGTH_FRACTIONS[-1] * stroke
        if is_short and _is_better(trials.best_errors, errors_without):
            self.lengths = others | {name: trials.best}
            self.deviations[name] = deviation
            self.choose_standstill(name)
        after = self.lengths.get(name)
        if before is None or after is None:
            return before != after
        has_changed = max(before, after) > LENGTH_TOLERANCE * min(before, after)
        return has_changed or stayed_before != (name in self.staying)

    def simulated(
        self, exact: BlockFits, measured: BlockFits, simulated: Sequence[RepeatedMeasurement]
    ) -> _LengthSearch:
        """Return a search in simulated measurements, with friction of this search's lengths.

        Args:
            exact: fits along the exact motions; the forces of these fits are not used.
            measured: fits along the measured motions; the forces of these fits are replaced.
            simulated: the simulated measurements.
        """
        repeats = len(simulated) // len(self._motions)
        initial_states = [states for states in self.initial_states for _ in range(repeats)]
        columns = self._columns(self._motions, self.initial_states)
        exact_motions = [entry.exact[1] for entry in simulated]
        exact_columns = self._columns(exact_motions, initial_states)
        _, values = self._fits.both(columns)
        forces = exact.predicted(exact_columns, values)
        motions = [entry.measured[1] for entry in simulated]
        other = _LengthSearch(measured.with_forces(forces), motions, dict(self.lengths))
        other.staying = set(self.staying)
        other.initial_states = [dict(states) for states in initial_states]
        return other

    def _columns(
        self, motions: Sequence[ElementMotion], initial_states: Sequence[Mapping[str, float]]
    ) -> list[np.ndarray]:
        """Return the columns (N, n_out, n) of all elements along motions with initial states."""
        return [
            presliding_columns(motion, self.lengths, self.staying, states)[0]
            for motion, states in zip(motions, initial_states, strict=True)
        ]

    def with_substeps(self, substeps: int) -> _LengthSearch:
        """Return a search from the same lengths with several steps between two samples."""
        other = _LengthSearch(self._fits, self._motions, dict(self.lengths))
        other.staying = set(self.staying)
        other.initial_states = [dict(states) for states in self.initial_states]
        other._substeps = substeps
        return other

    def best_length(self, name: str) -> float:
        """Return the length with the smallest error near an element's present length."""
        trials = self._first_trials(name, name in self.staying, [self.lengths[name]])
        trials.refine_near()
        trials.interpolate()
        return trials.best

    def _first_trials(self, name: str, stays: bool, first: Sequence[float]) -> _LengthTrials:
        """Return the trials of an element, with the errors of the first lengths."""
        fits = self._fits_with_others(name)
        weights = self._weights(name, self._percent(fits.errors()))
        return _LengthTrials(
            lambda length: self._errors_of(fits, name, length, stays), weights, first
        )

    def _weights(self, name: str, errors: np.ndarray) -> np.ndarray:
        """Return the weights (n_kept,) of the outputs' squared errors for the trials of an element.

        The weight is the squared effect of a force on the element, divided by the fourth power of
        the error without the element's friction. With the first squared error, errors are compared
        relative to those without the friction; with the second, effects are compared relative to
        the noise.
        """
        if name not in self._effects:
            rows = [motion.of((name,))[1][:, self._fits.kept, 0] for motion in self._motions]
            effect = np.mean(np.concatenate(rows) ** 2, axis=0) / self._scales**2
            self._effects[name] = effect
        return np.asarray(self._effects[name] / pooled(errors) ** 4)

    def choose_standstill(self, name: str) -> None:
        """Let the friction of an element act at standstill if this reduces the error."""
        other_staying = self.staying - {name}
        fits = self._fits_with_others(name)
        weights = self._weights(name, self._percent(fits.errors()))
        length = self.lengths[name]
        errors_moving = self._errors_of(fits, name, length, False)
        errors_staying = self._errors_of(fits, name, length, True)
        squares_moving = float((errors_moving**2 @ weights).sum())
        squares_staying = float((errors_staying**2 @ weights).sum())
        is_better = squares_staying < (1.0 - MIN_PRESLIDING_GAIN) ** 2 * squares_moving
        self.staying = other_staying | {name} if is_better else other_staying


class _LengthTrials:
    """Trial lengths of one element, with the errors of all blocks and outputs.

    Lengths are compared by the weighted sum of squared errors over the outputs.
    """

    def __init__(
        self,
        errors_of: Callable[[float], np.ndarray],
        weights: np.ndarray,
        first: Sequence[float],
    ) -> None:
        """Calculate the errors with the first lengths."""
        self._errors_of = errors_of
        self._weights = weights
        self._errors: dict[float, np.ndarray] = {}
        self.best = 0.0
        self._add(first)

    @property
    def error(self) -> float:
        """Weighted error with the best length."""
        return float(np.sqrt(self._squares(self.best).sum()))

    @property
    def best_errors(self) -> np.ndarray:
        """Errors with the best length."""
        return self._errors[self.best]

    def refine(self, *rounds: Sequence[float]) -> None:
        """Try multiples of the best length, in rounds."""
        for factors in rounds:
            self._add([self.best * factor for factor in factors])

    def refine_near(self) -> None:
        """Try lengths next to the first length, and further lengths if the best is at an end."""
        self.refine(*LENGTH_REFINEMENT_FACTORS[-FINEST_ROUNDS:])
        if self.best in (min(self._errors), max(self._errors)):
            self.refine(*LENGTH_REFINEMENT_FACTORS)

    def interpolate(self) -> float:
        """Try the length at the interpolated minimum of the error; return its standard deviation.

        The squared error is interpolated by a parabola over the logarithm of the length, through
        the best length and its neighbors. The deviation is a jackknife over the blocks; it is
        infinite without a minimum.
        """
        lengths = sorted(self._errors)
        number = lengths.index(self.best)
        if not 0 < number < len(lengths) - 1:
            return float(np.inf)
        near = lengths[number - 1 : number + 2]
        squares = np.stack([self._squares(length) for length in near])
        x = np.log(np.array(near) / self.best)
        vertex = _vertex(x, squares.sum(axis=1))
        if not np.isfinite(vertex):
            return float(np.inf)
        blocks = squares.shape[1]
        without_block = [np.delete(squares, block, axis=1).sum(axis=1) for block in range(blocks)]
        vertices = [_vertex(x, remaining) for remaining in without_block]
        self._add([self.best * float(np.exp(np.clip(vertex, x[0], x[2])))])
        if not np.isfinite(vertices).all():
            return float(np.inf)
        deviation = float(np.sqrt((blocks - 1) * np.var(vertices)))
        return self.best * JACKKNIFE_FACTOR * deviation

    def _add(self, lengths: Sequence[float]) -> None:
        """Calculate the errors with lengths, and update the best length."""
        for length in lengths:
            self._errors[length] = self._errors_of(length)
        self.best = min(self._errors, key=lambda length: float(self._squares(length).sum()))

    def _squares(self, length: float) -> np.ndarray:
        """Return the weighted squared errors of all blocks, summed over the outputs."""
        return np.asarray(self._errors[length] ** 2 @ self._weights)


def _vertex(x: np.ndarray, y: np.ndarray) -> float:
    """Return x at the minimum of the parabola through three points; infinite without a minimum."""
    curvature, slope, _ = np.polyfit(x, y, 2)
    return float(-0.5 * slope / curvature) if curvature > 0.0 else np.inf


def _is_better(errors: np.ndarray, before: np.ndarray) -> bool:
    """Return whether an output improves enough and in every block, and no other gets much worse."""
    gain = gained(errors, before)
    improves_every_block = gain.improved_blocks == BLOCKS_PER_LOG
    return gain.reduction > MIN_PRESLIDING_GAIN and gain.is_fair and improves_every_block
