"""``python interrupted.py SIGNAL DELAYS NAME...``: send SIGINT (Ctrl-C) or another signal to running commands.

It prints the outcomes as JSON.

A command runs in a forked child of a process that has imported the slow modules, with an empty
cache, so that compilers run too. An entry has the name, the delay in seconds, the exit code, the
seconds from the signal to the end, and the command lines of processes that still exist then; the
code is null where the command had to be killed.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import kills
import numpy as np

from tauloop.cli import main

#: Commands that take longer than the longest delay, by name; {given} is a folder of inputs, {out}
#: one of outputs.
COMMANDS = {
    "workspace": "workspace spidermill --resolution 0.01 --out {out}/map.nc",
    "swing": "simulate spidermill --free --duration 30",
    "simulate": "simulate hexapod --duration 500 --route projected",
    "reproduce": "paper reproduce gantry-tau",
    "modes": "modes hexapod --out {out}/modes.png",
    "tune": "drive tune dual_motor_axis --bounds kp=100:300,ti=0.5:2 --scales energy=1 "
    "--search genetic --duration 900",
    "excite": "plan excitation hexapod --random 3000 --starts 2",
    "workers": "plan excitation delta --random 300 --starts 4 --workers 2",
    "poses": "plan poses hexapod --parameters *length* --count 60 --candidates 4000 --curve",
    "identify": "identify five_bar {given}/long.csv --out {out}/fit.png",
    "consistent": "identify five_bar {given}/long.csv --consistent",
    "calibrate": "calibrate five_bar {given}/poses.csv --parameters *length* --noise '0.01 mm' --replicates 100000",
    "control": "control follow delta --end x=0.05,z=-0.45 --duration 200",
    "verify": "verify hexapod --states 3000",
    "play": "accuracy backlash gantry_tau_3dof --out {out}/play.png",
    "check": "check spidermill",
    "reduce": "model reduce spidermill",
    "drive": "drive step single_motor_axis --duration 2000",
    "ballbar": f"accuracy ballbar {kills.RACKS}",
    "export": "export c hexapod --out {out}",
    "cost": "model cost spidermill",
    "dynamics": "dynamics spidermill",
    "path": "plan path hexapod --end x=0.05 --intervals 4000",
    "transfer": "plan transfer hexapod --end x=0.05 --intervals 60",
    "cycle": "plan cycle five_bar {given}/cycle.yaml --intervals 2000",
    "collision": "control collision delta --end x=0.05 --duration 2 --wrench fx=40 --error-samples 400",
    "fit-plant": "drive fit dual_motor_axis {given}/steps.yaml --bounds cart_viscous=10:100 "
    "--generations 400",
    "study": "study run {given}/study.yaml --out {out}/parts",
    "track": "log track five_bar {given}/long.csv {given}/five_bar.json --out {out}/track.csv",
    "forces": "log forces five_bar {given}/long.csv --out {out}/forces.csv",
}
#: Searches that, when interrupted, end as soon as others but keep the best result so far.
KEEPING = ("excite", "workers", "tune")
#: A command that still runs this long after the last interrupt is killed, s.
PATIENCE = 30.0
#: A command that ends without an error so soon after the signal had done its work before, s.
AT_END = 0.1
#: Killed processes, and children that see that their parent was killed, are gone within this time, s.
LINGERING = 5.0
#: In the environment of all processes that a command starts.
MARK = "TAULOOP_INTERRUPTED"
#: How often the log of `kills` is repeated: half a million samples.
REPEATED = 2500


def interrupt(
    ending: signal.Signals, name: str, delay: float, inputs: Path
) -> tuple[str, float, int | None, float, list[str]] | None:
    """Return the outcome of one command; None where it had ended before the signal."""
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="interrupted-") as folder:
        child = os.fork()
        if child == 0:
            os.environ |= {"XDG_CACHE_HOME": folder, MARK: mark}
            _run([word.format(out=folder, given=inputs) for word in shlex.split(COMMANDS[name])])
        time.sleep(delay)
        if os.waitpid(child, os.WNOHANG)[0]:
            return None
        start, status = time.monotonic(), 0
        with suppress(ProcessLookupError):
            os.kill(child, ending)
        while (
            not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < start + PATIENCE
        ):
            time.sleep(0.01)
        took = time.monotonic() - start
        if ended[0] and not ended[1] and took < AT_END and name not in KEEPING:
            return None  # it was at its end when the signal came
        if not ended[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return name, delay, None, took, processes_of(mark)
        status = os.waitstatus_to_exitcode(ended[1])
        until = time.monotonic() + LINGERING
        while (left := processes_of(mark)) and time.monotonic() < until:
            time.sleep(0.1)
        return name, delay, status, round(took, 2), left


def sooner(
    ending: signal.Signals, name: str, delay: float, inputs: Path
) -> tuple[str, float, int | None, float, list[str]] | None:
    """Interrupt one command after ever shorter delays until it still runs; None where it always ends before."""
    for shorter in (delay, delay / 2, delay / 4, delay / 8):
        if (result := interrupt(ending, name, shorter, inputs)) is not None:
            return result
    return None


def _run(words: list[str]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    sys.argv = ["tauloop", *words]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        code = 70
    finally:
        os._exit(code)


def _write_long_log(inputs: Path) -> None:
    """Write the log of `kills.prepare` many times in a row."""
    header, *_ = (inputs / "log.csv").read_text().splitlines()
    rows = np.tile(np.loadtxt(inputs / "log.csv", delimiter=",", skiprows=1)[:-1], (REPEATED, 1))
    rows[:, 0] = np.arange(len(rows)) * 0.005
    np.savetxt(inputs / "long.csv", rows, delimiter=",", header=header, comments="", fmt="%.8g")


def processes_of(mark: str) -> list[str]:
    """Return the command lines of processes whose initial environment has a mark."""
    rows = []
    for place in Path("/proc").glob("[1-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (place / "environ").read_bytes():
                rows.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # the process has ended, or belongs to another user
            continue
    return [line for line in rows if line]  # a zombie process has none


if __name__ == "__main__":
    ending, delays = signal.Signals[sys.argv[1]], [float(delay) for delay in sys.argv[2].split(",")]
    names = sys.argv[3:] or list(COMMANDS)
    kills.import_all()
    inputs = Path(tempfile.mkdtemp(prefix="interrupted-given-"))
    try:
        if any("{given}" in COMMANDS[name] for name in names):
            kills.prepare(inputs)
        if any("long.csv" in COMMANDS[name] for name in names):
            _write_long_log(inputs)
        sys.stdout.write(
            json.dumps([sooner(ending, name, delay, inputs) for name in names for delay in delays])
        )
    finally:
        shutil.rmtree(inputs)
