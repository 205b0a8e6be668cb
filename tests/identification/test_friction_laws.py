"""Friction in machine files: asymmetric, Stribeck, and of combinations of motors, in all functions.

The reference is a cart on a track with two motors on a belt, in NumPy. It shares no code with the
toolkit.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation_machines import simulated

from tauloop import Model
from tauloop.common.errors import DescriptionError
from tauloop.compiler.c import Compiled
from tauloop.compiler.c.printing.c_helpers import mathematics
from tauloop.equations.formulations import FORMULATIONS
from tauloop.formats.library import loads
from tauloop.formats.mjcf.reader import load_mjcf
from tauloop.formats.mjcf.writer import to_mjcf
from tauloop.formats.urdf.reader import load_urdf
from tauloop.formats.urdf.writer import write_urdf
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.identification import (
    OrdinaryLeastSquares,
    RegressionData,
    fit_regression,
    parameter_ties,
)
from tauloop.identification.parameters.write_back import identified_mechanism
from tauloop.identification.regression.from_log import dynamic_parameters
from tauloop.mechanism.model import Mechanism
from tauloop.motion import POLYNOMIAL_345, Line, fastest_rate, stroke
from tauloop.simulation import ConstantForce

#: Relative difference of two calculations of the same force: rounding.
ROUNDING_TOLERANCE = 1e-12
#: A belt with two motors (H-bot): the carts move by half the sum and half the difference of the
#: motors.
BELT = """
format: tauloop-machine/1
name: belt
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  bridge: {mass: 3 kg}
  head: {mass: 1.2 kg}
joints:
  x:
    type: prismatic
    axis: x
    parent: base
    child: bridge
    friction: {viscous: 4 N s/m, coulomb: 2 N, viscous_asymmetry: 1 N s/m, coulomb_asymmetry: 0.5 N, offset: 0.3 N}
  y:
    type: prismatic
    axis: y
    parent: bridge
    child: head
    friction: {viscous: 3 N s/m, coulomb: 1 N, static: 2.5 N, stribeck: 0.05 m/s}
actuators:
  left: {drives: {x: 50 rad/m, y: 50 rad/m}, inertia: 1e-4 kg m^2}
  right: {drives: {x: 50 rad/m, y: -50 rad/m}, inertia: 1e-4 kg m^2}
losses:
  belt:
    motors: {left: 0.02 m/rad, right: -0.01 m/rad}
    friction: {viscous: 5 N s/m, coulomb: 3 N, static: 4 N, stribeck: 0.1 m/s}
platform: {body: head, independent: [x, y]}
"""


def forces_by_hand(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the motor torques of the belt machine."""
    sign = np.sign(v)
    x = (
        4.2 * a[:, 0]
        + 4 * v[:, 0]
        + 2 * sign[:, 0]
        + np.abs(v[:, 0])
        + 0.5 * np.abs(sign[:, 0])
        + 0.3
    )
    y = 1.2 * a[:, 1] + 3 * v[:, 1] + (1 + 1.5 * np.exp(-((v[:, 1] / 0.05) ** 2))) * sign[:, 1]
    slip = 0.02 * 50 * (v[:, 0] + v[:, 1]) - 0.01 * 50 * (v[:, 0] - v[:, 1])
    belt = 5 * slip + (3 + np.exp(-((slip / 0.1) ** 2))) * np.sign(slip)
    x, y = x + 0.5 * belt, y + 1.5 * belt
    x, y = x + 2 * 1e-4 * 50**2 * a[:, 0], y + 2 * 1e-4 * 50**2 * a[:, 1]
    return np.stack([x + y, x - y], axis=1) / 100.0  # x = 50 (u1 + u2), y = 50 (u1 - u2)


def kinetic(v: np.ndarray) -> float:
    # rotors: 2 x 1e-4 x 50^2 each
    return float(0.5 * np.sum(np.array([4.2 + 0.5, 1.2 + 0.5]) * v**2))


@pytest.fixture(scope="module")
def machine() -> Mechanism:
    return loads(BELT)


