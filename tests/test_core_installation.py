"""The core without its extra `analysis`: what it does, how the rest is refused, and its size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import install_sizes
import numpy as np
import pytest
from scipy.integrate import RK45
from scipy.spatial.transform import Rotation

from conftest import ROOT
from tauloop.integrate.tableau import dormand_prince
from tauloop.mechanism.poses import quaternion_rotation, rotation_quaternion, shortest_turn

#: Python code that hides the packages of the extra, and of what they bring.
HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("matplotlib", "pandas", "PIL", "scipy", "xarray"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
COMMAND = """
from tauloop.cli import main
main()
"""
#: Commands of the core, one after the other.
COMMANDS = """
from tauloop.cli.app import app

for line in sys.argv[1:]:
    try:
        app(line.split())
    except SystemExit as end:
        assert not end.code, line
"""
#: What a user of the core does first: the example of the README, and the functions next to it.
FIRST_HOUR = """
import tauloop as tl

machine = tl.load("delta")
assert tl.check(machine).status == "ok"
pose = tl.forward_kinematics(machine, [0.4, 0.5, 0.6])
tl.inverse_kinematics(machine, [0.05, 0, -0.5])
tl.Model(machine).inverse_dynamics([0.05, 0, -0.5], [0, 0, 0], [0, 0, 5])
assert tl.plan_stroke(machine, start={"x": "-50 mm"}, end={"x": "50 mm"}).trajectory.duration > 0.0
fall = tl.simulate(machine, duration="20 ms")
assert fall.status == "ok"
tl.export_c(machine, "c")
tl.convert(machine, "copy.yaml")
refused = []
for name, call in {
    "fall.plot": fall.plot,
    "fall.to_xarray": fall.to_xarray,
    "fall.to_pandas": fall.to_pandas,
    "tl.identify": lambda: tl.identify,
    "tl.calibrate": lambda: tl.calibrate,
}.items():
    try:
        call()
    except tl.EngineError as error:
        assert "pip install 'tauloop[analysis]'" in str(error), error
        refused.append(name)
assert len(refused) == 5, refused
"""


def run(code: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code that cannot import the packages of the extra."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", HIDE + code, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_first_hour_needs_the_core_only(tmp_path: Path) -> None:
    done = run(FIRST_HOUR, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_commands_of_the_core_run(tmp_path: Path) -> None:
    lines = (
        "list",
        "check delta",
        "fk delta",
        "dynamics delta",
        "jacobian delta",
        "new own --template delta",
    )
    done = run(COMMANDS, *lines, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "own.yaml").is_file()


@pytest.mark.parametrize(
    "arguments", ["identify delta log.csv", "view delta --out delta.png", "drive list", "demo"]
)
def test_commands_of_the_extra_are_refused_with_its_name(arguments: str, tmp_path: Path) -> None:
    done = run(COMMAND, *arguments.split(), folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "pip install 'tauloop[analysis]'" in done.stderr


def test_a_missing_extra_is_reported_as_json(tmp_path: Path) -> None:
    done = run(COMMAND, "identify", "delta", "log.csv", "--json", folder=tmp_path)
    (problem,) = json.loads(done.stdout)["problems"]
    assert done.returncode == 2
    assert problem["remedy"] == "pip install 'tauloop[analysis]'"


def test_another_missing_module_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("", encoding="utf-8")
    code = "from tauloop.common.errors import missing_extra\n"
    code += "assert missing_extra(ModuleNotFoundError('x', name='x')) is None\n"
    code += "assert missing_extra(ModuleNotFoundError('scipy.fft', name='scipy.fft')) is not None"
    assert run(code, folder=tmp_path).returncode == 0


def test_sizes_in_the_readme_are_below_the_limits_and_those_of_the_packages() -> None:
    """`python tools/install_sizes.py` measures them again."""
    assert install_sizes.problems() == []
    core = install_sizes.installed_size("")
    assert core is not None
    assert core > 100.0
    assert "scipy" not in install_sizes.requirements("")
    assert "scipy" in install_sizes.requirements("analysis")


def test_coefficients_of_the_integrator_are_those_of_scipy() -> None:
    tableau = dormand_prince()
    assert np.array_equal(tableau.A[:6, :5], RK45.A)
    assert np.array_equal(tableau.A[6, :6], RK45.B)
    assert np.array_equal(tableau.c[:6], RK45.C)
    assert np.array_equal(tableau.error, RK45.E)
    assert np.array_equal(tableau.dense, RK45.P)


#: Rounding of some products of numbers up to 1.
ROUNDING = 1e-15


def test_rotations_are_those_of_scipy() -> None:
    quaternions = np.random.default_rng(3).normal(size=(4, 50, 4))
    expected = Rotation.from_quat(quaternions.reshape(-1, 4), scalar_first=True)
    matrices = expected.as_matrix().reshape(4, 50, 3, 3)
    assert np.abs(quaternion_rotation(quaternions) - matrices).max() < ROUNDING
    canonical = expected.as_quat(canonical=True, scalar_first=True).reshape(4, 50, 4)
    assert np.abs(rotation_quaternion(matrices) - canonical).max() < ROUNDING
    half_turns = np.array([np.diag([1.0, -1, -1]), np.diag([-1.0, 1, -1]), np.diag([-1.0, -1, 1])])
    assert np.array_equal(rotation_quaternion(half_turns), np.eye(4)[1:])
    for direction in ([0.0, 0, 1], [0.0, 0, -2], [1.0, 2, -3]):
        unit = np.array(direction) / np.linalg.norm(direction)
        rotation = shortest_turn(np.array(direction))
        assert np.abs(rotation[:, 2] - unit).max() < ROUNDING
        assert np.abs(rotation @ rotation.T - np.eye(3)).max() < ROUNDING
