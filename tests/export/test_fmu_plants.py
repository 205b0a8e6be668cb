"""Plants as FMUs in an importer that is not ours: FMPy reads, checks, compiles and runs them."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from fmus import Instance

import tauloop as tl
from tauloop.common.errors import EngineError, InputError
from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS
from tauloop.compiler.c.calling.library import require_compiler
from tauloop.compiler.c.printing.parameter_check import parameter_hash
from tauloop.export.fmu import FmuExport, FmuOptions, export_fmu
from tauloop.formats import machine_path
from tauloop.integrate import DormandPrince
from tauloop.simulation import ConstantForce, Simulator, start_state

fmpy = extra("fmpy")
build_platform_binary = extra("fmpy.build").build_platform_binary
FMICallException = extra("fmpy.fmi1").FMICallException
validate_fmu = extra("fmpy.validation").validate_fmu

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Steps of the same integrator, compiled with other flags, over 1000 steps of communication (SI).
SAME_STEPS = 1e-12
#: CVODE at a tolerance of 1e-10 (the bar of the issue).
OTHER_INTEGRATOR = 1e-7
#: The delta, with bounds of a mass.
MACHINE = tl.loads(
    machine_path("delta")
    .read_text()
    .replace("plate_mass: 0.2807 kg", "plate_mass: {value: 280.7 g, bounds: [0 kg, 2 kg]}")
)
#: Time between points of communication, s; a power of two, so that importers' sums of it are exact.
STEP = 2.0**-10


@cache
def exported(folder: Path, fmi_version: str = "3", **options: object) -> FmuExport:
    return export_fmu(MACHINE, FmuOptions(fmi_version=fmi_version, **options), folder=folder)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fmus")


@pytest.fixture(scope="module", params=["2", "3"])
def fmu(request: pytest.FixtureRequest, folder: Path) -> FmuExport:
    return exported(
        folder / request.param,
        fmi_version=request.param,
        free_parameters=("plate_mass", "arm_length"),
    )


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(MACHINE)


def holding(model: tl.Model) -> np.ndarray:
    """Forces near those that hold the machine at its reference pose."""
    ports = model.platform.ports
    still = np.zeros(ports.velocity.size)
    return (
        np.asarray(model.platform.inverse_dynamics(ports.at(model.assembly.q), still, still).force)
        * 1.02
        + 0.01
    )


def motion(export: FmuExport, model: tl.Model) -> list[str]:
    """Names of the independent positions and velocities."""
    count = model.platform.ports.position.size + model.platform.ports.velocity.size
    return [state.name for state in export.variables.states[:count]]


def forces(export: FmuExport, model: tl.Model, values: np.ndarray) -> dict[str, float]:
    names = [variable.name for variable in export.variables.inputs]
    return dict(zip(names, map(float, values), strict=False))


def own(model: tl.Model, end: float, force: np.ndarray, tolerance: float = 1e-12) -> np.ndarray:
    """The state where Tauloop's own simulation ends."""
    integrator = DormandPrince(rtol=tolerance, atol=tolerance / 10, max_steps=1_000_000)
    return np.asarray(
        Simulator(model, integrator=integrator)
        .run(end, force=ConstantForce(values=force))
        .steps.y[-1]
    )


# What is written


def test_fmpy_finds_nothing_wrong_and_names_units_and_bounds_are_those_of_the_machine(
    fmu: FmuExport,
) -> None:
    assert validate_fmu(str(fmu.written[0])) == []
    description = fmpy.read_model_description(str(fmu.written[0]))
    variables = {variable.name: variable for variable in description.modelVariables}
    mass = variables["plate_mass"]
    assert (mass.causality, mass.variability, mass.unit, float(mass.start)) == (
        "parameter",
        "tunable",
        "kg",
        0.2807,
    )
    assert (float(mass.min), float(mass.max), float(mass.nominal)) == (0.0, 2.0, 0.2807)
    assert mass.declaredType is None
    assert mass.displayUnit == "g"
    assert (variables["platform.x"].unit, variables["leg1.motor.velocity"].unit) == ("m", "rad/s")
    assert (variables["leg2.motor.force"].causality, variables["leg2.motor.force"].unit) == (
        "input",
        "N m",
    )
    assert description.modelExchange is not None
    assert description.coSimulation.canSerializeFMUstate


