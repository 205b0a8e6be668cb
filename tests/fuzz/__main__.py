"""``python -m fuzz``: damaged files by the hundred thousand, and random machines by the thousand.

    PYTHONPATH=tests python -m fuzz --files 200000 --machines 5000 --processes 2 --seed 1

Every fault is kept under ``tests/fuzz/found`` (a file) or printed with its seed (a machine); the exit code is 1 then.
Kept files are replayed by ``make test`` from then on.
"""

from __future__ import annotations

import argparse
import json

from fuzz.campaign import FILES_AT_ONCE, MACHINES_AT_ONCE, build_piece, read_piece, search
from fuzz.targets import TARGETS


def main() -> int:
    """Run what is asked for and print one JSON of what came out."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=0, help="damaged files to read")
    parser.add_argument("--machines", type=int, default=0, help="random machines to build and evaluate")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="name the readers, one a line")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TARGETS))
        return 0
    faults = {}
    if options.files:
        faults["files"] = search("files", read_piece, options.files, options.seed, options.processes, FILES_AT_ONCE)
    if options.machines:
        faults["machines"] = search(
            "machines", build_piece, options.machines, options.seed, options.processes, MACHINES_AT_ONCE
        )
    print(json.dumps(faults, indent=2))
    return 1 if any(part["faults"] for part in faults.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
