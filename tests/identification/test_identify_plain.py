"""`identify` without options: the preparation and the friction are chosen by validation.

The logs come from formulas of the planar arm, with coarse encoders, presliding friction (Dahl's law
by small steps of its exact solution), and short rests. Fits are evaluated by their forces without
friction on another motion.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from identifying import without_faults
from planar_arm import FRICTION, MACHINE, TRUE, arm_log, arm_motion, arm_regressor

import tauloop as tl
from tauloop.formats.urdf.reader import load_urdf
from tauloop.identification import PreparationOptions, TermOptions
from tauloop.identification.preparation.choice.automatic import possible_cutoffs
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.logs import Signals

EXAMPLES = Path(__file__).parents[2] / "examples"
RATE, COUNT = 1000.0, 12_000
#: Noise of the torques, N m, and step of the encoders, rad.
NOISE, ENCODER_STEP = 0.05, 2e-4
#: Friction in sliding, N m, and length over which it reverses, rad.
SLIDING, LENGTH = 1.2, 0.02


def dahl(velocity: np.ndarray, length: float) -> np.ndarray:
    """Return z of z' = v / length (1 - z sign v), exact for constant speed within each sample."""
    state = np.empty(len(velocity))
    z = 0.0
    for k, v in enumerate(velocity):
        towards = np.sign(v)
        z = towards + (z - towards) * np.exp(-abs(v) / RATE / length)
        state[k] = z
    return state


def moved(phase: float) -> tuple[np.ndarray, ...]:
    """Return a motion of the arm at 1 kHz."""
    return arm_motion(COUNT, phase, RATE)


def recorded(*, sliding: float = 0.0, seed: int = 0) -> Signals:
    """Return a log with coarse encoders and presliding friction of the shoulder."""
    motion = moved(0.0)
    _, q, v, a = motion
    forces = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v))
    forces[:, 0] += sliding * dahl(v[:, 0], LENGTH)
    log = arm_log(motion, forces, noise=NOISE, encoder=0.0, rng=np.random.default_rng(seed))
    channels = tuple(
        replace(channel, values=ENCODER_STEP * np.round(channel.values / ENCODER_STEP))
        if channel.quantity == "position"
        else channel
        for channel in log.channels
    )
    return replace(log, channels=channels)


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(tl.loads(MACHINE))


def error(model: tl.Model, result: tl.identification.MachineIdentification) -> float:
    """Return the RMS error, N m, of the forces without friction on another motion."""
    _, q, v, a = (part[::50] for part in moved(2.0))
    fit = result.identification
    regressor = model.actuators.regressor(q, v, a)
    is_friction = [p.group == "friction" for p in model.parameters]
    columns = regressor[:, :, np.flatnonzero(~np.array(is_friction))]
    values = fit.parameters[: len(is_friction)][~np.array(is_friction)]
    return float(np.sqrt(np.mean((columns @ values - arm_regressor(q, v, a) @ TRUE) ** 2)))


#: Cut-offs that a user might try, Hz: two by day, all at night.
CUTOFFS = pytest.mark.parametrize(
    "cutoffs", [(6.0, 12.0), pytest.param((3.0, 6.0, 12.0, 25.0), marks=pytest.mark.nightly)]
)


def tuned(model: tl.Model, log: Signals, cutoffs: tuple[float, ...], terms: TermOptions) -> float:
    """Return the smallest error of the options that a user might try."""
    errors = []
    for cutoff, standstill in product(cutoffs, (1e-6, 1e-2)):
        preparation = PreparationOptions(
            cutoff=cutoff, order=4, standstill=standstill, trim=50, decimation=10
        )
        options = tl.IdentificationOptions(preparation=preparation, terms=terms)
        with without_faults():
            errors.append(error(model, tl.identify(model, log, options)))
    return min(errors)


@CUTOFFS
def test_a_plain_command_is_as_good_as_options_by_hand(model, cutoffs):
    log = recorded()
    result = tl.identify(model, log)
    assert error(model, result) < 1.1 * tuned(model, log, cutoffs, TermOptions())
    notes = " ".join(result.channels.notes)
    assert "cutoff" in notes
    assert "chosen by validation" in notes
    chosen = json.loads(json.dumps(result.as_dict()))["channels"]["chosen"]
    assert [choice["option"] for choice in chosen] == ["cutoff", "order", "standstill"]
    for choice in chosen:
        assert choice["validation_percent"] <= 1.01 * min(
            other["validation_percent"] for other in choice["tried"]
        )


@CUTOFFS
def test_friction_that_turns_round_is_chosen_by_itself(model, cutoffs):
    log = recorded(sliding=SLIDING)
    result = tl.identify(model, log)
    notes = " ".join(result.channels.notes)
    assert "friction chosen by validation: presliding" in notes
    assert result.presliding.lengths == {"shoulder": pytest.approx(LENGTH, rel=0.2)}
    terms = TermOptions(presliding={"shoulder": ""})
    assert error(model, result) < 1.1 * tuned(model, log, cutoffs, terms)


def test_what_is_stated_stays(model):
    preparation = PreparationOptions(cutoff=9.0, order=2, standstill=1e-3, decimation=4)
    with without_faults():
        result = tl.identify(model, recorded(), tl.IdentificationOptions(preparation=preparation))
    assert not any("chosen by validation" in note for note in result.channels.notes)
    stated = PreparationOptions(order=2)
    with without_faults():
        result = tl.identify(model, recorded(), tl.IdentificationOptions(preparation=stated))
    assert any(note.startswith("cutoff") for note in result.channels.notes)
    assert not any(note.startswith("order") for note in result.channels.notes)


@pytest.mark.nightly
def test_the_measured_arm_without_its_preparation(shared, tmp_path):
    """The held-out error is at most that of the reference, which used central differences."""
    data, example = shared / "data" / "tx40", EXAMPLES / "tx40"
    if not data.is_dir():
        pytest.skip(
            "needs the measured log of the TX40 in data/tx40 of the shared folder, which is not here"
        )
    text = (example / "recording.yaml").read_text(encoding="utf-8")
    recording = tmp_path / "recording.yaml"
    recording.write_text(
        "".join(line for line in text.splitlines(True) if not line.startswith("preparation"))
    )
    machine = load_urdf(data / "tx40_nomesh.urdf", example / "side.yaml")
    result = tl.identify(machine, recording, tl.IdentificationOptions(data=data, output="joints"))
    errors = [fit.rmse_percent for fit in result.identification.held_out]
    assert (np.array(errors) <= [5.5, 5.6, 6.3, 13.4, 11.7, 12.5]).all(), errors


def test_higher_cutoffs_are_tried_where_one_motion_is_faster_than_the_cutoff_of_another() -> None:
    """A cut-off below the motion is only raised: no lower one is tried."""
    time = np.arange(2_000) / RATE
    positions = np.stack([np.sin(3.0 * time), np.sin(400.0 * time)], axis=1)
    log = arm_log((time, positions), np.zeros_like(positions), noise=0.0, encoder=0.0)
    assert possible_cutoffs([MeasuredLog(name="log", log=log)], 7.0, (0.5, 2.0)) == [14.0]
