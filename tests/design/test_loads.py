"""Certified forces, tensions, errors, cones, radii and cylinders, against routes without intervals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra
from scipy.optimize import linprog

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.design.domain import covers, is_outside_cylinder

DELTA_BOX = "x=-0.06:0.06,y=-0.06:0.06,z=-0.51:-0.49"
#: Values above or below an extreme of samples that a proof or a refutation needs.
ABOVE, BELOW = 1.05, 0.97
#: Rounding of forces and distances.
ROUNDING = 1e-9


def with_force(name: str, force: float) -> tl.Model:
    """Return a shipped machine whose motors have another force limit."""
    mechanism = tl.load(name)
    motors = tuple(replace(motor, force=force) for motor in mechanism.actuators)
    return tl.Model(replace(mechanism, actuators=motors))


def samples(ranges: dict[str, tuple[float, float]], n: int) -> np.ndarray:
    """Return random positions (n, k), with all corners of the ranges."""
    rng = np.random.default_rng(11)
    low, high = np.array(list(ranges.values())).T
    shares = rng.uniform(size=(n, len(low)))
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * len(low)), -1).reshape(-1, len(low))
    shares[: len(corners)] = corners
    return low + (high - low) * shares


def static_forces(model: tl.Model, x: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Return motor forces at rest by inverse dynamics (N, n_u)."""
    zero = np.zeros_like(x)
    return np.asarray(model.inverse_dynamics(x, zero, zero, wrench=wrench).force)


def delta_forces(model: tl.Model, x: np.ndarray) -> np.ndarray:
    """Return the torques (N, 4, 3) at the corners of the wrench fx = +-5 N, fz = -20 N or 0."""
    corners = [(fx, fz) for fx in (-5.0, 5.0) for fz in (-20.0, 0.0)]
    wrenches = [np.array([fx, 0.0, fz, 0.0, 0.0, 0.0]) for fx, fz in corners]
    return np.stack([static_forces(model, x, np.tile(w, (len(x), 1))) for w in wrenches], axis=1)


DELTA_RANGES = {"x": (-0.06, 0.06), "y": (-0.06, 0.06), "z": (-0.51, -0.49)}


def test_motor_forces_within_limits_are_proved_and_checked(tmp_path: Path) -> None:
    extra("flint")
    most = float(np.abs(delta_forces(tl.Model("delta"), samples(DELTA_RANGES, 2000))).max())
    model = with_force("delta", ABOVE * most)
    claim = {"static_forces": True, "wrenches": "fx=-5:5,fz=-20:0"}
    result = tl.certify(model, ranges=DELTA_BOX, **claim)
    assert result.verdict == "proved"
    check = tl.check_certificate(model, result.write_proof(tmp_path / "forces.json"))
    assert check.status is Status.OK


def test_motor_forces_beyond_limits_are_refuted() -> None:
    most = float(np.abs(delta_forces(tl.Model("delta"), samples(DELTA_RANGES, 2000))).max())
    model = with_force("delta", BELOW * most)
    result = tl.certify(model, ranges=DELTA_BOX, wrenches="fx=-5:5,fz=-20:0")
    assert result.verdict == "refuted"
    assert result.violated is not None
    assert result.violated.endswith(": force")
    assert result.counterexample is not None
    assert result.excess is not None
    x = np.array([list(result.counterexample.values())])
    motor = [m.name for m in model.mechanism.actuators].index(result.violated.split(":")[0])
    largest = float(np.abs(delta_forces(model, x)[0, :, motor]).max())
    assert largest - BELOW * most == pytest.approx(-result.excess, abs=ROUNDING)


def test_forces_and_errors_of_a_serial_arm_are_certified(tmp_path: Path) -> None:
    """Without loops; its torques are those of inverse dynamics."""
    extra("flint")
    model = tl.Model("pendulum_arm")
    x = samples(dict.fromkeys(model.platform.ports.position.columns, (0.2, 0.3)), 500)
    force = np.zeros((len(x), 6))
    most = float(np.abs(static_forces(model, x, force)).max())
    ranges = dict.fromkeys(model.platform.ports.position.columns, (0.2, 0.3))
    proved = with_force("pendulum_arm", ABOVE * most)
    result = tl.certify(proved, ranges=ranges, static_forces=True)
    assert result.verdict == "proved"
    check = tl.check_certificate(proved, result.write_proof(tmp_path / "arm.json"))
    assert check.status is Status.OK
    weak = with_force("pendulum_arm", BELOW * most)
    assert tl.certify(weak, ranges=ranges, static_forces=True).verdict == "refuted"


