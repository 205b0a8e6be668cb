"""Which joints of an imported machine have motors: the order of sources, transmissions of both dialects, and doubt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tauloop as tl
from tauloop import AssemblyError, DescriptionError, load
from tauloop.equations.ports import ACTUATORS
from tauloop.formats.options import ImportOptions
from tauloop.formats.sdf.writer import write_sdf
from tauloop.formats.urdf.writer import write_urdf

#: Angles by Newton's method and a central difference over 1e-6 rad.
DIFFERENCE = 1e-7
GRAVITY = 9.81
STEP = 1e-6


def link(name: str, reach: float) -> str:
    inertia = '<inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    origin = f'<origin xyz="{reach / 2} 0 0"/>'
    return f'<link name="{name}"><inertial>{origin}<mass value="1"/>{inertia}</inertial></link>'


def pin(
    name: str, parent: str, child: str, x: float, turn: float, effort: str = "9", inside: str = ""
) -> str:
    return (
        f'<joint name="{name}" type="revolute"><origin xyz="{x} 0 0" rpy="0 {turn} 0"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="{effort}" velocity="9"/>'
        f"{inside}</joint>"
    )


LOOP = (
    '<drake:ball_constraint><drake:ball_constraint_body_A name="coupler"/>'
    '<drake:ball_constraint_p_AP value="0.5 0 0"/><drake:ball_constraint_body_B name="rocker"/>'
    '<drake:ball_constraint_p_BQ value="0.4 0 0"/></drake:ball_constraint>'
)
GEARED = (
    '<transmission name="drive"><type>transmission_interface/SimpleTransmission</type><joint name="crank_pin"/>'
    '<actuator name="motor"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>'
)

PR2 = (
    '<transmission name="t" type="pr2_mechanism_model/SimpleTransmission"><actuator name="motor"/>'
    '<joint name="crank_pin"/><mechanicalReduction>30</mechanicalReduction></transmission>'
)


def four_bar(
    *elements: str, efforts: tuple[str, str, str] = ("9", "9", "9"), loop: str = LOOP
) -> str:
    """A four-bar whose crank, coupler and rocker weigh 1 kg each; without its loop a tree."""
    parts = (
        '<link name="ground"/>',
        link("crank", 0.2),
        link("coupler", 0.5),
        link("rocker", 0.4),
        pin("crank_pin", "ground", "crank", 0.0, 0.0, efforts[0]),
        pin("knee_pin", "crank", "coupler", 0.2, -1.0, efforts[1]),
        pin("rocker_pin", "ground", "rocker", 0.4, -1.2, efforts[2]),
        loop,
        *elements,
    )
    return f'<robot name="four_bar" xmlns:drake="http://drake.mit.edu">{"".join(parts)}</robot>'


def read(
    folder: Path, text: str, *motors: str, platform: str = "coupler", side: str = ""
) -> tl.Mechanism:
    path = folder / "machine.urdf"
    path.write_text(text)
    beside = None
    if side:
        beside = folder / "machine.side.yaml"
        beside.write_text(side)
    return load(path, beside, options=ImportOptions(motors=motors, platform_body=platform))


def motors_of(mechanism: tl.Mechanism) -> dict[str, dict[str, float]]:
    """Ratios by joint, by motor."""
    return {
        actuator.name: {name: mechanism.value(ratio) for name, ratio in actuator.drives}
        for actuator in mechanism.actuators
    }


def height(crank: float, knee: float, rocker: float) -> float:
    """Sum of mass times height of the mass centres, about y with z up (all masses are 1 kg)."""
    down = crank + knee - 1.0
    coupler = -0.2 * np.sin(crank) - 0.25 * np.sin(down)
    return float(-0.1 * np.sin(crank) + coupler - 0.2 * np.sin(rocker - 1.2))


def closed(crank: float, start: np.ndarray) -> np.ndarray:
    """Angles of knee and rocker that close the loop, by Newton's method from a start."""
    x = np.array(start, dtype=float)
    for _ in range(30):
        down, up = crank + x[0] - 1.0, x[1] - 1.2
        gap = [
            0.2 * np.cos(crank) + 0.5 * np.cos(down) - 0.4 - 0.4 * np.cos(up),
            0.2 * np.sin(crank) + 0.5 * np.sin(down) - 0.4 * np.sin(up),
        ]
        J = [[-0.5 * np.sin(down), 0.4 * np.sin(up)], [0.5 * np.cos(down), -0.4 * np.cos(up)]]
        x -= np.linalg.solve(J, gap)
    return x


