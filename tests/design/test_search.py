"""Proofs, counterexamples and undecided boxes against closed forms and samples."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tauloop.design.domain import Domain, covers
from tauloop.design.enclosure import Requirements
from tauloop.design.problem import NeededFunctions, pose_problem
from tauloop.design.search import BoxSearch, Budget, search
from tauloop.mechanism.shipped import SHIPPED
from tauloop.model.model import modeled

DEGREE = np.pi / 180
BUDGET = Budget(boxes=20_000, duration=60.0)
#: Rounding of singular values and lengths of the samples.
ROUNDING = 1e-12


def certified(
    machine: str,
    ranges: Mapping[str, tuple[float, float]],
    *,
    budget: Budget = BUDGET,
    drawing: bool = False,
    clearance: float = 0.0,
    parallel: float = 0.0,
    serial: float = 0.0,
    constraint: float = 0.0,
) -> BoxSearch:
    """Outcome of a search over ranges of axes; moments count over 0.2 m."""
    needed = NeededFunctions(
        tolerances={},
        with_drawing=drawing,
        cones={},
        clearance=clearance > 0,
        radii={},
        velocities=serial > 0 or constraint > 0,
        loads=False,
        length=0.2,
    )
    problem = pose_problem(modeled(machine), needed)
    axes = [axis.rpartition(".")[2] for axis in problem.axes]
    domain = Domain(
        start=problem.reference[0],
        varied=tuple(axes.index(name) for name in ranges),
        lower=np.array([low for low, _ in ranges.values()]),
        upper=np.array([high for _, high in ranges.values()]),
    )
    wanted = Requirements(
        parallel=parallel, serial=serial, constraint=constraint, clearance=clearance
    )
    return search(problem, wanted, domain, budget)


def hexapod_samples(
    ranges: Mapping[str, tuple[float, float]], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Smallest singular values of unit rows (n,), and leg lengths (n, 6), in closed form."""
    rng = np.random.default_rng(5)
    pose = {name: rng.uniform(*ends, n) for name, ends in ranges.items()}
    r = np.stack([pose.get(name, np.zeros(n)) for name in ("rx", "ry", "rz")], axis=1)
    x = np.stack([pose[name] for name in "xyz"], axis=1)
    base = np.radians([10, 110, 130, 230, 250, 350])
    plate = np.radians([50, 70, 170, 190, 290, 310])
    A = 0.35 * np.stack([np.cos(base), np.sin(base), 0 * base], axis=1)
    B = 0.20 * np.stack([np.cos(plate), np.sin(plate), 0 * plate], axis=1)
    arms = np.einsum("nij,kj->nki", Rotation.from_rotvec(r).as_matrix(), B)
    d = x[:, None] + arms - A
    length = np.linalg.norm(d, axis=2)
    u = d / length[:, :, None]
    rows = np.concatenate([u, np.cross(arms, u) / 0.2], axis=2)
    return np.linalg.svd(rows, compute_uv=False)[:, -1], length


HEXAPOD = {
    "x": (-0.03, 0.03),
    "y": (-0.03, 0.03),
    "z": (0.33, 0.39),
    "rx": (-10 * DEGREE, 10 * DEGREE),
    "ry": (-10 * DEGREE, 10 * DEGREE),
}


def test_the_cube_of_60_mm_of_the_hexapod_is_proved() -> None:
    result = certified("hexapod", HEXAPOD, parallel=0.65)
    assert result.is_proved
    assert covers(result.level, result.index)
    assert result.measures["parallel singularity"] >= 0.65
    sigma, length = hexapod_samples(HEXAPOD, 50_000)
    assert sigma.min() >= 0.65
    assert length.min() >= 0.33
    assert length.max() <= 0.53


def test_the_cube_of_100_mm_of_the_hexapod_is_refuted_by_a_pose() -> None:
    ranges = HEXAPOD | {"x": (-0.05, 0.05), "y": (-0.05, 0.05), "z": (0.31, 0.41)}
    result = certified("hexapod", ranges, parallel=0.65)
    counterexample = result.counterexample
    assert counterexample is not None
    assert "limit" in counterexample.claim
    values = dict(zip(("x", "y", "z", "rx", "ry"), counterexample.pose, strict=False))
    for name, (low, high) in ranges.items():
        assert low <= values[name] <= high
    _, length = hexapod_samples({name: (value, value) for name, value in values.items()}, 1)
    assert np.allclose(length[0], counterexample.unknowns, atol=ROUNDING)
    outside = max(0.33 - length.min(), length.max() - 0.53)
    assert outside == pytest.approx(-counterexample.excess, abs=ROUNDING)