@pytest.fixture(scope="module")
def model(machine) -> Model:
    return Model(machine)


@pytest.fixture(scope="module")
def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a motion of the carts, which are sometimes at rest."""
    rng = np.random.default_rng(0)
    q, a = 0.1 * rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    v = rng.normal(size=(200, 2)) * 10.0 ** rng.uniform(-3, 0, size=(200, 2))
    v[:10] = 0.0
    return q, v, a


def test_inverse_dynamics_has_all_terms(model, motion):
    force = model.platform.inverse_dynamics(*motion).force
    np.testing.assert_allclose(
        force,
        forces_by_hand(*motion),
        rtol=ROUNDING_TOLERANCE,
        atol=ROUNDING_TOLERANCE * np.abs(force).max(),
    )


def test_a_urdf_carries_all_of_it_in_its_side_file(machine, motion, tmp_path):
    (side, *_), notes = write_urdf(machine, tmp_path / "belt.urdf")
    assert notes == ("parameters are written as numbers",)
    force = Model(load_urdf(tmp_path / "belt.urdf", side)).platform.inverse_dynamics(*motion).force
    np.testing.assert_allclose(
        force,
        forces_by_hand(*motion),
        rtol=ROUNDING_TOLERANCE,
        atol=ROUNDING_TOLERANCE * np.abs(force).max(),
    )


def test_an_mjcf_keeps_what_mujoco_does_not_apply(machine, motion, tmp_path):
    (tmp_path / "belt.xml").write_text(to_mjcf(machine).text)
    notes = [note for note in to_mjcf(machine).notes if "friction" in note]
    assert notes == [
        "x: MuJoCo does not apply the constant part of its friction",
        "x: MuJoCo does not apply the viscous asymmetry of its friction",
        "x: MuJoCo does not apply the Coulomb asymmetry of its friction",
        "y: MuJoCo does not apply the static part of its friction",
        "loss belt: the static part of its friction cannot be represented in MJCF",
    ]
    (belt,) = machine.losses
    without_static = replace(belt, friction=replace(belt.friction, static=None, stribeck=None))
    expected = (
        Model(replace(machine, losses=(without_static,))).platform.inverse_dynamics(*motion).force
    )
    force = Model(load_mjcf(tmp_path / "belt.xml")).platform.inverse_dynamics(*motion).force
    np.testing.assert_allclose(
        force, expected, rtol=ROUNDING_TOLERANCE, atol=ROUNDING_TOLERANCE * np.abs(force).max()
    )


#: A motor with a negative ratio, and one on two joints; LAW is their friction.
MOTORS = """format: tauloop-machine/1
name: motors
provenance: {status: chosen, source: test}
gravity: [0, 0, 0]
bodies:
  upper: {mass: 1 kg, inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}
  fore: {mass: 1 kg, inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}
joints:
  a:
    type: revolute
    axis: z
    parent: base
    child: upper
    friction: {coulomb: 1 N m, static: 2 N m, stribeck: 0.1 rad/s}
  b: {type: revolute, axis: z, parent: upper, child: fore}
actuators:
  near: {on: a, ratio: -3, friction: {LAW}}
  both: {drives: {a: 1, b: 2}, friction: {LAW}}
