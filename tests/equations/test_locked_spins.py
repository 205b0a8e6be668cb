"""Spins of links between two ball joints are locked by default, and no measure of singularities counts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.equations.assembly import Locks
from tauloop.equations.assembly.closing import close_loops
from tauloop.equations.assembly.freedoms.spins import find_spins
from tauloop.formats.library import loads
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.kinematics.singularities import singularities
from tauloop.kinematics.workspaces.map import _PoseClassifier
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Body, Freedom, Friction, Joint, Placement, Spring
from tauloop.model import Model

#: Two models of one machine close their loops to this, rad or characteristic lengths.
SAME = 1e-9
#: Share of the forces by which two models differ of which one lets the rods' axial inertia (0.25 %
#: of theirs) spin.
AXIAL = 1e-4
#: Of a section, rad.
RANGES = {"pitch": (-0.3, 0.3), "roll": (-0.2, 0.2)}

ANKLE = """
<mujoco model="ankle">
  <compiler angle="radian" autolimits="true"/>
  <worldbody>
    <body name="shank">
      <inertial mass="2" pos="0 0 0" diaginertia="0.1 0.1 0.1"/>
      <body name="crank_l" pos="0 0.03 0.25">
        <inertial mass="0.12" pos="-0.03 0 0" diaginertia="5e-5 8e-5 8e-5"/>
        <joint name="motor_l" axis="0 1 0" range="-1 1"/>
        <body name="rod_l" pos="-0.06 0 0">
          <inertial mass="0.08" pos="0 0 -0.125" diaginertia="4e-4 4e-4 1e-6"/>
          <joint name="rod_l_ball" type="ball" {ball}/>
        </body>
      </body>
      <body name="crank_r" pos="0 -0.03 0.15">
        <inertial mass="0.12" pos="-0.03 0 0" diaginertia="5e-5 8e-5 8e-5"/>
        <joint name="motor_r" axis="0 1 0" range="-1 1"/>
        <body name="rod_r" pos="-0.06 0 0">
          <inertial mass="0.05" pos="0 0 -0.075" diaginertia="1e-4 1e-4 1e-6"/>
          <joint name="rod_r_ball" type="ball" {ball}/>
        </body>
      </body>
      <body name="cross">
        <inertial mass="0.05" pos="0 0 0" diaginertia="1e-5 1e-5 1e-5"/>
        <joint name="pitch" axis="0 1 0" range="-1 1"/>
        <body name="foot">
          <inertial mass="0.9" pos="0.04 0 -0.03" diaginertia="0.001 0.004 0.004"/>
          <joint name="roll" axis="1 0 0" range="-0.5 0.5"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality>
    <connect body1="rod_l" body2="foot" anchor="0 0 -0.25"/>
    <connect body1="rod_r" body2="foot" anchor="0 0 -0.15"/>
  </equality>
  <actuator><motor name="left" joint="motor_l"/><motor name="right" joint="motor_r"/></actuator>
</mujoco>
"""


SLIDER_CRANK = """
format: tauloop-machine/1
name: slider_crank
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  crank: {mass: 1 kg, inertia: {xx: 1e-3 kg m^2, yy: 1e-3 kg m^2, zz: 1e-3 kg m^2}}
  rod: {mass: 1 kg, center: [0, 0, 0.1 m], inertia: {xx: 3e-3 kg m^2, yy: 3e-3 kg m^2, zz: 1e-5 kg m^2}}
  slider: {mass: 1 kg}
joints:
  motor: {type: revolute, axis: x, parent: base, child: crank, reference: 0.3 rad}
  lower: {type: spherical, parent: {on: crank, at: [0, 0, 0.05 m]}, child: rod}
  upper: {type: spherical, parent: {on: slider, at: [0.02 m, 0, 0]}, child: {on: rod, at: [0, 0, 0.2 m]}}
  guide: {type: prismatic, axis: z, parent: {on: base, at: [0, 0, 0.25 m]}, child: slider}
