"""Detection of force laws that the model lacks: functions of speed, distance, position or load.

A missing law has the same effect in all logs. It therefore does not increase the scatter between
logs, although parameters are wrong by many standard deviations. Every law is fitted in addition to
the model. A law is reported as missing if the model with this law predicts held-out blocks of the
logs better, and either a parameter changes by several standard deviations or the error falls by a
large fraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, solving
from tauloop.common.records import dataclass
from tauloop.identification.estimation.block_fits import BlockFits, gained, pooled
from tauloop.identification.estimation.result import Identification
from tauloop.identification.friction.element_motion import ElementMotion
from tauloop.identification.friction.presliding import REST_SPEED_FRACTION, presliding_state
from tauloop.identification.regression.columns import asymmetric_friction, stribeck_friction
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.streaming import merge_data

#: Minimum relative reduction of an output's error on held-out blocks by a missing law.
MIN_ERROR_GAIN = 0.03
#: Minimum number of held-out blocks in which a missing law reduces the error of this output.
MIN_BETTER_BLOCKS = 5
#: A missing law changes a base parameter by at least this number of standard deviations, unless the
#: error falls by `MIN_LARGE_ERROR_GAIN`.
MIN_SHIFT_DEVIATIONS = 3.0
#: Relative reduction of the error that suffices without a change of parameters.
MIN_LARGE_ERROR_GAIN = 0.2
#: Residuals below this fraction of the output's force are rounding errors.
RESIDUAL_ROUNDING = 1e-6
#: Candidate Stribeck velocities, as fractions of an element's largest speed.
STRIBECK_VELOCITY_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35)
#: Candidate presliding lengths, as fractions of an element's stroke.
TRIED_PRESLIDING_SHARES = (3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1)
#: Number of cosines, with a half period of the stroke and its fractions, that represent a force
#: that depends on the position.
POSITION_HARMONICS = 6
#: Laws that explain a smaller fraction of an output's residual power on the whole log are not
#: cross-validated.
MIN_EXPLAINED_SHARE = 0.03
#: Maximum number of kinds of laws that are cross-validated for an element.
MAX_TRIED_KINDS = 3


#: Errors on held-out blocks (number of blocks, number of measured outputs), and parameters of a
#: fit.
_FitResult = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Law:
    """A force law that a model may lack.

    Attributes:
        element: name of the joint, rod or actuator with this friction or force.
        kind: "friction", "stribeck", "asymmetric", "presliding", "position" or "load".
        size: Stribeck velocity (rad/s or m/s) or presliding length (rad or m); NaN for other laws.
        unit: unit of the Stribeck velocity or presliding length.
        columns: columns (N, n_out, n) for every log.
    """

    element: str
    kind: str
    columns: tuple[np.ndarray, ...]
    size: float = np.nan
    unit: str = ""

    def problem(self, coefficient: float, improvement: str) -> Problem:
        """Return the law as a problem to report.

        Args:
            coefficient: coefficient of its first column, SI.
            improvement: description of what the law improves.
        """
        size = f"{self.size:.2g} {self.unit}"
        comparison = "larger" if coefficient > 0.0 else "smaller"
        effect = " (Stribeck effect)" if coefficient > 0.0 else ""
        trend = "grows" if coefficient > 0.0 else "falls"
        what, remedy = {
            "friction": (
                "has friction, but the model has none for it",
                "declare viscous and coulomb friction in the machine file (zero is allowed), because "
                "only declared parameters are estimated",
            ),
            "stribeck": (
                f"has friction that is {comparison} below about {size} than Coulomb and viscous "
                f"friction{effect}",
                f'fit it as well: --stribeck "{self.element}={size}"',
            ),
            "asymmetric": (
                "has different friction in the two directions; an offset of the force has the same "
                "effect",
                f"fit it as well: --asymmetric {self.element}",
            ),
            "presliding": (
                f"has friction that builds up over {size} after a velocity reversal, not "
                "immediately (presliding)",
                f"fit it as well: --presliding {self.element}",
            ),
            "position": (
                "has a force that depends on its position and that the model lacks (a spring, a "
                "cable, cogging)",
                "add the spring to the machine file, or give the force as a function of position "
                "(known_forces)",
            ),
            "load": (
                f"has friction that {trend} with the force it transmits",
                "machine files cannot describe such a law: identify at the loads of normal use, and do "
                "not rely on the standard deviations of friction",
            ),
        }[self.kind]
        return Problem(self.element, f"{what}: {improvement}", remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLaw:
    """A law that the model lacks.

    Attributes:
        element: name of the joint, rod or actuator with this friction or force.
        kind: "friction", "stribeck", "asymmetric", "presliding", "position" or "load".
        problem: the problem to report.
        size: Stribeck velocity (rad/s or m/s) or presliding length (rad or m); NaN for other laws.
        output: the output whose error the law reduces most.
        force: RMS force of this output that the law explains on held-out blocks, SI.
    """

    element: str
    kind: str
    problem: Problem
    size: float = np.nan
    output: str = ""
    force: float = np.inf


@solving(IdentificationError)
def missing_laws(
    parts: Sequence[RegressionData],
    motions: Sequence[ElementMotion],
    elements: Sequence[str],
    result: Identification,
) -> tuple[MissingLaw, ...]:
    """Return the laws that the model lacks.

    Laws are ranked once, by the error that remains with each law alone. They are added to the fit
    in this order, and a law is reported only if it still improves the fit. Samples at which an
    output's own motion is at rest are ignored, because the friction force at rest is undetermined.

    Args:
        parts: regression data of the logs.
        motions: motions at the same samples, and the filter of forces and regressor, which is also
            applied to the columns of laws.
        elements: names of the elements whose laws are searched.
        result: the identification of the logs.
    """
    if len(parts) > 1:
        # Different outputs may be measured in the logs; merged data contain all of them.
        merged = merge_data(parts)
        edges = np.cumsum([len(part) for part in parts])
        parts = [
            merged.part(slice(end - len(part), end)) for part, end in zip(parts, edges, strict=True)
        ]
    speeds = [motion.of_outputs for motion in motions]
    is_moving = [
        np.abs(speed) > REST_SPEED_FRACTION * np.abs(speed).max(axis=0) for speed in speeds
    ]
    fits = BlockFits.of(parts, result, is_moving)
    laws: list[MissingLaw] = []
    before = fits.errors(), fits.values()
    if (before[0].max(axis=0) < RESIDUAL_ROUNDING * fits.largest).all():
        return ()
    candidates = []
    for element in elements:
        has_friction = f"{element}.coulomb" in parts[0].parameters
        laws_of_element = tuple(_laws(fits, motions, element, has_friction))
        for law in _most_promising(fits, _filtered(motions, laws_of_element)):
            if improvement := _improvement(law, before, fits.both(law.columns), fits, result):
                candidates.append((improvement[0], law))
    fitted: tuple[np.ndarray, ...] | None = None
    for _, law in sorted(candidates, key=lambda pair: pair[0]):
        columns = law.columns
        if fitted is not None:
            columns = tuple(map(_join_columns, fitted, law.columns))
        after = fits.both(columns)
        if improvement := _improvement(law, before, after, fits, result):
            k = gained(after[0], before[0]).output
            decrease = pooled(before[0])[k] ** 2 - pooled(after[0])[k] ** 2
            laws.append(
                MissingLaw(
                    element=law.element,
                    kind=law.kind,
                    problem=improvement[1],
                    size=law.size,
                    output=result.training[k].output,
                    force=float(np.sqrt(max(decrease, 0.0))),
                )
            )
            fitted = columns
            before = after
    return tuple(laws)


def _improvement(
    law: _Law, before: _FitResult, after: _FitResult, fits: BlockFits, result: Identification
) -> tuple[float, Problem] | None:
    """Return the remaining fraction of the error with a law, and the problem to report.

    Args:
        law: the law.
        before, after: errors and parameters of the fits without and with the law.
        fits: the fits of blocks.
        result: the identification of the logs.

    Returns:
        The fraction, of the output that improves most, and the problem; None if the law does not
        improve the fit enough to count as missing.
    """
    errors, values = before
    errors_after, values_after = after
    gain = gained(errors_after, errors)
    count = len(result.values)
    shifts = np.abs(values_after[:count] - values[:count]) / result.standard_deviations
    largest = int(np.argmax(shifts))
    if (
        gain.reduction < MIN_ERROR_GAIN
        or not gain.is_fair
        or gain.improved_blocks < MIN_BETTER_BLOCKS
    ):
        return None
    if shifts[largest] < MIN_SHIFT_DEVIATIONS and gain.reduction < MIN_LARGE_ERROR_GAIN:
        return None
    largest_force = fits.largest[gain.output]
    percent_before = float(100.0 * pooled(errors)[gain.output] / largest_force)
    percent_after = float(100.0 * pooled(errors_after)[gain.output] / largest_force)
    improvement = (
        f"with this law the held-out error of {result.training[gain.output].output} falls from "
        f"{percent_before:.3g} to {percent_after:.3g} % of the largest force, and "
        f"{result.base.base[largest].short_name()} changes by {shifts[largest]:.3g} standard "
        "deviations"
    )
    coefficient = float(values_after[-law.columns[0].shape[-1]])
    return percent_after / percent_before, law.problem(coefficient, improvement)


def _laws(
    fits: BlockFits, motions: Sequence[ElementMotion], element: str, has_friction: bool
) -> Iterator[_Law]:
    """Yield all candidate laws of an element, unfiltered; none for an element at rest."""
    speeds, rows = zip(*(motion.of((element,)) for motion in motions), strict=True)
    largest = max(float(np.abs(speed).max()) for speed in speeds)
    stroke = max(motion.stroke(element) for motion in motions)
    if not (largest > 0.0 and stroke > 0.0):
        return
    length_unit = "rad" if motions[0].is_rotational[element] else "m"
    by_log = list(zip(motions, speeds, rows, strict=True))

    def law(kind: str, columns: Sequence[np.ndarray], size: float = np.nan, unit: str = "") -> _Law:
        return _Law(element=element, kind=kind, columns=tuple(columns), size=size, unit=unit)

    if not has_friction:
        columns = [
            row * np.stack([np.sign(speed[:, 0]), speed[:, 0]], axis=1)[:, None]
            for _, speed, row in by_log
        ]
        yield law("friction", columns)
    for share in STRIBECK_VELOCITY_SHARES:
        velocity = share * largest
        columns = [stribeck_friction(speed, np.array([velocity]), row) for _, speed, row in by_log]
        yield law("stribeck", columns, velocity, f"{length_unit}/s")
    yield law("asymmetric", [asymmetric_friction(speed, row) for _, speed, row in by_log])
    for share in TRIED_PRESLIDING_SHARES:
        length = share * stroke
        columns = [
            row * presliding_state(speed, motion.period, np.array([length]))[:, None]
            for motion, speed, row in by_log
        ]
        yield law("presliding", columns, length, length_unit)
    columns = []
    for motion, speed, row in by_log:
        x = np.cumsum(speed[:, 0]) * motion.period
        phase = np.pi * (x[:, None] - x.min()) / stroke
        columns.append(row * np.cos(phase * np.arange(1, POSITION_HARMONICS + 1))[:, None])
    yield law("position", columns)
    columns = []
    all_loads = fits.carried([row for _, _, row in by_log])
    for load, (_, speed, row) in zip(all_loads, by_log, strict=True):
        count = len(load)  # only the first samples of a long log are used
        friction = np.sign(speed[:count, 0]) * np.abs(load)
        columns.append(row[:count] * friction[:, None, None])
    yield law("load", columns)


def _filtered(motions: Sequence[ElementMotion], laws: Sequence[_Law]) -> tuple[_Law, ...]:
    """Return laws with their columns after the filter of forces and regressor.

    Columns with the same number of samples pass the filter together.
    """
    filtered: list[list[np.ndarray]] = [[] for _ in laws]
    for number, motion in enumerate(motions):
        columns = [law.columns[number] for law in laws]
        lengths = np.array([len(column) for column in columns])
        decimated: dict[int, np.ndarray] = {}
        for length in np.unique(lengths).tolist():
            same = np.flatnonzero(lengths == length).tolist()
            edges = np.cumsum([columns[k].shape[2] for k in same])[:-1]
            joined = motion.decimated(np.concatenate([columns[k] for k in same], axis=2))
            decimated |= dict(zip(same, np.split(joined, edges, axis=2), strict=True))
        for k, columns_of_law in enumerate(filtered):
            columns_of_law.append(decimated[k])
    return tuple(
        replace(law, columns=tuple(columns)) for law, columns in zip(laws, filtered, strict=True)
    )


def _most_promising(fits: BlockFits, laws: Sequence[_Law]) -> Iterator[_Law]:
    """Yield the laws of an element that explain most, at most one law of each kind."""
    if not laws:
        return
    columns_by_log = zip(*(law.columns for law in laws), strict=True)
    all_columns = [np.concatenate(columns, axis=2) for columns in columns_by_log]
    edges = np.cumsum([law.columns[0].shape[-1] for law in laws])[:-1]
    best: dict[str, tuple[float, _Law]] = {}
    for power_fractions, law in zip(
        np.split(fits.explained(all_columns), edges), laws, strict=True
    ):
        total = power_fractions.sum()
        if total >= MIN_EXPLAINED_SHARE and total > best.get(law.kind, (0.0, law))[0]:
            best[law.kind] = (float(total), law)
    ranked = sorted(best.values(), key=lambda pair: -pair[0])
    for _, law in ranked[:MAX_TRIED_KINDS]:
        yield law


def _join_columns(columns: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the columns of two laws next to each other."""
    return np.concatenate([columns, other], axis=2)
