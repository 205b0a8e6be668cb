"""Simulated readings of an instrument, for planning measurements and for simulated sessions."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.calibration.measurements.instruments import (
    Instrument,
    nominal_scene,
    require_instruments,
)
from tauloop.calibration.measurements.series import Series
from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.equations.values import BatchFunction
from tauloop.model import Model


def simulated_readings(model: Model, instrument: Instrument, q: np.ndarray) -> np.ndarray:
    """Return the noise-free readings (N, n_columns) of an instrument, SI.

    Nuisance parameters have their start values. Errors are predicted minus measured readings, so
    that errors at zero readings are the predictions (`Instrument.readings_at`).

    Args:
        model: the machine.
        instrument: instrument that reads the poses.
        q: assembled coordinates (N * poses, n_q), with the poses of one reading in consecutive
            rows.

    Raises:
        InputError: the instrument does not suit this machine, or the number of poses is wrong.
    """
    mechanism = model.mechanism
    topology = model.topology
    require_instruments([instrument], mechanism, topology)
    symbol, scene = nominal_scene(mechanism, topology, instrument)
    names = tuple(name for name, _ in instrument.columns)
    zero_reading = ca.SX([1.0 if name == "qw" else 0.0 for name in names])
    error = ca.densify(instrument.error(scene, zero_reading))
    poses = instrument.poses
    count = len(q) // poses
    if count * poses != len(q):
        what = (
            f"has {counted(len(q), 'pose')}, but each reading belongs to {counted(poses, 'pose')}"
        )
        raise InputError.of(
            "q", what, f"give {counted(poses, 'consecutive pose')} for each reading"
        )
    rows = np.ascontiguousarray(q).reshape(count, -1)
    (errors,) = BatchFunction(ca.Function("readings", [symbol], [error]))([rows], count)
    return instrument.readings_at(np.asarray(errors))


def simulated_series(
    model: Model,
    instrument: Instrument,
    q: np.ndarray,
    noise: float | tuple[float, ...],
    rng: np.random.Generator | None = None,
) -> Series:
    """Return a series of readings at assembled coordinates, with noise if a generator is given.

    Args:
        model: the machine.
        instrument: instrument that reads the poses.
        q: assembled coordinates (N * poses, n_q), with the poses of one reading in consecutive
            rows.
        noise: standard deviation of the instrument's errors, SI; see `Series`. The noise of an
            orientation is a small rotation (three numbers) that multiplies the quaternion.
        rng: random generator of the noise; None for readings without noise.
    """
    readings = simulated_readings(model, instrument, q)
    encoders = model.actuator_position(q)
    if rng is not None:
        deviation = np.broadcast_to(np.asarray(noise, dtype=float), (len(instrument.errors),))
        draw = rng.standard_normal((len(readings), len(deviation))) * deviation
        first = instrument.quaternion_column
        if first is not None:
            w, vector = readings[:, first : first + 1], readings[:, first + 1 :]
            half = draw[:, first:] / 2
            rotated = np.concatenate(
                [
                    w - (vector * half).sum(axis=1, keepdims=True),
                    vector + w * half + np.cross(vector, half),
                ],
                axis=1,
            )
            rotated /= np.linalg.norm(rotated, axis=1, keepdims=True)
            readings = np.concatenate([readings[:, :first] + draw[:, :first], rotated], axis=1)
        else:
            readings = readings + instrument.readings_at(draw)
    return Series(instrument=instrument, encoders=encoders, readings=readings, noise=noise)
