"""SDF files of others: gears, rotors, springs, loops of Drake, automatic inertia, worlds, and where tools are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop import DescriptionError, load
from tauloop.formats import ImportOptions

#: The same numbers by another route.
ROUNDING = 1e-12
INERTIA = "<inertia><ixx>0.01</ixx><iyy>0.012</iyy><izz>0.003</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia>"
UPPER = f"<inertial><pose>0 0 0.1 0 0 0</pose><mass>1</mass>{INERTIA}</inertial>"
LOWER = f"<inertial><pose>0.2 0 0.1 0 0 0</pose><mass>0.7</mass>{INERTIA}</inertial>"

#: A third link, on a hinge without a motor.
TAIL = f"""<link name="tail"><pose>0 0 0.5 0 0 0</pose>{UPPER}</link>
<joint name="tip" type="revolute"><parent>lower</parent><child>tail</child>
<axis><xyz>0 1 0</xyz><limit><effort>0</effort></limit></axis></joint>"""


def arm(
    *,
    lower: str = LOWER,
    elbow: str = "",
    axis: str = "",
    upper: str = "",
    ends: str = "",
    kind: str = "revolute",
) -> str:
    """Return a model of two links on hinges about y, with more elements where they are given."""
    return f"""<model name="arm"><link name="stand"><inertial><mass>1</mass>{INERTIA}</inertial></link>
