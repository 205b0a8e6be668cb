"""MJCF files of others: forces that are modelled or left out, and masses that follow from meshes or play no part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop import DescriptionError
from tauloop.common.result import Status
from tauloop.formats import ImportOptions
from tauloop.formats.mjcf.reader import load_mjcf

#: Accelerations and inertias by MuJoCo, of the largest.
SAME = 1e-9
UPPER = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.011 0.002"/>'
LOWER = '<inertial pos="0.2 0 0.1" mass="0.7" diaginertia="0.01 0.012 0.003"/>'
WEDGE = '<mesh name="wedge" vertex="0 0 0  0.1 0 0  0 0.2 0  0 0 0.3"%s/>'


def arm(
    *,
    stand: str = "",
    lower: str = LOWER,
    body: str = "",
    upper: str = "",
    wrist: str = 'axis="0 1 0"',
    ends: str = "",
    option: str = "",
    default: str = "",
    mesh: str = "",
) -> str:
    """Return an arm of two links on hinges about y, with more elements and attributes where they are given."""
    return f"""<mujoco model="arm"><compiler angle="radian"/><option {option}/><default>{default}</default>
<asset>{WEDGE % mesh}</asset><worldbody>{stand}
<body name="upper" {upper}><joint name="shoulder" axis="0 1 0" range="-3 3"/>{UPPER}
<body name="lower" pos="0 0 0.2" {body}><joint name="wrist" {wrist}/>{lower}</body></body></worldbody>
<actuator><motor name="motor" joint="shoulder"/></actuator>{ends}</mujoco>"""


def read(folder: Path, text: str) -> tl.Mechanism:
    (folder / "m.xml").write_text(text, encoding="utf-8")
    return load_mjcf(folder / "m.xml")


def accelerations(
    text: str, q: list[float], v: list[float], assets: dict[str, bytes] | None = None
) -> np.ndarray:
    """Return MuJoCo's accelerations without control."""
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_string(text, assets)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    return np.array(data.qacc)


def own_accelerations(machine: tl.Mechanism, q: list[float], v: list[float]) -> np.ndarray:
    """Return accelerations without control, in shoulder and wrist."""
    platform = tl.Model(machine).platform
    assert platform.ports.position.columns == ("shoulder", "wrist")
    x, xd = np.array([q]), np.array([v])
    return np.linalg.solve(platform.mass_matrix(x)[0], -platform.bias(x, xd)[0])


TENDON = (
    '<tendon><fixed name="belt" %s><joint joint="shoulder" coef="1"/>'
    '<joint joint="wrist" coef="-2"/></fixed></tendon>'
)
STATES = ([0.2, -0.3], [0.5, 0.4])


@pytest.mark.parametrize(
    "acting",
    [
        'stiffness="3" springlength="0.1"',
        'stiffness="3"',
        'stiffness="3" damping="0.2" springlength="0.1 0.1"',
        'damping="0.2"',
        'armature="0.05"',
        'stiffness="3" damping="0.2" armature="0.05"',
    ],
)
def test_what_acts_on_a_fixed_tendon_is_modelled(tmp_path: Path, acting: str) -> None:
    text = arm(ends=TENDON % acting, wrist='axis="0 1 0" springref="0.3"')
    machine = read(tmp_path, text)
    assert machine.omitted_forces == ()
    expected = accelerations(text, *STATES)
    assert own_accelerations(machine, *STATES) == pytest.approx(expected, rel=SAME)


@pytest.mark.parametrize(
    "acting", ['stiffness="30" springlength="0.1" damping="0.2"', 'armature="0.05"', 'damping="3"']
)
def test_what_acts_on_a_tendon_over_a_hinge_and_a_slide_is_modelled(
    tmp_path: Path, acting: str
) -> None:
    """The tendon's length is in metres; the ratio of the hinge is in m/rad."""
    text = arm(ends=TENDON % acting, wrist='type="slide" axis="0 0 1"')
    machine = read(tmp_path, text)
    assert machine.omitted_forces == ()
    expected = accelerations(text, *STATES)
    assert own_accelerations(machine, *STATES) == pytest.approx(expected, rel=SAME)
    for name in ("written.xml", "written.yaml"):
        tl.convert(machine, tmp_path / name)
        again = tl.load(tmp_path / name)
        assert own_accelerations(again, *STATES) == pytest.approx(expected, rel=SAME)


