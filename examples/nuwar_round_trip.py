"""The round trip of the NUWAR paper (Miller, section 6, Figure 3): torques by inverse dynamics give the stroke back.

    python examples/nuwar_round_trip.py --out out/nuwar_round_trip

The elliptic stroke of the paper, scaled by 0.72 (as printed it is out of reach), there and back by the 3-4-5 polynomial
with the printed peak acceleration. The torques are computed inside the right-hand side and never interpolated. The
paper's route is Hamilton's equations with Baumgarte's stabilisation; the others run beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tauloop import Model, load
from tauloop.motion import POLYNOMIAL_345, Ellipse, PeakAcceleration, Trajectory, plan, stroke
from tauloop.report import save_figure
from tauloop.report.simulation_figure import round_trip_figure
from tauloop.result import write_json
from tauloop.simulation import DormandPrince, ExtendedSpace, IndependentCoordinates, Projected
from tauloop.simulation.round_trip import RoundTrip, round_trip

HALF_WIDTH, BOTTOM, RISE, SCALE = 0.2, -0.9, 0.4, 0.72
PEAK_ACCELERATION = 294.82
#: Largest position error that is asked of a round trip, m.
LIMIT = 1e-9
ROUTES = {
    "Hamilton's equations, Baumgarte (the paper's)": ExtendedSpace(),
    "Hamilton's equations, drifting": ExtendedSpace(stabilisation=None),
    "independent coordinates": IndependentCoordinates(),
    "all coordinates, projected": Projected(),
}
INTEGRATOR = DormandPrince(rtol=1e-11, atol=1e-12)


def paper_stroke(model: Model) -> Trajectory:
    """The paper's ellipse, scaled, there and back."""
    path = Ellipse([0.0, 0.0, BOTTOM * SCALE], [0.0, -HALF_WIDTH * SCALE, 0.0], [0.0, 0.0, RISE * SCALE], 0.0, np.pi)
    placed = stroke(model, path, model.platform.ports.position.columns)
    return plan(placed, POLYNOMIAL_345, PeakAcceleration(PEAK_ACCELERATION), returns=True)


def run(out: Path, console: Console, routes: tuple[str, ...] = tuple(ROUTES)) -> dict[str, RoundTrip]:
    """All round trips, with table, figure and JSON in the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    model = Model(load("nuwar"))
    trajectory = paper_stroke(model)
    results = {
        name: round_trip(model, trajectory, trajectory.total, route=ROUTES[name], integrator=INTEGRATOR)
        for name in routes
    }
    rows = Table(title=f"Round trip of NUWAR, {trajectory.total:.4f} s, limit {LIMIT:g} m", box=None)
    for column in ("route", "largest position error [m]", "largest loop residual [m]", "steps"):
        rows.add_column(column, justify="left" if column == "route" else "right")
    for name, result in results.items():
        simulation = result.simulation
        residual = f"{simulation.residual.max():.1e}"
        rows.add_row(name, f"{result.position_error:.1e}", residual, str(len(simulation.steps)))
    console.print(rows)
    first = next(iter(results.values()))
    save_figure(round_trip_figure(first, title="NUWAR: inverse, then forward dynamics"), out / "figure3.png")
    write_json(
        out / "round_trip.json",
        {name: {"position_error_m": r.position_error, **r.simulation.as_dict()} for name, r in results.items()},
    )
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/nuwar_round_trip"))
    run(parser.parse_args().out, Console())
