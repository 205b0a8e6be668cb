"""Calls of batches on threads: numbers, diagnostics and errors do not depend on their number."""

from collections.abc import Callable

import numpy as np
import pytest
from compiled_machines import compilers

import tauloop as tl
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.compiler.c.calling.memory import LEAST, empty
from tauloop.compiler.c.calling.threads import MIN_SHARE
from tauloop.kinematics import random_states
from tauloop.model.motion import Motion

#: Both arrive by Newton's method, whose last step is shorter than 1e-8: about its square is left, m
#: or rad.
WALKED = 1e-12
needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: More than what is done in one piece, shared out over threads, and no whole number of blocks.
SAMPLES = 3 * MIN_SHARE + 5
#: A sample behind the first piece and the first share.
BAD = 2 * MIN_SHARE + 3
#: Closed forms, and Newton's loops that forward kinematics follows.
MACHINES = ("delta", "five_bar")


def arrays_of(value: object) -> dict[str, np.ndarray]:
    """All arrays in a result, by their place in it."""
    if isinstance(value, np.ndarray):
        return {"": value}
    names = getattr(type(value), "__dataclass_fields__", {})
    parts = (
        value.items()
        if isinstance(value, dict)
        else ((name, getattr(value, name)) for name in names)
    )
    return {
        f"{name}.{key}": array for name, part in parts for key, array in arrays_of(part).items()
    }


def model_of(name: str, threads: int) -> tl.Model:
    return tl.Model(tl.load(name), evaluator=Compiled(at_least=0, threads=threads))


def calls(model: tl.Model, n: int) -> dict[str, Callable[[], object]]:
    states = random_states(model, 50, np.random.default_rng(0))
    q, v, a = (
        np.resize(x, (n, x.shape[1])) for x in (states.q, states.velocity, states.acceleration)
    )
    x, u = model.platform.ports.at(q), model.actuators.ports.at(q)
    motion: Motion = model.platform
    return {
        "inverse dynamics": lambda: motion.inverse_dynamics(x, v, a, start=q),
        "forward kinematics": lambda: model.forward_kinematics(u),
        "Jacobian": lambda: motion.actuator_jacobian(x, start=q),
        "condition": lambda: motion.condition(q),
        "one velocity for all": lambda: motion.kinematics(x, v[0]),
    }


@needs_compiler
@pytest.mark.parametrize("name", MACHINES)
def test_results_and_diagnostics_are_the_same_to_the_last_bit(name):
    alone, shared, few = (
        calls(model_of(name, t), n) for t, n in ((1, SAMPLES), (3, SAMPLES), (2, MIN_SHARE))
    )
    for what, call in alone.items():
        expected, whole, part = arrays_of(call()), arrays_of(shared[what]()), arrays_of(few[what]())
        assert expected.keys() == whole.keys() == part.keys()
        assert max(map(len, expected.values())) == SAMPLES
        for key, array in expected.items():
            np.testing.assert_array_equal(whole[key], array, err_msg=f"{what}: {key}")
            if len(array) == SAMPLES:
                np.testing.assert_array_equal(
                    part[key], array[:MIN_SHARE], err_msg=f"{what}: {key}, first samples"
                )


@needs_compiler
@pytest.mark.parametrize("name", MACHINES)
def test_a_row_for_all_samples_is_that_row_in_each(name):
    model = model_of(name, 2)
    x, v = (
        model.platform.ports.at(model.assembly.q),
        np.full(model.platform.ports.velocity.size, 0.1),
    )
    everywhere = [np.tile(row, (SAMPLES, 1)) for row in (x, v, -v)]
    seen = [everywhere[0], v, np.broadcast_to(-v, everywhere[2].shape)]
    expected = arrays_of(model.platform.inverse_dynamics(*everywhere))
    for key, array in arrays_of(model.platform.inverse_dynamics(*seen)).items():
        np.testing.assert_array_equal(array, expected[key], err_msg=key)


