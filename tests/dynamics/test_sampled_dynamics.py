"""Forces from momenta: those of a table without accelerations.

Oracle: the swinging mass of `test_one_joint.py` by hand, tau = m c^2 q'' - m g c cos q; Newton and
Euler with the exact accelerations elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.result import Status
from tauloop.display.tables.motion.dynamics_tables import dynamics_tables
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.logs import read_log, samples, write_log

ONE_JOINT = (Path(__file__).parents[1] / "cases" / "one_joint.yaml").read_text(encoding="utf-8")
M, C, G = 1.0, 0.1, 9.81
#: Two-point differences of cos(5 t) every millisecond err by (5 h)^2 / 6, and by twice that at the
#: ends.
SECOND_ORDER = 1e-5


def swinging(folder: Path, t: np.ndarray) -> tuple[tl.MotionForces, np.ndarray]:
    """Return the result of a swing from its momenta, and its torques by hand."""
    machine, table = folder / "swing.yaml", folder / "swing.csv"
    machine.write_text(ONE_JOINT.replace("axis: z", "axis: y"), encoding="utf-8")
    q, v, a = 0.4 * np.sin(5 * t), 2.0 * np.cos(5 * t), -10.0 * np.sin(5 * t)
    (name,) = tl.Model(tl.load(machine)).actuators.ports.position.columns
    head = f"time [s],position.{name} [rad],velocity.{name} [rad/s]"
    np.savetxt(table, np.column_stack([t, q, v]), delimiter=",", header=head, comments="")
    options = tl.DynamicsOptions(motion=table, coordinates=ACTUATORS, from_momenta=True)
    return tl.inverse_dynamics(tl.load(machine), options), M * C**2 * a - M * G * C * np.cos(q)


def test_a_swinging_mass_needs_no_accelerations(tmp_path):
    forces, expected = swinging(tmp_path, np.linspace(0.0, 1.0, 1001))
    error = np.abs(forces.forces.force[:, 0] - expected)
    assert error.max() < SECOND_ORDER * np.abs(expected).max()
    stated = forces.diagnostics[-2].value * np.abs(expected).max()
    assert 0.5 * error.max() < stated < 2 * error.max()
    assert forces.status is tl.inverse_dynamics(tl.load(tmp_path / "swing.yaml")).status


@pytest.mark.parametrize("count", [100, 101])
def test_the_error_of_the_last_row_is_stated(count, tmp_path):
    """The swing ends where its error is largest, which every other sample from the first may leave out."""
    forces, expected = swinging(tmp_path, np.linspace(0.0, 0.1 * np.pi, count))
    errors = np.abs(forces.forces.force[:, 0] - expected) / np.abs(expected).max()
    assert errors[-1] == errors.max()
    assert "last row" in forces.diagnostics[-1].name
    assert forces.diagnostics[-1].value == pytest.approx(errors[-1], rel=0.05)
    assert forces.diagnostics[-2].value == pytest.approx(errors.max(), rel=0.05)


def test_errors_are_printed_whether_they_are_good_or_not(tmp_path):
    """They were printed only where the result was doubtful because of them."""
    for count, endings in ((100, ["at most 0.01)"] * 2), (4, ["not defined"] * 2)):
        forces, _ = swinging(tmp_path, np.linspace(0.0, 0.1 * np.pi, count))
        printed = [line for line in dynamics_tables(forces) if str(line).startswith("error")]
        assert [line.endswith(ending) for line, ending in zip(printed, endings, strict=True)] == [
            True,
            True,
        ]
        assert forces.difference_errors == forces.diagnostics[-2:]
    coarse, _ = swinging(tmp_path, np.linspace(0.0, 0.3 * np.pi, 8))
    texts = [getattr(line, "text", str(line)) for line in dynamics_tables(coarse)]
    lines = [text for text in texts if "error" in text]
    assert not coarse.difference_errors[0].is_good
    assert coarse.difference_errors[1].is_good
    assert [line.startswith("doubtful: error") for line in sorted(lines)] == [True, False]


@pytest.fixture(scope="module")
def delta() -> tl.Model:
    return tl.Model(tl.load("delta"))


@pytest.fixture(scope="module")
def stroke(delta: tl.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stroke of the Delta, 40 samples."""
    planned = tl.plan_stroke(
        delta, tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1}, duration=0.2)
    )
    return write_log(tmp_path_factory.mktemp("stroke") / "stroke.csv", planned.log(200.0))


