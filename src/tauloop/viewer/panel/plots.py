"""Plots of a motion with a cursor at the current time: positions, forces with limits, power."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.common.records import dataclass
from tauloop.display.palette import COLORS, RESIDUAL, TEXT
from tauloop.display.sampling import thin
from tauloop.model import Model
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene.forces import motion_forces
from tauloop.viewer.stage import Stage

#: Number of intervals whose extremes a plot shows, about one per pixel.
PLOT_INTERVALS = 300
#: Height of a plot, pixels.
PLOT_HEIGHT = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Curves of one plot.

    Attributes:
        title: title with the unit.
        names: names of the curves.
        values: values (N, n), in that unit.
        limits: limit of the absolute value of each curve (n,); infinite if it has none.
    """

    title: str
    names: tuple[str, ...]
    values: np.ndarray
    limits: np.ndarray


def motion_curves(model: Model, playback: Playback) -> tuple[Curves, ...]:
    """Return the plots of a motion: positions, forces and power of actuators, one plot per unit.

    Forces come from the table, or else from inverse dynamics. Inverse dynamics and power need a
    table with velocities and accelerations.
    """
    actuators, units = model.mechanism.actuators, model.output_ports("actuators")[1]
    names = tuple(actuator.name for actuator in actuators)
    no_limits = np.full(len(names), np.inf)
    # An actuator rotates if its force is a torque.
    position_units = {"N m": (180.0 / np.pi, "deg"), "N": (1e3, "mm")}
    position = model.actuator_position(playback.q)
    curves = _curves_by_unit("position", names, position, units, no_limits, position_units)
    force, power = playback.force, None
    if playback.rates is not None:
        with contextlib.suppress(TauloopError):  # the forces are not determined
            forces = motion_forces(model, playback)
            if force is None:
                force = np.atleast_2d(forces.force)
            speed = np.asarray(forces.state.v) @ model.assembly.loops.transmission.T
            power = Curves(title="power [W]", names=names, values=force * speed, limits=no_limits)
    if force is not None:
        limits = np.array([actuator.force for actuator in actuators])
        curves += _curves_by_unit("force", names, force, units, limits, {})
    return curves if power is None else (*curves, power)


def _curves_by_unit(
    quantity: str,
    names: tuple[str, ...],
    values: np.ndarray,
    units: tuple[str, ...],
    limits: np.ndarray,
    display_units: dict[str, tuple[float, str]],
) -> tuple[Curves, ...]:
    """Return the curves of a quantity, in one plot for each unit.

    Args:
        quantity: name of the quantity.
        names: names of the curves (n,).
        values: values (N, n).
        units: units of the curves (n,).
        limits: limits of their absolute values (n,).
        display_units: factor and displayed unit for a unit; default: the unit itself.
    """
    plots = []
    for unit in dict.fromkeys(units):
        columns = [i for i, other in enumerate(units) if other == unit]
        factor, shown_unit = display_units.get(unit, (1.0, unit))
        plots.append(
            Curves(
                title=f"{quantity} [{shown_unit}]",
                names=tuple(names[i] for i in columns),
                values=factor * values[:, columns],
                limits=factor * limits[columns],
            )
        )
    return tuple(plots)


class Plots:
    """The plots of a motion, each with a vertical line at the current time.

    Attributes:
        curves: the curves of each plot.
        nodes: the plots, in the same order.
    """

    def __init__(self, viewer: Stage, playback: Playback) -> None:
        """Add the panel."""
        self._playback = playback
        self.curves = motion_curves(viewer.model, playback)
        self.nodes: list[Any] = []
        self._drawn: list[tuple[tuple[np.ndarray, ...], float, float]] = []
        with viewer.server.gui.add_folder("Plots"):
            for plot in self.curves:
                self._add(viewer.server.gui, plot)
        self._cursor_sample = -1
        self.follow(0)

    def _add(self, gui: Any, plot: Curves) -> None:
        time, values = thin(self._playback.time, plot.values, PLOT_INTERVALS)
        finite = np.flatnonzero(np.isfinite(plot.limits))
        limits = sorted({float(sign * plot.limits[i]) for i in finite for sign in (-1.0, 1.0)})
        low = float(min(values.min(), *limits, np.inf))
        high = float(max(values.max(), *limits, -np.inf))
        margin = 0.05 * (high - low) or 1.0
        low, high = low - margin, high + margin
        data = (time, *values.T, *(np.full(len(time), limit) for limit in limits))
        series: list[dict[str, Any]] = [{"label": "time [s]"}]
        series += [
            {
                "label": name,
                "stroke": COLORS[i % len(COLORS)],
                "width": 1.6,
                "points": {"show": False},
            }
            | ({"dash": [5, 3]} if i >= len(COLORS) else {})
            for i, name in enumerate(plot.names)
        ]
        limit_style = {"stroke": RESIDUAL, "width": 1, "dash": [2, 3], "points": {"show": False}}
        # Curves of this class have no entry in the legend.
        unnamed = {"class": "unnamed"}
        series += [
            {"label": "limit", **limit_style, **(unnamed if i else {})} for i in range(len(limits))
        ]
        series += [
            {**unnamed, "label": "now", "stroke": TEXT, "width": 1.2, "points": {"show": False}}
        ]
        self._drawn.append((data, low, high))
        self.nodes.append(
            gui.add_uplot(
                data=(*data, np.full(len(time), low)),
                series=tuple(series),
                title=plot.title,
                height=PLOT_HEIGHT,
                scales={"x": {"time": False}, "y": {"range": (low, high)}},
                axes=({}, {"space": 24, "size": 52}),
                legend={"show": True, "live": True},
            )
        )

    def follow(self, sample: int | None) -> None:
        """Move the cursors to a sample of the motion."""
        if sample is None or sample == self._cursor_sample:
            return
        self._cursor_sample = sample
        for node, (data, low, high) in zip(self.nodes, self._drawn, strict=True):
            # A vertical line: the only sample above the lower end is at the current time.
            cursor = np.full(len(data[0]), low)
            cursor[np.abs(data[0] - self._playback.time[sample]).argmin()] = high
            node.data = (*data, cursor)
