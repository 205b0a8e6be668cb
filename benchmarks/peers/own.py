"""Tauloop's own side of the comparison: one small entry for each way of running it.

A contender is a name and a function that returns, for one model, the functions to time. To add one,
write such a function and add it to `INVERSE` or `FORWARD`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from peers.c_loop import c_loop, loaded_copies
from peers.states import NotComparable
from tauloop.common.errors import EngineError
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import Array
from tauloop.model import Model

#: A function from (position, velocity, acceleration or force) of the platform's entry, (N, n) each,
#: to forces or accelerations.
Work = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The timed functions of a contender.

    Attributes:
        work: arrays in, arrays out: for a batch, and for one call from Python where there is no
            `single`.
        single: sets one state (its three vectors in one), calls, and gives the result: the fastest
            way from Python.
        calls: functions that run the machine code from a loop in C over all samples, one call each,
            and their results; None where there is none. Each runs another copy of the code, since
            its time depends on the pages of memory that it happens to lie in (up to 60 %).
    """

    work: Work
    single: Callable[[Array], Array] | None = None
    calls: Callable[[Array, Array, Array], tuple[list[Callable[[], None]], Array]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A way of running Tauloop: `make` returns the timed functions, or raises `NotComparable`."""

    name: str
    make: Callable[[Mechanism], Ready]


def _interpreted_inverse(mechanism: Mechanism) -> Ready:
    functions = Model(mechanism, evaluator=Interpreted()).platform
    return Ready(work=lambda p, v, a: functions.inverse_dynamics(p, v, a).force)


def _interpreted_forward(mechanism: Mechanism) -> Ready:
    functions = Model(mechanism, evaluator=Interpreted()).platform
    columns = list(functions.ports.v)
    return Ready(work=lambda p, v, u: np.asarray(functions.forward_dynamics(p, v, u).a)[:, columns])


def _checked_inverse(mechanism: Mechanism) -> Ready:
    functions = Model(mechanism, evaluator=Compiled(at_least=0)).platform
    return Ready(work=lambda p, v, a: functions.inverse_dynamics(p, v, a).force)


def _compiled_inverse(mechanism: Mechanism) -> Ready:
    return _bound(mechanism, "inverse_dynamics", "acceleration", "force")


def _compiled_forward(mechanism: Mechanism) -> Ready:
    return _bound(mechanism, "forward_dynamics", "force", "acceleration")


def _bound(mechanism: Mechanism, program: str, given: str, result: str) -> Ready:
    """Return machine code with only the wanted output: on batches, and bound to fixed arrays."""
    model = Model(mechanism)
    try:
        kernel = model.platform.compiled(program, (result,))
    except EngineError as error:
        raise NotComparable(str(error)) from error
    arrays, call = kernel.bind()
    if "start" in arrays:
        arrays["start"][:] = model.assembly.q
    kept: dict[int, dict[str, Array]] = {}
    starts: dict[int, Array] = {}

    def work(p: Array, v: Array, x: Array) -> Array:
        n = len(p)
        if n not in starts:
            starts[n] = np.tile(model.assembly.q, (n, 1))
        # results go to the same arrays, as in the peers' loops; new memory would add to the time
        kept[n] = kernel.batch(
            {"position": p, "velocity": v, given: x, "start": starts[n]}, n, out=kept.get(n)
        )
        return kept[n][result]

    single = None
    if [port.name for port in kernel.function.inputs[:3]] == ["position", "velocity", given]:
        found = arrays[result]

        def single(sample: Array) -> Array:
            call(sample)
            return found.copy()

    def calls(p: Array, v: Array, x: Array) -> tuple[list[Callable[[], None]], Array]:
        ports = [port.name for port in kernel.function.arguments]
        many = {name: np.repeat(arrays[name][None], len(p), axis=0) for name in ports}
        many["position"][:], many["velocity"][:], many[given][:] = p, v, x
        loops = [
            c_loop(getattr(library, kernel.function.name), list(many.values()))
            for library in loaded_copies(kernel.library)
        ]
        loops[0]()
        return loops, many[result]

    return Ready(work=work, single=single, calls=calls)


INVERSE = (
    Contender(name="compiled", make=_compiled_inverse),
    Contender(name="compiled, checked", make=_checked_inverse),
    Contender(name="interpreted", make=_interpreted_inverse),
)
FORWARD = (
    Contender(name="compiled", make=_compiled_forward),
    Contender(name="interpreted", make=_interpreted_forward),
)
