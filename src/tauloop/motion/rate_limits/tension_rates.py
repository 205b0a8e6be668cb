"""Fastest rate of a stroke with cables: their bounds as quadratics in the rate of time.

Forces of redundant winches are chosen, so they are not quadratic in the rate r. The condition that
some are within the bounds is quadratic, however. Tensions exist where no weights c >= 0 with c G = 0 make
c h positive (Farkas; `nearest`), and h is quadratic in r while G depends on the pose alone. The
weights that bound the margin at one rate thus give a condition for all rates, and those found at
the largest rate that the known ones allow are added until none is broken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.equations.assembly.nearest import margin
from tauloop.model.forces.tension_terms import TensionTerms
from tauloop.motion.laws import LawSample
from tauloop.motion.rate_limits.scaling import Quadratics
from tauloop.motion.strokes.stroke import Stroke

#: Fraction of the narrowest bounds that is left for rounding.
SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Tensions along a stroke.

    Attributes:
        share: fraction of what the bounds allow (M,): one where they are just kept, zero in the
            middle of the narrowest.
        cable: numbers of the cables that bound it (M,); -1 where nothing does.
        weights: weights of the conditions that do (M, n).
    """

    share: np.ndarray
    cable: np.ndarray
    weights: np.ndarray


def margins(stroke: Stroke, progress: LawSample, rate: float, force: float) -> Margins:
    """Return the margins at places (M,) of a stroke at a rate (1/s); a negative rate runs it back.

    Args:
        stroke: the path in the machine.
        progress: the places.
        rate: 1/s.
        force: fraction of greatest tensions and of winches' forces that may be used.

    Raises:
        PoseError: a singular pose.
    """
    terms = _terms(stroke, progress, rate, force)
    distance, weights = margin(*terms.conditions()[2:])
    bounded = np.isfinite(distance)
    share = np.where(bounded, 1.0 - np.where(bounded, distance, 0.0) / _size(terms), -np.inf)
    return Margins(
        share=share, cable=np.where(bounded, terms.limiting_cable(weights), -1), weights=weights
    )


def conditions(
    stroke: Stroke, progress: LawSample, rate: float, margin: Margins, force: float
) -> Quadratics:
    """Return the conditions of the weights on any rate (M,).

    They must not be positive; the unit is the narrowest bounds.
    """

    def asked(r: float) -> np.ndarray:
        terms = _terms(stroke, progress, r, force)
        return np.asarray(
            (margin.weights * terms.conditions()[3]).sum(axis=1) / _size(terms) + SLACK
        )

    return Quadratics.around(rate, asked)


def loose(stroke: Stroke, progress: LawSample, rate: float, force: float) -> list[Problem]:
    """Return the error of a stroke that cables cannot move at a rate (1/s), at its worst place."""
    worst = int(np.argmax(margins(stroke, progress, rate, force).share))
    sample = LawSample(
        s=progress.s[[worst]], first=progress.first[[worst]], second=progress.second[[worst]]
    )
    problems = _terms(stroke, sample, rate, force).problems(np.zeros(1, dtype=int), 1, "motion")
    place = stroke.place(float(progress.s[worst]))
    remedy = (
        "choose another path (`tauloop workspace` shows where loads are held), a lighter load, "
        "or other bounds"
    )
    return [
        replace(problem, what=f"however slow, at {place}: {problem.what}", remedy=remedy)
        for problem in problems
    ]


def _terms(stroke: Stroke, progress: LawSample, rate: float, force: float) -> TensionTerms:
    motion = stroke.motion(progress, rate, progress.s)
    return stroke.functions.tension_terms(*motion.states, start=stroke.start(progress.s))[0].shared(
        force
    )


def _size(terms: TensionTerms) -> float:
    """Return half of the narrowest range of a tension, N.

    Without a bounded range it is the largest lower bound, or 1 N.
    """
    ranges = np.concatenate(
        [terms.greatest - terms.least, [2.0 * winch.tension for winch in terms.limited]]
    )
    narrowest = float(ranges.min())
    return 0.5 * narrowest if 0 < narrowest < np.inf else max(float(terms.least.max()), 1.0)
