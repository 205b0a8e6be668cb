"""Instruments without the measurement's noise: the regressor of a machine simulated with the parameters so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tauloop.identification.estimation.errors_in_variables import Simulation
from tauloop.identification.parameters.write_back import identified_mechanism
from tauloop.identification.regression.from_log import motion_regressor
from tauloop.logs import Preparation
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

if TYPE_CHECKING:
    import xarray as xr

#: Runs a machine in closed loop on the commanded motion; gives its positions, at the samples of the
#: measured log.
ClosedLoop: TypeAlias = "Callable[[Mechanism], xr.Dataset]"


def simulated_instruments(
    model: Model, closed_loop: ClosedLoop, preparation: Preparation, *, output: str = "actuators"
) -> Simulation:
    """Instruments of `InstrumentalVariables` from a simulated closed loop.

    The simulated machine has the parameters found so far. The base parameters are all that its
    motion depends on, so it does not matter that single parameters that stand for a combination are
    not those of real bodies.

    Args:
        model: the machine, as for `regression_data`.
        closed_loop: the simulation, with the controller of the measured machine.
        preparation, output: those of the measured log.

    Source: Janot, Vandanjon and Gautier 2014, A generic instrumental variable approach for
        industrial robot
    identification.
    """

    def instruments(parameters: np.ndarray) -> np.ndarray:
        simulated = closed_loop(identified_mechanism(model, parameters, source="estimated so far"))
        return motion_regressor(model, simulated, preparation, output=output)

    return instruments
