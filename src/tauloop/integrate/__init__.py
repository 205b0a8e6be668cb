"""Time integration with events: one integrator in C.

Examples:
    >>> import tauloop as tl
    >>> tl.integrate.DormandPrince(rtol=1e-9).rtol
    1e-09
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.integrate.integrators import (
        DormandPrince as DormandPrince,
        Integrator as Integrator,
        Method as Method,
        Radau as Radau,
        RungeKutta4 as RungeKutta4,
    )
    from tauloop.integrate.tableau import Tableau as Tableau, chained as chained
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
