"""Drawings of machines as solids or lines: three views and a perspective, or one plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.display.palette import (
    FAINT,
    LARGE,
    MEASURED,
    NORMAL,
    PREDICTED,
    RESIDUAL,
    SMALL,
    TEXT,
)
from tauloop.display.renderers.figure_style import blank
from tauloop.mechanism.model import BASE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tauloop.display.renderers.solid_drawing import SolidDrawing
    from tauloop.geometry.machine_geometry import MachineGeometry

#: Titles of the views, by the indices of the base axes that point to the right and upwards.
VIEWS = {(0, 2): "front (along y)", (1, 2): "side (along x)", (0, 1): "top (along z)"}
#: Length of drawn actuator axes, as a fraction of the largest dimension.
ACTUATOR_AXIS_LENGTH = 0.16
#: Length of drawn tool axes, as a fraction of the largest dimension.
TOOL_AXIS_LENGTH = 0.07
#: Elevation and azimuth of the perspective, deg.
ELEVATION, AZIMUTH = 18.0, -58.0
#: Zoom of the perspective.
ZOOM = 0.95
#: Colors of rods, rods with a drive and the axes of actuators, bodies, and the platform.
ROD_COLOR = MEASURED
DRIVE_COLOR = "#d08c2e"
BODY_COLOR = PREDICTED
PLATFORM_COLOR = RESIDUAL
#: Line styles of segments by kind.
LINES: dict[str, dict[str, Any]] = {
    "rail": {"color": FAINT, "linewidth": 3.0, "solid_capstyle": "butt"},
    "slide": {"color": "#8a9099", "linewidth": 1.2},
    "rod": {"color": ROD_COLOR, "linewidth": 1.6},
    "driven rod": {"color": DRIVE_COLOR, "linewidth": 1.6},
}
#: Maximum number of labels in a view; more would be unreadable.
MAX_LABELS = 12


def machine_figure(
    geometry: MachineGeometry,
    *,
    title: str,
    state: int = 0,
    note: str = "",
    solids: SolidDrawing | None = None,
) -> Figure:
    """Draw a machine at one state, and the path of its tool through all states.

    Dash-dotted lines are the axes of the actuators. All views have the same scale. If there are no
    solids, rods and slides are thin lines, and bodies are thick lines through their joint centers.
    The platform is red, and squares are the joints of the base.

    Args:
        geometry: the machine at one or more states.
        title: heading.
        state: index of the drawn state.
        note: line of text below the heading.
        solids: solids of the machine; None to draw lines.

    Returns:
        The figure, which is not registered with pyplot.
    """
    low, high = geometry.extent if solids is None else solids.extent(state)
    middle = (low + high) / 2
    half_edge = 0.56 * (float(np.max(high - low)) or geometry.size)
    plane = geometry.plane
    if len(plane) == 2:
        figure = blank(7.4, 7.2, layout="constrained")
        axes: Any = figure.add_subplot()
        _view(axes, geometry, state, plane, middle, half_edge, solids)
        _labels(axes, geometry, state, plane)
    else:
        figure = blank(10.4, 10.2, layout="constrained")
        for panel, (view_plane, view_title) in enumerate(VIEWS.items(), start=1):
            axes = figure.add_subplot(2, 2, panel)
            _view(axes, geometry, state, view_plane, middle, half_edge, solids)
            axes.set_title(view_title, fontsize=NORMAL, color=TEXT, loc="left")
        axes = figure.add_subplot(2, 2, 4, projection="3d")
        _draw(axes, geometry, state, (0, 1, 2), solids)
        _axes_and_path(axes, geometry, state, (0, 1, 2), 2 * half_edge)
        set_limits(axes, middle, half_edge)
        _labels(axes, geometry, state, (0, 1, 2))
    figure.suptitle(
        title + (f"\n{note}" if note else ""), fontsize=LARGE, color=TEXT, x=0.02, ha="left"
    )
    handles, names = figure.axes[0].get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    figure.legend(
        list(unique.values()),
        list(unique),
        loc="outside lower center",
        ncols=4,
        fontsize=SMALL,
        frameon=False,
    )
    return figure


def reference_figure(result: Any) -> Figure:
    """Return a drawing of the machine of a result at its reference pose."""
    # Imported here because these modules need SciPy, which tables do not need.
    from tauloop.display.renderers.solid_drawing import solid_drawing
    from tauloop.geometry.machine_geometry import machine_geometry
    from tauloop.model import Model

    # Some results contain the inspection of the machine, which has the model. Results without a
    # model have the mechanism.
    inspection = getattr(result, "inspection", result)
    model = getattr(inspection, "model", None) or Model(result.mechanism)
    geometry = machine_geometry(model, model.assembly.q[None])
    return machine_figure(
        geometry, title=model.mechanism.name, solids=solid_drawing(model, geometry)
    )


def view_figure(view: Any) -> Figure:
    """Return the drawing of a `View`, the result of `tl.view`."""
    figure: Figure = view.picture()
    return figure


def draw_machine(axes: Any, geometry: MachineGeometry, state: int, plane: tuple[int, ...]) -> None:
    """Draw the lines of a machine.

    Args:
        axes: Matplotlib axes, in a plane or in space.
        geometry: the machine.
        state: index of the drawn state.
        plane: indices of the base axes to draw: two of them, or all three.
    """
    shown_axes = list(plane)

    def line(points: np.ndarray, **style: Any) -> None:
        axes.plot(*points[:, shown_axes].T, **style)

    shape = geometry.shape
    driven = {axis.rod for axis in shape.drives}
    for segment, ends in zip(shape.segments, geometry.segments[state], strict=True):
        label = "driven rod" if segment.kind == "rod" and segment.name in driven else segment.kind
        line(ends, label=label, zorder=1.5, **LINES[label])
    for body in shape.bodies:
        points = geometry.points(body.name)[state]
        if body.name == BASE:
            line(points, linestyle="none", marker="s", markersize=4, color=TEXT, label="base")
            for arc in geometry.arcs(body.name)[state]:
                line(arc, linewidth=0.8, linestyle=":", color=TEXT, label="base")
            continue
        is_platform = body.name == shape.platform
        color = PLATFORM_COLOR if is_platform else BODY_COLOR
        label = "platform" if is_platform else "body"
        if len(points) == 1:
            line(
                points,
                linestyle="none",
                marker="o",
                markersize=4,
                color=color,
                label=f"{label} with one joint",
            )
        for arc in geometry.arcs(body.name)[state]:
            line(arc, linewidth=2.0, color=color, label=label)
        for edge in body.edges:
            line(points[edge], linewidth=2.0, color=color, label=label)
        if len(points) > 1:
            line(points, linestyle="none", marker="o", markersize=3, color=color)
        _fill(axes, points[body.faces][..., shown_axes], color)
        if is_platform and len(points):
            stem = np.stack([points.mean(axis=0), geometry.tool[state]])
            line(stem, linewidth=0.8, linestyle=":", color=color)
    line(
        geometry.tool[state][None],
        linestyle="none",
        marker="x",
        markersize=6,
        color=PLATFORM_COLOR,
        label="tool",
    )


def _fill(axes: Any, triangles: np.ndarray, color: str) -> None:
    """Fill triangles (f, 3, 2) or (f, 3, 3) so faintly that objects behind them are visible."""
    from matplotlib.collections import PolyCollection
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    if not len(triangles):
        return
    style: dict[str, Any] = {"facecolors": color, "alpha": 0.12, "linewidths": 0.0}
    if triangles.shape[-1] == 3:
        axes.add_collection3d(Poly3DCollection(list(triangles), **style))
    else:
        axes.add_collection(PolyCollection(list(triangles), zorder=1.4, **style), autolim=False)


def set_limits(
    axes: Any,
    middle: np.ndarray,
    half: float,
    plane: tuple[int, ...] = (0, 1, 2),
    *,
    zoom: float = ZOOM,
    view: tuple[float, float] | None = None,
) -> None:
    """Set the limits of axes to those of a cube, with equal scales, labels and a grid.

    Args:
        axes: Matplotlib axes, in a plane or in space.
        middle: center of the cube (3,), m.
        half: half of the cube's edge, m.
        plane: indices of the drawn base axes.
        zoom: zoom of axes in space.
        view: elevation and azimuth, deg; default: `ELEVATION` and `AZIMUTH`.
    """
    pads = (1, 1) if len(plane) == 2 else (-2, -2, 0)
    for letter, i, pad in zip("xyz", plane, pads, strict=False):
        getattr(axes, f"set_{letter}lim")(middle[i] - half, middle[i] + half)
        getattr(axes, f"set_{letter}label")(
            f"{'xyz'[i]} [m]", fontsize=SMALL, color=TEXT, labelpad=pad
        )
    axes.tick_params(labelsize=SMALL - 2, color=FAINT, labelcolor=TEXT)
    axes.locator_params(nbins=4 if len(plane) == 3 else 6)
    if len(plane) == 2:
        axes.set_aspect("equal")
        axes.grid(True, color=FAINT, linewidth=0.4)
        axes.set_axisbelow(True)
        return
    axes.set_box_aspect((1, 1, 1), zoom=zoom)
    elevation, azimuth = view or (ELEVATION, AZIMUTH)
    axes.view_init(elev=elevation, azim=azimuth)


def _draw(
    axes: Any,
    geometry: MachineGeometry,
    state: int,
    plane: tuple[int, ...],
    solids: SolidDrawing | None,
) -> None:
    """Draw the solids of a machine; without solids, its lines."""
    if solids is None:
        draw_machine(axes, geometry, state, plane)
    else:
        solids.draw(axes, state, plane)


def _view(
    axes: Any,
    geometry: MachineGeometry,
    state: int,
    plane: tuple[int, ...],
    middle: np.ndarray,
    half: float,
    solids: SolidDrawing | None,
) -> None:
    """Draw a machine, its axes and its path in a plane, within a square around `middle`."""
    _draw(axes, geometry, state, plane, solids)
    _axes_and_path(axes, geometry, state, plane, 2 * half)
    set_limits(axes, middle, half, plane)


def _axes_and_path(
    axes: Any, geometry: MachineGeometry, state: int, plane: tuple[int, ...], size: float
) -> None:
    """Draw the axes of actuators at joints, the axes of the tool, and the tool's path."""
    shown_axes = list(plane)
    origins, directions = (values[state] for values in geometry.drives)
    for axis, origin, direction in zip(geometry.shape.drives, origins, directions, strict=True):
        if axis.rod:
            continue
        ends = origin + 0.5 * ACTUATOR_AXIS_LENGTH * size * np.array([[-1.0], [1.0]]) * direction
        is_visible = float(np.ptp(ends[:, shown_axes], axis=0).max()) > 1e-3 * size
        style = (
            {"linewidth": 1.3, "linestyle": (0, (5, 2, 1, 2))}
            if is_visible
            else {"marker": "o", "markerfacecolor": "none"}
        )
        axes.plot(
            *ends[:, shown_axes].T, color=DRIVE_COLOR, label="actuator axis", zorder=3, **style
        )
    tool, R = geometry.tool[state], geometry.tool_rotation[state]
    for column, color in zip(R.T, ("#b4443c", "#4f8a4a", "#3f6fae"), strict=True):
        ends = np.stack([tool, tool + TOOL_AXIS_LENGTH * size * column])
        axes.plot(*ends[:, shown_axes].T, color=color, linewidth=1.2, zorder=3)
    if len(geometry) > 1:
        axes.plot(
            *geometry.tool[:, shown_axes].T,
            color=PLATFORM_COLOR,
            linewidth=0.9,
            label="path of the tool",
            zorder=1.2,
        )