<joint name="floor" type="fixed"><parent>world</parent><child>stand</child></joint>
<link name="upper"><pose>0 0 0.1 0 0 0</pose>{UPPER}{upper}</link>
<link name="lower"><pose>0 0 0.3 0 0 0</pose>{lower}</link>
<joint name="shoulder" type="revolute"><parent>stand</parent><child>upper</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="elbow" type="{kind}"><parent>upper</parent><child>lower</child>{elbow}
<axis><xyz>0 1 0</xyz>{axis}</axis></joint>{ends}</model>"""


def read(folder: Path, text: str, side: str = "", **options: object) -> tl.Mechanism:
    """Return the machine of the contents of an SDF file."""
    (folder / "m.sdf").write_text(f'<sdf version="1.11">{text}</sdf>', encoding="utf-8")
    path = None
    if side:
        path = folder / "m.sdf.side.yaml"
        path.write_text(f"format: tauloop-urdf-side/1\n{side}", encoding="utf-8")
    return load(folder / "m.sdf", path, options=ImportOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "gear",
    [
        {"elbow": '<drake:mimic joint="shoulder" multiplier="1.5" offset="0.1"/>'},
        {
            "axis": '<mimic joint="shoulder"><multiplier>1.5</multiplier><offset>0.4</offset>'
            "<reference>0.2</reference></mimic>"
        },
        {
            "axis": '<mimic joint="shoulder" axis="axis"><multiplier>1.5</multiplier><offset>0.1</offset></mimic>'
        },
    ],
)
def test_a_joint_that_mimics_another_is_a_gear(tmp_path: Path, gear: dict[str, str]) -> None:
    """The elbow is at 1.5 times the shoulder + 0.1 rad, and has no motor."""
    model = tl.Model(read(tmp_path, arm(**gear)))
    assert model.assembly.mobility == 1
    assert [actuator.name for actuator in model.mechanism.actuators] == ["shoulder"]
    state = model.forward_kinematics([0.3])
    assert state.coordinate("elbow").item() == pytest.approx(1.5 * 0.3 + 0.1, abs=ROUNDING)


def test_a_gear_of_an_axis_of_a_universal_joint(tmp_path: Path) -> None:
    gear = '<axis2><xyz>1 0 0</xyz><mimic joint="shoulder"><multiplier>2</multiplier><offset>0</offset></mimic></axis2>'
    model = tl.Model(read(tmp_path, arm(kind="universal", elbow=gear)))
    assert model.assembly.mobility == 2
    state = model.platform.kinematics(model.platform.ports.at(model.assembly.q) + 0.1)
    assert state.coordinate("elbow.second").item() == pytest.approx(
        2 * state.coordinate("shoulder").item()
    )


@pytest.mark.parametrize(
    ("gear", "what"),
    [
        (
            '<drake:mimic joint="shoulders"/>',
            "it mimics 'shoulders', which is not a joint that rotates or slides",
        ),
        ('<drake:mimic joint="elbow"/>', "it mimics itself"),
        ('<drake:mimic joint="floor"/>', "it mimics 'floor'"),
        ('<drake:mimic multiplier="2"/>', "has no attribute 'joint'"),
    ],
)
def test_a_gear_that_is_wrong_is_refused(tmp_path: Path, gear: str, what: str) -> None:
    with pytest.raises(DescriptionError, match=what):
        read(tmp_path, arm(elbow=gear))


def test_a_rotor_counts_with_the_square_of_its_gear_ratio(tmp_path: Path) -> None:
    rotor = "<drake:rotor_inertia>0.002</drake:rotor_inertia><drake:gear_ratio>5</drake:gear_ratio>"
    plain, geared = (tl.Model(read(tmp_path, arm(elbow=text))) for text in ("", rotor))
    at = np.zeros((1, 2))
    added = geared.platform.mass_matrix(at)[0] - plain.platform.mass_matrix(at)[0]
    assert added == pytest.approx(np.diag([0.0, 25 * 0.002]), abs=ROUNDING)


def test_the_rotor_of_a_side_file_replaces_that_of_the_file(tmp_path: Path) -> None:
    rotor = "<drake:rotor_inertia>0.002</drake:rotor_inertia><drake:gear_ratio>5</drake:gear_ratio>"
    side = "provenance: {status: chosen, source: test}\njoints: {elbow: {inertia: 0.3 kg m^2}}\n"
    plain, stated = (
        tl.Model(read(tmp_path, arm())),
        tl.Model(read(tmp_path, arm(elbow=rotor), side)),
    )
    at = np.zeros((1, 2))
    added = stated.platform.mass_matrix(at)[0] - plain.platform.mass_matrix(at)[0]
    assert added == pytest.approx(np.diag([0.0, 0.3]), abs=ROUNDING)


def test_a_joint_that_follows_has_no_motor_whatever_its_effort(tmp_path: Path) -> None:
    gear = '<mimic joint="shoulder"><multiplier>1.5</multiplier><offset>0</offset></mimic>'
    follower = f"{gear}<limit><effort>7</effort></limit>"
    assert [motor.name for motor in read(tmp_path, arm(axis=follower)).actuators] == ["shoulder"]
    loose = arm(axis=follower, ends=TAIL)
    assert [motor.name for motor in read(tmp_path, loose).actuators] == ["shoulder"]
    assert [motor.name for motor in read(tmp_path, loose, motors=("elbow",)).actuators] == ["elbow"]


def test_a_spring_of_an_axis_pulls_back_to_its_reference(tmp_path: Path) -> None:
    spring = "<dynamics><spring_stiffness>3</spring_stiffness><spring_reference>0.2</spring_reference></dynamics>"
    plain, sprung = (tl.Model(read(tmp_path, arm(axis=text))) for text in ("", spring))
    at, still = np.array([[0.1, 0.5]]), np.zeros((1, 2))
    added = sprung.platform.bias(at, still)[0] - plain.platform.bias(at, still)[0]
    assert added == pytest.approx([0.0, 3 * (0.5 - 0.2)], abs=ROUNDING)
    assert sprung.mechanism.omitted_forces == ()


def test_the_initial_position_is_the_start(tmp_path: Path) -> None:
    machine = read(tmp_path, arm(axis="<initial_position>0.4</initial_position>"))
    assert machine.joint("elbow").reference == (0.4,)


@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
@pytest.mark.parametrize(
    ("limit", "ends"),
    [
        ("", (-math.inf, math.inf)),
        ("<limit><effort>5</effort></limit>", (-math.inf, math.inf)),
        ("<limit><lower>-1e16</lower><upper>1e16</upper></limit>", (-math.inf, math.inf)),
        ("<limit><lower>-0.4</lower></limit>", (-0.4, math.inf)),
        ("<limit><upper>0.7</upper></limit>", (-math.inf, 0.7)),
        ("<limit><lower>-1e16</lower><upper>0.7</upper></limit>", (-math.inf, 0.7)),
    ],
)
def test_an_end_of_a_range_that_is_not_stated_is_open(
    tmp_path: Path, kind: str, limit: str, ends: tuple[float, float]
) -> None:
    """A slide without limits had "equal limits", and a range with one end had none."""
    machine = read(tmp_path, arm(axis=limit, kind=kind))
    freedom = machine.joint("elbow").freedoms[0]
    assert (freedom.lower, freedom.upper) == ends
    assert "limit" not in machine.description


def test_drakes_ball_constraint_closes_a_loop(tmp_path: Path) -> None:
    """A slide under the end of the arm, which a ball joint ties to it: three freedoms less two."""
    ball = """<link name="cart"><pose>0.3 0 0.3 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<joint name="rail" type="prismatic"><parent>stand</parent><child>cart</child><axis><xyz>1 0 0</xyz></axis></joint>
<drake:ball_constraint><drake:ball_constraint_body_A>lower</drake:ball_constraint_body_A>
<drake:ball_constraint_p_AP>0.3 0 0</drake:ball_constraint_p_AP>
<drake:ball_constraint_body_B>cart</drake:ball_constraint_body_B>
<drake:ball_constraint_p_BQ>0 0 0</drake:ball_constraint_p_BQ></drake:ball_constraint>"""
    model = tl.Model(read(tmp_path, arm(ends=ball), platform_body="lower", independent=("rail",)))
    assert model.assembly.mobility == 1
    state = model.platform.kinematics([[0.05]])
    shoulder, elbow = state.coordinate("shoulder").item(), state.coordinate("elbow").item()
    knee = np.array([math.sin(shoulder), math.cos(shoulder)]) * 0.2
    end = knee + 0.3 * np.array([math.cos(shoulder + elbow), -math.sin(shoulder + elbow)])
    assert end == pytest.approx([0.35, 0.2], abs=1e-9)


def test_a_ball_constraint_of_the_world_is_in_the_frame_of_the_world(tmp_path: Path) -> None:
    ball = """<drake:ball_constraint><drake:ball_constraint_body_A>world</drake:ball_constraint_body_A>
