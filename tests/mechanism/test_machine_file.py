"""From machine files to mechanisms: every form of the grammar against a hand-made or NumPy/SciPy result."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import machine_file_page
import numpy as np
import pytest
import yaml
from hypothesis import example, given, strategies as st
from plain_yaml import plain
from scipy.spatial.transform import Rotation

from tauloop.common.errors import DescriptionError
from tauloop.formats import dumps, load, loads, machine_path
from tauloop.mechanism import json_schema, shipped_machines
from tauloop.mechanism.description.placements import quaternion, turns_to_axes, turns_to_axis
from tauloop.mechanism.description.yaml_nodes import parse_nodes
from tauloop.mechanism.expression import ZERO, Call, Constant, Expression, Leaf
from tauloop.mechanism.model import Inertia, Mechanism, Placement, SlenderPart, Turn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "machine-file.md"

#: Two ways to a product of a few rotations and sums of size one.
ROUNDING = 1e-14

#: A pendulum: the least that a machine needs.
PENDULUM: dict[str, Any] = {
    "format": "tauloop-machine/1",
    "name": "bench",
    "provenance": {"status": "chosen", "source": "test"},
    "gravity": [0, 0, "-9.81 m/s^2"],
    "parameters": {},
    "frames": {},
    "bodies": {"arm": {"mass": "2 kg"}},
    "joints": {"pin": {"type": "revolute", "axis": "z", "parent": "base", "child": "arm"}},
    "rods": {},
    "actuators": {},
    "platform": {"body": "arm", "independent": ["pin"]},
}


class Dumper(yaml.SafeDumper):
    """Writes equal things out in full: machine files know no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def build(**sections: Any) -> Mechanism:
    """The pendulum with some sections extended."""
    machine = copy.deepcopy(PENDULUM)
    for name, content in sections.items():
        if isinstance(content, dict):
            machine.setdefault(name, {}).update(content)
        else:
            machine[name] = content
    return loads(yaml.dump(machine, Dumper=Dumper, sort_keys=False), "bench.yaml")


def numbers(mechanism: Mechanism, expressions: tuple[Expression, ...]) -> np.ndarray:
    return np.array([mechanism.value(expression) for expression in expressions])


def rotation(mechanism: Mechanism, turns: tuple[Turn, ...]) -> np.ndarray:
    """Rotation matrix of successive turns, by SciPy."""
    R = Rotation.identity()
    for turn in turns:
        R = R * Rotation.from_euler(turn.axis, mechanism.value(turn.angle))
    return R.as_matrix()


# --- the shipped machines
# ---------------------------------------------------------------------------------------------


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize("name", shipped_machines())
def test_shipped_machines_load_and_fit_the_schema(name: str) -> None:
    mechanism = load(name)
    assert mechanism.name == name
    assert mechanism.file == f"{name}.yaml"
    assert mechanism.description
    assert load(machine_path(name)).parameters == mechanism.parameters
    text = machine_path(name).read_text(encoding="utf-8")
    validator().validate(plain(parse_nodes(text, name)))


def test_every_value_of_a_shipped_machine_has_a_source() -> None:
    for name in shipped_machines():
        assert all(parameter.source for parameter in load(name).parameters)


def test_the_schema_next_to_the_shipped_machines_is_the_published_one() -> None:
    text = (machine_path("delta").parent / "machine.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == json_schema(), (
        "write it again: tauloop env schema > src/tauloop/mechanism/machines/machine.schema.json"
    )


def test_editors_find_the_schema_of_shipped_and_written_files() -> None:
    """By the first line, which is a comment to everything else; the schema is next to the shipped machines."""
    for name in shipped_machines():
        path = machine_path(name)
        written = (machine_path("delta").parent, dumps(load(path)))
        for folder, text in ((path.parent, path.read_text(encoding="utf-8")), written):
            (schema,) = re.findall(r"\A# yaml-language-server: \$schema=(\S+)\n", text)
            beside = json.loads((folder / schema).read_text(encoding="utf-8"))
            assert beside == json_schema(), name


def test_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize(
    "wrong",
    [
        {"gravity": [0, 0]},
        {"gravity": "9.81 m/s^2"},
        {"format": "tauloop-machine/2"},
        {"bodys": {}},
        {"bodies": {"arm": {}}},
        {"bodies": {"arm": "heavy"}},
        {"bodies": {"2arm": {"mass": "1 kg"}}},
        {"joints": {"pin": {"type": "hinge", "parent": "base", "child": "arm"}}},
        {"joints": {"pin": {"type": "revolute", "axis": "w", "parent": "base", "child": "arm"}}},
        {"platform": {"independent": ["pin"]}},
        {"platform": {"body": "arm", "independent": "pin"}},
        {"parameters": {"a": {"value": "1 m", "sauce": "x"}}},
        {"parameters": {"a": ["1 m"]}},
        {"legs": [{"name": "leg", "repeat": 65}]},
    ],
)
def test_schema_refuses_what_the_reader_refuses(wrong: dict[str, Any]) -> None:
    machine = copy.deepcopy(PENDULUM)
    validator = jsonschema.Draft202012Validator(json_schema())
    assert validator.is_valid(machine)
    machine.update(wrong)
    assert not validator.is_valid(machine)
    with pytest.raises(DescriptionError):
        loads(yaml.safe_dump(machine))


