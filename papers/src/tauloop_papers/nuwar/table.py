"""The strokes as comparisons, as the paper's list of dimensions, and as a list of choices."""

from __future__ import annotations

import numpy as np

import tauloop as tl
from tauloop_papers.nuwar.results import Strokes
from tauloop_papers.nuwar.settings import StrokeSettings
from tauloop_papers.reproduction import Comparison, PrintedRow, PrintedTable

#: The motion laws in the paper, with its names.
LAWS_USED = {"parabolic": "parabolic", "cycloidal": "cycloidal", "3-4-5": "fifth order"}
#: The common reason for different torques.
OTHER_STROKE = "the printed ellipse is out of reach of the printed geometry, so the stroke differs"


def comparisons(strokes: Strokes) -> tuple[Comparison, ...]:
    """Return the comparisons of stated and our values."""
    settings, runs = strokes.settings, {run.machine: run for run in strokes.runs}
    own, other = runs[settings.machine], runs[settings.other]
    rows = [
        Comparison(
            quantity="coordinates of the extended space",
            stated="6",
            ours=str(strokes.coordinates),
            why="three of the plate and three motor angles; one rod represents each parallelogram",
        ),
        Comparison(
            quantity="revolute joints; relative coordinates",
            stated=f"{settings.joints}; {settings.relative}",
            ours="3; none",
            why="three motors; the 18 joints of the forearms are ends of rods, which need no angles",
        ),
        Comparison(
            quantity="spacing of the forearms",
            unit="m",
            stated=f"{settings.spacing:g}",
            ours="without effect",
            why="the plate only translates, so both forearms of a pair have the same motion",
        ),
        Comparison(
            quantity="acceleration from rest at the motors' limit, on the axis, the largest over the stroke's heights",
            unit="m/s²",
            stated=f"{settings.capable:g} (the machine is capable of)",
            ours=f"{strokes.fastest:.0f}",
            why=f"by the printed masses and {settings.limit:g} N m; the paper states neither the position nor the peak "
            "torque of the motors",
        ),
        Comparison(
            quantity="time between control signals; operations of a sample",
            stated=f"{1e3 * settings.cycle:g} ms, approximately",
            ours=f"{strokes.operations['hamilton, sampled']} operations",
            why="the paper states that calculation takes considerably less; our times are at the end of the page",
        ),
    ]
    straight = f"straight down the plate reaches {_reach(settings):.4f} m"
    for name, (scale, misses) in strokes.fits.items():
        rows.append(
            Comparison(
                quantity=f"{name}: the printed ellipse, y ±0.2 m, z from -0.9 to -0.5 m",
                stated="run",
                ours=f"out of reach; fits up to a scale of {scale:.3f}"
                if misses
                else "within reach",
                why="; ".join((*misses, straight)),
            )
        )
    for name, run in runs.items():
        rows.append(
            Comparison(
                quantity=f"{name}: largest torque (Figure 2)",
                unit="N m",
                stated=f"{settings.printed_peaks[name]:.2f}",
                ours=f"{run.peak:.2f}",
                why=f"{OTHER_STROKE}: scaled by {settings.scale:g}, at the same largest acceleration",
            )
        )
    printed_peak = settings.printed_peaks[settings.machine]
    printed_ratio = printed_peak / settings.printed_peaks[settings.other]
    turned = strokes.turned["per pair"]
    ratios = np.array(turned[settings.machine]) / np.array(turned[settings.other])
    best = int(ratios.argmin())
    rows += [
        Comparison(
            quantity=f"largest torque, {settings.machine} over {settings.other}",
            stated=f"{printed_ratio:.3f}",
            ours=f"{own.peak / other.peak:.3f}; {ratios[best]:.3f} with the stroke at {settings.turns[best]:.0f}°",
            why="the direction of the stroke is not printed, and determines which machine needs more",
        ),
        Comparison(
            quantity="largest acceleration of the plate",
            unit="m/s²",
            stated=f"{settings.acceleration:.2f}",
            ours=f"{settings.acceleration:.2f}",
            why=f"given: it determines the duration of one direction,  {1e3 * own.one_way:.1f} ms",
        ),
        Comparison(
            quantity=f"one way at the motors' limit of {settings.limit:g} N m",
            unit="ms",
            ours=f"{1e3 * own.shortest:.1f}; {settings.other} {1e3 * other.shortest:.1f}",
            why=f"the paper is also close to the limit: {printed_peak / settings.limit:.0%} of it",
        ),
    ]
    for reading, machines in strokes.turned.items():
        for name, peaks in machines.items():
            rows.append(
                Comparison(
                    quantity=f"{name}: largest torque by direction of the stroke, forearm mass {reading}",
                    unit="N m",
                    ours=", ".join(f"{peak:.2f}" for peak in peaks),
                    why="at "
                    + ", ".join(f"{turn:.0f}°" for turn in settings.turns)
                    + " from the first leg; along y it is 90°, which is as 30°",
                )
            )
    rows += _round_trips(strokes)
    operations = strokes.operations
    sampled, lagrange = operations["hamilton, sampled"], operations["lagrange"]
    rows.append(
        Comparison(
            quantity="operations of inverse dynamics that Hamilton's equations save against Lagrange's",
            stated=f"{settings.saving:.0%}",
            ours=f"{1 - sampled / lagrange:.0%} ({sampled} against {lagrange})",
            why="Miller's method without accelerations, two-point differences included; with exact rates of momenta "
            f"{operations['hamilton']} ({1 - operations['hamilton'] / lagrange:.0%} saved), by generalized momentum "
            f"{operations['generalized-momentum']}, by Newton and Euler {operations['newton-euler']}: his equations "
            "were Mathematica's",
        )
    )
    return tuple(rows)


