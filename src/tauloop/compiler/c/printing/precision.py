"""Precision of numbers in generated code, with the tolerances of its loops and checks."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from tauloop.common.names.deprecated import old_attribute
from tauloop.compiler.c.printing import single
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT

#: Residual (characteristic lengths or dimensionless) below which the projection onto the loop
#: constraints takes its last Newton step. This step squares the residual, so that only rounding
#: errors remain.
PROJECTION_TOLERANCE = 1e-12


class Precision(Enum):
    """Precision of computed numbers.

    Attributes:
        DOUBLE: 64 bits.
        SINGLE: 32 bits: half the memory, and many times the throughput on most
            GPUs.
    """

    DOUBLE = "double"
    SINGLE = "single"

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of arrays."""
        return np.dtype(np.float64 if self is Precision.DOUBLE else np.float32)

    @property
    def smallest_pivot(self) -> float:
        """Fraction of its typical size below which a pivot indicates a singular pose."""
        return SMALLEST_PIVOT if self is Precision.DOUBLE else single.SMALLEST_PIVOT

    @property
    def converged(self) -> float:
        """Residual above which a loop is not closed, characteristic lengths or dimensionless."""
        return CONVERGED if self is Precision.DOUBLE else single.CONVERGED

    returned = old_attribute("returned", "projection_tolerance")

    @property
    def projection_tolerance(self) -> float:
        """Residual below which a projection takes its last step (lengths or dimensionless)."""
        return PROJECTION_TOLERANCE if self is Precision.DOUBLE else single.PROJECTION_TOLERANCE

    def written(self, text: str) -> str:
        """Return C text of doubles, converted to this precision."""
        return text if self is Precision.DOUBLE else single.in_single(text)

    def limited(self, function: CFunction) -> CFunction:
        """Return a function whose loops end at the limits of this precision."""
        if self is Precision.DOUBLE:
            return function
        return replace(
            function,
            last_step=single.SINGLE_STEP_TOLERANCE,
            max_steps=single.NEWTON_ITERATIONS,
            largest=single.LARGEST,
        )