actuators: {motor: {on: motor}}
platform: {body: slider, independent: [guide]}
"""


def ankle(
    folder: Path, ball: str = "", *, has_rods: bool = False, independent: tuple[str, ...] = ()
) -> tl.Mechanism:
    path = folder / "ankle.xml"
    path.write_text(ANKLE.format(ball=ball), encoding="utf-8")
    rods = RodRecognition() if has_rods else None
    return tl.load(
        path, options=ImportOptions(rods=rods, independent=independent, platform_body="foot")
    )


def with_hinges(mechanism: tl.Mechanism) -> tl.Mechanism:
    """The machine with three hinges and two massless bodies for each ball joint on a crank."""
    joints, bodies = [], list(mechanism.bodies)
    for joint in mechanism.joints:
        if not (joint.kind == "spherical" and joint.name.endswith("_ball")):
            joints.append(joint)
            continue
        first, second = Body(name=f"{joint.name}.1"), Body(name=f"{joint.name}.2")
        bodies += [first, second]
        chain = [joint.parent, Placement(body=first.name), Placement(body=second.name), joint.child]
        children = [Placement(body=first.name), Placement(body=second.name), joint.child]
        for axis, parent, child in zip("xyz", chain, children, strict=False):
            hinge = Joint(
                name=f"{joint.name}.{axis}",
                kind="revolute",
                parent=parent,
                child=child,
                axes=(axis,),
            )
            joints.append(hinge)
    return replace(mechanism, joints=tuple(joints), bodies=tuple(bodies))


def test_spins_between_balls_are_locked_and_named(tmp_path: Path) -> None:
    assembly = Model(ankle(tmp_path)).assembly
    assert (assembly.mobility, assembly.passive, assembly.findings) == (2, (), ())
    notes = [note for note in assembly.notes if "is locked" in note.what]
    assert [note.where for note in notes] == ["rod_l_ball.wz", "rod_r_ball.wz"]
    assert "the spin of rod_l is locked" in notes[0].what
    free = Model(ankle(tmp_path), locks=Locks(spins=False)).assembly
    assert (free.mobility, free.passive_names) == (4, ("rod_l_ball.wz", "rod_r_ball.wz"))
    assert not any("is locked" in note.what for note in free.notes)


def test_balls_of_three_hinges_are_locked_too(tmp_path: Path) -> None:
    mechanism = with_hinges(ankle(tmp_path))
    free, locked = Model(mechanism, locks=Locks(spins=False)), Model(mechanism)
    assert (free.assembly.mobility, len(free.assembly.passive)) == (4, 2)
    assert (locked.assembly.mobility, len(locked.assembly.locked)) == (2, 2)
    position = np.array([0.1, -0.05])
    expected = Model(ankle(tmp_path)).inverse_kinematics(position)
    reached = locked.inverse_kinematics(position)
    for name in ("motor_l", "motor_r"):
        assert reached.coordinate(name) == pytest.approx(expected.coordinate(name), abs=SAME)


def test_workspaces_are_those_of_recognised_rods(tmp_path: Path) -> None:
    options = tl.WorkspaceOptions(plane=("pitch", "roll"), resolution=0.1, ranges=RANGES)
    rods = tl.workspace(Model(ankle(tmp_path, has_rods=True)), options)
    assert rods.usable.sum() > 20
    for locks in (Locks(), Locks(spins=False)):
        bodies = tl.workspace(Model(ankle(tmp_path), locks=locks), options)
        assert (bodies.usable == rods.usable).all()
        # the rods' own turns count among the motions of unit length, so that the measure is not the
        # same
        ratio = bodies.arrays["parallel"][rods.usable] / rods.arrays["parallel"][rods.usable]
        assert (ratio > 0.5).all()
        assert (ratio < 1.1).all()


def test_poses_in_code_count_driven_freedoms_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(ankle(tmp_path), locks=Locks(spins=False))
    options = tl.WorkspaceOptions(plane=("pitch", "roll"), resolution=0.1, ranges=RANGES)
    interpreted = tl.workspace(model, options)
    monkeypatch.setattr(_PoseClassifier.prepared, "__defaults__", (1,))
    in_code = tl.workspace(model, options)
    assert (in_code.usable == interpreted.usable).all()
    np.testing.assert_allclose(
        in_code.arrays["parallel"], interpreted.arrays["parallel"], atol=SAME
    )


def test_a_pose_in_which_motors_lose_hold_is_singular_with_free_spins() -> None:
    """The stretched slider crank: its slider cannot move, and a motor on the slider would have no hold of the crank."""
    mechanism = loads(SLIDER_CRANK.replace("motor: {on: motor}", "motor: {on: guide}"))
    model = Model(mechanism, locks=Locks(spins=False))
    assert len(model.assembly.passive) == 1
    measures = []
    for crank in (0.5, 0.02):
        q = model.assembly.q.copy()
        q[model.topology.coordinate_names.index("motor")] = crank
        held = (model.topology.velocity_names.index("motor"),)
        closed, residual = close_loops(model.assembly.loops, q[None], held=held)
        assert residual.max() < SAME
        measures.append(singularities(model, closed).parallel[0])
    assert measures[0] > 0.1
    assert measures[1] < 0.05 * measures[0]


def test_a_spin_that_is_named_as_independent_stays_free(tmp_path: Path) -> None:
    model = Model(ankle(tmp_path, independent=("pitch", "roll", "rod_l_ball.wz")))
    assert (model.assembly.mobility, model.assembly.passive_names) == (3, ("rod_l_ball.wz",))


@pytest.mark.parametrize(
    ("friction", "is_locked"),
    [(Friction(viscous=Constant(0.01)), True), (Friction(coulomb=Constant(0.01)), False)],
)
def test_only_what_does_not_depend_on_axes_may_act_at_a_ball_that_is_replaced(
    tmp_path: Path, friction: Friction, is_locked: bool
) -> None:
    mechanism = ankle(tmp_path).with_freedoms(
        lambda name, freedom: replace(freedom, friction=friction) if "_ball" in name else freedom
    )
    assert Model(mechanism).assembly.mobility == (2 if is_locked else 4)


def test_viscous_friction_of_a_ball_that_is_replaced_gives_the_same_forces(tmp_path: Path) -> None:
    mechanism = ankle(tmp_path, 'damping="0.02"')
    locked, free = Model(mechanism), Model(mechanism, locks=Locks(spins=False))
    velocity, acceleration = np.array([0.7, -0.4]), np.zeros(2)
    reference = locked.platform_position(locked.assembly.q)
    forces = locked.platform.inverse_dynamics(reference, velocity, acceleration)
    state = forces.state
    motors = [state.velocity_names.index(name) for name in ("motor_l", "motor_r")]
    ports = free.hybrid.ports
    assert ports["velocity"].columns[2:] == ("rod_l_ball.wz", "rod_r_ball.wz")
    still = np.concatenate([state.v[motors], np.zeros(2)])
    expected = free.hybrid.inverse_dynamics(np.zeros(4), still, state.a[motors]).forces.force
    assert forces.force == pytest.approx(expected, rel=AXIAL)


def test_a_locked_rod_on_a_crank_follows_all_its_revolution() -> None:
    """The universal joint's axis on the crank is the crank's own, however the rod lies at the reference pose."""
    model = Model(loads(SLIDER_CRANK))
    assert (model.assembly.mobility, model.assembly.passive) == (1, ())
    angles = np.linspace(0.3, 0.3 + 2.0 * np.pi, 25)[:, None]
    state = model.forward_kinematics(angles)
    y, z = -0.05 * np.sin(angles[:, 0]), 0.05 * np.cos(angles[:, 0])
    slider = z + np.sqrt(0.2**2 - 0.02**2 - y**2) - 0.25
    np.testing.assert_allclose(state.coordinate("guide"), slider, atol=SAME)


def flat_rods(folder: Path, second_moment: str) -> tl.Mechanism:
    """The ankle whose left rod has another moment of inertia about its second axis."""
    text = ANKLE.format(ball="").replace(
        'diaginertia="4e-4 4e-4 1e-6"', f'diaginertia="4e-4 {second_moment} 1e-6"'
    )
    path = folder / "flat.xml"
    path.write_text(text, encoding="utf-8")
    return tl.load(path, options=ImportOptions(platform_body="foot"))


def test_rods_that_are_nearly_symmetric_are_locked_and_the_difference_is_stated(
    tmp_path: Path,
) -> None:
    assembly = Model(flat_rods(tmp_path, "4.08e-4")).assembly
    (note,) = [note for note in assembly.notes if note.where == "rod_l_ball.wz"]
    assert assembly.passive == ()
    assert "differ by 0.98 %" in note.what
    # forces are those of the rod as it is: they differ from a symmetric rod's by no more than its
    # asymmetry
    forces = [
        Model(mechanism).platform.inverse_dynamics([0.1, -0.05], [0.3, 0.2], [2.0, -1.0]).force
        for mechanism in (flat_rods(tmp_path, "4.08e-4"), flat_rods(tmp_path, "4e-4"))
    ]
    assert 0.0 < np.abs(forces[0] - forces[1]).max() < 0.02 * np.abs(forces[1]).max()


def test_rods_that_are_far_from_symmetric_keep_their_spin(tmp_path: Path) -> None:
    assert Model(flat_rods(tmp_path, "3e-4")).assembly.passive_names == ("rod_l_ball.wz",)


def test_stops_and_friction_of_hinges_do_not_keep_a_spin_free(tmp_path: Path) -> None:
    """As exporters write them: half a revolution either way, and friction that a hinge at rest does not show."""
    mechanism = with_hinges(ankle(tmp_path))
    freedom = Freedom(lower=-np.pi, upper=np.pi, friction=Friction(viscous=Constant(0.01)))
    hinges = {f"rod_{side}_ball.{axis}" for side in "lr" for axis in "xyz"}
    joints = [
        replace(joint, freedoms=(freedom,)) if joint.name in hinges else joint
        for joint in mechanism.joints
    ]
    mechanism = replace(mechanism, joints=tuple(joints))
    assert Model(mechanism).assembly.mobility == 2
    spring = Spring(stiffness=Constant(1.0))
    sprung = mechanism.with_freedoms(
        lambda name, old: replace(old, spring=spring) if name in hinges else old
    )
    assert Model(sprung).assembly.mobility == 4


PIN = """
format: tauloop-machine/1
name: slider_crank
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  crank: {mass: 1 kg, inertia: {xx: 1e-3 kg m^2, yy: 1e-3 kg m^2, zz: 1e-3 kg m^2}}
  pin: {mass: 0.1 kg, inertia: {xx: 1e-5 kg m^2, yy: 1e-4 kg m^2, zz: 1e-4 kg m^2}}
  rod: {mass: 1 kg, center: [0, 0, 0.1 m], inertia: {xx: 3e-3 kg m^2, yy: 3e-3 kg m^2, zz: 1e-5 kg m^2}}
  slider: {mass: 1 kg}
