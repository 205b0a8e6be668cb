"""When an evaluator compiles: an explicit one from the first sample on, that of a model by the number of samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers

from tauloop import Model, load
from tauloop.cli.machine import load_model
from tauloop.codegen import Compiled, Interpreted
from tauloop.codegen.evaluator import WORTH_COMPILING, Evaluator

needs_compiler = pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")

POSITION = np.array([0.05, 0.0, -0.5])
#: Compiled against interpreted: the same operations up to their order.
SAME = 1e-12


def forces(evaluator: Evaluator | None, samples: int) -> np.ndarray:
    """Actuator forces of a Delta at rest, at one pose (3,) or at several equal ones (N, 3)."""
    position = POSITION if samples == 1 else np.tile(POSITION, (samples, 1))
    rest = np.zeros_like(position)
    return Model(load("delta"), evaluator=evaluator).platform.inverse_dynamics(position, rest, rest).force


@needs_compiler
@pytest.mark.parametrize("samples", [1, 2, 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_explicit_evaluator_compiles_from_the_first_sample_on(tmp_path: Path, samples: int, threads: int) -> None:
    force = forces(Compiled(threads=threads, folder=tmp_path), samples)
    assert any(tmp_path.iterdir()), "nothing was compiled"
    np.testing.assert_allclose(force, forces(Interpreted(), samples), rtol=SAME)


@needs_compiler
def test_an_explicit_number_of_samples_decides(tmp_path: Path) -> None:
    forces(Compiled(at_least=4, folder=tmp_path), 3)
    assert not any(tmp_path.iterdir())
    forces(Compiled(at_least=4, folder=tmp_path), 4)
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize("model", [Model(load("delta")), load_model("delta", threads="2")], ids=["model", "command"])
def test_the_evaluator_of_a_model_decides_by_the_number_of_samples(model: Model) -> None:
    program = model.platform.program("inverse_dynamics")
    assert not model.evaluator.wants_code(program, WORTH_COMPILING - 1)
    assert model.evaluator.wants_code(program, WORTH_COMPILING)


def test_no_samples_are_not_compiled() -> None:
    program = Model(load("delta")).platform.program("inverse_dynamics")
    assert not Compiled().wants_code(program, 0)
    assert Compiled().wants_code(program, 1)
    assert not Compiled(largest=1).wants_code(program, 1)