platform: {body: fore, independent: [a, b]}
"""
LAW = (
    "viscous: 2 N m s/rad, viscous_asymmetry: 0.7 N m s/rad, coulomb: 0.5 N m, coulomb_asymmetry: 0.2 N m, "
    "static: 0.9 N m, stribeck: 0.05 rad/s, offset: 0.1 N m"
)


def test_friction_of_motors_comes_back_from_an_mjcf(tmp_path):
    machine = loads(MOTORS.replace("LAW", LAW))
    (tmp_path / "motors.xml").write_text(to_mjcf(machine).text)
    rng = np.random.default_rng(0)
    q, a = rng.normal(size=(2, 50, 2))
    v = rng.normal(size=(50, 2)) * 10.0 ** rng.uniform(-3, 0, size=(50, 2))
    forces = []
    for each in (machine, load_mjcf(tmp_path / "motors.xml")):
        motion = Model(each).platform
        forces.append(np.einsum("kij,kj->ki", motion.mass_matrix(q), a) + motion.bias(q, v))
    np.testing.assert_allclose(
        forces[1],
        forces[0],
        rtol=ROUNDING_TOLERANCE,
        atol=ROUNDING_TOLERANCE * np.abs(forces[0]).max(),
    )


@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        (
            ", stribeck: 0.05 rad/s",
            "",
            "joints.x.friction.static",
            "`static` is given without `stribeck`",
        ),
        (
            "static: 2.5 N",
            "static: 0.5 N",
            "joints.x.friction.coulomb",
            "coulomb is 1, and static 0.5 (SI)",
        ),
        (
            "viscous_asymmetry: 1",
            "viscous_asymmetry: 9",
            "joints.x.friction.viscous_asymmetry",
            "is 9, and viscous 4",
        ),
        ("{x: 1, y: 1}", "{}", "losses.belt.of", "the mapping is empty"),
        ("{x: 1, y: 1}", "{x: 1, z: 1}", "losses.belt.of.z", "there is no coordinate named z"),
        (", friction: {viscous: 5 N m s/rad}", "", "losses.belt.friction", "missing"),
        (
            "{viscous: 5 N m s/rad}",
            "{viscous: 5 N s/m}",
            "losses.belt.friction.viscous",
            "is a viscous coefficient",
        ),
    ],
)
def test_side_files_refuse_friction_that_cannot_be(old, new, where, says, tmp_path):
    side = """
format: tauloop-urdf-side/1
joints:
  x:
    friction:
      {viscous: 4 N m s/rad, viscous_asymmetry: 1 N m s/rad, coulomb: 1 N m, static: 2.5 N m, stribeck: 0.05 rad/s}
losses:
  belt: {of: {x: 1, y: 1}, friction: {viscous: 5 N m s/rad}}