def test_errors_by_encoders_are_those_of_the_tolerance_map(tmp_path: Path) -> None:
    extra("flint")
    x = samples(DELTA_RANGES, 500)
    worst = tl.tolerance_map("delta", x, encoders={"*": "50 urad"}).worst[:, :3].max(axis=0)
    box = {"ranges": DELTA_BOX, "encoders": "*=50 urad"}
    limits = dict(zip("xyz", (ABOVE * worst).tolist(), strict=True))
    result = tl.certify("delta", limits=limits, **box)
    assert result.verdict == "proved"
    check = tl.check_certificate("delta", result.write_proof(tmp_path / "errors.json"))
    assert check.status is Status.OK
    refuted = tl.certify("delta", limits=limits | {"z": BELOW * worst[2]}, **box)
    assert refuted.verdict == "refuted"
    assert refuted.violated == "error of the tool: z"
    assert refuted.counterexample is not None
    assert refuted.excess is not None
    pose = np.array([list(refuted.counterexample.values())])
    error = tl.tolerance_map("delta", pose, encoders={"*": "50 urad"}).worst[0, 2]
    assert BELOW * worst[2] - error == pytest.approx(refuted.excess, abs=1e-12)


# Cables


CORNERS = np.array(
    [[a, b] for a, b in ((-1, -1), (-1, -1), (1, -1), (1, -1), (1, 1), (1, 1), (-1, 1), (-1, 1))]
)
PLATE = 0.05 * np.array(
    [
        [-2, -5, 3],
        [-5, -2, -3],
        [2, -5, 3],
        [5, -2, -3],
        [2, 5, 3],
        [5, 2, -3],
        [-2, 5, 3],
        [-5, 2, -3],
    ]
)
ANCHORS = np.column_stack([2.0 * CORNERS, 3.0 * np.array([0, 1] * 4)])
WEIGHT = 12.0 * 9.81


def pulls(x: np.ndarray) -> np.ndarray:
    """Return the wrenches (6, 8) of unit tensions on the plate at a position, in closed form."""
    u = ANCHORS - x - PLATE
    u /= np.linalg.norm(u, axis=1)[:, None]
    return np.concatenate([u, np.cross(PLATE, u)], axis=1).T


def least_reserve(x: np.ndarray, force: np.ndarray) -> float:
    """Return by linear programming how far tensions are from 20 N and 1 500 N; negative if beyond."""
    load = np.array([0.0, 0.0, WEIGHT, 0.0, 0.0, 0.0]) - force
    A = np.hstack([pulls(x), np.zeros((6, 1))])
    sides = np.vstack(
        [np.hstack([-np.eye(8), np.ones((8, 1))]), np.hstack([np.eye(8), np.ones((8, 1))])]
    )
    bounds = [(None, None)] * 9
    ends = np.append(np.full(8, -20.0), np.full(8, 1500.0))
    result = linprog([0.0] * 8 + [-1.0], A_ub=sides, b_ub=ends, A_eq=A, b_eq=load, bounds=bounds)
    return float(result.x[-1])


CABLE_RANGES = {"x": (-0.05, 0.05), "y": (-0.05, 0.05), "z": (1.45, 1.55)}
CABLE_BOX = "x=-0.05:0.05,y=-0.05:0.05,z=1.45:1.55"


def test_tensions_of_a_cable_robot_are_proved_and_checked(tmp_path: Path) -> None:
    extra("flint")
    result = tl.certify("cable_robot", ranges=CABLE_BOX, wrenches="fx=-50:50,fz=-100:0")
    assert result.verdict == "proved"
    for x in samples(CABLE_RANGES, 12):
        for fx, fz in ((-50.0, -100.0), (50.0, -100.0), (-50.0, 0.0), (50.0, 0.0)):
            assert least_reserve(x, np.array([fx, 0.0, fz, 0.0, 0.0, 0.0])) > 0.0
    check = tl.check_certificate("cable_robot", result.write_proof(tmp_path / "cables.json"))
    assert check.status is Status.OK


