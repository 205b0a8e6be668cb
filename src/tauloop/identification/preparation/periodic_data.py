"""From one period of a periodic motion to regression data: derivatives by Fourier series, loops closed, no filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.identification.preparation.periods import fourier_derivatives
from tauloop.identification.regression.data import RegressionData, Ties
from tauloop.identification.regression.from_log import (
    measured_forces,
    regressor_rows,
    require_channels,
    require_positions,
)
from tauloop.logs import sample_period, samples
from tauloop.logs.channels import TIME
from tauloop.model import Model

if TYPE_CHECKING:
    import xarray as xr

#: A speed below this share of its channel's largest counts as zero, as in `Preparation`.
STANDSTILL = 1e-6
#: A channel that moves less than this share of its largest position in the whole period is at rest.
ROUNDING = 1e-13


def periodic_regression(
    model: Model,
    log: xr.Dataset,
    *,
    highest: float,
    output: str = "actuators",
    standstill: float = STANDSTILL,
    ties: Ties | None = None,
) -> RegressionData:
    """Regressor and forces of one period, such as of `PeriodAverage.log` or `TwoRuns.log`.

    Positions are differentiated by their Fourier series up to the highest frequency; the forces stay as they are, so
    that white noise of theirs stays white.

    Args:
        model: the machine.
        log: whole periods; positions of all actuators, and forces of some or all of them.
        highest: highest frequency of the motion that is kept, Hz.
        output: "actuators": one equation per actuator force; "joints": one per driven coordinate (forces A^T u), for
            which all forces must be measured.
        standstill: share of a channel's largest speed below which it counts as standing still.
        ties: relations between the parameters, such as `leaf_ties(model)`.

    Raises:
        InputError: no such output, or the highest frequency is not below half the rate.
        LogError: channels are missing, or in another unit than the machine's.
        PoseError: the log leaves the workspace of the described machine.
    """
    require_channels(model, log, output)
    forces, measured = measured_forces(model, log, output)
    outputs, units = model.output_ports(model.determined(output))
    return RegressionData(
        regressor=_rows(model, log, highest, output, standstill),
        forces=forces,
        parameters=tuple(parameter.name for parameter in model.parameters),
        parameter_units=tuple(parameter.unit for parameter in model.parameters),
        outputs=outputs,
        output_units=units,
        time=log[TIME].to_numpy(),
        measured=measured,
        ties=ties,
    )


def periodic_motion_regressor(
    model: Model, log: xr.Dataset, *, highest: float, output: str = "actuators", standstill: float = STANDSTILL
) -> np.ndarray:
    """Regressor (N, n_out, n_pi) of whole periods of a motion that has no forces, as `periodic_regression` makes it.

    Of the commanded motion, at the samples of the measured one, it is the instruments of ideal tracking (see
    `InstrumentalVariables`).

    Raises:
        InputError: no such output, or the highest frequency is not below half the rate.
        LogError: positions are missing, misspelt or in another unit than the machine's.
        PoseError: the motion leaves the workspace of the described machine.
    """
    require_positions(model, log, output)
    return _rows(model, log, highest, output, standstill)


def periodic_motion(
    model: Model, log: xr.Dataset, *, highest: float, standstill: float = STANDSTILL
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of whole periods, each (N, n) of the columns of `model.actuators`.

    Raises:
        InputError: the highest frequency is not below half the rate.
    """
    names = model.actuators.ports.position.columns
    position, velocity, acceleration = fourier_derivatives(
        samples(log, "position", names), 1.0 / sample_period(log), highest
    )
    speed = np.abs(velocity)
    velocity[speed < standstill * speed.max(axis=0)] = 0.0
    rests = np.ptp(position, axis=0) <= ROUNDING * np.abs(position).max(axis=0)
    velocity[:, rests] = acceleration[:, rests] = 0.0
    return position, velocity, acceleration


def _rows(model: Model, log: xr.Dataset, highest: float, output: str, standstill: float) -> np.ndarray:
    motion = periodic_motion(model, log, highest=highest, standstill=standstill)
    start = model.actuators.track(motion[0]).q if model.assembly.rows else None
    return regressor_rows(model, motion, output, start)