def test_a_bound_just_above_the_least_sample_is_refuted() -> None:
    """The counterexample's singular value is that of the closed form, below the bound."""
    sigma, _ = hexapod_samples(HEXAPOD, 50_000)
    result = certified("hexapod", HEXAPOD, parallel=float(sigma.min()) + 0.005)
    counterexample = result.counterexample
    assert counterexample is not None
    assert counterexample.claim == "parallel singularity"
    names = ("x", "y", "z", "rx", "ry")
    values = {n: (v, v) for n, v in zip(names, counterexample.pose, strict=False)}
    least = hexapod_samples(values, 1)[0][0]
    assert counterexample.excess == pytest.approx(least - sigma.min() - 0.005, abs=1e-9)
    assert counterexample.excess < 0


def test_the_delta_is_proved_with_its_arm_limits() -> None:
    ranges = {"x": (-0.15, 0.15), "y": (-0.15, 0.15), "z": (-0.55, -0.45)}
    result = certified("delta", ranges, drawing=True)
    assert result.is_proved
    assert covers(result.level, result.index)


BOXES: dict[str, Mapping[str, tuple[float, float]]] = {
    "five_bar": {"x": (-0.1, 0.1), "y": (0.36, 0.46)},
    "linear_delta": {"x": (-0.06, 0.06), "y": (-0.06, 0.06), "z": (0.02, 0.15)},
    "gantry_tau_5dof": {
        "x": (-0.15, 0.15),
        "y": (-0.1, 0.1),
        "z": (-0.1, 0.1),
        "rx": (-0.05, 0.05),
        "ry": (-0.05, 0.05),
    },
    "rcid": {
        "x": (-0.005, 0.005),
        "y": (-0.005, 0.005),
        "z": (0.108, 0.118),
        "rx": (-0.05, 0.05),
        "ry": (-0.05, 0.05),
        "rz": (-0.05, 0.05),
    },
}


@pytest.mark.parametrize("machine", BOXES)
def test_stated_boxes_of_other_machines_are_proved(machine: str) -> None:
    result = certified(machine, BOXES[machine])
    assert result.is_proved
    assert covers(result.level, result.index)


def hexapod_file(folder: Path, lower: str, upper: str) -> str:
    """The hexapod with other stops of its legs."""
    text = (SHIPPED / "hexapod.yaml").read_text(encoding="utf-8")
    assert "limits: [0.33 m, 0.53 m]" in text
    path = folder / "hexapod.yaml"
    path.write_text(text.replace("limits: [0.33 m, 0.53 m]", f"limits: [{lower}, {upper}]"))
    return str(path)


def test_a_box_with_a_singular_corner_is_never_proved(tmp_path: Path) -> None:
    """Turned by a quarter about its axis, a symmetric hexapod is singular (Fichter 1986)."""
    singular = {"x": (0.0, 0.0), "y": (0.0, 0.0), "z": (0.35, 0.35), "rz": (np.pi / 2, np.pi / 2)}
    assert hexapod_samples(singular, 1)[0][0] < 1e-12
    ranges = {"x": (0.0, 0.02), "y": (0.0, 0.02), "z": (0.35, 0.37), "rz": (1.4, np.pi / 2)}
    wide = hexapod_file(tmp_path, "0.1 m", "1 m")
    assert certified(wide, ranges | {"rz": (1.4, 1.5)}).is_proved
    result = certified(wide, ranges, budget=Budget(boxes=3000, duration=20.0))
    assert not result.is_proved


def test_a_box_with_a_corner_at_the_end_of_reach_is_never_proved() -> None:
    """Arm and forearm of the first leg in line: the plate is at the end of reach along x."""
    angle = 60 * DEGREE
    reach = 0.194 + (0.26 + 0.48) * np.cos(angle) - 0.03
    z = -(0.26 + 0.48) * np.sin(angle)
    ranges = {"x": (reach - 0.02, reach), "y": (0.0, 0.02), "z": (z, z + 0.02)}
    result = certified("delta", ranges, budget=Budget(boxes=3000, duration=20.0))
    assert not result.is_proved


def test_a_pose_beyond_reach_refutes_a_box() -> None:
    """The elbow of one leg would be farther from the plate's joint than the forearm is long."""
    ranges = {"x": (-0.1, 0.8), "y": (0.0, 0.05), "z": (-0.5, -0.45)}
    result = certified("delta", ranges)
    counterexample = result.counterexample
    assert counterexample is not None
    assert counterexample.claim.startswith("reach: leg")
    leg = int(counterexample.claim[len("reach: leg")]) - 1
    turn = Rotation.from_euler("z", -120.0 * leg, degrees=True)
    joint = turn.apply(counterexample.pose) + np.array([0.03 - 0.194, 0.0, 0.0])
    across, height, along = joint[0], joint[2], joint[1]
    nearest = np.hypot(abs(np.hypot(across, height) - 0.26), along)
    farthest = np.hypot(np.hypot(across, height) + 0.26, along)
    assert not nearest <= 0.48 <= farthest