def test_parameters_have_a_hash_and_a_library_with_damaged_ones_begins_nothing(
    folder: Path,
) -> None:
    export = exported(folder / "damaged", binary=True)
    instance = Instance(export.written[0])
    instance.free()
    text = (Path(instance.folder) / "modelDescription.xml").read_text()
    values = MACHINE.parameters.values
    assert export.parameter_hash == parameter_hash(values)
    assert f'version="parameters {export.parameter_hash}"' in text
    (library,) = Path(instance.folder).glob("binaries/*/*.so")
    # the first two of the table stand side by side there alone
    table, content = struct.pack("<2d", *list(values.values())[:2]), library.read_bytes()
    assert content.count(table) == 1
    copied = Path(shutil.copytree(instance.folder, folder / "copied"))
    (damaged,) = copied.glob("binaries/*/*.so")
    damaged.write_bytes(content.replace(table, bytes([table[0] ^ 1]) + table[1:]))
    log: list[str] = []

    def note(*arguments: object) -> None:
        log.append(arguments[3].decode())  # type: ignore[attr-defined]

    with pytest.raises(Exception, match="nstantiate"):
        fmpy.simulation.instantiate_fmu(
            str(copied), instance.description, "CoSimulation", logger=note
        )
    assert "parameters in this library are damaged" in log[-1]


def test_the_same_machine_gives_the_same_bytes(fmu: FmuExport, tmp_path: Path) -> None:
    options = FmuOptions(fmi_version=fmu.version, free_parameters=("plate_mass", "arm_length"))
    # an empty cache, in another folder: the compiler runs again
    again = export_fmu(MACHINE, options, folder=tmp_path, cache=tmp_path / "cache")
    assert again.written[0].read_bytes() == fmu.written[0].read_bytes()
    with zipfile.ZipFile(fmu.written[0]) as archive:
        names = set(archive.namelist())
    library = "binaries/linux64" if fmu.version == "2" else "binaries/x86_64-linux"
    assert {"modelDescription.xml", "sources/delta_plant.c", f"{library}/delta_plant.so"} <= names


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("version", ["2", "3"])
def test_our_declarations_are_those_of_the_standard(
    version: str, compiler: str, folder: Path, tmp_path: Path
) -> None:
    made = exported(folder / "text", fmi_version=version, binary=False, name=f"text{version}")
    source = tmp_path / "text.c"
    source.write_text(str(made.files[f"sources/text{version}.c"]))
    headers = Path(fmpy.__file__).parent / "c-code"
    objects = []
    for further in ([], [f"-DFMI{version}_HEADERS", "-isystem", str(headers)]):
        words = [
            compiler,
            "-std=c99",
            "-O0",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            *further,
        ]
        subprocess.run([*words, "-c", str(source), "-o", str(tmp_path / "text.o")], check=True)
        objects.append((tmp_path / "text.o").read_bytes())
    assert objects[0] == objects[1], "the same code with the standard's header and without"


def test_an_importer_compiles_the_sources_to_the_same_motion(
    fmu: FmuExport, model: tl.Model, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.fmu"
    with zipfile.ZipFile(fmu.written[0]) as old, zipfile.ZipFile(bare, "w") as new:
        for name in old.namelist():
            if not name.startswith("binaries/"):
                new.writestr(name, old.read(name))
    unpacked = tmp_path / "unpacked"
    fmpy.extract(str(bare), str(unpacked))
    (tmp_path / "build").mkdir()
    build_platform_binary(
        unpacked,
        tmp_path / "build",
        cmake_options={"CMAKE_C_FLAGS:STRING": "-O1 -ffp-contract=off"},
    )
    names, values = motion(fmu, model), forces(fmu, model, holding(model))
    ends = []
    for place in (None, str(unpacked)):
        instance = Instance(fmu.written[0], folder=place)
        instance.begin(values)
        for k in range(50):
            instance.step(k * STEP, STEP)
        ends.append(instance.get(names))
        instance.free()
    assert np.abs(ends[0] - ends[1]).max() < SAME_STEPS


def test_bad_requests_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="plate_mas"):
        export_fmu(MACHINE, FmuOptions(free_parameters=("plate_mas",)))
    with pytest.raises(InputError, match="version"):
        FmuOptions(fmi_version="1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        EngineError, match=r"none was found.*\n.*install a compiler, or write only sources"
    ):
        export_fmu(MACHINE, FmuOptions())
    assert export_fmu(MACHINE, FmuOptions(binary=False), folder=tmp_path).written[0].exists()


