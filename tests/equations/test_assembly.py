"""Assembly: closing the loops, their rank and mobility, what drives them, reach and singular poses."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from machine_texts import shipped_text

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import AssemblyError, PoseError
from tauloop.formats.library import loads
from tauloop.kinematics import random_states

#: Two routes to the same forces of a well conditioned machine: rounding only.
SAME_FORCE = 1e-10
#: Rotations of a plate that only translates: Newton's last step.
NO_TURN = 1e-13
#: Millimetres in a message have four digits.
PRINTED = 6e-4
#: A pose at a singularity that was constructed in double precision comes out at least this badly
#: conditioned.
SINGULAR = 1e8


@functools.cache
def model(name: str) -> Model:
    return Model(load(name))


#: A Delta as it is built: each forearm is a pair of parallel rods, and the plate is free to turn.
SIX_RODS = """
format: tauloop-machine/1
name: six_rod_delta
provenance: {status: chosen, source: the shipped Delta with its pairs of rods written out}
gravity: [0, 0, -9.81 m/s^2]
parameters:
  motor_radius: 0.194 m
  plate_radius: 0.03 m
  arm_length: 0.26 m
  forearm_length: 0.48 m
  spacing: 0.05 m
  plate_mass: 0.2807 kg
  arm_mass: 0.977 kg
  arm_inertia: 0.01822 kg m^2
  elbow_mass: 0.0099 kg
  rod_mass: 0.0148 kg
bodies:
  plate: {mass: plate_mass, center: [0, 0, 0], inertia: {xx: 1e-4 kg m^2, yy: 1e-4 kg m^2, zz: 2e-4 kg m^2}}
legs:
  - name: leg
    repeat: 3
    each:
      phi: [0 deg, 120 deg, 240 deg]
    frames:
      sector: {on: base, turn: [{z: phi}]}
      plate_sector: {on: plate, turn: [{z: phi}]}
    bodies:
      arm:
        mass: arm_mass + elbow_mass
        first_moment: [arm_mass * arm_length / 2 + elbow_mass * arm_length, 0, 0]
        inertia:
          xx: 4e-4 kg m^2
          yy: arm_inertia + elbow_mass * arm_length^2
          zz: arm_inertia + elbow_mass * arm_length^2
        about: origin
    joints:
      shoulder:
        type: revolute
        axis: y
        parent: {on: sector, at: [motor_radius, 0, 0]}
        child: arm
        reference: 42.8 deg
        limits: [-40 deg, 110 deg]
    rods:
      left:
        from: {on: arm, at: [arm_length, spacing / 2, 0]}
        to: {on: plate_sector, at: [plate_radius, spacing / 2, 0]}
        length: forearm_length
        model: slender
        link: {mass: rod_mass, center: forearm_length / 2, inertia: rod_mass * forearm_length^2 / 12}
      right:
        from: {on: arm, at: [arm_length, -spacing / 2, 0]}
        to: {on: plate_sector, at: [plate_radius, -spacing / 2, 0]}
        length: forearm_length
        model: slender
        link: {mass: rod_mass, center: forearm_length / 2, inertia: rod_mass * forearm_length^2 / 12}
    actuators:
      motor: {on: shoulder}
platform:
  body: plate
  motion: free
  independent: [x, y, z]
  reference: {at: [0, 0, -0.5 m]}
