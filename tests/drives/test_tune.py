"""Tuning of a drive line: what it finds, keeps at Ctrl-C and refuses."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from extras import extra
from printed import printed
from tabulated import assert_tabulated

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.display.tables.drives.tuning_tables import tuning_tables
from tauloop.drives import SQP, Axis, Tuning, TuningOptions, load_drive, minimize, simulate_axis

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

#: A search that is interrupted ends within this, s; most of it is what other processes take.
AT_ONCE = 1.0
#: Costs of one optimum from several routes: where the searches stop.
SAME_COST = 1e-3
BOUNDS = {"kp": (100.0, 300.0), "ti": (0.5, 2.0)}
SCALES = {"rise_time": 1.7, "settling_time": 4.0}
OPTIONS = TuningOptions(bounds=BOUNDS, scales=SCALES, budget=80, duration=6.0)


@pytest.fixture(scope="module")
def tuning() -> Tuning:
    return tl.tune_drive_line(load_drive("dual_motor_axis"), OPTIONS)


def test_the_cost_is_that_of_a_step_by_hand(tuning: Tuning) -> None:
    axis = Axis(load_drive("dual_motor_axis"), runs=10**6)  # the compiler of a search
    for at, cost, criteria in (
        (tuning.start, tuning.start_cost, tuning.before),
        (tuning.best, tuning.cost, tuning.after),
    ):
        step = simulate_axis(axis, dict(at), step=0.1, duration=6.0)
        assert cost == pytest.approx(
            float(step.rise_time[0] / 1.7 + step.settling_time[0] / 4.0), rel=1e-12
        )
        assert criteria["overshoot"] == float(step.overshoot[0])
    assert tuning.start == {"kp": 200.0, "ti": 1.5}
    assert tuning.cost < 0.7 * tuning.start_cost


def test_exact_gradients_and_other_starts_end_as_low_and_are_sorted(tuning: Tuning) -> None:
    options = TuningOptions(
        bounds={"td": (0.01, 0.1)},
        scales={"energy": 2000.0},
        search=SQP(),
        exact_gradients=True,
        starts=2,
        seed=1,
    )
    exact = tl.tune_drive_line(load_drive("dual_motor_axis"), options)
    grid = simulate_axis(
        Axis(load_drive("dual_motor_axis")), {"td": np.linspace(0.01, 0.1, 40)}, step=0.1
    )
    assert exact.cost <= grid.energy.min() / 2000.0 * (1 + SAME_COST)
    assert [search.cost for search in exact.searches] == sorted(
        search.cost for search in exact.searches
    )
    assert len(exact.searches) == 2
    assert tuning.searches[0].cost == tuning.cost
    assert_tabulated(tuning, "best", "after")
    assert float(tuning.searches[0].to_xarray()["least"][-1]) == tuning.cost


def test_a_parameter_that_ends_on_its_bound_is_a_finding() -> None:
    options = TuningOptions(bounds={"kp": (190.0, 210.0)}, scales={"rise_time": 1.0}, budget=30)
    result = tl.tune_drive_line(load_drive("dual_motor_axis"), options)
    assert [(finding.where, finding.what) for finding in result.findings] == [
        ("kp", "ends on its bound 210")
    ]


def test_no_compromise_is_better_than_another_in_everything() -> None:
    extra("pymoo")
    scales = {"rise_time": 1.0, "overshoot": 0.01}
    options = TuningOptions(
        bounds=BOUNDS, scales=scales, budget=5, pareto=True, population=8, generations=4
    )
    tuning = tl.tune_drive_line(load_drive("dual_motor_axis"), options)
    front = tuning.front
    assert front is not None
    assert "rise time" in printed(tuning_tables(tuning)).partition("Pareto front")[2]
    assert front.criteria_names == ("rise_time", "overshoot")
    for point in front.criteria:
        assert not (front.criteria < point).all(axis=1).any()
    again = simulate_axis(
        Axis(load_drive("dual_motor_axis")), {"kp": front.points[:, 0], "ti": front.points[:, 1]}
    )
    np.testing.assert_allclose(front.criteria[:, 1], again.overshoot)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as error:
        TuningOptions(
            bounds=BOUNDS, scales={"energy_": 1.0}, values={"kp": 1.0}, pareto=True, starts=0
        )
    assert {problem.where for problem in error.value.problems} == {
        "starts",
        "scales",
        "pareto",
        "values",
    }
    with pytest.raises(InputError) as error:
        tl.tune_drive_line(
            load_drive("dual_motor_axis"),
            TuningOptions(
                bounds={"kq": (1.0, 2.0), "ti": (0.5, 1.0)}, scales=SCALES, initial={"td": 0.1}
            ),
        )
    assert [problem.where for problem in error.value.problems] == ["bounds", "initial"]
    assert "kp" in error.value.problems[0].remedy
    with pytest.raises(InputError, match="remove swing from the scales"):
        TuningOptions(bounds=BOUNDS, scales={"swing": 1.0}, exact_gradients=True, search=SQP())


def test_ctrl_c_during_a_long_batch_keeps_the_best_so_far_at_once() -> None:
    """As compiled code does, sleeping lets the interrupt wait until it is done."""
    asked = threading.Event()

    def cost(points: np.ndarray) -> np.ndarray:
        if len(points) > 1:  # the first poll
            asked.set()
            time.sleep(5.0)
        return np.sum((points - [250.0, 1.0]) ** 2, axis=1)

    def press() -> None:
        asked.wait()
        time.sleep(0.2)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    pressed: list[float] = []
    threading.Thread(target=press).start()
    minimum = minimize(cost, BOUNDS, [200.0, 1.5])
    assert time.monotonic() - pressed[0] < AT_ONCE
    assert minimum.interrupted
    assert minimum.best.tolist() == [200.0, 1.5]