# Co-simulation


def test_co_simulation_is_our_integrator_with_split_steps_too(
    fmu: FmuExport, model: tl.Model
) -> None:
    force, names = holding(model), motion(fmu, model)
    end = 64 * STEP
    expected = own(model, end, force)
    for splits in (1, 3):
        instance = Instance(fmu.written[0])
        instance.begin(forces(fmu, model, force), tolerance=1e-12)
        for k in range(64):
            for part in range(splits):
                instance.step((k + part / splits) * STEP, STEP / splits)
        assert np.abs(instance.get(names) - expected[: len(names)]).max() < SAME_STEPS
        instance.free()


def test_parameters_change_between_steps_and_the_motion_is_that_of_the_changed_machine(
    fmu: FmuExport, model: tl.Model
) -> None:
    force = holding(model)
    changed = tl.Model(replace(model.mechanism, parameters=_with(model, "plate_mass", 0.5)))
    instance = Instance(fmu.written[0])
    instance.begin(forces(fmu, model, force) | {"plate_mass": 0.5}, tolerance=1e-12)
    for k in range(32):
        instance.step(k * STEP, STEP)
    names = motion(fmu, model)
    assert (
        np.abs(instance.get(names) - own(changed, 32 * STEP, force)[: len(names)]).max()
        < SAME_STEPS
    )
    before = instance.get([f"der({names[-1]})"])
    instance.set({"plate_mass": 0.2807})
    assert not np.allclose(instance.get([f"der({names[-1]})"]), before)
    instance.free()


def _with(model: tl.Model, name: str, value: float) -> object:
    table = model.mechanism.parameters
    return replace(
        table,
        parameters=tuple(
            replace(p, value=value) if p.name == name else p for p in table.parameters
        ),
    )


def test_instances_states_and_resets_do_not_touch_each_other(
    fmu: FmuExport, model: tl.Model
) -> None:
    force, names = holding(model), motion(fmu, model)
    start = forces(fmu, model, force)
    first = Instance(fmu.written[0])
    second = Instance(fmu.written[0], folder=first.folder)
    first.begin(start)
    second.begin(start)
    for k in range(20):
        first.step(k * STEP, STEP)
    state, there = first.states(), first.get(names)
    for k in range(20, 40):
        first.step(k * STEP, STEP)
        second.step((k - 20) * STEP, STEP)
    end = first.get(names)
    assert (second.get(names) == there).all(), "as if it were alone"
    content = first.bytes_of(state)
    first.go_back(state)
    second.go_back(second.state_of(content))
    for instance in (first, second):
        assert (instance.get(names) == there).all()
        for k in range(20, 40):
            instance.step(k * STEP, STEP)
        assert (instance.get(names) == end).all(), (
            "to the last bit, for the integrator's memory comes back too"
        )
    first.fmu.reset()
    first.begin(start)
    for k in range(20):
        first.step(k * STEP, STEP)
    assert (first.get(names) == there).all()
    with pytest.raises(FMICallException):
        first.state_of(bytes(len(content)))
    # of version 2 FMPy hands all messages to the instance that was made last
    assert "these bytes are no state of this FMU" in [*first.log, *second.log][-1]
    first.free()
    second.free()


def test_a_step_ends_early_where_the_importer_wants_it(folder: Path, model: tl.Model) -> None:
    made = exported(folder / "3", fmi_version="3", free_parameters=("plate_mass", "arm_length"))
    times: list[float] = []

    def update(*arguments: object) -> None:
        times.append(float(arguments[1]))  # type: ignore[arg-type]
        arguments[6][0], arguments[7][0] = len(times) == 2, times[-1]  # type: ignore[index]

    instance = Instance(made.written[0], early_return_allowed=True, intermediate_update=update)
    instance.begin(forces(made, model, holding(model)), tolerance=1e-12)
    _, _, is_early, last = instance.step(0.0, 0.0625)
    assert is_early
    assert last == times[1] < 0.0625
    while last < 0.0625:
        _, _, is_early, last = instance.step(last, 0.0625 - last)
    names = motion(made, model)
    assert (
        np.abs(instance.get(names) - own(model, 0.0625, holding(model))[: len(names)]).max()
        < SAME_STEPS
    )
    instance.free()


