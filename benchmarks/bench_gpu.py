"""Kernels on a GPU: how fast each is beside both of its limits, this computer's batches in C, and other engines.

    python benchmarks/bench_gpu.py [--machines delta rcid] [--samples 4194304] [--registers 128] [--json FILE]

Without a GPU it prints what the compiler says of each kernel, and the limits that follow for an H200 by its data sheet.
With one it measures bandwidth and arithmetic first, with copies and with fused products and sums in double precision;
limits are those then. Every kernel is compared with C before it is timed, and run twice, for equal bits.

The limits are bytes a sample (inputs, outputs, health) at the bandwidth, and instructions of the unit for doubles at
its rate: counted in the machine code by nvdisasm, where that is at hand (`pip install nvidia-cuda-nvdisasm`, or the
CUDA toolkit); loops count once. `--processor` runs the same measurement with kernels as loops, which tries this file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tauloop import Model, load
from tauloop.codegen.evaluator import Compiled
from tauloop.errors import EngineError
from tauloop.gpu import ControlKernel, Cuda, Device, DeviceFunction, Gpu, Processor, RegressorFold, compile_cuda
from tauloop.gpu.devices import BLOCK
from tauloop.gpu.source import kernels_text
from tauloop.kinematics import random_states
from tauloop.model import Motion
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation import Sampling, prepared_loop
from tauloop.simulation.controllers.laws import ComputedTorque

PROGRAMS = {
    "inverse_dynamics": ("force",),
    "forward_dynamics": ("acceleration",),
    "kinematics_0": ("q",),
    "regressor_actuators": ("regressor",),
}
#: An H200 by its data sheet and its clock under load: bytes/s, and instructions of the unit for doubles per s (132
#: multiprocessors, 64 each cycle, 1.98 GHz).
DATA_SHEET = (4.8e12, 132 * 64 * 1.98e9)
STATES = 2048
#: Instructions of the unit for doubles.
DOUBLES = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(DFMA|DMUL|DADD|DSETP|DMNMX)\b", re.MULTILINE)
#: Engines beside Tauloop's kernels: what each needs to be measured, and of which machines it can tell.
BESIDE = {
    "mujoco_warp": (("mujoco_warp", "mujoco"), (), "loops as equality constraints: pip install mujoco-warp"),
    "grid-rbd": (("grid_codegen",), ("nvcc",), "trees alone, no part yet: pip install grid-rbd, and the CUDA toolkit"),
}
RATE = """
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
    """A kernel: what the compiler says of it, its limits in samples per second, and what was measured of it."""

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
        """Of the nearer limit."""
        limits = [limit for limit in (self.memory_limit, self.arithmetic_limit) if limit is not None]
        return None if self.rate is None else self.rate / min(limits)


def wait(device: Device) -> None:
    if isinstance(device, Gpu):
        device.arrays.cuda.Device(device.number).synchronize()


def seconds(device: Device, work: Callable[[], Any], budget: float) -> float:
    """Least time of some work, done before by itself."""
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
    """Bytes per second of copies, and instructions for doubles per second; those of the data sheet without a GPU."""
    if not isinstance(device, Gpu):
        return DATA_SHEET
    xp = device.arrays
    here, there = (xp.zeros(2**28) for _ in range(2))
    bandwidth = 2 * here.nbytes / seconds(device, lambda: xp.copyto(there, here), budget)
    blocks, rounds = 132 * 16, 20_000
    launch = device.kernel(RATE, "rate", "n*", None)
    took = seconds(device, lambda: launch(blocks, 256, 0, (rounds, here)), budget)
    return bandwidth, blocks * 256 * rounds * 4 / took


@cache
def disassembler() -> str | None:
    spec = find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    wheels = [str(path) for folder in folders for path in Path(folder).glob("*/bin/nvdisasm")]
    return shutil.which("nvdisasm") or next(iter(wheels), None)


def double_instructions(path: Path) -> int | None:
    """Instructions of the unit for doubles in machine code; None without a disassembler."""
    program = disassembler()
    if program is None:
        return None
    done = subprocess.run([program, "-c", str(path)], capture_output=True, text=True, check=False)
    return len(DOUBLES.findall(done.stdout)) or None


