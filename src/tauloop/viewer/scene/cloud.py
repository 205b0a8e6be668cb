"""The workspace around the machine: a slice or a cloud of tool positions, colored by a property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import InputError, PoseError, TauloopError
from tauloop.common.records import dataclass
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.kinematics.workspaces.map import Reason, Workspace, section_axes, workspace_grid
from tauloop.kinematics.workspaces.pose_axes import PoseAxes, pose_axes
from tauloop.model import Model
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene.forces import motion_forces
from tauloop.viewer.scene.machine_scene import rgb
from tauloop.viewer.stage import Stage

#: Properties that color the points.
COLORINGS = ("reach", "conditioning", "force")
#: Number of points along the longest axis of a slice.
SLICE_POINTS = 60
#: Number of points along the longest axis of a cloud.
CLOUD_POINTS = 18
#: Largest distance of the points from the tool, as a fraction of the machine's largest dimension.
#: The limit bounds the map of machines whose telescopic legs have no limits.
MAX_DISTANCE = 0.7
#: Quantile of the values at the upper end of the color scale. The maximum is not used, because
#: forces grow without bound near singularities.
SCALE_QUANTILE = 0.95
#: Colors of the reasons that exclude a pose, and of usable poses. They differ in lightness. Poses
#: out of reach are not shown.
REASON_COLORS: Mapping[Reason, str] = {
    Reason.USABLE: "#9fd0f0",
    Reason.JOINT_LIMIT: "#e69f00",
    Reason.SINGULAR: "#b0301c",
    Reason.INTERFERENCE: "#5c2560",
    Reason.TENSION: "#0d0f11",
    Reason.CUT_OFF: "#848484",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Colored tool positions of a workspace map.

    Attributes:
        workspace: the map.
        tool_positions: positions of the tool (N, 3), m.
        values: values that determine the colors (N,): codes of reasons, smallest distances to a
            singularity, or forces.
        colors: colors (N, 3), 0 to 255.
        legend: meaning of the colors, in Markdown.
    """

    workspace: Workspace
    tool_positions: np.ndarray
    values: np.ndarray
    colors: np.ndarray
    legend: str


