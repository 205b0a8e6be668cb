"""Time of one step of the tracker of payload and friction in C.

    python benchmarks/bench_tracker.py [--markdown benchmarks/times.md]

Each machine is moved through random motions. Base parameters are those of its file, as if they had
been identified to 2 %. The step is timed by the monotonic clock, once per sample; the longest steps
contain an update of the fit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from peers.computer import compiler_version, load as busy, processor
from rows import page

import tauloop as tl
from tauloop.export.microcontroller import export_tracker
from tauloop.identification import (
    BaseEstimates,
    OrdinaryLeastSquares,
    RegressionData,
    fit_regression,
)
from tauloop.identification.online import CausalFilters, TrackOptions

TRACKER_MARKS = page.marks("bench_tracker.py")
TRACKED_MACHINES = ("five_bar", "delta", "linear_delta", "gantry_tau_3dof", "hexapod")
TRACKED_SAMPLES, PERIOD = 20_000, 1e-3
MAIN = r"""
#include "machine_tracker.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static int ordered(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(void)
{
    static machine_tracker tracker;
    static double times[%(samples)d];
    double position[MACHINE_TRACKER_MOTORS], force[MACHINE_TRACKER_FORCES], sum = 0.0;
    int i, k, refused = 0;
    machine_tracker_begin(&tracker);
    for (k = 0; k < %(samples)d; ++k) {
        struct timespec before, after;
        for (i = 0; i < MACHINE_TRACKER_MOTORS; ++i) if (scanf("%%lf", position + i) != 1) return 1;
        for (i = 0; i < MACHINE_TRACKER_FORCES; ++i) if (scanf("%%lf", force + i) != 1) return 1;
        clock_gettime(CLOCK_MONOTONIC, &before);
        refused += machine_tracker_step(&tracker, position, force) < 0;
        clock_gettime(CLOCK_MONOTONIC, &after);
        times[k] = 1e6 * (double)(after.tv_sec - before.tv_sec) + 1e-3 * (double)(after.tv_nsec - before.tv_nsec);
        sum += times[k];
    }
    qsort(times, %(samples)d, sizeof(double), ordered);
    printf("%%g %%g %%d %%zu\n", sum / %(samples)d, times[%(samples)d - %(samples)d / 1000], refused, sizeof tracker);
    return 0;
}
"""


def swing(model: tl.Model, time: np.ndarray) -> np.ndarray:
    """Return positions (N, n) of the actuators on a small motion of the platform around the reference."""
    rng = np.random.default_rng(0)
    reference = model.platform.ports.at(model.assembly.q)
    size = 0.05 * model.assembly.loops.length
    rates = 2 * np.pi * np.array([0.4, 1.1, 2.3])
    n = model.platform.ports.velocity.size
    shape = rng.standard_normal((3, n)) * size / 3.0
    offsets = np.sin(time[:, None] * rates) @ shape
    start = np.asarray(model.actuator_position(model.assembly.q))
    jacobian = np.asarray(model.platform.actuator_jacobian(reference))
    return start + offsets @ jacobian.T


def as_identified(model: tl.Model, position: np.ndarray) -> tuple[BaseEstimates, np.ndarray]:
    """Return base parameters with a covariance of 2 %, and the forces (N, n) of the file's values."""
    velocity = np.gradient(position, PERIOD, axis=0)
    acceleration = np.gradient(velocity, PERIOD, axis=0)
    q = model.actuators.track(position).q
    regressor = model.actuators.regressor(position, velocity, acceleration, start=q)
    values = np.array(
        [model.mechanism.value(parameter.expression) for parameter in model.parameters]
    )
    forces = regressor @ values
    names, units = model.output_ports("actuators")
    every = slice(0, len(position), 20)
    noise = (
        1e-3 * np.abs(forces).max() * np.random.default_rng(1).standard_normal(forces[every].shape)
    )
    data = RegressionData(
        regressor=regressor[every],
        forces=forces[every] + noise,
        parameters=tuple(p.name for p in model.parameters),
        parameter_units=tuple(p.unit for p in model.parameters),
        outputs=names,
        output_units=units,
    )
    return BaseEstimates.of(fit_regression(data, None, OrdinaryLeastSquares())), forces


def measured(name: str) -> tuple[int, int, float, float, int]:
    """Return parameters, tracked ones, the mean and the 99.9 % time of a step, microseconds, and the bytes it keeps."""
    model = tl.Model(tl.load(name))
    position = swing(model, PERIOD * np.arange(TRACKED_SAMPLES))
    saved, forces = as_identified(model, position)
    options = TrackOptions(max_payload=1.0)
    filters = CausalFilters(
        period=PERIOD, motion=250.0, rows=60.0, interval=20, standstill=(1e-4,) * position.shape[1]
    )
    export = export_tracker(model, saved, options, filters=filters, name="machine")
    with tempfile.TemporaryDirectory() as folder:
        for file, text in {**export.files, "main.c": MAIN % {"samples": TRACKED_SAMPLES}}.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        sources = ["main.c", "machine_tracker.c", "machine.c"]
        flags = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2"]
        subprocess.run(["cc", *flags, "-o", "main", *sources, "-lm"], cwd=folder, check=True)
        text = "\n".join(" ".join(map(repr, row)) for row in np.hstack([position, forces]).tolist())
        done = subprocess.run(
            [Path(folder) / "main"], input=text, capture_output=True, text=True, check=True
        )
    mean, slow, refused, kept = done.stdout.split()
    if int(refused):
        raise SystemExit(f"{name}: {refused} samples were rejected")
    fitted = export.manifest["tracker"]["parameters"]
    return (
        len(fitted),
        sum(item["is_tracked"] for item in fitted),
        float(mean),
        float(slow),
        int(kept),
    )


def table(machines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table of some machines."""
    yield "| machine | parameters (tracked) | step, mean [us] | step, 99.9 % [us] | memory [bytes] |"
    yield "|---|---|---|---|---|"
    for name in machines:
        parameters, tracked, mean, slow, kept = measured(name)
        yield f"| {name} | {parameters} ({tracked}) | {mean:.2f} | {slow:.1f} | {kept} |"


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs="+", default=TRACKED_MACHINES, help="by name")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    options = parser.parse_args(arguments)
    note = f"{processor().name}; {compiler_version('cc')}; load of the cores {busy():.1f}."
    lines = list(table(options.machines))
    page.write_or_print(options.markdown, TRACKER_MARKS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
