"""Sensor models (encoder quantization and force noise) for logs of simulated machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem
from tauloop.common.options import NamedFields
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.logs.log import build_log, port_channels

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensors(NamedFields, ReprMixin):
    """Accuracy of the sensors of a machine's actuators.

    Attributes:
        resolution: encoder resolution of each position (n,), m or rad; zero for no quantization.
        force_noise: standard deviation of each force (n,), N or N m.

    Examples:
        >>> import tauloop as tl
        >>> tl.Sensors(resolution=[1e-5, 1e-5], force_noise=[0.01, 0.01]).force_noise
        [0.01, 0.01]
    """

    resolution: np.ndarray
    force_noise: np.ndarray


def measure(
    time: np.ndarray,
    position: np.ndarray,
    force: np.ndarray,
    names: Sequence[str],
    position_units: Sequence[str],
    force_units: Sequence[str],
    sensors: Sensors,
    rng: np.random.Generator,
) -> xr.Dataset:
    """Return a simulated log with encoder quantization and force noise.

    Args:
        time: time stamps (N,) of the samples, s.
        position: true positions (N, n), m or rad.
        force: true forces (N, n), N or N m.
        names: names of the actuators.
        position_units, force_units: SI units of the channels.
        sensors: resolution and noise.
        rng: random number generator for the noise.

    Raises:
        InputError: the shapes of signals, names, units and sensors do not match, or a resolution or
            noise is negative or not finite.
    """
    resolution = np.asarray(sensors.resolution, dtype=float)
    noise = np.asarray(sensors.force_noise, dtype=float)
    n = len(names)
    shapes = {
        "position": (np.shape(position), (len(time), n)),
        "force": (np.shape(force), (len(time), n)),
        "position_units": (np.shape(position_units), (n,)),
        "force_units": (np.shape(force_units), (n,)),
        "resolution": (resolution.shape, (n,)),
        "force_noise": (noise.shape, (n,)),
    }
    problems = [
        Problem(
            where=name,
            what=f"has shape {actual}",
            remedy=f"give {needed}: {counted(len(time), 'sample')} of {counted(n, 'actuator')}",
        )
        for name, (actual, needed) in shapes.items()
        if actual != needed
    ]
    problems += [
        Problem(
            where=name,
            what=f"must be finite and not negative, got {value:g}",
            remedy="give zero or a positive number",
        )
        for name, values in (("resolution", resolution), ("force_noise", noise))
        for value in values.ravel()
        if not 0 <= value < np.inf
    ]
    InputError.raise_if_any(problems)
    step = np.where(resolution > 0, resolution, 1.0)
    readings = np.where(resolution > 0, np.round(position / step) * step, position)
    noisy_force = force + noise * rng.normal(size=force.shape)
    signals = port_channels("position", names, position_units, readings)
    return build_log(time, signals + port_channels("force", names, force_units, noisy_force))
