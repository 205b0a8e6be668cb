"""Requirements in boxes, and the arithmetic of first-order forms by which they are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.intervals import forms

#: Reserve of proofs, so that another arithmetic confirms them.
SURE = 1.0 - 1e-9
#: Errors of singular values and eigenvalues of LAPACK at a pose, relative to values of order one.
POINT_ERROR = 1e-12

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
    """One requirement in N boxes.

    Attributes:
        name: what must be positive.
        lower: proved lower bound (N,) of the quantity less its limit.
        middle: the value at the middle of the box less its limit (N,).
        slopes: first-order changes of the value along the box (N, k).
        proved: whether the quantity exceeds its limit in the whole box (N,).
        refuted: whether it does not, at every pose of the box (N,).
        measure: proved lower bound of the measure itself (N,), if it has one.
        at_middle: the measure at the middle of the box (N,), if it has one.
        limit: the limit of the measure, or of the quantity.
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

    def excess(self, which: int) -> float:
        """Return the quantity at the middle of a box less its limit."""
        if self.at_middle is None:
            return float(self.middle[which])
        return float(self.at_middle[which]) - self.limit