@needs_compiler
@pytest.mark.parametrize("name", ["rcid", "par4"])
def test_machine_code_walks_to_positions_as_the_interpreter_does(name):
    """From a start of one's own too; and of what is out of reach both say the same."""
    models = [tl.Model(tl.load(name), evaluator=Interpreted()), model_of(name, 2)]
    q = random_states(models[0], 20, np.random.default_rng(3)).q
    u = models[0].actuators.ports.at(q)
    freed = models[1].with_free_parameters(models[1].mechanism.parameters.names[:2])
    for start in (None, q[0]):
        reached = [model.forward_kinematics(u, start=start).q for model in (*models, freed)]
        np.testing.assert_allclose(reached[1:], [reached[0]] * 2, rtol=0.0, atol=WALKED)
    u[7, 0] += 2.0
    loops = []
    for model in models:
        with pytest.raises(PoseError, match="sample 7") as error:
            model.forward_kinematics(u)
        loops.append([problem.where for problem in error.value.problems])
    assert loops[0] == loops[1]


@needs_compiler
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(("bad", "error"), [(np.nan, InputError), (90.0, PoseError)])
def test_errors_name_the_same_samples(name, bad, error):
    """What is no number, or out of reach, in one sample among many; as the interpreter says it."""
    models = [
        tl.Model(tl.load(name), evaluator=Interpreted()),
        *(model_of(name, threads) for threads in (1, 3)),
    ]
    x, u = (
        np.tile(motion.ports.at(models[0].assembly.q), (SAMPLES, 1))
        for motion in (models[0].platform, models[0].actuators)
    )
    x[BAD, 0], u[BAD, 0] = bad, np.nan
    rest = np.zeros(models[0].platform.ports.velocity.size)
    texts = []
    for model in models:
        with pytest.raises(error, match=str(BAD)) as of_forces:
            model.platform.inverse_dynamics(x, rest, rest)
        with pytest.raises(InputError, match=str(BAD)) as of_poses:
            model.forward_kinematics(u)
        texts.append((str(of_forces.value), str(of_poses.value)))
    assert texts[0] == texts[1] == texts[2]


def test_memory_of_results_is_taken_again_only_when_nobody_holds_it(monkeypatch):
    monkeypatch.setattr("tauloop.compiler.c.calling.memory._KEPT", [])
    n = LEAST // 8
    first, second = empty(n, 2), empty(n, 2)
    first[:], second[:] = 1.0, 2.0
    part, places = first[5:7], {first.ctypes.data, second.ctypes.data}
    del first
    third = empty(n, 2)
    third[:] = 3.0
    assert third.ctypes.data not in places
    assert (part == 1.0).all()
    assert (second == 2.0).all()
    del second, part
    assert {empty(n, 2).ctypes.data, third.ctypes.data} & places
    assert empty(3, 2).base is None


def test_few_pieces_of_memory_are_looked_through(monkeypatch):
    pieces: list[np.ndarray] = []
    monkeypatch.setattr("tauloop.compiler.c.calling.memory._KEPT", pieces)
    monkeypatch.setattr("tauloop.compiler.c.calling.memory.MOST_PIECES", 2)
    n = LEAST // 8
    results = [empty(n, 1) for _ in range(3)]
    assert len(pieces) == 2
    assert results[2].base is not None
    del results
    large = empty(n, 9)  # fits into neither of the two, of which one makes room for it
    assert len(pieces) == 2
    assert any(np.shares_memory(large, piece) for piece in pieces)


@needs_compiler
def test_results_that_are_held_stay_what_they_were():
    model, rng = model_of("delta", 2), np.random.default_rng(4)
    x, n = np.tile(model.platform.ports.at(model.assembly.q), (60_000, 1)), 60_000
    motions = [(x, 0.1 * rng.normal(size=(n, 3)), rng.normal(size=(n, 3))) for _ in range(3)]
    held = [model.platform.inverse_dynamics(*motion) for motion in motions]
    again = [model.platform.inverse_dynamics(*motion).force.copy() for motion in motions]
    for forces, once_more in zip(held, again, strict=True):
        np.testing.assert_array_equal(forces.force, once_more)
