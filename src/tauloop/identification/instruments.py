"""Instruments without measurement noise: the regressor of a machine in a simulated closed loop."""

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

#: A function that simulates a machine in closed loop on the commanded motion, and returns its
#: positions at the samples of the measured log.
ClosedLoop: TypeAlias = "Callable[[Mechanism], xr.Dataset]"


def simulated_instruments(
    model: Model, closed_loop: ClosedLoop, preparation: Preparation, *, output: str = "actuators"
) -> Simulation:
    """Return the instruments of `InstrumentalVariables` from a simulated closed loop.

    The simulated machine has the current estimates of the parameters. Its motion depends only on
    the base parameters, so a parameter that represents a combination may have the value of the
    whole combination.

    Args:
        model: the machine, as for `regression_data`.
        closed_loop: the simulation, with the controller of the measured machine.
        preparation: preparation of the measured log.
        output: rows of the regressor of the measured log: "actuators" or "joints".

    Source: Janot, Vandanjon and Gautier 2014, A generic instrumental variable approach for
        industrial robot identification.
    """

    def instruments(parameters: np.ndarray) -> np.ndarray:
        """Return the regressor of the motion that is simulated with the parameters."""
        simulated = closed_loop(identified_mechanism(model, parameters, source="estimated so far"))
        return motion_regressor(model, simulated, preparation, output=output)

    return instruments
