"""Lines on drums and sprockets: closed form, MuJoCo's wrapping, differences, balance, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.errors import DescriptionError, PoseError, TauloopError
from tauloop.compiler.c import Compiled, Interpreted

#: Roots and arcs of numbers of the size of one.
ROUNDING = 1e-12
RADIUS = 0.032
ROUTER = """\
format: tauloop-machine/1
name: hanging_router
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {pitch_radius: 32 mm}
bodies:
  carrier: massless
  sled: {mass: 10 kg, inertia: {xx: 0.2 kg m^2, yy: 0.2 kg m^2, zz: 0.2 kg m^2}}
frames:
  left_sprocket: {on: base, at: [-1.5 m, 0, 1 m], turn: [{x: 90 deg}]}
  right_sprocket: {on: base, at: [1.5 m, 0, 1 m], turn: [{x: 90 deg}, {z: 180 deg}]}
joints:
  across: {type: prismatic, axis: x, parent: base, child: carrier}
  up: {type: prismatic, axis: z, parent: carrier, child: sled}
rods:
  left:
    from: left_sprocket
    to: sled
    telescopic: {reference: 1.8 m}
    model: massless
    drum: {radius: pitch_radius, winds: clockwise}
  right:
    from: right_sprocket
    to: sled
    telescopic: {reference: 1.8 m}
    model: massless
    drum: {radius: pitch_radius, winds: counterclockwise}
actuators:
  left_motor: {on: left, ratio: 1 rad / pitch_radius}
  right_motor: {on: right, ratio: 1 rad / pitch_radius}
platform: {body: sled, independent: [across, up]}
"""
# a line from a drum on a swinging arm to a slide next to the plane of the drum
MOVING = """\
format: tauloop-machine/1
name: swinging_drum
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  arm: {mass: 1 kg, center: [0.1 m, 0, 0], inertia: {zz: 0.02 kg m^2, yy: 0.02 kg m^2}}
  slide: {mass: 2 kg}
joints:
  swing: {type: revolute, axis: z, parent: base, child: arm, reference: 10 deg}
  track: {type: prismatic, axis: x, parent: {on: base, at: [0.8 m, 0.3 m, 0.05 m]}, child: slide}
rods:
  line:
    from: {on: arm, at: [0.2 m, 0, 0]}
    to: slide
    telescopic: {reference: 0.6 m}
    model: massless
    drum: {radius: 40 mm, winds: counterclockwise}