@pytest.mark.parametrize(
    ("name", "measure"),
    [("serial", "serial singularity"), ("constraint", "constraint singularity")],
)
def test_measures_of_singularities_are_bounded_from_below(name: str, measure: str) -> None:
    """The proved bound is below `tl.singularities` at samples, by a route without intervals."""
    from tauloop.kinematics.singularities import singularities

    ranges = BOXES["gantry_tau_5dof"]
    model = modeled("gantry_tau_5dof")
    limit = 0.15
    result = certified("gantry_tau_5dof", ranges, **{name: limit})
    assert result.is_proved
    assert result.measures[measure] >= limit
    rng = np.random.default_rng(7)
    x = np.stack([rng.uniform(*ranges[axis], 200) for axis in "xyz"], axis=1)
    zero = np.zeros((200, 2))
    q = model.platform.kinematics(np.concatenate([x, zero], axis=1)).q
    values = getattr(singularities(model, q), name)
    assert values.min() >= result.measures[measure]


def test_a_bad_region_below_5_mm_is_refuted(tmp_path: Path) -> None:
    """The first leg is too short only within 2.4 mm of the point above its base joint."""
    machine = hexapod_file(tmp_path, "0.350008 m", "1 m")
    x, y = (
        0.35 * np.cos(10 * DEGREE) - 0.2 * np.cos(50 * DEGREE),
        0.35 * np.sin(10 * DEGREE) - 0.2 * np.sin(50 * DEGREE),
    )
    ranges = {"x": (x - 0.04, x + 0.03), "y": (y - 0.02, y + 0.04), "z": (0.35, 0.40)}
    for corner in itertools.product(*ranges.values()):
        pose = {name: (value, value) for name, value in zip("xyz", corner, strict=True)}
        assert hexapod_samples(pose, 1)[1].min() > 0.350008
    assert (hexapod_samples(ranges, 20_000)[1] > 0.350008).all()
    result = certified(machine, ranges)
    counterexample = result.counterexample
    assert counterexample is not None
    assert counterexample.claim == "leg1.strut: lower limit"
    assert np.hypot(counterexample.pose[0] - x, counterexample.pose[1] - y) < 0.0025


def test_a_bad_region_of_a_printer_is_refuted_in_a_second(tmp_path: Path) -> None:
    """A carriage is at its stop only within 2.4 mm of the point where its arms hang straight down."""
    text = (SHIPPED / "linear_delta.yaml").read_text(encoding="utf-8")
    top, gap, arm = 0.12, 8e-6, 0.34
    stop = 0.333 + np.sqrt(arm**2 - 0.172**2) - top - arm + gap
    assert "limits: {drawing: [0 mm, 450 mm]}" in text
    path = tmp_path / "printer.yaml"
    path.write_text(
        text.replace("limits: {drawing: [0 mm, 450 mm]}", f"limits: [{stop:.12f} m, 450 mm]")
    )
    ranges = {"x": (-0.03, 0.02), "y": (0.15, 0.19), "z": (0.09, top)}
    angles = np.radians([210, 330, 90])
    towers = 0.172 * np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def carriages(x: np.ndarray) -> np.ndarray:
        across = np.linalg.norm(x[:, None, :2] - towers, axis=2)
        return 0.333 + np.sqrt(arm**2 - 0.172**2) - x[:, 2:] - np.sqrt(arm**2 - across**2)

    corners = np.array(list(itertools.product(*ranges.values())))
    center = np.array([[np.mean(ends) for ends in ranges.values()]])
    assert carriages(np.concatenate([corners, center])).min() > stop
    result = certified(str(path), ranges)
    counterexample = result.counterexample
    assert counterexample is not None
    assert counterexample.claim == "tower3.slide: lower limit"
    assert np.hypot(counterexample.pose[0], counterexample.pose[1] - 0.172) < 0.0025
    excess = carriages(counterexample.pose[None]).min() - stop
    assert excess == pytest.approx(counterexample.excess, abs=1e-10)
    assert result.duration < 1.0


def test_coverage_is_exact() -> None:
    level = np.array([[1, 0], [1, 1], [1, 1]])
    index = np.array([[0, 0], [1, 0], [1, 1]])
    assert covers(level, index)
    assert not covers(level[:2], index[:2])
    assert not covers(np.array([[0, 0], [1, 1]]), np.array([[0, 0], [1, 1]]))
    enlarged = level.copy()
    enlarged[1] = [1, 0]
    assert not covers(enlarged, index)
