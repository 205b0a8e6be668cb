"""What stands in each paper's controller, as C: exported, checked by its own program, and timed on this computer."""

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

#: Calls of one measurement, and how many of them there are: the least counts.
CALLS, REPEATS = 20_000, 7
FLAGS = ("-std=c99", "-O2")
FORCE = tl.ExportOptions(outputs=("force",))


def _gantry_tau(machine: str = GANTRY_TAU.machine) -> tuple[Export, ...]:
    """Forces that are fed forward."""
    return (tl.export_c(tl.load(machine), options=FORCE),)


def _rcid(machine: str = RCID.machine) -> tuple[Export, ...]:
    """Inverse dynamics by generalized momentum, as in the paper, and by Newton and Euler's equations."""
    by_momentum = tl.Model(tl.load(machine), formulation="generalized-momentum")
    options = tl.ExportOptions(outputs=("force",), name=f"{by_momentum.mechanism.name}_momentum")
    return (
        tl.export_c(by_momentum, options=options),
        tl.export_c(by_momentum.mechanism, options=FORCE),
    )


def _nuwar(machine: str = NUWAR.machine) -> tuple[Export, ...]:
    """Forces without accelerations: momenta of a sample, and forces from their differences."""
    functions = tl.ExportOptions(functions=("momentum", "momentum_forces"))
    return (tl.export_c(tl.load(machine), options=functions),)


def _spidermill(machine: str = SPIDERMILL.machine) -> tuple[Export, ...]:
    """Inverse dynamics of the reduced model."""
    options = ReductionOptions(
        massless_rods=SPIDERMILL.massless, shares_parameters=True, seed=SPIDERMILL.seed
    )
    reduced = tl.reduce(tl.load(machine), options).mechanism
    return (
        tl.export_c(
            reduced,
            options=tl.ExportOptions(outputs=("force",), name=f"{tl.load(machine).name}_reduced"),
        ),
    )


def _dual_motor(line: str = DUAL_MOTOR.line) -> tuple[Export, ...]:
    """The control of both motors, with its switching."""
    return (export_control(load_drive(line)),)


#: By experiment.
CONTROLLERS: Mapping[str, Callable[..., tuple[Export, ...]]] = {
    "dual-motor": _dual_motor,
    "gantry-tau": _gantry_tau,
    "nuwar": _nuwar,
    "rcid": _rcid,
    "spidermill": _spidermill,
}


def controllers(name: str, machine: str) -> tuple[Export, ...]:
    """The functions that stand in the controller of an experiment's machine; none of one that is not among the five.

    Args:
        name: of the experiment.
        machine: the paper's machine or drive line, or a file of one that is alike.
    """
    return CONTROLLERS[name](machine) if name in CONTROLLERS else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Functions run on this computer.

    Attributes:
        compiler: by which; "" where there is none.
        agrees: whether the self-check passed; None where it could not be run.
        verdict: the last line of it, or what the compiler said.
        nanoseconds: of a call, by function.
    """

    compiler: str
    agrees: bool | None
    verdict: str
    nanoseconds: Mapping[str, float]


def functions(export: Export) -> list[dict[str, Any]]:
    """What each function of an export is, and its operations: of a sample, and of each of Newton's steps."""
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
    """Compile an export with its test program, run that, and time the calls."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return Measured(compiler="", agrees=None, verdict="no C compiler here", nanoseconds={})
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
    """The test program, and behind it each function called at the samples of its check."""
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
