"""Bounds that make a rod a cable: it pulls within them and never pushes."""

from __future__ import annotations

import math

from tauloop.common.records import dataclass
from tauloop.mechanism.expression import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Tension:
    """Bounds of the pull in a rod, and its behaviour in a simulation.

    Attributes:
        least, greatest: bounds of the tension, N; the least is not negative.
        stiffness: in a simulation the cable pulls with max(0, stiffness x + damping x'), x its
            stretch; None for a cable that does not stretch.
        damping: N s/m; None for none.
        restitution: share of its speed with which a cable that does not stretch rebounds when it is
            tautened (0 to 1); None where this is not known.
    """

    least: float
    greatest: float = math.inf
    stiffness: Expression | None = None
    damping: Expression | None = None
    restitution: float | None = None
