"""Exported actuator maps: C in both precisions, arrays of three libraries, and a plugin for ros2_control."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra

import tauloop as tl
from tauloop.export.transmission import TransmissionExport

ANKLES = Path(__file__).parents[2] / "examples" / "ankles"
NAMES = ("two_rods", "four_bar", "linear")
JOINTS = ("pitch", "roll")
#: Rounding through a Jacobian of condition below 4, with gear ratios up to 1300.
ROUNDING = 1e-11
#: The same in single precision, relative to the largest number.
SINGLE = 1e-5
#: Differences of second order, with steps of 1e-6.
DIFFERENCES = 1e-6
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror")

needs_compiler = pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none")


@pytest.fixture(scope="module", params=NAMES)
def ankle(request) -> tl.ActuatorMap:
    return tl.ActuatorMap(ANKLES / f"{request.param}.yaml", JOINTS)


@pytest.fixture(scope="module")
def exported(ankle, tmp_path_factory) -> tuple[TransmissionExport, Path]:
    folder = tmp_path_factory.mktemp("transmission")
    formats = ["double", "python"] + ["single"] * bool(compilers())
    return tl.export_transmission(ankle.model, folder, joints=JOINTS, formats=formats), folder


def states(ankle: tl.ActuatorMap, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random positions, velocities and efforts of the joints."""
    rng = np.random.default_rng(7)
    lower, upper = ankle.joint_range.T
    q = rng.uniform(lower, upper, size=(count, len(lower)))
    return q, *rng.normal(size=(2, *q.shape))


def module_of(exported: tuple[TransmissionExport, Path]) -> ModuleType:
    """Import the exported Python module."""
    export, folder = exported
    path = folder / "python" / f"{export.name}_map.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "single"])
def test_c_agrees_with_its_expected_numbers(exported, precision):
    export, folder = exported
    code = export.code[precision]
    where = folder / f"c_{precision}"
    sources = [f"{code.name}.c", f"{code.name}_check.c"]
    subprocess.run([compilers()[0], *STRICT, *sources, "-lm", "-o", "check"], cwd=where, check=True)
    ran = subprocess.run([where / "check"], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("all agree\n")
    assert export.status == "ok"


@needs_compiler
def test_c_states_which_samples_of_a_batch_are_valid(ankle, exported):
    """Batch kernel and status of the header, over good samples and one that no joint position has."""
    export, folder = exported
    where, stem = folder / "c_double", export.name
    wrapper = f'#include "{stem}.h"\n#include "{stem}_status.h"\n'
    wrapper += "int status_of(const double *h, const double *m) "
    (where / "wrapper.c").write_text(f"{wrapper}{{ return {stem}_status(h, m); }}\n")
    sources = [f"{stem}.c", "wrapper.c"]
    command = [compilers()[0], "-std=c99", "-O1", "-shared", "-fPIC", *sources, "-lm"]
    subprocess.run([*command, "-o", "map.so"], cwd=where, check=True)
    library = ctypes.CDLL(str(where / "map.so"))
    q, rates, efforts = states(ankle, 37)
    motors = ankle.joint_to_actuator(q, rates, efforts)
    numbers = [np.ascontiguousarray(a) for a in (motors.position, motors.velocity, motors.effort)]
    numbers[0][5] += [4000.0, -4000.0]
    sizes = (2, 2, 2, 4, 1, 4)
    results = [np.zeros((len(q), size)) for size in sizes]
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*numbers, *results)]
    getattr(library, f"{stem}_actuator_to_joint_batch")(ctypes.c_size_t(len(q)), *pointers)
    position, velocity, effort, jacobian, mode, health = results
    status = np.array(
        [
            library.status_of(h.ctypes.data_as(ctypes.c_void_p), m.ctypes.data_as(ctypes.c_void_p))
            for h, m in zip(health, mode, strict=True)
        ]
    )
    expected = ankle.actuator_to_joint(numbers[0]).sample_status
    is_valid = np.arange(len(q)) != 5
    assert (status[is_valid] == 0).all()
    if expected[5] >= 3:
        assert status[5] != 0
    assert position[is_valid] == pytest.approx(q[is_valid], abs=ROUNDING)
    assert velocity[is_valid] == pytest.approx(rates[is_valid], abs=ROUNDING)
    assert effort[is_valid] == pytest.approx(efforts[is_valid], abs=ROUNDING)
    assert jacobian.reshape(-1, 2, 2)[is_valid] == pytest.approx(
        motors.jacobian[is_valid], abs=ROUNDING
    )


