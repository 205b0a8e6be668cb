"""Which coordinates may be named as independent, a Schoenflies platform, and suggestions that work where none do."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop import Model, load, loads
from tauloop.common.errors import AssemblyError, DescriptionError
from tauloop.common.result import Status
from tauloop.equations.assembly.freedoms.coordinates import actuation, independent_rows
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Freedom, Spring

CASES = Path(__file__).parents[1] / "cases"
#: The Par4 of the case, whose front half does not turn, with the angle of a bar in place of that
#: turn.
PAR4 = (CASES / "par4_xyzw.yaml").read_text()
BY_BAR = PAR4.replace("independent: [x, y, z, wz]", "independent: [x, y, z, fl]")
#: The same machine, seen from the bar: it moves along three axes and turns about z.
FROM_BAR = (
    PAR4[: PAR4.index("platform:\n")]
    + "platform: {body: left, motion: schoenflies, independent: [x, y, z, angle], "
    + "reference: {at: [-s, 0, -0.8 m], angle: 0.1 rad}}\n"
)


@cache
def model(text: str) -> Model:
    return Model(loads(text))


def named(text: str, coordinates: str) -> str:
    """A machine file with other independent coordinates."""
    return re.sub(r"independent: \[.*?\]", f"independent: [{coordinates}]", text)


def test_coordinates_of_joints_may_be_named_beside_those_of_the_platform() -> None:
    machine = model(BY_BAR)
    entry = machine.platform.ports
    assert entry.position.columns == ("platform.x", "platform.y", "platform.z", "fl")
    assert entry.position.units == ("m", "m", "m", "rad")
    assert (
        model(named(BY_BAR, "x, platform.y, z, fl")).assembly.independent
        == machine.assembly.independent
    )


@pytest.mark.parametrize("command", ["check", "dynamics", "verify"])
def test_a_half_platform_that_does_not_turn_works_with_the_angle_of_its_bar(command: str) -> None:
    """`verify` compares with Pinocchio and MuJoCo."""
    if command == "verify":
        extra("pinocchio")
    work = {
        "check": tl.check,
        "dynamics": lambda machine: tl.inverse_dynamics(
            machine, tl.DynamicsOptions(pose="fl=0.2,platform.x=0.05")
        ),
        "verify": lambda machine: tl.verify(machine, tl.VerifyOptions(states=20)),
    }
    assert work[command](tl.loads(BY_BAR)).status is Status.OK


def test_a_schoenflies_platform_is_the_same_machine_seen_from_its_bar() -> None:
    """Two descriptions of one machine: the same motor torques at the same motion of the bar."""
    front, bar = model(BY_BAR), model(FROM_BAR)
    assert bar.platform.ports.position.columns == (
        "platform.x",
        "platform.y",
        "platform.z",
        "platform.angle",
    )
    rng = np.random.default_rng(2)
    u, v, a = rng.uniform(-0.05, 0.05, (20, 4)), rng.normal(size=(20, 4)), rng.normal(size=(20, 4))
    u[:, 3] *= 5
    middle = np.array([0.0, 0.06, -0.8, 0.0]) + u
    # the bar turns about the front's pin (-s, 0), and its own origin lies h = 60 mm back along its
    # y
    s, h, angle = 0.04, 0.06, middle[:, 3]
    arm = h * np.stack([np.sin(angle), -np.cos(angle)], axis=1)
    across = h * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    position, velocity, acceleration = middle.copy(), v.copy(), a.copy()
    position[:, :2] += arm - [s, 0]
    velocity[:, :2] += across * v[:, 3:]
    acceleration[:, :2] += across * a[:, 3:] - arm * v[:, 3:] ** 2
    force = bar.platform.inverse_dynamics(position, velocity, acceleration).force
    assert (
        np.abs(force - front.platform.inverse_dynamics(middle, v, a).force).max()
        < 1e-9 * np.abs(force).max()
    )


GUIDED = """
format: tauloop-machine/1
name: guided
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  one: massless
  two: massless
  three: massless
  four: massless
  plate: {mass: 2 kg, center: [0.03 m, 0.02 m, 0.01 m], inertia: {xx: 0.01 kg m^2, yy: 0.02 kg m^2, zz: 0.015 kg m^2}}