def test_delta_in_detail() -> None:
    machine = load("delta")
    assert [body.name for body in machine.bodies] == ["plate", "leg1.arm", "leg2.arm", "leg3.arm"]
    assert [joint.name for joint in machine.joints] == [
        "platform",
        "leg1.shoulder",
        "leg2.shoulder",
        "leg3.shoulder",
    ]
    assert [rod.name for rod in machine.rods] == ["leg1.forearm", "leg2.forearm", "leg3.forearm"]
    assert [actuator.drives for actuator in machine.actuators][1] == (
        ("leg2.shoulder", Constant(1.0)),
    )
    assert machine.platform.independent == ("platform.x", "platform.y", "platform.z")
    assert machine.parameters.names == (
        *(
            "motor_radius",
            "plate_radius",
            "arm_length",
            "forearm_length",
            "plate_mass",
            "arm_mass",
            "arm_inertia",
        ),
        *(
            "arm_axial_inertia",
            "elbow_mass",
            "forearm_mass",
            "leg1.phi",
            "leg2.phi",
            "leg3.phi",
            "gravity[2]",
        ),
    )
    groups = {parameter.name: parameter.group for parameter in machine.parameters}
    assert groups["forearm_length"] == "geometry"  # serves inertia as well
    assert groups["forearm_mass"] == groups["arm_inertia"] == "inertia"
    assert groups["gravity[2]"] == "gravity"
    shoulder = machine.joint("leg2.shoulder")
    turn = (Turn("z", Leaf("leg2.phi")),)
    assert shoulder.parent.turns == turn
    assert numbers(machine, shoulder.parent.position) == pytest.approx(
        0.194 * np.array([-0.5, np.sqrt(0.75), 0]), abs=1e-15
    )
    assert shoulder.parent.position[2] == ZERO
    assert shoulder.axes == ("y",)
    assert shoulder.freedoms[0].upper == pytest.approx(np.radians(110))
    rod = machine.rod("leg1.forearm")
    assert rod.length == Leaf("forearm_length")
    assert isinstance(rod.lower, SlenderPart)
    m, l = 0.0296, 0.48
    assert numbers(machine, rod.lower.parameters) == pytest.approx(
        [m, m * l / 2, m * l * l / 3], rel=1e-14
    )


def test_delta_is_closed_at_its_reference() -> None:
    """By the formula of machines.md with alpha = beta = 0: motor, elbow and plate joint of each leg."""
    machine = load("delta")
    R, r, L, l = (
        machine.parameters[k].value
        for k in ("motor_radius", "plate_radius", "arm_length", "forearm_length")
    )
    (angle,) = machine.joint("leg1.shoulder").reference
    p = np.array(machine.joint("platform").reference)
    for phi in np.radians([0, 120, 240]):
        radial, down = np.array([np.cos(phi), np.sin(phi), 0]), np.array([0, 0, -1])
        forearm = p - (R - r) * radial - L * (np.cos(angle) * radial + np.sin(angle) * down)
        assert np.linalg.norm(forearm) == pytest.approx(l, rel=1e-14)


def test_four_bar_is_closed_at_its_reference() -> None:
    machine = load("four_bar")
    ground, crank, coupler, rocker = (
        machine.parameters[f"{bar}_length"].value
        for bar in ("ground", "crank", "coupler", "rocker")
    )
    a, b, c, closing = (
        machine.joint(f"{n}_pin").reference[0] for n in ("crank", "coupler", "rocker", "closing")
    )
    end_of_coupler = crank * np.exp(1j * a) + coupler * np.exp(1j * (a + b))
    assert abs(end_of_coupler - ground - rocker * np.exp(1j * c)) < ROUNDING
    assert closing == pytest.approx(c - a - b, rel=1e-14)


def test_reading_is_reproducible() -> None:
    for name in ("gantry_tau_5dof", "spidermill"):
        assert load(name) == load(name)


# --- values
# -----------------------------------------------------------------------------------------------------------


