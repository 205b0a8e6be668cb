"""Which stepper carries a system forward with an integrator."""

from __future__ import annotations

import logging

from tauloop.codegen.evaluator import Compiled
from tauloop.errors import EngineError, InputError, Problem
from tauloop.simulate.options import DormandPrince, Integrator, Radau, RungeKutta4
from tauloop.simulate.stepping import Stepper
from tauloop.simulate.stepping_compiled import LARGEST, CompiledStepper
from tauloop.simulate.stepping_implicit import ImplicitStepper
from tauloop.simulate.stepping_interpreted import InterpretedStepper
from tauloop.simulate.system import System

_LOGGER = logging.getLogger("tauloop")


def stepper(system: System, integrator: Integrator) -> Stepper:
    """The stepper of an integrator; compiled with the model where the model's evaluator compiles."""
    if isinstance(integrator, Radau):
        return ImplicitStepper(system, integrator)
    if not isinstance(integrator, DormandPrince | RungeKutta4):
        what, remedy = f"{type(integrator).__name__} is unknown", "DormandPrince, RungeKutta4 or Radau"
        raise InputError(Problem(where="integrator", what=what, remedy=remedy))
    evaluator = system.model.evaluator
    if isinstance(evaluator, Compiled) and system.rate.program.operations <= LARGEST:
        try:
            return CompiledStepper(system, integrator, evaluator)
        except EngineError as error:
            _LOGGER.warning("simulating interpreted, which is some hundred times slower: %s", error)
    return InterpretedStepper(system, integrator)
