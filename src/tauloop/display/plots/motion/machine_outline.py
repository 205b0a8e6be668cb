"""The machine and its nominal range (work box) as lines over a section of its workspace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.display.pieces import PlotTrace
from tauloop.display.plots.building import rounded
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.kinematics.workspaces.map import Workspace
from tauloop.kinematics.workspaces.pose_axes import pose_axes

#: The machine is drawn if the tool's directions of motion are orthonormal within this tolerance.
ORTHONORMAL_TOLERANCE = 1e-6
#: The machine is drawn up to this distance from the map, as a fraction of the map's size.
MARGIN = 1.0
#: Colors of the machine and of its work box.
OUTLINE_COLOR, BOX_COLOR = "#7a3b69", "#b08a3a"


def outline_traces(section: Workspace, scales: np.ndarray) -> Iterator[PlotTrace]:
    """Yield the machine at the reference pose, and its work box.

    The machine is drawn if the axes of the section are translations of the tool in orthogonal
    directions. The view is then along the third direction.

    Args:
        section: a map over two positions.
        scales: factors from SI to the units of the plot (2,).
    """
    machine = _machine_lines(section)
    if machine is not None and len(machine):
        yield _trace("machine at the reference pose", machine * scales, OUTLINE_COLOR)
    box = work_box(section)
    if box is not None:
        (left, right), (bottom, top) = box * scales[:, None]
        x, y = (left, right, right, left, left), (bottom, bottom, top, top, bottom)
        yield PlotTrace(name="work box", x=rounded(x), y=rounded(y), color=BOX_COLOR)


def work_box(section: Workspace) -> np.ndarray | None:
    """Return the limits (2, 2) of the work box in the machine file, or None if it has none."""
    freedoms = section.model.mechanism.freedoms
    limits = []
    for name in section.axes:
        freedom = freedoms.get(name)
        if freedom is None or freedom.limit != "drawing":
            return None
        limits.append((freedom.lower, freedom.upper))
    box = np.array(limits)
    return box if np.isfinite(box).all() else None


def _machine_lines(section: Workspace) -> np.ndarray | None:
    """Return lines (n, 2, 2) of the machine in the axes of a section.

    None if the axes are not translations of the tool in orthogonal directions, or if the machine
    cannot reach the pose.
    """
    if section.units != ("m", "m"):
        return None
    model, axes = section.model, pose_axes(section.model)
    values = axes.reference[None].copy()
    for name, value in section.fixed.items():
        values[0, axes.columns.index(name)] = value
    position = axes.positions(values)
    try:
        q = model.inverse_kinematics(position).q
        tool_velocities = model.jacobian(position)[0, :3]
    except PoseError:
        return None
    columns = model.platform.ports.velocity.columns
    if not set(section.axes) <= set(columns):
        return None
    directions = tool_velocities[:, [columns.index(name) for name in section.axes]].T
    if np.abs(directions @ directions.T - np.eye(2)).max() > ORTHONORMAL_TOLERANCE:
        return None
    geometry = machine_geometry(model, q)
    lines = (_lines(geometry) - geometry.tool[0]) @ directions.T + np.array(section.reference)
    return _clipped(lines, *_window(section))


def _lines(geometry: MachineGeometry) -> np.ndarray:
    """Return the edges of bodies, arcs, rods and rails as lines (n, 2, 3), m."""
    lines = [geometry.segments[0]]
    for body in geometry.shape.bodies:
        lines.append(geometry.points(body.name)[0][body.edges].reshape(-1, 2, 3))
        lines.append(geometry.arcs(body.name)[0])
    return np.concatenate(lines)


def _window(section: Workspace) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper limits (2,) of the region in which the machine is drawn."""
    low = np.array([axis[0] for axis in section.axes.values()])
    high = np.array([axis[-1] for axis in section.axes.values()])
    margin = MARGIN * (high - low)
    return low - margin, high + margin


def _clipped(lines: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the parts of lines (n, 2, 2) inside a box from `low` to `high` (2,).

    The method is that of Liang and Barsky (1984).
    """
    start, step = lines[:, 0], lines[:, 1] - lines[:, 0]
    is_inside = ((start >= low) & (start <= high)) | (step != 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(low - start) / step, (high - start) / step])
    ends = np.where(step == 0.0, np.array([-np.inf, np.inf])[:, None, None], np.sort(ends, axis=0))
    first = np.maximum(ends[0].max(axis=1), 0.0)
    last = np.minimum(ends[1].min(axis=1), 1.0)
    is_visible = is_inside.all(axis=1) & (first < last)
    fractions = np.stack([first, last], axis=1)[is_visible]
    return np.asarray(start[is_visible, None] + fractions[..., None] * step[is_visible, None])


def _trace(name: str, lines: np.ndarray, color: str) -> PlotTrace:
    """Return lines (n, 2, 2) as one trace with gaps."""
    gaps = np.full((len(lines), 1, 2), np.nan)
    points = np.concatenate([lines, gaps], axis=1).reshape(-1, 2)
    return PlotTrace(name=name, x=rounded(points[:, 0]), y=rounded(points[:, 1]), color=color)