joints:
  px: {type: prismatic, axis: x, parent: base, child: one, reference: 0.2 m}
  py: {type: prismatic, axis: y, parent: one, child: two, reference: 0.1 m}
  pz: {type: prismatic, axis: z, parent: two, child: three, reference: 0.3 m}
  turn: {type: revolute, axis: z, parent: three, child: four, reference: 0.4 rad}
  tilt: {type: universal, axes: [x, y], parent: four, child: plate}
  guide: {type: schoenflies, parent: base, child: plate, cut: yes}
actuators: {x: {on: px}, y: {on: py}, z: {on: pz}, t: {on: turn}}
platform: {body: plate, independent: [px, py, pz, turn]}
"""
FREE_GUIDE = """
format: tauloop-machine/1
name: gantry
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  plate: {mass: 2 kg, center: [0.03 m, 0.02 m, 0.01 m], inertia: {xx: 0.01 kg m^2, yy: 0.02 kg m^2, zz: 0.015 kg m^2}}
actuators: {x: {on: platform.x}, y: {on: platform.y}, z: {on: platform.z}, t: {on: platform.angle}}
platform: {body: plate, motion: schoenflies, independent: [x, y, z, angle], reference: {at: [0.2 m, 0.1 m, 0.3 m]}}
"""


@pytest.mark.parametrize("text", [GUIDED, FREE_GUIDE], ids=["cut", "in the tree"])
def test_a_schoenflies_joint_in_the_tree_and_as_a_cut_moves_a_body_as_newton_says(
    text: str,
) -> None:
    """f = m (c'' - g) and the moment about z of a body with an eccentric mass centre, by hand."""
    rng = np.random.default_rng(3)
    q, v, a = (
        0.2 * rng.uniform(-1, 1, (10, 4)) + np.array((0.2, 0.1, 0.3, 0.4)),
        rng.normal(size=(10, 4)),
        rng.normal(size=(10, 4)),
    )
    c, s = np.cos(q[:, 3]), np.sin(q[:, 3])
    r = np.stack([0.03 * c - 0.02 * s, 0.03 * s + 0.02 * c], axis=1)
    across = np.stack([-r[:, 1], r[:, 0]], axis=1)
    lift = np.append(a[:, :2] + across * a[:, 3:] - r * v[:, 3:] ** 2, a[:, 2:3] + 9.81, axis=1)
    moment = 0.015 * a[:, 3] + 2 * (r[:, 0] * lift[:, 1] - r[:, 1] * lift[:, 0])
    expected = np.append(2 * lift, moment[:, None], axis=1)
    assert np.abs(model(text).platform.inverse_dynamics(q, v, a).force - expected).max() < 1e-11


def test_a_schoenflies_platform_is_written_as_it_was_read() -> None:
    mechanism = loads(FROM_BAR)
    assert Model(loads(dumps(mechanism))).assembly.q == pytest.approx(
        model(FROM_BAR).assembly.q, abs=1e-12
    )
    assert loads(dumps(mechanism)).platform == mechanism.platform
    assert loads(dumps(loads(BY_BAR))).platform == loads(BY_BAR).platform


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("independent: [x, y, z, wz]", "has no degree of freedom wz"),
        ("independent: [x, y, z, turn4]", "has no degree of freedom turn4"),
        ("reference: {turn: [{x: 1 rad}]}, independent: [x, y, z, angle]", "rotates only about z"),
        (
            "reference: {at: [0, 0, 0], z: 1 m}, independent: [x, y, z, angle]",
            "give the same value twice",
        ),
    ],
)
def test_what_a_schoenflies_platform_does_not_have_is_refused(key: str, word: str) -> None:
    text = re.sub(r"independent: \[.*\]\}, *|independent: .*\}\n", "", FREE_GUIDE)
    with pytest.raises(DescriptionError, match=word):
        loads(f"{text.rstrip().removesuffix(',')}, {key}}}\n")


def test_a_name_that_is_a_joint_and_a_freedom_of_the_platform_is_refused() -> None:
    text = BY_BAR.replace("  fl: {type", "  x: {type").replace(
        "[x, y, z, fl]", "[x, y, z, platform.x]"
    )
    with pytest.raises(
        DescriptionError, match="x is the name of both a platform degree of freedom and a joint"
    ):
        loads(text)


@pytest.mark.parametrize(
    ("name", "wrong", "why"),
    [
        ("par4", "x, y, z, wz", "platform.wz is constant"),
        ("par4", "wx, wy, z, fl", "platform.wx, platform.wy are constant"),
        ("par4", "x, fl, fr, z", "do not determine the pose"),
        ("five_bar", "x, y, shoulder_1", "names 3 coordinates"),
        ("delta", "x, y, z, leg1.shoulder", "names 4 coordinates"),
        ("gantry_tau_5dof", "x, y, wx, wy, wz, z", "names 6 coordinates"),
    ],
)
def test_the_suggestion_for_a_choice_that_does_not_work_works(
    name: str, wrong: str, why: str
) -> None:
    """The coordinates that the refusal names are put into the file, whose machine then moves and needs forces."""
    text = BY_BAR if name == "par4" else dumps(load(name))
    with pytest.raises(AssemblyError, match=why) as refused:
        Model(loads(named(text, wrong))).platform  # noqa: B018
    suggested = re.search(r"coordinates that determine it: (.*?);", str(refused.value))
    assert suggested is not None
    mended = Model(loads(named(text, suggested[1])))
    assert mended.assembly.mobility == len(mended.assembly.independent)
    n = mended.assembly.mobility
    here = mended.platform_position(mended.assembly.q)
    forces = mended.platform.inverse_dynamics(here, np.zeros(n), np.ones(n))
    assert np.abs(forces.state.q - mended.assembly.q).max() < 1e-9
    assert np.isfinite(forces.force).all()
    assert mended.platform.condition(forces.state.q).max() < 1e6


def test_of_equal_rows_the_first_is_taken_whatever_rounding_makes_of_them():
    """Rows of a machine with a plane of symmetry differ by rounding, which is another one on every processor."""
    for difference in (-1e-12, 0.0, 1e-12):
        rows = np.array([[[1.0, 0.0], [1.0 + difference, 0.0], [0.0, 0.5]]])
        assert independent_rows(rows, 2) == (0, 2)


@pytest.mark.parametrize(
    "reference",
    [
        "{x: 0.1 m, y: 0.2 m, z: 0.3 m, angle: 0.4 rad}",
        "{at: [0.1 m, 0.2 m, 0.3 m], angle: 0.4 rad}",
        "{at: [0.1 m, 0.2 m, 0.3 m], turn: [{z: 0.4 rad}]}",
    ],
)
def test_a_schoenflies_joint_takes_its_reference_by_all_documented_keys(reference: str) -> None:
    text = f"""