def workspace_sections(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return the possible slices and clouds of a machine: pairs and a triple of translations."""
    axes = pose_axes(model)
    lengths = [name for name, unit in zip(axes.columns, axes.units, strict=True) if unit == "m"]
    pairs = [(a, b) for i, a in enumerate(lengths) for b in lengths[i + 1 :]]
    return (*pairs, tuple(lengths)) if len(lengths) == 3 else tuple(pairs)


def cloud(
    model: Model, section: tuple[str, ...], coloring: str, q: np.ndarray | None = None
) -> Cloud:
    """Map a slice or a cloud through a pose.

    Args:
        model: the machine.
        section: two platform translations (a slice) or three (a cloud).
        coloring: one of `COLORINGS`: "reach" (reason that excludes a pose), "conditioning"
            (smallest distance to a singularity, 0 to 1), or "force" (largest actuator force at
            rest, at usable poses; for cable robots, the margin of the cable tensions).
        q: coordinates (n_q,) that fix the other positions; default: the reference pose.

    Returns:
        Points with their values and colors.

    Raises:
        InputError: the property is unknown, or the positions are not lengths.
        PoseError: the loops do not close at this pose.
    """
    if coloring not in COLORINGS:
        raise InputError.of(
            "color", f"unknown: {coloring!r}", f"choose one of {', '.join(COLORINGS)}"
        )
    axes = pose_axes(model)
    axis_values = _axis_values(model, axes, model.assembly.q if q is None else q)
    center = dict(zip(axes.columns, axis_values, strict=True))
    fixed = {name: float(value) for name, value in center.items() if name not in section}
    full_ranges = section_axes(model, section, None)
    largest_distance = MAX_DISTANCE * machine_geometry(model, model.assembly.q).size
    ranges = {
        name: (
            max(float(values[0]), center[name] - largest_distance),
            min(float(values[-1]), center[name] + largest_distance),
        )
        for name, values in full_ranges.items()
    }
    widest = max(high - low for low, high in ranges.values())
    points = SLICE_POINTS if len(section) == 2 else CLOUD_POINTS
    step = float(f"{widest / points:.1g}")
    workspace = workspace_grid(
        model, section_axes(model, section, step, ranges), fixed=fixed, refined=False
    )
    positions = axes.grid(workspace.axes, workspace.fixed)
    reason = workspace.reason.ravel()
    is_shown = reason != Reason.OUT_OF_REACH
    if coloring == "force":
        is_shown = reason == Reason.USABLE
    shown = np.flatnonzero(is_shown)
    states = model.platform.evaluate(axes.positions(positions[shown]))
    is_reached = states.health.is_reached & np.isfinite(states.q).all(axis=1)
    shown = shown[is_reached]
    q_shown = states.q[is_reached]
    tool_positions = machine_geometry(model, q_shown).tool if len(shown) else np.zeros((0, 3))
    if coloring == "reach":
        colors, legend = _reason_colors(reason[shown])
        return Cloud(
            workspace=workspace,
            tool_positions=tool_positions,
            values=reason[shown],
            colors=colors,
            legend=legend,
        )
    measures = workspace.arrays
    if coloring == "conditioning":
        distances = [measures[name].ravel()[shown] for name in ("serial", "parallel", "constraint")]
        values = np.min(distances, axis=0)
        quantity = "distance to a singularity, 0 to 1"
    else:
        values, quantity = _force_values(model, q_shown, measures["tension"].ravel()[shown])
    finite = np.isfinite(values)
    values = values[finite]
    tool_positions = tool_positions[finite]
    colors, legend = _color_scale(values, quantity)
    return Cloud(
        workspace=workspace,
        tool_positions=tool_positions,
        values=values,
        colors=colors,
        legend=legend,
    )


def _reason_colors(reasons: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the colors (N, 3) of reasons (N,), and their legend in Markdown."""
    colors = [rgb(REASON_COLORS[Reason(number)]) for number in reasons]
    present = [reason for reason in REASON_COLORS if (reasons == reason).any()]
    legend = "  \n".join(
        f'<span style="color:{REASON_COLORS[reason]}">■</span> {reason.text}' for reason in present
    )
    return np.array(colors).reshape(-1, 3), legend


def _axis_values(model: Model, axes: PoseAxes, q: np.ndarray) -> np.ndarray:
    """Return the values (n,) of the axes of a map at coordinates (n_q,)."""
    position = model.platform.ports.at(q)
    if axes.quaternion_start is None:
        return np.asarray(position)
    quaternion = position[axes.quaternion_start : axes.quaternion_start + 4]
    rotation = Rotation.from_quat(quaternion, scalar_first=True)
    start = Rotation.from_quat(axes.start, scalar_first=True)
    return np.concatenate(
        [
            position[: axes.quaternion_start],
            (rotation * start.inv()).as_rotvec(),
            position[axes.quaternion_start + 4 :],
        ]
    )


def _force_values(model: Model, q: np.ndarray, tension: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the values that color poses by "force", and a text for the legend.

    Args:
        model: the machine.
        q: coordinates of the poses (N, n_q).
        tension: margin of the cables' tensions (N,), N; NaN without cables.

    Returns:
        The margins of a machine with cables, otherwise the largest actuator forces at rest (N,).
    """
    if np.isfinite(tension).any():
        return tension, "margin of the cables' tensions, N"
    units = np.array(model.output_ports("actuators")[1])
    forces = np.abs(_holding_forces(model, q))
    largest = {unit: forces[:, units == unit].max(axis=1) for unit in dict.fromkeys(units.tolist())}
    (first, values), *others = largest.items()
    note = "".join(
        f"; other motors up to {np.nanmax(force, initial=0.0):.3g} {unit}" for unit, force in others
    )
    return values, f"largest motor force at rest, {first}{note}"


def _holding_forces(model: Model, q: np.ndarray) -> np.ndarray:
    """Return actuator forces (N, n_u) that hold poses (N, n_q); NaN if no forces hold a pose."""
    try:
        return motion_forces(model, Playback(time=np.zeros(len(q)), q=q)).force
    except PoseError:
        if len(q) == 1:
            return np.full((1, len(model.mechanism.actuators)), np.nan)
        return np.concatenate([_holding_forces(model, half) for half in np.array_split(q, 2)])


def _color_scale(values: np.ndarray, quantity: str) -> tuple[np.ndarray, str]:
    """Return colors (N, 3) whose lightness increases with the value, and their legend."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if not len(values):
        return np.zeros((0, 3), dtype=int), "No pose is in reach."
    low, high = float(values.min()), float(np.quantile(values, SCALE_QUANTILE))
    fractions = np.clip((values - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    colors = np.round(255 * colormaps["viridis"](fractions)[:, :3]).astype(int)
    stops = ", ".join(to_hex(colormaps["viridis"](x)) for x in (0.0, 0.5, 1.0))
    bar = f'<span style="display:inline-block;width:6em;height:0.8em;background:linear-gradient(90deg,{stops})"></span>'
    excess = " and more" if values.max() > high else ""
    return colors, f"{low:.3g} {bar} {high:.3g}{excess}  \n{quantity}"


class CloudPanel:
    """The panel for choosing and drawing a slice or cloud of the workspace.

    Attributes:
        cloud: the drawn slice or cloud; None before the first.
    """

    def __init__(self, viewer: Stage) -> None:
        """Add the panel, unless the platform only rotates."""
        self._viewer = viewer
        self.cloud: Cloud | None = None
        self._node: Any = None
        gui = viewer.server.gui
        choices = {_label(section): section for section in workspace_sections(viewer.model)}
        if not choices:
            return
        with gui.add_folder("Workspace", expand_by_default=False):
            self.section = gui.add_dropdown("section", tuple(choices))
            self.coloring = gui.add_dropdown("colors", COLORINGS)
            self.draw = gui.add_button("map")
            self.clear = gui.add_button("clear", visible=False)
            self._legend = gui.add_markdown("")
        self.draw.on_click(lambda _: self.show(choices[self.section.value], self.coloring.value))
        self.clear.on_click(lambda _: self.remove())

    def show(self, section: tuple[str, ...], coloring: str) -> None:
        """Draw a slice or a cloud through the current pose; errors are shown in the panel."""
        viewer = self._viewer
        self._legend.content = "Mapping ..."
        try:
            self.cloud = cloud(viewer.model, section, coloring, viewer.q)
        except TauloopError as error:
            self._legend.content = "\n".join(
                f"- {problem.what}; *{problem.remedy}*" for problem in error.problems
            )
            return
        self.remove()
        steps = [
            float(np.diff(values).min())
            for values in self.cloud.workspace.axes.values()
            if len(values) > 1
        ]
        self._node = viewer.server.scene.add_point_cloud(
            "/workspace",
            points=self.cloud.tool_positions,
            colors=self.cloud.colors.astype(np.uint8),
            point_size=min(steps, default=0.01) * (0.8 if len(section) == 2 else 0.22),
            point_shape="square" if len(section) == 2 else "circle",
            point_shading="flat",
            precision="float32",
        )
        self._legend.content = self.cloud.legend
        self.clear.visible = True

    def remove(self) -> None:
        """Remove the points."""
        if self._node is not None:
            self._node.remove()
            self._node = None
            self._legend.content = ""
            self.clear.visible = False


def _label(section: tuple[str, ...]) -> str:
    short = ", ".join(name.rpartition(".")[2] for name in section)
    return f"slice {short}" if len(section) == 2 else f"cloud {short}"