def test_a_wrench_that_cables_cannot_hold_is_refuted() -> None:
    """The pose of the counterexample has no tensions within their bounds, by linear programming."""
    ranges = "x=-1.7:1.7,y=-0.1:0.1,z=1.4:1.6"
    result = tl.certify("cable_robot", ranges=ranges, wrenches="my=-400:400")
    assert result.verdict == "refuted"
    assert result.violated == "forces within limits"
    assert result.counterexample is not None
    assert result.excess is not None
    x = np.array([result.counterexample[f"platform.{axis}"] for axis in "xyz"])
    turned = [result.counterexample[f"platform.{axis}"] for axis in ("rx", "ry", "rz")]
    assert turned == [0.0, 0.0, 0.0]
    reserves = [least_reserve(x, np.array([0.0, 0, 0, 0, my, 0])) for my in (-400.0, 400.0)]
    assert min(reserves) < 0.0


# Damaged proofs


def less_tension(claims: dict[str, Any]) -> None:
    """Claim a wrench that the cables cannot hold."""
    claims["wrench"][4] = [-2000.0, 2000.0]


def other_errors(claims: dict[str, Any]) -> None:
    """Claim a smaller error of the tool."""
    claims["limits"] = {"x": 1e-6}
    claims["encoders"] = {"leg1.motor": 1e-3, "leg2.motor": 1e-3, "leg3.motor": 1e-3}


