"""Presliding friction: the state of Dahl's model along a motion, and columns whose lengths validation finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tauloop.identify.columns import with_columns
from tauloop.identify.data import RegressionData
from tauloop.identify.element_motion import ElementMotion
from tauloop.identify.estimators import Estimator, WeightedLeastSquares
from tauloop.identify.fitting import fit
from tauloop.identify.streaming import merge, split_each

#: Last part of the name of such a column.
PRESLIDING = "presliding"
#: Lengths that are tried, as shares of an element's stroke.
SHARES = tuple(np.geomspace(1e-4, 0.2, 12).tolist())
#: Lengths that are tried about the best of these, as multiples of it, and again about the best of those.
FINER = ((0.6, 0.77, 1.3, 1.7), (0.87, 1.15))
#: A length is taken where it lessens the validation error of all outputs by this share.
BETTER = 0.01
#: Elements are gone through so many times at most.
SWEEPS = 2


def dahl_state(velocity: np.ndarray, period: float, lengths: np.ndarray) -> np.ndarray:
    """State z (N, n) of dz/dx = (1 - z sign(v)) / length, from -1 to 1; friction is F z, and F sign(v) when it slides.

    Between two samples the motion is taken as going one way: z goes to s + (z - s) exp(-|dx| / length), s = sign(dx),
    which is exact (Dahl 1968, A solid friction model, with the exponent one). z is zero at the first sample: what was
    before is not known, and forgotten after a few lengths. All samples are made together, in log2(N) passes.

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
    while reach < len(z):  # z_k = kept_k z_(k-1) + ..., composed over twice as many samples each time
        z[reach:] = z[reach:] + kept[reach:] * z[:-reach]
        kept[reach:] = kept[reach:] * kept[:-reach]
        reach *= 2
    return z


def presliding_columns(
    motion: ElementMotion, lengths: Mapping[str, float]
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Columns (N, n_out, n) of `dahl_state` for `with_columns`, ``NAME.presliding`` for each element, and their units.

    Args:
        motion: of the log that the regression data are of.
        lengths: m or rad, by name of the element.
    """
    names = tuple(lengths)
    speed, rows = motion.of(names)
    states = dahl_state(speed, motion.period, np.array([lengths[name] for name in names]))
    columns = motion.decimated(rows * states[:, None, :])
    return columns, tuple(f"{name}.{PRESLIDING}" for name in names), tuple(motion.force_unit(name) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreslidingChoice:
    """Lengths over which friction turns round, and what they rest on.

    Attributes:
        lengths: m or rad, by element; elements that no length makes better are left out.
        without: elements whose validation error no length lessens enough.
        errors: validation error, % (root mean square over outputs), without any, and with the chosen ones.
        given: elements whose length was given.
    """

    lengths: Mapping[str, float]
    without: tuple[str, ...]
    errors: tuple[float, float]
    given: tuple[str, ...]


def choose_presliding(
    parts: Sequence[RegressionData],
    motions: Sequence[ElementMotion],
    names: Sequence[str],
    *,
    given: Mapping[str, float] | None = None,
    estimator: Estimator | None = None,
    shares: tuple[float, float] = (0.7, 0.7),
) -> PreslidingChoice:
    """Try lengths for each element in turn, and keep the best of each if it is better than none.

    Args:
        parts: regression data of each log, held-out part included, which takes no part.
        motions: of the same logs, prepared alike.
        names: elements whose length is looked for.
        given: lengths of others, m or rad.
        estimator: weighted least squares without it.
        shares: part of each log before its held-out part, and share of that before the validation part.

    Raises:
        IdentificationError: the data cannot support the identification.
    """
    way, chosen = estimator or WeightedLeastSquares(), dict(given or {})
    largest = np.max([np.abs(part.forces).max(axis=0) for part in parts], axis=0)
    scales = dict(zip(parts[0].outputs, largest, strict=True))

    def error(lengths: Mapping[str, float]) -> float:
        whole = [
            with_columns(part, *presliding_columns(motion, lengths)) if lengths else part
            for part, motion in zip(parts, motions, strict=True)
        ]
        before, _ = split_each(whole, shares[0]) if shares[0] < 1.0 else (whole, whole)
        training, validation = split_each(before, shares[1])
        result = fit(merge(training), merge(validation), way)
        return float(np.sqrt(np.mean([(100.0 * one.rmse / scales[one.output]) ** 2 for one in result.held_out])))

    none = error({})
    best = error(chosen) if chosen else none
    for _ in range(SWEEPS if len(names) > 1 else 1):
        before = dict(chosen)
        for name in names:
            stroke = max(motion.stroke(name) for motion in motions)
            tried = {share * stroke: error(chosen | {name: share * stroke}) for share in SHARES if stroke > 0.0}
            for factors in FINER if tried else ():
                about = min(tried, key=lambda length: tried[length])
                tried |= {about * factor: error(chosen | {name: about * factor}) for factor in factors}
            length = min(tried, key=lambda length: tried[length]) if tried else 0.0
            if tried and tried[length] * (1.0 if name in chosen else 1.0 + BETTER) < best:
                chosen, best = chosen | {name: length}, tried[length]
        if chosen == before:
            break
    return PreslidingChoice(
        lengths=chosen,
        without=tuple(name for name in names if name not in chosen),
        errors=(none, best),
        given=tuple(given or ()),
    )
