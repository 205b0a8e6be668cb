"""How forces change where transmissions bend: a column of the regression for each actuator.

An encoder at the motor shows q while the load is at x = q - tau / k: tau is the force that passes
the transmission, k its stiffness. The motor's force is that of the load's motion, F(x). To first
order it differs from F(q) by -(dF/dq tau + dF/dv tau' + dF/da tau'') / k: the droop under the
weight first, the swinging last. Dry friction and the motor's own inertia, as the machine file has
it, act before the transmission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tauloop.common.errors import AssemblyError, PoseError
from tauloop.common.records import dataclass
from tauloop.identification.regression.from_log import regressor_rows
from tauloop.logs.rates import MIN_SPECTRUM_SAMPLES, in_band
from tauloop.model import Model

#: Last parts of the names of terms whose forces jump; no transmission is taken to bend by these.
JUMPING = ("coulomb", "coulomb_asymmetry", "stribeck", "presliding")
#: Last part of the name of a motor's own inertia.
MOTOR_INERTIA = "inertia"
#: Samples whose forces are computed at a time; samples by which the load's inertia at a motor is
#: taken.
AT_ONCE, INERTIA_SAMPLES = 2_000, 100
#: Step of the differences, s^2: a load that swings at 500 Hz.
STEP = 1e-7

#: Positions, velocities and accelerations (N, n) of the actuators.
Motion: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BendingColumns:
    """What bending transmissions add to the forces of all outputs.

    Attributes:
        values: (N, n_out, n_u) by the actuator whose transmission bends, for a load that swings
            with an angular frequency of 1 rad/s with the motor held.
        inertias: (n_u,) of the load at each actuator, kg m^2 or kg: the stiffness times the size of
            the column, s^2.
    """

    values: np.ndarray
    inertias: np.ndarray


class Bending:
    """Columns of logs whose motion is at hand, made at the parameters of the first fit that needs them.

    The columns are small corrections: a fit to some of the samples has parameters that make the
    same ones.
    """

    def __init__(self, model: Model, motions: Sequence[Motion]) -> None:
        """Keep the motion of every log, at the samples of its regression data; outputs are the actuators' forces."""
        self._model, self._motions = model, motions
        self._made: list[BendingColumns] | None = None

    def columns(
        self, parameters: Mapping[str, float], counts: Sequence[int], period: float
    ) -> BendingColumns | None:
        """Return the columns of the first samples of every log; None where the motion or the parameters have none.

        Args:
            parameters: of the regressor's columns, by name.
            counts: samples of each log.
            period: between two samples, s.
        """
        motions = self._motions[: len(counts)]
        if any(
            len(motion[0]) < max(count, MIN_SPECTRUM_SAMPLES)
            for motion, count in zip(motions, counts, strict=True)
        ):
            return None
        if self._made is None:
            passing = _passing(self._model, parameters)
            try:
                self._made = [
                    bending_columns(self._model, motion, passing, period) for motion in motions
                ]
            except (PoseError, AssemblyError):
                self._made = []
        inertias = [columns.inertias for columns in self._made]
        if not inertias or np.min(inertias) <= 0.0:
            return None
        values = [columns.values[:count] for columns, count in zip(self._made, counts, strict=True)]
        return BendingColumns(values=np.concatenate(values), inertias=np.mean(inertias, axis=0))


def bending_columns(
    model: Model, motion: Motion, parameters: np.ndarray, period: float
) -> BendingColumns:
    """Return the columns along a motion.

    Args:
        model: the machine.
        motion: of its actuators, evenly sampled.
        parameters: (n_pi,) of the model, of what the force that passes the transmissions consists
            of.
        period: between two samples, s.

    Raises:
        PoseError, AssemblyError: the motion of the loads leaves the workspace.
    """
    start = model.actuators.track(motion[0]).q if model.assembly.rows else None
    forces = _forces(model, motion, parameters, start)
    inertias = _inertias(model, motion, parameters, start)
    columns = []
    for actuator, inertia in enumerate(inertias):
        position, velocity, acceleration = (x.copy() for x in motion)
        bends = in_band(forces[:, actuator], rate=1.0 / period)
        for moved, bend in zip((position, velocity, acceleration), bends, strict=True):
            moved[:, actuator] -= STEP / inertia * bend
        bent = _forces(model, (position, velocity, acceleration), parameters, start)
        columns.append((bent - forces) / STEP)
    return BendingColumns(values=np.stack(columns, axis=2), inertias=inertias)


def _passing(model: Model, parameters: Mapping[str, float]) -> np.ndarray:
    """Return parameters (n_pi,) of the model without what acts before the transmissions.

    Which parameters of a fit carry a motor's inertia is chance, but their sum is not: the machine
    file's is taken off.
    """
    values = []
    for parameter, from_file in zip(model.parameters, model.pi, strict=True):
        ending = parameter.name.rpartition(".")[2]
        value = 0.0 if ending in JUMPING else parameters[parameter.name]
        values.append(value - from_file if ending == MOTOR_INERTIA else value)
    return np.array(values)


def _forces(
    model: Model, motion: Motion, parameters: np.ndarray, start: np.ndarray | None
) -> np.ndarray:
    """Return forces (N, n_out) of a motion; of a regressor of all samples together the memory would be large."""
    parts = []
    for first in range(0, len(motion[0]), AT_ONCE):
        at = slice(first, first + AT_ONCE)
        position, velocity, acceleration = (x[at] for x in motion)
        began = None if start is None else start[at]
        rows = regressor_rows(model, (position, velocity, acceleration), "actuators", began)
        parts.append(rows @ parameters)
    return np.concatenate(parts)


def _inertias(
    model: Model, motion: Motion, parameters: np.ndarray, start: np.ndarray | None
) -> np.ndarray:
    """Return the mean inertia (n_u,) of the load at every actuator while the others are held."""
    every = -(-len(motion[0]) // INERTIA_SAMPLES)
    position, velocity, acceleration = (x[::every] for x in motion)
    began = None if start is None else start[::every]
    held = _forces(model, (position, velocity, acceleration), parameters, began)
    inertias = []
    for actuator in range(position.shape[1]):
        pushed = acceleration + np.eye(position.shape[1])[actuator]
        forces = _forces(model, (position, velocity, pushed), parameters, began)
        inertias.append(np.mean((forces - held)[:, actuator]))
    return np.array(inertias)
