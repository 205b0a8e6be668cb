"""Choice between the compiled and the interpreted stepper."""

from __future__ import annotations

import logging

from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.integrate.integrators import Integrator
from tauloop.simulation.stepping.compiled import MAX_OPERATIONS, CompiledStepper
from tauloop.simulation.stepping.interpreted import InterpretedStepper
from tauloop.simulation.stepping.stepper import Stepper
from tauloop.simulation.system import System

_LOGGER = logging.getLogger("tauloop")


def stepper(system: System, integrator: Integrator, directions: int = 0) -> Stepper:
    """Return the stepper of an integrator, compiled if the model's evaluator compiles.

    Args:
        system: the equations.
        integrator: the integration method.
        directions: number of directions along which the states are differentiated.
    """
    evaluator = system.model.evaluator
    if isinstance(evaluator, Compiled) and system.rate.program.operations <= MAX_OPERATIONS:
        try:
            return CompiledStepper(system, integrator, evaluator, directions)
        except EngineError as error:
            _LOGGER.warning(
                "simulating without machine code, which is about a hundred times slower: %s", error
            )
    return InterpretedStepper(system, integrator, directions)
