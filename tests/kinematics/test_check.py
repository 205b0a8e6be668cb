"""`check` says ok only of what works: nothing driven, constant coordinates, starts outside limits, singular references.

Oracles are written out here, from the dimensions in the files: cosine rules, SciPy's solver,
NumPy's singular values.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import fsolve
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import AssemblyError, PoseError
from tauloop.common.result import Status, plain
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.equations.formulations import NEWTON_EULER
from tauloop.formats.library import loads
from tauloop.kinematics import check as checked, random_states

CASES = Path(__file__).parents[1] / "cases"
#: Loops close to 1e-10 m; angles of well conditioned legs follow within a few times that.
CLOSED = 1e-8


def check(path: Path, *, driven: bool = False) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of `tauloop check`, by the function behind it."""
    result = tl.check(load(path), tl.CheckOptions(driven=driven))
    return int(result.status is not Status.OK), dict(plain(result.as_dict()))


def check_text(folder: Path, text: str) -> tuple[int, dict[str, Any]]:
    """`check` of a machine file's text."""
    path = folder / "machine.yaml"
    path.write_text(text, encoding="utf-8")
    return check(path)


def coordinates(answer: dict[str, Any]) -> dict[str, float]:
    return dict(answer["assembly"]["reference"])


def texts(problems: list[dict[str, Any]]) -> str:
    return "\n".join(f"{problem['what']} {problem['remedy']}" for problem in problems)


# What is wrong


def test_a_machine_without_any_motor_is_not_ok():
    code, answer = check(CASES / "no_motor.yaml")
    assert (code, answer["status"]) == (1, "doubtful")
    (problem,) = answer["problems"]
    assert "nothing is driven" in problem["what"]


def test_an_independent_coordinate_that_is_constant_is_refused_and_a_choice_that_works_is_named():
    """The front half of the platform does not turn: its joints turn about z alone, and its rods are parallelograms."""
    code, answer = check(CASES / "par4_xyzw.yaml")
    assert code == 1
    (problem,) = answer["problems"]
    assert "platform.wz is constant" in problem["what"]
    assert "platform.x, platform.y, platform.z, fl" in problem["remedy"]
    model = Model(load(CASES / "par4_xyzw.yaml"))
    with pytest.raises(AssemblyError, match=r"platform\.wz"):
        _ = model.platform
    # the bar does turn
    assert np.ptp(model.assembly.states[:, model.topology.coordinate_names.index("fl")]) > 0.1


CONSTANT = """
format: tauloop-machine/1
name: stuck
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {a: {mass: 1 kg, center: [0.1 m, 0, 0]}, b: {mass: 1 kg, center: [0.1 m, 0, 0]}}
joints:
  first: {type: revolute, axis: z, parent: base, child: a, reference: 0 deg, limits: LIMITS}
  second: {type: revolute, axis: y, parent: {on: a, at: [0.3 m, 0, 0]}, child: b, reference: 10 deg}
actuators: {one: {on: first}, two: {on: second}}
platform: {body: b, independent: [first, second]}
"""


def test_states_that_do_not_differ_decide_nothing(tmp_path):
    code, answer = check_text(tmp_path, CONSTANT.replace("LIMITS", "[-0.0001 deg, 0.0001 deg]"))
    assert code == 1
    assert "poses tried around the reference pose equal it" in texts(answer["problems"])


def test_narrow_limits_are_no_reason_to_stand_still(tmp_path):
    """A joint that turns by some thousandths of a degree is walked through by shorter steps."""
    code, answer = check_text(tmp_path, CONSTANT.replace("LIMITS", "[-0.002 deg, 0.002 deg]"))
    assert (code, answer["problems"]) == (0, [])
    model = Model(loads(CONSTANT.replace("LIMITS", "[-0.002 deg, 0.002 deg]")))
    with pytest.raises(PoseError, match="are the reference pose"):
        random_states(model, 20, np.random.default_rng(0))
    states = random_states(model, 20, np.random.default_rng(0), step=1e-5)
    assert np.ptp(states.q, axis=0).min() > 1e-5