<drake:ball_constraint_p_AP>1 2 3.3</drake:ball_constraint_p_AP>
<drake:ball_constraint_body_B>lower</drake:ball_constraint_body_B>
<drake:ball_constraint_p_BQ>0 0 0</drake:ball_constraint_p_BQ></drake:ball_constraint>"""
    text = arm(ends=ball).replace(
        '<model name="arm">', '<model name="arm"><pose>1 2 3 0 0 0</pose>'
    )
    assembly = tl.Model(read(tmp_path, text)).assembly
    assert assembly.residual < ROUNDING
    assert len(assembly.loops.names) == 3


# Automatic inertia


def slices(radius: object, z: np.ndarray) -> tuple[float, float, float, float]:
    """Return volume, mass centre, moments across and along of a solid of revolution, by its slices."""
    r2 = np.square(radius(z))  # type: ignore[operator]
    dz = z[1] - z[0]
    volume = float(np.pi * r2.sum() * dz)
    center = float(np.pi * (r2 * z).sum() * dz / volume)
    along = float(np.pi / 2 * (r2**2).sum() * dz)
    across = float((np.pi / 4 * r2**2 + np.pi * r2 * (z - center) ** 2).sum() * dz)
    return volume, center, across, along


def midpoints(low: float, high: float) -> np.ndarray:
    return low + (np.arange(200_000) + 0.5) * (high - low) / 200_000


SOLIDS = {
    "<cylinder><radius>0.2</radius><length>0.6</length></cylinder>": slices(
        lambda z: 0.2 + 0 * z, midpoints(-0.3, 0.3)
    ),
    "<sphere><radius>0.2</radius></sphere>": slices(
        lambda z: np.sqrt(0.04 - z * z), midpoints(-0.2, 0.2)
    ),
    "<cone><radius>0.2</radius><length>0.6</length></cone>": slices(
        lambda z: 0.2 * (0.3 - z) / 0.6, midpoints(-0.3, 0.3)
    ),
    "<capsule><radius>0.2</radius><length>0.6</length></capsule>": slices(
        lambda z: np.sqrt(0.04 - np.square(np.maximum(np.abs(z) - 0.3, 0.0))), midpoints(-0.5, 0.5)
    ),
    "<ellipsoid><radii>0.2 0.2 0.4</radii></ellipsoid>": slices(
        lambda z: 0.2 * np.sqrt(1 - (z / 0.4) ** 2), midpoints(-0.4, 0.4)
    ),
}


def inertia_of(machine: tl.Mechanism, body: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, mass centre, and inertia about that."""
    value, parameters = machine.value, machine.body(body).inertia
    assert parameters is not None
    mass = value(f"{body}.mass")
    center = np.array([value(f"{body}.center[{k}]") for k in range(3)])
    names = ("xx", "xy", "yy", "xz", "yz", "zz")
    xx, xy, yy, xz, yz, zz = (value(f"{body}.inertia.{name}") for name in names)
    return mass, center, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("shape", SOLIDS)
def test_automatic_inertia_is_that_of_the_collision(tmp_path: Path, shape: str) -> None:
    """The solid lies along x of the link, half a metre above it."""
    volume, height, across, along = SOLIDS[shape]
    collision = (
        f'<collision name="c"><pose>0 0 0.5 0 {math.pi / 2!r} 0</pose><density>2000</density>'
        f"<geometry>{shape}</geometry></collision>"
    )
    machine = read(tmp_path, arm(lower=f'<inertial auto="true"/>{collision}'))
    mass, center, inertia = inertia_of(machine, "lower")
    assert mass == pytest.approx(2000 * volume, rel=1e-8)
    assert center == pytest.approx([height, 0.0, 0.5], abs=1e-8)
    assert np.diag(inertia) == pytest.approx(2000 * np.array([along, across, across]), rel=1e-6)


def test_densities_masses_and_several_collisions(tmp_path: Path) -> None:
    """Two cubes of 0.1 m: one of 500 kg/m^3 by its own density, one of that of the inertial."""
    cube = "<geometry><box><size>0.1 0.1 0.1</size></box></geometry>"
    both = (
        f'<collision name="a"><pose>0.1 0 0 0 0 0</pose><density>500</density>{cube}</collision>'
        f'<collision name="b"><pose>-0.1 0 0 0 0 0</pose>{cube}</collision>'
    )
    stated = read(
        tmp_path, arm(lower=f'<inertial auto="1"><density>1500</density></inertial>{both}')
    )
    mass, center, inertia = inertia_of(stated, "lower")
    assert mass == pytest.approx(2.0)
    assert center == pytest.approx([-0.05, 0.0, 0.0])
    assert np.diag(inertia) == pytest.approx(
        [
            2 * 0.01 / 6,
            2 * 0.01 / 6 + 0.5 * 0.15**2 + 1.5 * 0.05**2,
            2 * 0.01 / 6 + 0.5 * 0.15**2 + 1.5 * 0.05**2,
        ]
    )
    water = read(tmp_path, arm(lower=f'<inertial auto="true"/>{both}'))
    assert inertia_of(water, "lower")[0] == pytest.approx(1.5)
    scaled = read(
        tmp_path,
        arm(lower=f'<inertial auto="true"><density>1500</density><mass>6</mass></inertial>{both}'),
    )
    assert inertia_of(scaled, "lower")[0] == 6.0
    assert inertia_of(scaled, "lower")[2] == pytest.approx(3 * inertia)