def test_what_it_writes_is_its_own_input_at_the_other_entry(delta, stroke, tmp_path):
    exact = tl.inverse_dynamics(delta, tl.DynamicsOptions(motion=stroke)).forces.force
    first = tl.inverse_dynamics(delta, tl.DynamicsOptions(motion=stroke, from_momenta=True))
    out = write_log(tmp_path / "log.csv", first.log())
    force = samples(read_log(out), "force")
    assert np.abs(force - exact).max() < 0.02 * np.abs(exact).max()
    options = tl.DynamicsOptions(motion=out, from_momenta=True, coordinates=ACTUATORS)
    assert tl.inverse_dynamics(delta, options).forces.force == pytest.approx(
        force, rel=1e-9, abs=1e-9
    )
    with pytest.raises(tl.TauloopError, match="acceleration"):  # which the table lacks
        tl.inverse_dynamics(delta, tl.DynamicsOptions(motion=out))


def test_steps_that_are_too_coarse_are_doubtful(delta, stroke, tmp_path):
    coarse = tmp_path / "coarse.csv"
    lines = stroke.read_text(encoding="utf-8").splitlines()
    coarse.write_text("\n".join([lines[0], *lines[1::5]]), encoding="utf-8")
    forces = tl.inverse_dynamics(delta, tl.DynamicsOptions(motion=coarse, from_momenta=True))
    assert forces.status is Status.DOUBTFUL
    assert any("sample the motion more often" in line for line in forces.advice)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "finite differences need more than one pose"),
        ({"pose": {"x": 0.1}}, "finite differences need more than one pose"),
        ({"motion": Path("none.csv"), "preload": 3.0}, "in addition to a preload"),
    ],
)
def test_what_has_no_momenta_is_refused(options, says):
    with pytest.raises(tl.InputError, match=says):
        tl.DynamicsOptions(**options, from_momenta=True)


def test_passive_freedoms_need_accelerations():
    arm = tl.load("pendulum_arm")
    options = tl.DynamicsOptions(motion=Path("none.csv"), coordinates=ACTUATORS, from_momenta=True)
    with pytest.raises(tl.InputError, match="the motion of passive degrees of freedom"):
        tl.inverse_dynamics(replace(arm, actuators=arm.actuators[:2]), options)


@pytest.mark.parametrize("entry", [PLATFORM, ACTUATORS])
def test_forces_of_a_table_need_no_singular_values(delta, stroke, tmp_path, monkeypatch, entry):
    """Condition numbers and distances from singularities are computed when they are read: half of the time and more."""
    log = tl.inverse_dynamics(delta, tl.DynamicsOptions(motion=stroke)).log()
    options = tl.DynamicsOptions(motion=write_log(tmp_path / "log.csv", log), coordinates=entry)
    tl.inverse_dynamics(delta, options)  # builds the programs, which decomposes matrices

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a singular value decomposition")

    with monkeypatch.context() as changed:
        changed.setattr(np.linalg, "svd", refuse)
        result = tl.inverse_dynamics(delta, options)
        assert result.status is Status.OK
        with pytest.raises(AssertionError, match="singular value"):
            _ = result.condition
    expected = delta.functions(entry).condition(result.forces.state.q)
    result.forces.state.q[:] = 0.0
    np.testing.assert_array_equal(result.condition, expected)
    assert result.as_dict()["condition"] == expected.tolist()
