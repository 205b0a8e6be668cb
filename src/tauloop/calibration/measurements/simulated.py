"""What an instrument would read at given poses: for planning measurements and for simulated sessions."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.calibration.measurements.instruments import Instrument, nominal_scene, require_instruments
from tauloop.calibration.measurements.series import Series
from tauloop.equations.values import BatchFunction
from tauloop.model import Model


def simulated_readings(model: Model, instrument: Instrument, q: np.ndarray) -> np.ndarray:
    """Readings without noise (N, n_columns), SI, of an instrument with its start values.

    Errors are predictions less readings, so at readings of zero they are the predictions; from the unit quaternion the
    error of a turn by a about e is 2 sin(a/2) e, twice the vector part of the quaternion that would be read.

    Args:
        model: the machine as it is.
        instrument: what reads.
        q: assembled coordinates (N, n_q).

    Raises:
        InputError: the instrument cannot work on this machine.
    """
    mechanism, shape = model.mechanism, model.topology
    require_instruments([instrument], mechanism, shape)
    symbol, scene = nominal_scene(mechanism, shape, instrument)
    names = tuple(name for name, _ in instrument.columns)
    nothing = ca.SX([1.0 if name == "qw" else 0.0 for name in names])
    error = ca.densify(instrument.error(scene, nothing))
    (errors,) = BatchFunction(ca.Function("readings", [symbol], [error]))([np.ascontiguousarray(q)], len(q))
    first = instrument.quaternion_column
    if first is None:
        return np.asarray(errors)
    half = errors[:, first : first + 3] / 2
    real = np.sqrt(np.maximum(1.0 - (half**2).sum(axis=1, keepdims=True), 0.0))
    return np.concatenate([errors[:, :first], real, half], axis=1)


def simulated_series(
    model: Model,
    instrument: Instrument,
    q: np.ndarray,
    noise: float | tuple[float, ...],
    rng: np.random.Generator | None = None,
) -> Series:
    """Encoders and readings at assembled coordinates (N, n_q), noisy where a generator is given.

    A turn's noise is a small rotation (three numbers) that multiplies the quaternion.
    """
    readings = simulated_readings(model, instrument, q)
    encoders = model.actuator_position(q)
    if rng is not None:
        deviation = np.broadcast_to(np.asarray(noise, dtype=float), (len(instrument.errors),))
        draw = rng.standard_normal((len(q), len(deviation))) * deviation
        first = instrument.quaternion_column
        if first is not None:
            w, vector = readings[:, first : first + 1], readings[:, first + 1 :]
            half = draw[:, first:] / 2
            turned = np.concatenate(
                [w - (vector * half).sum(axis=1, keepdims=True), vector + w * half + np.cross(vector, half)], axis=1
            )
            turned /= np.linalg.norm(turned, axis=1, keepdims=True)
            readings = np.concatenate([readings[:, :first] + draw[:, :first], turned], axis=1)
        else:
            readings = readings + draw
    return Series(instrument=instrument, encoders=encoders, readings=readings, noise=noise)
