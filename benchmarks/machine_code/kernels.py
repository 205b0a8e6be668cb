"""Kernels of the table of speed as assembly, and their times on this computer."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers.c_loop import c_loop
from peers.comparison import BATCH
from peers.timing import seconds_per_call
from rows.dynamics import PROGRAMS
from rows.machines import machine

from machine_code.analyser import Analyser, Cycles
from machine_code.assembly import Assembly
from machine_code.walk import Step, one_round, walked
from tauloop import Model
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.c.calling.compiler import (
    FLAGS,
    GCC_FLAGS,
    GCC_LANE_FLAGS,
    WIDE_FLAGS,
    Compiler,
)
from tauloop.compiler.c.printing.batch_source import LANES
from tauloop.compiler.c.printing.source import CFunction, c_units
from tauloop.kinematics import random_states
from tauloop.verification.engines import frictionless

#: Number of random states, and of blocks of a walk, of which the middle one is taken.
STATES, BLOCKS = 256, 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kernel:
    """A kernel of the table.

    Attributes:
        name: machine and work.
        compiled: as the toolkit compiles and runs it on this computer.
        inputs: arrays (STATES, n) by port.
    """

    name: str
    compiled: CompiledFunction
    inputs: dict[str, np.ndarray]

    @property
    def function(self) -> CFunction:
        """Return the generated function."""
        function = self.compiled.function
        assert isinstance(function, CFunction)
        return function

    def iterations(self, *, in_lanes: bool) -> float:
        """Return the mean number of Newton steps: of a block, as many as its slowest lane needs, or of a sample."""
        if in_lanes:
            return float(self.compiled.batch(self.inputs, STATES)["health"][:, 3].mean())
        counts = []
        for i in range(STATES):
            sample = {name: array[i : i + 1] for name, array in self.inputs.items()}
            counts.append(self.compiled.batch(sample, 1)["health"][0, 3])
        return float(np.mean(counts))

    def seconds(self, budget: float, *, in_lanes: bool) -> float:
        """Return the measured time of a sample of a batch, or of a call from a loop in C."""
        n = BATCH if in_lanes else STATES
        arrays = {
            name: np.resize(array, (n, array.shape[1])) for name, array in self.inputs.items()
        }
        ports = self.function.arguments[len(self.function.inputs) :]
        out = {port.name: np.empty((n, port.size)) for port in ports}
        if in_lanes:
            return seconds_per_call(lambda: self.compiled.batch(arrays, n, out=out), budget, n)
        code = getattr(ctypes.CDLL(str(self.compiled.library)), self.function.name)
        every = [arrays[port.name] for port in self.function.inputs] + list(out.values())
        return seconds_per_call(c_loop(code, every), budget, n)


def kernel(name: str, what: str) -> Kernel:
    """Return a kernel with states to run it on.

    Args:
        name: of the machine, as in the table of speed.
        what: "inverse" or "forward" dynamics.
    """
    model = Model(frictionless(machine(name)))
    program, output = PROGRAMS[what]
    compiled = model.platform.compiled(program, (output,))
    states = random_states(model, STATES, np.random.default_rng(0))
    inputs = {
        "position": states.position,
        "velocity": states.velocity,
        "acceleration": states.acceleration,
        "force": np.zeros((STATES, len(model.mechanism.actuators))),
        "start": np.broadcast_to(model.assembly.q, (STATES, model.topology.n_q)),
    }
    wanted = {port.name for port in compiled.function.inputs}
    return Kernel(
        name=f"{name}, {what} dynamics",
        compiled=compiled,
        inputs={key: np.ascontiguousarray(array) for key, array in inputs.items() if key in wanted},
    )


def assembly(function: CFunction, compiler: Compiler, architecture: str) -> list[str]:
    """Return assembly files of a function and its kernel: the toolkit's C text under the toolkit's flags.

    Args:
        function: what is computed.
        compiler: the C compiler.
        architecture: value of `-march=`, instead of the toolkit's "native".
    """
    target = f"-march={architecture}"
    flags = [target if flag == "-march=native" else flag for flag in FLAGS if flag != "-shared"]
    flags += GCC_FLAGS if compiler.is_gcc else ()
    asked = subprocess.run(
        [compiler.path, target, "-dM", "-E", "-x", "c", "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
    )
    flags += WIDE_FLAGS if "__AVX512F__" in asked.stdout else ()
    with tempfile.TemporaryDirectory() as folder:
        made = []
        texts = c_units(function, function.name)
        for i, text in enumerate(texts):
            own = GCC_LANE_FLAGS if compiler.is_gcc and i < len(texts) - 1 else ()
            source, result = Path(folder) / f"{i}.c", Path(folder) / f"{i}.s"
            source.write_text(text, encoding="ascii")
            subprocess.run(
                [compiler.path, *flags, *own, "-S", str(source), "-o", str(result)], check=True
            )
            made.append(result.read_text(encoding="utf-8"))
    return made


def passed(
    function: CFunction, code: Assembly, rounds: int, *, in_lanes: bool
) -> tuple[list[Step], int]:
    """Return the instructions of a block of a batch, or of a call, and its samples, for given Newton steps."""
    arrays = [None] * len(function.arguments)
    if not in_lanes:
        return walked(code, function.name, arrays, rounds).steps, 1
    walker = walked(code, f"{function.name}_batch", [BLOCKS * LANES, None, *arrays], rounds)
    samples = _samples_of_a_block(function, code)
    return one_round(walker, BLOCKS * LANES // samples), samples


def _samples_of_a_block(function: CFunction, code: Assembly) -> int:
    """Return the samples of a block: fewer in wide registers, where the text defines it."""
    is_wide = any("%zmm" in one.text for one in code.instructions)
    texts = "\n".join(c_units(function, function.name))
    sizes = [int(size) for size in re.findall(r"^#define TL_LANES (\d+)$", texts, re.MULTILINE)]
    return sizes[0] if is_wide else sizes[-1]


def predicted(
    function: CFunction,
    code: Assembly,
    iterations: float,
    analyser: Analyser,
    core: str,
    *,
    in_lanes: bool,
) -> Cycles:
    """Return the cycles of a sample; between whole numbers of Newton steps they are interpolated linearly."""
    low = int(iterations)
    shares = (
        [(low, 1.0)]
        if iterations == low
        else [(low, low + 1 - iterations), (low + 1, iterations - low)]
    )
    simulated = bound = 0.0
    for rounds, share in shares:
        steps, samples = passed(function, code, rounds, in_lanes=in_lanes)
        found = analyser.cycles([code.instructions[step.place] for step in steps], core)
        simulated += share * found.simulated / samples
        bound += share * found.bound / samples
    return Cycles(simulated=simulated, bound=bound)
