"""Forward kinematics along a motion sampled at 1 kHz: machine code compared with SciPy's `root`.

A machine with a closed form needs no tracking: its samples are computed one call each, and in
batch.

SciPy gets the same loop equations and their Jacobian as machine code (CasADi's C, compiled),
reduced to the unknown coordinates, and starts from the line through its last two solutions.
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
import scipy
from peers.c_loop import c_loop
from peers.cache import built
from peers.comparison import Disagreement, Settings
from peers.computer import compiler_version
from peers.timing import seconds_per_call
from scipy.optimize import root

from rows.limits import limits
from rows.row import Row
from tauloop import Model, load
from tauloop.compiler.c.calling.compiled import compile_function
from tauloop.compiler.c.calling.compiler import Compiler, find_compiler
from tauloop.compiler.c.calling.tracking import Tracker
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.program import Newton

#: (one lane, lanes) of issue 3.
TRACKING_TARGETS = {
    "rcid": ("0.3 µs, 500×", "60 ns, 500×"),
    "delta": ("80 ns, 500×", "15 ns, 500×"),
}
SAMPLE_RATE = 1000.0
#: Motion of each actuator around its reference: share of the machine's length (or of a radian), and
#: Hz.
AMPLITUDE, FREQUENCIES = 0.05, (0.5, 1.3)
#: There are no free parameters.
NOTHING = np.empty(0)
#: Samples that the tracker follows, and that SciPy solves.
LONG, SHORT = 8_000, 300
#: SciPy stops at a relative step of 1.5e-8; its remaining error is about the square of that, or
#: rounding errors.
TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Equations:
    """The loop equations in the unknown coordinates, as machine code called through fixed buffers.

    Attributes:
        residual: x (n,) to equations (n,).
        jacobian: x (n,) to their derivatives (n, n).
        unknown: indices of x among all coordinates.
        known: sets the given coordinates.
    """

    residual: Callable[[np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray], np.ndarray]
    unknown: list[int]
    known: Callable[[np.ndarray], None]


def rows(settings: Settings, say: Callable[[str], None]) -> Iterator[Row]:
    """Yield the rows of single samples and of batches for each machine."""
    for name, targets in TRACKING_TARGETS.items():
        say(name)
        yield from _machine(name, targets, settings)


def _machine(name: str, targets: tuple[str, str], settings: Settings) -> Iterator[Row]:
    model = Model(load(name))
    position = motion(model, LONG)
    peer_time, wanted = scipy_time(model, position[:SHORT])
    compiler = find_compiler()
    if compiler is None:
        yield Row(work=f"{name}, forward kinematics", tauloop=None, note="there is no C compiler")
        return
    function = model.actuators.source_function("kinematics_0", ("q",))
    is_closed = not any(isinstance(step, Newton) for step in function.program.steps)
    make = _computed if is_closed else _followed
    for label, in_lanes, target in zip(
        ("single sample", "vectorized batch"), (False, True), targets, strict=True
    ):
        work, found = make(model, function, compiler, position, in_lanes)
        q, steps = found()
        worst = float(np.abs(q[:SHORT] - wanted).max())
        if not worst <= TOLERANCE:
            raise Disagreement(f"{name}: coordinates differ from SciPy's by {worst:.1e}")
        spent = seconds_per_call(work, settings.seconds, LONG)
        limit, divider = limits(function, steps, in_lanes=in_lanes)
        yield Row(
            work=f"{name}, forward kinematics at 1 kHz, {label}",
            tauloop=spent,
            peer="SciPy root",
            version=scipy.__version__,
            peer_time=peer_time,
            target=target,
            limit=limit,
            divider=divider,
            note="closed form" if is_closed else f"tracked, {steps:.2f} Newton steps",
        )


#: The timed function, and a function that returns its coordinates (LONG, n_q) and Newton steps.
Made = tuple[Callable[[], object], Callable[[], tuple[np.ndarray, float]]]


def _followed(
    model: Model, function: CFunction, compiler: Compiler, position: np.ndarray, in_lanes: bool
) -> Made:
    tracker = Tracker(function, in_lanes=in_lanes)
    start = np.ascontiguousarray(model.actuators.follow(position[tracker.starts(LONG)]).q)

    def work() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tracker(position, start, NOTHING)

    def found() -> tuple[np.ndarray, float]:
        q, health, gaps = work()
        gap = float((gaps / model.assembly.loops.coordinate_scale).max(initial=0.0))
        if not gap <= TOLERANCE:
            raise Disagreement(
                f"{model.mechanism.name}: parts of the motion do not meet, by {gap:.1e}"
            )
        return q, float(health[:, 3].mean())

    return work, found


def _computed(
    model: Model, function: CFunction, compiler: Compiler, position: np.ndarray, in_lanes: bool
) -> Made:
    kernel = compile_function(function, compiler)
    sizes = {port.name: port.size for port in kernel.function.arguments}
    arrays = {name: np.zeros((LONG, size)) for name, size in sizes.items()}
    arrays["position"][:] = position
    loop = c_loop(
        getattr(ctypes.CDLL(str(kernel.library)), kernel.function.name), list(arrays.values())
    )
    out = {name: arrays[name] for name in ("q", "health")}

    def batch() -> object:
        return kernel.batch(arrays, LONG, out=out)

    work = batch if in_lanes else loop

    def found() -> tuple[np.ndarray, float]:
        work()
        return arrays["q"], 0.0

    return work, found


def motion(model: Model, n: int) -> np.ndarray:
    """Return actuator positions (n, n_u) at 1 kHz: every actuator oscillates around its reference at its own rate."""
    center = model.actuator_position(model.assembly.q[None])[0]
    turns = [unit == "rad" for unit in model.actuators.ports.position.units]
    size = AMPLITUDE * np.where(turns, 1.0, model.assembly.loops.length)
    frequency = np.linspace(*FREQUENCIES, len(center))
    t = np.arange(n)[:, None] / SAMPLE_RATE
    return np.ascontiguousarray(center + size * np.sin(2.0 * np.pi * frequency * t))


def scipy_time(model: Model, position: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the time of a sample (the median, because most are undisturbed), and coordinates (N, n_q)."""
    equations = compiled_equations(model)
    x = before = model.actuators.follow(position[:1]).q[0][equations.unknown]
    q = np.tile(model.assembly.q, (len(position), 1))
    q[:, list(model.actuators.ports.q)] = given = position @ model.actuators.ports.to_q.T
    times = []
    for i, row in enumerate(given):
        start = time.perf_counter()
        equations.known(row)
        found = root(equations.residual, 2.0 * x - before, jac=equations.jacobian)
        times.append(time.perf_counter() - start)
        before, x = x, found.x
        q[i, equations.unknown] = x
    return float(np.median(times)), q


