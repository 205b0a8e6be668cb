"""From one period of a periodic motion to regression data: derivatives by Fourier series, loops closed, no filter."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tauloop.errors import LogError
from tauloop.functions import Model
from tauloop.identify.data import RegressionData, Ties
from tauloop.identify.periods import fourier_derivatives
from tauloop.logs import channels, sample_period, samples
from tauloop.logs.channels import TIME
from tauloop.logs.matching import channel_problems


def periodic_regression(model: Model, log: xr.Dataset, *, highest: float, ties: Ties | None = None) -> RegressionData:
    """Regressor and forces of one period, such as of `PeriodAverage.log` or `TwoRuns.log`.

    Positions are differentiated by their Fourier series up to the highest frequency; the forces stay as they are, so
    that white noise of theirs stays white.

    Args:
        model: the machine.
        log: whole periods; positions of all actuators, and forces of some or all of them.
        highest: highest frequency of the motion that is kept, Hz.
        ties: relations between the parameters, such as `leaf_ties(model)`.

    Raises:
        InputError: the highest frequency is not below half the rate.
        LogError: channels are missing, or in another unit than the machine's.
        PoseError: the log leaves the workspace of the described machine.
    """
    port = model.actuators.ports["position"]
    names = port.columns
    outputs, units = model.output_ports("actuators")
    forces = [name for name in names if name in channels(log, "force")]
    wanted = {
        "position": dict(zip(names, port.units, strict=True)),
        "force": {name: units[names.index(name)] for name in forces or names},
    }
    if problems := channel_problems(log, wanted):
        raise LogError(problems)
    motion = fourier_derivatives(samples(log, "position", names), 1.0 / sample_period(log), highest)
    start = model.actuators.track(motion[0]).q if model.assembly.rows else None
    measured = np.isin(names, forces)
    force = np.zeros((len(motion[0]), len(names)))
    force[:, measured] = samples(log, "force", forces)
    return RegressionData(
        regressor=model.actuators.regressor(*motion, start=start),
        forces=force,
        parameters=tuple(parameter.name for parameter in model.parameters),
        parameter_units=tuple(parameter.unit for parameter in model.parameters),
        outputs=outputs,
        output_units=units,
        time=log[TIME].to_numpy(),
        measured=measured,
        ties=ties,
    )
