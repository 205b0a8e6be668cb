"""Kernels on a GPU: their speed compared with their limits, with batches in C and with other engines.

    python benchmarks/bench_gpu.py [--machines delta rcid] [--samples 4194304] [--registers 128]
    [--json FILE]
        [--markdown benchmarks/kernels.md]

Without a GPU it prints the compiler's figures of each kernel, and the limits that follow for an
H200 by its data sheet (`--markdown` writes them between the marks of a page). With a GPU it
measures bandwidth and arithmetic first, with copies and with fused products and sums in double
precision, and computes the limits from these. Every kernel is compared with C before it is timed,
and is run twice, which must give equal bits.

The limits are the bandwidth divided by the bytes of a sample (inputs, outputs, health), and the
rate of the unit for doubles divided by its instructions in a sample: counted in the machine code by
nvdisasm, if available (extra `dev`, or the CUDA toolkit). Loops count once; for kernels that consist
of loops (poses, paths) the count gives no limit. For kernels over initial states a step is counted:
rates as often as the method evaluates them, everything else once.

`--processor` runs the same measurement with kernels as loops, to test this file. `--engines`
measures the other engines, `--prepare` compiles all kernels on all cores first, `--arrays` passes
arrays of JAX and PyTorch in and out. `device_day.py` does all of it on a machine without a network.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from machine_code.device import Code, functions_of, step
from rich.console import Console
from rich.table import Table
from rows import page

from tauloop import Model, assembly_modes, load
from tauloop.common.errors import EngineError
from tauloop.common.execution.processes import SharedWork
from tauloop.compiler.c import Precision
from tauloop.compiler.c.calling.evaluator import Compiled, Evaluator
from tauloop.compiler.c.printing.rows import CompiledRows
from tauloop.export.gpu import (
    ControlKernel,
    Cuda,
    Device,
    DeviceCode,
    DeviceFunction,
    Gpu,
    Processor,
    RegressorFold,
    compile_cuda,
)
from tauloop.export.gpu.devices import THREADS_PER_BLOCK
from tauloop.export.gpu.source import kernel_name, kernels_text
from tauloop.geometry.clearance import rod_clearance
from tauloop.kinematics import random_states
from tauloop.kinematics.workspaces.code import PoseKernel
from tauloop.kinematics.workspaces.map import FOLLOWING_STEPS
from tauloop.kinematics.workspaces.pose_axes import pose_axes
from tauloop.model import Motion
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation import RungeKutta4, Sampling, Simulator, prepared_loop
from tauloop.simulation.controllers.laws import RUNGE_KUTTA_4, ComputedTorque
from tauloop.simulation.stepping.starts import steps_text

PROGRAMS = {
    "inverse_dynamics": ("force",),
    "forward_dynamics": ("acceleration",),
    "kinematics_0": ("q",),
    "regressor_actuators": ("regressor",),
}
#: An H200 by its data sheet and its clock under load: bytes/s, and instructions of the unit for
#: doubles per s (132 multiprocessors, 64 each cycle, 1.98 GHz).
DATA_SHEET = (4.8e12, 132 * 64 * 1.98e9)
RANDOM_STATES = 2048
#: Instructions per s for floats, and for all instructions.
FLOATS = ALL = 132 * 128 * 1.98e9
KERNEL_MARKS, STEP_MARKS = (page.marks(f"bench_gpu.py{what}") for what in ("", ", steps"))
#: Engines compared with Tauloop's kernels: what each needs to be measured, and the machines that it
#: supports.
OTHER_ENGINES = {
    "mujoco_warp": (
        ("mujoco_warp", "mujoco", "warp"),
        (),
        "loops as equality constraints: pip install mujoco-warp",
    ),
    "grid-rbd": (
        ("grid_rbd", "torch"),
        ("nvcc",),
        "trees alone: pip install grid-rbd torch, and the CUDA toolkit",
    ),
}
#: Machines whose workspace maps and whose paths of modes are computed; numbers of poses and paths;
#: machines without loops for GRiD.
MAPPED, FOLLOWED = ("delta", "hexapod"), ("rcid", "hexapod")
POSES, PATHS = 2**21, 2**16
#: Poses that are also judged on the processor.
JUDGED = 2**14
TREES = ("pendulum_arm",)
RATE_KERNEL = """
#define restrict __restrict__
extern "C" __global__ void rate(size_t rounds, double *x)
{
    double a = x[0] + threadIdx.x, b = a + 1.0, c = a + 2.0, d = a + 3.0;
    for (size_t i = 0; i < rounds; ++i) {
        a = fma(a, 0.999, 1e-3), b = fma(b, 0.999, 1e-3), c = fma(c, 0.999, 1e-3), d = fma(d, 0.999, 1e-3);
    }
    x[blockIdx.x * (size_t)blockDim.x + threadIdx.x] = a + b + c + d;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """A kernel: figures of the compiler, limits in samples per second, and measured results."""

    machine: str
    entry: str
    program: str
    registers: int | None
    spilled: int | None
    occupancy: float | None
    double_instructions: int | None
    bytes: int
    memory_limit: float
    arithmetic_limit: float | None
    rate: float | None = None
    in_c: float | None = None
    deviation: float | None = None
    same_bits: bool | None = None

    @property
    def share(self) -> float | None:
        """Return the rate as a share of the lower limit; None where only one limit is known."""
        if self.arithmetic_limit is None:
            return None
        limits = [
            limit for limit in (self.memory_limit, self.arithmetic_limit) if limit is not None
        ]
        return None if self.rate is None else self.rate / min(limits)


def wait(device: Device) -> None:
    if isinstance(device, Gpu):
        device.arrays.cuda.Device(device.number).synchronize()


def seconds(device: Device, work: Callable[[], Any], budget: float) -> float:
    """Return the least time of some work, after one run that is not timed."""
    work()
    wait(device)
    best, end = float("inf"), time.perf_counter() + budget
    while True:
        begin = time.perf_counter()
        work()
        wait(device)
        best = min(best, time.perf_counter() - begin)
        if time.perf_counter() >= end:
            return best


def measured_limits(device: Device, budget: float) -> tuple[float, float]:
    """Return bytes and double instructions per second, measured; those of the data sheet without a GPU."""
    if not isinstance(device, Gpu):
        return DATA_SHEET
    xp = device.arrays
    here, there = (xp.zeros(2**28) for _ in range(2))
    bandwidth = 2 * here.nbytes / seconds(device, lambda: xp.copyto(there, here), budget)
    blocks, rounds = 132 * 16, 20_000
    launch = device.kernel(RATE_KERNEL, "rate", "n*", None)
    took = seconds(device, lambda: launch(blocks, 256, 0, (rounds, here)), budget)
    return bandwidth, blocks * 256 * rounds * 4 / took


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step of a kernel over initial states by counts: rates, controller, the passage between steps, integrator."""

    machine: str
    what: str
    precision: Precision
    registers: int
    spilled: int
    code: Code

    @property
    def limits(self) -> tuple[float, float, float]:
        """Return steps per second by arithmetic, by all instructions, and by memory if nothing were cached."""
        single = self.precision is Precision.SINGLE
        arithmetic = FLOATS / self.code.floats if single else DATA_SHEET[1] / self.code.doubles
        return arithmetic, ALL / self.code.instructions, DATA_SHEET[0] / self.code.own_bytes


def step_row(model: Model, what: str, precision: Precision) -> StepRow | None:
    """Return the step of initial states under computed torque, or free; None without compiler or disassembler."""
    cuda = Cuda(device=Processor(), precision=precision)
    if what == "computed torque":
        text, name = (
            ControlKernel(model, model, ComputedTorque(bandwidth=80.0), cuda).text,
            "tl_control",
        )
    else:
        simulator = Simulator(model, integrator=RungeKutta4(step=1e-3))
        text, name = steps_text(simulator.stepper, precision), "tl_many"
    with suppress(EngineError):
        code = compile_cuda(text)
        kernel, functions = code.kernel(name), functions_of(code.path)
        if functions:
            # after the passage to the next step the rates are evaluated again
            again = what == "free" and "system_back" in functions
            return StepRow(
                machine=model.mechanism.name,
                what=what,
                precision=precision,
                registers=kernel.registers,
                spilled=kernel.spill_stores,
                code=step(functions, name, len(RUNGE_KUTTA_4.c) - 1 + again),
            )
    return None


def inputs_of(model: Model, entry: str, n: int) -> dict[str, np.ndarray]:
    """Return random assembled motions, repeated up to n samples, with forces."""
    states = random_states(model, min(n, RANDOM_STATES), np.random.default_rng(3))
    A = model.assembly.loops.transmission
    if entry == "platform":
        moved = (states.position, states.velocity, states.acceleration)
    else:
        moved = (model.actuator_position(states.q), states.v @ A.T, states.a @ A.T)
    force = np.random.default_rng(4).normal(size=(len(states.q), len(A)))
    inputs = dict(zip(("position", "velocity", "acceleration"), moved, strict=True)) | {
        "force": force,
        "q": states.q,
    }
    times = -(-n // len(force))
    return {name: np.tile(array, (times, 1))[:n] for name, array in inputs.items()}


def row(
    model: Model,
    entry: str,
    program: str,
    device: Device,
    samples: int,
    budget: float,
    limits: tuple[float, float],
) -> KernelRow:
    """Return the row of one kernel, measured where there is a device."""
    motion: Motion = getattr(model, entry)
    function = motion.source_function(program, PROGRAMS[program])
    on_device = (
        None if device is None else DeviceFunction(function, device, nominal=motion.runner.nominal)
    )
    text = kernels_text([function], f"{function.name}: made by Tauloop, do not edit")
    read = [
        port
        for port in function.inputs
        if port.name not in motion.runner.nominal or port.name == "position"
    ]
    size = 8 * sum(port.size for port in (*read, *function.arguments[len(function.inputs) :]))
    registers, spilled, occupancy, counted = figures_of(text, kernel_name(function), device)
    common = {
        "machine": model.mechanism.name,
        "entry": entry,
        "program": program,
        "registers": registers,
        "spilled": spilled,
        "occupancy": occupancy,
        "double_instructions": counted,
        "bytes": size,
        "memory_limit": limits[0] / size,
        "arithmetic_limit": None if counted is None else limits[1] / counted,
    }
    if on_device is None or device is None:
        return KernelRow(**common)
    few = inputs_of(model, entry, min(samples, 16384))
    names = [port.name for port in read]
    here = motion.compiled(program, PROGRAMS[program])
    here_inputs = {name: few[name] for name in names}
    for port in function.inputs:
        if port.name not in here_inputs:
            nominal = motion.runner.nominal[port.name]
            here_inputs[port.name] = np.ascontiguousarray(
                np.broadcast_to(nominal, (len(few["q"]), port.size))
            )
    expected = here.batch(here_inputs, len(few["q"]))
    in_c = len(few["q"]) / seconds(
        Processor(), lambda: here.batch(here_inputs, len(few["q"])), budget
    )
    ready = {name: device.columns(name, few[name], np.float64) for name in names}
    outputs = on_device.batch(ready)
    name = PROGRAMS[program][0]
    right = expected[name]
    deviation = float(np.abs(device.numbers(outputs[name]) - right).max() / np.abs(right).max())
    again = on_device.batch(ready)
    same = all(bool((outputs[port] == again[port]).all()) for port in outputs)
    del outputs, again
    xp, times = device.arrays, -(-samples // len(few["q"]))
    many = {
        key: xp.asfortranarray(xp.tile(array, (times, 1))[:samples]) for key, array in ready.items()
    }
    rate = samples / seconds(device, lambda: on_device.batch(many), budget)
    return KernelRow(**common, rate=rate, in_c=in_c, deviation=deviation, same_bits=same)


def folded(model: Model, device: Device, samples: int, budget: float) -> dict[str, Any]:
    """Return the samples per second of folded regressors."""
    inputs = inputs_of(model, "platform", samples)
    fold = RegressorFold(model, model.platform, Cuda(device=device))
    names = ("position", "velocity", "acceleration", "force")
    ready = [device.columns(name, inputs[name], np.float64) for name in names]
    few = [array[:4096] for array in ready]
    here = RegressorFold(model, model.platform, Cuda(device=Processor()))(
        *map(device.numbers, few)
    ).triangles
    there, again = (fold(*few).triangles for _ in range(2))
    took = seconds(device, lambda: fold(*ready), budget)
    work = 2 * fold.columns**2 * len(fold.outputs)
    figures = {"columns": fold.columns, "rate": samples / took, "operations": samples * work / took}
    figures |= {
        "off": float(np.abs(there - here).max() / np.abs(here).max()),
        "bits": bool((there == again).all()),
    }
    figures["kernel"] = figures_of(fold.text, "tl_rows", device)[:3]
    return {"machine": model.mechanism.name} | figures


def controlled(model: Model, device: Device, starts: int, budget: float) -> dict[str, Any]:
    """Return the Runge-Kutta steps per second of initial states under computed torque at 1 kHz."""
    here = model.platform.ports.at(model.assembly.q)
    shift = np.where(np.array(model.platform.ports.position.units) == "m", 0.01, 0.0)
    path = stroke(model, Line(here - shift, here + shift), model.platform.ports.position.columns)
    law = ComputedTorque(bandwidth=80.0)
    loop, _ = prepared_loop(plan(path, POLYNOMIAL_345, Seconds(0.1)), law, Sampling(), substeps=1)
    kernel = ControlKernel(model, model, law, Cuda(device=device))
    xp = device.arrays
    rows = [
        xp.asfortranarray(xp.tile(xp.asarray(one), (starts, 1)))
        for one in (loop.position, loop.velocity, loop.q)
    ]
    rows[1] = rows[1] + xp.linspace(0.0, 1e-3, starts)[:, None]
    result, again = (kernel(loop, *rows, every=10) for _ in range(2))
    few = [device.numbers(array[:4]) for array in rows]
    here = ControlKernel(model, model, law, Cuda(device=Processor()))(loop, *few, every=10).position
    there = device.numbers(result.position[:4])
    took = seconds(device, lambda: kernel(loop, *rows, every=10), budget)
    steps = float(result.steps.sum())
    whole = float(result.is_whole.mean())
    off = float(np.nanmax(np.abs(there - here)) / np.nanmax(np.abs(here)))
    bits = bool((result.position == again.position).all()) if whole == 1.0 else None
    figures = {"starts": starts, "whole": whole, "steps": steps / took, "off": off, "bits": bits}
    return {
        "machine": model.mechanism.name,
        "kernel": figures_of(kernel.text, "tl_control", device)[:3],
    } | figures


def texts_of(models: list[Model], mapped: list[str], followed: list[str]) -> list[str]:
    """Return the texts of all measured kernels, the longest first."""
    processor = Cuda(device=Processor())
    law, texts = ComputedTorque(bandwidth=80.0), []
    for model in models:
        texts += [
            ControlKernel(model, model, law, processor).text,
            RegressorFold(model, model.platform, processor).text,
        ]
        for motion in (model.platform, model.actuators):
            for program, outputs in PROGRAMS.items():
                function = motion.source_function(program, outputs)
                texts.append(
                    kernels_text([function], f"{function.name}: made by Tauloop, do not edit")
                )
    for what, machines in (("poses", mapped), ("paths", followed)):
        texts += [rows_of(Model(load(name)), what).text for name in machines]
    return sorted(texts, key=len, reverse=True)


def compiled_text(device: Gpu | None, text: str) -> None:
    """Compile one of them into the cache."""
    with suppress(EngineError):
        compile_cuda(text) if device is None else device.code(text, None)


def arrays_in_and_out(device: Device) -> dict[str, str]:
    """Check that arrays of JAX and PyTorch on the device give NumPy's results and are returned without a copy."""
    model = Model(load("delta"))
    inverse = Cuda(device=device).function(model.platform, "inverse_dynamics", ("force",))
    inputs = inputs_of(model, "platform", 1000)
    names = ("position", "velocity", "acceleration")
    expected, result = device.numbers(inverse(*(inputs[name] for name in names))), {}
    for module in ("jax", "torch"):
        if find_spec(module) is None:
            continue
        try:
            if module == "jax":
                import jax

                jax.config.update("jax_enable_x64", True)
                force = inverse(*(jax.numpy.asarray(inputs[name]) for name in names))
                back = jax.dlpack.from_dlpack(device.arrays.ascontiguousarray(force))
            else:
                import torch

                where = "cuda" if isinstance(device, Gpu) else "cpu"
                force = inverse(*(torch.as_tensor(inputs[name], device=where) for name in names))
                back = torch.from_dlpack(force)
            same = np.array_equal(device.numbers(force), expected)
            given = np.asarray(back.cpu() if module == "torch" else back)
            result[module] = "equal" if same and np.array_equal(given, expected) else "DIFFERENT"
        except Exception as error:  # errors of another library
            result[module] = f"failed: {error!r:.200}"
    return result


class Recorder(Evaluator):
    """Evaluates with machine code of this computer, and keeps the largest call of a kernel over rows."""

    def __init__(self) -> None:
        self.text, self.name, self.letters, self.calls = "", "", "", list[tuple[Any, ...]]()

    def wants_code(self, program: Any, samples: int) -> bool:
        return False

    def kernel(self, function: Any, samples: float = math.inf) -> None:
        return None

    def tracker(self, function: Any, samples: float = math.inf, *, in_lanes: bool) -> None:
        return None

    def rows(self, text: str, name: str, letters: str, *_: Any, **__: Any) -> Any:
        code = CompiledRows(text, name, letters, 1, None)

        def call(n: int, numbers: Any, arrays: Any, shapes: Any) -> list[np.ndarray]:
            read = [np.ascontiguousarray(array, dtype=float) for array in arrays]
            if not self.calls or n > self.calls[-1][0]:
                self.text, self.name, self.letters = text, name, letters
                self.calls.append((n, numbers, read, shapes))
            return code(n, numbers, read, shapes)

        return call


def rows_of(model: Model, what: str) -> Recorder:
    """Return the largest call of a kernel: paths of a machine's modes, or poses of its map."""
    recorder = Recorder()
    recorded = Model(model.mechanism, evaluator=recorder)
    if what == "paths":
        assembly_modes(recorded)
    else:
        axes, length = pose_axes(recorded), recorded.assembly.loops.length
        reach = np.where(np.array(axes.units) == "m", 0.4 * length, 0.4)
        poses = axes.reference + reach * np.random.default_rng(3).uniform(
            -1.0, 1.0, (JUDGED, len(reach))
        )
        PoseKernel(recorded, axes, rod_clearance(recorded), FOLLOWING_STEPS)(
            poses, None, 0.05, 0.0, ranges=True, parallel=True
        )
    return recorder


def rows_row(
    model: Model,
    what: str,
    device: Device | None,
    rows: int,
    budget: float,
    limits: tuple[float, float],
) -> KernelRow | None:
    """Return the row of a kernel over rows, repeated up to `count`; None where it is not used."""
    recorder = rows_of(model, what)
    if not recorder.calls:
        return None
    n, numbers, read, shapes = recorder.calls[-1]
    expected = CompiledRows(recorder.text, recorder.name, recorder.letters, 1, None)(
        n, numbers, read, shapes
    )
    work = CompiledRows(recorder.text, recorder.name, recorder.letters, 1, None)
    in_c = n / seconds(Processor(), lambda: work(n, numbers, read, shapes), budget)
    each = [array.ndim == 2 and array.shape[1] == n for array in read]
    size = 8 * (
        sum(len(array) for array, many in zip(read, each, strict=True) if many)
        + sum(a for a, _ in shapes)
    )
    registers, spilled, occupancy, counted = figures_of(recorder.text, recorder.name, device)
    common = {
        "machine": model.mechanism.name,
        "entry": "",
        "program": what,
        "registers": registers,
        "spilled": spilled,
        "occupancy": occupancy,
        "double_instructions": counted,
        "bytes": size,
        "memory_limit": limits[0] / size,
        # the number of rounds of its loops is not counted, so there is no limit by arithmetic
        "arithmetic_limit": None,
    }
    if device is None:
        return KernelRow(**common, in_c=in_c)
    xp, times = device.arrays, max(rows // n, 1)
    launch = device.kernel(recorder.text, recorder.name, recorder.letters, None)

    def run(times: int) -> list[Any]:
        many = [
            xp.asarray(np.tile(array, (1, times)) if is_each else array)
            for array, is_each in zip(read, each, strict=True)
        ]
        written = [xp.empty((size, n * times)) for size, _ in shapes]

        def work() -> None:
            launch(
                -(-n * times // THREADS_PER_BLOCK),
                THREADS_PER_BLOCK,
                0,
                (n * times, 0, n * times, *numbers, *many, *written),
            )

        timed.append(n * times / seconds(device, work, budget))
        return written

    timed: list[float] = []
    first = [device.numbers(array) for array in run(1)]
    again = [device.numbers(array) for array in run(1)]
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again, strict=True))
    known = np.isfinite(first[0]) & np.isfinite(expected[0])
    deviation = float(
        np.abs(first[0] - expected[0])[known].max() / np.abs(expected[0][known]).max()
    )
    run(times)
    return KernelRow(**common, rate=timed[-1], in_c=in_c, deviation=deviation, same_bits=same)


def figures_of(
    text: str, name: str, device: Device | None
) -> tuple[int | None, int | None, float | None, int | None]:
    """Return registers, spilled bytes, occupancy and double instructions of a kernel; None without NVRTC."""
    try:
        code: DeviceCode = (
            device.code(text, None) if isinstance(device, Gpu) else compile_cuda(text)
        )
    except EngineError as error:
        print(error, file=sys.stderr)
        return None, None, None, None
    kernel, functions = code.kernel(name), functions_of(code.path)
    doubles = (
        None if functions is None else sum(function.doubles for function in functions.values())
    )
    return kernel.registers, kernel.spill_stores, kernel.occupancy(THREADS_PER_BLOCK), doubles


def warp_figures(model: Model, worlds: int, budget: float) -> dict[str, Any] | None:
    """Measure `mujoco_warp` on the same machine, loops as equality constraints; None where it is not installed."""
    if find_spec("mujoco_warp") is None or find_spec("mujoco") is None:
        return None
    from peers import warp_peer

    compared = warp_peer.compared(model, min(worlds, 64))
    return {
        "machine": model.mechanism.name,
        "deviations": compared,
        "steps": warp_peer.steps(model, worlds, budget),
    }


def grid_figures(
    machine: str, kind: str, samples: int, budget: float, *, on_gpu: bool
) -> dict[str, Any] | None:
    """Measure GRiD on a tree: deviation of its reference, and rates in a number type; None if not installed."""
    if find_spec("grid_rbd") is None:
        return None
    from peers import grid_peer

    model = Model(load(machine))
    result: dict[str, Any] = {
        "machine": model.mechanism.name,
        "dtype": kind,
        "reference": grid_peer.compared(model, 50),
    }
    if on_gpu and not [line for line in missing_engines() if line.startswith("grid-rbd")]:
        result |= grid_peer.rates(model, samples, budget, kind)
    return result


def missing_engines() -> list[str]:
    """Return a line for each other engine that cannot be measured."""
    lines = []
    for name, (modules, programs, advice) in OTHER_ENGINES.items():
        gone = [each for each in modules if find_spec(each) is None]
        gone += [each for each in programs if shutil.which(each) is None]
        if gone:
            lines.append(f"{name} is not measured: {', '.join(gone)} missing ({advice})")
    return lines


def short(value: float | None, pattern: str = "{:.3g}") -> str:
    return "-" if value is None else pattern.format(value)


def table(rows: list[KernelRow]) -> Table:
    made = Table(title="kernels, samples per second")
    heads = (
        "machine",
        "entry",
        "program",
        "registers",
        "spilled B",
        "occupancy",
        "doubles",
        "bytes",
        "memory limit",
    )
    for head in (
        *heads,
        "arithmetic limit",
        "measured",
        "of the nearer",
        "C, this computer",
        "off C by",
        "bits",
    ):
        made.add_column(head, justify="right")
    for each in rows:
        bits = "-"
        if each.same_bits is not None:
            bits = "same" if each.same_bits else "DIFFERENT"
        made.add_row(
            *(
                each.machine,
                each.entry,
                each.program,
                short(each.registers, "{:d}"),
                short(each.spilled, "{:d}"),
            ),
            *(
                short(each.occupancy, "{:.0%}"),
                short(each.double_instructions, "{:d}"),
                str(each.bytes),
            ),
            *(
                short(each.memory_limit),
                short(each.arithmetic_limit),
                short(each.rate),
                short(each.share, "{:.0%}"),
            ),
            *(short(each.in_c), short(each.deviation), bits),
        )
    return made


def billions(value: float) -> str:
    digits = 2
    if value >= 1e9:
        digits = 0 if value >= 1e10 else 1
    return f"{value / 1e9:.{digits}f}e9"


def kernel_lines(rows: list[KernelRow]) -> list[str]:
    """Return the lines of the kernels' table on a page."""
    heads = (
        "kernel",
        "registers",
        "spilled [B]",
        "ports [B]",
        "samples/s by memory",
        "samples/s by arithmetic",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for each in rows:
        words = (each.machine, each.entry, each.program.replace("_", " "))
        cells = (
            ", ".join(word for word in words if word),
            short(each.registers, "{:d}"),
            short(each.spilled, "{:d}"),
            str(each.bytes),
            billions(each.memory_limit),
            "-" if each.arithmetic_limit is None else billions(each.arithmetic_limit),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def step_lines(rows: list[StepRow]) -> list[str]:
    """Return the lines of the steps' table on a page."""
    heads = (
        "a step of",
        "numbers",
        "registers",
        "steps/s by arithmetic",
        "by all instructions",
        "by memory without caches",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for each in rows:
        cells = (
            f"{each.machine}, {each.what}",
            f"{each.precision.value}s",
            f"{each.registers}",
            *(billions(limit) for limit in each.limits),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def device_here(processor: bool, registers: int | None, console: Console) -> Device | None:
    if processor:
        return Processor()
    try:
        gpu = Gpu(registers=registers)
        _ = gpu.arrays
    except EngineError as error:
        text = f"no GPU: {error}\ncomputed instead: registers by NVRTC for sm_90, limits by an H200's data sheet"
        console.print(text, markup=False)
        return None
    return gpu


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kernels on a GPU compared with their limits.")
    parser.add_argument(
        "--machines", nargs="+", default=["delta", "rcid", "hexapod", "gantry_tau_5dof"]
    )
    parser.add_argument("--samples", type=int, default=2**22)
    parser.add_argument("--starts", type=int, default=2**17)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--registers", type=int)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--mapped", nargs="*", default=list(MAPPED))
    parser.add_argument("--followed", nargs="*", default=list(FOLLOWED))
    parser.add_argument("--poses", type=int, default=POSES)
    parser.add_argument("--paths", type=int, default=PATHS)
    parser.add_argument(
        "--trees", nargs="*", default=list(TREES), help="machines and URDF without loops, for GRiD"
    )
    parser.add_argument(
        "--prepare", action="store_true", help="compile all kernels on all cores first"
    )
    parser.add_argument(
        "--arrays", action="store_true", help="pass arrays of JAX and PyTorch in and out"
    )
    parser.add_argument(
        "--no-kernels", dest="kernels", action="store_false", help="leave out Tauloop's kernels"
    )
    parser.add_argument("--engines", action="store_true", help="also measure the other engines")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the computed tables into a page"
    )
    chosen = parser.parse_args(arguments)
    console = Console(width=200)
    device = device_here(chosen.processor, chosen.registers, console)
    limits = DATA_SHEET if device is None else measured_limits(device, chosen.seconds)
    console.print(
        f"{limits[0] / 1e12:.2f} TB/s, {limits[1] / 1e12:.1f}e12 instructions for doubles a second"
    )
    for line in missing_engines():
        console.print(line, markup=False)
    models = [Model(load(name), evaluator=Compiled(at_least=1)) for name in chosen.machines]
    if chosen.prepare:
        begin, gpu = time.perf_counter(), device if isinstance(device, Gpu) else None
        texts = texts_of(models, chosen.mapped, chosen.followed)
        with SharedWork(min(os.cpu_count() or 1, len(texts))) as shared:
            list(shared.results(compiled_text, gpu, texts))
        console.print(f"{len(texts)} kernels compiled in {time.perf_counter() - begin:.0f} s")
    arrays = arrays_in_and_out(device) if chosen.arrays and device is not None else {}
    console.print("arrays in and out", arrays)
    if device is not None and chosen.processor:
        chosen.starts, chosen.poses, chosen.paths = min(chosen.starts, 100), 1, 1
    rows = [
        row(model, entry, program, device, chosen.samples, chosen.seconds, limits)
        for model in models
        for entry in ("platform", "actuators")
        for program in PROGRAMS
        if chosen.kernels
    ]
    further: dict[str, list[Any]] = {"folds": [], "controls": [], "mujoco_warp": [], "grid-rbd": []}

    def keep() -> None:
        """Write all results so far, so that a run that is stopped loses none of them."""
        whole = {
            "limits": limits,
            "cores": os.cpu_count(),
            "kernels": [asdict(each) for each in rows],
            **further,
        }
        whole |= {"arrays": arrays}
        if chosen.json:
            chosen.json.write_text(json.dumps(whole, indent=1, default=str), encoding="utf-8")

    keep()
    tasks = (("poses", chosen.mapped, chosen.poses), ("paths", chosen.followed, chosen.paths))
    for what, machines, count in tasks if chosen.kernels else ():
        for name in machines:
            made = rows_row(Model(load(name)), what, device, count, chosen.seconds, limits)
            rows += [] if made is None else [made]
            keep()
    console.print(table(rows))
    stepped = []
    for model, what, precision in product(models, ("computed torque", "free"), Precision):
        each = step_row(model, what, precision) if chosen.kernels else None
        if each is not None:
            stepped.append(each)
    console.print("\n".join(step_lines(stepped)), markup=False)
    if chosen.markdown:
        computed = page.computed_stamp("NVRTC and from the data sheet of an H200")
        page.write(chosen.markdown, KERNEL_MARKS, kernel_lines(rows), computed)
        page.write(chosen.markdown, STEP_MARKS, step_lines(stepped), computed)
    parts: list[tuple[str, Callable[[], Any]]] = []
    if device is not None and chosen.kernels:
        for model in models:
            parts.append(("folds", partial(folded, model, device, chosen.samples, chosen.seconds)))
            parts.append(
                ("controls", partial(controlled, model, device, chosen.starts, chosen.seconds))
            )
    worlds = 3 if device is None or chosen.processor else 8192
    for model in models if chosen.engines else []:
        parts.append(("mujoco_warp", partial(warp_figures, model, worlds, chosen.seconds)))
    on_gpu = isinstance(device, Gpu)
    for name, kind in product(chosen.trees, ("float64", "float32")) if chosen.engines else []:
        parts.append(
            ("grid-rbd", partial(grid_figures, name, kind, 65536, chosen.seconds, on_gpu=on_gpu))
        )
    for name, work in parts:
        try:
            further[name].append(work())
        # errors of another engine or of a device: the others are still measured
        except Exception as error:
            further[name].append(f"failed: {error!r:.300}")
        console.print(name, further[name][-1])
        keep()
    return 0


if __name__ == "__main__":
    sys.exit(main())