def _round_trips(strokes: Strokes) -> list[Comparison]:
    """Return the comparisons of Figure 3, and of the other shapes and laws in section 6."""
    rows = [
        Comparison(
            quantity=f"round trip of the ellipse by {trip.route}: largest error (Figure 3)",
            unit="m",
            stated="match exactly",
            ours=f"{trip.largest:.1e}",
            why=f"loops stay closed to {trip.residual:.1e} m; tolerances of {strokes.settings.tolerance[0]:g}, of "
            "which rounding makes 1e-12 to 2e-10 m",
        )
        for trip in strokes.trips[:2]
    ]
    others = strokes.trips[2:]
    worst = max(others, key=lambda trip: trip.largest)
    rows.append(
        Comparison(
            quantity=f"the same of {len(others)} other strokes: largest error",
            unit="m",
            ours=f"{worst.largest:.1e}",
            why=f"{worst.path}, {worst.law} law; the table of shapes and laws has the peaks of all",
        )
    )
    return rows


def printed(result: Strokes, model: tl.Model) -> tuple[PrintedTable, ...]:
    """Return the list of section 6, and the largest torques."""
    settings, values = result.settings, model.mechanism.parameters
    dimensions = tuple(
        PrintedRow(
            name=f"{name}, {unit}", stated=(f"{stated:g}",), ours=(f"{values[parameter].value:g}",)
        )
        for parameter, (name, unit, stated) in settings.prototype.items()
    )
    peaks = []
    for run in result.runs:
        ours = [f"{peak:.2f}" for peak in (*run.peaks, run.peak)]
        stated_peak = f"{settings.printed_peaks[run.machine]:.2f}"
        peaks.append(
            PrintedRow(name=run.machine, stated=("", "", "", stated_peak), ours=tuple(ours))
        )
    strokes = {(trip.path, trip.law): trip for trip in result.trips}
    shapes = []
    for name in result.shapes:
        trips = [strokes[name, law] for law in LAWS_USED]
        cells = [f"{trip.peak:.2f} ({1e3 * trip.one_way:.1f})" for trip in trips]
        shapes.append(PrintedRow(name=name, stated=("",) * len(LAWS_USED), ours=tuple(cells)))
    return (
        PrintedTable(
            name="Section 6",
            title="the prototype",
            columns=("", "value"),
            rows=dimensions,
            why="The machine file has the printed values. The moment of inertia is printed without its axis; it is "
            "read as that about the motor's, because m L²/12 and m L²/3 lie on either side of it.",
        ),
        PrintedTable(
            name="Figure 2",
            title="largest torques of the elliptical stroke, N m",
            columns=("machine", "motor 1", "motor 2", "motor 3", "largest"),
            rows=tuple(peaks),
            why=f"The paper prints only the largest of all. {OTHER_STROKE.capitalize()}.",
        ),
        PrintedTable(
            name="Section 6",
            title="shapes and motion programs: largest torque, N m (duration of one way, ms)",
            columns=("shape", *LAWS_USED.values()),
            rows=tuple(shapes),
            why=f"Mentioned in the paper, without values. All have its largest acceleration, {settings.acceleration:g} "
            f"m/s²; larger torques than {settings.limit:g} N m exceed the motors.",
        ),
    )


def choices(settings: StrokeSettings) -> tuple[str, ...]:
    """Return our choices that the paper leaves open."""
    return (
        f"the ellipse is scaled by {settings.scale:g} about the motors' height: the printed one is out of reach",
        "the stroke lies along y from the first leg's x, as in its coordinates; other directions for comparison",
        "the forearm's mass is counted once for each pair; per rod for comparison",
        "the arm's mass center is in its middle; forearms are uniform bars; the elbow is a point mass",
        f"sizes of the other shapes: a shear of {settings.shear:g}, a clothoid of {settings.curvature[0]:g} to "
        f"{settings.curvature[1]:g} 1/m as wide as the ellipse from its first end on, the line and "
        "the sheared ellipse between both ends",
        f"Dormand-Prince steps with tolerances {settings.tolerance[0]:g} and {settings.tolerance[1]:g}",
    )


def _reach(settings: StrokeSettings) -> float:
    """Return the largest depth of the plate on the axis, sqrt((L + l)^2 - (R - r)^2), m."""
    size = tl.load(settings.machine).parameters.values
    across = size["motor_radius"] - size["plate_radius"]
    return float(np.sqrt((size["arm_length"] + size["forearm_length"]) ** 2 - across**2))
