"""Regression columns for compliant transmissions, one for each actuator.

An encoder on the motor measures q while the load is at x = q - tau / k, where tau is the force
through the transmission and k is its stiffness. The motor's force follows the motion of the load,
F(x, x', x''). To first order, this force differs from F(q, q', q'') by -(dF/dq tau + dF/dv tau' +
dF/da tau'') / k, with the derivatives of F with respect to position q, velocity v and acceleration
a. The first term is the droop under the weight, and the last term is the vibration of the load. Dry
friction and the motor's own inertia (from the machine file) act before the transmission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tauloop.common.errors import AssemblyError, PoseError
from tauloop.common.records import dataclass
from tauloop.identification.regression.from_log import regressor_rows, regressor_start
from tauloop.logs.rates import MIN_SPECTRUM_SAMPLES, in_band
from tauloop.model import Model

#: Last parts of the names of terms whose forces are discontinuous. These terms are assumed not to
#: deflect the transmission.
DISCONTINUOUS_TERMS = ("coulomb", "coulomb_asymmetry", "stribeck", "presliding")
#: Last part of the name of a motor's own inertia.
MOTOR_INERTIA = "inertia"
#: Number of samples whose forces are computed at a time, which limits the memory.
SAMPLES_PER_BATCH = 2_000
#: Number of samples over which the load's inertia at a motor is averaged.
INERTIA_SAMPLES = 100
#: Step of the finite differences, s^2: the inverse square of the angular frequency of a load that
#: vibrates at 500 Hz.
BENDING_DIFFERENCE_STEP = 1e-7

#: Positions, velocities and accelerations (N, n) of the actuators.
Motion: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BendingColumns:
    """The changes of all outputs' forces due to compliant transmissions.

    Attributes:
        values: (N, n_out, n_u), one column for each actuator's transmission, for a load that
            vibrates at an angular frequency of 1 rad/s with the motor locked.
        inertias: (n_u,) inertia of the load at each actuator, kg m^2 or kg. It equals the stiffness
            times the coefficient of the column in s^2.
    """

    values: np.ndarray
    inertias: np.ndarray


class Bending:
    """The compliance columns of logs, computed once with the parameters of the first fit.

    The columns are small corrections, so the parameters of a fit to some of the samples are
    accurate enough for all samples.
    """

    def __init__(self, model: Model, motions: Sequence[Motion]) -> None:
        """Store the motion of every log.

        Args:
            model: the machine; its outputs are the actuators' forces.
            motions: motion of each log, at the samples of its regression data.
        """
        self._model = model
        self._motions = motions
        self._columns: list[BendingColumns] | None = None

    def columns(
        self, parameters: Mapping[str, float], counts: Sequence[int], period: float
    ) -> BendingColumns | None:
        """Return the columns of the first samples of every log.

        Args:
            parameters: values of the regressor's columns, by name.
            counts: number of samples of each log.
            period: sampling period, s.

        Returns:
            The columns; None if a motion is too short, leaves the workspace, or has a load whose
            inertia is not positive.
        """
        motions = self._motions[: len(counts)]
        for motion, count in zip(motions, counts, strict=True):
            if len(motion[0]) < max(count, MIN_SPECTRUM_SAMPLES):
                return None
        if self._columns is None:
            transmitted = _transmitted_parameters(self._model, parameters)
            try:
                self._columns = [
                    bending_columns(self._model, motion, transmitted, period) for motion in motions
                ]
            except (PoseError, AssemblyError):
                self._columns = []
        inertias = [columns.inertias for columns in self._columns]
        if not inertias or np.min(inertias) <= 0.0:
            return None
        values = [
            columns.values[:count] for columns, count in zip(self._columns, counts, strict=True)
        ]
        return BendingColumns(values=np.concatenate(values), inertias=np.mean(inertias, axis=0))


def bending_columns(
    model: Model, motion: Motion, parameters: np.ndarray, period: float
) -> BendingColumns:
    """Return the compliance columns along a motion.

    Args:
        model: the machine.
        motion: motion of its actuators, evenly sampled.
        parameters: (n_pi,) values of the model's parameters, without the terms that act before the
            transmissions.
        period: sampling period, s.

    Returns:
        The columns, which are zero for actuators whose load has no positive inertia.

    Raises:
        PoseError, AssemblyError: the motion of the loads leaves the workspace.
    """
    start = regressor_start(model, motion[0], "actuators")
    forces = _forces(model, motion, parameters, start)
    inertias = _inertias(model, motion, parameters, start)
    columns = []
    for actuator, inertia in enumerate(inertias):
        if inertia <= 0.0:
            columns.append(np.zeros_like(forces))
            continue
        position, velocity, acceleration = (x.copy() for x in motion)
        force_rates = in_band(forces[:, actuator], rate=1.0 / period)
        for signal, force_rate in zip((position, velocity, acceleration), force_rates, strict=True):
            signal[:, actuator] -= BENDING_DIFFERENCE_STEP / inertia * force_rate
        displaced = _forces(model, (position, velocity, acceleration), parameters, start)
        columns.append((displaced - forces) / BENDING_DIFFERENCE_STEP)
    return BendingColumns(values=np.stack(columns, axis=2), inertias=inertias)


def _transmitted_parameters(model: Model, parameters: Mapping[str, float]) -> np.ndarray:
    """Return the model's parameters (n_pi,) without the terms that act before the transmissions.

    A fit can place a motor's inertia in different parameters, but their sum is determined. The
    inertia from the machine file is therefore subtracted.
    """
    values = []
    for parameter, from_file in zip(model.parameters, model.pi, strict=True):
        ending = parameter.name.rpartition(".")[2]
        value = 0.0 if ending in DISCONTINUOUS_TERMS else parameters[parameter.name]
        values.append(value - from_file if ending == MOTOR_INERTIA else value)
    return np.array(values)


def _forces(
    model: Model, motion: Motion, parameters: np.ndarray, start: np.ndarray | None
) -> np.ndarray:
    """Return the forces (N, n_out) of a motion, computed in batches to limit the memory."""
    forces = []
    for first in range(0, len(motion[0]), SAMPLES_PER_BATCH):
        batch = slice(first, first + SAMPLES_PER_BATCH)
        position, velocity, acceleration = (x[batch] for x in motion)
        batch_start = None if start is None else start[batch]
        rows = regressor_rows(model, (position, velocity, acceleration), "actuators", batch_start)
        forces.append(rows @ parameters)
    return np.concatenate(forces)


def _inertias(
    model: Model, motion: Motion, parameters: np.ndarray, start: np.ndarray | None
) -> np.ndarray:
    """Return the mean inertia (n_u,) of the load at every actuator with the others locked."""
    stride = -(-len(motion[0]) // INERTIA_SAMPLES)
    position, velocity, acceleration = (x[::stride] for x in motion)
    sampled_start = None if start is None else start[::stride]
    nominal = _forces(model, (position, velocity, acceleration), parameters, sampled_start)
    inertias = []
    for actuator in range(position.shape[1]):
        accelerated = acceleration + np.eye(position.shape[1])[actuator]
        forces = _forces(model, (position, velocity, accelerated), parameters, sampled_start)
        inertias.append(np.mean((forces - nominal)[:, actuator]))
    return np.array(inertias)