# Starts outside limits


def test_a_start_outside_its_limits_that_cannot_be_moved_inside_is_a_problem(tmp_path):
    """Procrustes: however the plate lies, its six distances are 0.3903 m in root mean square, so none fits 0.35 m."""
    base, plate = (
        0.6 * circle(-10, 10, 110, 130, 230, 250),
        0.4 * circle(-50, 50, 70, 170, 190, 290),
    )
    assert np.linalg.norm(base.mean(axis=0)) + np.linalg.norm(plate.mean(axis=0)) < CLOSED
    R, _ = orthogonal_procrustes(plate, base)
    assert np.sqrt(((base - plate @ R) ** 2).sum() / 6) > 0.38
    text = (CASES / "hexapod_without_reference.yaml").read_text(encoding="utf-8")
    text = text.replace(
        "reference: 0.9 m, limits: [0.7 m, 1.2 m]", "reference: 0.3 m, limits: [0.2 m, 0.35 m]"
    )
    code, answer = check_text(tmp_path, text)
    assert code == 1
    assert "is outside the limits: leg1.strut at 0.3902" in texts(answer["problems"])
    assert "0.04025 m beyond its stop at 0.35 m; leg2.strut at" in texts(answer["problems"])
    assert "no assembled pose within them was found" in texts(answer["problems"])


def test_a_hexapod_without_reference_starts_within_its_struts():
    """Strut vectors and lengths from the file's dimensions; NumPy's singular values of their Plücker lines."""
    code, answer = check(CASES / "hexapod_without_reference.yaml")
    assert code == 0
    assert "closing the loops leads outside the limits: leg1.strut at 0.3902" in texts(
        answer["notes"]
    )
    q = coordinates(answer)
    base = 0.6 * circle(-10, 10, 110, 130, 230, 250)
    plate = 0.4 * circle(-50, 50, 70, 170, 190, 290)
    R = Rotation.from_quat([q[f"platform.q{axis}"] for axis in "xyzw"]).as_matrix()
    arms = plate @ R.T
    struts = arms + [q[f"platform.{axis}"] for axis in "xyz"] - base
    lengths = np.linalg.norm(struts, axis=1)
    assert np.abs(lengths - [q[f"leg{i}.strut"] for i in range(1, 7)]).max() < CLOSED
    assert (lengths > 0.7).all()
    assert (lengths < 1.2).all()
    lines = np.hstack([struts / lengths[:, None], np.cross(arms, struts / lengths[:, None]) / 0.4])
    sigma = np.linalg.svd(lines, compute_uv=False)
    assert sigma[0] / sigma[-1] < 20
    assert answer["undriven"] == []


def circle(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], axis=1)


CUT = """
format: tauloop-machine/1
name: cut_limits
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  crank: {mass: 1 kg, center: [0.05 m, 0, 0]}
  rod: {mass: 1 kg, center: [0.15 m, 0, 0]}
  piston: {mass: 1 kg}
joints:
  c: {type: revolute, axis: z, parent: base, child: crank, reference: 60 deg}
  r: {type: revolute, axis: z, parent: {on: crank, at: [0.1 m, 0, 0]}, child: rod, reference: -75 deg}
  p: {type: prismatic, axis: x, parent: base, child: piston, reference: 0.34 m}
  k: {type: revolute, axis: z, parent: {on: rod, at: [0.3 m, 0, 0]}, child: piston, cut: yes, reference: 45 deg,
    limits: [30 deg, 60 deg]}
actuators: {motor: {on: c}}
platform: {body: piston, independent: [c]}
"""


def test_a_joint_that_closes_a_loop_keeps_its_limits_too(tmp_path):
    """Law of sines: the rod of a slider-crank leans by asin(0.1 sin(60 deg) / 0.3)."""
    code, answer = check_text(tmp_path, CUT)
    assert code == 1
    lean = np.degrees(np.arcsin(0.1 * np.sin(np.radians(60)) / 0.3))
    assert f"at {lean:.6g} deg, {30 - lean:.4g} deg beyond its stop at 30 deg" in texts(
        answer["problems"]
    )
    code, _ = check_text(
        tmp_path, CUT.replace("limits: [30 deg, 60 deg]", "limits: [10 deg, 60 deg]")
    )
    assert code == 0