@pytest.mark.parametrize(
    ("collision", "what"),
    [
        ("", "it has no <collision>"),
        ("<mesh><uri>a.stl</uri></mesh>", r"collision 'c' \(mesh\) is not supported"),
        ("<plane/>", r"collision 'c' \(plane\) is not supported"),
        ("<sphere><radius>-1</radius></sphere>", "has the sizes"),
        ("<box/>", "has no <size>"),
    ],
)
def test_automatic_inertia_that_is_not_computed_is_refused(
    tmp_path: Path, collision: str, what: str
) -> None:
    shape = f'<collision name="c"><geometry>{collision}</geometry></collision>' if collision else ""
    with pytest.raises(DescriptionError, match=what) as caught:
        read(tmp_path, arm(lower=f'<inertial auto="true"/>{shape}'))
    assert [problem.where for problem in caught.value.problems] == ["lower"]


def test_a_link_that_is_fixed_to_the_world_needs_no_inertia(tmp_path: Path) -> None:
    """Its collision is a mesh, and so is that of a link that is welded to it."""
    mesh = '<inertial auto="true"/><collision name="c"><geometry><mesh><uri>a.stl</uri></mesh></geometry></collision>'
    weld = '<joint name="weld" type="fixed"><parent>stand</parent><child>cover</child></joint>'
    cover = f'<link name="cover">{mesh}</link>{weld}'
    stand = f"<inertial><mass>1</mass>{INERTIA}</inertial>"
    machine = read(tmp_path, arm(ends=cover).replace(stand, mesh))
    assert {body.name for body in machine.bodies} >= {"upper", "lower"}


# Frames


def test_a_tool_is_in_the_frame_of_its_link(tmp_path: Path) -> None:
    """The joint is away from the origin of the link and turned: neither moves the tool."""
    joint = "<pose>0.05 0.1 0.2 0.3 0.2 0.1</pose>"
    text = arm(elbow=joint)
    side = "platform: {body: lower, tool: {at: [0.3 m, 0, 0.1 m], turn: [{z: 90 deg}]}, independent: [shoulder, elbow]}"
    model = tl.Model(read(tmp_path, text, side))
    tool = model.platform.tool(np.zeros(2))
    assert tool.place == pytest.approx([0.3, 0.0, 0.4], abs=ROUNDING)
    assert tool.rotation[:, 0] == pytest.approx([0.0, 1.0, 0.0], abs=ROUNDING)
    alone = tl.Model(read(tmp_path, text, platform_body="lower")).platform.tool(np.zeros(2))
    assert alone.place == pytest.approx([0.0, 0.0, 0.3], abs=ROUNDING)
    assert alone.rotation == pytest.approx(np.eye(3), abs=ROUNDING)
    assert inertia_of(model.mechanism, "lower")[1] == pytest.approx([0.2, 0.0, 0.1], abs=ROUNDING)


def test_frames_of_a_joint_that_lie_apart_are_noted(tmp_path: Path) -> None:
    frame = '<frame name="tip" attached_to="upper"><pose relative_to="upper">0 0 0.25 0 0 0</pose></frame>'
    apart = arm(ends=frame).replace("<parent>upper</parent>", "<parent>tip</parent>")
    description = read(tmp_path, apart).description
    assert "joint elbow: the distance between its frames 'tip' and 'lower' is 0.05 m" in description
    together = apart.replace("0 0 0.25 0 0 0", "0 0 0.2 0 0 0")
    assert "apart" not in read(tmp_path, together).description


# Worlds

GROUND = '<model name="ground"><static>true</static><link name="plane"/></model>'
BALL = '<model name="ball"><link name="ball"/></model>'


@pytest.mark.parametrize("others", [GROUND, BALL, GROUND + BALL])
def test_the_machine_of_a_world_is_the_model_that_moves_on_joints(
    tmp_path: Path, others: str
) -> None:
    machine = read(tmp_path, f'<world name="w">{others}{arm()}</world>')
    assert machine.name == "arm"
    assert "other models of the world are omitted" in machine.description


def test_an_option_names_the_machine_among_several(tmp_path: Path) -> None:
    other = arm(lower="").replace('"arm"', '"left"')
    world = f'<world name="w">{GROUND}{other}{arm()}</world>'
    with pytest.raises(DescriptionError, match="there are 2 models: left, arm"):
        read(tmp_path, world)
    assert read(tmp_path, world, model_name="left").name == "left"
    with pytest.raises(DescriptionError, match="there is no model 'lef'"):
        read(tmp_path, world, model_name="lef")


# Forces that are left out


