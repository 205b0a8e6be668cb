"""Inverse and forward dynamics from the platform's motion, compared with every peer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from guard import BATCH, WIDTHS, GuardedRow, inputs_of, restricted, widths
from peers.comparison import Settings, Work, compared
from peers.timing import seconds_per_call

from rows.limits import limits
from rows.machines import NotThere, machine
from rows.row import Row
from tauloop import Mechanism, Model
from tauloop.compiler.c.calling.compiled import CompiledFunction, compile_function
from tauloop.compiler.c.calling.compiler import Compiler, find_compiler
from tauloop.kinematics import random_states
from tauloop.verification.engines import frictionless


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Issue 3's targets for one machine: (call, batch) of inverse and forward dynamics; one call from Python.

    With `avx2`, batches of inverse dynamics are also measured with AVX2 alone.
    """

    inverse: tuple[str, str] = ("", "")
    forward: tuple[str, str] = ("", "")
    python: str | None = None
    avx2: bool = True


TARGETS = {
    "rcid": Wanted(
        inverse=("0.12 µs, 40×", "18 ns, 260×"),
        forward=("0.2 µs, 37×", "38 ns, 195×"),
        python="0.6 µs, 25×",
    ),
    "delta": Wanted(inverse=("60 ns, 33×", "7.5 ns, 260×"), forward=("100 ns, 33×", "12 ns, 275×")),
    "gantry_tau_5dof": Wanted(inverse=("30×", "200×")),
    "spidermill reduced": Wanted(inverse=("30×", "200×"), avx2=False),
    "spidermill": Wanted(inverse=("1×", "10×"), avx2=False),
    "digit_like": Wanted(inverse=("1×", "10×"), avx2=False),
    "hexapod": Wanted(),
    "five_bar": Wanted(),
}
PROGRAMS = {
    "inverse": ("inverse_dynamics", "force"),
    "forward": ("forward_dynamics", "acceleration"),
}


def rows(settings: Settings, say: Callable[[str], None]) -> Iterator[Row]:
    """Yield all rows of dynamics."""
    for name, wanted in TARGETS.items():
        say(name)
        try:
            mechanism = machine(name)
        except NotThere as error:
            yield Row(work=f"{name}, inverse dynamics", tauloop=None, note=str(error))
            continue
        chosen = replace(settings, contenders=("compiled",))
        found = compared(mechanism, chosen, lambda text, name=name: say(f"{name}: {text}"))
        pairs = (
            (found.inverse, "inverse", wanted.inverse),
            (found.forward, "forward", wanted.forward),
        )
        for work, direction, targets in pairs:
            wants_avx2 = wanted.avx2 and direction == "inverse"
            yield from _times(
                name, mechanism, work, direction, targets, settings.seconds, wants_avx2=wants_avx2
            )
        if wanted.python is not None:
            yield from _python(name, found.inverse, wanted.python)


def _times(
    name: str,
    mechanism: Mechanism,
    work: Work,
    direction: str,
    targets: tuple[str, str],
    seconds: float,
    *,
    wants_avx2: bool,
) -> Iterator[Row]:
    """Yield the rows of a call, of a sample of a batch, and of the batch with AVX2 alone."""
    (own,) = work.tauloop
    if own.call is None or own.batch is None:
        yield Row(work=f"{name}, {work.name}", tauloop=None, note=own.note)
        return
    called = [peer for peer in work.peers if peer.call is not None]
    nearest = min(called, key=lambda peer: peer.call or 0.0, default=None)
    peer_fields: dict[str, Any] = {
        "all_peers": {f"{peer.name} {peer.version}": peer.call for peer in called}
    }
    if nearest is not None:
        peer_fields |= {
            "peer": nearest.name,
            "version": nearest.version,
            "peer_time": nearest.call,
        }
    model = Model(frictionless(mechanism))
    program, output = PROGRAMS[direction]
    kernel = model.platform.compiled(program, (output,))
    iterations = newton_iterations(model, kernel, direction)
    note = f"{iterations:.1f} Newton steps" if iterations else ""
    timed = [("call", own.call, targets[0], False, ()), ("batch", own.batch, targets[1], True, ())]
    compiler = find_compiler()
    if compiler is not None and wants_avx2 and widths() == ["avx2", "avx512"]:
        time = _avx2_batch(model, direction, compiler, seconds)
        timed.append(("batch, AVX2", time, "", True, WIDTHS["avx2"]))
    for label, time, target, in_lanes, further in timed:
        limit, divider = limits(kernel.function, iterations, in_lanes=in_lanes, further=further)
        yield Row(
            work=f"{name}, {work.name}, {label}",
            tauloop=time,
            target=target,
            limit=limit,
            divider=divider,
            note=note,
            **peer_fields,
        )


def _avx2_batch(model: Model, direction: str, compiler: Compiler, seconds: float) -> float:
    """Return the time of a sample of a batch without AVX-512."""
    program, output = PROGRAMS[direction]
    function = model.platform.source_function(program, (output,))
    kernel = compile_function(function, restricted(compiler, "avx2"))
    row = GuardedRow(
        machine=model.mechanism.name, program=program, output=output, samples=BATCH, is_batch=True
    )
    inputs = dict(inputs_of(model, kernel, row))
    outputs = kernel.batch(inputs, BATCH)
    return seconds_per_call(lambda: kernel.batch(inputs, BATCH, out=outputs), seconds, BATCH)


def newton_iterations(model: Model, kernel: CompiledFunction, what: str, n: int = 256) -> float:
    """Return the mean number of Newton steps over random states; zero where all blocks have closed forms."""
    if "start" not in {port.name for port in kernel.function.inputs}:
        return 0.0
    states = random_states(model, n, np.random.default_rng(0))
    last = "acceleration" if what == "inverse" else "force"
    other = (
        states.acceleration if what == "inverse" else np.zeros((n, len(model.mechanism.actuators)))
    )
    inputs = {"position": states.position, "velocity": states.velocity, last: other}
    inputs["start"] = np.broadcast_to(model.assembly.q, (n, model.topology.n_q))
    return float(kernel.batch(inputs, n)["health"][:, 3].mean())


def _python(name: str, work: Work, target: str) -> Iterator[Row]:
    """Yield the row of one call from Python, for each of the peers."""
    (own,) = work.tauloop
    for peer in work.peers:
        if peer.python is not None and own.python is not None:
            yield Row(
                work=f"{name}, {work.name}, one call from Python",
                tauloop=own.python,
                peer=f"{peer.name} in Python",
                version=peer.version,
                peer_time=peer.python,
                target=target,
                note="set state, call, copy forces",
            )
