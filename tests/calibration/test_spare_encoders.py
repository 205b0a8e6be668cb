"""Calibration and identification of machines with more encoders than freedoms: all count, and a wrong one is named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.calibration import LoopEquations, Position, Series

ANCHORS = np.array([[0.0, -1.6, -0.12], [1.8, 0.9, -0.13], [-1.7, 0.95, -0.11], [0.0, 0.0, 2.3]])
NAMES = [f"line{k + 1}.winch" for k in range(4)]
OFFSET = 0.05
NOISE = 1e-4


@pytest.fixture
def machine(tmp_path: Path) -> tl.Mechanism:
    """A point on four lines, whose winches have inertia and friction."""
    at = {f"a{letter}": [f"{x} m" for x in ANCHORS[:, k]] for k, letter in enumerate("xyz")}
    each = "".join(f"      {name}: [{', '.join(values)}]\n" for name, values in at.items())
    path = tmp_path / "lines.yaml"
    path.write_text(f"""
format: tauloop-machine/1
name: lines
provenance: {{status: chosen, source: a test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{tool: {{mass: 2 kg}}}}
legs:
  - name: line
    repeat: 4
    each:
{each}
    rods: {{cable: {{from: {{on: base, at: [ax, ay, az]}}, to: tool, telescopic: {{reference: 2 m}}, model: massless}}}}
    actuators: {{winch: {{on: cable, inertia: 0.5 kg, friction: {{viscous: 3 N s/m, coulomb: 2 N}}}}}}
platform: {{body: tool, motion: translational, independent: [x, y, z], reference: {{at: [0, 0, 0.1 m]}}}}
""")
    return tl.load(path)


def tracked(wrong: int | None = None, anchors: np.ndarray = ANCHORS) -> Series:
    """Readings of a tracker at 24 points, and lengths of the lines, of which one may be too large."""
    rng = np.random.default_rng(4)
    points = rng.uniform([-0.3, -0.3, 0.1], [0.3, 0.3, 0.7], (24, 3))
    lengths = np.linalg.norm(anchors - points[:, None], axis=2)
    if wrong is not None:
        lengths[:, wrong] += OFFSET
    readings = points + rng.normal(scale=NOISE, size=points.shape)
    return Series(
        instrument=Position(name="tracker"), encoders=lengths, readings=readings, noise=NOISE
    )


@pytest.mark.parametrize(
    "residuals", [tl.CalibrationOptions().residuals, LoopEquations()], ids=["forward", "loops"]
)
@pytest.mark.parametrize("wrong", range(4))
def test_a_wrong_encoder_is_named_whichever_it_is(
    machine: tl.Mechanism, wrong: int, residuals: object
) -> None:
    """Leading or spare: 50 mm in one of four lengths were accepted where it was the spare one."""
    options = tl.CalibrationOptions(parameters=("line1.ay", "line4.az"), residuals=residuals)  # type: ignore[arg-type]
    calibration = tl.calibrate(machine, tracked(wrong), options)
    (misfit,) = [item for item in calibration.diagnostics if "misfit of an encoder" in item.name]
    assert calibration.status.value == "doubtful"
    assert f"the encoder of {NAMES[wrong]} reads" in misfit.advice
    assert not misfit.is_good


@pytest.mark.parametrize("wrong", range(4))
def test_an_encoder_of_a_wrong_scale_is_named(machine: tl.Mechanism, wrong: int) -> None:
    """A wrong drum radius: the unknowns take up the mean of its error."""
    series = tracked()
    encoders = series.encoders.copy()
    encoders[:, wrong] *= 1.02
    options = tl.CalibrationOptions(parameters=("line1.ay", "line4.az"))
    calibration = tl.calibrate(machine, replace(series, encoders=encoders), options)
    (misfit,) = [item for item in calibration.diagnostics if "misfit of an encoder" in item.name]
    assert not misfit.is_good
    assert f"the encoder of {NAMES[wrong]} reads" in misfit.advice
    assert f"estimate encoder.{NAMES[wrong]}.scale" in misfit.advice


def test_a_sound_set_has_no_misfit_and_its_offset_can_be_estimated(machine: tl.Mechanism) -> None:
    sound = tl.calibrate(
        machine, tracked(), tl.CalibrationOptions(parameters=("line1.ay", "line4.az"))
    )
    assert sound.status.value == "ok"
    names = ("line1.ay", "line4.az", "encoder.line3.winch.offset")
    estimated = tl.calibrate(machine, tracked(2), tl.CalibrationOptions(parameters=names))
    assert estimated.status.value == "ok"
    offset = next(item for item in estimated.estimates if item.name == names[2])
    assert offset.value == pytest.approx(-OFFSET, abs=5 * offset.deviation)


def test_the_spare_encoder_shows_a_parameter_that_the_leading_ones_do_not(
    machine: tl.Mechanism,
) -> None:
    """Without a spare encoder line 3's anchor plays no part; it is found from that encoder."""
    model = tl.Model(machine)
    (spare,) = model.assembly.spare
    moved = ANCHORS.copy()
    moved[spare, 0] += 3e-3
    name = f"line{spare + 1}.ax"
    calibration = tl.calibrate(
        machine, tracked(anchors=moved), tl.CalibrationOptions(parameters=(name,))
    )
    assert calibration.estimates[0].correction == pytest.approx(3e-3, abs=2e-4)


def test_the_encoders_noise_may_be_stated(machine: tl.Mechanism) -> None:
    options = tl.CalibrationOptions(parameters=("line1.ay", "line4.az"), encoder_noise="30 mm")
    assert tl.calibrate(machine, tracked(2), options).problem.encoder_noise == pytest.approx(0.03)
    with pytest.raises(tl.InputError, match="is 0"):
        tl.calibrate(
            machine, tracked(), tl.CalibrationOptions(parameters=("line1.ay",), encoder_noise=0.0)
        )


@pytest.mark.parametrize("wrong", range(4))
def test_identification_uses_all_encoders_and_names_a_wrong_one(
    machine: tl.Mechanism, wrong: int
) -> None:
    """Noise of all encoders is averaged; a constant error of one of them is told from the motion."""
    model = tl.Model(machine)
    time = np.linspace(0.0, 6.0, 1201)
    rng = np.random.default_rng(1)
    rates, phases = rng.uniform(1.0, 5.0, (3, 3)), rng.uniform(0.0, 6.0, (3, 3))
    waves = np.sin(time[:, None, None] * rates + phases)
    point = np.array([0.0, 0.0, 0.5]) + 0.12 * waves.sum(axis=2)
    velocity = 0.12 * (np.cos(time[:, None, None] * rates + phases) * rates).sum(axis=2)
    acceleration = -0.12 * (waves * rates**2).sum(axis=2)
    forces = model.platform.inverse_dynamics(point, velocity, acceleration)
    lengths = model.actuator_position(forces.state.q)
    lengths[:, wrong] += OFFSET
    sensors = tl.logs.Sensors(resolution=[0.0] * 4, force_noise=[1e-2] * 4)
    log = tl.logs.measure(time, lengths, forces.force, NAMES, ["m"] * 4, ["N"] * 4, sensors, rng)
    result = tl.identify(model, log)
    (misfit,) = [item for item in result.diagnostics if "redundant encoders" in item.name]
    assert not misfit.is_good
    assert re.match(
        rf"an error of 0\.05\d* m of the encoder of {NAMES[wrong]} explains 100 %", misfit.advice
    )