def crank_torque(crank: float, start: np.ndarray) -> float:
    """The torque at the crank that holds the four-bar: the slope of its potential energy, by virtual work."""
    ahead, behind = (height(crank + h, *closed(crank + h, start)) for h in (STEP, -STEP))
    return GRAVITY * (ahead - behind) / (2 * STEP)


def held(mechanism: tl.Mechanism) -> tuple[float, np.ndarray]:
    """Force of the one motor at the reference pose at rest, and crank, knee and rocker there."""
    model = tl.Model(mechanism)
    forces = tl.inverse_dynamics(model).forces
    names = model.topology.coordinate_names
    pose = [model.assembly.q[names.index(name)] for name in ("crank_pin", "knee_pin", "rocker_pin")]
    return float(forces.force[0, 0]), np.array(pose)


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        (four_bar(GEARED), 50.0),
        (four_bar(efforts=("9", "0", "0")), 1.0),
        (four_bar(GEARED.replace("50", "-2")), -2.0),
        (four_bar(PR2), 30.0),
        (
            four_bar(
                '<ros2_control name="r" type="system"><joint name="crank_pin"><command_interface name="effort"/>'
                '</joint><joint name="knee_pin"><state_interface name="position"/></joint></ros2_control>'
            ),
            1.0,
        ),
    ],
    ids=["transmission", "effort", "reversed", "pr2", "ros2_control"],
)
def test_one_motor_carries_the_four_bar(tmp_path: Path, text: str, ratio: float) -> None:
    """The motor's torque is that of virtual work over the reduction; it was shared out over all three pins."""
    force, pose = held(read(tmp_path, text))
    assert_allclose(force, crank_torque(pose[0], pose[1:]) / ratio, rtol=DIFFERENCE)


def test_the_crank_at_zero_needs_the_torque_of_virtual_work(tmp_path: Path) -> None:
    model = tl.Model(read(tmp_path, four_bar(efforts=("9", "0", "0"))))
    forces = tl.inverse_dynamics(model, tl.DynamicsOptions(pose={"crank_pin": 0.0})).forces
    assert_allclose(forces.force, [[-0.73575]], rtol=1e-9)


# Sources, in their order

CONTROL = (
    '<ros2_control name="r" type="system"><joint name="rocker_pin"><command_interface name="velocity"/></joint>'
    '<joint name="crank_pin"><state_interface name="position"/></joint></ros2_control>'
)
NAMED = "format: tauloop-urdf-side/1\nprovenance: {status: chosen, source: a test}\nactuators: {m: {on: knee_pin}}"


def test_the_first_source_that_states_motors_holds(tmp_path: Path) -> None:
    contrast = ("0", "0", "9")
    whole = four_bar(GEARED, CONTROL, efforts=contrast)
    assert motors_of(read(tmp_path, whole, "crank_pin", side=NAMED)) == {
        "crank_pin": {"crank_pin": 1.0}
    }
    assert motors_of(read(tmp_path, whole, "motor", side=NAMED)) == {"motor": {"crank_pin": 50.0}}
    assert motors_of(read(tmp_path, whole, side=NAMED)) == {"m": {"knee_pin": 1.0}}
    assert motors_of(read(tmp_path, whole)) == {"rocker_pin": {"rocker_pin": 1.0}}
    assert motors_of(read(tmp_path, four_bar(GEARED, efforts=contrast))) == {
        "motor": {"crank_pin": 50.0}
    }
    assert motors_of(read(tmp_path, four_bar(efforts=contrast))) == {
        "rocker_pin": {"rocker_pin": 1.0}
    }


def test_efforts_that_are_all_zero_state_nothing(tmp_path: Path) -> None:
    tree = four_bar(efforts=("0", "0", "0"), loop="")
    mechanism = read(tmp_path, tree)
    assert list(motors_of(mechanism)) == ["crank_pin", "knee_pin", "rocker_pin"]
    assert (
        "the file states no motors, so every joint that rotates or slides has one, crank_pin, knee_pin, rocker_pin"
        in mechanism.description
    )
    assert read(tmp_path, four_bar(efforts=("0", "0", "0"))).unstated_motors == (
        "crank_pin",
        "knee_pin",
        "rocker_pin",
    )


def test_a_joint_without_effort_beside_one_with_effort(tmp_path: Path) -> None:
    """In a tree it has a motor, in a loop it has none; both are noted."""
    text = four_bar(efforts=("9", "0", "9")).replace(
        'effort="9" velocity="9"/></joint><drake', 'velocity="9"/></joint><drake'
    )
    assert list(motors_of(read(tmp_path, text))) == ["crank_pin"]
    tree = read(tmp_path, text.replace(LOOP, ""))
    assert list(motors_of(tree)) == ["crank_pin", "rocker_pin"]
    assert "joints without effort have a motor: rocker_pin" in tree.description


