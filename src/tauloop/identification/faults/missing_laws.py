"""What of a log's forces no term of the model has, though they follow speed, way, position or load.

Such a thing is alike in all logs, so that no scatter shows it: parameters are off by many of their
deviations. Every law is fitted beside the model, and is missing where the model with it predicts
blocks of the logs better that it was not fitted to, and its parameters move by more than their
deviations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, solving
from tauloop.common.records import dataclass
from tauloop.identification.estimation.block_fits import BlockFits, gained, pooled
from tauloop.identification.estimation.result import Identification
from tauloop.identification.friction.element_motion import ElementMotion
from tauloop.identification.friction.presliding import REST, presliding_state
from tauloop.identification.regression.columns import asymmetric_friction, stribeck_friction
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.streaming import merge

#: A law is missing where it lessens the error of an output on blocks that were not fitted by this
#: share, ...
BETTER = 0.03
#: ... in so many of them, ...
ALIKE = 5
#: ... and moves some base parameter by so many standard deviations, or lessens the error by so
#: much, ...
MOVED, MUCH = 3.0, 0.2
#: ... while the output's residual is this share of its force or more: less is rounding.
RESIDUAL = 1e-6
#: Speeds that are tried, as shares of an element's largest, and ways, as shares of its stroke.
SPEEDS, WAYS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35), (3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1)
#: Harmonics of half the stroke that stand for a force that follows the position.
HARMONICS = 6
#: Columns that explain less of an output's residual power on the whole log are not tried further;
#: so many kinds of an element are.
PROMISING, TRIED = 0.03, 3


#: Errors (BLOCKS, n_kept) on blocks that were not fitted, and parameters of a fit.
_Fit = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Law:
    """A law of the forces that a model may lack.

    Attributes:
        element: whose friction or force it is.
        kind: "friction", "stribeck", "asymmetric", "presliding", "position" or "load".
        size: Stribeck's speed (rad/s or m/s) or the way (rad or m); NaN for the others.
        unit: of the size.
        columns: (N, n_out, n) of every log.
    """

    element: str
    kind: str
    columns: tuple[np.ndarray, ...]
    size: float = np.nan
    unit: str = ""

    def problem(self, coefficient: float, shown: str) -> Problem:
        """The law as a finding.

        Args:
            coefficient: what it multiplies, SI; of several columns the first.
            shown: what shows it.
        """
        small = "larger" if coefficient > 0.0 else "smaller"
        what, remedy = {
            "friction": (
                "has friction, and the model gives it none",
                "give it friction in the machine file; zeros are unknowns as well (viscous, coulomb)",
            ),
            "stribeck": (
                f"has friction that is {small} below some {self.size:.2g} {self.unit} than Coulomb and viscous "
                "friction make it (Stribeck's curve)",
                f'fit it as well: --stribeck "{self.element}={self.size:.2g} {self.unit}"',
            ),
            "asymmetric": (
                "has friction of another size in one direction than in the other",
                f"fit it as well: --asymmetric {self.element}",
            ),
            "presliding": (
                f"has friction that turns round over {self.size:.2g} {self.unit} after a reversal, not at once",
                f"fit it as well: --presliding {self.element}",
            ),
            "position": (
                "has a force that follows its position and that the model lacks (a spring, a cable, cogging)",
                "put the spring into the machine file, or give the force by position (known_forces)",
            ),
            "load": (
                f"has friction that {'grows' if coefficient > 0.0 else 'falls'} with the force it transmits",
                "no law of the machine file has it: identify at the loads of use, and trust no bar of friction",
            ),
        }[self.kind]
        return Problem(self.element, f"{what}: {shown}", remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLaw:
    """A law that the model lacks.

    Attributes:
        element: whose friction or force it is.
        kind: "friction", "stribeck", "asymmetric", "presliding", "position" or "load".
        problem: the finding.
        size: Stribeck's speed (rad/s or m/s) or the way (rad or m); NaN for the others.
    """

    element: str
    kind: str
    problem: Problem
    size: float = np.nan


@solving(IdentificationError)
def missing_laws(
    parts: Sequence[RegressionData],
    motions: Sequence[ElementMotion],
    elements: Sequence[str],
    result: Identification,
) -> tuple[MissingLaw, ...]:
    """Laws that the model lacks, by element, the one that explains most first, then what is left.

    Samples at which an output's own motion rests do not count: what friction holds there no law
    tells.

    Args:
        parts: the logs.
        motions: at the same samples, with the filter that forces and regressor have passed: columns
            of laws pass it.
        elements: whose laws are looked for.
        result: the identification of the logs.
    """
    if len(parts) > 1:  # logs may have measured other outputs
        whole, ends = merge(parts), np.cumsum([len(part) for part in parts])
        parts = [
            whole.part(slice(end - len(part), end)) for part, end in zip(parts, ends, strict=True)
        ]
    speeds = [motion.of_outputs for motion in motions]
    fits = BlockFits.of(parts, result, [np.abs(v) > REST * np.abs(v).max(axis=0) for v in speeds])
    laws: list[MissingLaw] = []
    before = fits.errors(), fits.values()
    if (before[0].max(axis=0) < RESIDUAL * fits.largest).all():
        return ()
    judged = []
    for element in elements:
        own = tuple(
            _laws(fits, motions, element, has_friction=f"{element}.coulomb" in parts[0].parameters)
        )
        for law in _promising(fits, own):
            if judgement := _told(law, before, fits.both(law.columns), fits, result):
                judged.append((judgement[0], law))
    fitted: tuple[np.ndarray, ...] | None = None
    for _, law in sorted(judged, key=lambda pair: pair[0]):
        columns = law.columns if fitted is None else tuple(map(_beside, fitted, law.columns))
        after = fits.both(columns)
        if judgement := _told(law, before, after, fits, result):
            laws.append(
                MissingLaw(element=law.element, kind=law.kind, problem=judgement[1], size=law.size)
            )
            fitted, before = columns, after
    return tuple(laws)


def _told(
    law: _Law, before: _Fit, after: _Fit, fits: BlockFits, result: Identification
) -> tuple[float, Problem] | None:
    """The law, and what is left of an error with it, if errors and parameters say that it is missing.

    Args:
        law: the law.
        before, after: without and with it.
        fits, result: what they are of.
    """
    (errors, values), (left, moved) = before, after
    gain, count = gained(left, errors), len(result.values)
    shifts = np.abs(moved[:count] - values[:count]) / result.standard_deviations
    most, output = int(np.argmax(shifts)), gain.output
    if gain.share < BETTER or not gain.is_fair or gain.alike < ALIKE:
        return None
    if shifts[most] < MOVED and gain.share < MUCH:
        return None
    percent = [float(100.0 * pooled(x)[output] / fits.largest[output]) for x in (errors, left)]
    shown = (
        f"with it the error of {result.training[output].output} where it was not fitted falls from {percent[0]:.3g} to "
        f"{percent[1]:.3g} % of the largest force, and {result.base.base[most].short_name()} moves by "
        f"{shifts[most]:.3g} of its standard deviations"
    )
    return percent[1] / percent[0], law.problem(float(moved[-law.columns[0].shape[-1]]), shown)


def _laws(
    fits: BlockFits, motions: Sequence[ElementMotion], element: str, *, has_friction: bool
) -> Iterator[_Law]:
    """All that is tried of an element; nothing of one at rest."""
    speeds, rows = zip(*(motion.of((element,)) for motion in motions), strict=True)
    largest = max(float(np.abs(speed).max()) for speed in speeds)
    stroke = max(motion.stroke(element) for motion in motions)
    if not (largest > 0.0 and stroke > 0.0):
        return
    length = "rad" if motions[0].turns[element] else "m"
    every = list(zip(motions, speeds, rows, strict=True))
    if not has_friction:
        plain = tuple(
            row * np.stack([np.sign(speed[:, 0]), speed[:, 0]], axis=1)[:, None]
            for _, speed, row in every
        )
        yield _Law(element=element, kind="friction", columns=_filtered(motions, plain))
    for share in SPEEDS:
        size = np.array([share * largest])
        curve = tuple(stribeck_friction(speed, size, row) for _, speed, row in every)
        yield _Law(
            element=element,
            kind="stribeck",
            size=share * largest,
            unit=f"{length}/s",
            columns=_filtered(motions, curve),
        )
    sides = tuple(asymmetric_friction(speed, row) for _, speed, row in every)
    yield _Law(element=element, kind="asymmetric", columns=_filtered(motions, sides))
    for share in WAYS:
        size = np.array([share * stroke])
        turning = tuple(
            row * presliding_state(speed, log.period, size)[:, None] for log, speed, row in every
        )
        yield _Law(
            element=element,
            kind="presliding",
            size=share * stroke,
            unit=length,
            columns=_filtered(motions, turning),
        )
    places = [np.cumsum(speed[:, 0]) * log.period for log, speed, _ in every]
    waves = tuple(
        row * np.cos(np.pi * (x[:, None] - x.min()) / stroke * np.arange(1, HARMONICS + 1))[:, None]
        for x, (_, _, row) in zip(places, every, strict=True)
    )
    yield _Law(element=element, kind="position", columns=_filtered(motions, waves))
    loads = tuple(
        row[: len(carried)] * (np.sign(speed[: len(carried), 0]) * np.abs(carried))[:, None, None]
        for carried, (_, speed, row) in zip(
            fits.carried([row for *_, row in every]), every, strict=True
        )
    )
    yield _Law(element=element, kind="load", columns=_filtered(motions, loads))


def _filtered(
    motions: Sequence[ElementMotion], columns: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """Return columns behind the filter of forces and regressor."""
    return tuple(motion.decimated(column) for motion, column in zip(motions, columns, strict=True))


def _promising(fits: BlockFits, laws: Sequence[_Law]) -> Iterator[_Law]:
    """Of an element's laws those that explain most, each kind in its best size."""
    if not laws:
        return
    together = [
        np.concatenate(columns, axis=2)
        for columns in zip(*(law.columns for law in laws), strict=True)
    ]
    edges = np.cumsum([law.columns[0].shape[-1] for law in laws])[:-1]
    best: dict[str, tuple[float, _Law]] = {}
    for share, law in zip(np.split(fits.explained(together), edges), laws, strict=True):
        if share.sum() >= PROMISING and share.sum() > best.get(law.kind, (0.0, law))[0]:
            best[law.kind] = (float(share.sum()), law)
    yield from (law for _, law in sorted(best.values(), key=lambda pair: -pair[0])[:TRIED])


def _beside(columns: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.concatenate([columns, other], axis=2)
