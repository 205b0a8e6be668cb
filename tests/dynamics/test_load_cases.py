"""Load cases of bearings: the peaks of a swing by hand, and every output of a cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tauloop as tl

ONE_JOINT = (Path(__file__).parents[1] / "cases" / "one_joint.yaml").read_text(encoding="utf-8")
#: Of the machine: mass, distance of its center from the axis, gravity.
M, C, G = 1.0, 0.1, 9.81
#: Rounding of a product of some ten numbers.
ROUNDING = 1e-12


def swing() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return times, angles, speeds and accelerations of a swing that grows."""
    time = np.linspace(0.0, 2.0, 401)
    w = 3.0
    angle = (0.3 + 0.2 * time) * np.sin(w * time)
    speed = 0.2 * np.sin(w * time) + (0.3 + 0.2 * time) * w * np.cos(w * time)
    acceleration = 0.4 * w * np.cos(w * time) - (0.3 + 0.2 * time) * w**2 * np.sin(w * time)
    return time, angle, speed, acceleration


def test_peaks_of_a_swing_are_those_by_hand(tmp_path: Path) -> None:
    """A mass on an arm about y: F = m (a - g) across the axis, and no force along it."""
    path = tmp_path / "swing.yaml"
    path.write_text(ONE_JOINT.replace("axis: z", "axis: y"), encoding="utf-8")
    time, q, v, a = swing()
    motion = tl.inverse_dynamics(path, q[:, None], v[:, None], a[:, None], time=time)
    along = M * (-C * v**2 - G * np.sin(q))
    across = M * (-C * a + G * np.cos(q))
    force = np.hypot(along, across)
    torque = np.abs(motion.force[:, 0])
    cases = motion.joint_forces.load_cases().of("j")
    assert cases["largest force"].time == time[force.argmax()]
    assert cases["largest force"].force == pytest.approx(force.max(), rel=ROUNDING)
    assert cases["largest radial force"].radial == pytest.approx(force.max(), rel=ROUNDING)
    assert cases["largest moment"].time == time[torque.argmax()]
    assert cases["largest moment"].moment == pytest.approx(torque.max(), rel=ROUNDING)
    at_torque = force[torque.argmax()]
    assert cases["largest moment"].force == pytest.approx(at_torque, rel=ROUNDING)
    assert "largest tilting moment" not in cases
    assert "largest axial force" not in cases


def test_a_vertical_axis_carries_weight_and_tilting_moment(tmp_path: Path) -> None:
    """Along z the bearing carries m g, and the tilting moment m g c; the motor's torque is not part."""
    path = tmp_path / "swing.yaml"
    path.write_text(ONE_JOINT, encoding="utf-8")
    time, q, v, a = swing()
    motion = tl.inverse_dynamics(path, q[:, None], v[:, None], a[:, None], time=time)
    cases = motion.joint_forces.load_cases().of("j")
    radial = M * C * np.hypot(v**2, a)
    assert cases["largest radial force"].time == time[radial.argmax()]
    assert cases["largest radial force"].radial == pytest.approx(radial.max(), rel=ROUNDING)
    weight = cases["largest axial force"]
    assert weight.axial == pytest.approx(M * G, rel=ROUNDING)
    assert weight.tilting == pytest.approx(M * G * C, rel=ROUNDING)
    moment = np.hypot(motion.force[:, 0], M * G * C)
    assert cases["largest moment"].moment == pytest.approx(moment.max(), rel=ROUNDING)


def test_rods_have_the_largest_tension_and_the_largest_compression() -> None:
    """Both signs of the multiplier that the closure of the rod states."""
    angle = np.linspace(0.0, 2.0 * np.pi, 40)
    x = np.column_stack([0.1 * np.cos(angle), 0.1 * np.sin(angle), np.full(angle.size, -0.5)])
    a = np.column_stack([-30.0 * np.cos(angle), -30.0 * np.sin(angle), 5.0 * np.sin(3.0 * angle)])
    motion = tl.inverse_dynamics("delta", x, np.zeros_like(x), a)
    joint = motion.joint("leg2.forearm.end")
    assert joint.axial is not None
    cases = motion.joint_forces.load_cases().of("leg2.forearm.end")
    assert cases["largest axial force"].axial == joint.axial.max() > 0.0
    assert cases["smallest axial force"].axial == joint.axial.min() < 0.0
    assert cases["smallest axial force"].time == float(joint.axial.argmin())


def test_loads_that_rigid_bodies_do_not_determine_have_no_case() -> None:
    """The pins of a four-bar carry unknown forces along their axes, and known ones across."""
    motion = tl.inverse_dynamics("four_bar", [[0.1], [0.2]], [[1.0], [1.0]], [[0.0], [0.5]])
    undetermined = motion.joint_forces.undetermined
    assert undetermined
    cases = motion.joint_forces.load_cases().of(undetermined[0])
    assert "largest force" not in cases
    assert cases["largest radial force"].force is None


def test_rounding_errors_are_no_loads(tmp_path: Path) -> None:
    """A Delta's platform has coordinates of its own, whose forces are zero but for rounding."""
    motion = tl.inverse_dynamics(
        "delta", [[0.1, 0.02, -0.5]] * 2, [[0.0] * 3] * 2, [[3.0, 2.0, 20.0]] * 2, joint_forces=True
    )
    cases = motion.joint_forces.load_cases()
    assert [*cases.of("platform")] == ["largest moment"]
    assert cases.of("platform")["largest moment"].force == 0.0
    rows = [row.split(",") for row in cases.to_csv().splitlines()]
    sizes = [abs(float(cell)) for row in rows[1:] for cell in row[3:] if cell]
    assert min(size for size in sizes if size) > 1e-9


def test_a_machine_with_a_payload_is_a_machine_file(tmp_path: Path) -> None:
    """Reports write the machine; a body and a joint of one name would be rejected."""
    model = tl.Model(tl.load("delta")).with_payload(0.5)
    path = tmp_path / "loaded.yaml"
    tl.convert(model.mechanism, path)
    again = tl.inverse_dynamics(path, acceleration={"z": 3.0}).force
    loaded = tl.inverse_dynamics("delta", acceleration={"z": 3.0}, payload=0.5).force
    assert again == pytest.approx(loaded, rel=1e-12)
