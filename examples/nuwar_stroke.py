"""The pick-and-place stroke of the NUWAR paper: NUWAR against Delta, torque histories, peaks beside the printed ones.

    python examples/nuwar_stroke.py --out out/nuwar_stroke

Miller, "Dynamics of the New UWA Robot", section 6 and Figure 2: an elliptic stroke from [0, -0.2, -0.9] m over
[0, 0, -0.5] m to [0, 0.2, -0.9] m and back, 3-4-5 polynomial, largest acceleration 294.82 m/s^2. With the printed
geometry that ellipse is out of reach; here it is told by how much, and the stroke is scaled by 0.72. How the stroke
lies to the motors is not printed either, so it is also turned about the vertical.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tauloop import Model, load
from tauloop.errors import PoseError
from tauloop.motion import POLYNOMIAL_345, Ellipse, MachineLimits, PeakAcceleration, Trajectory, plan, stroke
from tauloop.report import save_figure
from tauloop.report.figures import FAINT, LARGE, PREDICTED, RESIDUAL, TEXT, clean
from tauloop.result import write_json

#: Miller, section 6: half width, height of the ends, height of the ellipse (m), and the largest acceleration (m/s^2).
HALF_WIDTH, BOTTOM, RISE = 0.2, -0.9, 0.4
PEAK_ACCELERATION = 294.82
#: Largest torques that the paper prints, and the motors' limit, N m.
PRINTED = {"nuwar": 35.68, "delta": 36.30}
LIMIT = 41.76
SCALE = 0.72
#: The paper's stroke lies along y. Peaks repeat every 60 degrees: three legs, and run backwards it is the same.
ALONG_Y, TURNS = 90.0, (0.0, 15.0, 30.0, 45.0)
#: Two readings of the printed forearm mass, kg: of a pair of rods, or of each rod.
READINGS = {"forearm mass per pair": 0.0296, "forearm mass per rod": 0.0592}
COLUMNS = ("platform.x", "platform.y", "platform.z")
COLOURS = (PREDICTED, RESIDUAL, "#6a9a5b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The stroke on one machine.

    Attributes:
        machine: its name.
        trajectory: there and back.
        time: s (N,).
        torque: N m (N, 3).
        peaks: largest torque of every motor, N m.
        shortest: duration of one direction at the motors' limit, s.
    """

    machine: str
    trajectory: Trajectory
    time: np.ndarray
    torque: np.ndarray
    peaks: tuple[float, ...]
    shortest: float


def ellipse(scale: float, direction: float = ALONG_Y) -> Ellipse:
    """The paper's half ellipse, scaled; `direction` in degrees from x about z."""
    along = np.array([np.cos(np.radians(direction)), np.sin(np.radians(direction)), 0.0])
    return Ellipse([0.0, 0.0, BOTTOM * scale], -HALF_WIDTH * scale * along, [0.0, 0.0, RISE * scale], 0.0, np.pi)


def largest_scale(model: Model) -> float:
    """Largest scale of the paper's ellipse that the machine reaches, by bisection."""
    low, high = SCALE, 1.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        try:
            stroke(model, ellipse(middle), COLUMNS, ranges=False)
            low = middle
        except PoseError:
            high = middle
    return low


def run(name: str) -> Run:
    """The scaled stroke on one machine."""
    model = Model(load(name))
    placed = stroke(model, ellipse(SCALE), COLUMNS)
    trajectory = plan(placed, POLYNOMIAL_345, PeakAcceleration(PEAK_ACCELERATION), returns=True)
    motion = trajectory.at(np.linspace(0.0, trajectory.total, 1001))
    forces = model.platform.inverse_dynamics(motion.position, motion.velocity, motion.acceleration)
    return Run(
        machine=name,
        trajectory=trajectory,
        time=motion.time,
        torque=forces.force,
        peaks=tuple(peak.force for peak in trajectory.peak_forces()),
        shortest=plan(placed, POLYNOMIAL_345, MachineLimits()).duration,
    )


def readings() -> list[dict[str, object]]:
    """Largest torque by machine, forearm reading and direction of the stroke, N m."""
    rows: list[dict[str, object]] = []
    for reading, mass in READINGS.items():
        for name in PRINTED:
            model = Model(load(name).with_values({"forearm_mass": mass}))
            peaks = []
            for direction in TURNS:
                placed = stroke(model, ellipse(SCALE, direction), COLUMNS, ranges=False)
                trajectory = plan(placed, POLYNOMIAL_345, PeakAcceleration(PEAK_ACCELERATION))
                peaks.append(max(abs(peak.force) for peak in trajectory.peak_forces()))
            rows.append({"reading": reading, "machine": name, "direction_deg": TURNS, "peak_torque": peaks})
    return rows


