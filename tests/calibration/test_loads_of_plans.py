"""Plans that choose loads as well as poses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tests.calibration.loaded_gantry import single_parts_text

COUNT, CANDIDATES = 12, 40


@pytest.fixture(scope="module")
def machine() -> tl.Mechanism:
    return tl.loads(single_parts_text())


def planned(machine: tl.Mechanism, **options: object) -> tl.PosePlan:
    return tl.plan_poses(
        machine, parameters=("*.c", "*.give"), count=COUNT, candidates=CANDIDATES, **options
    )


@pytest.fixture(scope="module")
def along_axes(machine: tl.Mechanism) -> tl.PosePlan:
    return planned(machine, max_force=500.0)


def test_loads_are_chosen_with_poses(along_axes: tl.PosePlan, tmp_path: Path) -> None:
    plan = along_axes
    assert plan.available_loads.shape == (7, 6)
    assert plan.loads.shape == (COUNT, 6)
    # A load of zero shows no compliance, and all directions are needed.
    assert (np.linalg.norm(plan.loads, axis=1) == 500.0).all()
    assert len(np.unique(np.abs(plan.loads), axis=0)) == 3
    assert plan.encoders == pytest.approx(plan.candidates.encoders[plan.chosen_poses])
    heads = plan.write_csv(tmp_path / "plan.csv").read_text().splitlines()[0].split(",")
    assert heads[-6:] == [f"load.{name}" for name in ("fx", "fy", "fz", "mx", "my", "mz")]


def test_levers_show_more_than_forces_at_the_tool(
    machine: tl.Mechanism, along_axes: tl.PosePlan
) -> None:
    levers = planned(
        machine, max_force=500.0, loads=("fx=500,mz=150", "fy=500,mx=150", "fz=500,my=150")
    )
    assert levers.selection.value < along_axes.selection.value
    assert np.abs(levers.loads[:, 3:]).max() == 150.0


def test_expected_deviations_are_those_of_the_chosen_readings(along_axes: tl.PosePlan) -> None:
    plan, problem = along_axes, along_axes.problem
    chosen = problem.take(np.array(plan.selection.chosen))
    J = chosen.jacobian(chosen.evaluate(np.zeros(9))) * chosen.tolerances
    information = J.T @ J + np.eye(9)  # tolerances are priors
    deviations = np.sqrt(np.diag(np.linalg.inv(information))) * chosen.tolerances
    assert plan.deviations == pytest.approx(deviations, rel=1e-6)


def test_wrong_loads_are_refused(machine: tl.Mechanism) -> None:
    with pytest.raises(InputError, match="loads"):
        planned(machine, loads=("fq=500",))
    with pytest.raises(InputError, match=r"matches only elastic.*no series has load columns"):
        planned(machine)