def _labels(axes: Any, geometry: MachineGeometry, state: int, plane: tuple[int, ...]) -> None:
    """Write the names of the actuators and the platform, each name once."""
    from matplotlib.patheffects import withStroke

    shown_axes = list(plane)
    halo = [withStroke(linewidth=2.0, foreground="white")]
    segments = dict(
        zip((s.name for s in geometry.shape.segments), geometry.segments[state], strict=True)
    )
    positions: dict[str, np.ndarray] = {}
    for axis, origin in zip(geometry.shape.drives, geometry.drives[0][state], strict=True):
        positions.setdefault(axis.name, segments[axis.rod].mean(axis=0) if axis.rod else origin)
    if len(positions) > MAX_LABELS:
        positions = {}
    positions[geometry.shape.platform] = geometry.tool[state]
    middle = np.mean([*positions.values()], axis=0)
    azimuth = np.radians(AZIMUTH)
    # Direction to the right in the picture, in the machine's base frame.
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    for name, position in positions.items():
        is_platform = name == geometry.shape.platform
        color = PLATFORM_COLOR if is_platform else TEXT
        if len(shown_axes) == 3:
            # Names extend away from the middle of the machine.
            side = "left" if (position - middle) @ right >= 0 else "right"
            axes.text(
                *position,
                f"  {name}  ",
                ha=side,
                fontsize=SMALL - 1,
                color=color,
                zorder=10,
                path_effects=halo,
            )
        else:
            axes.annotate(
                name,
                position[shown_axes],
                xytext=(7, -12 if is_platform else 7),
                textcoords="offset points",
                fontsize=SMALL,
                color=color,
                zorder=10,
                path_effects=halo,
            )
