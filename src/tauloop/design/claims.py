"""Requirements over boxes of poses, and the arithmetic of affine forms that proves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.intervals import forms

#: Factor by which a proof tightens a limit, so that it also succeeds when it is recomputed with
#: other rounding.
PROOF_FACTOR = 1.0 - 1e-9
#: The same tightening as a fraction of a value of the margin.
PROOF_MARGIN = 1.0 - PROOF_FACTOR
#: Bound of the absolute rounding errors of matrices of order one at a pose: of their entries, and
#: of the singular values and eigenvalues that LAPACK computes.
POINT_ERROR = 1e-12

#: Operations on affine forms by name, with which programs are evaluated over boxes.
ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "add": forms.add,
    "subtract": forms.subtract,
    "multiply": forms.multiply,
    "divide": forms.divide,
    "negate": forms.negate,
    "square": forms.square,
    "twice": lambda x: forms.multiply(x, 2.0),
    "invert": forms.invert,
    "root": forms.root,
    "sine": forms.sine,
    "cosine": forms.cosine,
    "tangent": lambda x: forms.divide(forms.sine(x), forms.cosine(x)),
    "absolute": forms.absolute,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A requirement over N boxes: a margin must be positive at every pose.

    The margin is a quantity minus its limit, or a function of both with the same sign. For the
    distance to a singularity, the margin is the difference of the squares of distance and limit.
    The distance itself, which is reported, is then the measure.

    Attributes:
        name: name of the requirement.
        lower: proved lower bound of the margin in the box (N,).
        margin_at_center: the margin at the center of the box (N,).
        slopes: changes of the linearized margin from the center to each of the k pairs of faces of
            the box (N, k).
        proved: whether the margin is positive in the whole box (N,).
        refuted: whether the margin is negative at every pose of the box (N,).
        measure: proved lower bound of the measure (N,); None if the margin is reported.
        measure_at_center: the measure at the center of the box (N,); None if the margin is
            reported.
        limit: the limit of the measure.
    """

    name: str
    lower: np.ndarray
    margin_at_center: np.ndarray
    slopes: np.ndarray
    proved: np.ndarray
    refuted: np.ndarray
    measure: np.ndarray | None = None
    measure_at_center: np.ndarray | None = None
    limit: float = 0.0

    def excess(self, box: int) -> float:
        """Return the measure at the center of a box minus its limit; or the margin."""
        if self.measure_at_center is None:
            return float(self.margin_at_center[box])
        return float(self.measure_at_center[box]) - self.limit