"""


# Rank, redundancy, mobility


def test_a_delta_with_six_rods_freezes_its_rotations():
    assembly = Model(loads(SIX_RODS)).assembly
    names = assembly.loops.topology.velocity_names
    assert [names[i] for i in assembly.frozen] == ["platform.wx", "platform.wy", "platform.wz"]
    assert len(assembly.loops.names) == assembly.rank == 6
    assert len(assembly.dropped) == 3
    dropped = {assembly.loops.elements[i].partition(".")[0] for i in assembly.dropped}
    assert dropped == {"leg1", "leg2", "leg3"}  # one rod of every pair is left
    assert assembly.mobility == 3
    assert not assembly.findings


def test_a_delta_with_six_rods_needs_the_forces_of_the_simple_one():
    """A pair of parallel rods of half the mass each acts on the arm and the plate as one rod in the middle."""
    simple, six = model("delta"), Model(loads(SIX_RODS))
    states = random_states(simple, 40, np.random.default_rng(1))
    motion = (states.position, states.velocity, states.acceleration)
    expected, forces = (m.platform.inverse_dynamics(*motion, start=None) for m in (simple, six))
    assert np.abs(forces.force - expected.force).max() < SAME_FORCE * np.abs(expected.force).max()
    turned = forces.state.q[
        :, [i for i, n in enumerate(forces.state.coordinate_names) if re.search(r"\.q[xyz]$", n)]
    ]
    assert np.abs(turned).max() < NO_TURN


def test_spidermill_is_redundant_but_moves():
    assembly = model("spidermill").assembly
    # 15 velocities and 32 spatial closure equations, of which 13 are independent (rank 7 of 8 with
    # the cranks as rods)
    assert (assembly.loops.topology.n_v, len(assembly.loops.names)) == (15, 32)
    assert (assembly.rank, assembly.mobility) == (13, 2)
    assert assembly.gap > 1e6
    assert not assembly.findings


def test_spidermill_locks_with_a_tenth_of_a_millimetre():
    text = shipped_text(
        "spidermill",
        ("at: [side * base_outer, 0, 0]", "at: [side * base_outer + (i - 1) * 0.1 mm, 0, 0]"),
    )
    assembly = Model(loads(text)).assembly
    assert (assembly.rank, assembly.mobility) == (14, 1)
    assert any("mobility is 1" in finding.what for finding in assembly.findings)


# Loops that cannot close


def test_loops_that_are_too_short_say_by_how_much():
    """Arm and forearm of 50 mm each bridge at most 100 of the 164 mm between motor and plate joint."""
    text = shipped_text(
        "delta",
        ("arm_length: 0.26 m", "arm_length: 0.05 m"),
        ("forearm_length: 0.48 m", "forearm_length: 0.05 m"),
    )
    with pytest.raises(AssemblyError) as caught:
        Model(loads(text))
    assert {problem.where for problem in caught.value.problems} == {
        f"leg{i}.forearm" for i in (1, 2, 3)
    }
    for problem in caught.value.problems:
        assert millimeters(problem.what) == pytest.approx(194.0 - 30.0 - 100.0, abs=0.1)


def test_cut_joints_that_cannot_meet_say_by_how_much():
    """Motors 1.3 m apart, and two cranks and links of together 1.2 m: both cut joints share the 100 mm."""
    text = shipped_text(
        "five_bar", ("motor_distance: {value: 0.20 m", "motor_distance: {value: 1.30 m")
    )
    with pytest.raises(AssemblyError) as caught:
        Model(loads(text))
    misses = {problem.where: millimeters(problem.what) for problem in caught.value.problems}
    assert set(misses) == {"elbow_1", "tip"}
    assert sum(misses.values()) == pytest.approx(100.0, abs=0.1)
    assert all(problem.remedy for problem in caught.value.problems)


def millimeters(text: str) -> float:
    (number,) = re.findall(r"by ([\d.e+-]+) mm", text)
    return float(number)


# Actuation


def test_a_freedom_that_no_actuator_moves_is_named():
    text = shipped_text(
        "delta",
        ("    actuators:\n      motor: {on: shoulder, force: 41.76 N m}\n", ""),
        (
            "platform:\n",
            "actuators: {one: {on: leg1.shoulder}, two: {on: leg2.shoulder}}\nplatform:\n",
        ),
    )
    machine = Model(loads(text))
    # a machine may have passive freedoms: hybrid inverse dynamics moves it
    assert machine.assembly.findings == ()
    (note,) = machine.assembly.notes
    assert (note.where, machine.assembly.actuator_rank) == ("actuators", 2)
    assert "no actuator moves 1 of the 3 degrees of freedom" in note.what
    assert "leg3.shoulder" in note.what  # while the two driven shoulders rest, the third turns
    assert not re.search(r"leg[12]\.shoulder", note.what)
    for entry in (machine.platform, machine.actuators):  # but no forces bring about whatever motion
        position, still = entry.ports.at(machine.assembly.q), np.zeros(3)
        with pytest.raises(AssemblyError, match="no actuator moves"):
            entry.inverse_dynamics(position, still, still)
        with pytest.raises(AssemblyError, match="no actuator moves"):
            entry.regressor(position, still, still)


def test_two_actuators_on_one_freedom_through_a_loop():
    """Crank and rocker of a four-bar always move together."""
    text = shipped_text("four_bar", ("  motor: {on", "  second: {on: rocker_pin}\n  motor: {on"))
    assembly = Model(loads(text)).assembly
    (note,) = assembly.notes
    assert "2 actuators (second, motor) act on only 1 degree of freedom" in note.what
    assert note.remedy
    assert assembly.is_redundant
    assert assembly.findings == ()


def test_two_actuators_on_one_side_of_the_spidermill():
    """The spindle and the inner pin of one side work on the same parallel cranks; the other side is free."""
    text = shipped_text(
        "spidermill",
        ("    actuators:\n      drive: {on: spindle, force: 8 kN}\n", ""),
        (
            "platform:\n  body",
            "actuators: {one: {on: side1.spindle}, two: {on: side1.base_inner_pin}}\nplatform:\n  body",
        ),
    )
    notes = Model(loads(text)).assembly.notes
    assert any(
        "2 actuators (one, two) act on only 1 degree of freedom" in note.what for note in notes
    )
    (unmoved,) = [note.what for note in notes if "no actuator moves 1 of the 2" in note.what]
    assert "side2" in unmoved
    assert "side1" not in unmoved


def test_independent_coordinates_that_are_too_few_or_not_there():
    few = Model(loads(shipped_text("delta", ("independent: [x, y, z]", "independent: [x, y]"))))
    (note,) = few.assembly.notes
    assert "names 2 coordinates (platform.x, platform.y) but the mobility is 3" in note.what
    assert "platform.z" in note.what  # which completes them
    assert few.platform.ports.velocity.columns == ("platform.x", "platform.y", "platform.z")


# Singular poses


def test_a_delta_with_its_forearms_in_one_plane_is_singular():
    """Forearms of 0.40 m lie flat where motor_radius + arm cos(theta) - plate_radius = 0.40: nothing holds z."""
    machine = Model(
        loads(shipped_text("delta", ("forearm_length: 0.48 m", "forearm_length: 0.40 m")))
    )
    theta = np.arccos((0.40 - 0.194 + 0.03) / 0.26)
    flat = np.array([0.0, 0.0, -0.26 * np.sin(theta)])
    state = machine.platform.kinematics(flat)  # the position itself is reached
    assert state.coordinate("leg2.shoulder") == pytest.approx(theta)
    still = np.zeros(3)
    with pytest.raises(PoseError) as caught:
        machine.platform.inverse_dynamics(flat, still, still)
    assert condition(caught.value) > SINGULAR
    near = machine.platform.inverse_dynamics(
        flat + np.array([0, 0, 1e-3]), still, still
    )  # 1 mm away it is finite, but large
    ordinary = machine.platform.inverse_dynamics([0, 0, -0.4], still, still)
    assert np.abs(near.force).min() > 10 * np.abs(ordinary.force).max()


def test_a_five_bar_with_its_links_in_one_line_is_singular():
    """Links of 0.30 m are in one line where the elbows are 0.60 m apart: at crank angles of acos(0.8)."""
    machine = Model(loads(shipped_text("five_bar", ("link_length: 0.35 m", "link_length: 0.30 m"))))
    pose = np.array([0.0, 0.25 * 0.6])
    q = machine.platform.follow(pose).q
    assert q[machine.topology.coordinate_names.index("shoulder_2")] == pytest.approx(np.arccos(0.8))
    samples = np.array([[0.0, 0.25], pose, [0.01, 0.25]])
    start = np.stack([machine.platform.follow(sample).q for sample in samples])
    with pytest.raises(PoseError) as caught:
        machine.platform.inverse_dynamics(samples, np.zeros((3, 2)), np.zeros((3, 2)), start=start)
    assert condition(caught.value) > SINGULAR
    assert "sample 1 of 3" in str(caught.value)  # the two others are regular


def condition(error: PoseError) -> float:
    (problem,) = error.problems
    assert problem.remedy
    (number,) = re.findall(r"condition number ([\d.e+]+)", problem.what)
    return float(number)


# Reach


def reach_gap(base: float, phi: float, target: np.ndarray, arm: float, rod: float) -> float:
    """By how much a rod from a Delta's arm misses a plate joint, m: positive too far, negative too near, 0 in reach.

    The elbow runs on a circle in the leg's plane; nearest and farthest point of a circle are known
    in closed form.
    """
    radial = np.array([np.cos(phi), np.sin(phi), 0.0])
    across = np.array([-np.sin(phi), np.cos(phi), 0.0])
    d = target - base * radial
    height, inside = d @ across, np.hypot(d @ radial, d[2])
    nearest, farthest = np.hypot(height, inside - arm), np.hypot(height, inside + arm)
    return max(nearest - rod, 0.0) if nearest > rod else min(farthest - rod, 0.0)


@given(st.tuples(*(st.floats(low, high) for low, high in ((-0.6, 0.6), (-0.6, 0.6), (-1.1, 0.3)))))
def test_every_pose_of_a_delta_is_in_reach_or_told_by_the_exact_distance(position):
    pose = np.array(position)
    gaps = {}
    for i, phi in enumerate(np.radians([0, 120, 240]), start=1):
        target = pose + 0.03 * np.array([np.cos(phi), np.sin(phi), 0.0])
        gaps[f"leg{i}.forearm"] = reach_gap(0.194, phi, target, 0.26, 0.48)
    if any(0 < abs(gap) < 1e-9 for gap in gaps.values()):
        return  # on the boundary to rounding: either answer is right
    expected = {name: gap for name, gap in gaps.items() if gap}
    if not expected:
        state = model("delta").platform.kinematics(pose)
        residuals, _ = model("delta").assembly.loops.residuals(state.q[None, :])
        assert np.abs(residuals).max() < 1e-12
        return
    with pytest.raises(PoseError) as caught:
        model("delta").platform.kinematics(pose)
    problems = {problem.where: problem.what for problem in caught.value.problems}
    assert set(problems) == set(expected)
    for name, gap in expected.items():
        assert millimeters(problems[name]) == pytest.approx(1e3 * abs(gap), rel=PRINTED)
        assert ("too far away" if gap > 0 else "too near") in problems[name]


def test_samples_out_of_reach_are_counted():
    poses = np.tile([0.0, 0.0, -0.5], (20, 1))
    poses[[3, 5, 8, 9, 11, 12, 17], 2] = -0.9
    with pytest.raises(PoseError) as caught:
        model("delta").platform.kinematics(poses)
    for problem in caught.value.problems:
        assert "samples 3, 5, 8, 9, 11 and 2 more of 20" in problem.what


def test_actuators_out_of_reach():
    """Arms straight outwards put the elbows on a circle of 0.424 m around the plate's joints: forearms are 0.40 m."""
    machine = Model(
        loads(shipped_text("delta", ("forearm_length: 0.48 m", "forearm_length: 0.40 m")))
    )
    machine.forward_kinematics([0.9, 0.9, 0.9])  # with the arms lowered it is in reach
    with pytest.raises(PoseError) as caught:
        machine.forward_kinematics([0.0, 0.0, 0.0])
    assert any("forearm" in problem.where for problem in caught.value.problems)
    assert all(problem.remedy for problem in caught.value.problems)


