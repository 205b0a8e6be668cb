"""The computer of a measurement: processor, compiler and load."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

#: Vector extensions that are listed with times.
VECTORS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512vl", "asimd", "sve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """Model name, cores that this process may use, and vector extensions."""

    name: str
    cores: int
    features: tuple[str, ...]


def processor() -> Processor:
    """Return the processor, as the system describes it."""
    name, features = platform.processor() or platform.machine(), ()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            name = value.strip()
        elif key.strip() in ("flags", "Features"):
            features = tuple(vector for vector in VECTORS if vector in value.split())
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return Processor(name=name, cores=cores, features=features)


def family() -> str:
    """Return a name for all processors of one design, such as "AuthenticAMD family 26 model 2"."""
    values: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            values.setdefault(key.strip(), value.strip())
    if "vendor_id" not in values:
        return processor().name
    return f"{values['vendor_id']} family {values.get('cpu family', '?')} model {values.get('model', '?')}"


def compiler_version(compiler: str) -> str:
    """Return the first line that a compiler prints for `--version`."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return (done.stdout.splitlines() or ["unknown"])[0]


def load() -> float | None:
    """Return the mean number of busy processes over the last minute: if not zero, times are less certain."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def show(table: Table, left_out: Iterable[str], average: float | None) -> None:
    """Print a table, what was not run, the computer, and the load of its cores."""
    console = Console(highlight=False)
    console.print(table)
    for reason in left_out:
        console.print(f"not run: {reason}", markup=False)
    console.print(processor().name + (f", load {average:.1f}" if average is not None else ""))
