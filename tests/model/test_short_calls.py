"""Calls without the overhead of checks and batches: threads, types, buffers and memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

import tauloop as tl
from tauloop.compiler.c.calling import caller
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.catalogue import ENERGIES
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.geometry.machine_geometry import machine_shape

POSE, VELOCITY, ACCELERATION = (0.01, 0.02, -0.5), (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)


def interrupted(step: Callable[..., None], other: Callable[[], object]) -> Callable[..., None]:
    """Return a step during which another thread makes a call, which may have to wait."""
    threads: list[Thread] = []

    def run(*arguments: Any) -> None:
        if not threads:
            threads.append(Thread(target=other))
            threads[0].start()
            threads[0].join(0.2)
        step(*arguments)

    return run


def test_an_interpreted_call_is_not_disturbed_by_another_thread() -> None:
    model = tl.Model("delta", evaluator=Interpreted())
    expected = model.kinetic_energy(POSE, VELOCITY)
    once = model.platform.runner._once[ENERGIES]
    once._trigger = interrupted(once._trigger, lambda: model.kinetic_energy(POSE, (0.0, 0.0, 0.0)))
    assert model.kinetic_energy(POSE, VELOCITY) == expected
    assert expected > 0.0


def test_a_call_of_machine_code_is_not_disturbed_by_another_thread() -> None:
    """Without the extension module; the module does not release the interpreter's lock."""
    x, health = np.zeros(1), np.array([1.0, 1.0, 0.0, 0.0])
    y = np.zeros(1)
    bound = caller.CallArrays([x, y, health], [x], y)

    def double(table: object) -> None:
        y[:] = 2.0 * x

    def call(value: float) -> np.ndarray:
        return caller._checked(lock, code, ctypes_table, bound, refused, np.array([value]))

    def refused(*arguments: object) -> None:
        raise AssertionError(arguments)

    lock, ctypes_table = caller.Lock(), caller.ctypes.c_double()
    code = interrupted(double, lambda: call(5.0))
    assert call(1.0).tolist() == [2.0]


def test_the_faster_call_replaces_the_first_one_even_if_threads_count_below_zero() -> None:
    calls = caller._FirstCalls(lambda: "first", lambda: lambda: "faster")
    for remaining in (1, -1):
        calls.faster = lambda: lambda: "faster"
        calls.call, calls.remaining = lambda: "first", remaining
        first = ["first"] * max(remaining, 0)
        assert [calls() for _ in range(3)] == [*first, *["faster"] * (3 - len(first))]
    assert calls.faster is None


class Marked(np.ndarray):
    """An array of a derived class."""


#: Other forms of the same numbers.
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "tuple": lambda x: tuple(x.tolist()),
    "NumPy scalars": lambda x: tuple(x),
    "not contiguous": lambda x: np.repeat(x, 2)[::2],
    "backward": lambda x: np.array(x[::-1])[::-1],
    "objects": lambda x: x.astype(object),
    "big endian": lambda x: x.astype(">f8"),
    "derived class": lambda x: x.view(Marked),
    "read only": lambda x: np.frombuffer(x.tobytes()),
    "not aligned": lambda x: np.frombuffer(b"0" + x.tobytes(), offset=1),
}
#: Values that are not the numbers of one sample.
WRONG: dict[str, Callable[[np.ndarray], Any]] = {
    "NaN": lambda x: x * [np.nan, 1.0, 1.0],
    "infinite": lambda x: x * [np.inf, 1.0, 1.0],
    "masked": lambda x: np.ma.masked_array(x, [False, False, True]),
    "texts": lambda x: [f"{item} m" for item in x],
    "complex": lambda x: x + 0j,
    "too short": lambda x: x[:2],
    "one number": lambda x: np.array(x[0]),
    "too large": lambda x: [10**400, 0, 0],
    "None": lambda x: None,
}


def call_of(function: str) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Return a method of a model or of its platform's motion, and the motion of one sample."""
    model = tl.Model("delta")
    owner = model.platform if function == "regressor" else model
    count = {"mass_matrix": 1, "kinetic_energy": 2, "regressor": 3}[function]
    motion = [np.array(row) for row in (POSE, VELOCITY, ACCELERATION)[:count]]
    return getattr(owner, function), motion


@pytest.mark.parametrize("function", ["mass_matrix", "kinetic_energy", "regressor"])
def test_later_calls_accept_and_refuse_the_same_values_as_the_first(function: str) -> None:
    """After a call with plain arrays, whose types the checks know then."""
    call, motion = call_of(function)
    expected = np.array(call(*motion))
    for form, convert in FORMS.items():
        np.testing.assert_allclose(call(*map(convert, motion)), expected, rtol=1e-12, err_msg=form)
    for form, spoil in WRONG.items():
        with pytest.raises(tl.InputError, match=r"position: (is not|has shape)"):
            call(spoil(motion[0]), *motion[1:])
        assert form
    batch = call(*(np.asfortranarray(np.tile(row, (2, 1))) for row in motion))
    np.testing.assert_allclose(batch, np.stack([expected, expected]), rtol=1e-12)


@pytest.mark.parametrize("function", ["mass_matrix", "kinetic_energy", "regressor"])
def test_a_result_does_not_change_with_the_next_call(function: str) -> None:
    call, motion = call_of(function)
    first = call(*motion)
    kept = np.array(first)
    second = call(*(0.9 * row for row in motion))
    assert np.array_equal(first, kept)
    assert not np.array_equal(second, kept)


def test_a_model_and_its_constants_are_freed_together() -> None:
    model = tl.Model("delta")
    model.mass_matrix(POSE)
    model.platform.regressor(POSE, VELOCITY, ACCELERATION)
    waiting = [
        weakref.ref(item) for item in (model, machine_shape(model), machine_constants(model))
    ]
    assert machine_shape(model) is waiting[1]()
    del model
    gc.collect()
    assert [item() for item in waiting] == [None, None, None]


def test_a_model_with_other_values_has_its_own_constants() -> None:
    machine = tl.load("delta")
    longer = tl.Model(machine.with_values({"arm_length": "0.31 m"}))
    model = tl.Model(machine)
    lengths = [
        sorted(np.ptp(body.points, axis=0).max() for body in machine_shape(item).bodies)
        for item in (model, longer, model)
    ]
    assert lengths[0] == lengths[2] != lengths[1]
