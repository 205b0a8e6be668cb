"""Which stepper carries a system forward with an integrator."""

from __future__ import annotations

import logging

from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.integrate.integrators import Integrator
from tauloop.simulation.stepping.compiled import LARGEST, CompiledStepper
from tauloop.simulation.stepping.interpreted import InterpretedStepper
from tauloop.simulation.stepping.stepper import Stepper
from tauloop.simulation.system import System

_LOGGER = logging.getLogger("tauloop")


def stepper(system: System, integrator: Integrator, directions: int = 0) -> Stepper:
    """The stepper of an integrator, with so many derivatives; compiled where the model's evaluator compiles."""
    evaluator = system.model.evaluator
    if isinstance(evaluator, Compiled) and system.rate.program.operations <= LARGEST:
        try:
            return CompiledStepper(system, integrator, evaluator, directions)
        except EngineError as error:
            _LOGGER.warning("simulating interpreted, which is some hundred times slower: %s", error)
    return InterpretedStepper(system, integrator, directions)
