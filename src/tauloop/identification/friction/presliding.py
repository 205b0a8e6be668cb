"""Presliding friction: the state of Dahl's model along a motion, and columns whose lengths validation finds.

Source: Dahl 1968, A solid friction model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tauloop.common.errors import IdentificationError, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.identification.estimation.block_fits import BLOCKS, BlockFits, gained, pooled
from tauloop.identification.estimation.estimators import WeightedLeastSquares
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.estimation.fitting import fit
from tauloop.identification.friction.element_motion import ElementMotion
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.streaming import merge, split_each

#: Last part of the name of such a column.
PRESLIDING = "presliding"
#: Lengths that are tried, as shares of an element's stroke.
SHARES = tuple(np.geomspace(1e-4, 0.2, 12).tolist())
#: Lengths that are tried about the best of these, as multiples of it, and again about the best of
#: those.
FINER = ((0.6, 0.77, 1.3, 1.7), (0.87, 1.15), (0.94, 1.06))
#: A length is taken where it lessens the error of an output over all blocks by this share and in
#: every block.
BETTER = 0.02
#: Elements are gone through so many times at most.
SWEEPS = 3
#: An element below this share of its largest speed is at rest.
REST = 1e-3


def dahl_state(velocity: np.ndarray, period: float, lengths: np.ndarray) -> np.ndarray:
    """State z (N, n) of dz/dx = (1 - z sign(v)) / length, from -1 to 1; friction is F z, and F sign(v) when it slides.

    Between two samples the motion is taken as going one way: z goes to s + (z - s) exp(-|dx| /
    length), s = sign(dx), which is exact (Dahl 1968, A solid friction model, with the exponent
    one). z is zero at the first sample: what was before is not known, and forgotten after a few
    lengths. All samples are made together, in log2(N) passes.

    Args:
        velocity: (N, n), m/s or rad/s; exactly zero is rest.
        period: between samples, s.
        lengths: (n,), m or rad, positive: the way over which friction turns round, but for 1 / e.
    """
    moved = np.zeros(velocity.shape)
    moved[1:] = 0.5 * period * (velocity[1:] + velocity[:-1])
    kept = np.exp(-np.abs(moved) / lengths)
    z = np.sign(moved) * (1.0 - kept)
    reach = 1
    # z_k = kept_k z_(k-1) + ..., composed over twice as many samples each time
    while reach < len(z):
        z[reach:] = z[reach:] + kept[reach:] * z[:-reach]
        kept[reach:] = kept[reach:] * kept[:-reach]
        reach *= 2
    return z


def presliding_state(
    velocity: np.ndarray, period: float, lengths: np.ndarray, *, stays: bool = False
) -> np.ndarray:
    """State (N, n) of `dahl_state`, and zero where the motion rests, as Coulomb friction is there, unless it stays.

    What friction holds at rest is anything below Coulomb's, and positions do not tell it. Rest is a
    speed below `REST` of the largest.
    """
    state = dahl_state(velocity, period, lengths)
    return state if stays else state * (np.abs(velocity) > REST * np.abs(velocity).max(axis=0))


def presliding_columns(
    motion: ElementMotion, lengths: Mapping[str, float], staying: Collection[str] = ()
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Columns (N, n_out, n) of `presliding_state`, ``NAME.presliding`` for each element, and their units, to add.

    Args:
        motion: of the log that the regression data are of.
        lengths: m or rad, by name of the element.
        staying: elements whose friction stays at rest.
    """
    names = tuple(lengths)
    speed, rows = motion.of(names)
    states = [
        presliding_state(
            speed[:, [k]], motion.period, np.array([lengths[name]]), stays=name in staying
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
class PreslidingChoice(Shown):
    """Lengths over which friction turns round, and what they rest on.

    Attributes:
        lengths: m or rad, by element; elements that no length makes better are left out.
        staying: elements of these whose friction stays at rest; that of the others is zero there.
        without: elements that no length makes better.
        errors: validation error, % (root mean square over outputs), without any, and with the
            chosen ones.
        stated: elements whose length was given.
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
    """Try lengths for each element in turn, and keep the best of each where every part of the logs is better with it.

    Each block of the logs (`BlockFits`) is predicted by a fit to all others. A length is kept where
    the error of the output that gains most falls by `BETTER` over all blocks and in each of them,
    and no other output pays too much for it (`Gain.is_fair`). The longest that is tried is none:
    what turns round so slowly is no friction after a reversal. Friction that stays at rest is kept
    only where that is better by `BETTER` again.

    Args:
        parts: regression data of each log, held-out part included, which takes no part.
        motions: of the same logs, prepared alike.
        names: elements whose length is looked for.
        stated: lengths of others, m or rad.
        share: part of each log before its held-out part.

    Raises:
        IdentificationError: the data cannot support the identification.
    """
    before = split_each(parts, share)[0] if share < 1.0 else list(parts)
    fits = BlockFits.of(before, fit(merge(before), None, WeightedLeastSquares()))
    search = _LengthSearch(fits, motions, dict(stated or {}))
    none = search.errors({}, ())
    for name in tuple(search.lengths):
        search.rest(name)
    for _ in range(SWEEPS if len(names) > 1 else 1):
        if not any([search.improved(name) for name in names]):
            break
    last = search.errors(search.lengths, search.staying)
    return PreslidingChoice(
        lengths=search.lengths,
        staying=tuple(sorted(search.staying)),
        without=tuple(name for name in names if name not in search.lengths),
        errors=(overall(none), overall(last)),
        stated=tuple(stated or ()),
    )


class _LengthSearch:
    """Lengths so far, and those of whose friction stays at rest."""

    def __init__(
        self, fits: BlockFits, motions: Sequence[ElementMotion], lengths: dict[str, float]
    ) -> None:
        self._fits, self._motions, self._scales = fits, motions, fits.largest
        self.lengths, self.staying = lengths, set[str]()

    def errors(self, lengths: Mapping[str, float], staying: Collection[str]) -> np.ndarray:
        """Errors (BLOCKS, n_kept) where not fitted, % of each output's largest force."""
        columns = (
            [presliding_columns(motion, lengths, staying)[0] for motion in self._motions]
            if lengths
            else None
        )
        return 100.0 * self._fits.errors(columns) / self._scales

    def improved(self, name: str) -> bool:
        """Look for the length of an element; whether it is another than before."""
        stroke, before = (
            max(motion.stroke(name) for motion in self._motions),
            self.lengths.get(name),
        )
        others = {other: length for other, length in self.lengths.items() if other != name}
        self.lengths, self.staying = others, self.staying - {name}
        if stroke <= 0.0:
            return before is not None
        without = self.errors(others, self.staying)
        about = (before,) if before is not None else tuple(share * stroke for share in SHARES)
        tried = {length: self.errors(others | {name: length}, self.staying) for length in about}
        for factors in FINER:
            best = _best(tried, without)
            near = [best * factor for factor in factors]
            tried |= {length: self.errors(others | {name: length}, self.staying) for length in near}
        best = _best(tried, without)
        if best < SHARES[-1] * stroke and _is_better(tried[best], without, every=True):
            self.lengths = others | {name: best}
            self.rest(name)
        return self.lengths.get(name) != before

    def rest(self, name: str) -> None:
        """Let the friction of an element stay at rest where that is better."""
        resting, staying = (
            self.errors(self.lengths, names) for names in (self.staying, {*self.staying, name})
        )
        if _is_better(staying, resting, every=False):
            self.staying |= {name}


def _best(tried: Mapping[float, np.ndarray], without: np.ndarray) -> float:
    """The length with which the output that gains most is best."""
    return min(tried, key=lambda length: float((pooled(tried[length]) / pooled(without)).min()))


def _is_better(errors: np.ndarray, before: np.ndarray, *, every: bool) -> bool:
    """Whether some output is better by enough, in every block if asked, and none worse."""
    gain = gained(errors, before)
    return gain.share > BETTER and gain.is_fair and (gain.alike == BLOCKS or not every)