def test_leaves_are_literals_and_nothing_else() -> None:
    machine = build(
        parameters={"L": "260 mm", "twice": "2 * L", "shift": "0 mm", "half": 0.5},
        bodies={
            "arm": {
                "mass": "2 kg",
                "center": ["L", 0, "0 m"],
                "inertia": {"xx": "3 g m^2", "yy": "2e-3 kg m^2", "zz": "2e-3 kg m^2"},
            }
        },
        frames={
            "tip": {
                "on": "arm",
                "at": ["twice", "half * L", {"value": "0 m", "bounds": ["-1 mm", "1 mm"]}],
            }
        },
        platform={
            "body": "arm",
            "independent": ["pin"],
            "tool": {"at": [0, 0, "30 mm"], "turn": [{"x": "10 deg"}]},
        },
        joints={
            "pin": {
                "type": "revolute",
                "axis": "z",
                "parent": {"on": "base", "at": [0, "5 mm", "shift"]},
                "child": "arm",
                "reference": "20 deg",
                "limits": ["0 deg", "1 rad"],
                "speed": "60 rpm",
            }
        },
    )
    assert machine.parameters.names == (
        *(
            "L",
            "shift",
            "half",
            "tip.at[2]",
            "gravity[2]",
            "arm.mass",
            "arm.inertia.xx",
            "arm.inertia.yy",
        ),
        *("arm.inertia.zz", "pin.parent.at[1]", "platform.tool.at[2]", "platform.tool.turn[0].x"),
    )
    assert machine.parameters["L"].value == 0.26
    assert machine.parameters["L"].unit == "mm"
    assert machine.parameters["L"].scale == 1e-3
    assert machine.parameters["arm.inertia.xx"].value == pytest.approx(3e-3)
    assert machine.parameters["half"].unit == ""
    assert (machine.parameters["tip.at[2]"].lower, machine.parameters["tip.at[2]"].upper) == (
        -1e-3,
        1e-3,
    )
    pin = machine.joint("pin")
    assert pin.parent.position == (ZERO, Leaf("pin.parent.at[1]"), Leaf("shift"))
    assert pin.reference == pytest.approx([np.radians(20)])
    assert (pin.freedoms[0].lower, pin.freedoms[0].upper) == (0.0, 1.0)
    assert pin.freedoms[0].speed == pytest.approx(2 * np.pi)


def test_provenance_of_a_leaf() -> None:
    machine = build(
        parameters={
            "a": "1 m",
            "b": {
                "value": "35.26 deg",
                "status": "given",
                "source": "paper",
                "bounds": ["0 deg", "90 deg"],
                "note": "n",
            },
            "c": {"value": "2 * a", "status": "inferred", "source": "elsewhere"},
        }
    )
    a, b = machine.parameters["a"], machine.parameters["b"]
    assert (a.status, a.source, a.lower, a.upper) == ("chosen", "test", -np.inf, np.inf)
    assert (b.status, b.source) == ("given", "paper")
    assert b.value == pytest.approx(np.radians(35.26), rel=1e-15)
    assert b.upper == pytest.approx(np.pi / 2, rel=1e-15)
    assert "c" not in machine.parameters.names


@pytest.mark.parametrize(
    ("use", "group"),
    [
        ({"bodies": {"arm": {"mass": "2 kg", "center": ["s * 1 m", 0, 0]}}}, "inertia"),
        ({"actuators": {"motor": {"on": "pin", "ratio": "s"}}}, "drive"),
        ({"frames": {"f": {"on": "arm", "at": ["s * 1 m", 0, 0]}}}, "geometry"),
        (
            {
                "bodies": {"arm": {"mass": "s * 1 kg"}},
                "frames": {"f": {"on": "arm", "at": ["s * 1 m", 0, 0]}},
                "actuators": {"motor": {"on": "pin", "ratio": "s"}},
            },
            "geometry",
        ),
        (
            {
                "bodies": {"arm": {"mass": "s * 1 kg"}},
                "actuators": {"motor": {"on": "pin", "ratio": "s"}},
            },
            "inertia",
        ),
    ],
)
def test_group_follows_from_use(use: dict[str, Any], group: str) -> None:
    assert build(parameters={"s": 2}, **use).parameters["s"].group == group


def test_friction_spring_and_drive_groups() -> None:
    pin = PENDULUM["joints"]["pin"] | {
        "friction": {"viscous": "0.1 N m s/rad", "coulomb": "0.2 N m", "offset": "-10 N mm"},
        "spring": {"stiffness": "3 N m/rad", "rest": "10 deg"},
        "inertia": "1e-3 kg m^2",
    }
    machine = build(joints={"pin": pin})
    assert {p.name: p.group for p in machine.parameters if p.name.startswith("pin")} == {
        "pin.friction.viscous": "friction",
        "pin.friction.coulomb": "friction",
        "pin.friction.offset": "friction",
        "pin.spring.stiffness": "spring",
        "pin.spring.rest": "spring",
        "pin.inertia": "drive",
    }
    freedom = machine.joint("pin").freedoms[0]
    assert freedom.friction is not None
    assert freedom.friction.offset is not None
    assert machine.value(freedom.friction.offset) == pytest.approx(-0.01)
    assert freedom.spring is not None
    assert machine.value(freedom.spring.rest) == pytest.approx(np.radians(10))


def test_parameters_may_stand_in_any_order() -> None:
    machine = build(
        parameters={"c": "b + a", "b": "2 * a", "a": "1 m"},
        frames={"f": {"on": "arm", "at": ["c", 0, 0]}},
    )
    assert machine.parameters.names[0] == "a"