def test_motors_of_a_loop_that_nothing_states_are_reported_and_forces_refused(
    tmp_path: Path,
) -> None:
    mechanism = read(tmp_path, four_bar())
    inspection = tl.check(mechanism)
    (problem,) = inspection.problems
    assert not inspection.is_usable
    assert (
        "3 candidates (crank_pin, knee_pin, rocker_pin), and the machine has 1 degree of freedom"
        in problem.what
    )
    assert problem.remedy.startswith(
        "name them; these move every degree of freedom: `--motors crank_pin`"
    )
    model = tl.Model(mechanism)
    assert model.forward_kinematics(model.actuators.ports.position and [0.1]).q.shape
    calls = [
        lambda: tl.inverse_dynamics(model),
        lambda: tl.inverse_dynamics(model, tl.DynamicsOptions(coordinates=ACTUATORS)),
        lambda: model.platform.forward_dynamics([0.0], [0.0], []),
    ]
    for call in calls:
        with pytest.raises(AssemblyError, match="does not specify which joints have motors"):
            call()
    named = read(tmp_path, four_bar(), "rocker_pin")
    assert tl.check(named).is_usable


def test_candidates_have_full_rank(tmp_path: Path) -> None:
    """Two pins in one chain that move alike drive one freedom: they are not offered together."""
    twin = pin("twin_pin", "ground", "flag", 0.0, 0.0) + link("flag", 0.1)
    mechanism = read(tmp_path, four_bar(twin))
    (problem,) = tl.check(mechanism).problems
    sets = [word.split(",") for word in problem.remedy.split("`--motors ")[1:]]
    assert len(sets) == 3
    assert all("twin_pin" in "".join(names) for names in sets)


def test_unknown_and_repeated_motors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"no motor 'crank'[\s\S]*did you mean crank_pin"):
        read(tmp_path, four_bar(), "crank")
    with pytest.raises(DescriptionError, match="named twice"):
        read(tmp_path, four_bar(), "crank_pin", "crank_pin")


# Transmissions

ROS1 = """<transmission name="t"><type>transmission_interface/{kind}</type>
<actuator name="left"><role>actuator1</role><mechanicalReduction>50</mechanicalReduction></actuator>
<actuator name="right"><role>actuator2</role><mechanicalReduction>-30</mechanicalReduction></actuator>
<joint name="knee_pin"><role>joint2</role><offset>0.5</offset><mechanicalReduction>3</mechanicalReduction></joint>
<joint name="crank_pin"><role>joint1</role><offset>0.2</offset><mechanicalReduction>2</mechanicalReduction></joint>
</transmission>"""
ROS2 = """<ros2_control name="r" type="system"><hardware><plugin>any</plugin></hardware>
<joint name="crank_pin"><command_interface name="position"/></joint>
<joint name="knee_pin"><command_interface name="position"/></joint>
<transmission name="t"><plugin>transmission_interface/{kind}</plugin>
<actuator name="right" role="actuator2"><mechanical_reduction>-30</mechanical_reduction></actuator>
<actuator name="left" role="actuator1"><mechanical_reduction>50</mechanical_reduction></actuator>
<joint name="crank_pin" role="joint1"><mechanical_reduction>2</mechanical_reduction><offset>0.2</offset></joint>
<joint name="knee_pin" role="joint2"><mechanical_reduction>3</mechanical_reduction><offset>0.5</offset></joint>
</transmission></ros2_control>"""


def positions(kind: str, crank: float, knee: float) -> tuple[float, float]:
    """Of the two motors, as transmission_interface of ros2_control computes them."""
    x1, x2 = 2.0 * (crank - 0.2), 3.0 * (knee - 0.5)
    if kind == "DifferentialTransmission":
        return 50.0 * (x1 + x2), -30.0 * (x1 - x2)
    return 50.0 * x1, -30.0 * (crank - 0.2 + x2)


