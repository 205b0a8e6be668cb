"""Fastest rate of a stroke with cables: bounds of tensions as quadratics in the rate.

The forces of redundant winches are chosen freely, so they are not quadratic in the rate r. The
condition that there are forces within the bounds is quadratic, however. Such tensions exist if
c h <= 0 for all weights c >= 0 with c G = 0 (Farkas; `nearest`). Here h is quadratic in r, and G
depends only on the pose. The weights that limit the margin at a rate thus give a condition for all
rates. Conditions are added at the largest rate that the known conditions allow, until no condition
is violated.
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
    """Tensions along a stroke.

    Attributes:
        share: used fraction of the bounds (M,): 1 if they are just satisfied, 0 in the middle of
            the narrowest bounds.
        cable: index of the cable that limits the margin (M,); -1 if nothing limits it.
        weights: weights of the condition that limits the margin (M, n).
    """

    share: np.ndarray
    cable: np.ndarray
    weights: np.ndarray


def margins(stroke: Stroke, progress: LawSample, rate: float, force: float) -> Margins:
    """Return the margins of the tensions at points (M,) of a stroke.

    Args:
        stroke: the path in the machine.
        progress: progress along the path at the points.
        rate: rate, 1/s; with a negative rate the stroke runs backward.
        force: fraction of the largest tensions and of winches' forces that may be used.

    Raises:
        PoseError: a pose is singular.
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
    """Return the conditions of the weights as functions of the rate (M,).

    They must not be positive. Their unit is half of the narrowest bounds.
    """

    def asked(r: float) -> np.ndarray:
        terms = _terms(stroke, progress, r, force)
        return np.asarray(
            (margin.weights * terms.conditions()[3]).sum(axis=1) / _size(terms) + SLACK
        )

    return Quadratics.around(rate, asked)


def loose(stroke: Stroke, progress: LawSample, rate: float, force: float) -> list[Problem]:
    """Return the problems of a stroke that no tensions allow at a rate (1/s) at its worst point."""
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
        [terms.greatest - terms.least, [2.0 * winch.max_tension for winch in terms.limited]]
    )
    narrowest = float(ranges.min())
    return 0.5 * narrowest if 0 < narrowest < np.inf else max(float(terms.least.max()), 1.0)
