"""Presliding friction: the state of Dahl's model and its columns.

Source: Dahl 1968, A solid friction model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tauloop.common.errors import IdentificationError, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.block_fits import BLOCKS_PER_LOG, BlockFits, gained, pooled
from tauloop.identification.estimation.estimators import WeightedLeastSquares
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.estimation.fitting import fit_regression
from tauloop.identification.friction.element_motion import ElementMotion
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.streaming import merge_data, split_each

#: Last component of the name of a presliding column.
PRESLIDING = "presliding"
#: An element below this fraction of its largest speed is at rest.
REST = 1e-3


def dahl_state(
    velocity: np.ndarray, period: float, lengths: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Return the state z (N, n) of Dahl's model, dz/dx = (1 - z sign(v)) / length, from -1 to 1.

    The friction force is F z, which becomes F sign(v) in sliding. The motion between two samples
    is taken as monotonic. Then z changes to s + (z - s) exp(-|dx| / length), with s = sign(dx),
    which is the exact solution (Dahl 1968, A solid friction model, with the exponent one). The
    motion before the first sample is unknown; its effect vanishes after a few lengths. All samples
    are calculated together, in log2(N) passes.

    Args:
        velocity: (N, n), m/s or rad/s; zero at rest.
        period: sampling period, s.
        lengths: (n,), m or rad, positive: distance after a reversal over which friction reverses
            except for a fraction of 1 / e.
        start: (n,) z at the first sample; zero if it is not given.
    """
    travel = np.zeros(velocity.shape)
    travel[1:] = 0.5 * period * (velocity[1:] + velocity[:-1])
    decay = np.exp(-np.abs(travel) / lengths)
    z = np.sign(travel) * (1.0 - decay)
    reach = 1
    # The recursion z_k = decay_k z_(k-1) + ... is composed over twice the number of samples in
    # each pass.
    while reach < len(z):
        z[reach:] = z[reach:] + decay[reach:] * z[:-reach]
        decay[reach:] = decay[reach:] * decay[:-reach]
        reach *= 2
    return z if start is None else z + start * decay


def fading_start(velocity: np.ndarray, period: float, lengths: np.ndarray) -> np.ndarray:
    """Return the part (N, n) of `dahl_state` that a start of one contributes."""
    travel = np.zeros(velocity.shape)
    travel[1:] = 0.5 * period * np.abs(velocity[1:] + velocity[:-1])
    return np.asarray(np.exp(-np.cumsum(travel, axis=0) / lengths))


def presliding_state(
    velocity: np.ndarray,
    period: float,
    lengths: np.ndarray,
    *,
    start: np.ndarray | None = None,
    stays: bool = False,
) -> np.ndarray:
    """Return the state (N, n) of `dahl_state`, with zeros at rest unless it stays.

    At rest, the friction force can have any value below Coulomb friction, which positions do not
    determine. Motion is at rest if its speed is below the share `REST` of the largest.

    Args:
        velocity, period, lengths, start: as for `dahl_state`.
        stays: whether the state is also used at rest.
    """
    state = dahl_state(velocity, period, lengths, start)
    return state if stays else state * (np.abs(velocity) > REST * np.abs(velocity).max(axis=0))


