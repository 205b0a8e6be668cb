"""Cams and polynomials between coordinates: closed forms, differences, MuJoCo and both engines."""

from __future__ import annotations

import numpy as np
import pytest
from extras import extra
from scipy.interpolate import CubicSpline, PchipInterpolator

import tauloop as tl
from tauloop.common.errors import DescriptionError, TauloopError
from tauloop.equations.curves import cubic_pieces
from tauloop.mechanism.curves import CurveTable

#: Sums of a few cubic terms of the size of the table.
ROUNDING = 1e-13
#: Errors of central differences with a step of 1e-5, relative to motions of the size of one.
DIFFERENCE = 1e-8

ANGLES = np.radians([0.0, 60.0, 140.0, 200.0, 290.0, 360.0])
LIFTS = 1e-3 * np.array([0.0, 4.0, 12.0, 10.0, 2.0, 0.0])
POINTS = "[[0 deg, 0 mm], [60 deg, 4 mm], [140 deg, 12 mm], [200 deg, 10 mm], [290 deg, 2 mm], [360 deg, 0 mm]]"
CAM = """\
format: tauloop-machine/1
name: cam
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  shaft: {mass: 0.5 kg, inertia: {xx: 1e-3 kg m^2, yy: 1e-3 kg m^2, zz: 2e-3 kg m^2}}
  follower: {mass: 0.3 kg}
  lever: {mass: 0.2 kg, center: [50 mm, 0, 0], inertia: {xx: 1e-4 kg m^2, yy: 2e-4 kg m^2, zz: 2e-4 kg m^2}}
joints:
  turn: {type: revolute, axis: y, parent: base, child: shaft, reference: 20 deg}
  lift: {type: prismatic, axis: z, parent: base, child: follower}
  swing: {type: revolute, axis: y, parent: base, child: lever, reference: 5 deg, limits: [-60 deg, 60 deg]}
couplings:
  cam:
    of: {lift: 1}
    offset: 30 mm
    curves: {turn: {table: TABLE, periodic: yes}}
  link:
    of: {swing: 1}
    curves: {lift: {polynomial: [0.1 rad, 2 rad/m, 40 rad/m^2, 0, -1000 rad/m^4], about: 31 mm}}
actuators: {motor: {on: turn}}
platform: {body: follower, independent: [turn]}
"""
TEXT = CAM.replace("TABLE", POINTS)


def model_of(text: str) -> tl.Model:
    return tl.Model(tl.loads(text))


@pytest.mark.parametrize("interpolation", ["smooth", "monotone"])
def test_a_cam_follows_its_table(interpolation):
    text = TEXT.replace("periodic: yes", f"periodic: yes, interpolation: {interpolation}")
    model = model_of(text)
    angles = np.linspace(-7.0, 9.0, 301)
    lift = model.inverse_kinematics(angles[:, None]).coordinate("lift") - 0.03
    if interpolation == "smooth":
        curve = CubicSpline(ANGLES, LIFTS, bc_type="periodic")
    else:
        nodes = np.concatenate([ANGLES[:-1] - 2 * np.pi, ANGLES[:-1], ANGLES + 2 * np.pi])
        curve = PchipInterpolator(nodes, np.concatenate([LIFTS[:-1], LIFTS[:-1], LIFTS]))
        assert lift.max() <= LIFTS.max() + ROUNDING
    np.testing.assert_allclose(lift, curve(np.mod(angles, 2 * np.pi)), atol=ROUNDING)
    swing = model.inverse_kinematics(angles[:, None]).coordinate("swing")
    d = lift + 0.03 - 0.031
    np.testing.assert_allclose(swing, 0.1 + 2 * d + 40 * d**2 - 1000 * d**4, atol=ROUNDING)