@pytest.mark.parametrize("dialect", [ROS1, ROS2], ids=["ros1", "ros2"])
@pytest.mark.parametrize("kind", ["DifferentialTransmission", "FourBarLinkageTransmission"])
def test_two_motors_share_two_joints(tmp_path: Path, dialect: str, kind: str) -> None:
    """Joints keep the URDF's coordinates; encoders follow ros2_control's own formulae with offsets.

    Forces are those of the joints by virtual work.
    """
    model = tl.Model(read(tmp_path, four_bar(dialect.format(kind=kind), loop="")))
    plain = tl.Model(read(tmp_path, four_bar(loop="")))
    crank, knee, rocker = 0.7, -0.4, 0.3
    pose = {"crank_pin": crank, "knee_pin": knee, "rocker_pin": rocker}
    encoders = positions(kind, crank, knee)
    q = np.array([pose[name] for name in model.topology.coordinate_names])
    assert_allclose(model.actuator_position(q), encoders, rtol=1e-12)
    encoder_positions = dict(zip(("left", "right", "rocker_pin"), (*encoders, rocker), strict=True))
    hybrid = tl.inverse_dynamics(
        model, tl.DynamicsOptions(coordinates=ACTUATORS, pose=encoder_positions)
    ).hybrid
    assert hybrid is not None
    assert hybrid.passive_names == ("rocker_pin",)
    motion = {"rocker_pin": float(hybrid.passive_acceleration[0, 0])}
    forces = tl.inverse_dynamics(plain, tl.DynamicsOptions(pose=pose, acceleration=motion)).forces
    torque = dict(zip(forces.actuator_names, forces.force[0], strict=True))
    assert abs(torque["rocker_pin"]) < 1e-9
    rates = (
        np.array([positions(kind, crank + 1, knee), positions(kind, crank, knee + 1)]) - encoders
    )
    assert_allclose(
        rates @ hybrid.forces.force[0], [torque["crank_pin"], torque["knee_pin"]], rtol=1e-9
    )


def test_a_simple_transmission_of_ros2_has_its_reduction_at_the_joint(tmp_path: Path) -> None:
    text = """<ros2_control name="r" type="system"><joint name="crank_pin"><command_interface name="effort"/></joint>
    <transmission name="t"><plugin>transmission_interface/SimpleTransmission</plugin><actuator name="m"/>
    <joint name="crank_pin" role="joint1"><mechanical_reduction>40</mechanical_reduction><offset>0.25</offset></joint>
    </transmission></ros2_control>"""
    mechanism = read(tmp_path, four_bar(text))
    (actuator,) = mechanism.actuators
    assert motors_of(mechanism) == {"m": {"crank_pin": 40.0}}
    assert (actuator.force, actuator.speed) == (9.0 / 40.0, 9.0 * 40.0)
    limits = mechanism.joint("crank_pin").freedoms[0]
    assert (limits.lower, limits.upper, limits.speed) == (-3.0, 3.0, 9.0)
    assert mechanism.value(actuator.offset) == -40.0 * 0.25
    assert mechanism.value("crank_pin.transmission_offset") == 0.25


def test_drakes_rotor_adds_its_inertia_at_the_joint_alone(tmp_path: Path) -> None:
    rotor = '<drake:rotor_inertia value="2e-4"/><drake:gear_ratio value="30"/>'
    drake = f'<joint name="crank_pin"/><actuator name="a">{rotor}</actuator>'
    drake = f'<transmission type="SimpleTransmission">{drake}</transmission>'
    named = tl.Model(
        read(tmp_path, four_bar(drake, loop=""), "crank_pin", "knee_pin", "rocker_pin")
    )
    plain = tl.Model(read(tmp_path, four_bar(loop="")))
    options = tl.DynamicsOptions(acceleration={"crank_pin": 1.0})
    with_rotor, without = (
        tl.inverse_dynamics(model, options).forces.force[0] for model in (named, plain)
    )
    assert_allclose(with_rotor - without, [30.0**2 * 2e-4, 0.0, 0.0], atol=1e-12)
    assert motors_of(read(tmp_path, four_bar(drake, loop=""))) == {"a": {"crank_pin": 1.0}}


@pytest.mark.parametrize("tag", ["drake:rotor_inertia", "drake:gear_ratio"])
def test_a_rotor_outside_an_actuator_is_refused_with_its_place(tmp_path: Path, tag: str) -> None:
    """Drake reads it in an actuator alone: elsewhere n^2 J would be lost without a word."""
    rotor = f'<{tag} value="3"/>'
    joint = four_bar(loop="").replace("</joint>", f"{rotor}</joint>", 1)
    with pytest.raises(DescriptionError, match="use its <actuator>"):
        read(tmp_path, joint)
    inside = '<joint name="crank_pin"{}<actuator name="a"/>'
    for text in (inside.format("/>") + rotor, inside.format(f">{rotor}</joint>")):
        element = f'<transmission type="SimpleTransmission">{text}</transmission>'
        with pytest.raises(DescriptionError, match="move it into <actuator>"):
            read(tmp_path, four_bar(element, loop=""))


