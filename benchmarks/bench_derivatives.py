"""Dynamics with their Jacobians compared with Pinocchio's derivatives in C++, and both without, in one run.

    python benchmarks/bench_derivatives.py [--machines delta ...] [--markdown benchmarks/kernels.md]

Pinocchio is given every coordinate; Tauloop computes the kinematics, and its Jacobians are by the
platform's motion, through the loops. Functions must agree before they are timed, and Pinocchio's derivatives with
finite differences; `tests/model/test_derivatives.py` compares Tauloop's.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers import pinocchio_cpp
from peers.bodies import peer_tree
from peers.c_loop import c_loop
from peers.cache import NotBuilt
from peers.comparison import TOLERANCE, Disagreement, consistent, difference
from peers.computer import load, processor
from peers.states import NotComparable, tree_states
from peers.timing import seconds_per_call
from rich.console import Console
from rows import page
from rows.machines import NotThere, machine
from rows.row import duration, three

from tauloop import Model
from tauloop.common.errors import TauloopError
from tauloop.verification.engines import frictionless

#: Trees, for which Pinocchio is made, and machines with loops.
DERIVATIVE_MACHINES = ("pendulum_arm", "tx40 with a flange", "five_bar", "delta", "rcid", "hexapod")
DERIVATIVE_MARKS = page.marks("bench_derivatives.py")
#: Samples of a batch: few enough for their Jacobians to stay in the core's second cache.
DERIVATIVE_BATCH = 512
#: Tolerance of Pinocchio's derivatives against differences of second order, with loops closed to
#: 1e-8.
NEAR = 1e-4
DERIVATIVE_HEADINGS = (
    "work",
    "Tauloop",
    "with Jacobians",
    "Pinocchio",
    "with derivatives",
    "faster by",
    "with both's derivatives",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Times (s) of a function, alone and with its derivatives, of Tauloop and of Pinocchio."""

    work: str
    own: tuple[float, float]
    peer: tuple[float, float]

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the texts in the order of `DERIVATIVE_HEADINGS`."""
        ratios = [theirs / ours for ours, theirs in zip(self.own, self.peer, strict=True)]
        times = (duration(time) for time in (*self.own, *self.peer))
        return (
            self.work,
            *times,
            *(f"{three(ratio)}×" for ratio in ratios),
        )


def measured(name: str, cpp: Path, states: int, seconds: float) -> Iterator[Line]:
    """Yield all lines of a machine.

    Raises:
        Disagreement: functions differ, or Pinocchio's derivatives differ from finite differences.
        NotComparable: Pinocchio cannot be given the machine.
    """
    mechanism = frictionless(machine(name))
    engine, motion, chosen = consistent(mechanism, states, np.random.default_rng(0))
    reference = engine.inverse_dynamics(motion).forces
    peer, theirs = peer_tree(engine.tree), tree_states(engine, motion)
    if theirs.forward_mu is None or not theirs.is_regular:
        raise NotComparable("its loops need more than point constraints, or links are massless")
    native = pinocchio_cpp.run(cpp, peer, theirs, 0.0)
    slopes = pinocchio_cpp.derivatives(cpp, peer, theirs, seconds)
    for what, worst, most in (
        ("Pinocchio's forces", difference(native.forces, reference), TOLERANCE),
        ("Pinocchio's accelerations", native.forward_error or 0.0, TOLERANCE),
        ("Pinocchio's derivatives", slopes.difference, NEAR),
    ):
        if not worst <= most:
            raise Disagreement(f"{what} differ by {worst:.1e} (limit {most:.0e})")
    model = Model(mechanism)
    works = (
        ("inverse", "force", "acceleration", slopes.inverse, chosen.acceleration, reference),
        ("forward", "acceleration", "force", slopes.forward, reference, chosen.acceleration),
    )
    for word, output, last, times, given, wanted in works:
        if times is None:
            continue
        function = f"{word}_dynamics"
        jacobians = [f"{output}_by_{argument}" for argument in ("position", "velocity", last)]
        arrays = {"position": chosen.position, "velocity": chosen.velocity, last: given}
        alone = _timed(model, function, (output,), arrays, wanted, seconds)
        both = _timed(
            model, f"{function}_derivatives", (output, *jacobians), arrays, wanted, seconds
        )
        for label, own in zip(("call", "batch"), zip(alone, both, strict=True), strict=True):
            yield Line(work=f"{name}, {word} dynamics, {label}", own=own, peer=times)


def _timed(
    model: Model,
    program: str,
    outputs: tuple[str, ...],
    motion: dict[str, np.ndarray],
    wanted: np.ndarray,
    seconds: float,
) -> tuple[float, float]:
    """Return the seconds of a call from a loop in C, and of a sample of a batch.

    Raises:
        Disagreement: the first output is not the expected one.
    """
    kernel, n = model.platform.compiled(program, outputs), len(wanted)
    arrays = {port.name: np.zeros((n, port.size)) for port in kernel.function.arguments}
    for name in arrays.keys() & ({*motion} | {*kernel.nominal}):
        arrays[name][:] = motion.get(name, kernel.nominal.get(name))
    calls = c_loop(
        getattr(ctypes.CDLL(str(kernel.library)), kernel.function.name), list(arrays.values())
    )
    calls()
    worst = difference(arrays[outputs[0]], wanted)
    if not worst <= TOLERANCE:
        raise Disagreement(f"Tauloop's {outputs[0]} differs by {worst:.1e} (limit {TOLERANCE:.0e})")
    many = {
        name: np.resize(array, (DERIVATIVE_BATCH, array.shape[1])) for name, array in arrays.items()
    }
    batch = getattr(ctypes.CDLL(str(kernel.library)), f"{kernel.function.name}_batch")
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in many.values()]
    count = ctypes.c_size_t(DERIVATIVE_BATCH)
    steps = (ctypes.c_size_t * len(many))(*(array.shape[1] for array in many.values()))
    seconds_per_sample = seconds_per_call(
        lambda: batch(count, steps, *pointers), seconds, DERIVATIVE_BATCH
    )
    return seconds_per_call(calls, seconds, n), seconds_per_sample


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--machines", nargs="+", default=list(DERIVATIVE_MACHINES), help="names of machines"
    )
    parser.add_argument("--states", type=int, default=64, help="random states (default 64)")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="for each measurement (default 0.2)"
    )
    parser.add_argument(
        "--no-cpp",
        action="store_true",
        help="leave Pinocchio's C++ program out: nothing is compared",
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    options = parser.parse_args(arguments)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        cpp = None if options.no_cpp else pinocchio_cpp.program()
    except NotBuilt as error:
        console.print(f"no C++ program of Pinocchio: {error}", markup=False)
        cpp = None
    if cpp is None:
        print("Pinocchio's C++ program is not here: there is nothing to compare with")
        return 0
    lines, notes = list[Line](), list[str]()
    for name in options.machines:
        try:
            lines += measured(name, cpp, options.states, options.seconds)
        except (NotComparable, NotThere) as error:
            notes.append(f"{name}: {error}.")
        except (Disagreement, TauloopError, RuntimeError) as error:
            console.print(f"{name}: {error}", style="bold red", markup=False)
            return 1
        console.print(name)
    busy = f"; load of the {processor().cores} cores {load() or 0.0:.1f}"
    notes.append(f"{processor().name}, Pinocchio {pinocchio_cpp.version()}{busy}.")
    table = ["| " + " | ".join(DERIVATIVE_HEADINGS) + " |", "|---" * len(DERIVATIVE_HEADINGS) + "|"]
    table += ["| " + " | ".join(line.cells) + " |" for line in lines]
    if options.markdown:
        page.write(
            options.markdown, DERIVATIVE_MARKS, [*table, "", *(f"{note}\n" for note in notes)]
        )
    else:
        print("\n".join([*table, *notes]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
