"""Bound calls from Python: the extension module and ctypes do the same, refuse the same, and keep what they need."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
from compiled_machines import compiled, compilers, motion

from tauloop.compiler.c.calling import caller

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)

WAYS = ("extension", "ctypes")
#: One sample and a batch: the same operations up to fused sums and products.
SAME = 1e-12


@pytest.fixture(params=WAYS)
def kernel(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
):
    """Inverse dynamics of the Delta, whose bound calls go through the extension module or through ctypes."""
    if request.param == "ctypes":
        monkeypatch.setattr(caller, "_binding", lambda: None)
    elif caller._binding() is None:
        pytest.skip("Python's headers are not here")
    return compiled(
        "delta", "platform", "inverse_dynamics", tmp_path_factory.getbasetemp() / "caller"
    )


def states(n: int = 5) -> np.ndarray:
    states = motion("delta", "platform", n)
    return np.hstack([states[name] for name in ("position", "velocity", "acceleration")])


def batch(kernel, values: np.ndarray) -> np.ndarray:
    arrays, _ = kernel.bind()
    ports = {
        port.name: np.tile(arrays[port.name], (len(values), 1)) for port in kernel.function.inputs
    }
    parts = zip(("position", "velocity", "acceleration"), np.split(values, 3, axis=1), strict=True)
    return kernel.batch(ports | {name: part.copy() for name, part in parts}, len(values))["force"]


def test_a_state_goes_to_the_front_of_the_inputs_and_the_results_are_those_of_a_batch(
    kernel,
) -> None:
    arrays, call = kernel.bind()
    sampled = states()
    nominal = arrays["inputs"].copy()
    for state, force in zip(sampled, batch(kernel, sampled), strict=True):
        assert call(state) is None
        np.testing.assert_allclose(arrays["force"], force, rtol=SAME)
        np.testing.assert_array_equal(arrays["inputs"][:9], state)
    np.testing.assert_array_equal(arrays["inputs"][9:], nominal[9:])
    call(sampled[0, :3])
    np.testing.assert_array_equal(arrays["inputs"][:9], [*sampled[0, :3], *sampled[-1, 3:]])


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(1000), np.zeros(3, dtype=int), np.zeros((3, 4))[:, 0]],
    ids=["too long", "integers", "strided"],
)
def test_what_is_no_state_is_refused_and_nothing_is_changed(kernel, wrong: np.ndarray) -> None:
    arrays, call = kernel.bind()
    before = arrays["inputs"].copy()
    with pytest.raises(ValueError, match=r"float64 numbers|contiguous"):
        call(wrong)
    with pytest.raises(TypeError):
        call(1.5)
    np.testing.assert_array_equal(arrays["inputs"], before)


def test_a_call_keeps_the_arrays_that_nobody_else_holds(kernel) -> None:
    def force_and_call() -> tuple[np.ndarray, Callable[..., None]]:
        arrays, call = kernel.bind()
        return arrays["force"], call

    pairs = [force_and_call() for _ in range(20)]
    gc.collect()
    sampled = states()
    for state, expected in zip(sampled, batch(kernel, sampled), strict=True):
        for force, call in pairs:
            call(state)
            np.testing.assert_allclose(force, expected, rtol=SAME)