# Model exchange


def test_model_exchange_with_cvode_is_the_same_motion(fmu: FmuExport, model: tl.Model) -> None:
    force, names = holding(model), motion(fmu, model)
    result = fmpy.simulate_fmu(
        str(fmu.written[0]),
        fmi_type="ModelExchange",
        stop_time=0.125,
        output_interval=STEP,
        relative_tolerance=1e-10,
        start_values=forces(fmu, model, force),
        output=names,
    )
    ended = np.array([result[name][-1] for name in names])
    assert np.abs(ended - own(model, 0.125, force)[: len(names)]).max() < OTHER_INTEGRATOR


# What goes wrong


def fall(instance: Instance, steps: int) -> None:
    for k in range(steps):
        instance.step(k * STEP, STEP)


def test_calls_that_may_not_be_made_are_refused_with_a_word(fmu: FmuExport) -> None:
    instance = Instance(fmu.written[0])
    for call, words in (
        (
            lambda: instance.step(0.0, STEP),
            "DoStep is not allowed while the instance is instantiated",
        ),
        (instance.fmu.exitInitializationMode, "ExitInitializationMode is not allowed while"),
        (instance.fmu.terminate, "Terminate is not allowed while"),
        (lambda: instance.set({"der(platform.x)": 1.0}), "it is calculated"),
        (lambda: instance.set({"plate_mass": -1.0}), "beyond its bounds"),
        (lambda: instance.set({"leg1.motor.force": np.nan}), "no finite number"),
    ):
        with pytest.raises(FMICallException):
            call()
        assert words in instance.log[-1]
    instance.begin()
    for call, words in (
        (lambda: instance.set({"platform.x": 0.1}), "it is a state"),
        (lambda: instance.step(1.0, STEP), "the instance is at 0 s"),
        (lambda: instance.step(0.0, -STEP), "cannot be made"),
    ):
        with pytest.raises(FMICallException):
            call()
        assert words in instance.log[-1]
    instance.step(0.0, STEP)
    instance.free()
    instance.description.guid = "another"
    with pytest.raises(Exception, match="nstantiate"):
        fmpy.simulation.instantiate_fmu(instance.folder, instance.description, "CoSimulation")


def test_a_pose_out_of_reach_is_an_error_with_the_leg_and_the_millimetres(
    fmu: FmuExport, model: tl.Model
) -> None:
    instance = Instance(fmu.written[0])
    with pytest.raises(FMICallException):
        instance.begin({"platform.x": 0.9})
    with pytest.raises(tl.PoseError) as refused:
        start_state(model, [0.9, *model.platform.ports.at(model.assembly.q)[1:]])
    worst = max(refused.value.problems, key=lambda problem: float(problem.what.split()[4]))
    amount = float(worst.what.split()[4])
    assert f"{worst.where}: out of reach by {amount:.4g} mm (too far away)" in instance.log[-1]
    with pytest.raises(FMICallException):
        instance.step(0.0, STEP)
    assert "in error" in instance.log[-1]
    instance.fmu.reset()
    instance.begin()
    instance.free()


def test_a_motion_to_the_end_of_its_reach_ends_with_a_word(fmu: FmuExport, model: tl.Model) -> None:
    instance = Instance(fmu.written[0])
    instance.begin(forces(fmu, model, np.full(3, 5.0)))
    with pytest.raises(FMICallException):
        fall(instance, 2000)
    assert "forearm" in instance.log[-1]
    assert "mm" in instance.log[-1]
    instance.free()


def test_the_library_needs_no_processor_of_this_kind() -> None:
    assert not any("march" in flag for flag in PORTABLE_FLAGS)
    assert "-ffp-contract=off" in PORTABLE_FLAGS
    assert require_compiler().flags != PORTABLE_FLAGS