def test_engines_agree_on_the_massless_body_of_a_tendon(tmp_path: Path) -> None:
    """MuJoCo keeps a diagonal of unit inertias for such a body unless it is told not to."""
    extra("mujoco")
    machine = read(tmp_path, arm(ends=TENDON % 'stiffness="3"'))
    assert tl.verify(machine, tl.VerifyOptions(states=3)).status is Status.OK


@pytest.mark.parametrize(
    ("options", "omitted"),
    [
        (
            {"ends": TENDON % 'stiffness="3" springlength="0.1 0.4"'},
            "the spring of tendon belt, which is slack",
        ),
        (
            {
                "stand": '<body name="hand" mocap="true" pos="0.3 0 0.4"/>',
                "ends": '<equality><weld name="grip" body1="hand" body2="lower"/></equality>',
            },
            "the pull of grip towards the externally moved body hand (mocap)",
        ),
        ({"body": 'gravcomp="1"'}, "the compensation of the weight of body lower (gravcomp=1)"),
        ({"option": 'viscosity="0.1"'}, "the drag of a medium (viscosity 0.1)"),
        (
            {"wrist": 'type="ball" stiffness="2"'},
            "the spring (2) of joint wrist, a ball or free joint",
        ),
        (
            {"wrist": 'type="ball" frictionloss="2"'},
            "the dry friction (2) of joint wrist, a ball or free joint",
        ),
    ],
)
def test_forces_that_are_left_out_make_results_doubtful(
    tmp_path: Path, options: dict[str, str], omitted: str
) -> None:
    machine = read(tmp_path, arm(**options))
    (force,) = machine.omitted_forces
    assert force.startswith(omitted)
    assert f"- omitted: {omitted}" in machine.description
    assert not tl.check(machine).is_usable
    assert tl.simulate(machine, tl.SimulationOptions(duration=0.01)).status is Status.DOUBTFUL
    assert tl.convert(machine, tmp_path / "m.yaml").status is Status.DOUBTFUL
    assert tl.load(tmp_path / "m.yaml").omitted_forces == machine.omitted_forces


@pytest.mark.parametrize(
    ("options", "omitted"),
    [
        (
            {
                "wrist": 'type="ball"',
                "ends": '<actuator><motor name="m" joint="wrist"/></actuator>',
            },
            "the force of the actuator m, on 'wrist', which is not a hinge or slide",
        ),
        (
            {"ends": '<actuator><general name="m" site="tip"/></actuator>'},
            "the force of the actuator m, which drives no joint and no tendon",
        ),
        (
            {"wrist": 'axis="0 1 0" stiffness="2 0.5"'},
            "the nonlinear stiffness (2 0.5) of joint wrist",
        ),
        (
            {"wrist": 'axis="0 1 0" damping="2 0 0.5"'},
            "the nonlinear damping (2 0 0.5) of joint wrist",
        ),
        (
            {"body": 'gravcomp="1"', "wrist": 'axis="0 1 0" actuatorgravcomp="true"'},
            "the compensation of the weight of body lower (gravcomp=1)",
        ),
        (
            {
                "upper": 'gravcomp="1"',
                "body": 'gravcomp="1"',
                "wrist": 'axis="0 1 0" actuatorgravcomp="true"',
            },
            "the compensation of the weight of body upper (gravcomp=1)",
        ),
    ],
)
def test_actuators_and_terms_that_are_left_out_make_results_doubtful(
    tmp_path: Path, options: dict[str, str], omitted: str
) -> None:
    machine = read(tmp_path, arm(**options))
    assert machine.omitted_forces[0] == omitted
    assert not tl.check(machine).is_usable


def test_motors_that_the_caller_names_replace_actuators_that_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(
        arm(ends='<actuator><general name="m" site="tip"/></actuator>'), encoding="utf-8"
    )
    machine = load_mjcf(tmp_path / "m.xml", options=ImportOptions(motors=("wrist",)))
    assert machine.omitted_forces == ()
    assert [actuator.name for actuator in machine.actuators] == ["wrist"]


def test_actuators_that_supply_gravcomp_carry_the_weight(tmp_path: Path) -> None:
    """MuJoCo adds the compensation to the forces of actuators, so that gravity acts in full."""
    text = arm(
        upper='gravcomp="1"',
        body='gravcomp="1"',
        wrist='axis="0 1 0" actuatorgravcomp="true"',
        default='<joint actuatorgravcomp="true"/>',
        ends='<actuator><motor name="other" joint="wrist"/></actuator>',
    )
    machine = read(tmp_path, text)
    assert machine.omitted_forces == ()
    assert "because the actuators supply it (actuatorgravcomp)" in machine.description
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = STATES
    mujoco.mj_forward(model, data)
    force = tl.Model(machine).platform.bias(*(np.array([x]) for x in STATES))[0]
    assert force == pytest.approx(data.qfrc_bias - data.qfrc_passive, rel=SAME)