def histories(runs: list[Run]) -> Figure:
    """Torques against time, one panel per machine, as the paper's Figure 2."""
    figure = Figure(figsize=(10.0, 4.2))
    panels = figure.subplots(1, len(runs), sharey=True)
    for axes, item in zip(panels, runs, strict=True):
        clean(axes)
        for bound in (-LIMIT, LIMIT):
            axes.axhline(bound, color=FAINT, linewidth=1.0, linestyle="--")
        for i, colour in enumerate(COLOURS):
            axes.plot(1e3 * item.time, item.torque[:, i], color=colour, linewidth=1.4, label=f"motor {i + 1}")
        most = max(abs(peak) for peak in item.peaks)
        axes.set_title(
            f"{item.machine}: peak {most:.2f} N m (printed {PRINTED[item.machine]:.2f})", color=TEXT, fontsize=LARGE
        )
        axes.set_xlabel("time [ms]", color=TEXT)
    panels[0].set_ylabel("motor torque [N m]", color=TEXT)
    panels[0].legend(frameon=False, ncols=3, loc="lower center", fontsize=8)
    panels[0].annotate(f"limit {LIMIT:g}", (0.0, LIMIT), textcoords="offset points", xytext=(2, 3), fontsize=8)
    panels[0].set_ylim(-52, 52)
    figure.tight_layout()
    return figure


def peak_table(runs: list[Run]) -> Table:
    """Peaks beside the printed ones."""
    table = Table(title=f"Peak torques, ellipse scaled by {SCALE}, N m", title_justify="left", box=None)
    for heading in ("machine", "motor 1", "motor 2", "motor 3", "largest", "printed", "one way [ms]", "at limit [ms]"):
        table.add_column(heading, justify="left" if heading == "machine" else "right")
    for item in runs:
        largest = max(abs(peak) for peak in item.peaks)
        times = (f"{1e3 * item.trajectory.duration:.1f}", f"{1e3 * item.shortest:.1f}")
        cells = [f"{peak:.2f}" for peak in item.peaks]
        table.add_row(item.machine, *cells, f"{largest:.2f}", f"{PRINTED[item.machine]:.2f}", *times)
    return table


def reading_table(rows: list[dict[str, object]]) -> Table:
    """Largest torque by direction of the stroke."""
    table = Table(
        title="Largest torque by direction of the stroke from the first leg, N m", title_justify="left", box=None
    )
    table.add_column("reading")
    table.add_column("machine")
    for direction in TURNS:
        table.add_column(f"{direction:g} deg", justify="right")
    for row in rows:
        peaks = row["peak_torque"]
        cells = [f"{peak:.2f}" for peak in peaks] if isinstance(peaks, list) else []
        table.add_row(str(row["reading"]), str(row["machine"]), *cells)
    return table


def main(out: Path = Path("out/nuwar_stroke")) -> list[Run]:
    """Print the tables, write JSON and PNG."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    misses = {}
    for name in PRINTED:
        model = Model(load(name))
        try:
            stroke(model, ellipse(1.0), COLUMNS, ranges=False)
        except PoseError as error:
            misses[name] = {
                "largest_scale": largest_scale(model),
                "misses": [f"{problem.where} {problem.what}" for problem in error.problems[1:]],
            }
            legs = "; ".join(f"{p.where}: {p.what.split(' in ')[0]}" for p in error.problems[1:])
            scale = misses[name]["largest_scale"]
            console.print(f"{name}: the printed ellipse is out of reach ({legs}); it fits up to a scale of {scale:.3f}")
    runs = [run(name) for name in PRINTED]
    console.print(peak_table(runs))
    rows = readings()
    console.print(reading_table(rows))
    console.print(
        "Why the figures differ from print: the printed ellipse cannot be run with the printed geometry, so the stroke "
        "is another; the reading of the forearm's mass and the direction of the stroke are not printed."
    )
    document = {
        "printed_ellipse": misses,
        "scale": SCALE,
        "peak_acceleration": PEAK_ACCELERATION,
        "runs": [
            {"machine": r.machine, "one_way_s": r.trajectory.duration, "at_limit_s": r.shortest, "peaks": r.peaks}
            | {"printed": PRINTED[r.machine]}
            for r in runs
        ],
        "readings": rows,
    }
    write_json(out / "nuwar_stroke.json", document)
    save_figure(histories(runs), out / "nuwar_stroke.png")
    console.print(f"written: {out}/nuwar_stroke.json, nuwar_stroke.png")
    return runs


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/nuwar_stroke"), help="folder for JSON and PNG")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(arguments()))
