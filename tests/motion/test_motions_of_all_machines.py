"""Fastest motions and transfers of every shipped machine: planned within limits, or refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest
from machine_texts import shipped_text

import tauloop as tl

#: A short way of the platform's first coordinate, m or rad, and the tool's acceleration where
#: nothing else limits it.
WAY, ACCELERATION = {"m": 0.005, "rad": 0.05, "1": 0.02}, 20.0
#: What a motion may exceed; where it ends Coulomb friction vanishes, so that the last instant is
#: left out.
KEPT = 1e-3
#: Machines, and why one of the two is refused; None where both are planned.
MACHINES = {
    **dict.fromkeys(
        (
            "four_bar",
            "five_bar",
            "pendulum_arm",
            "linear_delta",
            "hexapod",
            "gantry_tau_6link",
            "rcid",
        )
    ),
    **dict.fromkeys(
        ("spidermill", "spidermill_spatial", "excavator", "hexaglide", "orthoglide", "palletiser")
    ),
    **dict.fromkeys(
        ("peaucellier", "planar_3rrr", "scissor_lift", "slider_crank", "tricept", "jansen")
    ),
    **dict.fromkeys(
        ("gantry_tau_5dof", "three_prs", "par4", "sarrus", "three_upu", "bennett", "irb360")
    ),
    **dict.fromkeys(("cable_camera", "cable_robot"), "cables"),
}


def planned(model: tl.Model, transfers: bool) -> tl.simulation.FastestMotion:
    port = model.platform.ports.position
    end = {
        port.columns[0]: float(model.platform.ports.at(model.assembly.q)[0]) + WAY[port.units[0]]
    }
    if transfers:
        options = tl.TransferOptions(end=end, intervals=10, tool_acceleration=ACCELERATION)  # type: ignore[arg-type]
        return tl.plan_transfer(model, options)
    stroke = tl.StrokeOptions(end=end)  # type: ignore[arg-type]
    return tl.plan_path(
        model, tl.PathOptions(stroke=stroke, intervals=60, tool_acceleration=ACCELERATION)
    )


def require_limits(motion: tl.simulation.FastestMotion) -> None:
    """Forces by inverse dynamics of the trajectory, and the tool's acceleration by differences of its places."""
    model = motion.trajectory.stroke.model
    time = np.linspace(0.0, motion.duration, 1501)
    size = np.array([actuator.force for actuator in model.mechanism.actuators])
    assert (np.abs(motion.trajectory.forces(time[1:-1])) / size).max() < 0.9 * (1.0 + KEPT)
    q = motion.trajectory.states(time).q
    place = model.platform.tool(model.platform.ports.at(q), start=q).place
    pull = np.diff(place, 2, axis=0) / (time[1] - time[0]) ** 2
    assert np.median(np.linalg.norm(pull, axis=1)) < ACCELERATION * (1.0 + 0.01)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_moves_within_its_limits_or_says_why_not(name: str) -> None:
    model, reason = tl.Model(tl.load(name)), MACHINES[name]
    durations = []
    for transfers in (False, True):
        if reason is not None and (transfers or reason == "cables"):
            with pytest.raises(tl.InputError, match=reason):
                planned(model, transfers)
            continue
        motion = planned(model, transfers)
        require_limits(motion)
        durations.append(motion.duration)
    if len(durations) == 2:  # a free path is hardly slower where the straight one is the best
        assert durations[1] < 1.03 * durations[0]


def test_a_linkage_that_passes_no_limit_of_its_own_has_the_tools() -> None:
    text = shipped_text("five_bar", (", force: 8 N m", ""))
    motion = planned(tl.Model(tl.loads(text)), transfers=False)
    assert motion.duration == pytest.approx(2.0 * np.sqrt(WAY["m"] / ACCELERATION), rel=1e-3)