actuators: {motor: {on: swing}, winch: {on: line}}
platform: {body: slide, independent: [swing, track]}
"""


@pytest.fixture(scope="module")
def router() -> tl.Model:
    return tl.Model(tl.loads(ROUTER))


@pytest.fixture(scope="module")
def swinging() -> tl.Model:
    return tl.Model(tl.loads(MOVING))


def motions(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    x = rng.uniform(-0.5, 0.5, (count, 2))
    return x, rng.normal(size=(count, 2)), rng.normal(size=(count, 2))


def test_chains_have_the_length_of_tangent_and_arc(router):
    """The chain passes over the top of its sprocket, as in drawings of hanging routers."""
    x = motions(30)[0]
    state = router.inverse_kinematics(x)
    for name, side in (("left", -1.0), ("right", 1.0)):
        along, below = side * 1.5 - x[:, 0], 1.0 - x[:, 1]
        distance = np.hypot(along, below)
        tangent = np.sqrt(distance**2 - RADIUS**2)
        depression = np.arctan2(below, side * along)
        arc = RADIUS * (depression - np.arctan2(tangent, RADIUS))
        np.testing.assert_allclose(state.coordinate(name), tangent + arc, atol=ROUNDING)


@pytest.mark.parametrize("machine", ["router", "swinging"])
def test_rates_and_forces_are_exact(machine, request):
    model = request.getfixturevalue(machine)
    x, v, a = motions(25)
    x = 0.5 * x
    state, h = model.platform.kinematics(x, v, a), 1e-4
    after, before = (
        model.inverse_kinematics(x + s * h * v + 0.5 * h * h * a).q for s in (1.0, -1.0)
    )
    # both errors are third derivatives times the squared step, of about 100 / s^3
    np.testing.assert_allclose((after - before) / (2 * h), state.v, atol=1e-6)
    np.testing.assert_allclose((after - 2 * state.q + before) / h**2, state.a, atol=1e-5)
    forces = model.inverse_dynamics(x, v, a)
    again = model.forward_dynamics(x, v, forces.force)
    np.testing.assert_allclose(again.acceleration, a, atol=1e-9)
    followed = model.forward_kinematics(model.actuator_position(state.q)).q
    np.testing.assert_allclose(followed, state.q, atol=1e-8)


def test_power_of_the_motors_is_the_change_of_energy(swinging):
    """Power u.p' = dT/dt + dV/dt; both energies by central differences."""
    x, v, a = (array[:1] * 0.3 for array in motions(3))
    h = 1e-4

    def energy(t: float) -> float:
        at, rate = x + t * v + 0.5 * t * t * a, v + t * a
        lift = swinging.tool_pose(at)[0, 2, 3]
        return float(swinging.kinetic_energy(at, rate)[0]) + 2.0 * 9.81 * float(lift)

    forces = swinging.inverse_dynamics(x, v, a).force
    rates = swinging.platform.actuator_jacobian(x) @ v[0]
    power = float((forces * rates).sum())
    assert power == pytest.approx((energy(h) - energy(-h)) / (2 * h), abs=1e-6)


def test_lengths_agree_with_mujoco():
    mujoco = extra("mujoco")
    text = """<mujoco><worldbody>
      <site name="a" pos="0.04 -0.5 0"/><site name="side" pos="0.06 0.03 0"/>
      <geom name="drum" type="cylinder" size="0.04 0.2"/>
      <body name="end"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
        <geom type="sphere" size="0.01" mass="1" contype="0" conaffinity="0"/><site name="b"/></body>
      </worldbody>
      <tendon><spatial name="line">
        <site site="a"/><geom geom="drum" sidesite="side"/><site site="b"/></spatial></tendon>
      </mujoco>"""
    engine = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(engine)
    model = tl.Model(
        tl.loads(
            MOVING.replace("{on: arm, at: [0.2 m, 0, 0]}", "base").replace(
                "[0.8 m, 0.3 m, 0.05 m]", "[0, 0.2 m, 0]"
            )
        )
    )
    for along in (-0.3, -0.1, 0.0):
        data.qpos[:] = along, 0.2
        mujoco.mj_forward(engine, data)
        state = model.platform.kinematics([0.1, along], [0.0, 1.0])
        # the line begins 0.5 m before the point from which the drum counts
        assert float(state.coordinate("line")) + 0.5 == pytest.approx(data.ten_length[0], abs=1e-9)
        slope = np.array(data.ten_J).reshape(-1)[0]
        names = model.topology.velocity_names
        assert state.v[names.index("line")] == pytest.approx(slope, abs=1e-9)


def test_the_radius_is_a_parameter_and_is_written(router):
    larger = router.mechanism.with_values(pitch_radius="40 mm")
    lengths = [
        tl.Model(machine).inverse_kinematics([0.1, -0.2]).coordinate("left")
        for machine in (router.mechanism, larger)
    ]
    assert abs(float(lengths[1] - lengths[0])) > 1e-3
    again = tl.Model(tl.loads(tl.dumps(router.mechanism)))
    x = motions(5)[0]
    np.testing.assert_array_equal(again.inverse_kinematics(x).q, router.inverse_kinematics(x).q)


