"""Inverse dynamics, kinematics and a controller as FMUs, and an importer in C that closes the loop round a plant."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from fmus import Instance

import tauloop as tl
from tauloop.compiler.c.calling.compiler import compiler_path
from tauloop.export.controller import FLAGS, CompiledController, ControllerOptions
from tauloop.export.fmu import FmuExport, FmuOptions, export_fmu
from tauloop.integrate import DormandPrince
from tauloop.simulation import ForceLaw, Simulator

fmpy = extra("fmpy")
FMICallException = extra("fmpy.fmi1").FMICallException
validate_fmu = extra("fmpy.validation").validate_fmu

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: The same equations compiled with other flags; and a closed loop of 100 samples, whose steps are
#: others.
SAME, SAME_LOOP = 1e-11, 1e-9
STEP = 2.0**-10
RACKS = str(Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml")
NIGHT = pytest.mark.nightly


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(tl.load("five_bar"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


def made(
    model: tl.Model, folder: Path, controller: ControllerOptions | None = None, **options: object
) -> FmuExport:
    export = export_fmu(model, FmuOptions(**options), controller=controller, folder=folder)  # type: ignore[arg-type]
    assert validate_fmu(str(export.written[0])) == []
    return export


def names(export: FmuExport, role: str) -> list[str]:
    return [variable.name for variable in export.variables.all if variable.causality == role]


@pytest.mark.parametrize("version", ["2", "3"])
def test_inverse_dynamics_feeds_forward(version: str, model: tl.Model, folder: Path) -> None:
    export = made(model, folder, kind="inverse_dynamics", fmi_version=version)
    instance = Instance(export.written[0])
    instance.begin()
    rng, at = np.random.default_rng(0), model.platform.ports.at(model.assembly.q)
    for k in range(5):
        motion = np.concatenate([at + 0.01 * rng.normal(size=2), rng.normal(size=4)])
        instance.set(dict(zip(names(export, "input"), motion.tolist(), strict=True)))
        instance.step(k * STEP, STEP)
        forces = model.platform.inverse_dynamics(motion[:2], motion[2:4], motion[4:]).force
        assert (
            np.abs(instance.get(names(export, "output")) - forces).max()
            < SAME * np.abs(forces).max()
        )
    instance.set({"platform.x": 2.0})
    with pytest.raises(FMICallException):
        instance.get(names(export, "output"))
    assert "out of reach by" in instance.log[-1]
    instance.free()


def test_kinematics_goes_both_ways(model: tl.Model, folder: Path) -> None:
    export = made(model, folder, kind="kinematics", free_parameters=("tip_mass",))
    instance = Instance(export.written[0])
    instance.begin()
    at = model.platform.ports.at(model.assembly.q) + np.array([0.02, -0.01])
    speed = np.array([0.3, -0.2])
    instance.set(dict(zip(names(export, "input")[:4], [*at, *speed], strict=True)))
    moved = instance.get(names(export, "output")[:4])
    state = model.platform.kinematics(at, speed)
    expected = [
        *model.actuator_position(state.q[None])[0],
        *(np.asarray(state.v) @ model.assembly.loops.transmission.T),
    ]
    assert np.abs(moved - expected).max() < SAME
    instance.set(dict(zip(names(export, "input")[4:], moved.tolist(), strict=True)))
    assert np.abs(instance.get(names(export, "output")[4:]) - [*at, *speed]).max() < SAME, (
        "there and back"
    )
    instance.free()


class ComputedTorque(ForceLaw):
    """The controller's law in Python, by the machine's own functions."""

    def __init__(self, model: tl.Model, reference: np.ndarray, bandwidth: float) -> None:
        self.model, self.reference, self.bandwidth = model, reference, bandwidth

    @property
    def period(self) -> float:
        return STEP

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        ports, w = self.model.platform.ports, self.bandwidth
        x, rate = ports.at(q), ports.rates(v)
        asked = w**2 * (self.reference - x) - 2 * w * rate
        return np.asarray(self.model.platform.inverse_dynamics(x, rate, asked, start=q).force)


def test_an_importer_of_our_own_in_c_closes_the_loop_as_our_simulation_does(
    model: tl.Model, folder: Path, tmp_path: Path
) -> None:
    # no step of this loop is near a limit, nor waits long
    options = ControllerOptions(space="platform", rate=1 / STEP)
    plant, controller = made(model, folder), made(model, folder, options, kind="controller")
    headers = Path(fmpy.__file__).parent / "c-code"
    program = tmp_path / "importer"
    source = Path(__file__).with_name("importer.c")
    compiler = compiler_path()
    assert compiler is not None
    words = [
        compiler,
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-isystem",
        str(headers),
        str(source),
    ]
    subprocess.run([*words, "-o", str(program), "-ldl"], check=True)
    places = []
    for export in (plant, controller):
        library = tmp_path / f"{export.name}.so"
        library.write_bytes(
            next(bytes(v) for k, v in export.files.items() if k.startswith("binaries"))
        )  # type: ignore[arg-type]
        token = fmpy.read_model_description(str(export.written[0])).guid
        places += [str(library), token]
    refs = [
        {v.name: k for k, v in enumerate(export.variables.all)} for export in (plant, controller)
    ]
    reference = model.platform.ports.at(model.assembly.q) + np.array([0.01, 0.005])
    pairs = [
        f"s{refs[1]['reference.' + name]}={value!r}"
        for name, value in zip(("platform.x", "platform.y"), map(float, reference), strict=True)
    ]
    pairs += [f"s{refs[1]['bandwidth']}=30.0"]
    for name in names(controller, "input")[1:5]:
        pairs.append(f"p{refs[0][name]}:c{refs[1][name]}")
    for name in names(plant, "input")[:2]:
        pairs.append(f"c{refs[1][name]}:p{refs[0][name]}")
    environment = os.environ | {"FIRST_STATE": str(plant.variables.first_state)}
    done = subprocess.run(
        [program, *places, repr(STEP), "100", *pairs],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    ended = np.array([float(line) for line in done.stdout.split()])
    law = ComputedTorque(model, reference, 30.0)
    integrator = DormandPrince(rtol=1e-10, atol=1e-11)
    own = Simulator(model, integrator=integrator).run(100 * STEP, force=law).steps.y[-1]
    assert np.abs(ended[:4] - own[:4]).max() < SAME_LOOP
    assert np.abs(ended[:2] - reference).max() < 0.005, "on its way"


def test_a_controller_samples_by_time_events_too(model: tl.Model, folder: Path) -> None:
    export = made(model, folder, ControllerOptions(rate=1 / STEP), kind="controller")
    moved = np.array(
        [(0.0, 0.0), (1.5 * STEP, 0.0), (1.5 * STEP, 1.0), (4 * STEP, 1.0)],
        dtype=[("time", float), ("reference.platform.x.acceleration", float)],
    )
    result = fmpy.simulate_fmu(
        str(export.written[0]),
        fmi_type="ModelExchange",
        stop_time=4 * STEP,
        output_interval=STEP / 4,
        input=moved,
        output=names(export, "output"),
        record_events=True,
    )
    changes = result["time"][1:][np.abs(np.diff(result["motor_1.force"])) > SAME]
    assert changes == pytest.approx([2 * STEP]), "what is set at 1.5 samples acts from the second"


def test_a_singular_pose_is_an_error_with_words(model: tl.Model, folder: Path) -> None:
    export = made(model, folder)
    instance = Instance(export.written[0])
    # crank and link in one line, but for half a nanometre
    reach, angle = 0.6 - 5e-10, np.radians(60)
    with pytest.raises(FMICallException):
        instance.begin(
            {"platform.x": reach * np.cos(angle) - 0.1, "platform.y": reach * np.sin(angle)}
        )
    assert (
        "elbow_1: singular pose, 5e-07 mm from the end of its reach (smallest pivot 8.3"
        in instance.log[-1]
    )
    instance.fmu.reset()
    instance.begin()
    instance.free()


CONTROLLED = [
    pytest.param(ControllerOptions(rate=1 / STEP), "five_bar", "3", id="torques"),
    pytest.param(
        ControllerOptions(controller="drive", rate=1 / STEP),
        RACKS,
        "2",
        id="drive lines",
        marks=NIGHT,
    ),
    pytest.param(
        ControllerOptions(space="platform", rate=1 / STEP),
        "hexapod",
        "2",
        id="turns",
        marks=NIGHT,
    ),
]


@pytest.mark.parametrize(("options", "machine", "version"), CONTROLLED)
def test_the_controller_is_the_generated_one_to_the_last_bit_whatever_it_reads(
    options: ControllerOptions, machine: str, version: str, folder: Path
) -> None:
    """Its forces, flags and states are those of what `export_controller` writes, compiled, sample by sample."""
    model = tl.Model(tl.load(machine))
    export = made(model, folder, options, kind="controller", fmi_version=version)
    own = CompiledController(model, options)
    channels, at = own.equations, model.platform.ports.at(model.assembly.q)
    instance, rng = Instance(export.written[0]), np.random.default_rng(0)
    instance.begin()
    readings, outputs = channels.readings(model.assembly.q), names(export, "output")
    raised, n, state, before = 0, len(channels.forces.columns), None, np.zeros(0)
    for k in range(60):
        reference = at + 0.005 * np.sin(20 * k * STEP) * (np.arange(len(at)) == 0)
        measured = (
            readings + 1e-6 * rng.normal(size=len(readings)) + (np.nan if 30 <= k < 33 else 0.0)
        )
        # three samples are no numbers, then the stamp stands still: hold, go on, hold, stop
        sample = channels.sample(k * STEP, min(k, 49) + 1.0, position=measured, reference=reference)
        result = own.step(sample)
        instance.set(dict(zip(names(export, "input"), sample[1:].tolist(), strict=True)))
        if k == 52:
            state, before = instance.states(), sample[1:]
        instance.step(k * STEP, STEP)
        values = instance.get(outputs)
        raised |= result.flags
        assert np.array_equal(values[:n], result.force)
        assert values[n] == result.flags
        assert {name for name, value in zip(FLAGS, values[n + 1 :], strict=True) if value} == set(
            result.names
        )
    assert raised & FLAGS["NOT_A_NUMBER"]
    assert raised & (FLAGS["STOPS"] | FLAGS["BRAKES"])
    assert export.variables.outputs[n].name == "flags"
    # a kept state goes on as it did, and a reset begins anew
    late = []
    for _ in range(2):
        instance.go_back(state)
        instance.set(dict(zip(names(export, "input"), before.tolist(), strict=True)))
        instance.step(52 * STEP, STEP)
        late.append(instance.get(outputs))
    assert np.array_equal(*late)
    instance.fmu.reset()
    instance.begin()
    instance.step(0.0, STEP)
    assert instance.get(outputs)[n] == 0
    instance.free()


def test_every_sample_is_a_new_measurement_where_nobody_stamps_it(
    model: tl.Model, folder: Path
) -> None:
    export = made(model, folder, ControllerOptions(rate=1 / STEP, stuck=3), kind="controller")
    instance = Instance(export.written[0])
    instance.begin()
    flags = []
    for k in range(40):
        instance.set({"reference.platform.x": float(0.001 * k)})
        instance.step(k * STEP, STEP)
        flags.append(set(instance.get(["flag.stale"])))
    assert flags[0] == {0.0}
    assert flags[-1] == {1.0}, (
        "encoders that stand still where they should move are stale all the same"
    )
    instance.free()


@NIGHT
@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("version", ["2", "3"])
def test_the_text_of_a_controller_passes_strict_compilers(
    version: str, compiler: str, tmp_path: Path
) -> None:
    for law in (
        ControllerOptions(velocity_differences=True),
        ControllerOptions(controller="drive"),
    ):
        machine = tl.load("five_bar" if law.velocity_differences else RACKS)
        made = export_fmu(
            machine,
            FmuOptions(kind="controller", fmi_version=version, binary=False),
            controller=law,
        )
        source = tmp_path / "text.c"
        source.write_text(str(made.files[f"sources/{made.name}.c"]))
        words = [
            compiler,
            "-std=c99",
            "-O0",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-shared",
        ]
        subprocess.run([*words, str(source), "-o", str(tmp_path / "text.so"), "-lm"], check=True)
