"""Start-up times: processor time of new processes, least of ten, compared with the import of NumPy and CasADi.

Run `python benchmarks/bench_start_up.py`. Every round starts each process once, so that all are
measured under the same load.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys

ROUNDS = 10
BASE = "import numpy, casadi"
COMMAND = "import sys; from tauloop.cli import main; sys.argv[1:] = {!r}; main()"
#: What is started, and the upper limit as a multiple of the base.
ROWS = {
    "import, load delta, build its Model": (
        "import tauloop as tl; tl.Model(tl.load('delta'))",
        2.2,
    ),
    **{
        f"tauloop {words}": (COMMAND.format(words.split()), wanted)
        for words, wanted in {
            "machines": 1.6,
            "check delta": 2.5,
            "show delta": 2.5,
            "dynamics delta": 3.6,
            "modes delta": 4.6,
            "workspace delta": 4.6,
        }.items()
    },
}


def processor_time(code: str) -> float:
    """Return the user and system time of a new interpreter that runs some code, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=kept)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one row for each start."""
    codes = {BASE: BASE} | {name: code for name, (code, _) in ROWS.items()}
    least = dict.fromkeys(codes, float("inf"))
    for _ in range(ROUNDS):
        for name, code in codes.items():
            least[name] = min(least[name], processor_time(code))
    print(f"{BASE}: {least[BASE]:.3f} s")
    for name, (_, wanted) in ROWS.items():
        print(
            f"{name:40s} {least[name]:6.3f} s {least[name] / least[BASE]:6.2f} times (wanted: {wanted})"
        )


if __name__ == "__main__":
    main()
