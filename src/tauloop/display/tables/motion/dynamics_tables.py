"""Tables of inverse dynamics: forces, tensions, accelerations of passive joints, and doubts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed, Table
from tauloop.display.tables import doubts, table
from tauloop.dynamics import JointForces, LoadCase, LoadCases, MotionForces
from tauloop.mechanism.model import PLATFORM_JOINT

#: Maximum number of listed samples; the output file and JSON contain all.
MAX_SAMPLES = 10
#: Components below this fraction of the largest one are rounding errors and are shown as zero.
ROUNDING_FRACTION = 1e-12
#: Load and time if a joint has no load of a kind.
NO_LOAD = (None, None)


def dynamics_tables(motion: MotionForces) -> Iterator[Printed]:
    """Yield forces of one pose, or of some samples and their maxima; passive motion; tensions."""
    forces, hybrid, model = motion.forces, motion.hybrid, motion.model
    force = np.atleast_2d(forces.force)
    if len(force) == 1:
        yield _quantity_table(
            "Actuator forces", "force", forces.actuator_names, force, motion.units
        )
    else:
        heads = [
            (f"{name} [{unit}]", ".5g")
            for name, unit in zip(forces.actuator_names, motion.units, strict=True)
        ]
        listed = np.unique(np.linspace(0, len(force) - 1, MAX_SAMPLES).astype(int))
        rows = [(motion.time[i], *force[i]) for i in listed]
        rows.append(("largest", *np.abs(force).max(axis=0)))
        title = f"Actuator forces, {counted(len(force), 'sample')}"
        yield table(title, ("time [s]", ".4f"), *heads, rows=rows)
    yield from (str(error) for error in motion.difference_errors if error.is_good)
    yield f"worst condition number {motion.condition.max():.3g}"
    if forces.is_shared:
        rule = (
            "the smallest sum of squares"
            if forces.tension is None
            else "tensions within bounds, nearest to the preload"
        )
        yield f"actuation is redundant: these forces have {rule}"
    springs = zip(model.topology.velocity_names, model.topology.freedoms, strict=True)
    rotary_springs = [
        name
        for name, freedom in springs
        if freedom.spring is not None and name in forces.state.turns.angles
    ]
    if rotary_springs:
        springs_text = ", ".join(rotary_springs)
        yield f"springs on {springs_text} use the rotation nearest to the {motion.nearest}"
    if hybrid is not None:
        units = dict(
            zip(
                model.actuators.ports.acceleration.columns,
                model.actuators.ports.acceleration.units,
                strict=True,
            )
        )
        passive = hybrid.passive_names
        values = np.atleast_2d(hybrid.passive_acceleration)
        yield _quantity_table(
            "Passive accelerations",
            "acceleration",
            passive,
            values,
            [units[name] for name in passive],
        )
    if forces.tension is not None:
        names = forces.tension_names
        yield _quantity_table(
            "Tensions of cables",
            "tension",
            names,
            np.atleast_2d(forces.tension),
            ["N"] * len(names),
        )
    if motion.options.joint_forces:
        yield from _joint_tables(motion.joint_forces)
    yield from (f"note: {note}" for note in motion.notes)
    yield from doubts(motion)


def _quantity_table(
    title: str, quantity: str, names: Sequence[str], values: np.ndarray, units: Sequence[str]
) -> Table:
    """Return a table of a quantity by name: its value, or its range over all samples (N, n)."""
    cells = (
        column[0] if len(column) == 1 else f"{column.min():.5g} to {column.max():.5g}"
        for column in values.T
    )
    return table(
        title, "name", (quantity, ".6g"), "unit", rows=zip(names, cells, units, strict=True)
    )


def _joint_tables(joints: JointForces) -> Iterator[Printed]:
    """Yield the forces in joints: components of one pose, or the largest values of many samples."""
    if len(joints.time) == 1:
        wrench = joints.wrench[0]
        is_rounding = np.abs(wrench) < ROUNDING_FRACTION * np.nanmax(np.abs(wrench), initial=0.0)
        wrench = np.where(is_rounding, 0.0, wrench)
        heads = [(f"F{axis} [N]", ".4g") for axis in "xyz"]
        heads += [(f"M{axis} [N m]", ".4g") for axis in "xyz"]
        rows = [(name, *wrench[k]) for k, name in enumerate(joints.names)]
        yield table("Forces in joints", "joint", *heads, rows=rows)
    else:
        yield from _load_tables(joints.load_cases(), joints.names)
    yield (
        "forces act on the child body of a joint, and on the body at the end of a rod, in the axes "
        "of the joint's frame on that body"
    )
    if PLATFORM_JOINT in joints.names:
        yield (
            f"{PLATFORM_JOINT}: loads that keep the platform to its coordinates, such as those of "
            "parallelograms that the machine file describes by one rod"
        )
    if joints.undetermined:
        yield (
            f"in {len(joints.undetermined)} of {counted(len(joints.points), 'joint')}, components are "
            "undetermined (nan), because redundant constraints of a rigid machine share them: use joints "
            "with more degrees of freedom, such as a ball joint in place of a pin"
        )


def _load_tables(cases: LoadCases, names: Sequence[str]) -> Iterator[Table]:
    """Yield the largest loads of each joint with times: resultants, radial and axial forces."""
    rows = [(name, _largest_loads(cases.of(name))) for name in names]
    columns = (("force [N]", ".4g"), ("at [s]", ".4g"), ("moment [N m]", ".4g"), ("at [s]", ".4g"))
    resultants = [(name, *loads["force"], *loads["moment"]) for name, loads in rows]
    yield table("Largest forces in joints", "joint", *columns, rows=resultants)
    columns = (("radial [N]", ".4g"), ("at [s]", ".4g"), ("axial [N]", ".4g"), ("at [s]", ".4g"))
    components = [
        (name, *loads["radial"], *loads["axial"])
        for name, loads in rows
        if loads["radial"] != NO_LOAD or loads["axial"] != NO_LOAD
    ]
    if components:
        yield table("Largest forces across and along axes", "joint", *columns, rows=components)


def _largest_loads(cases: Mapping[str, LoadCase]) -> dict[str, tuple[float | None, float | None]]:
    """Return the largest force, radial force, axial force and moment of a joint, with times."""
    axial = [cases.get("largest axial force"), cases.get("smallest axial force")]
    signed = [case for case in axial if case is not None and case.axial is not None]
    chosen = {
        "force": cases.get("largest force"),
        "radial": cases.get("largest radial force"),
        "axial": max(signed, key=lambda case: abs(case.axial or 0.0), default=None),
        "moment": cases.get("largest moment"),
    }
    return {
        load: NO_LOAD if case is None else (getattr(case, load), case.time)
        for load, case in chosen.items()
    }
