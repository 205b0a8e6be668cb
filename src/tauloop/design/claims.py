"""Requirements over boxes of poses, and the arithmetic of affine forms that proves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.intervals import forms

#: Safety factor just below one in the inequalities of proofs, so that proofs also succeed if they
#: are recomputed with other rounding errors.
PROOF_MARGIN = 1.0 - 1e-9
#: Errors of singular values and eigenvalues of LAPACK at a pose, relative to values of order one.
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

    The margin is a quantity minus its limit. For the distance to a singularity, the margin is the
    difference of the squares, and the measure is the distance itself, which is reported.

    Attributes:
        name: name of the requirement.
        lower: proved lower bound of the margin in the box (N,).
        middle: the margin at the center of the box (N,).
        slopes: linear changes (N, k) of the margin from the center to the faces of the box.
        proved: whether the margin is positive in the whole box (N,).
        refuted: whether the margin is negative at every pose of the box (N,).
        measure: proved lower bound of the measure (N,); None if the quantity has no measure.
        at_middle: the measure at the center of the box (N,); None if the quantity has no measure.
        limit: the limit of the measure.
    """

    name: str
    lower: np.ndarray
    middle: np.ndarray
    slopes: np.ndarray
    proved: np.ndarray
    refuted: np.ndarray
    measure: np.ndarray | None = None
    at_middle: np.ndarray | None = None
    limit: float = 0.0

    def excess(self, box: int) -> float:
        """Return the measure at the center of a box minus its limit; without one, the margin."""
        if self.at_middle is None:
            return float(self.middle[box])
        return float(self.at_middle[box]) - self.limit