def test_joints_that_follow_or_are_measured_are_passive(tmp_path: Path) -> None:
    mimic = four_bar(loop="").replace(
        "</joint>", '<mimic joint="crank_pin" multiplier="-1"/></joint>'
    )
    mimic = mimic.replace('<mimic joint="crank_pin" multiplier="-1"/></joint>', "</joint>", 1)
    control = "".join(
        f'<joint name="{name}"><command_interface name="position"/></joint>'
        for name in ("crank_pin", "knee_pin", "rocker_pin")
    )
    text = mimic.replace("</robot>", f'<ros2_control name="r">{control}</ros2_control></robot>')
    assert list(motors_of(read(tmp_path, text))) == ["crank_pin"]
    parameter = '<joint name="knee_pin"><command_interface name="position"/><param name="mimic">crank_pin</param>'
    parameter += '<param name="multiplier">-1</param></joint>'
    text = four_bar(
        f'<ros2_control name="r">{control.replace("knee_pin", "crank_pin")}{parameter}</ros2_control>',
        loop="",
    )
    mechanism = read(tmp_path, text)
    assert list(motors_of(mechanism)) == ["crank_pin", "rocker_pin"]
    assert [coupling.name for coupling in mechanism.couplings] == ["knee_pin_mimic"]
    state = GEARED.replace(
        '"crank_pin"/>',
        '"crank_pin"><hardwareInterface>JointStateInterface</hardwareInterface></joint>',
    )
    assert read(tmp_path, four_bar(state)).unstated_motors == ("knee_pin", "rocker_pin")


@pytest.mark.parametrize(
    ("element", "what"),
    [
        (
            GEARED.replace("Simple", "Cable"),
            "type 'transmission_interface/CableTransmission' is not supported",
        ),
        (GEARED.replace("crank_pin", "crank_pim"), "no joint 'crank_pim' that rotates or slides"),
        (GEARED.replace("50", "0"), "the reduction is zero"),
        (GEARED.replace("50", "fifty"), "is not a finite number"),
        (
            GEARED.replace("Simple", "Differential"),
            "a DifferentialTransmission has 1 joint and 1 actuator",
        ),
        (
            ROS1.format(kind="DifferentialTransmission").replace("joint2", "joint1"),
            "the joints have the roles",
        ),
    ],
)
def test_a_transmission_that_is_not_understood_is_refused_unless_motors_are_named(
    tmp_path: Path, element: str, what: str
) -> None:
    with pytest.raises(DescriptionError, match=what):
        read(tmp_path, four_bar(element))
    assert list(motors_of(read(tmp_path, four_bar(element), "crank_pin"))) == ["crank_pin"]


def test_an_offset_moves_the_motors_zero_and_no_joint(tmp_path: Path) -> None:
    """The tool is where the URDF's own joint coordinates place it."""
    simple = GEARED.replace('"crank_pin"/>', '"crank_pin"><offset>0.3</offset></joint>')
    elements = [simple, ROS1.format(kind="DifferentialTransmission")]
    pose = {"crank_pin": 0.7, "knee_pin": -0.4, "rocker_pin": 0.0}
    plain = tl.inverse_kinematics(read(tmp_path, four_bar(loop="")), pose)
    for element in elements:
        shifted = tl.inverse_kinematics(read(tmp_path, four_bar(element, loop="")), pose)
        assert_allclose(shifted.tool_pose, plain.tool_pose, atol=1e-12)


def test_motors_of_one_joint_may_have_several_offsets(tmp_path: Path) -> None:
    first = GEARED.replace('"crank_pin"/>', '"crank_pin"><offset>0.3</offset></joint>')
    second = first.replace('name="motor"', 'name="twin"').replace("0.3", "0.1")
    model = tl.Model(read(tmp_path, four_bar(first, second)))
    crank = model.assembly.q[model.topology.coordinate_names.index("crank_pin")]
    expected = [50.0 * (crank - 0.3), 50.0 * (crank - 0.1)]
    assert_allclose(model.actuator_position(model.assembly.q), expected, rtol=1e-12)


@pytest.mark.parametrize("ending", ["yaml", "urdf", "sdf", "xml"])
def test_written_files_keep_the_zero_of_a_motor(tmp_path: Path, ending: str) -> None:
    machine = read(tmp_path, four_bar(ROS1.format(kind="DifferentialTransmission"), loop=""))
    written = tl.convert(machine, tmp_path / f"again.{ending}").written
    again = load(tmp_path / f"again.{ending}", written.side)
    models = [tl.Model(machine), tl.Model(again)]
    read_at_start = [model.actuator_position(model.assembly.q) for model in models]
    assert_allclose(read_at_start[0], [50.0 * -1.9, -30.0 * 1.1], rtol=1e-12)
    assert_allclose(read_at_start[1], read_at_start[0], rtol=1e-12)


