"""FMUs that PythonFMU and PythonFMU3 made, as actuators, drives and controllers of machines."""

from __future__ import annotations

import copy
import shutil
import stat
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from machine_texts import WITHOUT_COULOMB, shipped_text

import tauloop as tl
from conftest import ROOT
from tauloop.common.errors import EngineError, InputError
from tauloop.export.fmu import FmuCoupling, FmuOptions, co_simulate, export_fmu
from tauloop.export.fmu.archive import archive
from tauloop.export.fmu.foreign import ForeignFmu
from tauloop.simulation import ControlOptions, Integration, Simulation, SimulationOptions

fmpy = extra("fmpy")
second, third = extra("pythonfmu.builder").FmuBuilder, extra("pythonfmu3.builder").FmuBuilder

MOTOR = ROOT / "examples" / "foreign_drive" / "servo_motor.py"
#: A block of FMI 2 without units: out = gain * command, until it fails.
BLOCK = """
from pythonfmu import Boolean, Fmi2Causality, Fmi2Slave, Fmi2Variability, Real

class Block(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.command, self.out, self.gain, self.fails_at, self.armed = 0.0, 0.0, 1.0, 1e9, True
        for name, role in (("command", "input"), ("out", "output")):
            self.register_variable(Real(name, causality=Fmi2Causality[role]))
        for name in ("gain", "fails_at"):
            kind = {"causality": Fmi2Causality.parameter, "variability": Fmi2Variability.tunable}
            self.register_variable(Real(name, **kind))
        kind = {"causality": Fmi2Causality.input, "variability": Fmi2Variability.discrete}
        self.register_variable(Boolean("armed", **kind))

    def do_step(self, time, step):
        self.out = self.gain * self.command if self.armed else 0.0
        return time < self.fails_at
"""
WIRED = {
    "asked": "0.005 m/rad * track1.motor.force",
    "speed": "200 rad/m * track1.motor.velocity",
    "track1.motor.force": "200 rad/m * torque",
}
#: The same control, with other steps between samples; and the same by two other programs.
SAME_CONTROL, SAME_LAW = 1e-9, 1e-8
STROKE = tl.StrokeOptions(end={"x": 0.01}, duration=0.05)


@pytest.fixture(scope="module")
def motor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("motor")
    return Path(third.build_FMU(MOTOR, dest=folder))


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("block")
    (folder / "block.py").write_text(BLOCK)
    return Path(second.build_FMU(folder / "block.py", dest=folder))


@pytest.fixture(scope="module")
def gantry() -> tl.Model:
    return tl.Model(tl.load("gantry_tau_3dof"))


@pytest.fixture(scope="module")
def five_bar() -> tl.Model:
    """Without dry friction, at whose jumps runs with other steps part."""
    return tl.Model(tl.loads(shipped_text("five_bar", WITHOUT_COULOMB)))


def monolithic(model: tl.Model, force: float, duration: float) -> np.ndarray:
    """Platform's position where motor, current loop and machine are one system of equations, in fine steps of Heun."""
    R, L, k, b, per_meter = 0.4, 2e-3, 0.7, 3000.0, 200.0
    ports, A = model.platform.ports, model.assembly.loops.transmission
    asked = force / per_meter

    def rate(y: np.ndarray) -> np.ndarray:
        x, v, current, memory = y[:3], y[3:6], y[6], y[7]
        state = model.platform.kinematics(x, v)
        speed = per_meter * float((A @ np.asarray(state.v))[0])
        forces = np.array([per_meter * k * current, 0.0, 0.0])
        wanted = asked / k - current
        volts = L * b * wanted + memory
        moved = np.asarray(model.platform.forward_dynamics(x, v, forces).a)[list(ports.v)]
        return np.array([*v, *moved, (volts - R * current - k * speed) / L, R * b * wanted])

    y, count = np.concatenate([ports.at(model.assembly.q), np.zeros(5)]), 400
    step = duration / count
    for _ in range(count):
        first = rate(y)
        y = y + step / 2 * (first + rate(y + step * first))
    return y[:3]


