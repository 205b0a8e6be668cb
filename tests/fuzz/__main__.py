"""``python -m fuzz``: damaged files by the hundred thousand, and random machines and files of others by the thousand.

    PYTHONPATH=tests:tests/support python -m fuzz --files 200000 --machines 5000 --processes 2
    --seed 1 PYTHONPATH=tests:tests/support python -m fuzz --round-trips 500 --foreign 1000
    --seconds 60

Every fault is kept under ``tests/fuzz/found`` (a file, or the shortest machine file that does not
come back) or printed with its seed (a machine that is built, a file of others); the exit code is 1
then. Kept files are replayed by ``make test`` from then on.
"""

from __future__ import annotations

import argparse
import json
import math

from fuzz.campaign import (
    FILES_AT_ONCE,
    FOREIGN_AT_ONCE,
    MACHINES_AT_ONCE,
    ROUND_TRIPS_AT_ONCE,
    build_piece,
    foreign_piece,
    read_piece,
    round_trip_piece,
    search,
)
from fuzz.targets import TARGETS

#: What is searched: its option, the work on a piece, trials in a piece, and its help.
SEARCHES = (
    ("files", read_piece, FILES_AT_ONCE, "damaged files to read"),
    ("machines", build_piece, MACHINES_AT_ONCE, "random machines to build and evaluate"),
    (
        "round-trips",
        round_trip_piece,
        ROUND_TRIPS_AT_ONCE,
        "random machines to write and read again",
    ),
    (
        "foreign",
        foreign_piece,
        FOREIGN_AT_ONCE,
        "files of others to read, with every element of the table",
    ),
)


def main() -> int:
    """Run what is asked for and print one JSON of what came out."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    for title, _, _, text in SEARCHES:
        parser.add_argument(f"--{title}", type=int, default=0, help=text)
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin nothing new after these, for each"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="name the readers, one a line")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TARGETS))
        return 0
    faults = {}
    for title, work, size, _ in SEARCHES:
        count = getattr(options, title.replace("-", "_"))
        if count:
            faults[title] = search(
                title, work, count, options.seed, options.processes, size, options.seconds
            )
    print(json.dumps(faults, indent=2))
    return 1 if any(part["faults"] for part in faults.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