# Guessed modes


def test_a_planar_machine_without_reference_keeps_its_platform_and_says_that_its_mode_is_a_guess():
    """Two-bar legs by the cosine rule: eight modes, of which ten quick starts find some."""
    code, answer = check(CASES / "planar_3rrr_without_reference.yaml")
    assert code == 0
    q = coordinates(answer)
    assert [q[f"platform.{name}"] for name in ("x", "y", "angle")] == pytest.approx(
        [0, 0, 0], abs=1e-15
    )
    elbow = np.arccos((0.19**2 - 2 * 0.2**2) / (2 * 0.2**2))
    assert [q[f"leg{i}.elbow"] for i in (1, 2, 3)] == pytest.approx([elbow] * 3, abs=CLOSED)
    assert 3 <= answer["other_modes"] <= 7
    note = texts(answer["notes"])
    assert f"ten quick starts find at least {answer['other_modes']} other modes" in note
    assert "leg1.elbow = 123.3 deg" in note
    assert "of 8 poses found from further starts is the reference" in note


def test_a_reference_that_decides_the_mode_is_no_guess():
    text = (CASES / "planar_3rrr_without_reference.yaml").read_text(encoding="utf-8")
    text = text.replace("child: proximal}", "child: proximal, reference: 120 deg}")
    text = text.replace("child: distal}", "child: distal, reference: 60 deg}")
    machine = checked(loads(text))
    assert machine.other_modes >= 3
    assert not any("guess" in note.what for note in machine.notes)


# Singular references


def test_a_parallel_singular_reference_is_told_and_left():
    """Both couplers in line: the distance of the pins is twice their length; the Jacobian by SciPy and differences."""
    code, answer = check(CASES / "five_bar_singular.yaml")
    assert code == 0
    substitute = answer["assembly"]["substitute"]
    assert (substitute["kinds"], substitute["condition_there"]) == (["parallel"], None)
    assert "is singular (parallel" in texts(answer["notes"])
    q = coordinates(answer)
    pin = np.array([0.3, 0]) + 0.2 * (turned(q["s2"]) - turned(q["s1"]))
    assert np.linalg.norm(pin) < 0.4 - 1e-3

    def tip(angles: np.ndarray, s1: float, e1: float) -> np.ndarray:
        s2, e2 = angles
        left = 0.2 * turned(s1) + 0.2 * turned(s1 + e1)
        return left - np.array([0.3, 0]) - 0.2 * turned(s2) - 0.2 * turned(s2 + e2)

    def driven(s1: float, e1: float) -> np.ndarray:
        return np.array([s1, fsolve(tip, [q["s2"], q["e2"]], (s1, e1), xtol=1e-13)[0]])

    step = 1e-5
    J = np.stack(
        [
            (driven(q["s1"] + d1, q["e1"] + d2) - driven(q["s1"] - d1, q["e1"] - d2)) / (2 * step)
            for d1, d2 in ((step, 0), (0, step))
        ],
        axis=1,
    )
    figures = answer["assembly"]["actuator_condition"]
    assert figures["reference"] == pytest.approx(np.linalg.cond(J), rel=1e-6)
    assert 1 <= figures["median"] <= figures["worst"]


