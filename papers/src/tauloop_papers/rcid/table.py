"""The RCID's experiment as the paper's tables, as comparisons, and as a list of choices."""

from __future__ import annotations

import numpy as np

import tauloop as tl
from tauloop_papers.rcid.results import Impedance, Touch
from tauloop_papers.rcid.settings import ImpedanceSettings
from tauloop_papers.reproduction import Comparison, PrintedRow, PrintedTable

#: The sum of all parts.
TOTAL = "all, added up"
#: Lagrange's method and generalized momentum, as named in the counts of operations.
METHODS = ("lagrange on the platform", "generalized-momentum")
Counts = tuple[int, int, int]
#: Rows of Table 2: the part as named in the counts, the paper's name, and its numbers by both
#: methods.
PARTS: dict[str, tuple[str, Counts, Counts]] = {
    "platform": ("Mobile platform", (310, 590, 0), (94, 226, 0)),
    "bodies": ("Six actuators", (3028, 4403, 30), (724, 940, 18)),
    "one rod's translation": ("Translating link", (751, 1579, 6), (131, 279, 4)),
    "one rod's rotation": ("Rotating link", (2180, 3711, 7), (355, 664, 7)),
    TOTAL: ("Total operations", (20924, 36733, 108), (3734, 6824, 84)),
}
#: Descriptions of the three readings of the prescribed poses.
MEANINGS = (
    "the prescribed poses taken by the letter",
    "most likely what the paper means: each coordinate may be 10 mm off",
    "all three Euler angles may be 15° at once",
)


def comparisons(results: Impedance) -> tuple[Comparison, ...]:
    """Return the comparisons of stated and our values."""
    settings = results.settings
    rows = [
        Comparison(
            quantity=f"stroke of the actuators: {reach.poses}",
            unit="mm",
            stated=f"{1e3 * settings.stroke:.0f}, approximately",
            ours=f"{1e3 * reach.stroke:.1f} ({1e3 * reach.low.min():.1f} to {1e3 * reach.high.max():.1f})",
            why=f"±{1e3 * settings.radius:.0f} mm, ±{np.rad2deg(settings.turn):.0f}°; {meaning}; "
            f"random poses alone reach {1e3 * reach.sampled:.1f}",
        )
        for reach, meaning in zip(results.reaches, MEANINGS, strict=True)
    ]
    lagrange, momentum = (sum(results.counts[method][TOTAL]) for method in METHODS)
    _, printed_lagrange, printed_momentum = PARTS[TOTAL]
    rows += [
        Comparison(
            quantity="operations of generalized momentum over Lagrange's, totals of Table 2",
            stated=f"{sum(printed_momentum) / sum(printed_lagrange):.2f}",
            ours=f"{momentum / lagrange:.2f}",
            why=f"in print {sum(printed_momentum)} over {sum(printed_lagrange)}, of Maple's programs; both on the "
            "platform in Euler angles, rows added up",
        ),
        Comparison(
            quantity="total mass without payload",
            unit="kg",
            stated=f"{settings.total_mass:g}",
            ours=f"{results.masses:.3g}",
            why="its distribution among the parts is our choice",
        ),
        Comparison(
            quantity="maximal height: platform level and up, above the lowest place of its carriages",
            unit="mm",
            stated=f"{1e3 * settings.height:.0f}, approximately (the whole machine)",
            ours=f"{1e3 * (settings.stroke + _arch(settings)):.0f}",
            why="the rest is housing, motors and flange, which no equation has and the paper does not dimension",
        ),
        Comparison(
            quantity="largest diameter: circle of the carriages",
            unit="mm",
            stated=f"{1e3 * settings.diameter:.0f}, approximately (fixed platforms)",
            ours=f"{2 * settings.geometry['base_radius'][3]:.0f}",
            why="the same",
        ),
        Comparison(
            quantity="pitch at which the Euler angles are singular; largest prescribed turn",
            unit="deg",
            stated=f"{np.rad2deg(settings.singular):.0f}",
            ours=f"{np.rad2deg(settings.singular):.0f}; {np.rad2deg(settings.turn):.0f}",
            why="far outside, as stated in the paper; this model uses quaternions",
        ),
    ]
    for touch in results.touches:
        rows += _touch_rows(touch, settings)
    return tuple(rows)


def _arch(settings: ImpedanceSettings) -> float:
    """Return the height of the level platform above its carriages, sqrt(L^2 - |P_i - B_i|^2), m."""
    base, plate, length = (
        1e-3 * settings.geometry[name][3] for name in ("base_radius", "plate_radius", "link_length")
    )
    between = np.deg2rad(60.0 - settings.geometry["phi_B"][3] - settings.geometry["phi_P"][3])
    return float(np.sqrt(length**2 - base**2 - plate**2 + 2 * base * plate * np.cos(between)))


