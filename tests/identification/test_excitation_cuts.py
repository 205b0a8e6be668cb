"""Ranges and speeds of joints that close loops: their angles by another route, and that an excitation keeps them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from machine_texts import shipped_text

from tauloop import InputError, Model
from tauloop.common.result import Status
from tauloop.equations.assembly.freedoms.cut_freedoms import cut_freedoms
from tauloop.formats import loads
from tauloop.identification.excitation.design import ExcitationOptions, plan_excitation
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.problem import ExcitationTask
from tauloop.identification.excitation.result import Excitation
from tauloop.identification.excitation.solver import SolverOptions
from tauloop.motion import random_multisine

#: Angles by geometry against those of the frames, rad; speeds against central differences of 1e-3
#: s, rad/s.
SAME, BY_DIFFERENCES = 1e-9, 1e-4
REFERENCE = {"elbow_1": -89.54162887451466, "tip": 97.55008118966038}  # the file's, deg


def five_bar(limits: dict[str, str]) -> Model:
    lines = {f"    reference: {REFERENCE[joint]} deg\n": limit for joint, limit in limits.items()}
    return Model(
        loads(
            shipped_text(
                "five_bar", *((line, f"{line}    {limit}\n") for line, limit in lines.items())
            )
        )
    )


@pytest.fixture(scope="module")
def limited() -> Model:
    return five_bar({"tip": "limits: [94 deg, 101 deg]", "elbow_1": "speed: 0.8 rad/s"})


def test_angles_and_speeds_of_cut_joints_are_those_of_the_file_and_of_the_geometry(
    limited: Model,
) -> None:
    cuts = cut_freedoms(limited.mechanism, limited.topology)
    assert set(cuts.names) <= {"tip", "elbow_1"}
    assert "tip" in cuts.names
    q = limited.assembly.q[None]
    result, _ = cuts.positions_and_speeds(q, np.zeros((1, limited.topology.n_v)))
    for name, value in zip(cuts.names, result[0], strict=True):
        assert np.rad2deg(value) == pytest.approx(REFERENCE[name], abs=1e-6)
    center = limited.actuator_position(limited.assembly.q)
    moved = random_multisine(
        center, np.full(2, 0.2), np.random.default_rng(1), terms=3, lowest=0.3, highest=1
    ).sample(np.arange(400) * 1e-3)
    state = limited.actuators.kinematics(
        moved.position,
        moved.velocity,
        moved.acceleration,
        start=limited.actuators.track(moved.position).q,
    )
    angle, speed = cuts.positions_and_speeds(state.q, np.asarray(state.v))
    rate = np.gradient(angle, 1e-3, axis=0)[1:-1]
    assert np.abs(rate - speed[1:-1]).max() < BY_DIFFERENCES
    # around the loop: shoulder_1 + elbow_1 + tip = shoulder_2 + elbow_2 in the plane; the motors'
    # angles are shoulders
    names = limited.topology.coordinate_names
    turned = {
        name: state.q[:, names.index(name)]
        for name in names
        if name in ("shoulder_1", "shoulder_2", "elbow_2")
    }
    platform = state.q[:, names.index("platform.angle")]
    tip = turned["shoulder_2"] + turned["elbow_2"] - platform
    apart = angle[:, cuts.names.index("tip")] - tip
    assert np.abs(np.remainder(apart + np.pi, 2 * np.pi) - np.pi).max() < SAME


def test_an_excitation_keeps_the_range_of_a_joint_that_closes_the_loop(limited: Model) -> None:
    task = ExcitationTask(
        harmonics=2,
        period=3.0,
        limits=ExcitationLimits(stroke=0.3, max_velocity=1.5, max_acceleration=8.0),
    )
    few = SolverOptions(iterations=12)
    free, kept = (
        plan_excitation(machine.mechanism, replace(options, task=task))
        for machine, options in (
            (five_bar({}), ExcitationOptions(random=10, starts=0)),
            (limited, ExcitationOptions(random=10, starts=1, polish=0, solver=few)),
        )
    )
    cuts = cut_freedoms(limited.mechanism, limited.topology)
    tip = cuts.names.index("tip")
    ranges = []
    for result in (free, kept):
        moved = result.series.sample(np.arange(600) * 3.0 / 600)
        state = limited.actuators.kinematics(
            moved.position,
            moved.velocity,
            moved.acceleration,
            start=limited.actuators.track(moved.position).q,
        )
        angle, _ = cuts.positions_and_speeds(state.q, np.asarray(state.v))
        ranges.append(np.rad2deg([angle[:, tip].min(), angle[:, tip].max()]))
    assert ranges[0][0] < 94.0 or ranges[0][1] > 101.0  # without the limit it would leave it
    assert ranges[1][0] > 94.0 - 1e-3
    assert ranges[1][1] < 101.0 + 1e-3


def test_limits_of_other_cut_joints_are_refused(limited: Model) -> None:
    joints = tuple(replace(joint, kind="cylindrical") for joint in limited.topology.cuts)
    other = SimpleNamespace(
        topology=SimpleNamespace(cuts=joints, n_v=0), mechanism=limited.mechanism
    )
    with pytest.raises(InputError, match="is a loop-closing cylindrical joint"):
        cut_freedoms(other.mechanism, other.topology)


def _kept(excitation: Excitation) -> bool:
    return excitation.limits != () and all(
        (limit.lower is None or limit.least >= limit.lower - 1e-9)
        and (limit.upper is None or limit.greatest <= limit.upper + 1e-9)
        for limit in excitation.limits
    )


def test_ranges_of_the_file_alone_are_limits_enough() -> None:
    """No stroke, speed or acceleration is given: series are as large as the shoulders' ranges allow at most."""
    model = five_bar({})
    task = ExcitationTask(harmonics=2, period=3.0)
    excitation = plan_excitation(model.mechanism, ExcitationOptions(task=task, random=30, starts=0))
    assert excitation.status is Status.OK
    assert _kept(excitation)
