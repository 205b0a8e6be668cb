"""Links that turn alike on a moving parent: a palletiser against energies in its four coordinates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.formats import load, loads
from tauloop.formats.writing.yaml_writer import write_yaml
from tauloop.kinematics import random_states
from tauloop.kinematics.alike import body_motions
from tauloop.kinematics.reduction import ReductionOptions, compare_reduction, reduce_model
from tauloop.mechanism import Mechanism
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.inertia import is_possible
from tauloop.mechanism.model import Body, Inertia
from tauloop.mechanism.reduction import (
    as_laminas,
    concentrate_mass,
    distribute_bar,
    distribute_rod,
    lump_pinned_body,
    parallel_couplings,
)
from tauloop.model import Model

#: Rounding of forces made by two different sets of equations, as a share of the largest force.
EXACT = 1e-12
#: Numbers of a written file are exact, its start orientation is rounded.
WRITTEN = 1e-10
STATES = 40
ARM_WITH_A_BAR = Path(__file__).parents[1] / "cases" / "palletiser.yaml"


def _without_line(text: str, start: str) -> str:
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.strip().startswith(start)
    )


@cache
def palletiser(moving: str) -> Mechanism:
    """Return the palletiser of the gallery without friction: "column", or its column or its gripper too are fixed."""
    gallery = files("tauloop.mechanism").joinpath("machines", "gallery", "palletiser.yaml")
    text = gallery.read_text(encoding="utf-8")
    if moving != "column":
        yaw = next(line for line in text.splitlines() if line.strip().startswith("yaw: {type"))
        text = text.replace(yaw, "  yaw: {type: fixed, parent: base, child: column}")
        text = _without_line(text, "motor_1:").replace("[yaw, shoulder", "[shoulder")
    if moving == "arm":
        flange = next(
            line for line in text.splitlines() if line.strip().startswith("flange: {type")
        )
        fixed = (
            "  flange: {type: fixed, parent: {on: wrist, at: [0.12 m, 0, -0.15 m]}, child: gripper}"
        )
        text = _without_line(text.replace(flange, fixed), "motor_4:").replace(
            "lever_pin, flange]", "lever_pin]"
        )
    return loads(text).without_friction()


@cache
def model(machine: Mechanism) -> Model:
    return Model(machine)


MOVING = {
    "column": ("yaw", "shoulder", "lever_pin", "flange"),
    "gripper": ("shoulder", "lever_pin", "flange"),
    "arm": ("shoulder", "lever_pin"),
}
COORDINATES = MOVING["column"]


def turned(axis: str, angle: ca.SX) -> ca.SX:
    c, s = ca.cos(angle), ca.sin(angle)
    if axis == "z":
        return ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    return ca.vertcat(ca.horzcat(c, 0, s), ca.horzcat(0, 1, 0), ca.horzcat(-s, 0, c))


@cache
def palletiser_torques() -> ca.Function:
    """Return (q, dq, ddq) -> motor torques, from energies in yaw, shoulder, lever and flange; nothing of Tauloop."""
    q, dq, ddq = (ca.SX.sym(name, 4) for name in ("q", "dq", "ddq"))
    arm, reach, lever, side = 1.10, 1.20, 0.32, 0.22
    column, level = turned("z", q[0]), turned("z", q[0] + q[3])
    upper, lower = column @ turned("y", q[1]), column @ turned("y", q[2])
    shoulder = column @ ca.DM([0.26, 0, 0.85])
    elbow = shoulder + upper @ ca.DM([0, 0, arm])
    wrist = elbow + lower @ ca.DM([reach, 0, 0])
    flange = wrist + column @ ca.DM([0.12, 0, -0.15])
    bodies = (  # mass, mass centre, inertia about it, orientation, origin
        (350, (0, 0, 0.5), (30, 30, 18), column, ca.SX.zeros(3)),
        (
            95,
            (0, 0, 0.45 * arm),
            (95 * arm**2 / 12, 95 * arm**2 / 12, 95 * 0.1**2),
            upper,
            shoulder,
        ),
        (
            18,
            (-lever / 2, 0, 0),
            (18 * 0.05**2, 18 * lever**2 / 12, 18 * lever**2 / 12),
            lower,
            shoulder,
        ),
        (
            75,
            (0.35 * reach, 0, 0),
            (75 * 0.1**2, 75 * reach**2 / 9, 75 * reach**2 / 9),
            lower,
            elbow,
        ),
        (10, (0, 0, side / 2), (0.08, 0.15, 0.08), column, elbow),
        (30, (0, 0, 0), (0.5, 0.5, 0.4), column, wrist),
        (120, (0, 0, -0.25), (6, 6, 5), level, flange),
    )
    tilted = np.pi / 4, np.pi / 3
    bars = (  # start, unit vector along, length
        (shoulder + lower @ ca.DM([-lever, 0, 0]), upper[:, 2], arm),
        (
            shoulder + column @ ca.DM([-side * np.cos(tilted[0]), 0, side * np.sin(tilted[0])]),
            upper[:, 2],
            arm,
        ),
        (
            elbow + column @ ca.DM([side * np.cos(tilted[1]), 0, side * np.sin(tilted[1])]),
            lower[:, 0],
            reach,
        ),
    )
    ratio, rotor = ca.DM([120, 150, 150, 60]), ca.DM([2e-3, 2e-3, 2e-3, 4e-4])
    kinetic, potential = ca.sum1(rotor * (ratio * dq) ** 2) / 2, ca.SX(0)
    for mass, center, inertia, R, origin in bodies:
        point = origin + R @ ca.DM(center)
        rate = ca.reshape(ca.jacobian(ca.vec(R), q) @ dq, 3, 3)
        spin = R.T @ rate
        omega = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
        velocity = ca.jacobian(point, q) @ dq
        kinetic += mass * ca.dot(velocity, velocity) / 2 + ca.dot(ca.DM(inertia) * omega, omega) / 2
        potential += mass * 9.81 * point[2]
    for start, along, length in bars:
        velocity, rate = (ca.jacobian(x, q) @ dq for x in (start + along * length / 2, along))
        kinetic += (
            12 * ca.dot(velocity, velocity) / 2 + 12 * length**2 / 12 * ca.dot(rate, rate) / 2
        )
        potential += 12 * 9.81 * (start + along * length / 2)[2]
    momentum = ca.gradient(kinetic, dq)
    force = ca.jacobian(momentum, q) @ dq + ca.jacobian(momentum, dq) @ ddq
    force += ca.gradient(potential, q) - ca.gradient(kinetic, q)
    return ca.Function("torques", [q, dq, ddq], [force / ratio])


@pytest.mark.parametrize("moving", MOVING)
def test_reduced_palletiser_has_the_torques_of_its_lagrangian(moving: str) -> None:
    """Bars become couplings and lumps, whether the column turns or not, and whether the gripper turns or not."""
    full = palletiser(moving)
    reduction = reduce_model(full, ReductionOptions(states=STATES))
    assert reduction.status is Status.OK
    assert reduction.undone == ()
    assert reduction.newton_euler[0].links == 10
    assert reduction.newton_euler[-1].links <= 6
    assert reduction.equations == (3, 0)
    assert reduction.mechanism.rods == ()
    small = model(reduction.mechanism)
    assert small.assembly.mobility == len(MOVING[moving])
    s = random_states(small, STATES, np.random.default_rng(1))
    assert tuple(small.platform.ports.position.columns) == MOVING[moving]
    motions = np.zeros((3, STATES, 4))
    chosen = [COORDINATES.index(name) for name in MOVING[moving]]
    motions[:, :, chosen] = s.position, s.velocity, s.acceleration
    expected = np.array(
        [palletiser_torques()(*row).full().ravel() for row in motions.swapaxes(0, 1)]
    )[:, chosen]
    torques = small.platform.inverse_dynamics(
        s.position, s.velocity, s.acceleration, start=s.q
    ).force
    assert np.abs(torques - expected).max() < EXACT * np.abs(expected).max()


@pytest.mark.parametrize("moving", MOVING)
def test_every_body_of_the_reduced_palletiser_is_a_possible_one(moving: str) -> None:
    small = as_laminas(reduce_model(palletiser(moving), ReductionOptions(states=1)).mechanism)
    for body in small.bodies:
        assert body.inertia is None or is_possible(
            [small.value(x) for x in body.inertia.parameters]
        )


def test_reduced_palletiser_follows_its_parameters_and_is_written(tmp_path: Path) -> None:
    """Friction stays, other lengths and masses give the reduction of the changed machine, and the file is read back."""
    full = load("palletiser")
    small = reduce_model(full, ReductionOptions(states=1)).mechanism
    changes = {"bar_mass": 20.0, "reach": 1.35, "load": 60.0, "lever": 0.4}
    write_yaml(small, tmp_path / "small.yaml")
    pairs = ((full, small, EXACT), (full.with_values(changes), small.with_values(changes), EXACT))
    for big, little, limit in (*pairs, (full, load(tmp_path / "small.yaml"), WRITTEN)):
        comparison = compare_reduction(
            Model(big), Model(little), np.random.default_rng(2), states=STATES
        )
        assert max(max(e.maximum, e.motion) for e in comparison.errors) < limit
        assert comparison.center_deviation < limit


def test_a_bar_that_is_a_body_becomes_a_coupling() -> None:
    full = load(ARM_WITH_A_BAR)
    reduction = reduce_model(full, ReductionOptions(states=STATES))
    assert reduction.status is Status.OK
    assert reduction.equations == (5, 0)
    assert "bar" not in [body.name for body in reduction.mechanism.bodies]
    (coupling,) = reduction.mechanism.couplings
    assert {name: full.value(ratio) for name, ratio in coupling.terms} in (
        {"shoulder": 1.0, "elbow": 1.0, "lever_pin": -1.0},
        {"shoulder": -1.0, "elbow": -1.0, "lever_pin": 1.0},
    )
    assert abs(full.value(coupling.offset)) == pytest.approx(np.pi)
    assert max(e.maximum for e in reduction.comparison.errors) < EXACT


def test_a_step_that_changes_the_mobility_is_undone_and_named() -> None:
    """Full rods stay. Lumping the triangle would lay two of them along the arm, where they hold no angle."""
    full = palletiser("arm")
    across = (Constant(0.0), Constant(1.0), Constant(0.0))
    bars = tuple(
        replace(rod, lower=full.body("wrist").inertia, first_axis=across) for rod in full.rods
    )
    reduction = reduce_model(replace(full, rods=bars), ReductionOptions(states=STATES))
    assert reduction.status is Status.OK
    assert [(step.name, step.elements) for step in reduction.undone] == [
        ("lump translating body", ("triangle",))
    ]
    assert reduction.undone[0].reason == "it changes the mobility from 2 to 3"
    assert "triangle" in [body.name for body in reduction.mechanism.bodies]
    assert max(e.maximum for e in reduction.comparison.errors) < EXACT
    assert reduction.as_dict()["undone"]


def test_bars_that_must_stay_are_refused() -> None:
    full = palletiser("column")
    alike = body_motions(model(full), random_states(model(full), 20, np.random.default_rng(0)).q)
    assert alike.rods["lever_bar"] == {"upper_arm"}
    with pytest.raises(InputError, match="changes its direction relative to forearm"):
        distribute_rod(full, "lever_bar", "forearm", alike)
    light = replace(
        full,
        bodies=tuple(replace(b, inertia=None) if b.name == "upper_arm" else b for b in full.bodies),
    )
    with pytest.raises(
        InputError, match=r"bodies.upper_arm: would get a physically inconsistent inertia"
    ):
        distribute_rod(light, "lever_bar", "upper_arm", alike)
    with pytest.raises(InputError, match="is not a bar"):
        distribute_bar(full, "forearm", "lever_body", alike)
    with pytest.raises(InputError, match="not on a single joint"):
        lump_pinned_body(full, "gripper", alike)
    with pytest.raises(InputError, match="no other body has the same rotation"):
        concentrate_mass(full, "gripper", alike)
    pinned = replace(full, rods=(), couplings=parallel_couplings(full, alike))
    with pytest.raises(InputError, match="its center of mass is not on the axis of its joint"):
        lump_pinned_body(
            replace(
                pinned,
                bodies=tuple(_shifted(b) if b.name == "triangle" else b for b in full.bodies),
            ),
            "triangle",
            alike,
        )


def _shifted(body: Body) -> Body:
    """Return a body of 1 kg with its mass centre 10 mm along x."""
    return replace(
        body,
        inertia=Inertia(
            mass=Constant(1.0), first_moment=(Constant(0.01), Constant(0), Constant(0))
        ),
    )


def test_the_angles_of_parallel_bodies_are_coupled() -> None:
    full = palletiser("column")
    alike = body_motions(model(full), random_states(model(full), 20, np.random.default_rng(0)).q)
    coupled = {
        coupling.name: {name for name, _ in coupling.terms}
        for coupling in parallel_couplings(full, alike)
    }
    assert coupled == {
        "triangle.parallel": {"shoulder", "triangle_pin"},
        "wrist.parallel": {"shoulder", "elbow", "level"},
        "forearm.parallel": {"lever_pin", "shoulder", "elbow"},
    }