def turned(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def test_a_dead_centre_is_told_and_left():
    """Slider-crank: x = r cos c + sqrt(l^2 - r^2 sin^2 c), whose slope vanishes at c = 0. Warnings are errors here."""
    code, answer = check(CASES / "slider_crank_tdc.yaml")
    assert code == 0
    assert answer["assembly"]["substitute"]["kinds"] == ["dead center"]
    assert "motor stands still" in texts(answer["notes"])
    q = coordinates(answer)
    assert q["p"] == pytest.approx(
        0.1 * np.cos(q["c"]) + np.sqrt(0.09 - 0.01 * np.sin(q["c"]) ** 2), abs=CLOSED
    )
    assert abs(q["c"]) > 0.05
    # the numbers are those of the same machine whose file gives that pose
    text = (CASES / "slider_crank_tdc.yaml").read_text(encoding="utf-8")
    text = text.replace("child: crank}", f"child: crank, reference: {q['c']} rad}}")
    there = Model(loads(text))
    assert there.assembly.substitute is None
    assert there.assembly.q == pytest.approx(
        Model(load(CASES / "slider_crank_tdc.yaml")).assembly.q, abs=CLOSED
    )


FLAT = """
format: tauloop-machine/1
name: flat
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  crank: {mass: 1 kg, center: [0.05 m, 0, 0]}
  coupler: {mass: 1 kg, center: [0.15 m, 0, 0]}
  rocker: {mass: 1 kg, center: [0.05 m, 0, 0]}
joints:
  a: {type: revolute, axis: z, parent: base, child: crank, reference: ANGLE}
  b: {type: revolute, axis: z, parent: {on: crank, at: [0.1 m, 0, 0]}, child: coupler, reference: -ANGLE}
  d: {type: revolute, axis: z, parent: {on: base, at: [0.3 m, 0, 0]}, child: rocker, reference: ANGLE}
  c: {type: revolute, axis: z, parent: {on: coupler, at: [0.3 m, 0, 0]}, child: {on: rocker, at: [0.1 m, 0, 0]},
    cut: yes}
actuators: {motor: {on: a}}
platform: {body: coupler, independent: [a]}
"""


@pytest.mark.parametrize("angle", ["0 rad", "1e-8 rad"])
def test_a_flat_parallelogram_is_told_and_left(tmp_path, angle):
    """Its two loop equations have parallel rows where all bars lie on a line."""
    code, answer = check_text(tmp_path, FLAT.replace("ANGLE", angle))
    assert code == 0
    assert answer["assembly"]["substitute"]["kinds"] == ["constraint"]
    q = coordinates(answer)
    a, b, d = q["a"], q["b"], q["d"]
    bars = 0.1 * turned(a) + 0.3 * turned(a + b) - 0.1 * turned(d)
    assert bars == pytest.approx([0.3, 0], abs=CLOSED)
    columns = np.stack(
        [0.1 * turned(a) + 0.3 * turned(a + b), 0.3 * turned(a + b), -0.1 * turned(d)]
    )
    # turned by a quarter: the columns of the loops' Jacobian; infinite on a line
    assert np.linalg.cond(columns) < 1e3


def test_loops_that_stay_singular_are_a_problem(tmp_path):
    text = FLAT.replace("ANGLE", "0 rad").replace(
        "reference: 0 rad", "limits: [-1e-6 rad, 1e-6 rad], reference: 0 rad"
    )
    code, answer = check_text(tmp_path, text)
    assert code == 1
    assert "poses tried around the reference pose equal it" in texts(answer["problems"])


# Freedoms that nothing drives

RODS = """
format: tauloop-machine/1
name: floating
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  hull: {mass: 10 kg, inertia: {xx: 1 kg m^2, yy: 1 kg m^2, zz: 1 kg m^2}}
  arm: {mass: 1 kg, center: [0.2 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}
  top: {mass: 1 kg, inertia: {xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}
joints:
  float: {type: free, parent: base, child: hull}
  shoulder: {type: revolute, axis: y, parent: {on: hull, at: [0.1 m, 0, 0]}, child: arm}
  whirl: {type: revolute, axis: x, parent: {on: arm, at: [0.4 m, 0, 0]}, child: top}
actuators: {motor: {on: shoulder}}
platform: {body: arm, independent: [shoulder]}
"""


def test_freedoms_that_nothing_drives_are_named_with_their_kind_and_refused_on_request(tmp_path):
    path = tmp_path / "floating.yaml"
    path.write_text(RODS, encoding="utf-8")
    code, answer = check(path)
    assert code == 0
    kinds = {freedom["name"]: freedom["kind"] for freedom in answer["undriven"]}
    floating = [f"float.{name}" for name in ("vx", "vy", "vz", "wx", "wy", "wz")]
    assert len(kinds) == 7
    assert kinds["whirl"] == "spin of top"
    assert sorted(kind for name, kind in kinds.items() if name != "whirl") == [
        "floating base"
    ] * len(floating)
    code, answer = check(path, driven=True)
    assert code == 1
    assert "nothing drives 7 of the 8 degrees of freedom" in texts(answer["problems"])
    assert "whirl (spin of top)" in texts(answer["problems"])
    locked = Model(loads(RODS), locks=Locks(names=("whirl",)))
    assert len(checked(locked).undriven) == 6


@pytest.mark.parametrize("crank", [1e-6, 1.745e-5, 1e-4, 6e-4, 0.1])
def test_a_start_near_a_dead_centre_is_named_and_works(crank, tmp_path):
    # piston at crank angle c: x = a cos c + sqrt(l^2 - a^2 sin^2 c); so near that closing does not
    # move it
    piston = float(0.1 * np.cos(crank) + np.sqrt(0.09 - (0.1 * np.sin(crank)) ** 2))
    text = (CASES / "slider_crank_tdc.yaml").read_text(encoding="utf-8")
    text = text.replace("independent: [c]", "independent: [p]").replace(
        "child: crank}", f"child: crank, reference: {crank} rad}}"
    )
    text = text.replace("reference: 0.4 m", f"reference: {piston!r} m")
    path = tmp_path / "machine.yaml"
    path.write_text(
        text.replace("child: rod}", f"child: rod, reference: {-crank * 4 / 3} rad}}"),
        encoding="utf-8",
    )
    code, answer = check(path)
    assert code == 0
    notes = texts(answer["notes"])
    assert ("is singular" in notes) == (crank < 1e-4)

    assert ("is close to a singular pose: loop condition number" in notes) == (1e-4 <= crank < 1e-3)
    there = Model(load(path))
    state = there.inverse_kinematics(there.platform_position(there.assembly.q))
    assert state.q == pytest.approx(there.assembly.q, abs=CLOSED)


# Functions that cannot be built


def test_functions_that_cannot_be_built_are_a_problem() -> None:
    """A formulation with a symbol that nothing computes: CasADi refuses each function of its forces."""

    def forces(mechanism: Any, motion: Any, entries: Any) -> ca.SX:
        return ca.SX.sym("nothing", motion.v.size1())

    broken = replace(NEWTON_EULER, name="broken", forces=forces)
    inspection = tl.check(Model(load("five_bar"), formulation=broken))
    assert not inspection.is_usable
    assert [problem.where for problem in inspection.problems] == ["platform", "actuators"]
    for problem in inspection.problems:
        assert "cannot be built" in problem.what
        assert "nothing" in problem.what
    assert tl.check(Model(load("five_bar"))).is_usable


HINGE_IN_BALL = """
<mujoco model="shoulder">
  <worldbody>
    <body name="arm">
      <joint name="hinge" type="hinge" axis="0 1 0"/>
      <joint name="ball" type="ball" pos="0 0 HEIGHT"/>
      <inertial mass="2" pos="0 0.05 -0.5" diaginertia="0.1 0.12 0.05"/>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="hinge"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize(("height", "is_singular"), [("0", True), ("-0.3", False)])
def test_a_motion_without_inertia_has_a_note(tmp_path, height: str, is_singular: bool) -> None:
    """MuJoCo warns of a singular inertia matrix where the axis of a hinge passes through a ball."""
    path = tmp_path / "shoulder.xml"
    path.write_text(HINGE_IN_BALL.replace("HEIGHT", height))
    notes = [str(note) for note in tl.check(path).notes if note.where == "mass matrix"]
    assert len(notes) == is_singular
    if is_singular:
        assert "a motion of hinge, ball.wy has no inertia" in notes[0]
