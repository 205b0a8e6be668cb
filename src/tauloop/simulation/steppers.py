"""Which stepper carries a system forward with an integrator."""

from __future__ import annotations

import logging

from tauloop.codegen.evaluator import Compiled
from tauloop.errors import EngineError
from tauloop.simulation.options import Integrator
from tauloop.simulation.stepping import Method, Stepper
from tauloop.simulation.stepping_compiled import LARGEST, CompiledStepper
from tauloop.simulation.stepping_interpreted import InterpretedStepper
from tauloop.simulation.system import System

_LOGGER = logging.getLogger("tauloop")


def stepper(system: System, integrator: Integrator) -> Stepper:
    """The stepper of an integrator; compiled with the model where the model's evaluator compiles."""
    method, evaluator = Method.of(integrator), system.model.evaluator
    if isinstance(evaluator, Compiled) and system.rate.program.operations <= LARGEST:
        try:
            return CompiledStepper(system, method, evaluator)
        except EngineError as error:
            _LOGGER.warning("simulating interpreted, which is some hundred times slower: %s", error)
    return InterpretedStepper(system, method)
