"""Time to plan a free motion, and to plan it again after its target has moved by 20 mm: `make bench`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import tauloop as tl
from tauloop.common.errors import PoseError
from tauloop.motion import FreeMotion, FreePlanner, PathLimits, Surroundings
from tauloop.motion.free.obstacles import box

START, END = np.array([-0.1525, 0.0, -0.525]), np.array([0.1525, 0.0, -0.525])
BOXES = box("-0.05,0,-0.53:0.04,0.1,0.05"), box("0.05,0,-0.53:0.04,0.1,0.05")
TARGET_COUNT, AWAY = 100, 0.02


def timed(plan: Callable[[], FreeMotion]) -> tuple[float, float, FreeMotion]:
    """Return the seconds on the clock and of the processor, and the motion."""
    clock, processor = time.perf_counter(), time.process_time()
    motion = plan()
    return time.perf_counter() - clock, time.process_time() - processor, motion


def main() -> None:
    """Measure one machine, with obstacles and without."""
    model = tl.Model(tl.load("delta"))
    for name, obstacles in (("free space", ()), ("two boxes", BOXES)):
        surroundings = Surroundings(obstacles=obstacles)
        planner = FreePlanner(
            model, PathLimits(force=0.9), surroundings=surroundings, compiled=True
        )
        first = timed(lambda planner=planner: planner.plan(START, END))
        rng, times, refused = np.random.default_rng(0), [], 0
        for _ in range(TARGET_COUNT):
            shift = rng.normal(size=3)
            end = END + AWAY * shift / np.linalg.norm(shift)
            planner.restart(first[2])
            try:
                times.append(timed(lambda planner=planner, end=end: planner.replan(end))[:2])
            except PoseError:
                refused += 1
        clock, processor = 1e3 * np.array(times).T
        print(
            f"{name}: planned in {first[0]:.2f} s ({first[1]:.2f} s of a core), {first[2].law.duration:.4f} s long"
        )
        print(
            f"  again, {AWAY} m away: median {np.median(clock):.0f} ms, worst {clock.max():.0f} ms of {len(times)}"
        )
        print(
            f"  of a core: median {np.median(processor):.0f} ms, largest {processor.max():.0f} ms; rejected {refused}"
        )


if __name__ == "__main__":
    main()
