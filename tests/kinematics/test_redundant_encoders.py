"""Forward kinematics of machines with more actuators than freedoms: all positions count, and their misfit is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import least_squares

import tauloop as tl
from tauloop import PoseError
from tauloop.common.result import Status
from tauloop.mechanism import shipped_machines

#: Rounding of positions that are followed through loops, m or rad.
ROUNDING = 1e-9
ANCHORS = np.array(
    [[0.0, -1.6, -0.12], [1.8, 0.9, -0.13], [-1.7, 0.95, -0.11], [0.0, 0.0, 2.3], [1.2, -1.1, 1.7]]
)


def machine(folder: Path, count: int) -> tl.Model:
    """A point on some of the lines."""
    at = {f"a{letter}": [f"{x} m" for x in ANCHORS[:count, k]] for k, letter in enumerate("xyz")}
    each = "".join(f"      {name}: [{', '.join(values)}]\n" for name, values in at.items())
    path = folder / "lines.yaml"
    path.write_text(f"""
format: tauloop-machine/1
name: lines
provenance: {{status: chosen, source: a test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{tool: {{mass: 2 kg}}}}
legs:
  - name: line
    repeat: {count}
    each:
{each}
    rods: {{cable: {{from: {{on: base, at: [ax, ay, az]}}, to: tool, telescopic: {{reference: 2 m}}, model: massless}}}}
    actuators: {{winch: {{on: cable}}}}
platform: {{body: tool, motion: translational, independent: [x, y, z], reference: {{at: [0, 0, 0.1 m]}}}}
""")
    return tl.Model(tl.load(path))


POINT = np.array([0.1, 0.2, 0.4])


def lengths(point: np.ndarray, count: int = 4) -> np.ndarray:
    return np.asarray(np.linalg.norm(ANCHORS[:count] - point, axis=1))


@pytest.fixture
def lines(tmp_path: Path) -> tl.Model:
    return machine(tmp_path, 4)


@pytest.mark.parametrize("name", shipped_machines())
def test_positions_of_all_actuators_lead_back_to_the_pose(name: str) -> None:
    model = tl.Model(tl.load(name))
    q = model.assembly.q
    assert_allclose(model.forward_kinematics(model.actuator_position(q)).q, q, atol=ROUNDING)


def test_all_lengths_count_by_least_squares(lines: tl.Model) -> None:
    """Errors of all four lengths against SciPy's least squares over the same lengths, with weights."""
    read = lengths(POINT) + np.array([2e-4, -1e-4, 3e-4, 1e-4])
    sigma = np.array([1e-4, 2e-4, 1e-4, 3e-4])
    noise = dict(
        zip(
            lines.assembly.topology.coordinate_names[-4:],
            [f"{value} m" for value in sigma],
            strict=True,
        )
    )
    noise = {name.replace("cable", "winch"): value for name, value in noise.items()}
    fit = lines.fit_actuators(read, noise=noise)
    expected = least_squares(
        lambda point: (lengths(point) - read) / sigma, POINT, xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    names = lines.topology.coordinate_names
    point = [fit.state.q[names.index(f"platform.{letter}")] for letter in "xyz"]
    assert_allclose(point, expected.x, atol=1e-8)
    assert_allclose(fit.residual, read - lengths(expected.x), atol=1e-8)
    batch = lines.fit_actuators(np.stack([read, lengths(POINT)]), noise=noise)
    assert_allclose(batch.residual[0], fit.residual, atol=1e-12)


def test_a_length_that_disagrees_is_named(lines: tl.Model) -> None:
    wrong = lengths(POINT) + np.array([0.0, 0.0, 0.05, 0.0])
    with pytest.raises(
        PoseError, match=r"only further encoders could identify it: .*line3\.winch \(by 0\.0"
    ):
        lines.forward_kinematics(wrong)
    names = [f"line{k + 1}.winch" for k in range(4)]
    poses = tl.forward_kinematics(lines, dict(zip(names, wrong, strict=True)))
    assert poses.status is Status.DOUBTFUL
    assert poses.diagnostics[1].name == "largest standardized misfit of an actuator's position"
    coarse = tl.KinematicsOptions(encoder_noise="50 mm")
    assert (
        tl.forward_kinematics(lines, dict(zip(names, wrong, strict=True)), coarse).status
        is Status.OK
    )


def test_with_more_readings_the_wrong_one_stands_out(tmp_path: Path) -> None:
    read = lengths(POINT, 5)
    read[2] += 0.05
    with pytest.raises(
        PoseError, match=r"line3\.winch \(by 0\.05\d* m\) disagrees with the other actuators"
    ):
        machine(tmp_path, 5).forward_kinematics(read)


def test_what_inverse_kinematics_prints_is_read_by_forward_kinematics(lines: tl.Model) -> None:
    """Rounded to six digits, as it is printed; any three lengths determine the point too."""
    poses = tl.inverse_kinematics(lines, {"x": 0.1, "y": 0.2, "z": 0.4})
    printed = dict(
        zip(poses.actuator_port.columns, poses.actuator_position[0].round(6).tolist(), strict=True)
    )
    for left_out in ("", *printed):
        some = {name: value for name, value in printed.items() if name != left_out}
        again = tl.forward_kinematics(lines, some)
        assert again.status is Status.OK
        assert_allclose(again.tool[0], POINT, atol=3e-6)


def test_modes_and_jacobians_take_all_lengths_too(lines: tl.Model) -> None:
    given_names = [f"line{k + 1}.winch" for k in range(4)]
    read = dict(zip(given_names, lengths(POINT).tolist(), strict=True))
    assert tl.jacobian(lines, actuators=read).matrix.shape == (6, 3)
    modes = tl.assembly_modes(lines, read)
    assert any(np.allclose(mode.q[:3], POINT, atol=1e-6) for mode in modes.modes)


def test_noise_is_checked(lines: tl.Model) -> None:
    for noise, what in (
        ("0 mm", "is 0"),
        ("line9.winch=1mm", "no coordinate 'line9.winch'"),
        ("1 s", "s"),
    ):
        with pytest.raises(tl.InputError, match=what):
            lines.fit_actuators(lengths(POINT), noise=noise)