"""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    hinges = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{name}_link"/></joint>'
        f'<link name="{name}_link">{inertial}</link>'
        for name, parent in (("x", "ground"), ("y", "x_link"))
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm"><link name="ground"/>{hinges}</robot>')
    path = tmp_path / "side.yaml"
    path.write_text(side)
    assert load_urdf(tmp_path / "arm.urdf", path).losses[0].terms[1][0] == "y"
    assert old in side
    path.write_text(side.replace(old, new))
    with pytest.raises(DescriptionError) as caught:
        load_urdf(tmp_path / "arm.urdf", path)
    ((problems, what),) = [(problem.where, problem.what) for problem in caught.value.problems]
    assert problems == where
    assert says in what


def test_so_has_compiled_code(machine, model, motion):
    compiled = Model(machine, evaluator=Compiled(at_least=0))
    force, expected = (case.platform.inverse_dynamics(*motion).force for case in (compiled, model))
    np.testing.assert_allclose(force, expected, rtol=1e-13, atol=1e-14 * np.abs(expected).max())


@pytest.mark.parametrize("name", [formulation.name for formulation in FORMULATIONS])
def test_every_formulation_has_the_same_friction(machine, motion, name):
    force = Model(machine, formulation=name).platform.inverse_dynamics(*motion).force
    np.testing.assert_allclose(force, forces_by_hand(*motion), rtol=1e-10, atol=1e-11)


def test_forward_dynamics_undoes_it(model, motion):
    q, v, a = motion
    force = forces_by_hand(q, v, a)
    moved = model.platform.forward_dynamics(q, v, force).a
    np.testing.assert_allclose(moved, a, rtol=1e-9, atol=1e-9)


def test_the_regressor_is_linear_in_all_coefficients(model, motion):
    Y = model.platform.regressor(*motion)
    names = [p.name for p in model.parameters]
    for name in (
        "x.viscous_asymmetry",
        "x.coulomb_asymmetry",
        "y.stribeck",
        "belt.viscous",
        "belt.stribeck",
    ):
        assert name in names
    result = Y @ model.pi
    np.testing.assert_allclose(
        result,
        forces_by_hand(*motion),
        rtol=ROUNDING_TOLERANCE,
        atol=ROUNDING_TOLERANCE * np.abs(result).max(),
    )


def test_a_simulation_follows_a_reference_integrator(model):
    """Pushed for half a second without a reversal; only friction dissipates energy."""
    force = np.array([0.35, 0.05])

    def rate(t: float, state: np.ndarray) -> np.ndarray:
        q, v = state[None, :2], state[None, 2:]
        needed, per = forces_by_hand(q, v, np.zeros((1, 2)))[0], np.empty((2, 2))
        for k in range(2):
            per[:, k] = forces_by_hand(q, v, np.eye(2)[[k]])[0] - needed
        return np.concatenate([state[2:], np.linalg.solve(per, force - needed)])

    start = np.array([0.0, 0.0, 0.02, 0.01])
    reference = solve_ivp(rate, (0.0, 0.5), start, rtol=1e-10, atol=1e-12)
    motion = simulated(model, 0.5, q=start[:2], v=start[2:], force=ConstantForce(tuple(force)))
    assert reference.y[:, -1][2:].min() > 0.0
    np.testing.assert_allclose(
        np.concatenate([motion.q[-1], motion.v[-1]]), reference.y[:, -1], rtol=1e-6, atol=1e-8
    )
    assert (
        abs(motion.work[-1] - motion.loss[-1] - kinetic(motion.v[-1]) + kinetic(start[2:])) < 1e-7
    )


def test_what_is_written_is_read_again(machine, model, motion):
    again = loads(dumps(machine))
    assert again.losses[0].is_angular is False
    force = Model(again).platform.inverse_dynamics(*motion).force
    np.testing.assert_allclose(force, model.platform.inverse_dynamics(*motion).force, rtol=1e-13)


def test_leaves_are_found_from_forces_and_written_back(machine, model, motion):
    """Exact forces determine all independent parameters except Stribeck velocities."""
    ties = parameter_ties(model)
    assert not any(name.endswith(".stribeck") for name in ties.parameters)
    assert "y.friction.static" in ties.parameters
    changed = machine.with_values(
        {"y.friction.static": 3.1, "belt.friction.coulomb": 2.2, "x.friction.offset": 0.7}
    )
    data = RegressionData(
        regressor=model.platform.regressor(*motion),
        forces=Model(changed).platform.inverse_dynamics(*motion).force,
        parameters=tuple(p.name for p in model.parameters),
        parameter_units=tuple(p.unit for p in model.parameters),
        outputs=("left", "right"),
        output_units=("N m", "N m"),
        ties=ties,
    )
    result = fit_regression(data, None, OrdinaryLeastSquares())
    by_name = dict(zip(result.base.names, result.values, strict=True))
    assert by_name["y.friction.static"] == pytest.approx(3.1, rel=1e-8)
    assert by_name["belt.friction.coulomb"] == pytest.approx(2.2, rel=1e-8)
    assert by_name["x.friction.offset"] == pytest.approx(0.7, rel=1e-8)
    written = identified_mechanism(model, Model(changed).pi, source="a test")
    expected = forces_by_hand(*motion)
    forces = Model(written).platform.inverse_dynamics(*motion).force
    assert np.abs(forces - expected).max() > 1e-3
    np.testing.assert_allclose(
        forces, Model(changed).platform.inverse_dynamics(*motion).force, rtol=1e-11, atol=1e-12
    )


def test_a_rest_keeps_its_value_while_stiffness_is_sought():
    text = BELT.replace(
        "offset: 0.3 N}", "offset: 0.3 N}\n    spring: {stiffness: 20 N/m, rest: 0.04 m}"
    )
    model = Model(loads(text))
    names = dynamic_parameters(model)
    assert "x.spring.stiffness" in names
    assert "x.spring.rest" not in names
    matrix, offset = model.parameter_map(names)
    values = np.array([model.mechanism.parameters[name].value for name in names])
    np.testing.assert_allclose(matrix @ values + offset, model.pi, rtol=1e-12, atol=1e-15)
    known = dynamic_parameters(model, ["x.spring.stiffness"])
    assert "x.spring.rest" in known
    assert "x.spring.stiffness" not in known


def test_the_shortest_duration_keeps_the_motors_limits():
    """With Stribeck friction forces are not quadratic in the rate, but reach the limits exactly."""
    limited = Model(
        loads(BELT.replace("inertia: 1e-4 kg m^2}", "inertia: 1e-4 kg m^2, force: 0.2 N m}"))
    )
    end = np.array([0.1, 0.2])
    rate = fastest_rate(stroke(limited, Line(np.zeros(2), end), ("x", "y")), POLYNOMIAL_345)
    x = np.linspace(0.0, 1.0, 4001)[1:-1]
    shape = np.polynomial.Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
    q, v, a = (
        scale * part(x)[:, None] * end
        for part, scale in ((shape, 1.0), (shape.deriv(), rate), (shape.deriv(2), rate**2))
    )
    assert np.abs(forces_by_hand(q, v, a)).max() == pytest.approx(0.2, rel=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "static: 2.5 N, stribeck: 0.05 m/s",
            "static: 2.5 N",
            "`static` is given without `stribeck`",
        ),
        (
            "static: 2.5 N, stribeck: 0.05 m/s",
            "stribeck: 0.05 m/s",
            "`stribeck` is given without `static`",
        ),
        ("static: 2.5 N", "static: 0.5 N", "static friction is never below Coulomb friction"),
        (
            "viscous_asymmetry: 1 N s/m",
            "viscous_asymmetry: -6 N s/m",
            "friction would drive the motion in one direction",
        ),
        (
            "coulomb_asymmetry: 0.5 N",
            "coulomb_asymmetry: 2.5 N",
            "friction would drive the motion in one direction",
        ),
        ("motors: {left", "of: {x: 1}\n    motors: {left", "has both `of` and `motors`"),
        ("motors: {left: 0.02 m/rad, right: -0.01 m/rad}", "motors: {middle: 1}", "middle"),
        (
            "motors: {left: 0.02 m/rad, right: -0.01 m/rad}",
            "motors: {left: 1 kg}",
            "is neither an angle nor a length",
        ),
        (
            "motors: {left: 0.02 m/rad",
            "motors: {left: 1",
            "have different units: rotary for one motor, linear for another",
        ),
        (
            "    motors: {left: 0.02 m/rad, right: -0.01 m/rad}\n",
            "",
            "names no coordinate or motor",
        ),
    ],
)
def test_friction_that_cannot_be_is_refused(old, new, says):
    assert old in BELT
    with pytest.raises(DescriptionError, match=says):
        loads(BELT.replace(old, new))


def test_the_exponential_of_generated_code_is_right_to_the_last_places(tmp_path: Path):
    source = (
        f"#include <math.h>\n#include <stdio.h>\n{mathematics()}\nint main(void) {{ double x; "
        + ('while (scanf("%lf", &x) == 1) printf("%.17g\\n", tl_exp(x)); return 0; }')
    )
    (tmp_path / "exp.c").write_text(source)
    subprocess.run(
        ["cc", "-O2", "-w", "-o", tmp_path / "exp", tmp_path / "exp.c", "-lm"], check=True
    )
    x = np.concatenate(
        [np.linspace(-707.0, 709.0, 3001), np.linspace(-1.0, 1.0, 3001), [-1e6, 0.0, -0.0]]
    )
    text = "\n".join(f"{value:.17g}" for value in x)
    printed = subprocess.run(
        [tmp_path / "exp"], input=text, capture_output=True, text=True, check=True
    ).stdout
    values = np.array([float(line) for line in printed.split()])
    assert np.abs(values[:-3] / np.exp(x[:-3]) - 1.0).max() < 4 * np.finfo(float).eps
    assert values[-3:].tolist() == [0.0, 1.0, 1.0]