def test_files_are_read_by_path(tmp_path: Path) -> None:
    path = tmp_path / "my machine.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + yaml.safe_dump(PENDULUM).replace("\n", "\r\n").encode())
    assert load(path).name == load(str(path)).name == "bench"
    assert load(path).file == str(path)


# --- geometry
# ---------------------------------------------------------------------------------------------------------

TURNS = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from([0, 90, 180, -90, 35.3, -120])), max_size=3
)
POSITIONS = st.tuples(*[st.sampled_from([0, 0.3, -1.25])] * 3)


@given(poses=st.lists(st.tuples(POSITIONS, TURNS), min_size=1, max_size=3))
def test_frames_on_frames(poses: list[tuple[tuple[float, ...], list[tuple[str, float]]]]) -> None:
    frames = {}
    for i, (position, turns) in enumerate(poses):
        frames[f"f{i}"] = {
            "on": f"f{i - 1}" if i else "arm",
            "at": [f"{x} m" for x in position],
            "turn": [{axis: f"{angle} deg"} for axis, angle in turns],
        }
    last = f"f{len(poses) - 1}"
    joint = {"type": "spherical", "parent": "base", "child": last}
    machine = build(frames=dict(reversed(frames.items())), joints={"second": joint})
    p, R = np.zeros(3), np.eye(3)
    for position, turns in poses:
        p = p + R @ np.array(position)
        for axis, angle in turns:
            R = R @ Rotation.from_euler(axis, angle, degrees=True).as_matrix()
    child = machine.joint("second").child
    assert child.body == "arm"
    assert numbers(machine, child.position) == pytest.approx(p, abs=ROUNDING * 10)
    assert rotation(machine, child.turns) == pytest.approx(R, abs=ROUNDING)


def test_exact_geometry_stays_sparse() -> None:
    machine = build(
        parameters={"R": "2 m", "h": "1 m"},
        frames={
            "a": {"on": "arm", "at": [0, 0, "h"], "turn": [{"z": "180 deg / 2"}, {"x": 0}]},
            "b": {"on": "a", "at": ["R", 0, 0]},
        },
        joints={"second": {"type": "spherical", "parent": "base", "child": "b"}},
    )
    child = machine.joint("second").child
    assert child.position == (ZERO, Leaf("R"), Leaf("h"))
    assert child.turns == (Turn("z", Constant(np.pi / 2)),)


UNIT_VECTORS = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)


def test_a_named_bare_zero_is_an_exact_zero_of_any_kind() -> None:
    frames = {"a": {"on": "arm", "at": ["ax", "1 m + ax", "-2 * ax"], "turn": [{"z": "ax"}]}}
    machine = build(
        parameters={"ax": 0},
        frames=frames,
        joints={"pin": {**PENDULUM["joints"]["pin"], "child": "a"}},
    )
    placement = machine.joint("pin").child
    assert placement.position == (ZERO, Constant(1.0), ZERO)
    assert placement.turns == ()
    assert "ax" not in machine.parameters.names
    # with a unit, or what is known about it, it is a parameter as any other
    for written in ("0 m", {"value": "0 m"}):
        machine = build(parameters={"ax": written}, frames={"a": {"on": "arm", "at": ["ax", 0, 0]}})
        assert "ax" in machine.parameters.names
    with pytest.raises(DescriptionError, match="has no unit where a length"):
        build(parameters={"ax": 1}, frames={"a": {"on": "arm", "at": ["ax", 0, 0]}})


@example(vector=(0.0, 1e-7, 1.0), angle=1.0)
@given(vector=UNIT_VECTORS, angle=st.floats(-3, 3))
def test_an_axis_by_numbers_turns_about_those_numbers(
    vector: tuple[float, ...], angle: float
) -> None:
    pin = {
        "type": "revolute",
        "axis": [f"{x:.12f}" for x in vector],
        "parent": {"on": "base", "turn": [{"x": "0.3 rad"}]},
        "child": {"on": "arm", "turn": [{"y": "0.2 rad"}]},
    }
    machine = build(joints={"pin": pin})
    joint = machine.joint("pin")
    parent, child = rotation(machine, joint.parent.turns), rotation(machine, joint.child.turns)
    turned = parent @ Rotation.from_euler(joint.axes[0], angle).as_matrix() @ child.T
    unit = np.array(vector) / np.linalg.norm(vector)
    outer, inner = (
        Rotation.from_euler("x", 0.3).as_matrix(),
        Rotation.from_euler("y", 0.2).as_matrix(),
    )
    expected = outer @ Rotation.from_rotvec(angle * unit).as_matrix() @ inner.T
    assert turned == pytest.approx(expected, abs=1e-10)  # the numbers are written with 12 digits