def _touch_rows(touch: Touch, settings: ImpedanceSettings) -> list[Comparison]:
    task, stiff = touch.task, settings.surface_stiffness
    along = task.stiffness[2]
    depth = task.way[2] - settings.surface
    expected = task.push or along * stiff / (along + stiff) * depth
    springs = "both springs in line: K k / (K + k) times the reference's depth"
    why = f"the push of {task.push:g} N" if task.push else springs
    return [
        Comparison(
            quantity=f"{task.name} control: force on the surface at the end (by formula, and simulated)",
            unit="N",
            ours=f"{expected:.2f}; {touch.pressure[-1]:.2f}",
            why=f"{why}; the paper names the task but prints no values",
        ),
        Comparison(
            quantity=f"{task.name} control: from the task's mass, spring and damper (largest distance)",
            unit="µm",
            ours=f"{1e6 * touch.miss:.2g}",
            why="inverse dynamics makes the machine imitate these; SciPy solves their motion",
        ),
        Comparison(
            quantity=f"{task.name} control: largest acceleration of a drive; largest force on the surface",
            unit="m/s²; N",
            stated=f"{settings.acceleration_range:.1f}; {settings.force_range:g} (ranges of the sensors)",
            ours=f"{np.abs(np.gradient(touch.speed, touch.time, axis=0)).max():.1f}; {touch.pressure.max():.1f}",
            why="within the ranges",
        ),
        Comparison(
            quantity=f"{task.name} control: largest speed of a drive, largest force",
            unit="m/s, N",
            stated=f"{settings.speed:g} (platform along z)",
            ours=f"{np.abs(touch.speed).max():.3f}; {np.abs(touch.force).max():.1f}",
            why=f"with the payload of {settings.payload:g} kg on the platform",
        ),
    ]


def printed(results: Impedance, model: tl.Model) -> tuple[PrintedTable, ...]:
    """Return Tables 1 and 2."""
    settings, values = results.settings, model.mechanism.parameters
    geometry = [
        PrintedRow(
            name=symbol,
            stated=(f"{stated:g} {unit}",),
            ours=(f"{round(factor * values[parameter].value, 9):g} {unit}",),
        )
        for parameter, (symbol, unit, factor, stated) in settings.geometry.items()
    ]
    strokes = " | ".join(f"{1e3 * reach.stroke:.1f}" for reach in results.reaches)
    geometry.append(
        PrintedRow(name="Δl_i", stated=(f"{1e3 * settings.stroke:g} mm",), ours=(f"{strokes} mm",))
    )
    operations = []
    for part, (word, lagrange, momentum) in PARTS.items():
        counts = [count for method in METHODS for count in results.counts[method][part]]
        operations.append(
            PrintedRow(
                name=word,
                stated=tuple(map(str, (*lagrange, *momentum))),
                ours=tuple(map(str, counts)),
            )
        )
    kinds = ("Add.", "Mult.", "Div.")
    return (
        PrintedTable(
            name="Table 1",
            title="RCID main kinematic parameters",
            columns=("Parameter", "Value"),
            rows=tuple(geometry),
            why="The machine file has the printed geometry. The stroke follows from it and from the poses that the "
            "actuators must reach, which can be read in three ways:  " + "; ".join(MEANINGS) + ".",
        ),
        PrintedTable(
            name="Table 2",
            title="arithmetic operations of the Coriolis and centripetal terms matrices",
            columns=(
                "",
                *(f"Lagrange {kind}" for kind in kinds),
                *(f"Momentum {kind}" for kind in kinds),
            ),
            rows=tuple(operations),
            why="Ours are counted after sharing of common subexpressions, with kinematics in every row and 1 to 32 "
            "roots more. Therefore platform, actuators and a link's translation alone need more than with Maple; in "
            "total "
            "there are fewer additions and multiplications, and more divisions. Totals add up the rows with six "
            "links, as "
            "the paper's do.",
        ),
    )


def choices(settings: ImpedanceSettings) -> tuple[str, ...]:
    """Return our choices that the paper leaves open."""
    return (
        "all masses except the total: see the machine file; operations do not depend on them",
        f"the task: a smooth surface {1e3 * settings.surface:g} mm above the tool, of "
        f"{settings.surface_stiffness:g} N/m and {settings.surface_damping:g} N s/m",
        *(
            f"{task.name} control: {task.mass:g} kg, {task.stiffness} N/m, {task.damping} N s/m"
            + f", reference {task.way} m on in {settings.duration:g} s"
            + (f", pushing with {task.push:g} N" if task.push else "")
            for task in settings.tasks
        ),
        "the controller is continuous and its model exact; drives without friction, as in the paper's equations",
    )
