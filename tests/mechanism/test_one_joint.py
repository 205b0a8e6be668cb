"""One joint, one motor, no loop: the smallest machine works everywhere.

Oracle: a point mass m at distance c on a horizontal axis, tau = m c^2 a - m g c cos(q) with q about
+y from the x axis; its motion by SciPy.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from extras import extra
from scipy.integrate import solve_ivp

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import AssemblyError
from tauloop.common.result import Status
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.display import save_figure
from tauloop.equations.formulations import FORMULATIONS
from tauloop.equations.ports import ACTUATORS
from tauloop.formats.library import loads
from tauloop.kinematics import random_states
from tauloop.logs import write_log
from tauloop.simulation import FreeMotionOptions, RoundTripOptions
from tauloop.simulation.routes import ROUTES

CASE = Path(__file__).parents[1] / "cases" / "one_joint.yaml"
M, C, G = 1.0, 0.1, 9.81
#: One multiplication each way.
ROUNDING = 1e-14


def falling() -> str:
    """The same machine with its axis level, so that gravity acts."""
    return CASE.read_text(encoding="utf-8").replace("axis: z", "axis: y")


@pytest.mark.parametrize("formulation", [formulation.name for formulation in FORMULATIONS])
@pytest.mark.parametrize("evaluator", [None, Interpreted()], ids=["compiled", "interpreted"])
def test_forces_accelerations_and_regressors_of_both_entries(formulation, evaluator):
    model = Model(loads(falling()), formulation=formulation, evaluator=evaluator)
    q, v, a = np.random.default_rng(0).normal(size=(3, 600, 1))
    expected = M * C**2 * a - M * G * C * np.cos(q)
    for functions in (model.platform, model.actuators):
        forces = functions.inverse_dynamics(q, v, a)
        assert forces.force == pytest.approx(expected, abs=ROUNDING)
        assert forces.state.q == pytest.approx(q, abs=ROUNDING)
        assert functions.forward_dynamics(q, v, expected).a == pytest.approx(a, abs=1e-10)
        for output in ("actuators", "joints"):
            Y = functions.regressor(q, v, a, output=output)
            assert np.asarray(Y).reshape(600, -1) @ model.pi == pytest.approx(
                expected[:, 0], abs=ROUNDING
            )
        assert np.all(functions.actuator_jacobian(q) == 1.0)
    assert model.hybrid.inverse_dynamics(q, v, a).forces.force == pytest.approx(
        expected, abs=ROUNDING
    )
    assert model.forward_kinematics(q).q == pytest.approx(q, abs=ROUNDING)
    assert np.ptp(random_states(model, 50, np.random.default_rng(0)).q) > 0.3


@pytest.mark.parametrize("formulation", [formulation.name for formulation in FORMULATIONS])
def test_fixed_joints_before_and_behind_the_one_that_moves(formulation):
    welded = falling().replace(
        "bodies: {b:",
        "bodies: {post: {mass: 3 kg}, tip: {mass: 0.5 kg, center: [0.05 m, 0, 0]}, b:",
    )
    welded = welded.replace("parent: base,", "parent: post,").replace(
        "joints: {",
        "joints: {foot: {type: fixed, parent: base, child: post}, "
        "end: {type: fixed, parent: {on: b, at: [0.2 m, 0, 0]}, child: tip}, ",
    )
    model = Model(loads(welded), formulation=formulation)
    q, v, a = np.random.default_rng(0).normal(size=(3, 7, 1))
    expected = (M * C**2 + 0.5 * 0.25**2) * a - (M * C + 0.5 * 0.25) * G * np.cos(q)
    for functions in (model.platform, model.actuators):
        assert functions.inverse_dynamics(q, v, a).force == pytest.approx(expected, abs=ROUNDING)
        assert functions.forward_dynamics(q, v, expected).a == pytest.approx(a, abs=1e-10)
        Y = functions.regressor(q, v, a)
        assert np.asarray(Y).reshape(7, -1) @ model.pi == pytest.approx(
            expected[:, 0], abs=ROUNDING
        )


def test_a_machine_without_any_freedom_is_refused_by_name():
    rigid = (
        falling()
        .replace("type: revolute, axis: y,", "type: fixed,")
        .replace(", reference: 0 deg", "")
    )
    rigid = rigid.replace("actuators: {a: {on: j}}\n", "").replace(
        "independent: [j]", "independent: []"
    )
    with pytest.raises(AssemblyError, match="nothing can move"):
        Model(loads(rigid))


@pytest.mark.parametrize(
    "route",
    [
        "independent",
        "multipliers",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("projected", "extended")),
    ],
)
def test_a_fall_is_that_of_a_pendulum(route):
    expected = solve_ivp(
        lambda _, y: [y[1], G / C * np.cos(y[0])], (0, 1), [0, 0], rtol=1e-12, atol=1e-12
    ).y[:, -1]
    fall = tl.simulate(loads(falling()), tl.SimulationOptions(duration=1.0, route=ROUTES[route]))
    assert fall.as_dict()["final"]["j"] == pytest.approx(expected[0], abs=1e-8)


def test_a_swing_is_judged():
    assert tl.simulate(loads(falling()), FreeMotionOptions(duration=0.2)).status is Status.OK


def test_every_workflow_takes_it(tmp_path):
    model = Model(load(CASE))
    assert tl.check(model).status is Status.OK
    assert tl.describe(model, tl.DescribeOptions(blocks=True, table=True)).as_dict()[
        "linear_blocks"
    ]
    pushed = tl.inverse_dynamics(
        model, tl.DynamicsOptions(coordinates=ACTUATORS, acceleration={"a": 2})
    )
    assert pushed.forces.force[0, 0] == pytest.approx(2 * M * C**2, abs=ROUNDING)
    assert tl.count_operations(model.mechanism).costs
    assert tl.reduce_model(model.mechanism).status is Status.OK
    assert len(tl.assembly_modes(model).modes) == 1
    stroke = tl.StrokeOptions(end={"j": 1}, duration=1.0)
    table = write_log(tmp_path / "motion.csv", tl.plan_stroke(model, stroke).log(50.0))
    assert tl.inverse_dynamics(model, tl.DynamicsOptions(motion=table)).status is Status.OK
    assert tl.simulate(model, RoundTripOptions(motion=table)).status is Status.OK
    assert (
        tl.follow_path(
            model, tl.ControlOptions(stroke=tl.StrokeOptions(end={"j": 1}, duration=0.2))
        ).status
        is Status.OK
    )
    save_figure(tl.view(model).picture(), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
    extra("pinocchio")
    assert tl.verify(model, tl.VerifyOptions(states=3)).status is Status.OK


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_its_c_code_checks_itself(tmp_path):
    name = tl.export_c(load(CASE), folder=tmp_path).name
    command = ["cc", "-std=c99", "-O1", f"{name}.c", f"{name}_check.c", "-lm", "-o", "checked"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "checked"], check=False, capture_output=True).returncode == 0
