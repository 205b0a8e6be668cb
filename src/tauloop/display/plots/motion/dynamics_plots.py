"""Plots of inverse dynamics: forces of the actuators, and loads of joints and bearings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tauloop.display.pieces import Piece, Plot
from tauloop.display.plots.building import by_name, motion, over_time
from tauloop.display.plots.quantity_plots import quantity_plots
from tauloop.dynamics import JointForces, MotionForces

#: Maximum number of joints in a plot over time; those with the largest loads are drawn.
MAX_JOINTS = 6
#: Joints whose load is below this fraction of the largest load are not drawn.
MIN_LOAD_FRACTION = 1e-12


def dynamics_plots(forces: MotionForces) -> Iterator[Plot]:
    """Yield the forces of the actuators, and the loads of the joints if they were requested."""
    for plot in quantity_plots(forces, ("force",)):
        yield replace(plot, title="Actuator forces")
    if forces.options.joint_forces:
        yield from _joint_plots(forces.joint_forces)


def dynamics_scene(forces: MotionForces) -> Iterator[Piece]:
    """Yield the machine in motion; nothing for a single pose."""
    is_motion = forces.options.motion is not None
    yield from motion(forces.model, forces.time, forces.forces.state.q, is_motion=is_motion)


def _joint_plots(joints: JointForces) -> Iterator[Plot]:
    """Yield plots of forces, radial and axial forces, and moments in the joints."""
    force: dict[str, np.ndarray] = {}
    radial: dict[str, np.ndarray] = {}
    axial: dict[str, np.ndarray] = {}
    moment: dict[str, np.ndarray] = {}
    for name in joints.names:
        joint = joints.joint(name)
        force[name] = np.linalg.norm(joint.force, axis=1)
        moment[name] = np.linalg.norm(joint.moment, axis=1)
        if joint.axial is not None:
            axial[name] = joint.axial
        if joint.radial is not None and np.isnan(force[name]).any():
            radial[name] = joint.radial
    yield from _load_plots(joints.time, "Force in joints", "N", force)
    note = "joints whose axial force is not determined"
    yield from _load_plots(joints.time, "Radial force", "N", radial, note)
    note = "positive: tension of a rod, or along the axis of a joint"
    yield from _load_plots(joints.time, "Axial force", "N", axial, note)
    yield from _load_plots(joints.time, "Moment in joints", "N m", moment)


def _load_plots(
    time: np.ndarray, title: str, unit: str, loads: Mapping[str, np.ndarray], note: str = ""
) -> Iterator[Plot]:
    """Yield a plot of the largest loads of joints over time, or of all loads for a single pose.

    Args:
        time: times (N,), s.
        title: name of the load.
        unit: unit of the load.
        loads: loads (N,) by joint; NaN if rigid bodies do not determine them.
        note: text below the plot.
    """
    peaks = {name: np.nanmax(np.abs(values), initial=0.0) for name, values in loads.items()}
    largest = max(peaks.values(), default=0.0)
    loaded = [name for name in loads if peaks[name] > MIN_LOAD_FRACTION * largest]
    if not loaded:
        return
    if len(time) == 1:
        values = [loads[name][0] for name in loaded]
        label = f"{title.lower()} [{unit}]"
        yield by_name(title, label, loaded, {"": values}, style="bars", note=note)
        return
    largest_joints = sorted(loaded, key=lambda name: -peaks[name])[:MAX_JOINTS]
    drawn = [name for name in loaded if name in largest_joints]
    if len(drawn) < len(loaded):
        title += f", the {len(drawn)} largest of {len(loaded)}"
    columns = [loads[name] for name in drawn]
    yield from over_time(title, time, drawn, [unit] * len(drawn), columns, note=note)
