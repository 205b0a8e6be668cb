"""Carrying states forward in time: one integrator with events, in C and, without a compiler, in Python.

Examples:
    >>> import tauloop as tl
    >>> tl.integrate.DormandPrince(rtol=1e-9).rtol
    1e-09
"""

from tauloop.common.lazy import public_names
from tauloop.integrate.integrators import (
    DormandPrince as DormandPrince,
    Integrator as Integrator,
    Method as Method,
    Radau as Radau,
    RungeKutta4 as RungeKutta4,
)
from tauloop.integrate.tableau import Tableau as Tableau, chained as chained

__dir__, __all__ = public_names(__name__)