def compiled_equations(model: Model) -> Equations:
    """Return the loop equations of a machine, with unit lengths of quaternions, in the unknown coordinates."""
    shape, assembly, entry = model.topology, model.assembly, model.actuators.ports
    q = ca.SX.sym("q", shape.n_q)
    known = list(entry.q)
    unknown = [i for i in range(shape.n_q) if i not in known]
    phi = assembly.loops.function.function(q)[0][list(assembly.rows)]
    norms = [0.5 * (ca.sumsqr(q[k : k + 4]) - 1.0) for k, _ in shape.quaternions]
    equations = ca.vertcat(phi, *norms)
    still = [i for i in unknown if not ca.which_depends(equations, q[i], 1, True).count(True)]
    unknown = [i for i in unknown if i not in still]
    x, p = q[unknown], q[known]
    equations = ca.substitute(equations, q[still], ca.DM(assembly.q[still])) if still else equations
    functions = [
        ca.Function("residual", [x, p], [ca.densify(equations)]),
        # column-major in CasADi, row-major in NumPy
        ca.Function("jacobian", [x, p], [ca.densify(ca.jacobian(equations, x).T)]),
    ]
    buffers = [_external(function).buffer() for function in functions]
    n = len(unknown)
    at, given, value, slope = (
        np.zeros(n),
        np.zeros(len(known)),
        np.zeros(equations.numel()),
        np.zeros((n, n)),
    )
    for (buffer, _), out in zip(buffers, (value, slope.reshape(-1)), strict=True):
        buffer.set_arg(0, memoryview(at))
        buffer.set_arg(1, memoryview(given))
        buffer.set_res(0, memoryview(out))

    def residual(x: np.ndarray) -> np.ndarray:
        at[:] = x
        buffers[0][1]()
        return value.copy()

    def jacobian(x: np.ndarray) -> np.ndarray:
        at[:] = x
        buffers[1][1]()
        return slope.copy()

    def known_set(row: np.ndarray) -> None:
        given[:] = row

    return Equations(residual=residual, jacobian=jacobian, unknown=unknown, known=known_set)


def _external(function: ca.Function) -> ca.Function:
    """Return CasADi's C code of a function, compiled; without a compiler the function itself, interpreted."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return function
    with tempfile.TemporaryDirectory() as folder:
        generator = ca.CodeGenerator(f"{function.name()}.c")
        generator.add(function)
        source = Path(folder) / f"{function.name()}.c"
        source.write_text(generator.dump(), encoding="ascii")
        command = [compiler, "-O3", "-march=native", "-fPIC", "-shared"]
        library = built(function.name(), command, source, compiler_version(compiler), suffix=".so")
    return ca.external(function.name(), str(library))
