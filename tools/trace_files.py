"""Print the files of the package used from a machine's YAML to a torque: `python tools/trace_files.py`.

Files count whose functions are called between `tauloop.load` and the forces of `inverse_dynamics`,
interpreted. All modules are imported before, so that code that runs at import does not count.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import numpy as np

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "tauloop"
#: Packages on this path; the others are not imported, and a test would see it if they were.
ON_THE_WAY = ("mechanism", "formats", "equations", "assembly", "programs", "codegen", "model")


def files_entered(machine: str = "delta") -> Counter[str]:
    """Return the files of the package, with the number of calls of their functions."""
    for folder in ON_THE_WAY:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            importlib.import_module(".".join(part for part in parts if part != "__init__"))
    from tauloop import Model, load
    from tauloop.compiler.c.calling.evaluator import Interpreted

    entered: Counter[str] = Counter()
    root = f"{PACKAGE}/"

    def noted(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = bool(
            code.co_flags & inspect.CO_OPTIMIZED
        )  # not a module or the body of a class
        if event == "call" and is_function and code.co_filename.startswith(root):
            entered[code.co_filename.removeprefix(root)] += 1

    sys.setprofile(noted)
    try:
        model = Model(load(machine), evaluator=Interpreted())
        still = np.zeros(model.platform.ports.velocity.size)
        model.platform.inverse_dynamics(model.platform.ports.at(model.assembly.q), still, still)
    finally:
        sys.setprofile(None)
    return entered


if __name__ == "__main__":
    entered = files_entered(*sys.argv[1:2])
    for file, calls in sorted(entered.items()):
        sys.stdout.write(f"{calls:8d}  {file}\n")
    sys.stdout.write(f"{len(entered):8d}  files\n")