@pytest.mark.parametrize("axis", ["x", "y", "z", "-x", "-y", "-z"])
def test_letters_as_axes(axis: str) -> None:
    joint = build(
        joints={"pin": {"type": "prismatic", "axis": axis, "parent": "base", "child": "arm"}}
    ).joint("pin")
    direction = np.eye(3)["xyz".index(axis[-1])] * (-1 if axis.startswith("-") else 1)
    machine = build()
    assert rotation(machine, joint.parent.turns) @ np.eye(3)[
        "xyz".index(joint.axes[0])
    ] == pytest.approx(direction)
    assert joint.parent.turns == joint.child.turns
    assert bool(joint.parent.turns) == axis.startswith("-")


def test_a_direction_along_a_letter_needs_no_turn() -> None:
    for i, letter in enumerate("xyz"):
        assert turns_to_axis(np.eye(3)[i]) == (letter, ())


@given(first=UNIT_VECTORS, other=UNIT_VECTORS)
def test_two_axes_at_right_angles(first: tuple[float, ...], other: tuple[float, ...]) -> None:
    x = np.array(first) / np.linalg.norm(first)
    y = np.cross(x, other)
    if np.linalg.norm(y) < 0.1:
        return
    y = y / np.linalg.norm(y)
    R = rotation(build(), turns_to_axes(x, y))
    assert R[:, 0] == pytest.approx(x, abs=ROUNDING)
    assert R[:, 1] == pytest.approx(y, abs=ROUNDING)


@pytest.mark.parametrize(
    ("axes", "letters"),
    [(["x", "y"], ("x", "y")), (["z", "x"], ("z", "x")), (["-x", [0, 0.6, 0.8]], ("x", "y"))],
)
def test_axes_of_a_universal_joint(axes: list[Any], letters: tuple[str, ...]) -> None:
    joint = build(
        joints={"u": {"type": "universal", "axes": axes, "parent": "base", "child": "arm"}}
    ).joint("u")
    assert joint.axes == letters
    R = rotation(build(), joint.parent.turns)
    for axis, letter in zip(axes, letters, strict=True):
        given_axis = (
            axis
            if isinstance(axis, list)
            else np.eye(3)["xyz".index(axis[-1])] * (1 - 2 * ("-" in axis))
        )
        assert R @ np.eye(3)["xyz".index(letter)] == pytest.approx(
            np.array(given_axis), abs=ROUNDING
        )


@given(turns=st.lists(st.tuples(st.sampled_from("xyz"), st.floats(-3, 3)), max_size=4))
def test_quaternion_of_turns(turns: list[tuple[Any, float]]) -> None:
    R = Rotation.identity()
    for axis, angle in turns:
        R = R * Rotation.from_euler(axis, angle)
    w, x, y, z = quaternion(turns)
    assert Rotation.from_quat([x, y, z, w]).as_matrix() == pytest.approx(
        R.as_matrix(), abs=ROUNDING * 10
    )


def test_first_axis_of_a_full_rod_is_given_after_the_turns() -> None:
    rod = {
        "from": {"on": "base", "at": ["1 m", 0, 0], "turn": [{"z": "40 deg"}]},
        "to": "arm",
        "length": "1 m",
        "model": "full",
        "link": {
            "mass": "1 kg",
            "center": [0, 0, "0.5 m"],
            "inertia": {k: "0.1 kg m^2" for k in ("xx", "yy", "zz")},
        },
        "first_axis": [0, 3, 0],
        "spin": "universal",
    }
    machine = build(rods={"strut": rod})
    strut = machine.rod("strut")
    assert strut.first_axis is not None
    s, c = np.sin(np.radians(40)), np.cos(np.radians(40))
    assert numbers(machine, strut.first_axis) == pytest.approx([-s, c, 0], abs=1e-15)
    assert strut.spin == "universal"
    assert strut.is_full
    straight = build(rods={"strut": rod | {"from": "base", "first_axis": [1, 1, 0]}}).rod("strut")
    assert straight.first_axis is not None
    assert all(isinstance(component, Constant) for component in straight.first_axis)


# --- inertia
# ----------------------------------------------------------------------------------------------------------


