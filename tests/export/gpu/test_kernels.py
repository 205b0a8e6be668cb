"""Kernels of one thread a sample: the text that NVRTC compiles, run as loops, has the numbers of C to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers, function, motion
from device_kernels import exact_compiler, sample_by_sample

from tauloop import Model, load
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c import Precision
from tauloop.compiler.c.calling.evaluator import Interpreted, c_function
from tauloop.export.gpu import Cuda, DeviceFunction, Processor
from tauloop.kinematics import random_states
from tauloop.testing.machines import planar_loop

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Floats through the conditioning of regular states, over the largest number.
SINGLE = 2e-4
#: Newton's tolerance, through a condition of some hundred; and residuals of loops that count as
#: closed, m.
FAR, CLOSED = 1e-7, 1e-9
#: Against the interpreter: the same operations up to their order.
SAME = 1e-12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


def check_bits(c_function, inputs, folder):
    device = Processor(compiler=exact_compiler())
    outputs = DeviceFunction(c_function, device, folder=folder).batch(inputs)
    expected = sample_by_sample(c_function, inputs, folder)
    assert outputs.keys() == expected.keys()
    for name, array in outputs.items():
        assert np.array_equal(array, expected[name]), name
        assert array.flags.f_contiguous


@pytest.mark.parametrize(
    ("name", "entry", "which"),
    [
        ("delta", "platform", "forward_dynamics"),
        ("five_bar", "actuators", "inverse_dynamics"),
        ("five_bar", "platform", "regressor_actuators"),
    ],
)
def test_kernels_have_the_numbers_of_c_to_the_last_bit(name, entry, which, folder):
    check_bits(function(name, entry, which), motion(name, entry, 33), folder)


def test_a_random_machine_too(folder):
    machine = Model(planar_loop(np.random.default_rng(11)), evaluator=Interpreted())
    states = random_states(machine, 9, np.random.default_rng(2))
    inputs = {
        "position": states.position,
        "velocity": states.velocity,
        "acceleration": states.acceleration,
    }
    inputs |= {"start": states.q, "theta": np.zeros((9, 0))}
    check_bits(c_function(machine.platform.program("inverse_dynamics"), inputs), inputs, folder)


def test_single_precision_is_near(folder):
    of_delta = function("delta", "platform", "inverse_dynamics")
    inputs = motion("delta", "platform", 200)
    single = DeviceFunction(of_delta, Processor(), Precision.SINGLE, folder=folder)
    double = DeviceFunction(of_delta, Processor(), folder=folder)
    floats, doubles = single.batch(inputs)["force"], double.batch(inputs)["force"]
    assert floats.dtype == np.float32
    assert np.abs(floats - doubles).max() < SINGLE * np.abs(doubles).max()
    assert "double" not in single.text.partition("#endif\n")[2].replace("double name[n]", "")


# How it is called


@pytest.fixture(scope="module")
def inverse(folder):
    model = Model(load("five_bar"), evaluator=Interpreted())
    return Cuda(device=Processor(), folder=folder).function(
        model.actuators, "inverse_dynamics", ("force", "q")
    )


def five_bar(n=50):
    inputs = motion("five_bar", "actuators", 50)
    return {name: array[:n] for name, array in inputs.items()}


def test_one_row_serves_all_samples_or_each_has_its_own(inverse):
    inputs = five_bar()
    moved = [inputs[name] for name in ("position", "velocity", "acceleration")]
    own = inverse(*moved, start=inputs["start"])
    nominal = inverse(*moved)
    shared = inverse(*moved, start=inverse.inputs.nominal["start"])
    seen_as_many = inverse(
        *moved, start=np.broadcast_to(inverse.inputs.nominal["start"], inputs["start"].shape)
    )
    for a, b, c, d in zip(own, nominal, shared, seen_as_many, strict=True):
        assert np.abs(a - b).max() < SAME * max(np.abs(a).max(), 1.0)
        assert np.array_equal(b, c)
        assert np.array_equal(b, d)


def test_rows_columns_and_strangers_arrays_are_read(inverse):
    class Stranger:
        """An array of another library's: all that is known of it is DLPack."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    inputs = five_bar()
    moved = [inputs[name] for name in ("position", "velocity", "acceleration")]
    force, q = inverse(*moved)
    for made in (np.asfortranarray, Stranger, lambda array: array[::-1].copy()[::-1]):
        again = inverse(*map(made, moved))
        assert np.array_equal(again[0], force)
        assert np.array_equal(again[1], q)
    back = np.from_dlpack(Stranger(force))
    assert np.shares_memory(back, force)


