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
from tauloop.codegen.compiler import compiler_path
from tauloop.errors import InputError
from tauloop.fmu import FmuExport, FmuOptions, export_fmu
from tauloop.integrate import DormandPrince
from tauloop.simulation import ForceLaw, Simulator

fmpy = extra("fmpy")
FMICallException = extra("fmpy.fmi1").FMICallException
validate_fmu = extra("fmpy.validation").validate_fmu

pytestmark = pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
#: The same equations compiled with other flags; and a closed loop of 100 samples, whose steps are others.
SAME, SAME_LOOP = 1e-11, 1e-9
STEP = 2.0**-10


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(tl.load("five_bar"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


def made(model: tl.Model, folder: Path, **options: object) -> FmuExport:
    export = export_fmu(model, FmuOptions(**options), folder=folder)  # type: ignore[arg-type]
    assert validate_fmu(str(export.written[0])) == []
    return export


def names(export: FmuExport, role: str) -> list[str]:
    return [variable.name for variable in export.variables.all if variable.causality == role]


@pytest.mark.parametrize("version", ["2", "3"])
def test_inverse_dynamics_feeds_forward(version: str, model: tl.Model, folder: Path) -> None:
    export = made(model, folder, kind="inverse_dynamics", version=version)
    instance = Instance(export.written[0])
    instance.begin()
    rng, at = np.random.default_rng(0), model.platform.ports.at(model.assembly.q)
    for k in range(5):
        motion = np.concatenate([at + 0.01 * rng.normal(size=2), rng.normal(size=4)])
        instance.set(dict(zip(names(export, "input"), motion.tolist(), strict=True)))
        instance.step(k * STEP, STEP)
        forces = model.platform.inverse_dynamics(motion[:2], motion[2:4], motion[4:]).force
        assert np.abs(instance.get(names(export, "output")) - forces).max() < SAME * np.abs(forces).max()
    instance.set({"platform.x": 2.0})
    with pytest.raises(FMICallException):
        instance.get(names(export, "output"))
    assert "out of reach by" in instance.log[-1]
    instance.free()


def test_kinematics_goes_both_ways(model: tl.Model, folder: Path) -> None:
    export = made(model, folder, kind="kinematics", free=("tip_mass",))
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
    assert np.abs(instance.get(names(export, "output")[4:]) - [*at, *speed]).max() < SAME, "there and back"
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
    plant, controller = made(model, folder), made(model, folder, kind="controller", sample_time=STEP)
    headers = Path(fmpy.__file__).parent / "c-code"
    program = tmp_path / "importer"
    source = Path(__file__).with_name("importer.c")
    compiler = compiler_path()
    assert compiler is not None
    words = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-isystem", str(headers), str(source)]
    subprocess.run([*words, "-o", str(program), "-ldl"], check=True)
    places = []
    for export in (plant, controller):
        library = tmp_path / f"{export.name}.so"
        library.write_bytes(next(bytes(v) for k, v in export.files.items() if k.startswith("binaries")))  # type: ignore[arg-type]
        token = fmpy.read_model_description(str(export.written[0])).guid
        places += [str(library), token]
    refs = [{v.name: k for k, v in enumerate(export.variables.all)} for export in (plant, controller)]
    reference = model.platform.ports.at(model.assembly.q) + np.array([0.01, 0.005])
    pairs = [
        f"s{refs[1]['reference.' + name]}={value!r}"
        for name, value in zip(("platform.x", "platform.y"), map(float, reference), strict=True)
    ]
    pairs += [f"s{refs[1]['bandwidth']}=30.0"]
    for name in names(controller, "input")[6:]:
        pairs.append(f"p{refs[0][name]}:c{refs[1][name]}")
    for name in names(controller, "output"):
        pairs.append(f"c{refs[1][name]}:p{refs[0][name]}")
    environment = os.environ | {"FIRST_STATE": str(plant.variables.first_state)}
    done = subprocess.run(
        [program, *places, repr(STEP), "100", *pairs], env=environment, capture_output=True, text=True, check=True
    )
    ended = np.array([float(line) for line in done.stdout.split()])
    law = ComputedTorque(model, reference, 30.0)
    integrator = DormandPrince(rtol=1e-10, atol=1e-11)
    own = Simulator(model, integrator=integrator).run(100 * STEP, force=law).steps.y[-1]
    assert np.abs(ended[:4] - own[:4]).max() < SAME_LOOP
    assert np.abs(ended[:2] - reference).max() < 0.005, "on its way"


def test_a_controller_samples_by_time_events_too(model: tl.Model, folder: Path) -> None:
    export = made(model, folder, kind="controller", sample_time=STEP)
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
    # crank and link in one line, but for a nanometre
    reach, angle = 0.6 - 1e-9, np.radians(60)
    with pytest.raises(FMICallException):
        instance.begin({"platform.x": reach * np.cos(angle) - 0.1, "platform.y": reach * np.sin(angle)})
    assert "elbow_1: singular pose, 1e-06 mm from the end of its reach (smallest pivot 8.7" in instance.log[-1]
    instance.fmu.reset()
    instance.begin()
    instance.free()


def test_a_machine_that_turns_in_space_has_no_such_controller() -> None:
    with pytest.raises(InputError, match="turns in space"):
        export_fmu(tl.load("hexapod"), FmuOptions(kind="controller", binary=False))