@pytest.mark.parametrize(
    "moments", ['diaginertia="0.01 0.05 0.01"', 'fullinertia=".01 .05 .01 .005 0 0"']
)
def test_the_compiler_balances_moments_that_no_body_can_have(tmp_path: Path, moments: str) -> None:
    lower = f'<inertial pos="0.2 0 0.1" mass="0.7" {moments}/>'
    text = arm(lower=lower).replace("<compiler ", '<compiler balanceinertia="true" ')
    machine = read(tmp_path, text)
    assert "balanceinertia makes each 0.02333" in machine.description
    expected = accelerations(text, *STATES)
    assert own_accelerations(machine, *STATES) == pytest.approx(expected, rel=SAME)


@pytest.mark.parametrize("size", ["", 'size="0.3 0.3 0.3"'])
def test_a_shape_that_is_fitted_to_a_mesh_is_refused(tmp_path: Path, size: str) -> None:
    """A size of a default class has no effect there, and would give another mass."""
    lower = '<geom type="box" mesh="wedge"/>'
    with pytest.raises(DescriptionError, match="MuJoCo fits this box to mesh 'wedge'"):
        read(tmp_path, arm(lower=lower, default=f"<geom {size}/>"))


def test_a_motor_on_a_tendon_over_a_hinge_and_a_slide(tmp_path: Path) -> None:
    """The tendon's length is in metres, so the motor slides."""
    tendon = (
        '<tendon><fixed name="belt"><joint joint="shoulder" coef="0.1"/>'
        '<joint joint="wrist" coef="1"/></fixed></tendon>'
        '<actuator><motor name="pull" tendon="belt" gear="2"/></actuator>'
    )
    machine = read(tmp_path, arm(wrist='type="slide" axis="0 0 1"', ends=tendon))
    motor = machine.actuators[1]
    assert (motor.name, motor.is_rotary) == ("pull", False)
    ratios = [(name, machine.value(ratio)) for name, ratio in motor.drives]
    assert ratios == [("shoulder", 0.2), ("wrist", 2.0)]
    units = {p.name: p.unit for p in machine.parameters if p.name.startswith("pull.")}
    assert units == {"pull.drives.shoulder": "m/rad", "pull.drives.wrist": ""}
    tl.convert(machine, tmp_path / "m.yaml")
    assert tl.load(tmp_path / "m.yaml").actuators == machine.actuators


@pytest.mark.parametrize("actuator", ['<pid joint="wrist" kp="3"/>', '<plugin joint="wrist"/>'])
def test_an_actuator_with_a_control_law_is_an_ideal_motor(tmp_path: Path, actuator: str) -> None:
    machine = read(tmp_path, arm(ends=f"<actuator>{actuator}</actuator>"))
    assert [name for motor in machine.actuators for name, _ in motor.drives] == [
        "shoulder",
        "wrist",
    ]
    assert "is read as an ideal motor without its control law" in machine.description
    assert tl.check(machine).is_usable


@pytest.mark.parametrize(
    ("second", "motors"),
    [
        ('<velocity name="v" joint="wrist" gear="-3" kv="2"/>', ["motor", "p"]),
        ('<damper name="v" joint="wrist" kv="1" ctrlrange="0 1"/>', ["motor", "p"]),
        ('<velocity name="v" joint="wrist" kv="2" armature="0.1"/>', ["motor", "p", "v"]),
        ('<velocity name="v" joint="shoulder" kv="2"/>', ["motor", "p"]),
    ],
)
def test_servos_on_one_joint_are_one_motor(tmp_path: Path, second: str, motors: list[str]) -> None:
    """The force of the joint would be shared between its position and its velocity servo."""
    ends = f'<actuator><position name="p" joint="wrist" kp="9" gear="2"/>{second}</actuator>'
    machine = read(tmp_path, arm(ends=ends))
    assert [motor.name for motor in machine.actuators] == motors
    driven = [name for motor in machine.actuators for name, _ in motor.drives]
    assert ("both are read as one motor" in machine.description) is (
        len(motors) == len(set(driven))
    )