def test_all_that_is_wrong_with_arrays_is_said_at_once(inverse):
    inputs = five_bar()
    with pytest.raises(InputError) as error:
        inverse.batch({"position": inputs["position"][:, :1], "velocity": inputs["velocity"] + 0j})
    text = str(error.value)
    for word in (
        "position: has shape (50, 1), needs (50, 2)",
        "velocity: cannot be read",
        "acceleration: is missing",
    ):
        assert word in text
    with pytest.raises(InputError, match="needs 3 arrays, got 2"):
        inverse(inputs["position"], inputs["velocity"])
    with pytest.raises(InputError, match="position: has 1 axes"):
        inverse(inputs["position"][0], inputs["velocity"], inputs["acceleration"])


def test_a_pose_out_of_reach_is_refused_and_which(folder):
    model = Model(load("delta"), evaluator=Interpreted())
    inverse = Cuda(device=Processor(), folder=folder).function(
        model.platform, "inverse_dynamics", ("force",)
    )
    position = np.tile([0.0, 0.0, -0.5], (7, 1))
    position[4] = [9.0, 0.0, 0.0]
    with pytest.raises(PoseError, match="sample 4 of 7: out of reach"):
        inverse(position, np.zeros((7, 3)), np.zeros((7, 3)))
    assert inverse(position[:0], np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)


def test_models_run_on_it(folder):
    cuda = Cuda(device=Processor(), at_least=2, folder=folder)
    there, here = (Model(load("delta"), evaluator=evaluator) for evaluator in (cuda, Interpreted()))
    inputs = motion("delta", "platform", 40)
    moved = [inputs[name] for name in ("position", "velocity", "acceleration")]
    a, b = (model.platform.inverse_dynamics(*moved).force for model in (there, here))
    assert np.abs(a - b).max() < SAME * np.abs(b).max()
    actuators = there.actuator_position(there.platform.kinematics(moved[0]).q)
    q = [model.forward_kinematics(actuators).q for model in (there, here)]
    assert np.abs(q[0] - q[1]).max() < SAME
    assert there.platform.runner._kernels


def test_positions_are_reached_by_a_way_in_one_launch(folder, monkeypatch):
    """As models do: functions from their nominal start, models on the device from any."""
    cuda = Cuda(device=Processor(), at_least=2, folder=folder)
    there, here = (Model(load("rcid"), evaluator=evaluator) for evaluator in (cuda, Interpreted()))
    states = random_states(here, 20, np.random.default_rng(8))
    lengths = here.actuator_position(states.q)
    expected = here.forward_kinematics(lengths).q
    forward = cuda.function(there.actuators, "kinematics_0", ("q",))
    assert np.abs(forward(lengths) - expected).max() < SAME
    assert np.abs(forward(lengths, start=states.q) - expected).max() < SAME
    assert np.abs(there.forward_kinematics(lengths, start=states.q[3]).q - expected).max() < SAME
    monkeypatch.setattr(type(there.actuators.runner), "reached", None)  # step by step
    assert np.abs(there.forward_kinematics(lengths).q - expected).max() < SAME
    lengths[7, 0] += 2.0
    with pytest.raises(PoseError, match="sample 7 of 20"):
        forward(lengths)


def test_functions_keep_the_mode_where_models_do(folder):
    """Far from the start of a loop within a loop twelve steps stray, though loops close; smaller ones do not."""
    machine = load(Path(__file__).parents[2] / "cases" / "loop_within_a_loop.yaml")
    model = Model(machine, evaluator=Interpreted())
    home = model.actuators.ports.at(model.assembly.q)
    lengths = np.linspace(home, 0.2164, 200)
    function = Cuda(device=Processor(), folder=folder).function(
        model.actuators, "kinematics_0", ("q",)
    )
    expected = model.forward_kinematics(lengths).q
    strayed = function.batch({"position": lengths}, continuation=(home, 12))
    is_closed = np.abs(strayed["health"][:, 2]) < CLOSED
    assert np.abs(strayed["q"] - expected)[is_closed].max() > 1.0
    assert np.abs(function(lengths) - expected).max() < FAR


def test_what_is_compiled_is_kept_by_its_hash(folder, tmp_path):
    of_delta = function("delta", "platform", "kinematics_0")
    texts = {
        DeviceFunction(each, Processor(), folder=tmp_path).text
        for each in (of_delta, replace(of_delta))
    }
    assert len(texts) == 1
    assert len(list(tmp_path.glob("*.so"))) == 1
