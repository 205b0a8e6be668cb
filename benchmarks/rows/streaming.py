"""Ten million samples through inverse dynamics in chunks: time and peak memory, in a separate process.

Run as `python -m rows.streaming MACHINE STREAMED_SAMPLES` it prints its numbers as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from peers.comparison import Settings

from rows.limits import limits
from rows.row import Row
from tauloop import Model, load
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.kinematics import random_states

STREAMED_MACHINES = ("delta", "rcid")
STREAMED_SAMPLES = 10_000_000
#: Samples of a chunk: its outputs stay in the core's second cache, and the checks of a call are negligible.
CHUNK = 8192
#: Number of runs of each count, of which the fastest counts.
STREAMING_RUNS = 3
#: Allowed memory in addition to input and output, bytes.
ALLOWED = 64 << 20
FOLDER = Path(__file__).resolve().parents[1]
#: Number of different states in the input.
INPUT_STATES = 64


def rows(
    settings: Settings, say: Callable[[str], None], samples: int = STREAMED_SAMPLES
) -> Iterator[Row]:
    """Yield a row for each machine."""
    for name in STREAMED_MACHINES:
        say(f"{name}: {samples:,} samples")
        found = streamed(name, samples)
        last = found["times"][-1]
        function = Model(load(name)).platform.source_function("inverse_dynamics", ("force",))
        limit, divider = limits(function, in_lanes=True)
        beyond = (
            "not measured here"
            if found["beyond"] is None
            else f"{found['beyond'] / 2**20:.1f} MB beyond both"
        )
        yield Row(
            work=f"{name}, inverse dynamics, {samples / 1e6:g} million samples in chunks, a sample",
            tauloop=last / samples,
            target="64 MB",
            limit=limit,
            divider=divider,
            note=f"input {found['input'] / 1e6:.0f} MB, output {found['output'] / 1e6:.0f} MB, {beyond}; "
            f"{last:.2f} s of the processor in all",
        )


def streamed(name: str, samples: int, counts: tuple[int, ...] = ()) -> dict[str, object]:
    """Return sizes, further bytes, and processor times (s) for the given samples, from a separate process.

    Raises:
        RuntimeError: the process failed.
    """
    command = [sys.executable, "-m", "rows.streaming", name, *map(str, (*counts, samples))]
    paths = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def main(name: str, counts: list[int]) -> None:
    """Stream each count of samples, and print time and memory."""
    model = Model(load(name))
    kernel = model.platform.compiled("inverse_dynamics", ("force",))
    states = random_states(model, INPUT_STATES, np.random.default_rng(0))
    samples = max(counts)
    arrays = {
        key: np.resize(array, (samples, array.shape[1]))
        for key, array in (
            ("position", states.position),
            ("velocity", states.velocity),
            ("acceleration", states.acceleration),
        )
    }
    force = np.zeros((samples, len(model.mechanism.actuators)))
    force[:] = 1.0  # allocates its pages, as those of the input are
    _through(kernel, arrays, force, CHUNK)
    before = _peak(resets=True)
    times = []
    for count in counts:
        # the process's own time, because runs are too long to be undisturbed by other processes
        runs = []
        for _ in range(STREAMING_RUNS):
            start = time.process_time()
            _through(kernel, arrays, force, count)
            runs.append(time.process_time() - start)
        times.append(min(runs))
    after = _peak(resets=False)
    first = kernel.batch(
        {key: array[:INPUT_STATES] for key, array in arrays.items()}, INPUT_STATES
    )["force"]
    last = (samples - INPUT_STATES) // INPUT_STATES * INPUT_STATES
    if not all(np.array_equal(force[k : k + INPUT_STATES], first) for k in (0, last)):
        raise SystemExit("streamed forces differ from those of one chunk")
    size = sum(array.nbytes for array in arrays.values())
    print(
        json.dumps(
            {
                "times": times,
                "input": size,
                "output": force.nbytes,
                "beyond": after - before if before is not None and after is not None else None,
            }
        )
    )


def _through(
    kernel: CompiledFunction, arrays: dict[str, np.ndarray], force: np.ndarray, n: int
) -> None:
    for first in range(0, n, CHUNK):
        last = min(first + CHUNK, n)
        force[first:last] = kernel.batch(
            {key: array[first:last] for key, array in arrays.items()}, last - first
        )["force"]


def _peak(*, resets: bool) -> int | None:
    """Return the peak resident memory (bytes) by Linux; when reset, it restarts from the present value."""
    try:
        if resets:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]])