def test_velocities_and_accelerations_agree_with_differences():
    model = model_of(TEXT)
    x = np.linspace(-4.0, 9.0, 60)[:, None]
    v, a, h = np.full_like(x, 1.3), np.full_like(x, -0.7), 1e-4
    state = model.platform.kinematics(x, v, a)
    after, before = (
        model.inverse_kinematics(x + s * h * v + 0.5 * h * h * a).q for s in (1.0, -1.0)
    )
    np.testing.assert_allclose((after - before) / (2 * h), state.v, atol=DIFFERENCE)
    bent = (after - 2 * state.q + before) / h**2
    np.testing.assert_allclose(bent, state.a, atol=1e-6)


def test_forces_balance_and_agree_with_both_engines():
    extra("mujoco")
    extra("pinocchio")
    model = model_of(TEXT)
    x = np.linspace(0.0, 6.0, 20)[:, None]
    v, a = np.full_like(x, 2.0), np.full_like(x, 5.0)
    forces = model.inverse_dynamics(x, v, a)
    again = model.forward_dynamics(x, v, forces.force)
    np.testing.assert_allclose(again.acceleration, a, rtol=1e-10)
    result = tl.verify(model.mechanism, states=50)
    assert result.status.value == "ok"
    assert len(result.comparisons) >= 4


def test_a_table_continues_straight_with_continuous_derivatives():
    """The pieces of a natural spline meet with two equal derivatives, the outer ones too."""
    table = CurveTable(points=((0.0, 0.0), (1.0, 2.0), (1.5, 1.0), (3.0, 0.5)))
    starts, pieces = cubic_pieces(table)
    for k in range(1, len(starts)):
        u = starts[k] - starts[k - 1]
        c0, c1, c2, c3 = pieces[k - 1]
        end = (((c3 * u + c2) * u + c1) * u + c0, (3 * c3 * u + 2 * c2) * u + c1, 3 * c3 * u + c2)
        np.testing.assert_allclose(end, pieces[k][:3], atol=ROUNDING)
    assert pieces[0][2] == pieces[0][3] == pieces[-1][2] == pieces[-1][3] == 0.0


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (", periodic: yes", "", "can leave the table"),
        ("360 deg, 0 mm", "360 deg, 1 mm", "begins with 0 m and ends with 0.001 m"),
        ("140 deg, 12 mm", "50 deg, 12 mm", "is not above"),
        ("60 deg, 4 mm", "60 deg, 4 deg", "this is an angle (rad), not a length (m)"),
        ("2 rad/m,", "2 m/rad,", "the coefficient of power 1"),
        ("about: 31 mm", "about: 31 deg", "rad"),
        ("{turn: {table", "{lift: {table", "has a ratio and a curve"),
        ("{turn: {table", "{trun: {table", "no coordinate named trun"),
        (
            "polynomial: [0.1 rad",
            "table: [[0 m, 0 rad]], polynomial: [0.1 rad",
            "both `polynomial`",
        ),
    ],
)
def test_mistakes_are_reported(old, new, what):
    assert old in TEXT
    with pytest.raises(DescriptionError) as caught:
        tl.loads(TEXT.replace(old, new))
    assert what in "\n".join(f"{p.where}: {p.what}" for p in caught.value.problems)


def test_limits_within_a_table_are_enough():
    text = TEXT.replace(", periodic: yes", "").replace(
        "reference: 20 deg}", "reference: 20 deg, limits: [5 deg, 355 deg]}"
    )
    assert model_of(text).assembly.mobility == 1


def test_written_files_have_the_same_cams():
    model = model_of(TEXT)
    again = model_of(tl.dumps(model.mechanism))
    x = np.linspace(-1.0, 7.0, 30)[:, None]
    np.testing.assert_array_equal(again.inverse_kinematics(x).q, model.inverse_kinematics(x).q)


def test_all_modes_of_a_cam_are_refused_by_name():
    with pytest.raises(TauloopError, match=r"couplings\.cam\.curves.*is not a polynomial"):
        tl.inverse_kinematics(model_of(TEXT), {"turn": 0.3}, all_modes=True)