def cloud_parameters(masses: np.ndarray, points: np.ndarray, about: np.ndarray) -> np.ndarray:
    """Ten parameters of point masses about a point: m, m c, and the six moments in Pinocchio's order."""
    r = points - about
    I = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, r, strict=True))
    return np.array(
        [masses.sum(), *(masses @ r), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
    )


def moments_text(parameters: np.ndarray) -> dict[str, str]:
    return {
        name: f"{value:.17g} kg m^2"
        for name, value in zip(("xx", "xy", "yy", "xz", "yz", "zz"), parameters[4:], strict=True)
    }


@given(data=st.lists(st.tuples(st.floats(0.1, 2), *[st.floats(-1, 1)] * 3), min_size=4, max_size=6))
def test_every_form_of_inertia_is_that_of_the_same_cloud_of_points(
    data: list[tuple[float, ...]],
) -> None:
    masses, points = np.array(data)[:, 0], np.array(data)[:, 1:]
    center = masses @ points / masses.sum()
    at_origin, at_center = (
        cloud_parameters(masses, points, np.zeros(3)),
        cloud_parameters(masses, points, center),
    )
    mass = f"{masses.sum():.17g} kg"
    center_text = [f"{x:.17g} m" for x in center]
    forms = [
        {"mass": mass, "center": center_text, "inertia": moments_text(at_center)},
        {
            "mass": mass,
            "center": center_text,
            "inertia": moments_text(at_origin),
            "about": "origin",
        },
        {
            "mass": mass,
            "first_moment": [f"{x:.17g} kg m" for x in at_origin[1:4]],
            "inertia": moments_text(at_origin),
            "about": "origin",
        },
    ]
    for form in forms:
        machine = build(bodies={"arm": form})
        inertia = machine.body("arm").inertia
        assert inertia is not None
        assert numbers(machine, inertia.parameters) == pytest.approx(at_origin, abs=1e-13)


def test_a_body_of_mass_alone_is_a_point_at_its_origin() -> None:
    inertia = build().body("arm").inertia
    assert inertia == Inertia(mass=Leaf("arm.mass"))


def test_zeros_fold_out_of_a_shifted_inertia() -> None:
    machine = build(
        parameters={"m": "2 kg", "c": "0.1 m", "I": "0.5 kg m^2"},
        bodies={
            "arm": {"mass": "m", "center": ["c", 0, 0], "inertia": {"xx": 0, "yy": "I", "zz": "I"}}
        },
    )
    inertia = machine.body("arm").inertia
    assert inertia is not None
    mcc = Call("*", (Call("*", (Leaf("m"), Leaf("c"))), Leaf("c")))
    shifted = Call("+", (Leaf("I"), mcc))
    assert inertia.first_moment == (Call("*", (Leaf("m"), Leaf("c"))), ZERO, ZERO)
    assert inertia.second_moment == (ZERO, ZERO, shifted, ZERO, ZERO, shifted)


@pytest.mark.parametrize(
    "inertia",
    [
        {"xx": "1 kg m^2", "yy": "2 kg m^2", "zz": "3 kg m^2"},  # flat: an equality
        {"yy": "1 kg m^2", "zz": "1 kg m^2"},  # a thin bar
        {},
    ],
)
def test_degenerate_bodies_are_allowed(inertia: dict[str, str]) -> None:
    body = {"mass": "2 kg", "center": ["0.3 m", "0.1 m", "-0.7 m"]} | (
        {"inertia": inertia} if inertia else {}
    )
    assert build(bodies={"arm": body}).body("arm").inertia is not None


def test_slender_parts_against_points_on_a_line() -> None:
    masses, s = np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.25, 0.6])
    m, center = masses.sum(), masses @ s / masses.sum()
    part = {
        "mass": f"{m} kg",
        "center": f"{center:.17g} m",
        "inertia": f"{masses @ (s - center) ** 2:.17g} kg m^2",
    }
    rod = {
        "from": "base",
        "to": {"on": "arm", "at": [0, 0, "1 m"]},
        "telescopic": {"reference": "1 m", "limits": ["0.5 m", "1.5 m"], "speed": "0.1 m/s"},
        "model": "slender",
        "lower": part,
        "upper": part,
    }
    machine = build(rods={"strut": rod})
    strut = machine.rod("strut")
    assert strut.telescope is not None
    assert strut.telescope.reference == 1.0
    assert strut.telescope.freedom.upper == 1.5
    assert strut.length is None
    for read in (strut.lower, strut.upper):
        assert isinstance(read, SlenderPart)
        assert numbers(machine, read.parameters) == pytest.approx(
            [m, masses @ s, masses @ s**2], rel=1e-14
        )
    assert (
        build(rods={"strut": {k: v for k, v in rod.items() if k != "lower"}}).rod("strut").lower
        is None
    )


def test_massless_things() -> None:
    rod = {"from": "base", "to": "hub", "length": "1 m", "model": "massless"}
    hub = {"type": "spherical", "parent": "arm", "child": "hub"}
    machine = build(bodies={"hub": "massless"}, rods={"strut": rod}, joints={"ball": hub})
    assert machine.body("hub").inertia is None
    assert machine.rod("strut").lower is None
    assert not machine.rod("strut").is_full