@pytest.mark.parametrize("ends", ["0 0", "1 -1", "1 1"])
def test_an_empty_range_is_no_limit(tmp_path: Path, ends: str) -> None:
    """As MuJoCo reads it: such a range switches off the one of a class."""
    actuator = f'<actuator><motor joint="wrist" forcerange="{ends}" ctrlrange="{ends}"/></actuator>'
    text = arm(
        default='<joint range="-1 1"/><motor forcerange="-3 3"/>',
        wrist=f'axis="0 1 0" range="{ends}"',
        ends=actuator,
    )
    machine = read(tmp_path, text)
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    limited = [model.jnt_limited[1], model.actuator_forcelimited[1], model.actuator_ctrllimited[1]]
    assert not any(limited)
    (freedom,) = next(joint for joint in machine.joints if joint.name == "wrist").freedoms
    assert (freedom.lower, freedom.upper) == (-np.inf, np.inf)
    assert [motor.force for motor in machine.actuators] == [3.0, np.inf]


def test_a_limit_that_is_wanted_and_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="range 1 to -1 is empty"):
        read(tmp_path, arm(wrist='axis="0 1 0" limited="true" range="1 -1"'))


def test_two_motors_on_one_joint_stay_two(tmp_path: Path) -> None:
    ends = '<actuator><motor name="second" joint="shoulder" gear="2"/></actuator>'
    machine = read(tmp_path, arm(ends=ends))
    assert [motor.name for motor in machine.actuators] == ["motor", "second"]


def test_wind_without_a_medium_pushes_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, arm(option='wind="1 0 0"')).omitted_forces == ()


def test_weight_that_is_compensated_alike_everywhere_scales_gravity(tmp_path: Path) -> None:
    text = arm(
        body='gravcomp="0.4"', upper='gravcomp="0.4"', stand=f'<body name="stand">{LOWER}</body>'
    )
    machine = read(tmp_path, text)
    assert machine.omitted_forces == ()
    expected = accelerations(text, *STATES)
    assert own_accelerations(machine, *STATES) == pytest.approx(expected, rel=SAME)


# Masses


@pytest.mark.parametrize(
    "geom",
    [
        '<geom type="mesh" mesh="wedge"/>',
        '<geom type="box" size="0.1 0.1 0.1" shellinertia="true"/>',
        '<geom type="mesh" mesh="absent"/>',
        '<geom type="sdf" mesh="wedge"/>',
    ],
)
def test_a_body_that_is_welded_to_the_world_needs_no_inertia(tmp_path: Path, geom: str) -> None:
    stand = f'<body name="stand"><body name="top" pos="0 0 1">{geom}</body></body>'
    expected, machine = (read(tmp_path, arm(stand=text)) for text in ("", stand))
    assert own_accelerations(machine, *STATES) == pytest.approx(
        own_accelerations(expected, *STATES), rel=SAME
    )
    assert machine.platform.body == "lower"


@pytest.mark.parametrize(
    ("geom", "mesh"),
    [
        ('mass="0.4"', ""),
        ('density="700"', ""),
        ('mass="0.4" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3"', ' scale="1 2 0.5"'),
        ('mass="0.4"', ' inertia="shell"'),
        ('density="30"', ' inertia="shell" scale="1 -1 1"'),
    ],
)
def test_inertia_of_a_mesh_is_that_of_mujoco(tmp_path: Path, geom: str, mesh: str) -> None:
    text = arm(lower=f'<geom type="mesh" mesh="wedge" {geom}/>', mesh=mesh)
    expected = accelerations(text, *STATES)
    assert own_accelerations(read(tmp_path, text), *STATES) == pytest.approx(expected, rel=1e-6)


#: A prism over an L, which is not convex, and the faces around it.
L_SHAPE = ((0, 0), (0.3, 0), (0.3, 0.1), (0.1, 0.1), (0.1, 0.2), (0, 0.2))
L_FACES = (
    *((a, c, b) for a, b, c in ((0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5))),
    *((a + 6, b + 6, c + 6) for a, b, c in ((0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5))),
    *((k, (k + 1) % 6, (k + 1) % 6 + 6) for k in range(6)),
    *((k, (k + 1) % 6 + 6, k + 6) for k in range(6)),
)
L_CORNERS = [(x, y, z) for z in (0.0, 0.05) for x, y in L_SHAPE]


