"""Pieces of a long search for faults, shared out over processes.

Damaged files are read; random machines are built, and written in other formats and read again;
files of others are read.
"""

from __future__ import annotations

import hashlib
import math
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.foreign_files import TRIALS
from fuzz.machines import tried
from fuzz.mutation import mutated
from fuzz.round_trips import ROUND_TRIPS, machine_text, round_trip
from fuzz.targets import FOUND, TARGETS, FaultFound, outcome

#: A file may take this long to read, s, and a process this much memory on top of its imports, bytes
#: (issue 13).
SLOWEST, MOST_MEMORY = 5.0, 2_000_000_000
#: Trials in one piece of work.
FILES_AT_ONCE, MACHINES_AT_ONCE, ROUND_TRIPS_AT_ONCE, FOREIGN_AT_ONCE = 200, 10, 5, 20
#: Readers, and writers with their readers, whose faults are kept as files.
KEPT = {**TARGETS, **{target.name: target for target in ROUND_TRIPS.values()}}


#: Seed, first and last number of the trials in it.
Piece = tuple[int, int, int]
#: What went wrong, whose it is, and the file.
Fault = tuple[str, str, bytes]


class _TimeIsOver(Exception):
    """No further piece is wanted."""


def keep(target: str, data: bytes) -> Path:
    """Save an input that found a fault, named by its content."""
    folder = FOUND / target
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (hashlib.sha256(data).hexdigest()[:16] + KEPT[target].ending)
    path.write_bytes(data)
    return path


def damaged(seed: int, index: int) -> tuple[str, bytes]:
    """The index-th damaged file of a seed, and whose it is."""
    rng = np.random.default_rng((seed, index))
    name = tuple(TARGETS)[index % len(TARGETS)]
    corpus = TARGETS[name].corpus()
    return name, mutated(lambda n: int(rng.integers(n)), corpus[rng.integers(len(corpus))], corpus)


def read_piece(work: Piece) -> dict[str, object]:
    """Outcomes, faults and the slowest of a stretch of damaged files."""
    seed, first, last = work
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    slowest = (0.0, "")
    for index in range(first, last):
        name, data = damaged(seed, index)
        started = time.process_time()
        try:
            signal.alarm(int(4 * SLOWEST))
            counts[f"{name}: {outcome(TARGETS[name], data)}"] += 1
        except (FaultFound, MemoryError, TimeoutError) as fault:
            faults.append((f"{type(fault).__name__} {_signature(fault)}", name, data))
        finally:
            signal.alarm(0)
        seconds = time.process_time() - started
        slowest = max(slowest, (seconds, f"{name} {index}"))
        if seconds > SLOWEST:
            faults.append((f"{name}: more than {SLOWEST:g} s of processor time", name, data))
    return {"counts": counts, "faults": faults, "slowest": slowest, "memory": _peak()}


def build_piece(work: Piece) -> dict[str, object]:
    """Outcomes, faults and the slowest of a stretch of random machines."""
    seed, first, last = work
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    slowest = (0.0, "")
    for index in range(first, last):
        number = seed * 1_000_003 + index
        try:
            trial = tried(number)
        except Exception as error:
            faults.append(
                (f"{type(error).__name__}: {_signature(error)}", f"machine {number}", b"")
            )
            continue
        counts[trial.outcome] += 1
        slowest = max(slowest, (trial.seconds, f"machine {number}"))
    return {"counts": counts, "faults": faults, "slowest": slowest, "memory": _peak()}


def round_trip_piece(work: Piece) -> dict[str, object]:
    """Outcomes and faults of a stretch of random machines that are written in each format and read again."""
    seed, first, last = work
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    slowest = (0.0, "")
    for index in range(first, last):
        text = machine_text(seed * 1_000_003 + index)
        if text is None:
            counts["no machine"] += 1
            continue
        for name, target in ROUND_TRIPS.items():
            started = time.process_time()
            try:
                counts[f"{name}: {round_trip(name, text)}"] += 1
            except FaultFound as fault:
                faults.append((f"{name}: {_signature(fault)}", target.name, text))
            slowest = max(slowest, (time.process_time() - started, f"{name} {index}"))
    return {"counts": counts, "faults": faults, "slowest": slowest, "memory": _peak()}


