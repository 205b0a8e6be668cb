"""Stiffness and damping of drives, from two masses on a spring (`tests/support/geared_arm.py`)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from geared_arm import COULOMB, GEARED_ARM, J_MOTOR, D, K, simulated

import tauloop as tl
from tauloop.logs.log import Signals

#: Logs with other noise, and how many intervals of 95 % must contain the truth: 99.9 % of all times.
DRAWS, LEAST_INSIDE = 10, 7


def test_two_masses() -> None:
    log = simulated(2e-5)
    result = tl.identify_drive_stiffness(tl.loads(GEARED_ARM), log)
    (drive,) = result.drives
    assert result.status.value == "ok"
    assert drive.stiffness == pytest.approx(K, rel=0.01)
    assert drive.damping == pytest.approx(D, rel=0.05)
    assert drive.inertia == pytest.approx(J_MOTOR, rel=0.02)
    assert drive.stated == 90.0
    low, high = drive.stiffness_interval
    assert low < K < high
    assert high - low < 0.05 * K
    named = drive.identification.named_parameters
    assert named["motor.coulomb"] == pytest.approx(COULOMB, rel=0.1)


def test_intervals_contain_the_truth() -> None:
    machine = tl.Model(tl.loads(GEARED_ARM))
    inside = []
    for seed in range(DRAWS):
        log = simulated(2e-4, seed=seed)
        (drive,) = tl.identify_drive_stiffness(machine, log, cutoff="60 Hz").drives
        low, high = drive.stiffness_interval
        inside.append(low < K < high)
    assert sum(inside) >= LEAST_INSIDE


def test_noise_in_the_deflection_is_doubtful() -> None:
    log = simulated(2e-3)
    result = tl.identify_drive_stiffness(tl.loads(GEARED_ARM), log)
    assert result.status.value == "doubtful"


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_wrong_sign_is_doubtful_with_its_remedy(column: int) -> None:
    """The motor's position, that of the load, or the force has the other sign."""
    log = simulated(2e-5)
    channels = list(log.channels)
    channels[column] = replace(channels[column], values=-channels[column].values)
    result = tl.identify_drive_stiffness(
        tl.loads(GEARED_ARM), Signals(time=log.time, channels=tuple(channels))
    )
    assert result.status.value == "doubtful"
    assert any("check the signs and units" in line for line in result.advice)


def test_refusals() -> None:
    log = simulated(0.0)
    single = Signals(time=log.time, channels=(log.channels[0], log.channels[2]))
    with pytest.raises(tl.LogError, match="no drive has the positions of motor and load"):
        tl.identify_drive_stiffness(tl.loads(GEARED_ARM), single)
    with pytest.raises(tl.InputError, match="there is no actuator 'elbow'"):
        tl.identify_drive_stiffness(tl.loads(GEARED_ARM), log, drives=("elbow",))
