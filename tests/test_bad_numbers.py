"""Numbers that no machine can have: what is not finite, overflows, is complex or masked, never passes for a result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compiled, compilers, motion
from simulation_machines import simulated

from tauloop import Model, load
from tauloop.calibration import Position, Series
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted, compiled_diagnostics
from tauloop.drives import Axis, load_drive, simulate_axis
from tauloop.kinematics import conditioning
from tauloop.kinematics.workspaces.map import workspace_grid
from tauloop.motion import Line, SampledPath, polyline, random_multisine

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: What no input may be; 1e200 is finite, and its square is not.
BAD = (np.nan, np.inf, -np.inf, 1e200)
#: Samples: more than a block, and no multiple of one.
N = 19
PROGRAMS = (
    ("linear_delta", "inverse_dynamics"),
    ("linear_delta", "regressor_actuators"),
    ("five_bar", "forward_dynamics"),
    ("five_bar", "kinematics_2"),
)
#: A Newton loop takes more steps where a neighbor in its block never arrives.
SAME = 1e-12
#: Seconds that a call takes at most where it does not wait for ever.
LONG = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("code")


@pytest.fixture(scope="module")
def five_bar() -> Model:
    return Model(load("five_bar"), evaluator=Interpreted())


@pytest.fixture(scope="module")
def four_bar() -> Model:
    return Model(load("four_bar"), evaluator=Interpreted())


def is_good(health: np.ndarray) -> np.ndarray:
    """The whole test of docs/generated-code.md."""
    return (health[:, 0] >= 0) & (health[:, 1] > 1e-9) & (health[:, 2] < 1e-9)


@needs_compiler
@pytest.mark.parametrize(("machine", "which"), PROGRAMS)
def test_one_bad_number_in_any_input_gives_its_own_sample_bad_health(machine, which, folder):
    """Every column of every port, in a batch and in a bound call; the neighbors stay as they were."""
    kernel, states = compiled(machine, "actuators", which, folder), motion(machine, "actuators", N)
    inputs = {port.name: states[port.name] for port in kernel.function.inputs}
    whole = kernel.batch(inputs, N)
    assert is_good(whole["health"]).all()
    arrays, call = kernel.bind()
    for name, array in inputs.items():
        for column in range(array.shape[1]):
            for bad in BAD:
                changed = array.copy()
                changed[11, column] = bad
                outputs = kernel.batch(inputs | {name: changed}, N)
                good = is_good(outputs["health"])
                assert not good[11], (name, column, bad)
                assert good.sum() == N - 1
                for output in set(whole) - {"health"}:
                    others, kept = (np.delete(part[output], 11, 0) for part in (outputs, whole))
                    np.testing.assert_allclose(
                        others, kept, rtol=SAME, atol=SAME * np.abs(kept).max()
                    )
                for other in inputs:
                    arrays[other][:] = inputs[other][11]
                arrays[name][column] = bad
                call()
                assert not is_good(arrays["health"][None]).any(), (name, column, bad)


@needs_compiler
def test_a_machine_without_loops_has_bad_health_too(tmp_path):
    """It has no closed form and no Newton loop that could fail: its inputs alone tell."""
    file = tmp_path / "arm.yaml"
    file.write_text(ARM, encoding="utf-8")
    functions = Model(load(file)).actuators
    kernel = functions.compiled("inverse_dynamics", ("force",))
    arrays, call = kernel.bind()
    call()
    assert compiled_diagnostics(arrays["health"][None]).is_regular.all()
    for bad in BAD:
        arrays["velocity"][0] = bad
        call()
        result = compiled_diagnostics(arrays["health"][None])
        assert not (result.is_reached & result.is_regular).any()


@pytest.mark.parametrize(
    "evaluator",
    [Interpreted(), pytest.param(Compiled(at_least=0), marks=needs_compiler)],
    ids=["interpreted", "compiled"],
)
def test_checked_calls_refuse_an_overflow(evaluator):
    model = Model(load("four_bar"), evaluator=evaluator)
    position, velocity = model.platform_position(model.assembly.q), np.array([1e200])
    for function in (
        model.platform.inverse_dynamics,
        model.platform.regressor,
        model.platform.kinematics,
    ):
        with pytest.raises(
            PoseError, match="overflow the range of floating-point numbers in this pose"
        ):
            function(position, velocity, np.zeros(1))
    with pytest.raises(PoseError, match="overflow"):
        model.platform.forward_dynamics(position, velocity, np.zeros(1))
    many = np.zeros((3, 1))
    many[1] = velocity
    with pytest.raises(PoseError, match=r"overflow .* in sample 1 of 3"):
        model.platform.inverse_dynamics(np.tile(position, (3, 1)), many, np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (np.array([1j]), "complex"),
        ([1j], "complex"),
        (np.ma.masked_array([0.1], mask=[True]), "masked"),
        ([np.ma.masked_array(0.1, mask=True)], "masked"),
        ({"crank": 1j}, "complex"),
        ({"crank": np.ma.masked_array([0.1, 0.2], mask=[False, True])}, "masked"),
        (["x"], "contains <U1, not numbers"),
        (["1.5"], "contains <U3, not numbers"),
        (np.array(["2020-01-01"], dtype="M8[s]"), "contains datetime64"),
        (np.array([1j], dtype=object), "not 'complex'"),
        ([10**400], "too large"),
    ],
    ids=str,
)
def test_what_is_no_array_of_real_numbers_is_refused(bad, what, four_bar):
    functions = four_bar.platform
    name = functions.ports.velocity.columns[0]
    settings = {name: bad["crank"]} if isinstance(bad, dict) else bad
    with pytest.raises(InputError, match=what) as error:
        functions.kinematics(functions.ports.at(four_bar.assembly.q), settings)
    assert error.value.problems[0].where == "velocity"


SPOILS = {
    "complex": lambda values: np.asarray(values) + 0j,
    "masked": lambda values: np.ma.masked_array(values, mask=np.ones(np.shape(values), dtype=bool)),
    "texts": lambda values: np.asarray(values).astype(str),
}
#: Arrays of two numbers, or of the machine's coordinates, where they come in from outside.
BORDERS = {
    "model.at": lambda model, q, spoil: model.at(spoil(q)),
    "platform_position": lambda model, q, spoil: model.platform_position(spoil(q)),
    "actuator_position": lambda model, q, spoil: model.actuator_position(spoil(q)),
    "start": lambda model, q, spoil: model.platform.track(
        model.platform.ports.at(q)[None], spoil(q)
    ),
    "conditioning": lambda model, q, spoil: conditioning(model, spoil(model.platform_position(q))),
    "workspace": lambda model, q, spoil: workspace_grid(model, {"platform.x": spoil([0.0, 0.01])}),
    "simulate": lambda model, q, spoil: simulated(model, 0.01, q=spoil(q)),
    "forces": lambda model, q, spoil: simulated(model, 0.01, wrench=spoil(np.zeros(6))),
    "line": lambda model, q, spoil: Line(spoil([0.0, 0.0]), [1.0, 0.0]),
    "spline": lambda model, q, spoil: SampledPath(spoil([[0.0, 0.0], [1.0, 0.0]])),
    "polyline": lambda model, q, spoil: polyline(spoil([[0.0, 0.0], [1.0, 0.0]]), blend=0.1),
    "multisine": lambda model, q, spoil: random_multisine(
        spoil([0.0]), [1.0], np.random.default_rng(0)
    ),
    "encoders": lambda model, q, spoil: Series(
        instrument=Position(name="tracker"),
        encoders=spoil([[0.0, 0.0]]),
        readings=np.zeros((1, 3)),
        noise=1.0,
    ),
    "parameters of drives": lambda model, q, spoil: simulate_axis(
        Axis(load_drive("single_motor_axis")), step=spoil(np.array([0.1])), duration=0.1
    ),
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
@pytest.mark.parametrize("border", BORDERS.values(), ids=BORDERS)
def test_every_border_refuses_what_numpy_would_turn_into_numbers(border, spoil, five_bar):
    """NumPy drops imaginary parts and masks, and reads texts, without an error."""
    model = five_bar
    border(model, model.assembly.q, np.asarray)  # what is spoiled is otherwise right
    with pytest.raises(InputError, match=r"is not an array of (real )?numbers"):
        border(model, model.assembly.q, spoil)


@needs_compiler
@pytest.mark.parametrize(
    "spoil",
    [
        lambda array: array + 1j,
        lambda array: np.ma.masked_array(array, mask=array > 0),
        lambda array: array[:-1],
        lambda array: array[:, :-1],
        lambda array: array.T,
    ],
    ids=["complex", "masked", "short", "narrow", "turned"],
)
def test_a_kernel_refuses_arrays_that_it_would_misread(spoil, folder):
    kernel, states = (
        compiled("five_bar", "actuators", "kinematics_2", folder),
        motion("five_bar", "actuators", N),
    )
    with pytest.raises(InputError) as error:
        kernel.batch({**states, "velocity": spoil(states["velocity"])}, N)
    assert error.value.problems[0].where == "velocity"
    with pytest.raises(InputError, match="is missing"):
        kernel.batch({name: array for name, array in states.items() if name != "velocity"}, N)


@needs_compiler
def test_a_bound_call_refuses_a_masked_state(folder):
    kernel = compiled("five_bar", "actuators", "kinematics_2", folder)
    arrays, call = kernel.bind()
    state = np.array(arrays["inputs"])
    call(state)
    with pytest.raises(TypeError, match="masked"):
        call(np.ma.masked_array(state))


FORK = """
import os, sys
import numpy as np
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from compiled_machines import compiled, motion

kernel = compiled("five_bar", "actuators", "kinematics_2", Path(sys.argv[1]), threads=2)
one = motion("five_bar", "actuators", 1)
many = {name: np.tile(array, (8192, 1)) for name, array in one.items()}
before = kernel.batch(many, 8192)["q"]
child = os.fork()
if not child:
    os._exit(0 if np.array_equal(kernel.batch(many, 8192)["q"], before) else 1)
print(os.waitpid(child, 0)[1])
"""


@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_batch_on_threads_does_not_wait_for_ever_after_a_fork(tmp_path):
    """The parent's threads are none of its child's."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        FORK,
        str(tmp_path),
        str(Path(__file__).parent / "support"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.stdout.strip() == "0", done.stderr


ARM = """
format: tauloop-machine/1
name: arm
description: two links
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  one: {mass: 1 kg, center: [0.1 m, 0, 0]}
  two: {mass: 1 kg, center: [0.1 m, 0, 0]}
joints:
  a: {type: revolute, axis: z, parent: base, child: one, reference: 0 deg}
  b: {type: revolute, axis: y, parent: one, child: two, reference: 20 deg}
actuators: {a_motor: {on: a}, b_motor: {on: b}}
platform: {body: two, independent: [a, b]}
"""