@pytest.mark.parametrize(("side_offset", "position"), [(0.3, 0.7), (0.1, 0.5)])
def test_offsets_of_a_side_file_and_of_a_transmission(
    tmp_path: Path, side_offset: float, position: float
) -> None:
    """The URDF's coordinate is 0.7 + side_offset; equal offsets mean that the encoder is measured."""
    element = GEARED.replace('"crank_pin"/>', '"crank_pin"><offset>0.3</offset></joint>')
    side = f"format: tauloop-urdf-side/1\noffsets: {{crank_pin: {side_offset} rad}}\n"
    machine = read(tmp_path, four_bar(element, loop=""), side=side)
    model = tl.Model(machine)
    q = np.zeros(3)
    q[model.topology.coordinate_names.index("crank_pin")] = 0.7
    assert_allclose(model.actuator_position(q), [50.0 * position], rtol=1e-12)


def test_couplings_keep_their_meaning_where_transmissions_have_offsets(tmp_path: Path) -> None:
    mimic = '<mimic joint="crank_pin" multiplier="-2" offset="0.1"/>'
    text = four_bar(loop="").replace(
        pin("knee_pin", "crank", "coupler", 0.2, -1.0),
        pin("knee_pin", "crank", "coupler", 0.2, -1.0, inside=mimic),
    )
    offset = GEARED.replace('"crank_pin"/>', '"crank_pin"><offset>0.3</offset></joint>').replace(
        "50", "1"
    )
    model = tl.Model(read(tmp_path, text.replace("</robot>", f"{offset}</robot>")))
    names = model.topology.coordinate_names
    q = model.inverse_kinematics([0.7, 0.0]).q
    assert_allclose(q[names.index("knee_pin")], -2.0 * 0.7 + 0.1, rtol=1e-12)
    assert_allclose(model.actuator_position(q), [0.7 - 0.3], rtol=1e-12)


# SDF: the same rule


def sdf(efforts: dict[str, str]) -> str:
    inertial = "<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>"
    links = "".join(
        f'<link name="{name}"><pose>{at}</pose>{inertial}</link>'
        for name, at in (
            ("crank", "0 0 0 0 0 0"),
            ("coupler", "0 0 0.2 0 0 0"),
            ("rocker", "0.5 0 0 0 0 0"),
        )
    )
    pins = (
        ("crank_pin", "world", "crank", "0 0 0"),
        ("knee_pin", "crank", "coupler", "0 0 0"),
        ("rocker_pin", "world", "rocker", "0 0 0"),
        ("top_pin", "coupler", "rocker", "0 0 0.3"),
    )
    joints = "".join(
        f'<joint name="{name}" type="revolute"><pose>{at} 0 0 0</pose><parent>{parent}</parent><child>{child}</child>'
        f"<axis><xyz>0 1 0</xyz>{efforts.get(name, '')}</axis></joint>"
        for name, parent, child, at in pins
    )
    return f'<sdf version="1.9"><model name="m">{links}{joints}</model></sdf>'


def test_sdf_follows_the_same_rule(tmp_path: Path) -> None:
    path = tmp_path / "m.sdf"
    zero, more = "<limit><effort>0</effort></limit>", "<limit><effort>5</effort></limit>"
    pins = ("crank_pin", "knee_pin", "rocker_pin", "top_pin")
    options = ImportOptions(platform_body="coupler")
    path.write_text(sdf(dict.fromkeys(pins, zero) | {"crank_pin": more}))
    assert list(motors_of(load(path, options=options))) == ["crank_pin"]
    # without effort: no limit, as SDF has it
    path.write_text(sdf(dict.fromkeys(pins, zero) | {"crank_pin": ""}))
    assert list(motors_of(load(path, options=options))) == ["crank_pin"]
    for efforts in (dict.fromkeys(pins, zero), dict.fromkeys(pins, more), {}):
        path.write_text(sdf(efforts))
        assert len(load(path, options=options).unstated_motors) == 3
    assert list(
        motors_of(load(path, options=ImportOptions(platform_body="coupler", motors=("crank_pin",))))
    ) == ["crank_pin"]


