"""The standstill threshold is chosen by validation where a noisy velocity changes sign at rest.

The logs come from the formulae of the planar arm. The arm follows sines and stops five times; at
rest, dry friction is zero, and the encoders flicker. Fits are evaluated by the exact forces of
another motion.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identifying import without_faults
from planar_arm import FRICTION, MACHINE, TRUE, arm_log, arm_motion, arm_regressor

import tauloop as tl
from tauloop.identification import MachineIdentification, PreparationOptions
from tauloop.logs import Signals

RATE, SECONDS = 500.0, 15.0
#: Dry friction in addition to that of the machine file, N m.
DRY = 1.4
#: Noise of the torques, N m, of the encoders, rad, and steps of the encoders, rad.
NOISE, FLICKER, STEP = 0.05, 5e-4, 1e-3
DEFAULT_STANDSTILL = 1e-6


def stopped(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the time along the motion, its rate and its acceleration: it stops for 1 s in 3 s."""
    phase = np.mod(times, 3.0)
    ramp, rest = 0.4, 1.0
    x = np.clip(phase / ramp, 0.0, 1.0) - np.clip((phase - (3.0 - rest - ramp)) / ramp, 0.0, 1.0)
    rate = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    slope = 30.0 * x**2 * (1.0 - x) ** 2
    acceleration = slope * np.gradient(x, times)
    along = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(times))])
    return along, rate, acceleration


def moved(stops: bool, phase: float = 0.0) -> tuple[np.ndarray, ...]:
    """Return time, positions, velocities and accelerations of the arm."""
    count = round(RATE * SECONDS)
    if not stops:
        return arm_motion(count, phase, RATE)
    fine = np.arange(8 * count) / (8.0 * RATE)
    along, rate, acceleration = stopped(fine)
    _, *motion = arm_motion(len(fine), phase, 8.0 * RATE)
    grid = np.arange(len(fine)) / (8.0 * RATE)
    position, slope, bend = (
        np.stack([np.interp(along, grid, column) for column in part.T], axis=1) for part in motion
    )
    velocity = slope * rate[:, None]
    acceleration = bend * rate[:, None] ** 2 + slope * acceleration[:, None]
    return fine[::8], position[::8], velocity[::8], acceleration[::8]


def recorded(stops: bool, seed: int = 0) -> Signals:
    """Return a log with coarse encoders that flicker."""
    motion = moved(stops)
    _, q, v, a = motion
    forces = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v)) + DRY * np.sign(v)
    rng = np.random.default_rng(seed)
    log = arm_log(motion, forces, noise=NOISE, encoder=FLICKER, rng=rng)
    channels = tuple(
        replace(channel, values=STEP * np.round(channel.values / STEP))
        if channel.quantity == "position"
        else channel
        for channel in log.channels
    )
    return replace(log, channels=channels)


def error(model: tl.Model, result: MachineIdentification) -> float:
    """Return the RMS error, N m, of the forces along another motion, from exact rates."""
    _, q, v, a = (part[::20] for part in moved(False, phase=2.0))
    exact = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v)) + DRY * np.sign(v)
    fit = result.identification
    values = fit.parameters[: len(model.parameters)].copy()
    for name, value in zip(fit.regressor_parameters, fit.parameters, strict=True):
        element, _, kind = name.rpartition(".")
        if kind == "presliding":  # it is Coulomb friction where a joint slides
            values[fit.regressor_parameters.index(f"{element}.coulomb")] += value
    predicted = model.actuators.regressor(q, v, a) @ values
    return float(np.sqrt(np.mean((predicted - exact) ** 2)))


def friction_sizes(result: MachineIdentification) -> list[float]:
    """Return the dry friction of both joints in sliding, N m."""
    sizes = dict.fromkeys(("shoulder", "elbow"), 0.0)
    fit = result.identification
    for name, value in zip(fit.base.names, fit.values.tolist(), strict=True):
        element, _, kind = name.rpartition(".")
        if kind in ("coulomb", "presliding"):
            sizes[element] += value
    return list(sizes.values())


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(tl.loads(MACHINE))


def test_a_threshold_that_validation_chooses_removes_the_bias_of_rests(model: tl.Model) -> None:
    log = recorded(stops=True)
    result = tl.identify(model, log)
    chosen = {choice.option: choice for choice in result.channels.chosen}
    assert chosen["standstill"].value > DEFAULT_STANDSTILL
    stated = {"cutoff": chosen["cutoff"].value, "order": int(chosen["order"].value)}
    errors = {}
    sizes = {}
    for standstill in (DEFAULT_STANDSTILL, 1e-3, 1e-2, 0.1):
        preparation = PreparationOptions(standstill=standstill, **stated)
        with without_faults():
            fixed = tl.identify(model, log, tl.IdentificationOptions(preparation=preparation))
        errors[standstill] = error(model, fixed)
        sizes[standstill] = friction_sizes(fixed)
    assert error(model, result) <= 1.1 * min(errors.values())
    assert errors[DEFAULT_STANDSTILL] > 4.0 * error(model, result)
    assert friction_sizes(result) == pytest.approx([FRICTION + DRY] * 2, rel=0.06)
    assert max(sizes[DEFAULT_STANDSTILL]) < 0.7 * (FRICTION + DRY)


def test_a_log_without_rests_keeps_the_default(model: tl.Model) -> None:
    result = tl.identify(model, recorded(stops=False))
    chosen = {choice.option: choice.value for choice in result.channels.chosen}
    assert chosen["standstill"] == DEFAULT_STANDSTILL
    assert friction_sizes(result) == pytest.approx([FRICTION + DRY] * 2, rel=0.06)
