"""What an instrument would read at given poses: for planning measurements and for simulated sessions."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.calibration.measurements.instruments import (
    Instrument,
    nominal_scene,
    require_instruments,
)
from tauloop.calibration.measurements.series import Series
from tauloop.common.errors import InputError
from tauloop.equations.values import BatchFunction
from tauloop.model import Model


def simulated_readings(model: Model, instrument: Instrument, q: np.ndarray) -> np.ndarray:
    """Readings without noise (N, n_columns), SI, of an instrument with its start values.

    Errors are predictions less readings, so at readings of zero they are the predictions
    (`Instrument.readings_at`).

    Args:
        model: the machine as it is.
        instrument: what reads.
        q: assembled coordinates (N * poses, n_q), those of one reading one after the other.

    Raises:
        InputError: the instrument cannot work on this machine.
    """
    mechanism, shape = model.mechanism, model.topology
    require_instruments([instrument], mechanism, shape)
    symbol, scene = nominal_scene(mechanism, shape, instrument)
    names = tuple(name for name, _ in instrument.columns)
    nothing = ca.SX([1.0 if name == "qw" else 0.0 for name in names])
    error = ca.densify(instrument.error(scene, nothing))
    count = len(q) // instrument.poses
    if count * instrument.poses != len(q):
        what = f"{len(q)} poses, and each reading belongs to {instrument.poses}"
        raise InputError.of(
            "q", what, "give the poses of one reading one after the other, none left over"
        )
    together = np.ascontiguousarray(q).reshape(count, -1)
    (errors,) = BatchFunction(ca.Function("readings", [symbol], [error]))([together], count)
    return instrument.readings_at(np.asarray(errors))


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
                [
                    w - (vector * half).sum(axis=1, keepdims=True),
                    vector + w * half + np.cross(vector, half),
                ],
                axis=1,
            )
            turned /= np.linalg.norm(turned, axis=1, keepdims=True)
            readings = np.concatenate([readings[:, :first] + draw[:, :first], turned], axis=1)
        else:
            readings = readings + instrument.readings_at(draw)
    return Series(instrument=instrument, encoders=encoders, readings=readings, noise=noise)