@pytest.mark.parametrize("geom", ['mass="0.4"', 'density="700"'])
@pytest.mark.parametrize(
    "mode", ["", ' inertia="legacy"', ' inertia="convex"', ' inertia="exact"', ' inertia="shell"']
)
def test_inertia_of_a_mesh_that_is_not_convex_is_that_of_mujoco(
    tmp_path: Path, mode: str, geom: str
) -> None:
    """MuJoCo's default counts parts of such a mesh twice, which is what the author of the file has simulated."""
    corners = " ".join(f"{x}" for corner in L_CORNERS for x in corner)
    faces = " ".join(f"{k}" for face in L_FACES for k in face)
    text = arm(lower=f'<geom type="mesh" mesh="wedge" {geom}/>').replace(
        WEDGE % "", f'<mesh name="wedge" vertex="{corners}" face="{faces}"{mode}/>'
    )
    expected = accelerations(text, *STATES)
    assert own_accelerations(read(tmp_path, text), *STATES) == pytest.approx(expected, rel=1e-6)


def obj_text(ends: str) -> str:
    """Return the L as an OBJ file: its two ends as polygons of six corners, counted as `ends` has it."""
    lines = [f"v {x} {y} {z}" for x, y, z in L_CORNERS]
    lines += [
        "f 1 6 5 4 3 2" if ends == "forwards" else "f -12 -7 -8 -9 -10 -11",
        "f 7/1/1 8/1/1 9/1/1 10/1/1 11 12",
    ]
    lines += [f"f {k + 1} {(k + 1) % 6 + 1} {(k + 1) % 6 + 7} {k + 7}" for k in range(6)]
    return "\n".join(["# an L", "o part", *lines, ""])


@pytest.mark.parametrize("ends", ["forwards", "backwards"])
def test_a_mesh_of_an_obj_file_has_the_inertia_of_mujoco(tmp_path: Path, ends: str) -> None:
    (tmp_path / "part.obj").write_text(obj_text(ends), encoding="utf-8")
    text = arm(lower='<geom type="mesh" mesh="wedge" mass="0.4" euler="0.1 0.2 0.3"/>').replace(
        WEDGE % "", '<mesh name="wedge" file="part.obj" inertia="exact" scale="1 2 0.5"/>'
    )
    machine = read(tmp_path, text)
    expected = accelerations(
        text, *STATES, assets={"part.obj": (tmp_path / "part.obj").read_bytes()}
    )
    assert own_accelerations(machine, *STATES) == pytest.approx(expected, rel=1e-6)
    for damage in ("f 1 2 99", "v 1 2 x"):
        (tmp_path / "part.obj").write_text(obj_text(ends) + damage, encoding="utf-8")
        with pytest.raises(DescriptionError, match=r"part\.obj is not a binary STL or OBJ file"):
            read(tmp_path, text)


def test_a_mesh_that_is_not_closed_is_read_as_mujoco_reads_it(tmp_path: Path) -> None:
    geom, faces = '<geom type="mesh" mesh="wedge" mass="1"/>', ' face="0 1 2 0 2 3 0 3 1"'
    text = arm(lower=geom, mesh=faces)
    machine = read(tmp_path, text)
    assert own_accelerations(machine, *STATES) == pytest.approx(
        accelerations(text, *STATES), rel=1e-6
    )
    assert (
        "lower: mesh 'wedge' is not a closed surface; its inertia is computed as in MuJoCo"
        in machine.description
    )
    with pytest.raises(DescriptionError, match="mesh 'wedge' is not a closed surface"):
        read(tmp_path, arm(lower=geom, mesh=faces + ' inertia="exact"'))
    with pytest.raises(DescriptionError, match="there is no mesh 'absent'"):
        read(tmp_path, arm(lower='<geom type="mesh" mesh="absent" mass="1"/>'))


def test_ranges_of_balls_by_default_class_are_left_out(tmp_path: Path) -> None:
    assert (
        tl.Model(
            read(tmp_path, arm(default='<joint limited="true"/>', wrist='type="ball"'))
        ).assembly.mobility
        == 4
    )


@pytest.mark.parametrize("servo", ["an intvelocity", "a damper"])
def test_servos_have_the_article_of_their_name(tmp_path: Path, servo: str) -> None:
    ends = f'<actuator><{servo.split()[1]} name="s" joint="wrist"/></actuator>'
    assert f"s: {servo} actuator is read" in read(tmp_path, arm(ends=ends)).description


def test_an_inertia_in_a_frame_is_placed_by_the_frame(tmp_path: Path) -> None:
    framed = (
        f'<frame pos="0.1 0 0.2" euler="0.3 0.2 0.1"><frame pos="0 0.1 0">{LOWER}</frame></frame>'
    )
    text = arm(lower=framed)
    expected = accelerations(text, *STATES)
    assert own_accelerations(read(tmp_path, text), *STATES) == pytest.approx(expected, rel=SAME)