def run(model: tl.Model, motor: Path, step: float) -> Simulation:
    options = SimulationOptions(
        duration=0.02, force={"track1.motor": 300.0}, integration=Integration(tolerance=1e-9)
    )
    return co_simulate(model, options, FmuCoupling(fmu=motor, connect=WIRED, coupling_step=step))


def test_a_motor_with_current_loop_drives_an_axis_and_halving_says_how_well(
    gantry: tl.Model, motor: Path
) -> None:
    exact = monolithic(gantry, 300.0, 0.02)
    errors, diagnostics = [], []
    for step in (5e-4, 2.5e-4):
        made = run(gantry, motor, step)
        errors.append(np.abs(gantry.platform.ports.at(made.q[-1]) - exact).max())
        diagnostics.append(made.diagnostics[-1].value)
        assert made.provenance.options["coupling_step_s"] == step / 2
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.3), "first order"
    assert diagnostics[1] == pytest.approx(errors[1], rel=0.3), "the diagnostics is the error"


def test_a_drive_that_passes_on_what_is_asked_changes_nothing(
    five_bar: tl.Model, block: Path
) -> None:
    options = ControlOptions(stroke=STROKE, controller=("computed-torque",))
    plain = tl.follow_path(five_bar, options).runs["computed-torque"]
    wired = {"command": "motor_1.force", "motor_1.force": "2*out"}
    coupling = FmuCoupling(fmu=block, connect=wired, fmu_start={"gain": "0.5", "armed": "true"})
    ((name, driven),) = co_simulate(five_bar, options, coupling).runs.items()
    assert name == "computed-torque through Block"
    assert len(driven.time) == 2 * len(plain.time) - 1
    assert np.abs(driven.position[::2] - plain.position).max() < SAME_CONTROL
    assert (
        np.abs(driven.force[::2] - plain.force).max()
        < SAME_CONTROL * np.abs(plain.force).max() / 1e-4
    )
    assert driven.diagnostics[-1].value < SAME_CONTROL


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
def test_a_controller_from_an_fmu_connects_itself_by_names(
    five_bar: tl.Model, tmp_path: Path
) -> None:
    law = tl.ControllerOptions(space="platform")
    made = export_fmu(
        five_bar, FmuOptions(kind="controller"), controller=law, folder=tmp_path
    ).written[0]
    options = ControlOptions(stroke=STROKE, space="platform", controller=("computed-torque",))
    plain = tl.follow_path_with_exported_code(five_bar, options).runs["computed-torque"]
    result = co_simulate(
        five_bar, options, FmuCoupling(fmu=made, fmu_start={"bandwidth": "150 rad/s"})
    )
    ((name, foreign),) = result.runs.items()
    assert name == "five_bar_controller"
    assert np.abs(foreign.position[::2] - plain.position).max() < SAME_LAW


def test_everything_that_is_wrong_is_said_at_once(
    gantry: tl.Model, motor: Path, block: Path
) -> None:
    wrong = {
        "asked": "track1.motor.force",
        "sped": "200 rad/m*track1.motor.velocity",
        "track1.motor.force": "torqe",
        "track2.motor.force": "current",
        "track3.motor.force": "2 rad*torque",
    }
    coupling = FmuCoupling(
        fmu=motor, connect=wrong, fmu_start={"resistanc": 1.0, "inductance": "2 mm"}
    )
    with pytest.raises(InputError) as refused:
        co_simulate(gantry, SimulationOptions(), coupling)
    text = str(refused.value)
    for words in (
        "the FMU has no variable 'resistanc'\n    remedy: did you mean resistance",
        "'2 mm' has a unit, but the FMU declares no unit",
        "connect asked: is in N m, but its source is in N\n    remedy: write a factor in m in front",
        "'sped' is neither an input of the FMU nor a force of an actuator\n    remedy: did you mean speed",
        "the FMU has no output 'torqe'",
        "current of the FMU is in A, a unit that no machine quantity has",
        "connect track3.motor.force: is in N, but its source is in N m times rad\n    remedy: write a factor in 1/m",
        "connect speed: this input of the FMU has no source",
    ):
        assert words in text
    with pytest.raises(InputError, match="no output of the FMU is connected to an actuator"):
        co_simulate(
            gantry,
            SimulationOptions(),
            FmuCoupling(fmu=block, fmu_start={"command": 1, "armed": True}),
        )
    with pytest.raises(InputError, match=r"armed of the FMU has the type Boolean"):
        co_simulate(gantry, SimulationOptions(), FmuCoupling(fmu=block, connect={"armed": "time"}))
    with pytest.raises(InputError, match=r"0\.3 ms does not divide the sampling period"):
        co_simulate(
            gantry, ControlOptions(stroke=STROKE), FmuCoupling(fmu=block, coupling_step=3e-4)
        )