# --- joints, platform, actuators
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joint", "expected"),
    [
        ({"type": "prismatic", "axis": "x", "reference": "-3 mm"}, [-0.003]),
        (
            {"type": "cylindrical", "axis": "x", "reference": {"angle": "90 deg", "slide": "2 mm"}},
            [np.pi / 2, 0.002],
        ),
        ({"type": "universal", "axes": ["x", "y"], "reference": {"second": "0.1 rad"}}, [0, 0.1]),
        ({"type": "planar", "reference": {"x": "1 m", "angle": "0.5 rad"}}, [1, 0, 0.5]),
        (
            {"type": "planar", "reference": {"at": ["1 m", "2 m", 0], "turn": [{"z": "0.5 rad"}]}},
            [1, 2, 0.5],
        ),
        ({"type": "translational", "reference": {"at": [0, "1 m", "2 m"]}}, [0, 1, 2]),
        (
            {"type": "spherical", "reference": {"turn": [{"x": "90 deg"}]}},
            [np.sqrt(0.5), np.sqrt(0.5), 0, 0],
        ),
        ({"type": "free", "reference": {"at": ["1 m", 0, 0]}}, [1, 0, 0, 1, 0, 0, 0]),
        ({"type": "free", "reference": {"turn": [{"z": "180 deg"}]}}, [0, 0, 0, 0, 0, 0, 1]),
        ({"type": "spherical"}, [1, 0, 0, 0]),
        ({"type": "fixed"}, []),
    ],
)
def test_start_values(joint: dict[str, Any], expected: list[float]) -> None:
    machine = build(joints={"second": joint | {"parent": "base", "child": "arm"}})
    second = machine.joint("second")
    assert second.reference == pytest.approx(expected, abs=1e-15)
    assert len(second.reference) == len(second.coordinate_names)
    assert len(second.freedoms) == len(second.velocity_names)


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ({"at": [0, 0, "1 mm"]}, "has z = 0, got 0.001 m"),
        ({"turn": [{"x": "1 deg"}]}, "rotates only about z"),
        ({"x": "1 m", "at": [0, 0, 0]}, "x, y and `at` give the same value twice"),
        (
            {"angle": "1 deg", "turn": [{"z": "1 deg"}]},
            "`angle` and `turn` give the same value twice",
        ),
    ],
)
def test_start_values_out_of_the_plane_are_refused(reference: dict[str, Any], what: str) -> None:
    joint = {"type": "planar", "parent": "base", "child": "arm", "reference": reference}
    with pytest.raises(DescriptionError, match=what):
        build(joints={"second": joint})


def test_freedoms_of_a_joint_with_several() -> None:
    joint = {
        "type": "cylindrical",
        "axis": "z",
        "parent": "base",
        "child": "arm",
        "freedoms": {
            "slide": {
                "friction": {"viscous": "2 N s/m"},
                "limits": ["-1 m", "1 m"],
                "inertia": "3 kg",
            }
        },
    }
    angle, slide = build(joints={"second": joint}).joint("second").freedoms
    assert angle.friction is None
    assert slide.upper == 1.0
    assert slide.friction is not None
    assert slide.friction.viscous == Leaf("second.freedoms.slide.friction.viscous")


def test_platform_with_coordinates_of_its_own() -> None:
    machine = build(
        joints={"pin": {"type": "spherical", "parent": "base", "child": "arm"}},
        platform={
            "body": "arm",
            "motion": "free",
            "independent": ["x", "wz"],
            "reference": {"at": [0, 0, "-0.5 m"]},
            "limits": {"z": ["-1 m", "0 m"]},
            "tool": {"at": [0, 0, "-50 mm"]},
        },
    )
    joint = machine.joints[0]
    assert (joint.name, joint.kind) == ("platform", "free")
    assert (joint.parent, joint.child) == (Placement(body="base"), Placement(body="arm"))
    assert joint.reference == (0, 0, -0.5, 1, 0, 0, 0)
    assert [freedom.upper for freedom in joint.freedoms] == [
        np.inf,
        np.inf,
        0.0,
        np.inf,
        np.inf,
        np.inf,
    ]
    assert machine.platform.independent == ("platform.x", "platform.wz")
    assert machine.platform.tool.body == "arm"


def test_platform_that_hangs_in_the_tree() -> None:
    arm = load("pendulum_arm")
    assert arm.platform.independent == ("waist", "shoulder", "elbow")
    assert "platform" not in [joint.name for joint in arm.joints]


@pytest.mark.parametrize(
    ("joint", "actuator"),
    [
        (
            "revolute",
            {"ratio": 32, "inertia": "1e-5 kg m^2", "force": "2 N m", "speed": "3000 rpm"},
        ),
        ("prismatic", {"force": "5 N", "inertia": "2 kg", "speed": "1 m/s"}),
        (
            "prismatic",
            {
                "ratio": "2 * pi / (10 mm)",
                "inertia": "1e-5 kg m^2",
                "force": "2 N m",
                "speed": "50 rad/s",
            },
        ),
        ("revolute", {"ratio": "40 mm/rad", "force": "100 N", "friction": {"viscous": "1 N s/m"}}),
    ],
)
def test_motors_turn_or_slide_as_the_ratio_says(joint: str, actuator: dict[str, Any]) -> None:
    pin = {"type": joint, "axis": "z", "parent": "base", "child": "arm"}
    motor = build(joints={"pin": pin}, actuators={"motor": {"on": "pin"} | actuator}).actuators[0]
    assert motor.force in (2.0, 5.0, 100.0)
    wrong = {"force": "1 N"} if motor.force == 2.0 else {"force": "1 N m"}
    with pytest.raises(DescriptionError, match=r"where a (force|torque)"):
        build(joints={"pin": pin}, actuators={"motor": {"on": "pin"} | actuator | wrong})


