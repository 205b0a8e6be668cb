"""Three strokes as fast as three machines can run them: the adept cycle, an ellipse and a traverse.

    python examples/fast_strokes.py --out out/fast_strokes

Each is planned along its path under the machine file's limits, a tenth of the forces in reserve,
and tried out in the simulator. The table says by how much it is shorter than the fastest cycloidal
and 3-4-5 laws under the same limits. The folder gets a figure and a C array of each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

import tauloop as tl
from tauloop.display import save_figure
from tauloop.simulation import FastestMotion

#: What they are called, the machine, and the path.
STROKES = {
    "adept": (
        "delta, 25-305-25 mm adept cycle, blends of 12 mm",
        "delta",
        tl.StrokeOptions(
            shape="polyline",
            blend=0.012,
            start={"x": -0.1525, "y": 0.0, "z": -0.525},
            via=({"x": -0.1525, "z": -0.5}, {"x": 0.1525, "z": -0.5}),
            end={"x": 0.1525, "z": -0.525},
        ),
    ),
    "ellipse": (
        "NUWAR, the paper's stroke at 0.72",
        "nuwar",
        tl.StrokeOptions(
            shape="ellipse",
            start={"x": 0.0, "y": -0.144, "z": -0.648},
            via=({"y": 0.0, "z": -0.36},),
            end={"y": 0.144, "z": -0.648},
        ),
    ),
    "traverse": (
        "Gantry-Tau (3 freedoms), 1.2 m along, 0.2 m across",
        "gantry_tau_3dof",
        tl.StrokeOptions(start={"x": -0.6, "y": -0.1}, end={"x": 0.6, "y": 0.1}),
    ),
}


def main(folder: Path) -> dict[str, FastestMotion]:
    """Plan all strokes, write their files, and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    table = Table("stroke", "time [ms]", "over cycloidal", "over 3-4-5", "largest force tried out")
    motions = {}
    for name, (title, machine, stroke) in STROKES.items():
        motion = motions[name] = tl.plan_path(tl.load(machine), tl.PathOptions(stroke=stroke))
        save_figure(motion.plot()[0].figure, folder / f"{name}.png")
        (folder / f"{name}.h").write_text(motion.c_array(4000.0), encoding="utf-8")
        gains = (f"{motion.gains[law]:.1%}" for law in ("cycloidal", "3-4-5"))
        table.add_row(
            title,
            f"{1e3 * motion.duration:.4g}",
            *gains,
            f"{max(run.peak_share for run in motion.tried):.1%}",
        )
    Console().print(table)
    return motions


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/fast_strokes"), help="folder of the files"
    )
    main(parser.parse_args().out)
