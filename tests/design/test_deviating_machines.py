"""Machines within deviations, and coordinates that are constant only at exact dimensions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.design.enclosure import Boxes, closed_only
from tauloop.design.tolerances.error_equations import part_parameters
from tauloop.geometry.clearance import rod_clearance

#: Numbers of a machine of the file `delta`, m.
MOTOR, PLATE, ARM, FOREARM = 0.194, 0.03, 0.26, 0.48

WEIGHTS = """
format: tauloop-machine/1
name: weights
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {reach: 0.5 m, heavy: 3 kg, light: 1 kg}
bodies: {arm: {mass: heavy - light, center: [reach, 0, 0]}}
joints:
  turn: {type: revolute, axis: y, parent: base, child: arm, reference: 0 deg}
actuators: {motor: {on: turn, force: 20 N m}}
platform: {body: arm, tool: {at: [reach, 0, 0]}, independent: [turn]}
"""


def with_carts(model: tl.Model, x: np.ndarray) -> np.ndarray:
    """Return coordinates (N, n_q) of a plate at positions (N, 3), with its carts by Newton's method."""
    assembly, shape = model.assembly, model.topology
    carts = [i for i in range(shape.n_v) if i not in {*assembly.independent, *assembly.frozen}]
    at_carts = [shape.q_of_v[i] for i in carts]
    q = np.tile(assembly.q, (len(x), 1))
    start, rows = q[0, :3].copy(), list(assembly.rows)
    for share in np.linspace(0.1, 1.0, 10):
        q[:, :3] = start + share * (x - start)
        for _ in range(8):
            phi, K = assembly.loops.residuals(q)
            q[:, at_carts] -= np.linalg.solve(K[:, rows][:, :, carts], phi[:, rows, None])[:, :, 0]
    assert np.abs(assembly.loops.residuals(q)[0]).max() < 1e-12
    return q


def rod_determinants(model: tl.Model, x: np.ndarray) -> np.ndarray:
    """Return determinants (N,) of the unit wrenches of six rods about the first end on the plate."""
    ends = rod_clearance(model).segments(with_carts(model, x))
    along = ends[:, :, 1] - ends[:, :, 0]
    unit = along / np.linalg.norm(along, axis=2, keepdims=True)
    moment = np.cross(ends[:, :, 1] - ends[:, :1, 1], unit)
    return np.linalg.det(np.concatenate([unit, moment], axis=2))


def test_a_plate_that_can_turn_between_its_links_is_not_certified() -> None:
    """With its carts at rest the plate can turn where the wrenches of its six links are dependent.

    Parallel links keep its orientation at all other poses, where it seems to be constant. No box
    with this pose is proved, because its loops are not closed by a single solution.
    """
    model = tl.Model("gantry_tau_6link")
    low, high = np.array([-0.2306, -0.4462, 0.6335]), np.array([-0.1906, -0.4062, 0.6735])
    signs = np.sign(rod_determinants(model, np.array([low, high])))
    assert signs.prod() < 0.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        is_low = np.sign(rod_determinants(model, middle[None])[0]) == signs[0]
        low, high = (middle, high) if is_low else (low, middle)
    result = tl.certify(model, ranges={axis: (-0.01, 0.01) for axis in "xyz"})
    assert result.verdict == "proved"
    assert result.assumed == ()
    problem = result.problem
    carts = with_carts(model, low[None])[0, -3:]
    assert problem.unknowns[-3:] == ("track1.slide", "track2.slide", "track3.slide")
    for half in (1e-3, 1e-5):
        boxes = Boxes(
            middle=low[None],
            generators=half * np.eye(3)[None],
            unknowns=np.concatenate([np.zeros(3), carts])[None],
            rounding=np.zeros(3),
        )
        assert not closed_only(problem, boxes).has_unique_solution[0]


def test_a_plate_on_links_of_other_lengths_is_certified(tmp_path: Path) -> None:
    """It tilts by errors of its links: within the limits of Newton's solutions, with all loops closed."""
    extra("flint")
    model = tl.Model("gantry_tau_6link")
    deviations = {"triple1.length": 2e-5, "pair2.length": 1e-5}
    ranges = {"x": (-0.001, 0.001), "y": (-0.001, 0.001)}
    x = np.array([[-0.001, 0.001, 0.0], [0.001, 0.001, 0.0]])
    errors = tl.tolerance_map(model, x, tolerances=deviations)
    assert errors.worst[:, 3:].min() > 1e-6
    limits = dict(
        zip(("x", "y", "z", "rx", "ry", "rz"), 1.05 * errors.worst.max(axis=0), strict=True)
    )
    result = tl.certify(model, ranges=ranges, deviations=deviations, limits=limits)
    assert result.verdict == "proved"
    path = result.write_proof(tmp_path / "links.json")
    assert tl.check_certificate(model, path).status is Status.OK
    less = {"rx": 0.95 * errors.worst[:, 3].max()}
    assert tl.certify(model, ranges=ranges, deviations=deviations, limits=less).verdict == "refuted"


