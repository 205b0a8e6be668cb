"""Descriptions of logs of other programs: columns by name, units by header, reach and derivative."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.logs.recording import read_recorded

TIME = np.arange(0.0, 2.0, 0.01)


@pytest.fixture(scope="module")
def five_bar() -> tl.Model:
    return tl.Model("five_bar")


@pytest.fixture(scope="module")
def motion(five_bar: tl.Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and forces of a motion (N, 2)."""
    q = np.stack([1.7 + 0.2 * np.sin(2 * TIME), 1.3 + 0.2 * np.sin(3 * TIME)], axis=1)
    v = np.stack([0.4 * np.cos(2 * TIME), 0.6 * np.cos(3 * TIME)], axis=1)
    a = np.stack([-0.8 * np.sin(2 * TIME), -1.8 * np.sin(3 * TIME)], axis=1)
    return q, v, five_bar.actuators.inverse_dynamics(q, v, a).force


def write(path: Path, header: str, *columns: np.ndarray) -> Path:
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=header, comments="")
    return path


def meanings(described: tl.identification.LogDescription) -> dict[str, tuple[str, str, str, str]]:
    return {
        item.column: (item.quantity, item.channel, item.unit, item.basis)
        for item in described.columns
    }


def same_log(text: str, folder: Path, motion: tuple[np.ndarray, ...]) -> None:
    """Check that a description reads the motion back."""
    (folder / "log.yaml").write_text(text)
    log = read_recorded(folder / "log.yaml")
    for i, name in enumerate(("motor_1", "motor_2")):
        np.testing.assert_allclose(log[f"position.{name}"], motion[0][:, i], rtol=1e-12)
        np.testing.assert_allclose(log[f"force.{name}"], motion[2][:, i], rtol=1e-12)
    np.testing.assert_allclose(log["time"] - log["time"][0], TIME, atol=1e-9)


HEADERS = (
    "t [s],q1 [rad],q2 [rad],tau1 [N m],tau2 [N m]",
    "Time,Motor1 Position (rad),Motor2 Position (rad),Motor1 Torque (Nm),Motor2 Torque (Nm)",
    "time_s,pos_0_rad,pos_1_rad,effort_0_Nm,effort_1_Nm",
    "timestamp,motor_1/angle_rad,motor_2/angle_rad,motor_1/torque [Nm],motor_2/torque [Nm]",
    "t,motor_1.actual_position [rad],motor_2.actual_position [rad],motor_1.actualTorque [Nm],"
    "motor_2.actualTorque [Nm]",
)


