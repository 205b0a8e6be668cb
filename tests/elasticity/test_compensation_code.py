"""Corrected motor positions as C, against the function and an independent route."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import elastic_machines
import numpy as np
import pytest
from elastic_machines import EXAMPLE, loaded_samples
from linuxcnc_modules import CompiledModule, program_text

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.library import Library

#: Machines, wrenches that deflect them by some 1e-4 of their size, and changes of poses.
MACHINES = {
    "gantry": (lambda: tl.load(EXAMPLE), 300.0, 0.1),
    "delta": (lambda: tl.loads(elastic_machines.DELTA), 3.0, 0.03),
    "hexapod": (lambda: elastic_machines.hexapod(drives="20 N/um", sections=True), 200.0, 0.01),
    "hexapod_drives": (lambda: elastic_machines.hexapod(drives="20 N/um"), 200.0, 0.01),
    "orthoglide": (lambda: tl.loads(elastic_machines.PUU), 10.0, 0.02),
    "overconstrained": (lambda: tl.loads(elastic_machines.PRPAR), 3.0, 0.02),
}
#: Agreement of C and Python, relative to the corrected positions.
C_TOLERANCE = 1e-10
#: The same relative to the correction, which is 1e-4 of the positions.
CORRECTION_TOLERANCE = 1e-8


def compiled(folder: Path, name: str, *, is_single: bool = False) -> ctypes.CDLL:
    """Return the exported source as a library built by the system's compiler."""
    library = folder / f"{name}.so"
    flags = ["-O0", "-shared", "-fPIC", "-std=c99", "-Wall", "-Wextra", "-Werror"]
    flags += ["-Wdouble-promotion"] * is_single
    source = folder / f"{name}.c"
    subprocess.run(["cc", *flags, source, "-o", library, "-lm"], check=True)
    return ctypes.CDLL(str(library))


def called(
    library: ctypes.CDLL, export: tl.export.c.CompensationExport, inputs: dict[str, np.ndarray]
) -> np.ndarray:
    """Return the actuator positions (N, n_u) of the exported function, sample by sample."""
    (described,) = export.manifest["functions"]
    kind = np.float32 if export.manifest.get("precision") == "single" else float
    function = getattr(library, described["name"])
    rows = []
    for sample in range(len(inputs["position"])):
        arrays = [
            np.ascontiguousarray(inputs[port["name"]][sample], kind) for port in described["inputs"]
        ]
        result, health = np.zeros(described["outputs"][0]["size"], kind), np.zeros(4, kind)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, result, health)]
        function(*pointers)
        assert health[0] >= 0.0
        assert health[1] > 1e-6
        rows.append(result.astype(float))
    return np.array(rows)


@pytest.mark.parametrize("name", MACHINES)
def test_c_agrees_with_the_function(name: str, tmp_path: Path) -> None:
    """The code that the system's compiler builds gives the same positions as `compensate`."""
    machine, force, reach = MACHINES[name]
    model, inputs = loaded_samples(machine(), force, reach)
    export = tl.export_compensation(model, tmp_path, name="machine")
    rises = dict(zip(export.parts, np.linspace(-3.0, 4.0, len(export.parts)), strict=True))
    inputs["temperatures"] = np.tile(list(rises.values()) or [0.0], (6, 1))
    result = tl.compensate(
        model, inputs["position"], wrenches=inputs["wrench"], temperatures=rises or None
    )
    positions = called(compiled(tmp_path, "machine"), export, inputs)
    error = np.abs(positions - result.actuators).max()
    assert error < C_TOLERANCE * np.abs(result.actuators).max()
    assert error < CORRECTION_TOLERANCE * np.abs(result.correction).max()
    assert export.status == "ok"


def test_single_precision_states_its_error_in_meters(tmp_path: Path) -> None:
    """The stated error of the tool is that of the compiled floats, and rounding of positions."""
    model, inputs = loaded_samples(tl.load(EXAMPLE), 300.0, 0.02)
    export = tl.export_compensation(model, tmp_path, name="machine", precision="single")
    inputs["temperatures"] = np.zeros((6, len(export.parts)))
    inputs = {key: values.astype(np.float32).astype(float) for key, values in inputs.items()}
    result = tl.compensate(model, inputs["position"], wrenches=inputs["wrench"])
    positions = called(compiled(tmp_path, "machine", is_single=True), export, inputs)
    R = model.platform.actuator_jacobian(inputs["position"])
    moved = np.linalg.solve(R, (positions - result.actuators)[..., None])[..., 0]
    assert export.tool_error is not None
    assert 0.0 < np.linalg.norm(moved, axis=1).max() < 2.0 * export.tool_error
    assert export.tool_error < 1e-2 * np.abs(result.correction).max()
    assert export.manifest["compensation"]["tool_error_m"] == export.tool_error


def test_exported_check_program_passes(tmp_path: Path) -> None:
    """The test program of the export agrees with the numbers that it contains."""
    tl.export_compensation(EXAMPLE, tmp_path, name="machine")
    program = tmp_path / "check"
    sources = [tmp_path / "machine.c", tmp_path / "machine_check.c"]
    subprocess.run(["cc", "-O1", *sources, "-o", program, "-lm"], check=True)
    assert "all agree" in subprocess.run([program], check=True, capture_output=True).stdout.decode()


