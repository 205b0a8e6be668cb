"""Maximum stroke rate of cable machines: tension bounds as quadratic functions of the rate.

The forces of redundant winches can be chosen, so they are not quadratic in the rate r. The condition
that there are forces within the bounds is quadratic, however. The bounds are G y >= h, where y are
the free forces, h is quadratic in r, and G depends only on the pose. They can be satisfied if
c h <= 0 for all weights c >= 0 with c G = 0 (Farkas' lemma; `nearest`). The weights that limit the
margin at a rate thus give a condition for all rates. Conditions are added at the largest rate that
the known conditions allow, until no condition is violated.
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

#: Margin for rounding errors, as a fraction of the narrowest bounds.
SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Use of the tension bounds along a stroke.

    Attributes:
        share: utilization of the tension bounds (M,): 0 at the center of the narrowest bounds, 1 at
            a bound.
        cable: index of the cable that limits the margin (M,); -1 if nothing limits it.
        weights: weights of the condition that limits the margin (M, n).
    """

    share: np.ndarray
    cable: np.ndarray
    weights: np.ndarray


def margins(stroke: Stroke, progress: LawSample, rate: float, force: float) -> Margins:
    """Return the margins of the tensions at points (M,) of a stroke.

    Args:
        stroke: the path of the machine's coordinates.
        progress: progress along the path at the points.
        rate: rate, 1/s; with a negative rate the stroke runs backward.
        force: fraction of the largest tensions and of winches' forces that may be used.

    Raises:
        PoseError: a pose is singular.
    """
    terms = _terms(stroke, progress, rate, force)
    distance, weights = margin(*terms.conditions()[2:])
    is_bounded = np.isfinite(distance)
    relative_distance = np.where(is_bounded, distance, 0.0) / _half_range(terms)
    return Margins(
        share=np.where(is_bounded, 1.0 - relative_distance, -np.inf),
        cable=np.where(is_bounded, terms.limiting_cable(weights), -1),
        weights=weights,
    )


def conditions(
    stroke: Stroke, progress: LawSample, rate: float, margin: Margins, force: float
) -> Quadratics:
    """Return the conditions of the weights as functions of the rate (M,).

    They must not be positive. They are normalized by half the width of the narrowest bounds.
    """

    def condition(r: float) -> np.ndarray:
        terms = _terms(stroke, progress, r, force)
        _, _, _, h = terms.conditions()
        return np.asarray((margin.weights * h).sum(axis=1) / _half_range(terms) + SLACK)

    return Quadratics.around(rate, condition)


def tension_problems(
    stroke: Stroke, progress: LawSample, rate: float, force: float
) -> list[Problem]:
    """Return the problems of cable tensions at a rate (1/s), at the worst point of a stroke."""
    worst = int(np.argmax(margins(stroke, progress, rate, force).share))
    sample = LawSample(
        s=progress.s[[worst]],
        derivative=progress.derivative[[worst]],
        second_derivative=progress.second_derivative[[worst]],
    )
    problems = _terms(stroke, sample, rate, force).problems(np.zeros(1, dtype=int), 1, "motion")
    place = stroke.place(float(progress.s[worst]))
    remedy = (
        "choose another path (`tauloop workspace` shows where cables hold loads), a lighter load, "
        "or other bounds"
    )
    return [
        replace(
            problem,
            what=f"even at arbitrarily low speed, at {place}: {problem.what}",
            remedy=remedy,
        )
        for problem in problems
    ]


def _terms(stroke: Stroke, progress: LawSample, rate: float, force: float) -> TensionTerms:
    motion = stroke.motion(progress, rate, progress.s)
    return stroke.functions.tension_terms(*motion.states, start=stroke.start(progress.s))[0].shared(
        force
    )


def _half_range(terms: TensionTerms) -> float:
    """Return half of the narrowest range of a tension, N.

    Without a bounded range it is the largest lower bound, or 1 N.
    """
    ranges = np.concatenate(
        [terms.greatest - terms.least, [2.0 * winch.max_tension for winch in terms.limited]]
    )
    narrowest = float(ranges.min())
    return 0.5 * narrowest if 0 < narrowest < np.inf else max(float(terms.least.max()), 1.0)