@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_other_programs_are_recognized(
    header: str, tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, _, force = motion
    path = write(tmp_path / "a.csv", header, TIME, q, force)
    described = tl.describe_log(five_bar, path, folder=tmp_path)
    assert described.status is Status.OK, described.text
    same_log(described.text, tmp_path, motion)


def test_numbers_count_from_any_first_number_and_in_any_order(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, _, force = motion
    header = "t,q_12_rad,tau_11_Nm,q_11_rad,tau_12_Nm"
    columns = (TIME, q[:, 1], force[:, 0], q[:, 0], force[:, 1])
    path = write(tmp_path / "a.csv", header, *columns)
    described = tl.describe_log(five_bar, path, folder=tmp_path)
    same_log(described.text, tmp_path, motion)


def test_measured_columns_are_preferred_to_commanded_ones(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, v, force = motion
    header = "t,q_des_1_rad,q_des_2_rad,q_1_rad,q_2_rad,q_err_1_rad,q_err_2_rad,tau_1_Nm,tau_2_Nm,temp_1,temp_2"
    path = write(tmp_path / "a.csv", header, TIME, q + 0.1, q, 0 * q, force, v)
    described = tl.describe_log(five_bar, path, folder=tmp_path)
    assert described.unused == (
        "q_des_1_rad", "q_des_2_rad", "q_err_1_rad", "q_err_2_rad", "temp_1", "temp_2"
    )  # fmt: skip
    same_log(described.text, tmp_path, motion)


def test_velocities_get_the_unit_and_sign_of_the_derivative(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, v, force = motion
    header = "t_ms,q1_deg,q2_deg,dq1,dq2,tau1_Nm,tau2_Nm"
    path = write(
        tmp_path / "a.csv", header, 1e3 * TIME, np.rad2deg(q), -np.rad2deg(v[:, 0]), v[:, 1], force
    )
    described = tl.describe_log(five_bar, path, folder=tmp_path)
    columns = meanings(described)
    assert columns["dq1"] == ("velocity", "motor_1", "-1 deg/s", "derivative")
    assert columns["dq2"] == ("velocity", "motor_2", "rad/s", "derivative")
    same_log(described.text, tmp_path, motion)
    log = read_recorded(tmp_path / "log.yaml")
    np.testing.assert_allclose(log["velocity.motor_1"], v[:, 0], rtol=1e-9)


def test_positions_get_the_only_unit_that_the_machine_reaches(tmp_path: Path) -> None:
    model = tl.Model("hexapod")
    count = 12
    reference = model.actuator_position(model.assembly.q[None])[0]
    rng = np.random.default_rng(2)
    lengths = reference + 0.005 * rng.uniform(-1, 1, (count, len(reference)))
    header = (
        "t,"
        + ",".join(f"length{i}_pos" for i in range(6))
        + ","
        + ",".join(f"force{i} [N]" for i in range(6))
    )
    time = 0.01 * np.arange(count)
    path = write(tmp_path / "a.csv", header, time, 1e3 * lengths, 0 * lengths)
    described = tl.describe_log(model, path)
    bases = {item.basis for item in described.columns if item.quantity == "position"}
    assert bases == {"reach"}
    assert {item.unit for item in described.columns if item.quantity == "position"} == {"mm"}
    assert described.status is Status.OK


def test_units_that_nothing_determines_are_not_guessed(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, _, force = motion
    path = write(
        tmp_path / "a.csv", "n,q1,q2,current1,current2", np.arange(len(TIME)), q, force / 0.05
    )
    described = tl.describe_log(five_bar, path)
    assert described.status is Status.DOUBTFUL
    assert described.unknown_units == {"position": ("rad", "deg"), "force": ("N m",)}
    assert described.currents == ("current1", "current2")
    (doubt,) = [item for item in described.diagnostics if item.name == "quantities without a unit"]
    assert "current1 is a current: give the actuator's force per ampere" in doubt.advice
    assert "--units position='rad'" in doubt.advice
    assert "# No column was found for time." in described.text
    stated = tl.describe_log(
        five_bar,
        path,
        units={"position": "rad", "force": "0.05 Nm"},
        sample_rate="100 Hz",
        folder=tmp_path,
    )
    assert stated.status is Status.OK
    same_log(stated.text, tmp_path, motion)


def test_a_counter_of_samples_is_not_taken_for_milliseconds(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, _, force = motion
    header = "time,q1_rad,q2_rad,tau1_Nm,tau2_Nm"
    path = write(tmp_path / "a.csv", header, np.arange(len(TIME)), q, force)
    described = tl.describe_log(five_bar, path)
    assert described.unknown_units == {"time": ("s", "ms", "us", "ns")}


def test_several_files_with_quantities_in_their_names(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, _, force = motion
    files = [
        write(tmp_path / "pos_read.csv", "Joint_1,Joint_2", q),
        write(tmp_path / "curr_data.csv", "Joint_1,Joint_2", force / 0.02),
    ]
    described = tl.describe_log(
        five_bar,
        files,
        units={"position": "rad", "force": "0.02 N m"},
        sample_rate=100.0,
        folder=tmp_path,
    )
    assert described.status is Status.OK, described.advice
    content = yaml.safe_load(described.text)
    assert [entry["path"] for entry in content["files"]] == ["pos_read.csv", "curr_data.csv"]
    same_log(described.text, tmp_path, motion)


def test_options_that_name_nothing_are_refused(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    path = write(tmp_path / "a.csv", "t,q1,q2,tau1,tau2", TIME, motion[0], motion[2])
    with pytest.raises(InputError) as error:
        tl.describe_log(
            five_bar,
            path,
            columns={"position.motor_3": "q1", "place.motor_1": "q9"},
            units={"pos": "rad", "force": "Nmm"},
            time="stamp",
        )
    assert {problem.where for problem in error.value.problems} == {"columns", "units", "time"}
    assert len(error.value.problems) == 6


def test_problems_of_the_log_are_reported(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    stamps = TIME.copy()
    stamps[100] = stamps[99]
    header = "t [s],q1 [rad],q2 [rad],tau1 [N m],tau2 [N m]"
    path = write(tmp_path / "a.csv", header, stamps, motion[0], motion[2])
    described = tl.describe_log(five_bar, path)
    assert described.status is Status.DOUBTFUL
    assert any("--resample" in problem for problem in described.problems)


def answered(path: Path, out: Path, answers: bytes) -> tuple[bytes, dict[str, str]]:
    """Return what `log describe` asks in a terminal, and the units that it writes."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tauloop", "log", "describe", "five_bar", str(path)]
    process = subprocess.Popen(
        [*command, "-o", str(out)], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(theirs)
    os.write(ours, answers)
    _, errors = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, errors
    return errors, yaml.safe_load(out.read_text())["files"][0]["units"]


def test_the_command_asks_for_units_in_a_terminal(
    tmp_path: Path, motion: tuple[np.ndarray, ...]
) -> None:
    path = write(tmp_path / "a.csv", "t,q1_rad,q2_rad,tau1,tau2", TIME, motion[0], motion[2])
    errors, units = answered(path, tmp_path / "log.yaml", b"2 N m\n")
    assert b"Unit of force" in errors
    assert units["force"] == "2 N m"


def test_the_command_has_no_default_for_the_force_of_a_current(
    tmp_path: Path, motion: tuple[np.ndarray, ...]
) -> None:
    """An empty answer would make newton metres of amperes; the question is asked again."""
    path = write(tmp_path / "a.csv", "t,q1_rad,q2_rad,cur1,cur2", TIME, motion[0], motion[2] / 0.05)
    errors, units = answered(path, tmp_path / "log.yaml", b"\n0.05 N m\n")
    assert errors.count(b"Force per ampere of cur1, such as 0.05 N m") == 2
    assert units["force"] == "0.05 N m"


def test_columns_of_one_quantity_may_have_different_units(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    q, _, force = motion
    columns = (TIME, np.rad2deg(q[:, 0]), q[:, 1], force)
    path = write(tmp_path / "a.csv", "t,q1_deg,q2_rad,tau1_Nm,tau2_Nm", *columns)
    described = tl.describe_log(five_bar, path, folder=tmp_path)
    assert described.status is Status.OK, described.advice
    same_log(described.text, tmp_path, motion)


def test_commanded_forces_are_doubtful_until_they_are_stated(
    tmp_path: Path, five_bar: tl.Model, motion: tuple[np.ndarray, ...]
) -> None:
    header = "t,q1_rad,q2_rad,torque_cmd1_Nm,torque_cmd2_Nm"
    path = write(tmp_path / "a.csv", header, TIME, motion[0], motion[2])
    described = tl.describe_log(five_bar, path)
    assert described.status is Status.DOUBTFUL
    assert "columns of commands: 2" in described.advice[0]
    stated = {f"force.motor_{i}": f"torque_cmd{i}_Nm" for i in (1, 2)}
    assert tl.describe_log(five_bar, path, columns=stated).status is Status.OK
