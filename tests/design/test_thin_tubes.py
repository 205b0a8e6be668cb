"""Designs of a Gantry-Tau of thin tubes: the answer of examples/synthesis/gantry_tau.yaml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.design.synthesis.task_reading import read_task
from tauloop.mechanism import Mechanism

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = EXAMPLES / "synthesis" / "gantry_tau"
DESIGNS = sorted(FOLDER.glob("design_*.yaml"))
JOINTS = sorted(FOLDER.glob("joints_*.yaml"))
BOX = {"x": (-0.2, 0.2), "y": (-0.15, 0.15), "z": (-0.15, 0.15)}
STEPS = np.linspace(-0.15, 0.15, 5)
POSES = np.array([[0.0, y, z] for y in STEPS for z in STEPS])
#: Young's modulus of aluminium and stiffness of a drive, as the machine file states them.
YOUNG_MODULUS, DRIVE = 70e9, 20e6


def truss_stiffness(mechanism: Mechanism, position: np.ndarray) -> float:
    """Return the lowest stiffness against a force at the tool by forces of six rods, N/m.

    A f = w for the forces f of the rods, and C = A⁻ᵀ (diag(L / E A) + Gᵀ G / k) A⁻¹ with the forces G f
    of the drives.
    """
    value = mechanism.value
    tip = (0.0, value("tip_y"), value("tip_z"))
    base = np.array([value("base_x"), value("base_y"), value("base_z")])
    apex = (value("apex_x"), 0.0, value("apex_z"))
    pair = [tuple(value(f"pair{k}_{axis}") for axis in "xyz") for k in (1, 2)]
    joints = np.array([apex, base, base * [1.0, -1.0, 1.0], *pair, tip])
    across = [(0.0, value("triple_z"))] * 3 + [(-value("pair_y"), value("pair_z"))] * 2
    across.append((value("single_y"), value("single_z")))
    names = ["triple"] * 3 + ["pair"] * 2 + ["single"]
    length = np.array([value(f"{name}_length") for name in names])
    area = np.pi * np.array([value(f"{name}_outer") - value("wall") for name in names])
    area *= value("wall")
    yz = np.array(across) - position[1:]
    along = np.sqrt(length**2 - (yz**2).sum(axis=1)) * [-1, -1, -1, 1, 1, 1]
    u = -np.column_stack([along, yz]) / length[:, None]
    A = np.vstack([u.T, np.cross(joints - [0.0, 0.0, -0.2], u).T])
    G = np.zeros((3, 6))
    G[[0, 0, 0, 1, 1, 2], np.arange(6)] = u[:, 0]
    back = np.linalg.inv(A)
    C = back.T @ (np.diag(length / (YOUNG_MODULUS * area)) + G.T @ G / DRIVE) @ back
    return float(1.0 / np.linalg.eigvalsh(C[:3, :3])[-1])


@pytest.mark.parametrize(
    "path", [FOLDER / "machine.yaml", *DESIGNS, *JOINTS], ids=lambda path: path.stem
)
def test_stiffness_is_that_of_a_truss(path: Path) -> None:
    mechanism = tl.load(path)
    ours = [truss_stiffness(mechanism, position) for position in POSES]
    assert tl.stiffness(mechanism, POSES).worst_translational == pytest.approx(ours, rel=1e-9)


def test_the_machine_is_that_of_the_elastic_example() -> None:
    baseline, example = tl.load(FOLDER / "machine.yaml"), EXAMPLES / "elastic" / "gantry_tau.yaml"
    ours, theirs = tl.stiffness(baseline, POSES), tl.stiffness(example, POSES)
    assert ours.compliance == pytest.approx(theirs.compliance, rel=1e-9, abs=1e-15)
    frequency = tl.vibration(baseline, POSES, count=3).frequency
    assert frequency == pytest.approx(tl.vibration(example, POSES, count=3).frequency, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "paths"), [("gantry_tau", DESIGNS), ("gantry_tau_joints", JOINTS)]
)
def test_designs_keep_the_limits_of_the_task_and_none_is_dominated(
    name: str, paths: list[Path]
) -> None:
    (task,) = read_task(EXAMPLES / "synthesis" / f"{name}.yaml")
    assert len(paths) > 2
    objectives = []
    for path in paths:
        mechanism = tl.load(path)
        for variable in task.variables:
            (name,) = variable.parameters
            width = variable.upper - variable.lower
            value = mechanism.value(name)
            assert variable.lower - 1e-9 * width <= value <= variable.upper + 1e-9 * width, name
        model = tl.Model(mechanism)
        stiffness = tl.stiffness(model, POSES).worst_translational.min()
        objectives.append((stiffness, tl.vibration(model, POSES, count=1).frequency.min()))
    points = np.array(objectives)
    for point in points:
        assert not (
            (points >= point).all(axis=1) & (points > point * (1.0 + 1e-6)).any(axis=1)
        ).any()


@pytest.mark.nightly
@pytest.mark.parametrize("path", [*DESIGNS, *JOINTS], ids=lambda path: path.stem)
def test_designs_are_certified_on_their_box(path: Path) -> None:
    result = tl.certify(path, ranges=BOX, clearance=0.09, time_limit=120.0)
    assert result.verdict == "proved"


@pytest.mark.nightly
def test_a_task_is_answered_by_designs_that_are_as_good(tmp_path: Path) -> None:
    """A short search with another seed finds no better end, within what its few generations allow."""
    text = (EXAMPLES / "synthesis" / "gantry_tau.yaml").read_text(encoding="utf-8")
    before, _, _ = text.partition("search:")
    small = f"{before}search: {{population: 40, generations: 10, designs: 2, seed: 3}}\n"
    path = tmp_path / "task.yaml"
    path.write_text(
        small.replace("gantry_tau/machine.yaml", str(FOLDER / "machine.yaml")), encoding="utf-8"
    )
    (structure,) = tl.synthesize(path).structures
    best = np.array([tl.stiffness(path, POSES).worst_translational.min() for path in DESIGNS])
    modes = np.array([tl.vibration(path, POSES, count=1).frequency.min() for path in DESIGNS])
    assert structure.front[:, 0].max() <= 1.02 * best.max()
    assert structure.front[:, 1].max() <= 1.02 * modes.max()
    assert structure.front[:, 0].max() >= 0.8 * best.max()
