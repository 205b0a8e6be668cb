"""BLAS has one thread while small equations are solved, and the user's number of threads comes back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from threading import Event, Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import tauloop as tl
from tauloop.common.execution.blas import one_blas_thread
from tauloop.kinematics.singularities import singularities


def threads() -> int:
    """The largest number of threads that a loaded BLAS reports; some are built for one thread."""
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """The user's choice, which each test finds again."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield
        assert threads() == 2


def test_the_number_comes_back_after_the_outermost_context() -> None:
    with one_blas_thread():
        with one_blas_thread():
            assert threads() == 1
        assert threads() == 1
    assert threads() == 2


def test_the_number_comes_back_after_an_error() -> None:
    @one_blas_thread()
    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert threads() == 2


def test_the_number_comes_back_where_another_python_thread_is_still_inside() -> None:
    inside, done = Event(), Event()

    def work() -> None:
        with one_blas_thread():
            inside.set()
            done.wait()

    other = Thread(target=work)
    with one_blas_thread():
        other.start()
        inside.wait()
    assert threads() == 2
    done.set()
    other.join()
    assert threads() == 2


LATE = """
from tauloop.common.execution.blas import one_blas_thread
from tauloop.kinematics.singularities import singularities
with one_blas_thread():
    import numpy
    from threadpoolctl import threadpool_info, threadpool_limits
    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread():
            import scipy.linalg
            with one_blas_thread():
                print([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])
"""


def test_a_library_that_is_loaded_meanwhile_is_limited_by_the_next_context() -> None:
    """NumPy and SciPy are imported late, and bring a BLAS each."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert set(done.stdout.strip("[]\n").split(", ")) == {"1"}


def singular_values(machine: tl.Mechanism) -> object:
    model = tl.Model(machine)
    return singularities(model, model.assembly.states)


CALLS: dict[str, Callable[[tl.Mechanism], object]] = {
    "Model": tl.Model,
    "check": tl.check,
    "describe": tl.describe,
    "workspace": tl.workspace,
    "assembly_modes": tl.assembly_modes,
    "jacobian": tl.jacobian,
    "forward_kinematics": tl.forward_kinematics,
    "inverse_kinematics": tl.inverse_kinematics,
    "singularities": singular_values,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_public_function_decomposes_matrices_in_one_thread(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every decomposition is recorded with the number of threads that it had."""
    machine, seen = tl.load("five_bar"), []

    def recording(decompose: Callable[..., object]) -> Callable[..., object]:
        def recorded(*args: object, **kwargs: object) -> object:
            seen.append(threads())
            return decompose(*args, **kwargs)

        return recorded

    for decomposition in ("svd", "pinv", "lstsq", "qr"):
        monkeypatch.setattr(np.linalg, decomposition, recording(getattr(np.linalg, decomposition)))
    CALLS[name](machine)
    assert seen
    assert all(number == 1 for number in seen)