def test_weight_that_is_switched_off(tmp_path: Path) -> None:
    off = "<gravity>false</gravity>"
    some = read(tmp_path, arm(lower=LOWER + off))
    assert some.omitted_forces == (
        "the compensation of the weight of link lower (the file switches its gravity off)",
    )
    every = read(tmp_path, arm(lower=LOWER + off, upper=off))
    assert every.omitted_forces == ()
    assert [every.value(x) for x in every.gravity] == [0.0, 0.0, 0.0]


def test_what_acts_in_the_file_and_not_here_is_left_out_by_name(tmp_path: Path) -> None:
    drag = "<velocity_decay><linear>0.1</linear></velocity_decay>"
    buoyancy = '<plugin filename="gz-sim-buoyancy-system" name="gz::sim::systems::Buoyancy"/>'
    damped = arm(lower=LOWER + drag, axis="<dynamics><damping>1</damping></dynamics>")
    text = f'<world name="w">{buoyancy}{damped}</world>'
    assert set(read(tmp_path, text).omitted_forces) == {
        "the drag (velocity_decay) of link lower",
        "the forces of the plugin 'gz::sim::systems::Buoyancy'",
    }


@pytest.mark.parametrize(
    "element",
    [
        '<plugin filename="libgazebo_ros_link_attacher.so" name="attacher"/>',
        '<plugin filename="libroboticsgroup_gazebo_mimic_joint_plugin.so" name="p"/>',
        '<plugin filename="gz-sim-detachable-joint-system" name="gz::sim::systems::DetachableJoint"/>',
        "<drake:weld_constraint/>",
        "<drake:linear_bushing_rpy/>",
        '<drake:joint name="j" type="planar"/>',
        "<my_loop_closure/>",
    ],
)
def test_what_ties_links_together_and_is_not_read_is_refused(tmp_path: Path, element: str) -> None:
    with pytest.raises(DescriptionError, match=r"is not supported|connects links"):
        read(tmp_path, arm(ends=element))


def test_a_gear_of_a_universal_joint_that_the_tree_enters_by_its_child(tmp_path: Path) -> None:
    """The second axis of the file stays the one that is coupled."""
    gear = '<axis2><xyz>1 0 0</xyz><mimic joint="shoulder"><multiplier>2</multiplier><offset>0</offset></mimic></axis2>'
    text = arm(kind="universal", elbow=gear)
    turned = text.replace(
        "<parent>upper</parent><child>lower</child>", "<parent>lower</parent><child>upper</child>"
    )
    turned = turned.replace(
        "<parent>lower</parent>", '<pose relative_to="lower"/><parent>lower</parent>'
    )
    angles = []
    for each in (text, turned):
        model = tl.Model(read(tmp_path, each, platform_body="lower", independent=("shoulder",)))
        (coupling,) = model.mechanism.couplings
        angles.append(coupling.terms[0][0])
    assert angles == ["elbow.second", "elbow.first"]


def test_the_placement_frame_turns_gravity(tmp_path: Path) -> None:
    """The model hangs upside down: its frame `foot` is turned by half a revolution and put on the world."""
    foot = '<frame name="foot"><pose>0 0 0 3.141592653589793 0 0</pose></frame>'
    text = arm(ends=foot).replace(
        '<model name="arm">', '<model name="arm" placement_frame="foot"><pose>0 0 1 0 0 0</pose>'
    )
    machine = read(tmp_path, text)
    assert [machine.value(x) for x in machine.gravity] == pytest.approx([0.0, 0.0, 9.8])
    with pytest.raises(DescriptionError, match="is relative to 'table', which is not supported"):
        read(
            tmp_path,
            arm().replace(
                'name="arm">', 'name="arm"><pose relative_to="table">0 0 1 0 0 0</pose>', 1
            ),
        )


# What the axes of a universal joint state

FIRST = """<limit><lower>-1</lower><upper>2</upper><effort>5</effort><velocity>7</velocity></limit>
<dynamics><damping>0.3</damping></dynamics>"""
SECOND = """<initial_position>0.2</initial_position><limit><effort>0</effort></limit>
<dynamics><spring_stiffness>3</spring_stiffness><spring_reference>0.1</spring_reference></dynamics>"""


def wrist(kind: str, *, parent: str = "stand", child: str = "hand") -> str:
    """Return a hand on a universal joint, or on two hinges with a massless link between them."""
    first = f"<axis><xyz>1 0 0</xyz>{FIRST}</axis>"
    if kind == "universal":
        second = f"<axis2><xyz>0 1 0</xyz>{SECOND}</axis2>"
        ends = f"<parent>{parent}</parent><child>{child}</child>"
        joints = f'<joint name="u" type="universal">{ends}{first}{second}</joint>'
    else:
        joints = f"""<link name="cross"><pose>0 0 0.1 0 0 0</pose><tauloop:massless/></link>
<joint name="u.first" type="revolute"><parent>{parent}</parent><child>cross</child>{first}</joint>
<joint name="u.second" type="revolute"><parent>cross</parent><child>{child}</child>
<axis><xyz>0 1 0</xyz>{SECOND}</axis></joint>"""
    return f"""<model name="wrist" xmlns:tauloop="x"><link name="stand"/>
<joint name="floor" type="fixed"><parent>world</parent><child>stand</child></joint>
<link name="hand"><pose>0 0 0.1 0 0 0</pose>{LOWER}</link>{joints}</model>"""