def test_couplings() -> None:
    joints = {"second": {"type": "revolute", "axis": "x", "parent": "arm", "child": "hand"}}
    machine = build(
        bodies={"hand": {"mass": "1 kg"}},
        joints=joints,
        actuators={"a": {"on": "pin", "ratio": 45}, "b": {"drives": {"pin": 32, "second": -32}}},
    )
    assert machine.actuators[0].drives == (("pin", Leaf("a.ratio")),)
    assert machine.actuators[1].drives == (
        ("pin", Leaf("b.drives.pin")),
        ("second", Leaf("b.drives.second")),
    )
    assert machine.parameters["b.drives.second"].value == -32.0


# --- legs
# -------------------------------------------------------------------------------------------------------------

LEG: dict[str, Any] = {
    "name": "leg",
    "repeat": 2,
    "each": {"foot": ["1 m", "R + 1 m"], "phi": ["0 deg", "30 deg"]},
    "parameters": {"psi": "(i - 1) * 120 deg", "R": "5 m", "mine": "R / 5"},
    "bodies": {"link": {"mass": "m"}},
    "frames": {
        "own": {
            "on": "base",
            "at": ["foot", "R", "leg1.foot"],
            "turn": [{"z": "psi"}, {"z": "phi"}],
        }
    },
    "joints": {"hinge": {"type": "revolute", "axis": "z", "parent": "own", "child": "link"}},
    "rods": {"bar": {"from": "link", "to": "arm", "length": "mine", "model": "massless"}},
    "actuators": {"motor": {"on": "hinge"}},
}


def test_legs_have_their_own_names_and_see_those_of_the_top() -> None:
    machine = build(parameters={"m": "1 kg", "R": "7 m", "far": "R + leg2.foot"}, legs=[LEG])
    assert machine.parameters.names[:7] == (
        "m",
        "R",
        "leg1.foot",
        "leg1.phi",
        "leg1.R",
        "leg2.phi",
        "leg2.R",
    )
    first, second = machine.joint("leg1.hinge"), machine.joint("leg2.hinge")
    assert first.parent.position == (Leaf("leg1.foot"), Leaf("leg1.R"), Leaf("leg1.foot"))
    assert numbers(machine, second.parent.position) == pytest.approx([6, 5, 1])
    assert rotation(machine, second.parent.turns) == pytest.approx(
        Rotation.from_euler("z", 150, degrees=True).as_matrix()
    )
    # (1 - 1) * 120 deg is no turn at all
    assert first.parent.turns == (Turn("z", Leaf("leg1.phi")),)
    assert machine.rod("leg2.bar").end.body == "arm"
    assert [actuator.drives[0][0] for actuator in machine.actuators] == ["leg1.hinge", "leg2.hinge"]


def test_elements_of_a_leg_are_named_from_outside() -> None:
    rod = {"from": "leg1.link", "to": "leg2.own", "length": "1 m", "model": "massless"}
    actuator = {"drives": {"leg1.hinge": 1, "leg2.hinge": 1}}
    machine = build(
        parameters={"m": "1 kg"}, legs=[LEG], rods={"tie": rod}, actuators={"both": actuator}
    )
    assert machine.rod("tie").start.body == "leg1.link"
    assert machine.rod("tie").end.body == "base"
    assert machine.actuators[0].drives[1] == ("leg2.hinge", Leaf("both.drives.leg2.hinge"))


# --- the page
# ---------------------------------------------------------------------------------------------------------


def test_the_pages_keys_are_those_of_the_schema() -> None:
    assert PAGE.read_text(encoding="utf-8") == machine_file_page.updated(), (
        "run python tools/machine_file_page.py"
    )


def test_references_on_the_page_lead_to_definitions_that_explain_the_key() -> None:
    references = {name: machine_file_page.references(name) for name in machine_file_page.order()}
    assert list(references["link"]) == ["beam", "body"]
    for name, sources in references.items():
        for other, keys in sources.items():
            for key in keys:
                assert not any(key in further for further in references[other].values()), key
                assert machine_file_page.entries(name)[key] == machine_file_page.entries(other)[key]


def test_required_keys_of_a_reference_are_bold() -> None:
    lines = list(machine_file_page.lines("round_bar"))
    assert lines[-1] == "- **`material`**: as in [tube](#tube)"


def test_examples_on_the_page_are_read() -> None:
    text = PAGE.read_text(encoding="utf-8")
    examples = [
        block
        for block in re.findall(r"```yaml[^\n]*\n(.*?)```", text, re.DOTALL)
        if "\nformat:" in f"\n{block}"
    ]
    assert examples
    for block in examples:
        assert loads(block).platform.independent