def hand(count: int) -> str:
    """A chain of joints that all begin at the end of their range, with two coordinates that sway."""
    links = "".join(
        f'<body name="b{i}" pos="0.1 0 0"><joint name="j{i}" axis="0 {i % 2} {1 - i % 2}" range="0 1.5"/>'
        '<inertial mass="0.1" pos="0.05 0 0" diaginertia="1e-4 1e-4 1e-4"/>'
        for i in range(count)
    )
    motors = "".join(f'<motor name="m{i}" joint="j{i}"/>' for i in range(count))
    text = f'<mujoco><compiler angle="radian" autolimits="true"/><worldbody>{links}{"</body>" * count}</worldbody>'
    return f"{text}<actuator>{motors}</actuator></mujoco>"


def test_many_joints_that_begin_at_their_stops_still_move(tmp_path):
    path = tmp_path / "hand.xml"
    path.write_text(hand(16))
    checked = tl.check(tl.load(path))
    assert checked.is_usable, checked.problems
    states = checked.model.assembly.states
    assert len(np.unique(states.round(9), axis=0)) > 20
    assert states.min() >= 0.0
    random = random_states(checked.model, 20, np.random.default_rng(0))
    assert random.distinct_states == 20
    assert random.q.min() >= 0.0


def test_loops_that_miss_by_rounded_numbers_say_so(tmp_path):
    """A linkage on a sphere closes in one direction more than its motion needs, which six digits do not satisfy."""
    text = """<mujoco><worldbody>
     <body name="a"><joint name="ja" axis="0 0 1"/><inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/>
      <body name="b"><joint name="jb" axis="1 0 0"/><inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/>
       <site name="end" pos="0.3 0.2 0.1"/></body></body>
     <body name="c"><joint name="jc" axis="0 1 0"/><inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/>
       <site name="hole" pos="0.3 0.2 0.100001"/></body></worldbody>
     <equality><connect site1="end" site2="hole"/></equality>
     <actuator><motor name="m" joint="ja"/></actuator></mujoco>"""
    path = tmp_path / "sphere.xml"
    path.write_text(text)
    with pytest.raises(AssemblyError, match="cannot be closed at this geometry") as raised:
        tl.Model(tl.load(path))
    assert "rounded numbers in a file" in str(raised.value)