MJCF = """\
<mujoco model="crossed">
  <compiler angle="radian"/>
  <worldbody>
    <body name="a"><joint name="x" type="hinge" axis="0 1 0" ref="0.2"/>
      <geom type="sphere" size="0.05" mass="1" pos="0.1 0 0"/></body>
    <body name="b" pos="1 0 0"><joint name="y" type="slide" axis="0 0 1" ref="-0.1"/>
      <geom type="sphere" size="0.05" mass="0.5"/></body>
  </worldbody>
  <equality><joint name="curve" joint1="y" joint2="x" polycoef="0.01 0.3 -0.2 0.1 0.05"/></equality>
  <actuator><motor joint="x"/></actuator>
</mujoco>
"""


def test_polycoef_agrees_with_mujoco(tmp_path):
    mujoco = extra("mujoco")
    path = tmp_path / "crossed.xml"
    path.write_text(MJCF)
    model = tl.Model(tl.load(path))
    engine = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(engine)
    names = model.topology.coordinate_names
    order = [names.index(name) for name in ("x", "y")]
    angles = np.linspace(-0.8, 1.2, 7)
    state = model.actuators.kinematics(angles[:, None], np.ones((7, 1)))
    for q, v in zip(state.q[:, order], state.v[:, order], strict=True):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(engine, data)
        assert data.efc_pos[0] == pytest.approx(0.0, abs=ROUNDING)
        # the velocity satisfies MuJoCo's derivative of the equality
        assert data.efc_vel[0] == pytest.approx(0.0, abs=ROUNDING)
    back = tl.convert(model.mechanism, tmp_path / "back.xml")
    assert back.status.value == "ok"
    again = tl.Model(tl.load(tmp_path / "back.xml"))
    followed = again.actuators.kinematics(angles[:, None])
    for name in ("x", "y"):
        np.testing.assert_allclose(followed.coordinate(name), state.coordinate(name), atol=ROUNDING)


def test_mjcf_names_a_coupling_that_it_cannot_hold(tmp_path):
    with pytest.raises(DescriptionError, match="no tables"):
        tl.convert(tl.loads(TEXT), tmp_path / "cam.xml")
    text = MJCF.replace('joint1="y" joint2="x"', 'tendon1="one" tendon2="two"').replace(
        "<equality><joint", "<equality><tendon"
    )
    tendons = (
        '<tendon><fixed name="one"><joint joint="y" coef="1"/></fixed>'
        '<fixed name="two"><joint joint="x" coef="1"/><joint joint="y" coef="2"/></fixed></tendon>'
    )
    path = tmp_path / "tendons.xml"
    path.write_text(text.replace("<equality>", tendons + "<equality>"))
    with pytest.raises(DescriptionError, match="is a sum of joints"):
        tl.load(path)


@pytest.mark.parametrize("target", ["cam.urdf", "cam.sdf"])
def test_other_formats_keep_cams_in_their_side_files(target, tmp_path):
    model = model_of(TEXT)
    made = tl.convert(model.mechanism, tmp_path / target)
    assert made.status.value == "ok"
    again = tl.Model(tl.load(made.written.files[0], made.written.side))
    x = np.linspace(0.0, 3.0, 9)[:, None]
    names = model.topology.coordinate_names
    order = [again.topology.coordinate_names.index(name) for name in names]
    np.testing.assert_allclose(
        again.platform.kinematics(x).q[:, order], model.platform.kinematics(x).q, atol=ROUNDING
    )


def test_exported_code_has_the_cam(tmp_path):
    """The functions of the generated code agree with those of the interpreter."""
    interpreted = tl.Model(tl.loads(TEXT), evaluator=tl.compiler.c.Interpreted())
    compiled = tl.Model(tl.loads(TEXT))
    x = np.linspace(-3.0, 8.0, 40)[:, None]
    arguments = (x, np.ones_like(x), np.ones_like(x))
    np.testing.assert_allclose(
        compiled.inverse_dynamics(*arguments).force,
        interpreted.inverse_dynamics(*arguments).force,
        rtol=1e-11,
    )
    text = tl.export_c(compiled, tmp_path).files["cam.c"]
    assert "floor" in text