def presliding_columns(
    motion: ElementMotion,
    lengths: Mapping[str, float],
    staying: Collection[str] = (),
    starts: Mapping[str, float] | None = None,
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Return the columns (N, n_out, n) of presliding friction, their names and their units.

    The columns are those of `presliding_state`, named ``NAME.presliding`` for each element.

    Args:
        motion: motion of the log of the regression data.
        lengths: presliding lengths, m or rad, by name of the element.
        staying: elements whose friction is also used at rest.
        starts: states at the first sample, by element; zero if they are not given.
    """
    names = tuple(lengths)
    speed, rows = motion.of(names)
    states = [
        presliding_state(
            speed[:, [k]],
            motion.period,
            np.array([lengths[name]]),
            start=np.array([(starts or {}).get(name, 0.0)]),
            stays=name in staying,
        )
        for k, name in enumerate(names)
    ]
    columns = motion.decimated(rows * np.concatenate(states, axis=1)[:, None, :])
    return (
        columns,
        tuple(f"{name}.{PRESLIDING}" for name in names),
        tuple(motion.force_unit(name) for name in names),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreslidingChoice(ReprMixin):
    """Presliding lengths that were chosen by validation, with the validation errors.

    Attributes:
        lengths: lengths over which friction reverses, m or rad, by element; without elements for
            which no length reduces the error.
        staying: elements of these whose friction is also used at rest; that of the others is zero
            at rest.
        without: elements for which no length reduces the error.
        errors: validation errors, % (root mean square over outputs), without any presliding
            friction, and with the chosen lengths.
        stated: elements with a given length.
    """

    lengths: Mapping[str, float]
    staying: tuple[str, ...]
    without: tuple[str, ...]
    errors: tuple[float, float]
    stated: tuple[str, ...]


@solving(IdentificationError)
def choose_presliding(
    parts: Sequence[RegressionData],
    motions: Sequence[ElementMotion],
    names: Sequence[str],
    *,
    stated: Mapping[str, float] | None = None,
    share: float = 0.7,
) -> PreslidingChoice:
    """Return the presliding lengths that reduce the validation error in every part of the logs.

    Lengths are tried for one element after another. Each block of the logs (`BlockFits`) is
    predicted by a fit to all others. A length is chosen if the error of the output that gains most
    falls by `MIN_PRESLIDING_GAIN` over all blocks and in each of them, and if the errors of other
    outputs do not grow too much (`Gain.is_fair`). The longest length is never chosen, because such
    a slow change is not friction after a reversal. Friction is only used at rest if this reduces
    the error by `MIN_PRESLIDING_GAIN` again.

    Args:
        parts: regression data of each log; their held-out parts are not used.
        motions: motions of the same logs, with the same preparation.
        names: elements whose length is searched.
        stated: lengths of other elements, m or rad.
        share: fraction of each log before its held-out part.

    Raises:
        IdentificationError: the data cannot support the identification.
    """
    before = split_each(parts, share)[0] if share < 1.0 else list(parts)
    fits = BlockFits.of(before, fit_regression(merge_data(before), None, WeightedLeastSquares()))
    search = _LengthSearch(fits, motions, dict(stated or {}))
    errors_without = search.errors({}, ())
    for name in tuple(search.lengths):
        search.choose_rest(name)
    for _ in range(MAX_LENGTH_SWEEPS if len(names) > 1 else 1):
        changes = [search.choose_length(name) for name in names]
        if not any(changes):
            break
    errors_with = search.errors(search.lengths, search.staying)
    return PreslidingChoice(
        lengths=search.lengths,
        staying=tuple(sorted(search.staying)),
        without=tuple(name for name in names if name not in search.lengths),
        errors=(overall(errors_without), overall(errors_with)),
        stated=tuple(stated or ()),
    )


class _LengthSearch:
    """A search for presliding lengths, with the lengths and the elements with friction at rest."""

    def __init__(
        self, fits: BlockFits, motions: Sequence[ElementMotion], lengths: dict[str, float]
    ) -> None:
        """Start with given lengths."""
        self._fits = fits
        self._motions = motions
        self._scales = fits.largest
        self.lengths = lengths
        self.staying: set[str] = set()

    def errors(self, lengths: Mapping[str, float], staying: Collection[str]) -> np.ndarray:
        """Return the held-out errors (BLOCKS_PER_LOG, n_kept), % of each output's largest force."""
        columns = None
        if lengths:
            columns = [presliding_columns(motion, lengths, staying)[0] for motion in self._motions]
        return 100.0 * self._fits.errors(columns) / self._scales

    def choose_length(self, name: str) -> bool:
        """Choose the length of an element, and return whether it has changed."""
        stroke = max(motion.stroke(name) for motion in self._motions)
        before = self.lengths.get(name)
        others = {other: length for other, length in self.lengths.items() if other != name}
        self.lengths = others
        self.staying = self.staying - {name}
        if stroke <= 0.0:
            return before is not None
        errors_without = self.errors(others, self.staying)
        tried: dict[float, np.ndarray] = {}

        def best_of(lengths: Sequence[float]) -> float:
            """Return the best length, after trying further ones."""
            for length in lengths:
                tried[length] = self.errors(others | {name: length}, self.staying)
            return _best_length(tried, errors_without)

        if before is None:
            best = best_of([share * stroke for share in FIRST_LENGTH_SHARES])
        else:
            best = best_of([before])
        for factors in LENGTH_REFINEMENT_FACTORS:
            best = best_of([best * factor for factor in factors])
        is_short = best < FIRST_LENGTH_SHARES[-1] * stroke
        if is_short and _is_better(tried[best], errors_without, every=True):
            self.lengths = others | {name: best}
            self.choose_rest(name)
        return self.lengths.get(name) != before

    def choose_rest(self, name: str) -> None:
        """Use the friction of an element at rest if this reduces the error."""
        staying = {*self.staying, name}
        errors_before = self.errors(self.lengths, self.staying)
        if _is_better(self.errors(self.lengths, staying), errors_before, every=False):
            self.staying = staying


def _best_length(tried: Mapping[float, np.ndarray], errors_without: np.ndarray) -> float:
    """Return the length with the smallest relative error of any output."""
    reference = pooled(errors_without)
    return min(tried, key=lambda length: float((pooled(tried[length]) / reference).min()))


def _is_better(errors: np.ndarray, before: np.ndarray, *, every: bool) -> bool:
    """Return whether an output gains enough, on request in every block, and no other gets worse."""
    gain = gained(errors, before)
    has_gain = gain.share > MIN_PRESLIDING_GAIN and gain.is_fair
    return has_gain and (gain.alike == BLOCKS_PER_LOG or not every)
