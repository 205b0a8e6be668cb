"""`identify` without options on arms that MuJoCo moves, compared with the best options of a user.

The logs come from `mujoco_arms`, with coarse encoders, tachometers, and Dahl's friction integrated
by NumPy. Fits are evaluated by the forces of another run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import mujoco_arms as arms
import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.identification import MachineIdentification, PreparationOptions, TermOptions
from tauloop.identification.workflow import log_data
from tauloop.logs import Signals

#: Largest ratio of the error without options to that of the best options of a user.
MAX_ERROR_RATIO = 1.1
#: Cut-offs, Hz, and standstills that a user tries.
CUTOFFS, STANDSTILLS = (6.0, 12.0, 25.0), (1e-6, 1e-3)
#: Preparation for the evaluation of every result, by motion and forces without noise.
EVALUATION = PreparationOptions(
    cutoff=60.0, order=4, trim=200, decimation=4, standstill=1e-6, velocity_source="positions"
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """An arm, its friction, and its sensors."""

    arm: str
    friction: arms.Friction
    sensors: dict[str, Any]


SLOW = arms.Friction(sliding=(2.0, 1.0), lengths=(0.02, 0.02), viscous=(0.5, 0.3))
MIXED = arms.Friction(sliding=(2.0, 1.0), lengths=(4e-4, 0.02), viscous=(0.5, 0.3))
SHARP = arms.Friction(sliding=(2.0, 2.0, 0.8), lengths=(5e-4, 5e-4, 5e-4), viscous=(0.5, 0.5, 0.2))
CASES = {
    "two joints": Case(arm=arms.TWO_JOINTS, friction=SLOW, sensors={"step": 8e-4, "noise": 0.01}),
    "two joints with tachometers": Case(
        arm=arms.TWO_JOINTS,
        friction=SLOW,
        sensors={"step": 1.5e-3, "noise": 0.01, "tachometer": 0.02},
    ),
    "two joints, one length below a step of the encoder": Case(
        arm=arms.TWO_JOINTS, friction=MIXED, sensors={"step": 8e-4, "noise": 0.01}
    ),
    "three joints with tachometers": Case(
        arm=arms.THREE_JOINTS,
        friction=SHARP,
        sensors={"step": 1.5e-3, "noise": 0.02, "tachometer": 0.02},
    ),
}


def percent(model: tl.Model, result: MachineIdentification, exact: Signals) -> float:
    """Return the error on a run without noise, % of the largest forces (RMS of the outputs)."""
    lengths = {} if result.presliding is None else dict(result.presliding.lengths)
    terms = replace(result.terms, presliding=lengths)
    data, _, _ = log_data(
        model, exact, tl.IdentificationOptions(preparation=EVALUATION, terms=terms)
    )
    assert data.parameters == result.identification.regressor_parameters
    residual = data.forces - data.regressor @ result.identification.parameters
    shares = np.sqrt(np.mean(residual**2, axis=0)) / np.abs(data.forces).max(axis=0)
    return 100.0 * float(np.sqrt(np.mean(shares**2)))


def by_hand(case: Case, names: tuple[str, ...]) -> list[tl.IdentificationOptions]:
    """Return options of a user who knows that there is presliding friction."""
    velocities = ("positions", "fused") if "tachometer" in case.sensors else (None,)
    terms = TermOptions(
        presliding=dict.fromkeys((name.removesuffix("_motor") for name in names), "")
    )
    tried = []
    for cutoff, standstill, velocity in product(CUTOFFS, STANDSTILLS, velocities):
        preparation = PreparationOptions(
            cutoff=cutoff,
            order=4,
            standstill=standstill,
            velocity_source=velocity,
            trim=100,
            decimation=8,
        )
        tried.append(tl.IdentificationOptions(preparation=preparation, terms=terms))
    return tried


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_a_plain_command_is_as_good_as_the_best_options_by_hand(name, tmp_path):
    extra("mujoco")
    case = CASES[name]
    path = tmp_path / "arm.xml"
    path.write_text(arms.described(case.arm), encoding="utf-8")
    model = tl.Model(tl.load(path))
    run = arms.moved(case.arm, case.friction, seed=1)
    exact = arms.recorded(arms.moved(case.arm, case.friction, seed=2), step=0.0, noise=0.0)
    log = arms.recorded(run, **case.sensors)
    plain = tl.identify(model, log)
    best = min(
        percent(model, tl.identify(model, log, options), exact)
        for options in by_hand(case, run.motors)
    )
    assert percent(model, plain, exact) <= MAX_ERROR_RATIO * best
    assert "friction chosen by validation: presliding" in " ".join(plain.channels.notes)


def test_dahls_friction_is_applied_next_to_what_the_motors_give():
    """The log has the inverse dynamics of the motion, with viscous and Dahl's friction."""
    mujoco = extra("mujoco")
    run = arms.moved(arms.TWO_JOINTS, SLOW, seed=1, seconds=0.6)
    model = mujoco.MjModel.from_xml_string(arms.TWO_JOINTS.format(friction=""))
    data = mujoco.MjData(model)
    step = 1.0 / arms.RATE
    at = 300
    acceleration = (run.velocity[at + 1] - run.velocity[at - 1]) / (2.0 * step)
    data.qpos[:], data.qvel[:], data.qacc[:] = run.position[at], run.velocity[at], acceleration
    mujoco.mj_inverse(model, data)
    friction = run.torque[at] - data.qfrc_inverse - np.array(SLOW.viscous) * run.velocity[at]
    assert (np.abs(friction) <= 1.02 * np.array(SLOW.sliding)).all()
    moved_on = np.abs(run.position[at] - run.position[at - 200]) / np.array(SLOW.lengths)
    assert (np.abs(friction)[moved_on > 5.0] > 0.95 * np.array(SLOW.sliding)[moved_on > 5.0]).all()