def test_deviations_that_leave_a_loop_open_are_refused() -> None:
    with pytest.raises(InputError, match=r"side2\.coupling_outer_pin: y.*cannot be assembled"):
        tl.certify("spidermill", ranges="x=-0.01:0.01", deviations="d1=0.1mm")


def delta_singular_value(pose: np.ndarray, values: dict[str, float]) -> float:
    """Return the smallest singular value of the directions of a delta's forearms, in closed form."""
    rows = []
    for leg in range(3):
        arm = values.get(f"arm_length@leg{leg + 1}", ARM)
        plate = values.get(f"plate_radius@leg{leg + 1}", PLATE)
        turn = Rotation.from_euler("z", 120.0 * leg, degrees=True)
        joint = turn.inv().apply(pose) + np.array([plate - MOTOR, 0.0, 0.0])
        along = np.hypot(joint[0], joint[2])
        reach = FOREARM**2 - joint[1] ** 2
        cosine = (arm**2 + along**2 - reach) / (2.0 * arm * along)
        angle = np.arctan2(joint[2], joint[0]) + np.array([-1.0, 1.0]) * np.arccos(cosine)
        elbow = arm * np.stack([np.cos(angle), 0.0 * angle, np.sin(angle)], axis=1)
        outer = elbow[np.argmax(elbow[:, 0])]
        rows.append(turn.apply((joint - outer) / FOREARM))
    return float(np.linalg.svd(np.array(rows), compute_uv=False)[-1])


def test_a_machine_within_deviations_refutes_what_the_nominal_machine_keeps() -> None:
    ranges = "x=-0.15:0.15,y=-0.15:0.15,z=-0.55:-0.45"
    limit = 0.572
    deviations = {"arm_length": 1e-3, "plate_radius": 1e-3}
    assert tl.certify("delta", ranges=ranges, parallel=limit).verdict == "proved"
    result = tl.certify("delta", ranges=ranges, parallel=limit, deviations=deviations)
    assert result.verdict == "refuted"
    assert result.violated == "parallel singularity"
    assert result.counterexample is not None
    assert result.violating_machine is not None
    nominal = {"arm_length": ARM, "plate_radius": PLATE}
    for name, value in result.violating_machine.items():
        assert abs(value - nominal[name.partition("@")[0]]) <= 1e-3 * (1.0 + 1e-9)
    pose = np.array(list(result.counterexample.values()))
    least = delta_singular_value(pose, result.violating_machine)
    assert result.excess == pytest.approx(least - limit, abs=1e-9)
    assert delta_singular_value(pose, {}) > limit


def test_a_pose_that_a_shorter_machine_does_not_reach_is_a_counterexample() -> None:
    """Straight legs of the delta reach down to sqrt((arm + forearm)^2 - offset^2)."""
    offset = MOTOR - PLATE
    lowest = -np.sqrt((ARM + FOREARM) ** 2 - offset**2)
    ranges = {"z": (lowest + 5e-4, lowest + 0.02)}
    result = tl.certify("delta", ranges=ranges, deviations={"arm_length": 1e-3}, max_boxes=500)
    assert result.verdict == "refuted"
    assert result.violated is not None
    assert result.violated.startswith("reach: leg")
    assert result.counterexample is not None
    assert result.violating_machine is not None
    arms = np.array(list(result.violating_machine.values()))
    z = result.counterexample["platform.z"]
    assert arms.min() + FOREARM < np.hypot(z, offset) < ARM + FOREARM


def test_values_of_parts_are_those_of_a_machine_that_can_be_loaded() -> None:
    """The violating machine, as a machine of its own, violates the stop at the pose."""
    ranges = "z=0.46:0.474"
    result = tl.certify("hexapod", ranges=ranges, deviations={"base_radius": 8e-3}, max_boxes=2000)
    assert tl.certify("hexapod", ranges=ranges).verdict == "proved"
    assert result.verdict == "refuted"
    assert result.violating_machine is not None
    assert result.counterexample is not None
    mechanism = tl.Model("hexapod").mechanism
    parts = part_parameters(mechanism, ("base_radius",)).mechanism
    machine = tl.Model(parts.with_values(result.violating_machine))
    position = [result.counterexample[f"platform.{axis}"] for axis in "xyz"]
    x = np.array([[*position, 1.0, 0.0, 0.0, 0.0]])
    limits = machine.limits
    values = limits.values(machine.inverse_kinematics(x).q)
    beyond = np.maximum(values - limits.upper, limits.lower - values)[:, limits.is_stop].max()
    assert result.excess == pytest.approx(-beyond, abs=1e-9)


def test_a_mass_that_depends_on_deviations_is_refused_also_as_a_difference() -> None:
    machine = tl.loads(WEIGHTS)
    with pytest.raises(InputError, match="depend on heavy, light"):
        tl.certify(
            machine,
            ranges={"turn": (-0.1, 0.1)},
            static_forces=True,
            deviations={"heavy": 0.1, "light": 0.1},
        )
