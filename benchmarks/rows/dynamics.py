"""Inverse and forward dynamics from the platform's motion, compared with the faster of Pinocchio and MuJoCo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from peers.comparison import Settings, Work, compared

from rows.limits import limits
from rows.machines import NotThere, machine
from rows.row import Row
from tauloop import Mechanism, Model
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.kinematics import random_states
from tauloop.verification.engines import frictionless


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Issue 3's targets for one machine: (call, batch) of inverse and forward dynamics; one call from Python."""

    inverse: tuple[str, str] = ("", "")
    forward: tuple[str, str] | None = None
    python: str | None = None


TARGETS = {
    "rcid": Wanted(
        inverse=("0.12 µs, 40×", "18 ns, 260×"),
        forward=("0.2 µs, 37×", "38 ns, 195×"),
        python="0.6 µs, 25×",
    ),
    "delta": Wanted(inverse=("60 ns, 33×", "7.5 ns, 260×"), forward=("100 ns, 33×", "12 ns, 275×")),
    "gantry_tau_5dof": Wanted(inverse=("30×", "200×")),
    "spidermill reduced": Wanted(inverse=("30×", "200×")),
    "spidermill": Wanted(inverse=("1×", "10×")),
    "digit_like": Wanted(inverse=("1×", "10×")),
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
        chosen = replace(settings, contenders=("compiled",), forward=wanted.forward is not None)
        found = compared(mechanism, chosen, lambda text, name=name: say(f"{name}: {text}"))
        yield from _pair(name, mechanism, found.inverse, "inverse", wanted.inverse)
        if wanted.forward is not None:
            yield from _pair(name, mechanism, found.forward, "forward", wanted.forward)
        if wanted.python is not None:
            yield from _python(name, found.inverse, wanted.python)


def _pair(
    name: str, mechanism: Mechanism, work: Work, what: str, targets: tuple[str, str]
) -> Iterator[Row]:
    """Yield the rows of a call and of a sample of a batch."""
    (own,) = work.tauloop
    peer = min(
        (p for p in work.peers if p.call is not None), key=lambda p: p.call or 0.0, default=None
    )
    peer_fields = (
        {"peer": peer.name, "version": peer.version, "peer_time": peer.call} if peer else {}
    )
    if own.call is None or own.batch is None:
        yield Row(work=f"{name}, {work.name}", tauloop=None, note=own.note)
        return
    model = Model(frictionless(mechanism))
    kernel = model.platform.compiled(PROGRAMS[what][0], (PROGRAMS[what][1],))
    iterations = newton_iterations(model, kernel, what)
    note = f"{iterations:.1f} Newton steps" if iterations else ""
    for label, time, target, in_lanes in (
        ("call", own.call, targets[0], False),
        ("batch", own.batch, targets[1], True),
    ):
        limit, divider = limits(kernel.function, iterations, in_lanes=in_lanes)
        work_text = f"{name}, {work.name}, {label}"
        yield Row(
            work=work_text,
            tauloop=time,
            target=target,
            limit=limit,
            divider=divider,
            note=note,
            **peer_fields,
        )


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
                note="state set, call, forces copied",
            )