def inputs_of(model: Model, entry: str, n: int) -> dict[str, np.ndarray]:
    """Random assembled motions, again and again up to n samples, with forces."""
    states = random_states(model, min(n, STATES), np.random.default_rng(3))
    A = model.assembly.loops.transmission
    if entry == "platform":
        moved = (states.position, states.velocity, states.acceleration)
    else:
        moved = (model.actuator_position(states.q), states.v @ A.T, states.a @ A.T)
    force = np.random.default_rng(4).normal(size=(len(states.q), len(A)))
    inputs = dict(zip(("position", "velocity", "acceleration"), moved, strict=True)) | {"force": force, "q": states.q}
    times = -(-n // len(force))
    return {name: np.tile(array, (times, 1))[:n] for name, array in inputs.items()}


def row(
    model: Model, entry: str, program: str, device: Device, samples: int, budget: float, limits: tuple[float, float]
) -> KernelRow:
    """One kernel, measured where there is a device."""
    motion: Motion = getattr(model, entry)
    function = motion.source_function(program, PROGRAMS[program])
    on_device = None if device is None else DeviceFunction(function, device, nominal=motion.runner.nominal)
    text = kernels_text([function], f"{function.name}: made by Tauloop, do not edit")
    read = [port for port in function.inputs if port.name not in motion.runner.nominal or port.name == "position"]
    size = 8 * sum(port.size for port in (*read, *function.arguments[len(function.inputs) :]))
    registers = spilled = occupancy = counted = None
    try:
        code = device.code(text, None) if isinstance(device, Gpu) else compile_cuda(text)
        kernel = code.kernels[0]
        registers, spilled, occupancy = kernel.registers, kernel.spill_stores, kernel.occupancy(BLOCK)
        counted = double_instructions(code.path)
    except EngineError as error:
        print(error, file=sys.stderr)
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
            here_inputs[port.name] = np.ascontiguousarray(np.broadcast_to(nominal, (len(few["q"]), port.size)))
    expected = here.batch(here_inputs, len(few["q"]))
    in_c = len(few["q"]) / seconds(Processor(), lambda: here.batch(here_inputs, len(few["q"])), budget)
    ready = {name: device.columns(name, few[name], np.float64) for name in names}
    outputs = on_device.batch(ready)
    name = PROGRAMS[program][0]
    right = expected[name]
    deviation = float(np.abs(device.numbers(outputs[name]) - right).max() / np.abs(right).max())
    again = on_device.batch(ready)
    same = all(bool((outputs[port] == again[port]).all()) for port in outputs)
    del outputs, again
    xp, times = device.arrays, -(-samples // len(few["q"]))
    many = {key: xp.asfortranarray(xp.tile(array, (times, 1))[:samples]) for key, array in ready.items()}
    rate = samples / seconds(device, lambda: on_device.batch(many), budget)
    return KernelRow(**common, rate=rate, in_c=in_c, deviation=deviation, same_bits=same)


def folded(model: Model, device: Device, samples: int, budget: float) -> dict[str, Any]:
    """Samples per second whose regressors are folded."""
    inputs = inputs_of(model, "platform", samples)
    fold = RegressorFold(model, model.platform, Cuda(device=device))
    names = ("position", "velocity", "acceleration", "force")
    ready = [device.columns(name, inputs[name], np.float64) for name in names]
    took = seconds(device, lambda: fold(*ready), budget)
    work = 2 * fold.columns**2 * len(fold.outputs)
    figures = {"columns": fold.columns, "rate": samples / took, "operations": samples * work / took}
    return {"machine": model.mechanism.name} | figures


def controlled(model: Model, device: Device, starts: int, budget: float) -> dict[str, Any]:
    """Runge-Kutta steps per second of starts under computed torque at 1 kHz."""
    here = model.platform.ports.at(model.assembly.q)
    shift = np.where(np.array(model.platform.ports.position.units) == "m", 0.01, 0.0)
    path = stroke(model, Line(here - shift, here + shift), model.platform.ports.position.columns)
    law = ComputedTorque(bandwidth=80.0)
    loop, _ = prepared_loop(plan(path, POLYNOMIAL_345, Seconds(0.1)), law, Sampling(), substeps=1)
    kernel = ControlKernel(model, model, law, Cuda(device=device))
    xp = device.arrays
    rows = [xp.asfortranarray(xp.tile(xp.asarray(one), (starts, 1))) for one in (loop.position, loop.velocity, loop.q)]
    rows[1] = rows[1] + xp.linspace(0.0, 1e-3, starts)[:, None]
    result = kernel(loop, *rows, every=10)
    took = seconds(device, lambda: kernel(loop, *rows, every=10), budget)
    steps = float(result.steps.sum())
    whole = float(result.is_whole.mean())
    return {"machine": model.mechanism.name, "starts": starts, "whole": whole, "steps": steps / took}


def warp_steps(model: Model, worlds: int, budget: float) -> dict[str, Any] | None:
    """Steps per second of `mujoco_warp` on the same machine with its loops as equality constraints; None without it."""
    if find_spec("mujoco_warp") is None or find_spec("mujoco") is None:
        return None
    import tempfile

    import mujoco
    import mujoco_warp
    import warp

    from tauloop.formats.mjcf_writer import write_mjcf

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.xml"
        write_mjcf(model.mechanism, path)
        plain = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(plain)
    mujoco.mj_forward(plain, data)
    there, state = mujoco_warp.put_model(plain), mujoco_warp.put_data(plain, data, nworld=worlds)
    mujoco_warp.step(there, state)
    with warp.ScopedCapture() as capture:
        mujoco_warp.step(there, state)
    warp.synchronize()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < max(budget, 0.1):
        for _ in range(20):
            warp.capture_launch(capture.graph)
        warp.synchronize()
        count += 20
    return {"machine": model.mechanism.name, "steps": worlds * count / (time.perf_counter() - begin)}


def missing_beside() -> list[str]:
    """What is not there of the engines that are measured beside, a line each."""
    lines = []
    for name, (modules, programs, advice) in BESIDE.items():
        gone = [each for each in modules if find_spec(each) is None]
        gone += [each for each in programs if shutil.which(each) is None]
        if gone:
            lines.append(f"{name} is not measured: {', '.join(gone)} missing ({advice})")
    return lines


def short(value: float | None, pattern: str = "{:.3g}") -> str:
    return "-" if value is None else pattern.format(value)


def table(rows: list[KernelRow]) -> Table:
    made = Table(title="kernels, samples per second")
    heads = ("machine", "entry", "program", "registers", "spilled B", "occupancy", "doubles", "bytes", "memory limit")
    for head in (*heads, "arithmetic limit", "measured", "of the nearer", "C, this computer", "off C by", "bits"):
        made.add_column(head, justify="right")
    for each in rows:
        bits = "-" if each.same_bits is None else "same" if each.same_bits else "DIFFERENT"
        made.add_row(
            *(each.machine, each.entry, each.program, short(each.registers, "{:d}"), short(each.spilled, "{:d}")),
            *(short(each.occupancy, "{:.0%}"), short(each.double_instructions, "{:d}"), str(each.bytes)),
            *(short(each.memory_limit), short(each.arithmetic_limit), short(each.rate), short(each.share, "{:.0%}")),
            *(short(each.in_c), short(each.deviation), bits),
        )
    return made


def device_here(processor: bool, registers: int | None, console: Console) -> Device | None:
    if processor:
        return Processor()
    try:
        gpu = Gpu(registers=registers)
        _ = gpu.arrays
    except EngineError as error:
        text = f"no GPU: {error}\nwhat follows is by paper: registers by NVRTC for sm_90, an H200's data sheet"
        console.print(text, markup=False)
        return None
    return gpu


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kernels on a GPU beside their limits.")
    parser.add_argument("--machines", nargs="+", default=["delta", "rcid"])
    parser.add_argument("--samples", type=int, default=2**22)
    parser.add_argument("--starts", type=int, default=2**17)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--registers", type=int)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    console = Console(width=200)
    device = device_here(chosen.processor, chosen.registers, console)
    limits = DATA_SHEET if device is None else measured_limits(device, chosen.seconds)
    console.print(f"{limits[0] / 1e12:.2f} TB/s, {limits[1] / 1e12:.1f}e12 instructions for doubles a second")
    for line in missing_beside():
        console.print(line, markup=False)
    models = [Model(load(name), evaluator=Compiled(at_least=1)) for name in chosen.machines]
    if device is not None and chosen.processor:
        chosen.starts = min(chosen.starts, 100)
    rows = [
        row(model, entry, program, device, chosen.samples, chosen.seconds, limits)
        for model in models
        for entry in ("platform", "actuators")
        for program in PROGRAMS
    ]
    console.print(table(rows))
    further: dict[str, list[Any]] = {"folds": [], "controls": [], "mujoco_warp": []}
    if device is not None:
        for model in models:
            further["folds"].append(folded(model, device, chosen.samples, chosen.seconds))
            further["controls"].append(controlled(model, device, chosen.starts, chosen.seconds))
            further["mujoco_warp"].append(None if chosen.processor else warp_steps(model, 8192, chosen.seconds))
        for name, made in further.items():
            console.print(name, made)
    if chosen.json:
        whole = {"limits": limits, "cores": os.cpu_count(), "kernels": [asdict(each) for each in rows], **further}
        chosen.json.write_text(json.dumps(whole, indent=1, default=str), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