format: tauloop-machine/1
name: hand
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{plate: {{mass: 1 kg}}}}
joints: {{hand: {{type: schoenflies, parent: base, child: plate, reference: {reference}}}}}
platform: {{body: plate, independent: [hand.x, hand.y, hand.z, hand.angle]}}
"""
    mechanism = loads(text)
    assert Model(mechanism).assembly.q == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert loads(tl.dumps(mechanism)).joints[0].reference == mechanism.joints[0].reference


def test_springs_and_motors_need_a_coordinate() -> None:
    """They took the last coordinate of the machine where an angular velocity of a ball has none."""
    machine = load("hexapod")
    spring = Freedom(spring=Spring(stiffness=Constant(1.0)))
    sprung = tuple(replace(joint, freedoms=(spring,) * 6) for joint in machine.joints)
    driven = (
        replace(machine.actuators[0], drives=(("platform.wx", Constant(1.0)),)),
        *machine.actuators[1:],
    )
    with pytest.raises(
        DescriptionError,
        match=r"a spring acts on platform\.wx, an angular velocity without a coordinate",
    ):
        Model(replace(machine, joints=sprung))
    with pytest.raises(
        DescriptionError, match=r"an actuator acts on platform\.wx, an angular velocity"
    ):
        Model(replace(machine, actuators=driven))


def test_a_motor_on_a_coordinate_that_moves_by_rounding_alone_moves_nothing() -> None:
    motions = np.tile([[1e-16], [1.0]], (3, 1, 1))
    motor = np.array([[1.0, 0.0]])
    solution = actuation(motions, motor, motor, 1, np.array([True, True]))
    assert solution.rank == 0
    assert solution.passive == (1,)
