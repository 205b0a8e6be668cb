"""``python -m fuzz.guided TARGET --seconds 60``: damaged files with coverage of the reader as the guide (atheris)."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["tauloop"]):
    from fuzz.campaign import keep
    from fuzz.mutation import mutated
    from fuzz.targets import TARGETS, FaultFound, outcome


def changed(data: bytes, most: int, seed: int) -> bytes:
    """A change of the kinds in `mutation`, or one of libFuzzer's own."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.3:
        return atheris.Mutate(data, most)
    return mutated(lambda n: int(rng.integers(n)), data)[:most]


def main() -> None:
    """Search for faults until the time is over; a fault is kept and ends the search with exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.guided", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    target = TARGETS[options.target]

    def judge(data: bytes) -> None:
        try:
            outcome(target, data)
        except FaultFound as fault:
            print(f"{keep(target.name, data)}: {fault}", file=sys.stderr, flush=True)
            os._exit(1)

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for i, good in enumerate(target.corpus()):
            (Path(folder) / str(i)).write_bytes(good)
        flags = (
            f"-max_total_time={options.seconds}",
            f"-seed={options.seed}",
            "-max_len=400000",
            "-timeout=20",
        )
        atheris.Setup(
            [sys.argv[0], *flags, "-print_final_stats=1", "-verbosity=0", folder],
            judge,
            custom_mutator=changed,
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