def test_numpy_has_the_same_values_and_statuses(ankle, exported):
    module = module_of(exported)
    q, rates, efforts = states(ankle, 200)
    motors = module.joint_to_actuator(q, rates, efforts)
    expected = ankle.joint_to_actuator(q, rates, efforts)
    assert motors.position == pytest.approx(expected.position, abs=ROUNDING)
    assert motors.velocity == pytest.approx(expected.velocity, abs=ROUNDING)
    assert motors.effort == pytest.approx(expected.effort, abs=ROUNDING)
    assert motors.jacobian == pytest.approx(expected.jacobian, abs=ROUNDING)
    joints = module.actuator_to_joint(*motors[:3])
    assert joints.position == pytest.approx(q, abs=ROUNDING)
    assert joints.velocity == pytest.approx(rates, abs=ROUNDING)
    assert joints.effort == pytest.approx(efforts, abs=ROUNDING)
    assert not joints.status.any()
    assert not motors.status.any()
    for include in (False, True):
        assert module.reflected_inertia(q, include) == pytest.approx(
            ankle.reflected_inertia(q, include_links=include), abs=1e-12
        )
    for name in ("position", "velocity", "effort"):
        numbers = {"position": (), "velocity": (9 * rates,), "effort": (90 * efforts,)}[name]
        assert getattr(module, f"clip_joint_{name}")(q, *numbers) == pytest.approx(
            getattr(ankle, f"clip_joint_{name}")(q, *numbers), abs=1e-9
        )


def test_lists_and_integers_are_arrays_of_numpy(exported):
    module = module_of(exported)
    listed = module.joint_to_actuator([0, 0], [1, 0], [[20, 0], [0, 5]])
    arrays = module.joint_to_actuator(
        np.zeros(2), np.eye(2)[0], np.array([[20.0, 0.0], [0.0, 5.0]])
    )
    for value, expected in zip(listed, arrays, strict=True):
        assert value == pytest.approx(expected, abs=0.0)
    whole = module.joint_to_actuator(np.zeros((3, 2), dtype=int), np.zeros((3, 2), dtype=int))
    assert whole.position.dtype == float
    assert not whole.status.any()
    assert module.clip_joint_effort([0, 0], [1, 1]) == pytest.approx([1.0, 1.0])
    assert module.reflected_inertia([0, 0]).shape == (2, 2)


def test_numpy_states_which_samples_have_no_values(ankle, exported):
    module = module_of(exported)
    rng = np.random.default_rng(2)
    q = rng.uniform(-3.0, 3.0, size=(300, 2))
    q[0] = np.nan
    states_ = module.joint_to_actuator(q)
    failed = states_.status != 0
    assert failed[0]
    assert 0 < failed.sum() < len(q)
    assert np.isnan(states_.position[failed]).all()
    assert np.isfinite(states_.position[~failed]).all()
    expected = ankle.joint_to_actuator(q[1:]).sample_status
    # 1 and 2 are positions beyond stops, which the module leaves to `clip_joint_position`
    assert (failed[1:] == (expected >= 3)).all()


def test_numpy_in_single_precision(ankle, exported):
    module = module_of(exported)
    q, rates, efforts = (array.astype(np.float32) for array in states(ankle, 100))
    motors = module.joint_to_actuator(q, rates, efforts)
    assert {array.dtype for array in motors[:4]} == {np.dtype(np.float32)}
    joints = module.actuator_to_joint(*motors[:3])
    assert not joints.status.any()
    assert joints.position == pytest.approx(q, abs=SINGLE * 10)


def test_jax_compiles_batches_and_differentiates(ankle, exported):
    """The derivative of motor by joint positions is the Jacobian."""
    jax = extra("jax")
    jax.config.update("jax_enable_x64", True)
    module = module_of(exported)
    q, rates, efforts = states(ankle, 20)
    motors = jax.jit(jax.vmap(module.joint_to_actuator))(q, rates, efforts)
    expected = ankle.joint_to_actuator(q, rates, efforts)
    assert np.asarray(motors.position) == pytest.approx(expected.position, abs=ROUNDING)
    assert np.asarray(motors.effort) == pytest.approx(expected.effort, abs=ROUNDING)
    there = jax.vmap(jax.jacrev(lambda x: module.joint_to_actuator(x).position))(q)
    assert np.asarray(there) == pytest.approx(expected.jacobian, abs=1e-9)
    clipped = jax.jit(module.clip_joint_effort)(q, 90 * efforts)
    assert np.asarray(clipped) == pytest.approx(ankle.clip_joint_effort(q, 90 * efforts), abs=1e-9)


@pytest.mark.nightly
def test_jax_differentiates_the_way_back(ankle, exported):
    """The derivative of joint by motor positions is the inverse of the Jacobian."""
    jax = extra("jax")
    jax.config.update("jax_enable_x64", True)
    module = module_of(exported)
    q, rates, efforts = states(ankle, 20)
    expected = ankle.joint_to_actuator(q, rates, efforts)
    back = jax.vmap(jax.jacrev(lambda x: module.actuator_to_joint(x).position))(expected.position)
    assert np.asarray(back) == pytest.approx(np.linalg.inv(expected.jacobian), abs=1e-9)


