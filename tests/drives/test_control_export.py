"""The control law in C: its own check, and the formulas of the paper's Figures 7 and 9 by hand."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers

from tauloop.common.errors import InputError
from tauloop.drives import load_drive, read_drive, shipped_drives
from tauloop.export.drive_control import export_control

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
CASCADE = """
format: tauloop-drive/1
name: servo
provenance: {status: chosen, source: chosen}
inertias: {rotor: {inertia: 0.001 kg m^2}}
connections: {}
motors: {drive: {on: rotor}}
encoders: {e: {on: rotor}}
control:
  position: {encoder: e, gain: 30}
  speed: {encoder: e, gain: 0.2, integral_time: 50 ms}
  motor: drive
performance: {of: rotor, band: 1 mrad}
"""


def by_hand(
    reference: float, before: float, position: float, loop: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """u = K (e + x_i + N (e - x_d)); the slave gets (1 + v) u / 2 + v P r, the master the rest."""
    K, T_i, T_d, N, P, least, most = 250.0, 1.5, 0.05, 10.0, 10.2, 0.01, 0.25
    e = reference - position
    u = K * (e + loop[0] + N * (e - loop[1]))
    s = np.clip((abs(e / (reference - before)) - least) / (most - least), 0.0, 1.0)
    v = -(1 - 3 * s**2 + 2 * s**3)
    pull = v * P * np.sign(reference - before)
    slave = (1 + v) / 2 * u + pull
    return np.array([u - (1 + v) / 2 * u - pull, slave]), np.array(
        [e / T_i, (e - loop[1]) * N / T_d]
    )


@needs_compiler
def test_the_law_of_two_motors_is_that_of_the_paper(tmp_path: Path) -> None:
    made = export_control(load_drive("dual_motor_axis"), {"kp": 250.0}, folder=tmp_path)
    assert made.manifest["baked_in"]["kp"] == 250.0
    assert "cart_mass" not in made.manifest["baked_in"]
    library = tmp_path / "law.so"
    subprocess.run(
        [compilers()[0], "-shared", "-fPIC", made.name + ".c", "-o", library, "-lm"],
        cwd=tmp_path,
        check=True,
    )
    law = getattr(ctypes.CDLL(str(library)), made.name)
    rng = np.random.default_rng(2)
    for share in (-0.02, 0.005, 0.1, 0.2, 0.9):
        for step in (-0.1, 0.1):
            loop = rng.normal(size=2)
            arrays = [
                np.array(x, dtype=float)
                for x in ([0.3 + step], [0.3], [0.3 + step * (1 - share)], loop)
            ]
            torque, rate, health = np.zeros(2), np.zeros(2), np.zeros(4)
            law(
                *(
                    array.ctypes.data_as(ctypes.c_void_p)
                    for array in (*arrays, torque, rate, health)
                )
            )
            expected = by_hand(*(float(x[0]) for x in arrays[:3]), loop)
            assert torque == pytest.approx(expected[0], rel=1e-12)
            assert rate == pytest.approx(expected[1], rel=1e-12)
            assert health[0] == 1.0


@needs_compiler
@pytest.mark.parametrize("name", shipped_drives())
def test_every_control_law_checks_itself(name: str, tmp_path: Path) -> None:
    stem = export_control(load_drive(name), folder=tmp_path).name
    assert stem == f"{name}_control"
    build = [
        compilers()[0],
        "-std=c99",
        "-Wall",
        "-Werror",
        f"{stem}.c",
        f"{stem}_check.c",
        "-o",
        "check",
        "-lm",
    ]
    subprocess.run(build, cwd=tmp_path, check=True)
    checked = subprocess.run(["./check"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "all agree")


def test_a_cascade_reads_the_speed_and_has_the_states_of_both_loops() -> None:
    """tau = 0.2 (30 e - w + x), dx/dt = (30 e - w) / 0.05, in the numbers that the C is checked by."""
    made = export_control(read_drive(CASCADE, "servo.yaml"))
    (function,) = made.manifest["functions"]
    assert [port["name"] for port in function["inputs"]] == [
        "reference",
        "before",
        "position",
        "speed",
        "loop",
    ]
    assert [port["columns"] for port in function["outputs"]] == [["drive"], ["speed.integral"]]
    text = made.files["servo_control_check.c"]
    numbers = {
        name: np.array(re.findall(r"[-+.\de]+", values), dtype=float)
        for name, values in re.findall(
            r"servo_control_(?:in|out)_(\w+)\[\d+\] = {\n(.*?)};", text, re.DOTALL
        )
    }
    inner = 30 * (numbers["reference"] - numbers["position"]) - numbers["speed"]
    assert numbers["torque"] == pytest.approx(0.2 * (inner + numbers["loop"]), rel=1e-12)
    assert numbers["loop_rate"] == pytest.approx(inner / 0.05, rel=1e-12)


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean kp"):
        export_control(load_drive("dual_motor_axis"), {"kpp": 1.0})