def test_an_fmu_that_fails_is_quoted(five_bar: tl.Model, block: Path) -> None:
    wired = {"command": "motor_1.force", "motor_1.force": "out"}
    coupling = FmuCoupling(
        fmu=block, connect=wired, fmu_start={"fails_at": 3e-3, "armed": True}, coupling_step=1e-3
    )
    with pytest.raises(EngineError, match=r"Block.fmu at 0.003 s: fmi2DoStep failed with status"):
        co_simulate(five_bar, SimulationOptions(duration=0.01), coupling)
    nan = replace(coupling, fmu_start={"gain": "nan", "armed": True})
    with pytest.raises(EngineError, match="a value that is not finite"):
        co_simulate(five_bar, SimulationOptions(duration=0.01), nan)


def test_files_that_cannot_be_coupled_are_refused(
    five_bar: tl.Model, block: Path, tmp_path: Path
) -> None:
    bare, exchange = tmp_path / "bare.fmu", tmp_path / "exchange.fmu"
    with (
        zipfile.ZipFile(block) as old,
        zipfile.ZipFile(bare, "w") as new,
        zipfile.ZipFile(exchange, "w") as third_,
    ):
        for name in old.namelist():
            if not name.startswith("binaries/linux"):
                new.writestr(name, old.read(name))
        text = old.read("modelDescription.xml").decode()
        start, end = text.index("<CoSimulation"), text.index("<LogCategories")
        changed = f'{text[:start]}<ModelExchange modelIdentifier="Block"/>\n{text[end:]}'
        third_.writestr("modelDescription.xml", changed)
    with pytest.raises(InputError, match=r"there is no such file \(absent\.fmu\)"):
        co_simulate(five_bar, SimulationOptions(), FmuCoupling(fmu="absent.fmu"))
    with pytest.raises(InputError, match="has no library for"):
        co_simulate(five_bar, SimulationOptions(), FmuCoupling(fmu=bare))
    with pytest.raises(
        InputError,
        match=r"(?s)does not support co-simulation.*has no library for .*, only for no platform",
    ):
        co_simulate(five_bar, SimulationOptions(), FmuCoupling(fmu=exchange))
    with pytest.raises(InputError, match="an FMU has no derivatives"):
        co_simulate(
            five_bar, SimulationOptions(sensitivities=("tip_mass",)), FmuCoupling(fmu=block)
        )


# Archives that must not be unpacked

#: Zeros of more than what is never checked; packed they are a thousandth.
ZEROS = 120_000_000