def test_joints_of_an_mjcf_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    body = (
        '<body name="{}"><joint name="{}" axis="0 1 0"/>'
        '<inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>{}</body>'
    )
    inner = body.format("fore", "elbow", "")
    motor = '<actuator><motor name="m" joint="elbow" gear="9"/></actuator>'
    path.write_text(
        f"<mujoco><worldbody>{body.format('upper', 'shoulder', inner)}</worldbody>{motor}</mujoco>"
    )
    assert motors_of(load(path, options=ImportOptions(motors=("shoulder", "m")))) == {
        "shoulder": {"shoulder": 1.0},
        "m": {"elbow": 9.0},
    }
    with pytest.raises(DescriptionError, match="no motor 'elbo'"):
        load(path, options=ImportOptions(motors=("elbo",)))


# Written again

SHARED = [
    GEARED.replace('"crank_pin"/>', '"crank_pin"><offset>0.3</offset></joint>'),
    ROS1.format(kind="DifferentialTransmission"),
    ROS2.format(kind="FourBarLinkageTransmission"),
]


@pytest.mark.parametrize("element", SHARED, ids=["simple", "differential", "four-bar"])
def test_a_written_urdf_states_its_motors_without_its_side_file(
    tmp_path: Path, element: str
) -> None:
    """The same ratios, and encoders that read the same where links are at the same places."""
    before = read(tmp_path, four_bar(element, loop=""))
    write_urdf(before, tmp_path / "again.urdf")
    after = load(tmp_path / "again.urdf", options=ImportOptions(platform_body="coupler"))
    assert "the motors are taken from <ros2_control>" in after.description
    for name, drives in motors_of(before).items():
        assert_allclose(list(motors_of(after)[name].values()), list(drives.values()), rtol=1e-12)
    models = [tl.Model(before), tl.Model(after)]
    start = [model.actuator_position(model.assembly.q) for model in models]
    assert_allclose(start[1], start[0], rtol=1e-12)
    assert motors_of(load(tmp_path / "again.urdf", tmp_path / "again.urdf.side.yaml")) == motors_of(
        before
    )


def test_efforts_are_written_at_the_joint(tmp_path: Path) -> None:
    write_urdf(read(tmp_path, four_bar(GEARED)), tmp_path / "again.urdf")
    text = (tmp_path / "again.urdf").read_text()
    limits = [line.strip() for line in text.splitlines() if "<limit" in line]
    assert [limit.split()[1] for limit in limits] == ['effort="9"', 'effort="0"', 'effort="0"']


def test_efforts_are_written_into_sdf_too(tmp_path: Path) -> None:
    mechanism = read(tmp_path, four_bar(GEARED, loop=""))
    write_sdf(mechanism, tmp_path / "again.sdf")
    again = load(tmp_path / "again.sdf", options=ImportOptions(platform_body="coupler"))
    assert [(actuator.name, actuator.force) for actuator in again.actuators] == [("crank_pin", 9.0)]


def test_a_joint_without_a_limit_of_speed_may_move_in_other_tools(tmp_path: Path) -> None:
    """URDF requires the attribute, and zero would forbid all motion; what is as large as 1e15 is none."""
    free = four_bar(GEARED).replace('velocity="9"', "")
    write_urdf(read(tmp_path, free), tmp_path / "again.urdf")
    text = (tmp_path / "again.urdf").read_text()
    limits = [line.strip() for line in text.splitlines() if "<limit" in line]
    assert [limit.split()[2] for limit in limits] == ['velocity="1000000000000000"'] * 3
    again = load(tmp_path / "again.urdf", options=ImportOptions(platform_body="coupler"))
    assert {joint.freedoms[0].speed for joint in again.joints if joint.kind == "revolute"} == {
        np.inf
    }


# SDF

AROUND = [
    "{}",
    '<plugin name="control" filename="gz_ros2_control-system">{}</plugin>',
    '<gazebo><plugin name="control" filename="gz_ros2_control-system">{}</plugin></gazebo>',
]
ONE_INTERFACE = (
    '<ros2_control name="r" type="system"><hardware><plugin>any</plugin></hardware><joint name="crank_pin">'
    '<command_interface name="effort"/></joint><joint name="knee_pin"><state_interface name="position"/></joint>'
    '<transmission name="t"><plugin>transmission_interface/SimpleTransmission</plugin><actuator name="motor"/>'
    '<joint name="crank_pin" role="joint1"><mechanical_reduction>50</mechanical_reduction></joint></transmission>'
    "</ros2_control>"
)


