"""`tauloop dynamics --from-momenta`: forces of a table without accelerations.

Oracle: the swinging mass of `test_one_joint.py` by hand, tau = m c^2 q'' - m g c cos q; Newton and Euler with the exact
accelerations elsewhere.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tauloop as tl
from tauloop.assembly.ports import ACTUATORS
from tauloop.cli.app import app
from tauloop.logs import read_log, samples
from tauloop.result import plain

ONE_JOINT = (Path(__file__).parents[1] / "cases" / "one_joint.yaml").read_text(encoding="utf-8")
M, C, G = 1.0, 0.1, 9.81
#: Two-point differences of cos(5 t) every millisecond err by (5 h)^2 / 6, and by twice that at the ends.
SECOND_ORDER = 1e-5


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["dynamics", *map(str, words)])
    return done.exit_code, done.output


def test_a_swinging_mass_needs_no_accelerations(tmp_path):
    machine, table = tmp_path / "swing.yaml", tmp_path / "swing.csv"
    machine.write_text(ONE_JOINT.replace("axis: z", "axis: y"), encoding="utf-8")
    t = np.linspace(0.0, 1.0, 1001)
    q, v, a = 0.4 * np.sin(5 * t), 2.0 * np.cos(5 * t), -10.0 * np.sin(5 * t)
    (name,) = tl.Model(tl.load(machine)).actuators.ports.position.columns
    head = f"time [s],position.{name} [rad],velocity.{name} [rad/s]"
    np.savetxt(table, np.column_stack([t, q, v]), delimiter=",", header=head, comments="")
    options = tl.DynamicsOptions(motion=table, entry=ACTUATORS, from_momenta=True)
    forces = tl.inverse_dynamics(tl.load(machine), options)
    expected = M * C**2 * a - M * G * C * np.cos(q)
    error = np.abs(forces.forces.force[:, 0] - expected)
    assert error.max() < SECOND_ORDER * np.abs(expected).max()
    stated = forces.evidence[-1].value * np.abs(expected).max()
    assert 0.5 * error.max() < stated < 2 * error.max()
    assert forces.status is tl.inverse_dynamics(tl.load(machine)).status
    code, text = run(machine, "--motion", table, "--entry", "actuators", "--from-momenta", "--json")
    assert code == 0
    assert json.loads(text) == json.loads(json.dumps(plain(forces.as_dict())))


@pytest.fixture(scope="module")
def stroke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stroke of the Delta, 40 samples."""
    table = tmp_path_factory.mktemp("stroke") / "stroke.csv"
    words = ["motion", "delta", "--from", "y=-0.1", "--to", "y=0.1", "--time", "0.2", "--frequency", "200"]
    assert CliRunner().invoke(app, [*words, "--out", str(table)]).exit_code == 0
    return table


def test_what_it_writes_is_its_own_input_at_the_other_entry(stroke, tmp_path):
    out = tmp_path / "log.csv"
    exact = np.array(json.loads(run("delta", "--motion", stroke, "--json")[1])["force"])
    assert run("delta", "--motion", stroke, "--from-momenta", "--out", out)[0] == 0
    log = read_log(out)
    force = samples(log, "force")
    assert np.abs(force - exact).max() < 0.02 * np.abs(exact).max()
    text = run("delta", "--motion", out, "--from-momenta", "--entry", "actuators", "--json")[1]
    assert np.array(json.loads(text)["force"]) == pytest.approx(force, rel=1e-9, abs=1e-9)
    assert "acceleration" in run("delta", "--motion", out)[1]  # which the table lacks


def test_steps_that_are_too_coarse_are_doubtful(stroke, tmp_path):
    coarse = tmp_path / "coarse.csv"
    lines = stroke.read_text(encoding="utf-8").splitlines()
    coarse.write_text("\n".join([lines[0], *lines[1::5]]), encoding="utf-8")
    code, text = run("delta", "--motion", coarse, "--from-momenta")
    assert code == 1
    assert "sample the motion more often" in text.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("delta --from-momenta", "no neighbours"),
        ("delta --position x=0.1 --from-momenta", "no neighbours"),
        ("delta --motion none.csv --from-momenta --preload 3", "beside a preload"),
    ],
)
def test_what_has_no_momenta_is_refused(words, says):
    code, text = run(*words.split())
    assert code == 2
    assert says in text.replace("\n", " ")


def test_passive_freedoms_need_accelerations():
    arm = tl.load("pendulum_arm")
    options = tl.DynamicsOptions(motion=Path("none.csv"), entry=ACTUATORS, from_momenta=True)
    with pytest.raises(tl.InputError, match="passive freedoms move"):
        tl.inverse_dynamics(replace(arm, actuators=arm.actuators[:2]), options)