def packed_zeros(path: Path, change: Callable[[zipfile.ZipFile], None] = lambda _: None) -> Path:
    """An archive of zeros, and what is changed in its list of members before that is written."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("resources/zeros", bytes(ZEROS))
        change(packed)
    return path


def refusal(path: Path, limit: float | None = None) -> str:
    """What is wrong with an archive, and that nothing of it was unpacked."""
    with pytest.raises(InputError) as caught, ForeignFmu(path=path, limit=limit) as fmu:
        pytest.fail(f"opened in {fmu._folder}")
    assert not caught.value.__cause__, "refused before anything else"
    assert all(problem.remedy and problem.file == str(path) for problem in caught.value.problems)
    return str(caught.value)


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    bomb = packed_zeros(tmp_path / "bomb.fmu")
    assert bomb.stat().st_size < ZEROS / 200
    text = refusal(bomb)
    assert "unpacks to 120 MB" in text
    assert "times its size (limit 200 times)" in text
    assert "--fmu-limit" in text
    assert "(limit 119 MB)" in refusal(bomb, 119e6)

    def share(packed: zipfile.ZipFile) -> None:
        """The same packed bytes under twenty names."""
        for k in range(20):
            entry = copy.copy(packed.infolist()[0])
            entry.filename = f"resources/{k}"
            packed.filelist.append(entry)

    assert "unpacks to 2520 MB (limit 2000 MB)" in refusal(
        packed_zeros(tmp_path / "shared.fmu", share)
    )


def test_an_archive_of_very_many_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.fmu"
    with zipfile.ZipFile(path, "w") as packed:
        for k in range(10_001):
            packed.writestr(f"resources/{k}", b"")
    assert "has 10001 members (limit 10000)" in refusal(path)
    assert "unpacks to 40.964 MB (limit 1 MB)" in refusal(path, 1e6), (
        "each takes a block of the disk"
    )


def test_a_larger_limit_lets_a_large_fmu_in(
    five_bar: tl.Model, block: Path, tmp_path: Path
) -> None:
    large = Path(shutil.copy(block, tmp_path / "large.fmu"))
    with zipfile.ZipFile(large, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("resources/zeros", bytes(ZEROS))
    wired = {"command": "motor_1.force", "motor_1.force": "out"}
    coupling = FmuCoupling(
        fmu=large, connect=wired, fmu_start={"armed": True}, coupling_step=1e-3, fmu_limit=100.0
    )
    options = SimulationOptions(duration=2e-3)
    with pytest.raises(InputError, match=r"\(limit 100 MB\)"):
        co_simulate(five_bar, options, coupling)
    made = co_simulate(five_bar, options, replace(coupling, fmu_limit=150.0))
    usual = co_simulate(five_bar, options, replace(coupling, fmu=block))
    assert np.array_equal(made.q, usual.q)


@pytest.mark.parametrize(
    ("name", "kind", "flags", "fault"),
    [
        ("../outside", 0, 0, "has a path outside of the folder"),
        ("resources/../../outside", 0, 0, "has a path outside of the folder"),
        ("/tmp/outside", 0, 0, "has a path outside of the folder"),
        ("C:outside", 0, 0, "has a path outside of the folder"),
        ("resources\\..\\outside", 0, 0, "has a path outside of the folder"),
        ("resources/link", stat.S_IFLNK, 0, "is a link"),
        ("resources/pipe", stat.S_IFIFO, 0, "is neither a file nor a folder"),
        ("resources/device", stat.S_IFBLK, 0, "is neither a file nor a folder"),
        ("resources/secret", 0, 1, "is encrypted"),
        ("modelDescription.xml", 0, 0, "is in the archive twice"),
    ],
)
def test_members_that_would_do_harm_are_named(
    block: Path, tmp_path: Path, name: str, kind: int, flags: int, fault: str
) -> None:
    path = Path(shutil.copy(block, tmp_path / "bad.fmu"))
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as packed:
        warnings.simplefilter("ignore")  # of a name that is there already
        entry = zipfile.ZipInfo(name)
        entry.filename = name  # as it is: Python puts slashes for backslashes on Windows alone
        entry.external_attr = (kind | 0o644) << 16
        packed.writestr(entry, "/etc/passwd")
        packed.infolist()[-1].flag_bits |= flags
    assert f"the member {name!r} {fault}" in refusal(path)
    assert not (tmp_path.parent / "outside").exists()


def test_a_member_that_is_larger_than_it_states_is_not_unpacked(
    block: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(block, tmp_path / "lies.fmu"))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("resources/zeros", bytes(ZEROS))
        packed.infolist()[-1].file_size = 10
    with (
        pytest.raises(InputError, match="not a readable FMU: Bad CRC-32"),
        ForeignFmu(path=path),
    ):
        pass


@pytest.mark.parametrize(
    "entities",
    [
        "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(12)),
        '<!ENTITY e12 SYSTEM "file:///etc/hostname">',
    ],
)
def test_a_description_with_entities_is_refused(tmp_path: Path, entities: str) -> None:
    path = tmp_path / "entities.fmu"
    root = '<fmiModelDescription fmiVersion="2.0" modelName="m">&e12;</fmiModelDescription>'
    text = f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]>{root}'
    path.write_bytes(archive({"modelDescription.xml": text}))
    with pytest.raises(InputError, match="not a readable FMU"), ForeignFmu(path=path):
        pass
