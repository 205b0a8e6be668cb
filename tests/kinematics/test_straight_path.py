"""A pose that no motion along the straight line of positions reaches from the reference pose is doubtful."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.result import Status
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.kinematics import random_states
from tauloop.kinematics.straight_path import reached_along_line
from tauloop.model import Model

FOLD = Path(__file__).parents[1] / "cases" / "fold.yaml"
#: The curve of poses folds at j0 = 0.581; from there to about 0.33 the loops are open, and below is
#: another part of it.
BEYOND, REGULAR = 0.15, (0.5837, 0.6, 0.9, 2.0)
ROTATION_UNITS = {"position": "rad", "velocity": "rad/s", "acceleration": "rad/s^2"}
ENTRIES = {"platform": PLATFORM, "actuators": ACTUATORS}
LINE = "fraction of the straight line"


@pytest.fixture(scope="module")
def fold() -> Model:
    return Model(tl.load(FOLD))


def test_the_loops_are_open_between_the_reference_pose_and_the_pose_beyond(fold: Model) -> None:
    for position in (0.35, 0.45, 0.55):
        with pytest.raises(tl.common.errors.PoseError, match="does not close"):
            fold.inverse_kinematics([position])


#: Calls that ask for one pose.
ONE_POSE = {
    "inverse_kinematics": lambda fold: tl.inverse_kinematics(fold, {"j0": BEYOND}),
    "forward_kinematics": lambda fold: tl.forward_kinematics(fold, {"m1": BEYOND}),
    "jacobian": lambda fold: tl.jacobian(fold, pose={"j0": BEYOND}),
    "inverse_dynamics": lambda fold: tl.inverse_dynamics(
        fold, tl.DynamicsOptions(pose={"j0": BEYOND})
    ),
}


@pytest.mark.parametrize("name", ONE_POSE)
def test_poses_beyond_a_fold_are_doubtful_wherever_one_pose_is_asked_for(
    fold: Model, name: str
) -> None:
    result = ONE_POSE[name](fold)
    assert result.status is Status.DOUBTFUL
    (line,) = (item for item in result.diagnostics if item.name.startswith(LINE))
    assert 0.0 <= line.value < 0.02
    assert (
        "the loops open after j0 = 0.58" in line.advice
        or "the loops open after m1 = 0.58" in line.advice
    )


@pytest.mark.parametrize("position", REGULAR)
def test_poses_on_the_part_of_the_reference_pose_are_not(fold: Model, position: float) -> None:
    poses = tl.inverse_kinematics(fold, {"j0": position})
    assert poses.status is Status.OK
    (line,) = (item for item in poses.diagnostics if item.name.startswith(LINE))
    assert line.value == 1.0


def test_a_pose_of_another_mode_is_replaced_by_that_at_the_end_of_the_line() -> None:
    model = Model(tl.load("three_prs"))
    (q,) = random_states(model, 1, np.random.default_rng(3)).q
    position = model.platform_position(q)
    modes = tl.inverse_kinematics(model, position, tl.KinematicsOptions(all_modes=True)).q
    assert len(modes) > 1
    for mode in modes:
        reached, diagnostics = reached_along_line(model.platform, position, mode)
        assert diagnostics[0].value == 1.0
        np.testing.assert_allclose(reached, modes[0], atol=1e-6)


def test_closed_forms_are_not_walked() -> None:
    model = Model(tl.load("delta"))
    position = model.platform_position(model.assembly.q)
    assert reached_along_line(model.platform, position, model.assembly.q) == (model.assembly.q, ())


@pytest.mark.parametrize("evaluator", [Interpreted(), Compiled()], ids=["interpreted", "compiled"])
def test_batches_report_poses_whose_line_opens_the_loops(evaluator: Interpreted | Compiled) -> None:
    model = Model(tl.load(FOLD), evaluator=evaluator)
    state = model.forward_kinematics([[REGULAR[1]], [BEYOND], [REGULAR[2]]])
    assert state.has_opened.tolist() == [False, True, False]
    (row,) = state.diagnostics
    assert (row.value, row.is_good) == (1.0, False)
    assert "first at sample 1" in row.advice
    assert model.forward_kinematics([REGULAR[2]]).diagnostics == ()


@pytest.mark.parametrize("entry", ["platform", "actuators"])
def test_rows_of_a_table_beyond_a_fold_are_doubtful(
    fold: Model, tmp_path: Path, entry: str
) -> None:
    """A table was followed without a word about rows to which no line leads, and gave forces of another pose."""
    name, table = {"platform": "j0", "actuators": "m1"}[entry], tmp_path / "table.csv"
    columns = [f"{kind}.{name} [{unit}]" for kind, unit in ROTATION_UNITS.items()]
    for position, status in ((REGULAR[1], Status.OK), (BEYOND, Status.DOUBTFUL)):
        rows = np.column_stack([np.linspace(0.0, 0.1, 5), np.full(5, position), np.zeros((5, 2))])
        np.savetxt(table, rows, delimiter=",", header=",".join(["time [s]", *columns]), comments="")
        result = tl.inverse_dynamics(
            fold, tl.DynamicsOptions(motion=table, coordinates=ENTRIES[entry])
        )
        assert result.status is status
        assert any("stay open" in item.name for item in result.diagnostics) == (
            status is Status.DOUBTFUL
        )