joints:
  motor: {type: revolute, axis: x, parent: base, child: crank, reference: 0.3 rad}
  seat: {type: revolute, axis: x, parent: {on: crank, at: [0, 0, 0.05 m]}, child: pin}
  bush: {type: revolute, axis: x, parent: pin, child: rod}
  upper: {type: revolute, axis: x, parent: slider, child: {on: rod, at: [0, 0, 0.2 m]}}
  guide: {type: prismatic, axis: z, parent: {on: base, at: [0, 0, 0.25 m]}, child: slider}
actuators: {motor: {on: motor}}
platform: {body: slider, independent: [guide]}
"""


def test_the_spin_of_a_pin_between_two_hinges_is_locked() -> None:
    mechanism = loads(PIN)
    free = Model(mechanism, locks=Locks(spins=False)).assembly
    assert (free.mobility, [spin.bodies for spin in find_spins(free)]) == (2, [("pin",)])
    assert Model(mechanism).assembly.mobility == 1
    coupler = loads(PIN.replace("independent: [guide]", "independent: [guide, seat]"))
    assert Model(coupler).assembly.mobility == 2


DOOR = """
<mujoco><worldbody>
 <body name="door"><joint name="lower" type="ball"/><inertial mass="2" pos="0.4 0 0.5" diaginertia="0.3 0.2 0.1"/>
  <site name="upper" pos="0 0 1"/></body>
 <body name="arm" pos="1 0.6 0"><joint name="motor" axis="0 0 1"/>
  <inertial mass="0.5" pos="-0.2 0 0" diaginertia="0.01 0.02 0.02"/>
  <body name="rod" pos="-0.4 0 0"><joint name="hand" axis="0 0 1"/>
   <inertial mass="0.3" pos="-0.1 -0.3 0" diaginertia="0.01 0.01 0.02"/><site name="grip" pos="-0.2 -0.6 0"/></body>
 </body>
 <site name="post" pos="0 0 1"/></worldbody>
 <equality><connect site1="upper" site2="post"/><connect body1="rod" body2="door" anchor="-0.2 -0.6 0"/></equality>
 <actuator><motor name="closer" joint="motor"/></actuator></mujoco>"""


def test_a_ball_that_turns_about_one_axis_only_is_solved(tmp_path: Path) -> None:
    """A door on two balls: two numbers of its quaternion follow from equations, none is constant."""
    path = tmp_path / "door.xml"
    path.write_text(DOOR, encoding="utf-8")
    machine = tl.load(path)
    checked = tl.check(machine)
    assert checked.is_usable, checked.problems
    assembly = checked.model.assembly
    assert assembly.mobility == 1
    turned = [assembly.topology.velocity_names.index(f"lower.w{axis}") for axis in "xyz"]
    assert not set(turned) & set(assembly.frozen)
    names = assembly.topology.coordinate_names
    start = assembly.q[names.index("motor")]
    for step in (-0.2, 0.2):
        q = checked.model.forward_kinematics([start + step]).q
        assert q[[names.index("lower.qx"), names.index("lower.qy")]] == pytest.approx(
            0.0, abs=1e-12
        )
        assert abs(q[names.index("lower.qz")]) > 0.01