def test_torch_has_the_same_values_and_derivatives(ankle, exported):
    torch = extra("torch")
    module = module_of(exported)
    q, rates, efforts = states(ankle, 20)
    expected = ankle.joint_to_actuator(q, rates, efforts)
    tensors = [torch.tensor(array) for array in (q, rates, efforts)]
    motors = module.joint_to_actuator(*tensors)
    assert motors.position.numpy() == pytest.approx(expected.position, abs=ROUNDING)
    assert motors.effort.numpy() == pytest.approx(expected.effort, abs=ROUNDING)
    joints = module.actuator_to_joint(*motors[:3])
    assert joints.position.numpy() == pytest.approx(q, abs=ROUNDING)
    assert not joints.status.any()
    slopes = torch.func.vmap(torch.func.jacrev(lambda x: module.joint_to_actuator(x).position))
    assert slopes(tensors[0]).numpy() == pytest.approx(expected.jacobian, abs=1e-9)
    clipped = module.clip_joint_effort(tensors[0], 90 * tensors[2])
    assert clipped.numpy() == pytest.approx(ankle.clip_joint_effort(q, 90 * efforts), abs=1e-9)


def test_the_page_on_pytorch_runs_where_it_is_installed(tmp_path, monkeypatch):
    extra("torch")
    tl.export_transmission(
        ANKLES / "two_rods.yaml", tmp_path / "ankle", joints=JOINTS, formats=["python"]
    )
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "how-to" / "pytorch.md"
    text = page.read_text(encoding="utf-8")
    pieces = text.split("```python\n")[1:]
    assert len(pieces) == 2
    namespace: dict[str, object] = {}
    for piece in pieces:
        exec(compile(piece.split("```")[0], str(page), "exec"), namespace)


HEADERS = (
    "hardware_interface/hardware_info.hpp",
    "hardware_interface/types/hardware_interface_type_values.hpp",
    "pluginlib/class_list_macros.hpp",
    "transmission_interface/exception.hpp",
    "transmission_interface/transmission.hpp",
    "transmission_interface/transmission_loader.hpp",
)


@pytest.mark.skipif("gcc" not in compilers(), reason="needs gcc and g++")
def test_the_plugin_for_ros2_control_maps_both_ways(tmp_path):
    """ros2_control is not here: the plugin runs against declarations of the parts that it uses."""
    ankle = tl.ActuatorMap(ANKLES / "two_rods.yaml", JOINTS)
    export = tl.export_transmission(ankle.model, tmp_path, joints=JOINTS, formats=["ros2"])
    package = tmp_path / f"{export.name}_transmission"
    stubs = Path(__file__).with_name("transmission_interface_stubs.hpp")
    for header in HEADERS:
        path = tmp_path / "include" / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#include "{stubs}"\n', encoding="utf-8")
    q, rates, efforts = (array[0] for array in states(ankle, 1))
    motors = ankle.joint_to_actuator(q, rates, efforts)
    numbers = [*motors.position, *motors.velocity, *motors.effort]
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path / 'include'}"]
    flags += [f"-I{package / 'src'}", f"-DMOTORS={','.join(map(repr, map(float, numbers)))}"]
    main = Path(__file__).with_name("transmission_main.cpp")
    core = tmp_path / "core.o"
    source = package / "src" / f"{export.name}.c"
    subprocess.run(["gcc", "-std=c99", "-O0", "-c", source, "-o", core], check=True)
    subprocess.run(["g++", *flags, main, core, "-lm", "-o", tmp_path / "run"], check=True)
    ran = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True)
    printed = np.array(ran.stdout.split(), dtype=float)
    offset = np.array([0.25, 0.0])
    assert printed[:6] == pytest.approx([*(q + offset), *rates, *efforts], abs=ROUNDING)
    assert printed[6:12] == pytest.approx(numbers, abs=ROUNDING)
    assert printed[12] == pytest.approx(printed[0], abs=0.0)
    assert "mechanical_reduction must be 1" in ran.stderr


def test_the_package_for_ros2_control_is_read_by_its_tools(tmp_path):
    export = tl.export_transmission(
        ANKLES / "linear.yaml", tmp_path, joints=JOINTS, formats=["ros2"]
    )
    package = tmp_path / f"{export.name}_transmission"
    read = extra("catkin_pkg.package").parse_package(str(package))
    assert read.name == package.name
    plugin = ElementTree.parse(package / "transmission_plugins.xml").find("class")
    assert plugin.get("base_class_type") == "transmission_interface::TransmissionLoader"
    assert plugin.get("name") == f"{package.name}/LinearAnkleTransmission"
    source = (package / "src" / "transmission.cpp").read_text(encoding="utf-8")
    assert f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}," in source
    readme = (package / "README.md").read_text(encoding="utf-8")
    element = ElementTree.fromstring(readme.split("```xml\n")[1].split("```")[0])
    assert [joint.get("name") for joint in element.findall("joint")] == list(JOINTS)
    assert [a.get("name") for a in element.findall("actuator")] == ["leg1.motor", "leg2.motor"]


def test_the_same_machine_gives_the_same_texts():
    twice = [
        tl.export_transmission(ANKLES / "two_rods.yaml", formats=["double", "python", "ros2"]).files
        for _ in range(2)
    ]
    assert twice[0] == twice[1]
    assert not any("@" in text for name, text in twice[0].items() if name.endswith(".py"))


def test_free_parameters_are_refused():
    model = tl.Model(ANKLES / "two_rods.yaml", free=["crank_length"])
    with pytest.raises(tl.InputError, match="crank_length"):
        tl.export_transmission(model)
