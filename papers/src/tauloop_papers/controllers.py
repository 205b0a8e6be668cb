"""C code of each paper's controller: exported, checked by its test program, and timed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tauloop as tl
from tauloop.drives import load_drive
from tauloop.export.c import Export
from tauloop.export.drive_control import export_control
from tauloop.kinematics import ReductionOptions
from tauloop_papers.dual_motor.settings import SETTINGS as DUAL_MOTOR
from tauloop_papers.gantry_tau.settings import SETTINGS as GANTRY_TAU
from tauloop_papers.nuwar.settings import SETTINGS as NUWAR
from tauloop_papers.rcid.settings import SETTINGS as RCID
from tauloop_papers.spidermill.settings import SETTINGS as SPIDERMILL

#: Number of calls of one measurement, and of measurements, of which the smallest time counts.
CALLS, REPEATS = 20_000, 7
FLAGS = ("-std=c99", "-O2")
FORCE = tl.ExportOptions(outputs=("force",))


def _gantry_tau(machine: str = GANTRY_TAU.machine) -> tuple[Export, ...]:
    """Return the feed-forward forces."""
    return (tl.export_c(tl.load(machine), options=FORCE),)


def _rcid(machine: str = RCID.machine) -> tuple[Export, ...]:
    """Return inverse dynamics by generalized momentum, as in the paper, and by Newton-Euler."""
    by_momentum = tl.Model(tl.load(machine), formulation="generalized-momentum")
    options = tl.ExportOptions(outputs=("force",), name=f"{by_momentum.mechanism.name}_momentum")
    return (
        tl.export_c(by_momentum, options=options),
        tl.export_c(by_momentum.mechanism, options=FORCE),
    )


def _nuwar(machine: str = NUWAR.machine) -> tuple[Export, ...]:
    """Return forces without accelerations: momenta, and forces from their differences."""
    functions = tl.ExportOptions(functions=("momentum", "momentum_forces"))
    return (tl.export_c(tl.load(machine), options=functions),)


def _spidermill(machine: str = SPIDERMILL.machine) -> tuple[Export, ...]:
    """Return inverse dynamics of the reduced model."""
    options = ReductionOptions(
        massless_rods=SPIDERMILL.massless, share_parameters=True, seed=SPIDERMILL.seed
    )
    reduced = tl.reduce_model(tl.load(machine), options).mechanism
    return (
        tl.export_c(
            reduced,
            options=tl.ExportOptions(outputs=("force",), name=f"{tl.load(machine).name}_reduced"),
        ),
    )


def _dual_motor(line: str = DUAL_MOTOR.line) -> tuple[Export, ...]:
    """Return the control of both motors with its switching."""
    return (export_control(load_drive(line)),)


#: Exports of controllers by experiment.
CONTROLLERS: Mapping[str, Callable[..., tuple[Export, ...]]] = {
    "dual-motor": _dual_motor,
    "gantry-tau": _gantry_tau,
    "nuwar": _nuwar,
    "rcid": _rcid,
    "spidermill": _spidermill,
}


def controllers(name: str, machine: str) -> tuple[Export, ...]:
    """Return the functions in the controller of an experiment's machine; empty if there are none.

    Args:
        name: name of the experiment.
        machine: the paper's machine or drive line, or a file with the same elements.
    """
    return CONTROLLERS[name](machine) if name in CONTROLLERS else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Results of functions run on this computer.

    Attributes:
        compiler: name of the compiler; "" without one.
        agrees: whether the self-check passed; None if it could not run.
        verdict: last line of the self-check, or the message of the compiler.
        nanoseconds: time of a call by function, ns.
    """

    compiler: str
    agrees: bool | None
    verdict: str
    nanoseconds: Mapping[str, float]


def functions(export: Export) -> list[dict[str, Any]]:
    """Return meaning and operations of each function of an export."""
    return [
        {
            "name": item["name"],
            "meaning": item["meaning"],
            "operations": item["operations"]["once"],
            "total": sum(item["operations"]["once"].values()),
            "each_newton_step": sum(item["operations"]["each_iteration"].values()),
        }
        for item in export.manifest["functions"]
    ]


def measured(export: Export) -> Measured:
    """Compile an export with its test program, run it, and time the calls."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return Measured(
            compiler="", agrees=None, verdict="no C compiler on this computer", nanoseconds={}
        )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for file, text in {**export.files, "timed.c": _timing_text(export)}.items():
            (folder / file).write_text(text, encoding="ascii")
        build = [compiler, *FLAGS, f"{export.name}.c", "timed.c", "-o", "timed", "-lm"]
        built = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
        if built.returncode:
            return Measured(
                compiler=compiler, agrees=False, verdict=built.stderr.strip()[-500:], nanoseconds={}
            )
        done = subprocess.run([str(folder / "timed")], capture_output=True, text=True, check=False)
    checked, *times = done.stdout.split("--\n")
    return Measured(
        compiler=Path(compiler).name,
        agrees=done.returncode == 0,
        verdict=checked.strip().splitlines()[-1],
        nanoseconds={
            line.split()[0]: float(line.split()[1]) for line in "".join(times).splitlines()
        },
    )


def _timing_text(export: Export) -> str:
    """Return the test program, followed by timed calls of each function."""
    lines = [
        "#define main self_check",
        f'#include "{export.name}_check.c"',
        "#undef main",
        "#include <time.h>",
    ]
    lines += ["int main(void)", "{", "    int failed = self_check();", '    printf("--\\n");']
    for item in export.manifest["functions"]:
        name, inputs, outputs = item["name"], item["inputs"], item["outputs"]
        lines += [
            "    {",
            *(f"        static double {port['name']}[{port['size']}];" for port in outputs),
        ]
        places = [f"{name}_in_{port['name']} + s * {port['size']}" for port in inputs]
        call = f"{name}({', '.join([*places, *(port['name'] for port in outputs), 'health'])});"
        lines += [
            "        double health[4], least = 1e300;",
            f"        for (int k = 0; k < {REPEATS}; ++k) {{",
            "            const clock_t begun = clock();",
            f"            for (int i = 0; i < {CALLS}; ++i) {{ const int s = i % SAMPLES; {call} }}",
            f"            const double spent = 1e9 * (double)(clock() - begun) / CLOCKS_PER_SEC / {CALLS};",
            "            if (spent < least) least = spent;",
            "        }",
            f'        printf("{name} %.1f\\n", least);',
            "    }",
        ]
    return "\n".join([*lines, "    return failed;", "}", ""])