def wider_wrench(claims: dict[str, Any]) -> None:
    """Claim a wrench beyond the motors."""
    claims["forces"] = True
    claims["wrench"] = [[0.0, 0.0], [0.0, 0.0], [-1e4, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def narrow_cone(claims: dict[str, Any]) -> None:
    """Claim a cone that the forearms leave."""
    claims["cones"] = {"leg1.forearm.start": 0.02}


def thick_rods(claims: dict[str, Any]) -> None:
    """Claim rods that are thicker than their distance."""
    claims["radii"] = {"leg1.forearm": 0.2, "leg2.forearm": 0.2}


@pytest.fixture(scope="module")
def delta_proof(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a certificate that holds."""
    extra("flint")
    folder = tmp_path_factory.mktemp("delta")
    path = tl.certify("delta", ranges=DELTA_BOX).write_proof(folder / "delta.json")
    assert tl.check_certificate("delta", path).status is Status.OK
    return path.read_text()


@pytest.mark.parametrize("change", [other_errors, wider_wrench, narrow_cone, thick_rods])
def test_a_raised_claim_fails(
    change: Callable[[dict[str, Any]], None], delta_proof: str, tmp_path: Path
) -> None:
    proof, path = json.loads(delta_proof), tmp_path / "delta.json"
    change(proof["claims"])
    path.write_text(json.dumps(proof))
    assert tl.check_certificate("delta", path).status is Status.DOUBTFUL


@pytest.mark.parametrize(
    ("claim", "value", "text"),
    [
        ("wrench", [[0.0, 1.0]], "six ranges"),
        ("wrench", "fx", "damaged"),
        ("limits", {"x": float("nan")}, "damaged"),
        ("radii", ["leg1.forearm"], "damaged"),
        ("mass", 1.0, "damaged"),
    ],
)
def test_damaged_claims_are_refused(claim: str, value: object, text: str, tmp_path: Path) -> None:
    extra("flint")
    path = tl.certify("delta", ranges="x=-0.01:0.01").write_proof(tmp_path / "delta.json")
    proof = json.loads(path.read_text())
    proof["claims"][claim] = value
    path.write_text(json.dumps(proof))
    with pytest.raises(InputError, match=text):
        tl.check_certificate("delta", path)


def test_claims_on_what_is_not_there_fail(tmp_path: Path) -> None:
    extra("flint")
    path = tl.certify("delta", ranges="x=-0.01:0.01").write_proof(tmp_path / "delta.json")
    proof = json.loads(path.read_text())
    proof["claims"]["radii"] = {"leg9.forearm": 0.01}
    path.write_text(json.dumps(proof))
    assert "leg9.forearm" in tl.check_certificate("delta", path).problems[0]


def test_a_raised_wrench_of_cables_fails(tmp_path: Path) -> None:
    extra("flint")
    result = tl.certify("cable_robot", ranges="x=-0.02:0.02,z=1.45:1.55", wrenches="my=-5:5")
    path = result.write_proof(tmp_path / "cables.json")
    assert tl.check_certificate("cable_robot", path).status is Status.OK
    proof = json.loads(path.read_text())
    less_tension(proof["claims"])
    path.write_text(json.dumps(proof))
    assert tl.check_certificate("cable_robot", path).status is Status.DOUBTFUL


# Radii and cones


def test_radii_of_rods_count_in_their_clearance(tmp_path: Path) -> None:
    """A clearance of center lines is that of rods with radii and a smaller clearance."""
    extra("flint")
    ranges = "x=-0.02:0.02,y=-0.02:0.02,z=-0.02:0.02"
    lines = tl.certify("gantry_tau_5dof", ranges=ranges, clearance="0.08 m")
    rods = tl.certify(
        "gantry_tau_5dof", ranges=ranges, clearance="0.02 m", rod_radii={"*": "30 mm"}
    )
    assert lines.verdict == rods.verdict == "proved"
    assert np.array_equal(lines.outcome.level, rods.outcome.level)
    check = tl.check_certificate("gantry_tau_5dof", rods.write_proof(tmp_path / "rods.json"))
    assert check.status is Status.OK
    thick = tl.certify("gantry_tau_5dof", ranges=ranges, rod_radii={"*": "125 mm"})
    assert thick.verdict == "refuted"
    assert thick.violated is not None
    assert thick.violated.startswith("clearance")


def test_radii_in_the_file_are_those_of_the_tubes() -> None:
    result = tl.certify("examples/elastic/gantry_tau.yaml", ranges="x=-0.01:0.01", rod_radii="file")
    assert set(result.claims.radii.values()) == {0.025}
    with pytest.raises(InputError, match="gives no cross section"):
        tl.certify("hexapod", ranges="x=-0.01:0.01", rod_radii="file")


def test_cones_of_single_ends_are_angles_of_samples(tmp_path: Path) -> None:
    """Angles of the first leg to its direction at the reference, in closed form."""
    extra("flint")
    ranges = {"x": (-0.03, 0.03), "y": (-0.03, 0.03), "z": (0.35, 0.39)}
    A = 0.35 * np.array([np.cos(np.radians(10)), np.sin(np.radians(10)), 0.0])
    B = 0.20 * np.array([np.cos(np.radians(50)), np.sin(np.radians(50)), 0.0])
    d = samples(ranges, 2000) + B - A
    reference = tl.Model("hexapod").platform_position(tl.Model("hexapod").assembly.q[None])[0, :3]
    e = reference + B - A
    cosines = d @ e / np.linalg.norm(d, axis=1) / np.linalg.norm(e)
    most = float(np.arccos(cosines.min()))
    box = "x=-0.03:0.03,y=-0.03:0.03,z=0.35:0.39"
    proved = tl.certify("hexapod", ranges=box, cones={"leg1.strut.start": ABOVE * most})
    assert proved.verdict == "proved"
    check = tl.check_certificate("hexapod", proved.write_proof(tmp_path / "cone.json"))
    assert check.status is Status.OK
    refuted = tl.certify("hexapod", ranges=box, cones={"leg1.strut.*": BELOW * most})
    assert refuted.verdict == "refuted"
    assert refuted.violated == "leg1.strut: cone at its start"


# Cylinders


def test_a_disk_is_proved_where_its_square_is_not(tmp_path: Path) -> None:
    """The corners of the square are beyond reach; every proved box meets the disk."""
    extra("flint")
    ranges = {"ranges": "x=-0.14:0.14,y=0.29:0.57"}
    disk = tl.certify("five_bar", cylinder=("x", "y"), **ranges)
    square = tl.certify("five_bar", max_boxes=2 * disk.evaluated, **ranges)
    assert square.verdict != "proved"
    assert disk.verdict == "proved"
    outcome = disk.outcome
    assert not covers(outcome.level, outcome.index)
    assert covers(outcome.level, outcome.index, (0, 1))
    path = disk.write_proof(tmp_path / "disk.json")
    assert tl.check_certificate("five_bar", path).status is Status.OK
    proof = json.loads(path.read_text())
    proof["claims"]["round"] = []
    path.write_text(json.dumps(proof))
    assert tl.check_certificate("five_bar", path).status is Status.DOUBTFUL
    assert not np.isnan(five_bar_reach(2000)).any()


def five_bar_reach(n: int) -> np.ndarray:
    """Return the joints of the five-bar at random positions in the disk (n, n_q)."""
    rng = np.random.default_rng(2)
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, n), 0.14 * np.sqrt(rng.uniform(size=n))
    x = np.stack([radius * np.cos(angle), 0.43 + radius * np.sin(angle)], axis=1)
    return np.asarray(tl.Model("five_bar").inverse_kinematics(x).q)


def test_every_box_of_a_cylinder_is_needed(tmp_path: Path) -> None:
    extra("flint")
    ranges = "x=-0.1:0.1,y=-0.1:0.1,z=-0.5:-0.46"
    result = tl.certify("delta", ranges=ranges, cylinder=("x", "y"), parallel=0.3)
    assert result.verdict == "proved"
    path = result.write_proof(tmp_path / "cylinder.json")
    assert tl.check_certificate("delta", path).status is Status.OK
    proof = json.loads(path.read_text())
    proof["boxes"].pop()
    proof["solutions"].pop()
    path.write_text(json.dumps(proof))
    assert tl.check_certificate("delta", path).status is Status.DOUBTFUL


def test_a_counterexample_is_in_the_cylinder() -> None:
    ranges = "x=-0.4:0.4,y=-0.4:0.4,z=-0.5:-0.46"
    result = tl.certify("delta", ranges=ranges, cylinder=("x", "y"))
    assert result.verdict == "refuted"
    assert result.counterexample is not None
    position = [result.counterexample[f"platform.{axis}"] for axis in "xy"]
    assert np.hypot(*position) <= 0.4
    fractions = np.array([[1.0, 0.5], [0.5, 0.5], [0.9, 0.9]])
    assert is_outside_cylinder(fractions, (0, 1)).tolist() == [False, False, True]


def test_the_largest_cylinder_ends_at_the_stop() -> None:
    """The largest disk of the delta at one height; every sample is within, and its rim nearly is."""
    result = tl.certify(
        "hexapod",
        ranges="x=-0.05:0.05,y=-0.05:0.05",
        pose="z=0.36",
        cylinder=("x", "y"),
        maximize_box=True,
        max_boxes=3000,
    )
    assert result.verdict == "proved"
    radius = result.ranges["platform.x"][1]
    base, plate = (
        np.radians([10, 110, 130, 230, 250, 350]),
        np.radians([50, 70, 170, 190, 290, 310]),
    )
    A = 0.35 * np.stack([np.cos(base), np.sin(base), 0 * base], axis=1)
    B = 0.20 * np.stack([np.cos(plate), np.sin(plate), 0 * plate], axis=1)
    angle = np.linspace(0.0, 2.0 * np.pi, 3601)
    rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)

    def room(r: float) -> float:
        x = r * rim + np.array([0.0, 0.0, 0.36])
        length = np.linalg.norm(x[:, None] + B - A, axis=2)
        return float(min(length.min() - 0.33, 0.53 - length.max()))

    assert room(radius) >= 0.0
    assert room(1.03 * radius) < 0.0


# Budgets and refusals


def test_all_scales_keep_the_whole_budget() -> None:
    ranges = "x=-0.05:0.05,y=-0.05:0.05,z=0.31:0.41,rx=-10deg:10deg,ry=-10deg:10deg"
    result = tl.certify(
        "hexapod",
        ranges=ranges,
        parallel=0.65,
        moment_length=0.2,
        maximize_box=True,
        max_boxes=2000,
    )
    assert result.evaluated <= 2000 + 512 * 7  # a batch beyond the share of each scale


@pytest.mark.parametrize(
    ("machine", "keywords", "text"),
    [
        ("delta", {"limits": {"x": "1 um"}}, "no errors of encoders or parameters are given"),
        ("delta", {"encoders": {"*": "1 urad"}}, "no error limit is given"),
        (
            "cable_robot",
            {"limits": {"x": "1 um"}, "encoders": {"*": "1 urad"}},
            "redundant machines",
        ),
        ("delta", {"wrenches": {"fx": (1.0, -1.0)}}, "is empty"),
        ("delta", {"wrenches": {"force": (1.0, 2.0)}}, "force"),
        ("delta", {"cones": {"leg1.elbow": "10 deg"}}, "no name matches"),
        ("delta", {"cones": {"leg1.forearm.end": "200 deg"}}, "between 0 and 180 deg"),
        ("delta", {"rod_radii": {"leg1": "10 mm"}}, "no name matches"),
        ("delta", {"rod_radii": {"*": "10 deg"}}, "does not fit .*, whose unit is m"),
        ("delta", {"cylinder": ("x",)}, "two or three axes"),
        ("delta", {"cylinder": ("x", "z")}, "z"),
    ],
)
def test_wrong_claims_are_refused(machine: str, keywords: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        tl.certify(machine, ranges="x=-0.05:0.05,y=-0.05:0.05", **keywords)


def test_machines_without_limits_of_forces_are_refused() -> None:
    with pytest.raises(InputError, match="no actuator states its largest force"):
        tl.certify(with_force("delta", np.inf), ranges="x=-0.01:0.01", static_forces=True)
    with pytest.raises(InputError, match="depend on"):
        tl.certify(
            "delta", ranges="x=-0.01:0.01", static_forces=True, deviations={"arm_mass": 1e-3}
        )