def test_the_axes_of_a_universal_joint_are_those_of_two_hinges(tmp_path: Path) -> None:
    universal, hinges = (read(tmp_path, wrist(kind)) for kind in ("universal", "hinges"))
    for machine in (universal, hinges):
        assert machine.omitted_forces == ()
        assert [(motor.name, motor.force) for motor in machine.actuators] == [("u.first", 5.0)]
    joined, separate = tl.Model(universal), tl.Model(hinges)
    assert joined.assembly.q == pytest.approx([0.0, 0.2])
    (joint,) = (joint for joint in universal.joints if joint.name == "u")
    ends = [(freedom.lower, freedom.upper, freedom.speed) for freedom in joint.freedoms]
    assert ends == [(-1.0, 2.0, 7.0), (-math.inf, math.inf, math.inf)]
    x, v = np.array([[0.4, -0.3]]), np.array([[0.5, 0.7]])
    assert joined.platform.ports.position.columns == separate.platform.ports.position.columns
    for name in ("mass_matrix", "bias"):
        values = [
            np.asarray(getattr(model.platform, name)(*((x,) if name == "mass_matrix" else (x, v))))
            for model in (joined, separate)
        ]
        assert values[0] == pytest.approx(values[1], rel=ROUNDING, abs=ROUNDING)


def test_efforts_of_a_universal_joint_count_among_those_of_the_file(tmp_path: Path) -> None:
    """A motor on the hinge whose effort is 0 would be another machine."""
    axis2 = "<axis2><xyz>1 0 0</xyz><limit><effort>4</effort></limit></axis2>"
    effort = "<limit><effort>4</effort></limit>"
    text = arm(kind="universal", elbow=axis2, axis=effort).replace(
        "<child>upper</child><axis><xyz>0 1 0</xyz>",
        "<child>upper</child><axis><xyz>0 1 0</xyz><limit><effort>0</effort></limit>",
    )
    machine = read(tmp_path, text)
    assert [motor.name for motor in machine.actuators] == ["elbow.first", "elbow.second"]
    assert "- effort 0 means no motor: shoulder" in machine.description


def test_motors_may_be_named_on_the_axes_of_a_universal_joint(tmp_path: Path) -> None:
    text = arm(kind="universal", elbow="<axis2><xyz>1 0 0</xyz></axis2>")
    machine = read(tmp_path, text, motors=("elbow.second", "shoulder"))
    assert [motor.name for motor in machine.actuators] == ["elbow.second", "shoulder"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("<lower>-1</lower>", "<lower>3</lower>", "lower limit 3 is above upper limit 2"),
        ("<damping>0.3<", "<damping>-0.3<", "damping is -0.3"),
        (">3</spring_stiffness>", ">-3</spring_stiffness>", "the stiffness of the spring is -3"),
    ],
)
def test_wrong_numbers_of_a_universal_joint_are_refused(
    tmp_path: Path, old: str, new: str, what: str
) -> None:
    text = wrist("universal")
    assert old in text
    with pytest.raises(DescriptionError, match=what):
        read(tmp_path, text.replace(old, new))


def test_a_universal_joint_that_the_tree_enters_by_its_child_keeps_its_axes(
    tmp_path: Path,
) -> None:
    """Its coordinates are exchanged, with a note, and so is what acts on them."""
    machine = read(tmp_path, wrist("universal", parent="hand", child="stand"))
    assert "its <axis> is u.second here and its <axis2> is u.first" in machine.description
    assert [motor.name for motor in machine.actuators] == ["u.second"]
    (joint,) = (joint for joint in machine.joints if joint.name == "u")
    assert joint.reference == pytest.approx((0.2, 0.0))
    assert joint.freedoms[0].spring is not None
    assert joint.freedoms[1].friction is not None


# Which joint of a loop is cut

FOUR_BAR = f"""<model name="four_bar"><link name="stand"/>
<joint name="floor" type="fixed"><parent>world</parent><child>stand</child></joint>
<link name="crank">{UPPER}</link><link name="coupler"><pose>0 0 0.2 0 0 0</pose>{LOWER}</link>
<link name="rocker"><pose>0.4 0 0 0 0 0</pose>{UPPER}</link>
<joint name="a" type="revolute"><parent>stand</parent><child>crank</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="b" type="revolute"><parent>crank</parent><child>coupler</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="c" type="revolute"><parent>stand</parent><child>rocker</child><axis><xyz>0 1 0</xyz></axis></joint>
<joint name="d-1" type="revolute"><parent>rocker</parent><child>coupler</child>
<pose>0.4 0 0.1 0 0 0</pose><axis><xyz>0 1 0</xyz></axis></joint></model>"""