def foreign_piece(work: Piece) -> dict[str, object]:
    """Outcomes and faults of a stretch of files with elements of the table of foreign elements."""
    seed, first, last = work
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    for index in range(first, last):
        number = seed * 1_000_003 + index
        for name, trial in TRIALS.items():
            try:
                counts[f"{name}: {trial(number)}"] += 1
            except Exception as error:
                faults.append((f"{name}: {_signature(error)}", f"{name} {number}", b""))
    return {"counts": counts, "faults": faults, "slowest": (0.0, ""), "memory": _peak()}


def _signature(error: BaseException) -> str:
    """What an error says, without the numbers and paths in which equal faults differ."""
    return re.sub(r"/\S+|0x\w+|\d+(\.\d+)?|\\x\w\w", "#", str(error))[:200]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _too_slow(*_: object) -> None:
    raise TimeoutError("did not end")


def _limit() -> None:
    """Refuse a process the memory that no file may take, and wake it where a file takes no end."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + 2 * MOST_MEMORY, in_use + 2 * MOST_MEMORY))
    signal.signal(signal.SIGALRM, _too_slow)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _pieces(seed: int, count: int, size: int) -> Iterator[Piece]:
    return ((seed, first, min(first + size, count)) for first in range(0, count, size))


def _shared_out(
    work: Callable[[Piece], dict[str, Any]],
    pieces: list[Piece],
    processes: int,
    take: Callable[..., None],
) -> list[Piece]:
    """Pieces that are left where a process died, in their order."""
    left = dict.fromkeys(pieces)
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=_limit) as pool:
        futures = {pool.submit(work, piece): piece for piece in pieces}
        try:
            for future in as_completed(futures):
                with suppress(BrokenProcessPool):
                    take(future.result(), futures[future][2] - futures[future][1])
                    del left[futures[future]]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return list(left)


def search(
    title: str,
    work: Callable[[Piece], dict[str, Any]],
    count: int,
    seed: int,
    processes: int,
    size: int,
    seconds: float = math.inf,
) -> dict[str, Any]:
    """Share `count` trials out in pieces over processes, with progress on standard error; Ctrl-C keeps it all.

    No piece is begun after some seconds.
    """
    counts: Counter[str] = Counter()
    faults: dict[str, list[Fault]] = {}
    slowest, memory, done = (0.0, ""), 0, 0
    started = time.monotonic()

    def take(part: dict[str, Any], trials: int) -> None:
        nonlocal slowest, memory, done
        counts.update(part["counts"])
        for fault in part["faults"]:
            faults.setdefault(fault[0], []).append(fault)
        slowest, memory = max(slowest, tuple(part["slowest"])), max(memory, part["memory"])
        done += trials
        left = (time.monotonic() - started) * (count - done) / done
        print(
            f"{title}: {done} of {count}, {len(faults)} kinds of fault, {left:.0f} s left",
            file=sys.stderr,
        )
        if time.monotonic() - started > seconds:
            raise _TimeIsOver

    pieces = list(_pieces(seed, count, size))
    with suppress(KeyboardInterrupt, _TimeIsOver):
        while pieces:
            pieces = _shared_out(work, pieces, processes, take)
            # a process has died: one of the next pieces has killed it, and is found out alone
            for piece in pieces[: 2 * processes]:
                if _shared_out(work, [piece], 1, take):
                    what = f"{title}: a process died"
                    take(
                        {
                            "counts": {},
                            "faults": [(what, str(piece), b"")],
                            "slowest": slowest,
                            "memory": memory,
                        },
                        size,
                    )
            pieces = pieces[2 * processes :]
    return {
        "tried": done,
        "outcomes": dict(sorted(counts.items())),
        "faults": [
            {"what": what, "times": len(same), **_shortest(same)} for what, same in faults.items()
        ],
        "slowest": {"seconds": round(slowest[0], 2), "what": slowest[1]},
        "peak_memory_MB": round(memory / 1e6),
        "seconds": round(time.monotonic() - started),
    }


def _shortest(same: list[Fault]) -> dict[str, str]:
    """The shortest input of a kind of fault, kept where it is a file."""
    _, name, data = min(same, key=lambda fault: len(fault[2]))
    return {"kept": str(keep(name, data))} if name in KEPT else {"seed": name}
