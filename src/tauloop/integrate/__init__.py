"""Carrying states forward in time: one integrator with events, in C and, without a compiler, in Python."""

from tauloop.integrate.integrators import DormandPrince, Integrator, Method, Radau, RungeKutta4
from tauloop.integrate.tableau import Tableau, chained

__all__ = ["DormandPrince", "Integrator", "Method", "Radau", "RungeKutta4", "Tableau", "chained"]
__dir__ = __all__.copy