def test_any_joint_of_a_loop_may_get_the_motor_or_be_independent(tmp_path: Path) -> None:
    """The last joint would close the loop, and have no coordinate, unless the caller names it."""
    plain = read(tmp_path, FOUR_BAR)
    assert plain.unstated_motors == ("a", "b", "c")
    forces: dict[str, float] = {}
    rates: dict[str, float] = {}
    for motor in ("a", "d-1"):
        machine = read(tmp_path, FOUR_BAR, motors=(motor,), independent=("d_1",))
        (actuator,) = machine.actuators
        model = tl.Model(machine)
        assert model.assembly.independent_names == ("d_1",)
        at = model.platform.ports.at(model.assembly.q[None])
        zero = np.zeros_like(at)
        forces[actuator.name] = model.platform.inverse_dynamics(at, zero, zero).force.item()
        rates[actuator.name] = model.platform.actuator_jacobian(at).item()
    # both hold the same weight, so that the power per rate of d_1 is the same
    assert forces["a"] * rates["a"] == pytest.approx(forces["d_1"] * rates["d_1"], rel=1e-9)


def test_a_motor_on_the_joint_that_has_to_close_the_loop_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="'d-1' closes a loop, so it has no coordinate"):
        read(tmp_path, FOUR_BAR, motors=("a", "b", "c", "d-1"))


@pytest.mark.parametrize("tag", ["joint", "link"])
def test_two_elements_of_one_name_are_refused(tmp_path: Path, tag: str) -> None:
    """The second one would be left out, and its link would move freely."""
    old = f'<{tag} name="elbow"' if tag == "joint" else '<link name="lower"'
    new = old.replace("elbow", "shoulder").replace("lower", "upper")
    text = arm()
    assert old in text
    with pytest.raises(DescriptionError, match=f"this name is already used by the {tag} on line"):
        read(tmp_path, text.replace(old, new))


#: Joints of SDF that are read, and a joint between two of the arm's links that is missing there.
SCREW = """<model name="lift"><link name="stand"/>
<joint name="floor" type="fixed"><parent>world</parent><child>stand</child></joint>
<link name="nut"><pose>0 0 0.2 0 0 0.3</pose><inertial><mass>2</mass>%s</inertial></link>
<joint name="spindle" type="screw"><pose>0 0 -0.1 0 0 0</pose>%s<axis><xyz>0 0 %s</xyz>
<limit><lower>-9</lower><upper>9</upper><effort>3</effort></limit>
<dynamics><damping>0.4</damping></dynamics></axis>%s</joint></model>"""
UPWARDS = "<parent>stand</parent><child>nut</child>"


@pytest.mark.parametrize(
    ("ends", "sign"), [(UPWARDS, 1), ("<parent>nut</parent><child>stand</child>", 1), (UPWARDS, -1)]
)
@pytest.mark.parametrize(
    ("pitch", "travel"),
    [
        ("<screw_thread_pitch>0.05</screw_thread_pitch>", 0.05 / (2.0 * math.pi)),
        ("<thread_pitch>-40</thread_pitch>", 1 / 40),
        (
            "<screw_thread_pitch>-0.2</screw_thread_pitch><thread_pitch>9</thread_pitch>",
            -0.1 / math.pi,
        ),
    ],
)
def test_a_screw_slides_as_it_turns(
    tmp_path: Path, pitch: str, travel: float, ends: str, sign: int
) -> None:
    """(I + m p^2) a + m g p + d v with the travel p; a reversed joint or axis keeps the thread."""
    machine = read(tmp_path, SCREW % (INERTIA, ends, sign, pitch))
    model = tl.Model(machine)
    assert model.platform.ports.position.columns == ("spindle",)
    (motor,) = machine.actuators
    assert (motor.name, motor.force) == ("spindle", 3.0)
    up = travel if (sign > 0) == (ends == UPWARDS) else -travel
    force = model.platform.inverse_dynamics([[0.7]], [[0.5]], [[2.0]]).force[0, 0]
    expected = (0.003 + 2.0 * travel**2) * 2.0 + 2.0 * 9.8 * up + 0.4 * 0.5
    assert force == pytest.approx(expected, rel=ROUNDING)
    if ends == UPWARDS:
        height = model.platform.tool([[0.7]]).place[0, 2]
        assert height == pytest.approx(0.2 + 0.7 * up, rel=ROUNDING)


@pytest.mark.parametrize("pitch", ["", "<thread_pitch>0</thread_pitch>"])
def test_a_screw_without_a_pitch_is_refused(tmp_path: Path, pitch: str) -> None:
    with pytest.raises(DescriptionError, match="a screw has no <screw_thread_pitch>"):
        read(tmp_path, SCREW % (INERTIA, UPWARDS, 1, pitch))


GEARBOX = """<link name="wheel"><pose>0 0.3 0.1 0 0 0</pose>%s</link>
<joint name="axle" type="revolute">%s<axis><xyz>0 %s 0</xyz></axis></joint>
<joint name="gear" type="gearbox"><parent>upper</parent><child>wheel</child>
<axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>
<gearbox_ratio>%s</gearbox_ratio><gearbox_reference_body>%s</gearbox_reference_body></joint>"""
AXLE = "<parent>stand</parent><child>wheel</child>"


