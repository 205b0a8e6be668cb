"""One joint, one motor, no loop: the smallest machine works everywhere.

Oracle: a point mass m at distance c on a horizontal axis, tau = m c^2 a - m g c cos(q) with q about +y from the x axis;
its motion by SciPy.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from extras import extra
from scipy.integrate import solve_ivp
from typer.testing import CliRunner

from tauloop import Model, load
from tauloop.cli.app import app
from tauloop.codegen.evaluator import Interpreted
from tauloop.equations.formulations import FORMULATIONS
from tauloop.errors import AssemblyError
from tauloop.formats.library import loads
from tauloop.kinematics import random_states

CASE = Path(__file__).parents[1] / "cases" / "one_joint.yaml"
M, C, G = 1.0, 0.1, 9.81
#: One multiplication each way.
ROUNDING = 1e-14


def falling() -> str:
    """The same machine with its axis level, so that gravity acts."""
    return CASE.read_text(encoding="utf-8").replace("axis: z", "axis: y")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


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
            assert np.asarray(Y).reshape(600, -1) @ model.pi == pytest.approx(expected[:, 0], abs=ROUNDING)
        assert np.all(functions.actuator_jacobian(q) == 1.0)
    assert model.hybrid.inverse_dynamics(q, v, a).forces.force == pytest.approx(expected, abs=ROUNDING)
    assert model.forward_kinematics(q).q == pytest.approx(q, abs=ROUNDING)
    assert np.ptp(random_states(model, 50, np.random.default_rng(0)).q) > 0.3


@pytest.mark.parametrize("formulation", [formulation.name for formulation in FORMULATIONS])
def test_fixed_joints_before_and_behind_the_one_that_moves(formulation):
    welded = falling().replace(
        "bodies: {b:", "bodies: {post: {mass: 3 kg}, tip: {mass: 0.5 kg, center: [0.05 m, 0, 0]}, b:"
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
        assert np.asarray(Y).reshape(7, -1) @ model.pi == pytest.approx(expected[:, 0], abs=ROUNDING)


def test_a_machine_without_any_freedom_is_refused_by_name():
    rigid = falling().replace("type: revolute, axis: y,", "type: fixed,").replace(", reference: 0 deg", "")
    rigid = rigid.replace("actuators: {a: {on: j}}\n", "").replace("independent: [j]", "independent: []")
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
def test_a_fall_is_that_of_a_pendulum(route, tmp_path):
    path = tmp_path / "falling.yaml"
    path.write_text(falling(), encoding="utf-8")
    expected = solve_ivp(lambda _, y: [y[1], G / C * np.cos(y[0])], (0, 1), [0, 0], rtol=1e-12, atol=1e-12).y[:, -1]
    answer = json.loads(run("simulate", path, "--duration", 1, "--route", route, "--json"))
    assert answer["final"]["j"] == pytest.approx(expected[0], abs=1e-8)


def test_a_swing_is_judged(tmp_path):
    path = tmp_path / "falling.yaml"
    path.write_text(falling(), encoding="utf-8")
    run("simulate", path, "--swing", "--duration", 0.2)


def test_every_command_takes_it(tmp_path):
    assert json.loads(run("check", CASE, "--json"))["status"] == "ok"
    assert "constant" in run("show", CASE, "--blocks", "--parameters")
    answer = json.loads(run("dynamics", CASE, "--entry", "actuators", "--acceleration", "a=2", "--json"))
    assert answer["force"][0][0] == pytest.approx(2 * M * C**2, abs=ROUNDING)
    run("cost", CASE)
    run("reduce", CASE)
    run("modes", CASE)
    table, picture = tmp_path / "motion.csv", tmp_path / "picture.png"
    run("motion", CASE, "--to", "j=1", "--time", 1, "--frequency", 50, "--out", table)
    run("dynamics", CASE, "--motion", table)
    run("simulate", CASE, "--motion", table)
    run("control", CASE, "--to", "j=1", "--time", 0.2)
    run("view", CASE, "--png", picture)
    assert picture.stat().st_size > 1000
    extra("pinocchio")
    run("verify", CASE, "--states", 3)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_its_c_code_checks_itself(tmp_path):
    run("export", "c", CASE, "--out", tmp_path)
    name = load(CASE).name
    command = ["cc", "-std=c99", "-O1", f"{name}.c", f"{name}_check.c", "-lm", "-o", "checked"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "checked"], check=False, capture_output=True).returncode == 0