@pytest.mark.parametrize("name", ["gantry", "hexapod_drives"])
def test_linuxcnc_module_corrects_and_returns_to_the_world(name: str) -> None:
    """Inverse kinematics gives the motors of `compensate`, and forward its inverse."""
    machine, force, reach = MACHINES[name]
    model, inputs = loaded_samples(machine(), force, reach)
    export = tl.export_linuxcnc(model, compensation=True)
    module = CompiledModule(
        export, Library.create(program_text(export)), np.array(model.assembly.q)
    )
    parts = len(export.loads) - 6
    assert export.loads[:6] == tuple(
        f"load.{name}" for name in ("fx", "fy", "fz", "mx", "my", "mz")
    )
    rises = np.linspace(-3.0, 4.0, parts)
    q = model.inverse_kinematics(inputs["position"]).q
    tool = model.platform.tool(inputs["position"], start=q)
    world = np.concatenate([1e3 * tool.place, np.zeros((6, 3))], axis=1)
    names = tl.thermal_expansion(model).parts if parts else ()
    for row in range(6):
        wrench = inputs["wrench"][row]
        result = tl.compensate(
            model,
            inputs["position"][row],
            wrench=tuple(wrench),
            temperatures=dict(zip(names, rises, strict=True)) or None,
        )
        pins = np.concatenate([module.pins[:-1], wrench, rises, [0.0]])
        status, joints = module.inverse(world[row : row + 1], pins)
        assert status.tolist() == [0]
        assert joints[0] == pytest.approx(1e3 * result.actuators[0], abs=1e-8)
        status, back = module.forward(joints, pins)
        assert status.tolist() == [0]
        assert back[0] == pytest.approx(world[row], abs=1e-7)
        _, rigid = module.inverse(
            world[row : row + 1], np.append(module.pins, np.zeros(5 + parts + 1))
        )
        assert np.abs(rigid - joints).max() > 1e-3


def test_what_is_not_covered_is_refused() -> None:
    """Rigid machines and free parameters are refused by name."""
    with pytest.raises(InputError, match="has elastic data"):
        tl.export_compensation("delta")
    model = tl.Model(tl.load(EXAMPLE)).with_free_parameters(["triple1.length"])
    with pytest.raises(InputError, match=r"free parameters \(triple1.length\)"):
        tl.export_compensation(model)


def test_table_meets_its_tolerance_at_random_poses_and_loads() -> None:
    """Interpolated corrections agree with `compensate` about as well as stated."""
    ranges = {"x": (-0.1, 0.1), "y": (-0.1, 0.1), "z": (-0.1, 0.1)}
    tolerance = 2e-6
    table = tl.compensation_table(
        EXAMPLE, ranges=ranges, table_tolerance=tolerance, wrench={"fx": 300.0, "fz": -300.0}
    )
    assert table.status == "ok"
    assert 0.0 < table.interpolation_error <= tolerance
    rng = np.random.default_rng(7)
    position = rng.uniform(-0.1, 0.1, (40, 3))
    wrench = np.zeros((40, 6))
    wrench[:, [0, 2]] = rng.uniform(-300.0, 300.0, (40, 2))
    rises = np.linspace(-5.0, 5.0, len(table.parts))
    result = tl.compensate(
        table.model,
        position,
        wrenches=wrench,
        temperatures=dict(zip(table.parts, rises, strict=True)),
    )
    miss = table.interpolated(position, wrench, np.tile(rises, (40, 1))) - result.correction
    R = table.model.platform.actuator_jacobian(position)
    moved = np.linalg.solve(R, miss[..., None])[..., 0]
    assert np.linalg.norm(moved, axis=1).max() < tolerance
    lines = table.to_csv().splitlines()
    assert len(lines) == len(table.position) + 1
    assert lines[0].startswith("position.platform.x [m],")
    at_corner = [float(number) for number in lines[1].split(",")]
    assert at_corner[:3] == [-0.1, -0.1, -0.1]
    assert at_corner[3] == table.correction[0, 0]


@pytest.mark.parametrize("x", [0.06, np.nan])
def test_table_does_not_extrapolate(x: float) -> None:
    table = tl.compensation_table(EXAMPLE, ranges={"x": (-0.05, 0.05)}, wrench={"fx": 100.0})
    no_loads = np.zeros((2, 6)), np.zeros((2, len(table.parts)))
    with pytest.raises(InputError, match=r"position platform.x: is .* at row 2"):
        table.interpolated(np.array([[0.0], [x]]), *no_loads)
    assert table.interpolated(np.array([[0.05], [-0.05]]), *no_loads).shape == (2, 3)


def test_table_refuses_what_it_cannot_interpolate() -> None:
    """A tolerance beyond 20 000 points, quaternions and unknown names are refused."""
    ranges = {"x": (-0.2, 0.2), "y": (-0.1, 0.1), "z": (-0.1, 0.1)}
    with pytest.raises(InputError, match="table_tolerance: cannot be met"):
        tl.compensation_table(EXAMPLE, ranges=ranges, table_tolerance=1e-9)
    machine = elastic_machines.hexapod(drives="20 N/um")
    with pytest.raises(InputError, match="component of a quaternion"):
        tl.compensation_table(machine, ranges={"qw": (0.9, 1.0)})