@pytest.mark.parametrize(
    ("axle", "direction", "sign"),
    [(AXLE, 1, 1), (AXLE, -1, -1), ("<parent>wheel</parent><child>stand</child>", 1, -1)],
)
def test_a_gearbox_couples_two_hinges(tmp_path: Path, axle: str, direction: int, sign: int) -> None:
    """theta_2 = -ratio theta_1, about the axes of the gearbox, relative to its reference body."""
    ends = GEARBOX % (UPPER, axle, direction, 3.0, "stand")
    machine = read(tmp_path, arm(ends=ends), motors=("shoulder", "elbow"), platform_body="lower")
    model = tl.Model(machine)
    assert model.assembly.mobility == 2
    state = model.platform.kinematics([[0.2, 0.1]], [[1.0, 0.0]])
    names = model.topology.velocity_names
    assert state.v[0, names.index("axle")] == pytest.approx(-3.0 * sign, rel=ROUNDING)


def test_a_gearbox_between_other_joints_is_refused(tmp_path: Path) -> None:
    ends = GEARBOX % (UPPER, AXLE, 1, 3.0, "lower")
    what = "no hinge along the given axis connects 'wheel' to the reference body 'lower'"
    with pytest.raises(DescriptionError, match=what):
        read(tmp_path, arm(ends=ends))


def test_a_version_that_is_newer_than_the_known_ones_is_noted(tmp_path: Path) -> None:
    (tmp_path / "m.sdf").write_text(f'<sdf version="1.13">{arm()}</sdf>')
    note = "the file has SDF version 1.13, which is newer than 1.12"
    assert note in load(tmp_path / "m.sdf").description
    (tmp_path / "m.sdf").write_text(f'<sdf version="1.12">{arm()}</sdf>')
    assert "is newer than" not in load(tmp_path / "m.sdf").description


def test_the_place_of_the_model_in_the_world_is_noted(tmp_path: Path) -> None:
    text = arm().replace('<link name="stand">', '<pose>0 0 1 0 0.3 0</pose><link name="stand">')
    note = "positions and gravity refer to the frame of the model, which is at 0 0 1 0 0.3 0"
    assert note in read(tmp_path, text).description
    assert "positions and gravity refer to the frame" not in read(tmp_path, arm()).description


def test_a_joint_with_a_pose_is_where_its_author_put_it(tmp_path: Path) -> None:
    """Without a pose it is at the child's frame, and a distance to a frame of the parent is noted."""
    frame = '<frame name="pin" attached_to="upper"><pose>0 0 0.1 0 0 0</pose></frame>'
    text = arm(ends=frame).replace("<parent>upper</parent>", "<parent>pin</parent>")
    assert (
        "the distance between its frames 'pin' and 'lower' is 0.1 m"
        in read(tmp_path, text).description
    )
    posed = text.replace(
        '<joint name="elbow" type="revolute">',
        '<joint name="elbow" type="revolute"><pose relative_to="upper"/>',
    )
    assert "the distance between" not in read(tmp_path, posed).description


def test_rounding_of_composed_rotations_is_not_noted(tmp_path: Path) -> None:
    """The note on angles with few digits is about printed angles; a file without any gets none."""
    text = arm().replace(
        '<link name="lower"><pose>0 0 0.3 0 0 0</pose>',
        '<link name="lower"><pose relative_to="upper">0 0 0.2 0 0.2 0</pose>',
    )
    text = text.replace(
        '<link name="upper"><pose>0 0 0.1 0 0 0</pose>',
        '<link name="upper"><pose>0 0 0.1 0.3 0.1 0.7</pose>',
    )
    assert "few digits" not in read(tmp_path, text).description
    printed = text.replace("0 0 0.2 0 0.2 0", "0 0 0.2 0 1.57079632679 0")
    assert "few digits" in read(tmp_path, printed).description


def test_a_joint_without_an_axis_turns_about_z_with_a_note(tmp_path: Path) -> None:
    text = arm().replace("<axis><xyz>0 1 0</xyz></axis></joint>", "</joint>", 1)
    machine = read(tmp_path, text)
    assert "joint shoulder: <axis> has no <xyz>; SDF's default is z" in machine.description
    joint = next(joint for joint in machine.joints if joint.name == "shoulder")
    assert joint.axes == ("z",)
    assert "SDF's default is z" not in read(tmp_path, arm()).description


def test_the_world_as_child_is_refused_as_such(tmp_path: Path) -> None:
    text = arm().replace(
        "<parent>world</parent><child>stand</child>", "<parent>stand</parent><child>world</child>"
    )
    with pytest.raises(DescriptionError) as raised:
        read(tmp_path, text)
    assert "floor: its child is the world, which SDF does not allow" in str(raised.value)


def test_types_of_joints_have_no_case(tmp_path: Path) -> None:
    """As in libsdformat; an unknown type gets all known ones as remedy."""
    text = arm().replace('type="revolute"', 'type="Revolute"').replace('"fixed"', '"FIXED"')
    assert len(read(tmp_path, text).actuators) == 2
    with pytest.raises(DescriptionError) as raised:
        read(tmp_path, arm(kind="hinge"))
    assert "screw, gearbox" in str(raised.value)
