"""Controllers on the stroke of the NUWAR paper: how far the plate stays behind, with and without the model.

    python examples/nuwar_control.py --out out/nuwar_control

The ellipse of Miller's section 6, scaled by 0.72 and run at the motors' limit times 0.8, under PD
control, PD with gravity compensation, PD with the feed-forward of inverse dynamics, computed torque
and predictive tracking, in joint and in platform space. Once with an ideal drive, once with a delay
of half a sample, encoder steps and speeds from differences, and once with a payload that the
controller does not know. All controllers have the same bandwidth.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tauloop import Model, load
from tauloop.common.result import write_json
from tauloop.display import LARGE, PREDICTED, RESIDUAL, TEXT, clean, save_figure
from tauloop.motion import POLYNOMIAL_345, Ellipse, MachineLimits, Trajectory, plan, stroke
from tauloop.simulation.controllers.laws import SPACES, Sampling
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.loop import CompiledLoop
from tauloop.simulation.controllers.run import ControlledMotion, follow

SCALE, SHARE, BANDWIDTH = 0.72, 0.8, 150.0
COLUMNS = ("platform.x", "platform.y", "platform.z")
COLORS = {
    "pd": "#9db9d9",
    "gravity": "#6a9a5b",
    "feed-forward": PREDICTED,
    "computed-torque": RESIDUAL,
    "predictive": "#7a5ea8",
}
IDEAL = Sampling(frequency=1000.0)
#: Half a millisecond of computing, 16 bits a turn, speeds from differences.
REAL = Sampling(
    frequency=1000.0, delay=0.0005, resolution=2 * np.pi / 65536, velocity_differences=True
)
PAYLOAD = 0.1  # kg, a third of the plate
CASES = {
    "ideal": (IDEAL, 0.0),
    "delay and encoders": (REAL, 0.0),
    "unknown payload": (IDEAL, PAYLOAD),
}


def trajectory() -> Trajectory:
    """The stroke, there and back, at a share of the motors' limits."""
    model = Model(load("nuwar"))
    path = Ellipse([0, 0, -0.9 * SCALE], [0, -0.2 * SCALE, 0], [0, 0, 0.4 * SCALE], 0.0, np.pi)
    placed = stroke(model, path, COLUMNS)
    return plan(placed, POLYNOMIAL_345, MachineLimits(force=SHARE), returns=True)


def runs(made: Trajectory) -> dict[tuple[str, str, str], ControlledMotion]:
    """Every controller, in both spaces, in every case."""
    model = made.stroke.model
    plate = model.mechanism.parameters["plate_mass"].value
    loaded = Model(model.mechanism.with_values({"plate_mass": plate + PAYLOAD}))
    table = {}
    for plant in (model, loaded):
        cases = {
            case: sampling
            for case, (sampling, payload) in CASES.items()
            if bool(payload) == (plant is loaded)
        }
        for space in SPACES:
            for name, law in CONTROLLERS.items():
                controller = law(bandwidth=BANDWIDTH, space=space)
                loop = CompiledLoop(plant, model, controller)
                for case, sampling in cases.items():
                    run = follow(made, controller, sampling, plant=plant, loop=loop, settling=0.05)
                    table[case, space, name] = run
    return table


def error_table(motions: dict[tuple[str, str, str], ControlledMotion]) -> Table:
    """Largest and root mean square distances of the plate from its reference."""
    table = Table(
        title="Tracking error of the plate, mm (peak / rms)", title_justify="left", box=None
    )
    table.add_column("controller")
    table.add_column("space")
    for case in CASES:
        table.add_column(case, justify="right")
    for name in CONTROLLERS:
        for space in SPACES:
            cells = [motions[case, space, name] for case in CASES]
            texts = [
                f"{1e3 * r.peak_error:.3f} / {1e3 * r.rms_error:.3f}" + (" *" if r.end else "")
                for r in cells
            ]
            table.add_row(name, space, *texts)
    return table


def error_figure(motions: dict[tuple[str, str, str], ControlledMotion]) -> Figure:
    """Distances against time, joint space, one panel per case."""
    figure = Figure(figsize=(11.0, 4.2))
    panels = figure.subplots(1, len(CASES), sharey=True)
    for axes, case in zip(panels, CASES, strict=True):
        clean(axes)
        for name, color in COLORS.items():
            result = motions[case, "joint", name]
            error = np.maximum(1e3 * result.tool_error, 1e-4)
            axes.semilogy(1e3 * result.time, error, color=color, linewidth=1.3, label=name)
        axes.set_title(case, color=TEXT, fontsize=LARGE)
        axes.set_xlabel("time [ms]", color=TEXT)
    panels[0].set_ylabel("distance from the reference [mm]", color=TEXT)
    panels[0].set_ylim(1e-3, 20)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="lower center", ncols=len(labels))
    figure.tight_layout(rect=(0.0, 0.07, 1.0, 1.0))
    return figure


def main(out: Path = Path("out/nuwar_control")) -> dict[tuple[str, str, str], ControlledMotion]:
    """Print the table, write JSON and PNG."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    made = trajectory()
    console.print(
        f"stroke of {1e3 * made.duration:.1f} ms there and as long back, {SHARE:.0%} of the motors' torque"
    )
    outcome = runs(made)
    console.print(error_table(outcome))
    rows = [
        {
            "case": case,
            "space": space,
            "controller": name,
            "peak_m": result.peak_error,
            "rms_m": result.rms_error,
        }
        | {"largest_force": np.abs(result.force).max(), "end": result.end, "status": result.status}
        for (case, space, name), result in outcome.items()
    ]
    write_json(
        out / "nuwar_control.json",
        {"bandwidth": BANDWIDTH, "one_way_s": made.duration, "runs": rows},
    )
    save_figure(error_figure(outcome), out / "nuwar_control.png")
    console.print(f"written: {out}/nuwar_control.json, nuwar_control.png")
    return outcome


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/nuwar_control"), help="folder for JSON and PNG"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(arguments()))