def test_mistakes_are_reported():
    text = ROUTER.replace("radius: pitch_radius", "radius: -1 mm", 1)
    text = text.replace("winds: counterclockwise", "winds: left")
    with pytest.raises(DescriptionError) as caught:
        tl.loads(text)
    wrong = "\n".join(f"{p.where}: {p.what}" for p in caught.value.problems)
    assert "must be positive" in wrong
    assert "rods.right.drum.winds" in wrong
    slender = ROUTER.replace("model: massless", "model: slender", 1)
    with pytest.raises(DescriptionError, match="a rod with a drum must be massless"):
        tl.loads(slender)


def test_formats_and_steps_that_cannot_hold_drums_name_them(router, tmp_path):
    for name in ("router.xml", "router.urdf", "router.sdf"):
        with pytest.raises(DescriptionError, match="winds onto a drum"):
            tl.convert(router.mechanism, tmp_path / name)
    with pytest.raises(TauloopError, match="winds onto a drum"):
        tl.reduce_model(router.mechanism)
    with pytest.raises(TauloopError, match="is not a polynomial"):
        tl.forward_kinematics(router, all_modes=True)
    assert tl.convert(router.mechanism, tmp_path / "router.yaml").status.value == "ok"


def test_exported_code_has_the_drum(router, tmp_path):
    interpreted = tl.Model(router.mechanism, evaluator=tl.compiler.c.Interpreted())
    x, v, a = motions(10)
    np.testing.assert_allclose(
        router.inverse_dynamics(x, v, a).force,
        interpreted.inverse_dynamics(x, v, a).force,
        rtol=1e-10,
    )
    assert "atan2" in tl.export_c(router, tmp_path, functions="positions").files["hanging_router.c"]


def test_cables_without_a_choice_of_tensions_are_compiled() -> None:
    """As many cables as degrees of freedom: their bounds are checked, and nothing is chosen."""
    bounds = "    model: massless\n    tension: {least: 5 N, greatest: 110 N}\n"
    machine = tl.loads(ROUTER.replace("    model: massless\n", bounds))
    position = np.random.default_rng(1).uniform(-0.2, 0.2, (40, 2))
    rest = np.zeros((40, 2))
    forces = [
        tl.Model(machine, evaluator=evaluator).platform.inverse_dynamics(position, rest, rest).force
        for evaluator in (Interpreted(), Compiled(at_least=1), Compiled(at_least=10**9))
    ]
    for force in forces[1:]:
        np.testing.assert_allclose(force, forces[0], rtol=1e-13)
    for evaluator in (Interpreted(), Compiled(at_least=1), Compiled(at_least=10**9)):
        high = tl.Model(machine, evaluator=evaluator).platform
        with pytest.raises(PoseError, match="tension"):
            high.inverse_dynamics(np.array([[0.0, 0.8]]), rest[:1], rest[:1])


def test_a_line_past_the_negative_x_axis_of_its_drum_is_reported():
    """With the drum turned by 180 deg, the sled is near the axis: its height decides on which side."""
    turned = ROUTER.replace("turn: [{x: 90 deg}]", "turn: [{x: 90 deg}, {z: 180 deg}]")
    model = tl.Model(
        tl.loads(
            turned.replace("{on: base, at: [-1.5 m, 0, 1 m]", "{on: base, at: [-1.5 m, 0, 0.1 m]")
        )
    )
    start = model.assembly.q[model.topology.coordinate_names.index("up")]
    below, above = (tl.inverse_kinematics(model, {"across": 0.0, "up": up}) for up in (start, 0.4))
    assert below.status.value == "ok"
    (report,) = [item for item in above.diagnostics if "negative x axis" in item.name]
    assert not report.is_good
    assert f"its computed length jumps by {2 * np.pi * RADIUS:.4g} m" in report.advice
    notes = [str(note) for note in tl.check(model).notes]
    assert any(
        "rods.left.drum" in note and "rotate the frame of the drum" in note for note in notes
    )
    plain = tl.inverse_kinematics(tl.loads(ROUTER), {"across": 0.0, "up": 0.4})
    assert not any("negative x axis" in item.name for item in plain.diagnostics)
