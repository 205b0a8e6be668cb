"""Tables of elastic machines: stiffness by direction and part, loads of beams, frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.elasticity.heat.expansion import ThermalExpansion
from tauloop.elasticity.static_analysis.rated_loads import FRACTIONS, StaticCompliance
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS, Stiffness
from tauloop.elasticity.vibrations.vibration import Vibration
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.suggestions import listing

#: Items with a smaller fraction of a mode's energy are not named.
MIN_ENERGY_FRACTION = 0.1
#: Axial forces due to heat below this value are rounding errors, N.
MIN_HEAT_FORCE = 1e-3
#: Maximum number of items named for a mode.
MAX_ITEMS = 3
#: Maximum number of listed poses.
MAX_POSE_ROWS = 20
#: Factors from SI units to the units of the table, for stiffness against forces and moments.
STIFFNESS_FACTORS = (1e-6,) * 3 + (1e-3,) * 3
STIFFNESS_UNITS = ("N/um",) * 3 + ("N m/mrad",) * 3
DEFLECTION_UNITS = ("um",) * 3 + ("urad",) * 3


def stiffness_tables(result: Stiffness) -> Iterator[Printed]:
    """Yield stiffness by direction, compliance by part and loads of beams at the softest pose."""
    name = result.model.mechanism.name
    pose = int(np.argmin(result.worst_translational))
    if len(result.tool) > 1:
        yield _poses_table(result)
        name = f"{name}, pose {pose + 1} of {len(result.tool)} (the softest)"
    yield _directions_table(result, pose, name)
    yield _parts_table(result, pose)
    if result.beams:
        yield _beams_table(result, pose)
    factor = result.load_factor[pose]
    if np.isfinite(factor):
        yield f"the machine buckles under {factor:.4g} times its loads"
    yield from _assumptions(result.masses, result.rigid, result.notes)
    yield from doubts(result)


def _poses_table(result: Stiffness) -> Printed:
    """Return a table with the smallest stiffness and the weakest part at each pose."""
    rows = [
        (str(k + 1), _stiffness(1e-6 * force), _stiffness(1e-3 * moment), weakest)
        for k, (force, moment, weakest) in enumerate(
            zip(result.worst_translational, result.worst_rotational, result.weakest, strict=True)
        )
    ]
    n_omitted = len(rows) - MAX_POSE_ROWS
    return table(
        f"Smallest stiffness of {result.model.mechanism.name}",
        "pose",
        ("force [N/um]", ".4g"),
        ("moment [N m/mrad]", ".4g"),
        "weakest part",
        rows=rows[:MAX_POSE_ROWS],
        note=f"and {counted(n_omitted, 'more pose')}" if n_omitted > 0 else "",
    )


def _directions_table(result: Stiffness, pose: int, name: str) -> Printed:
    """Return a table of stiffness and deflection along the base axes and the softest direction."""
    rows: list[tuple[object, ...]] = []
    for k, direction in enumerate(DIRECTIONS):
        stiffness = _stiffness(STIFFNESS_FACTORS[k] * result.directional[pose, k])
        deflection = 1e6 * result.deflection[pose, k]
        rows.append((direction, stiffness, STIFFNESS_UNITS[k], deflection, DEFLECTION_UNITS[k]))
    axis = ", ".join(f"{x:.2f}" for x in result.worst_translational_direction[pose] + 0.0)
    softest = STIFFNESS_FACTORS[0] * result.worst_translational[pose]
    softest_moment = STIFFNESS_FACTORS[3] * result.worst_rotational[pose]
    rows.append(("softest force", _stiffness(softest), STIFFNESS_UNITS[0], None, ""))
    rows.append(("softest moment", _stiffness(softest_moment), STIFFNESS_UNITS[3], None, ""))
    loads = "wrench" if result.options.weightless else "weight and wrench"
    if result.options.wrench is None and not result.options.weightless:
        loads = "weight"
    return table(
        f"Stiffness of {name} at the tool",
        "direction",
        ("stiffness", ".4g"),
        "unit",
        (f"deflection\nunder {loads}", ".4g"),
        "unit",
        rows=rows,
        note=f"direction of the softest force: {axis}",
    )


def _parts_table(result: Stiffness, pose: int) -> Printed:
    """Return a table of the fraction of the compliance due to each part, the largest first."""
    shares = np.column_stack([result.worst_shares[pose], result.shares[pose].T])
    order = np.argsort(-shares[:, 0], kind="stable")
    return table(
        "Share of each part in the compliance, weakest first",
        "part",
        *((head, ".1%") for head in ("softest force", *DIRECTIONS)),
        rows=[(result.items[k], *shares[k]) for k in order],
    )


def _beams_table(result: Stiffness, pose: int) -> Printed:
    """Return a table of axial force, stress and safety factors of each beam."""
    rows = []
    for k, beam in enumerate(result.beams):
        stress = _finite(1e-6 * result.stress[pose, k])
        safety = _finite(result.yield_safety[pose, k])
        buckling = _finite(result.buckling_safety[pose, k])
        rows.append((beam, result.axial[pose, k], stress, safety, buckling))
    return table(
        "Loads of beams",
        "beam",
        ("axial force [N]", ".4g"),
        ("stress [MPa]", ".4g"),
        ("safety: yield", ".4g"),
        ("buckling", ".4g"),
        rows=rows,
        note="the safety against buckling is that of rods in compression between ball joints",
    )


def static_compliance_tables(result: StaticCompliance) -> Iterator[Printed]:
    """Yield displacement and compliance at each force, for each direction."""
    name = result.model.mechanism.name
    heads = [(f"{direction}\n[mm]", ".4f") for direction in result.directions]
    rows = [
        (f"{100 * fraction:.0f} %", load, *row)
        for fraction, load, row in zip(FRACTIONS, result.load, 1e3 * result.distance.T, strict=True)
    ]
    title = f"Displacement of the tool of {name} under forces (ISO 9283, static compliance)"
    yield table(title, "load", ("force [N]", ".4g"), *heads, rows=rows)
    yield table(
        "Static compliance at the rated load",
        "direction",
        ("[mm/N]", ".4g"),
        *((f"displacement {axis} [mm]", ".4f") for axis in "xyz"),
        rows=[
            (direction, 1e3 * result.compliance[k, -1], *(1e3 * result.displacement[k, -1]))
            for k, direction in enumerate(result.directions)
        ],
    )
    yield from result.notes
    yield from doubts(result)


def thermal_tables(result: ThermalExpansion) -> Iterator[Printed]:
    """Yield the tool error due to each part and the thermal forces, where the error is largest."""
    name = result.model.mechanism.name
    pose = int(np.argmax(result.distance))
    if len(result.tool) > 1:
        name = f"{name}, row {pose + 1} of {len(result.tool)} (the largest error)"
    displacement = 1e6 * result.per_kelvin[pose]
    distance = np.linalg.norm(displacement[:3], axis=0)
    rises = np.broadcast_to(result.temperatures, (len(result.tool), len(result.parts)))[pose]
    order = np.argsort(-np.nan_to_num(distance * np.abs(rises)), kind="stable")
    rows: list[tuple[object, ...]] = []
    for k in order:
        errors = (*displacement[:3, k], distance[k], distance[k] * abs(rises[k]))
        rows.append((result.parts[k], 1e6 * result.expansions[k], rises[k], *map(_finite, errors)))
    yield table(
        f"Error of the tool of {name} due to heat, largest first",
        "part",
        ("expansion\n[um/m/K]", ".3g"),
        ("rise\n[K]", ".3g"),
        *((f"{axis}\n[um/K]", ".3g") for axis in DIRECTIONS[:3]),
        ("distance\n[um/K]", ".3g"),
        ("distance\n[um]", ".4g"),
        rows=rows,
    )
    error = 1e6 * result.error[pose]
    text = ", ".join(f"{axis} {value:.4g} um" for axis, value in zip("xyz", error, strict=False))
    yield f"all together: {1e6 * result.distance[pose]:.4g} um ({text})"
    strained = [k for k in range(len(result.beams)) if abs(result.axial[pose, k]) > MIN_HEAT_FORCE]
    if strained:
        yield table(
            "Forces due to heat",
            "beam",
            ("axial force [N]", ".4g"),
            ("moment [N m]", ".4g"),
            ("stress [MPa]", ".4g"),
            ("safety: yield", ".4g"),
            rows=[
                (
                    result.beams[k],
                    result.axial[pose, k],
                    result.moment[pose, k],
                    _finite(1e-6 * result.stress[pose, k]),
                    _finite(result.yield_safety[pose, k]),
                )
                for k in strained
            ],
        )
    yield from result.notes
    yield from doubts(result)


def vibration_tables(result: Vibration) -> Iterator[Printed]:
    """Yield frequencies, clusters of close modes, and the parts with most of the elastic energy."""
    clusters = {mode: group for group in result.clusters for mode in group if len(group) > 1}
    count = result.frequency.shape[1]
    rows = []
    for k in range(count):
        group = clusters.get(k + 1)
        close = f"{group[0]} to {group[-1]}" if group else ""
        low, high = np.nanmin(result.frequency[:, k]), np.nanmax(result.frequency[:, k])
        numbers = [low] if len(result.frequency) == 1 else [low, high]
        if result.damping_ratio is not None:
            numbers.append(np.nanmin(result.damping_ratio[:, k]))
        rows.append((str(k + 1), *numbers, close, _most_energy(result, k)))
    heads: tuple[tuple[str, str], ...] = (("frequency [Hz]", ".2f"),)
    if len(result.frequency) > 1:
        heads = (("lowest [Hz]", ".2f"), ("highest [Hz]", ".2f"))
    if result.damping_ratio is not None:
        heads += (("damping ratio" if len(heads) == 1 else "smallest damping ratio", ".3f"),)
    yield table(
        f"Natural frequencies of {result.model.mechanism.name}, motors {result.options.motor_state}",
        "mode",
        *heads,
        "close modes",
        "elastic energy",
        rows=rows,
        note="the shapes of close modes are not determined: any mixture of them is a mode"
        if clusters
        else "",
    )
    if len(result.frequency) > 1:
        poses = counted(len(result.frequency), "pose")
        yield f"over {poses}; close modes and energies are those of the first pose"
    if result.free:
        motions = "motion is" if result.free == 1 else "motions are"
        yield f"{result.free} {motions} free, with a frequency of zero"
    if result.responses is not None:
        pose = int(np.argmin(result.responses.least_dynamic_stiffness))
        least = 1e-6 * result.responses.least_dynamic_stiffness[pose]
        pose_text = f" (pose {pose + 1})" if len(result.frequency) > 1 else ""
        frequency = result.responses.least_at[pose]
        yield f"smallest dynamic stiffness: {least:.4g} N/um at {frequency:.4g} Hz{pose_text}"
    if result.lobes is not None:
        yield f"cutting is stable at every speed up to a depth of {1e3 * result.lobes.least_depth:.4g} mm"
    yield from _assumptions(result.masses, result.rigid, result.notes)
    yield from doubts(result)


def _most_energy(result: Vibration, mode: int) -> str:
    """Return the items with the largest fractions of a mode's elastic energy at the first pose."""
    shares = result.shares[0, mode]
    order = np.argsort(-shares, kind="stable")[:MAX_ITEMS]
    relevant = [k for k in order if shares[k] >= MIN_ENERGY_FRACTION]
    return ", ".join(f"{result.items[k]} {shares[k]:.0%}" for k in relevant)


def _assumptions(
    masses: Sequence[ElementMass], rigid: Sequence[str], notes: Sequence[str]
) -> Iterator[str]:
    """Yield differences between specified masses and sections, the rigid parts, and the notes."""
    for mass in masses:
        if not mass.is_placed:
            parts = mass.section + mass.fittings
            yield f"{mass.element}: the file states {mass.mass:.4g} kg, the sections have {parts:.4g} kg"
    if rigid:
        yield f"rigid, because they have no elastic data: {listing(rigid)}"
    yield from notes


def _stiffness(value: float) -> float | str:
    """Return a stiffness, or "rigid" if it is infinite."""
    return float(value) if np.isfinite(value) else "rigid"


def _finite(value: float) -> float | None:
    """Return a number, or None if it is undefined or infinite."""
    return float(value) if np.isfinite(value) else None