@pytest.mark.parametrize("around", AROUND, ids=["model", "plugin", "gazebo"])
@pytest.mark.parametrize("element", [GEARED, ONE_INTERFACE], ids=["transmission", "ros2_control"])
def test_an_sdf_states_its_motors_as_a_urdf_does(tmp_path: Path, element: str, around: str) -> None:
    expected, _ = held(read(tmp_path, four_bar(GEARED)))
    tl.convert(read(tmp_path, four_bar()), tmp_path / "m.sdf")
    text = (tmp_path / "m.sdf").read_text().replace("</model>", around.format(element) + "</model>")
    (tmp_path / "m.sdf").write_text(text)
    machine = load(tmp_path / "m.sdf", options=ImportOptions(platform_body="coupler"))
    assert motors_of(machine) == {"motor": {"crank_pin": 50.0}}
    assert machine.unknown_elements == ()
    assert_allclose(held(machine)[0], expected, rtol=1e-9)


def test_a_driven_joint_of_an_sdf_keeps_its_coordinate(tmp_path: Path) -> None:
    """All four pins of the loop are alike, and the one that is named last in the file is driven."""
    link_ = '<link name="{0}"><pose>{1}</pose><inertial><pose>0.1 0 0 0 0 0</pose><mass>1</mass></inertial></link>'
    links = [
        link_.format("ground", "0 0 0 0 0 0"),
        link_.format("left", "0 0 0 0 -1.5707963267948966 0"),
    ]
    links += [
        link_.format("top", "0 0 0.2 0 0 0"),
        link_.format("right", "0.4 0 0 0 -1.5707963267948966 0"),
    ]
    pin_ = '<joint name="{0}" type="continuous"><parent>{1}</parent><child>{2}</child>'
    pin_ += "<axis><xyz>0 1 0</xyz></axis></joint>"
    pins = [
        pin_.format("a", "ground", "left"),
        pin_.format("b", "left", "top"),
        pin_.format("c", "ground", "right"),
    ]
    closing = '<joint name="d" type="continuous"><pose>0.4 0 0 0 0 0</pose><parent>right</parent><child>top</child>'
    pins += [closing + "<axis><xyz>0 1 0</xyz></axis></joint>"]
    for driven in "abcd":
        motor = GEARED.replace("crank_pin", driven)
        text = f'<sdf version="1.9"><model name="m">{"".join((*links, *pins))}{motor}</model></sdf>'
        (tmp_path / "m.sdf").write_text(text)
        machine = load(tmp_path / "m.sdf", options=ImportOptions(platform_body="top"))
        assert motors_of(machine) == {"motor": {driven: 50.0}}
        assert tl.check(machine).is_usable


@pytest.mark.parametrize(
    ("ending", "text", "element"),
    [
        (
            "urdf",
            four_bar(efforts=("0", "0", "0"), loop=""),
            "`<transmission>` or `<ros2_control>` for JOINT",
        ),
        (
            "xml",
            '<mujoco><worldbody><body name="b"><joint name="j"/><geom size="0.1"/></body></worldbody></mujoco>',
            '`<motor joint="JOINT"/>` in `<actuator>`',
        ),
        (
            "sdf",
            '<sdf version="1.9"><model name="m"><link name="a"/><link name="b"/>'
            '<joint name="j" type="ball"><parent>a</parent><child>b</child></joint></model></sdf>',
            "`<effort>` above 0 in the `<limit>` of JOINT",
        ),
    ],
)
def test_the_remedy_for_no_motor_is_of_the_files_format(
    tmp_path: Path, ending: str, text: str, element: str
) -> None:
    path = tmp_path / f"m.{ending}"
    path.write_text(text)
    side = None
    if ending == "urdf":
        side = tmp_path / "side.yaml"
        side.write_text(
            "format: tauloop-urdf-side/1\nprovenance: {status: chosen, source: a test}\nactuators: {}"
        )
    machine = load(
        path, side, options=ImportOptions(platform_body="coupler" if ending == "urdf" else "b")
    )
    problem = next(
        problem for problem in tl.check(machine).problems if problem.where == "actuators"
    )
    assert problem.what == "nothing is driven: the machine has no actuator"
    assert element in problem.remedy
    assert "--motors JOINT" in problem.remedy
    with pytest.raises(AssemblyError, match="the machine has no actuator") as caught:
        tl.inverse_dynamics(machine)
    assert caught.value.problems[0].remedy == problem.remedy


def test_a_motor_that_no_transmission_represents_is_noted(tmp_path: Path) -> None:
    side = NAMED.replace("{on: knee_pin}", "{drives: {crank_pin: 1, knee_pin: 2}}")
    _, notes = write_urdf(read(tmp_path, four_bar(loop=""), side=side), tmp_path / "again.urdf")
    assert "motors that are only in the side file: m" in notes
    assert "ros2_control" not in (tmp_path / "again.urdf").read_text()
