"""Zeros in the origins of a URDF as unknowns of a calibration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tauloop import InputError, Model, load, loads
from tauloop.calibration import Pose, Series, calibration_problem, fit_geometry
from tauloop.formats.options import ImportOptions
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.mechanism.model import Mechanism

#: Of every joint: axis, and origin as drawn: x, y, z (m), roll, pitch, yaw (rad). The last one is
#: welded.
DRAWN = {
    "one": ((0.0, 0.0, 1.0), (0.0, 0.0, 0.3, 0.0, 0.0, 0.0)),
    "two": ((0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
    "three": ((0.0, 1.0, 0.0), (0.4, 0.0, 0.0, 0.0, 0.0, 0.0)),
    "four": ((1.0, 0.0, 0.0), (0.0, 0.0, 0.1, 0.0, 0.0, 0.0)),
    "tip": (None, (0.2, 0.0, 0.0, 0.0, 0.0, 0.0)),
}
JOINTS = ("one", "two", "three", "four")
#: Noise of poses, m and rad; what is left on other poses, of 120 measured ones and 22 unknowns.
NOISE, LEFT = 1e-5, 3e-5
#: The same in another order of operations.
SAME = 1e-12


def urdf(origins: dict[str, tuple[float, ...]]) -> str:
    lines = ['<robot name="arm">', '<link name="root"/>']
    parent = "root"
    for name, (axis, _) in DRAWN.items():
        x, y, z, roll, pitch, yaw = origins[name]
        lines += [
            f'<link name="{name}_link"><inertial><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>',
            f'<joint name="{name}" type="{"fixed" if axis is None else "continuous"}">'
            f'<parent link="{parent}"/><child link="{name}_link"/>'
            f'<origin xyz="{x!r} {y!r} {z!r}" rpy="{roll!r} {pitch!r} {yaw!r}"/>',
            "" if axis is None else f'<axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>',
            "</joint>",
        ]
        parent = f"{name}_link"
    return "\n".join([*lines, "</robot>"])


def poses(origins: dict[str, tuple[float, ...]], angles: np.ndarray) -> tuple[np.ndarray, Rotation]:
    """Tip of the chain by URDF's own definition: each origin, then a turn about the joint's axis."""
    p, R = np.zeros((len(angles), 3)), Rotation.identity(len(angles))
    for i, (name, (axis, _)) in enumerate(DRAWN.items()):
        x, y, z, roll, pitch, yaw = origins[name]
        p = p + R.apply([x, y, z])
        R = R * Rotation.from_euler("ZYX", [yaw, pitch, roll])
        if axis is not None:
            R = R * Rotation.from_rotvec(angles[:, i : i + 1] * np.array(axis))
    return p, R


def drawn(folder: Path, **options: bool) -> Mechanism:
    path = folder / "arm.urdf"
    path.write_text(urdf({name: origin for name, (_, origin) in DRAWN.items()}), encoding="utf-8")
    return load(path, options=ImportOptions(**options))


def test_zeros_of_origins_are_structure_or_all_six_are_parameters(tmp_path: Path) -> None:
    without = [name for name in drawn(tmp_path).parameters.names if ".origin." in name]
    assert without == [
        "one.origin.xyz[2]",
        "three.origin.xyz[0]",
        "four.origin.xyz[2]",
        "tip.origin.xyz[0]",
    ]
    table = drawn(tmp_path, origins=True).parameters
    wanted = {
        f"{name}.origin.{kind}[{k}]" for name in DRAWN for kind in ("xyz", "rpy") for k in range(3)
    }
    assert {name for name in table.names if ".origin." in name} == wanted
    assert all(table[name].group == "geometry" for name in wanted)
    again = loads(dumps(drawn(tmp_path, origins=True)))
    assert {
        name
        for name in again.parameters.names
        if "origin" in name and again.parameters[name].value == 0.0
    }


def test_an_arm_with_errors_in_all_origins_is_calibrated(tmp_path: Path) -> None:
    """Poses by SciPy's rotations; what cannot be told apart is held, and other poses come out to the noise."""
    rng = np.random.default_rng(2)
    built = {
        name: tuple(np.array(origin) + 2e-3 * rng.standard_normal(6))
        for name, (_, origin) in DRAWN.items()
    }
    angles = rng.uniform(-1.5, 1.5, (120, 4))
    p, R = poses(built, angles)
    R = R * Rotation.from_rotvec(NOISE * rng.standard_normal((120, 3)))
    readings = np.hstack([p + NOISE * rng.standard_normal((120, 3)), R.as_quat(scalar_first=True)])
    series = Series(instrument=Pose(name="t"), encoders=angles, readings=readings, noise=NOISE)
    left = {}
    for origins in (False, True):
        machine = drawn(tmp_path, origins=origins)
        problems = fit_geometry(
            calibration_problem(machine, [series], ("*.origin.*",)), np.random.default_rng(0)
        )
        others = rng.uniform(-1.5, 1.5, (50, 4))
        # as it is, and as a file
        for mechanism in (problems.mechanism, loads(dumps(problems.mechanism))):
            model = Model(mechanism)
            state = model.forward_kinematics(others)
            q, _ = tip_of(model, state.q)
            left[origins] = float(np.linalg.norm(q - poses(built, others)[0], axis=1).max())
            if origins:
                assert left[True] < LEFT
        if origins:
            assert problems.status.value == "ok", problems.advice
            # of 30 numbers: 4 r + 6 for r turning joints (Everett, Driels, Mooring 1987)
            assert len(problems.estimates) == 4 * 4 + 6
    assert left[False] > 20 * LEFT


def tip_of(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from tauloop.geometry.machine_geometry import machine_geometry

    geometry = machine_geometry(model, q)
    return np.asarray(geometry.tool), np.asarray(q)


def test_zeros_are_parameters_when_asked_for_and_the_question_means_nothing_to_other_files(
    tmp_path: Path,
) -> None:
    drawn(tmp_path)
    for origins in (True, False):
        mechanism = load(tmp_path / "arm.urdf", options=ImportOptions(origins=origins))
        assert ("two.origin.rpy[1]" in mechanism.parameters.names) is origins
    (tmp_path / "a.xml").write_text("<mujoco/>", encoding="utf-8")
    with pytest.raises(InputError, match="an MJCF file, whose zeros are part of the structure"):
        load(tmp_path / "a.xml", options=ImportOptions(origins=True))
