"""Firmware for an emulated Cortex-M: compiled by gcc for ARM, run by QEMU, its text and its counts read back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tauloop.compiler.c.calling.target import COMMON_FLAGS, TARGETS

HERE = Path(__file__).parent / "cortex"
COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
#: Boards of QEMU by target.
BOARDS = {"cortex-m4f": "mps2-an386", "cortex-m7": "mps2-an500"}
#: Instructions of a tick: an instruction takes 1 ns with -icount shift=0, and the boards' clocks
#: tick at 25 MHz.
INSTRUCTIONS_OF_A_TICK = 40
STRICT = (
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wdouble-promotion",
    "-Wfloat-conversion",
    "-pedantic",
    "-Werror",
)


def require_emulator() -> None:
    """Skip where the compiler or the emulator is missing, and say which."""
    missing = [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]
    if missing:
        packages = "gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm"
        pytest.skip(f"needs {' and '.join(missing)}, which is not here (Debian's {packages})")


def firmware(folder: Path, target: str, sources: Sequence[str], *flags: str) -> Path:
    """Sources in a folder as a firmware without the library's start."""
    image = folder / f"{target}.elf"
    command = [
        COMPILER,
        *COMMON_FLAGS,
        *TARGETS[target].flags,
        *STRICT,
        *flags,
        *sources,
        str(HERE / "startup.c"),
    ]
    command += [
        "-nostartfiles",
        f"-T{HERE / 'mps2.ld'}",
        "--specs=nosys.specs",
        "-o",
        str(image),
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return image


def emulated(image: Path, target: str) -> str:
    """What a firmware prints; it ends with status zero."""
    command = [
        EMULATOR,
        "-M",
        BOARDS[target],
        "-display",
        "none",
        "-serial",
        "none",
        "-monitor",
        "none",
    ]
    command += [
        "-icount",
        "shift=0",
        "-semihosting-config",
        "enable=on,target=native",
        "-kernel",
        str(image),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