FIVE_BAR = """<mujoco><worldbody>
 <body name="a"><joint name="ja" axis="0 1 0"/><inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/>
  <body name="b" pos="0.2 0 0.1" quat="{turn}"><joint name="jb" axis="0 1 0"/>
   <inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/><site name="end" pos="0.2 0 0.3"/></body></body>
 <body name="c" pos="0.8 0 0"><joint name="jc" axis="0 1 0"/>
  <inertial mass="1" pos="0 0 0.1" diaginertia="0.01 0.01 0.01"/>
  <body name="d" pos="-0.2 0 0.1"><joint name="jd" axis="0 1 0"/>
   <inertial mass="1" pos="-0.1 0 0" diaginertia="0.01 0.01 0.01"/><site name="pin" pos="-0.2 0 0.3"/></body></body>
</worldbody><equality><connect site1="end" site2="pin"/></equality>
<actuator><motor name="ma" joint="ja"/><motor name="mc" joint="jc"/></actuator></mujoco>"""


@pytest.mark.parametrize(("turn", "mobility"), [("1 0 0 0", 2), ("1 1.92e-06 0 3.13e-06", 1)])
def test_loops_that_rounded_directions_lock_are_a_problem(tmp_path, turn, mobility):
    """A five-bar in a plane has one equation too many, which a quaternion of six digits turns into a lock."""
    path = tmp_path / "five_bar.xml"
    path.write_text(FIVE_BAR.format(turn=turn))
    checked = tl.check(tl.load(path))
    assert checked.model.assembly.mobility == mobility
    assert checked.is_usable is (mobility == 2)
    if mobility == 1:
        (problem,) = checked.problems
        assert "redundant equations: 1 (singular" in problem.what
        assert "15 digits" in problem.remedy
        with pytest.raises(AssemblyError, match="nearly, but not exactly, redundant"):
            tl.inverse_dynamics(checked.model)
