"""What `plot` draws: the picture of a kind of results, or panels of named quantities in axes that a user restyles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.datasets import Tabular, Variable
from tauloop.common.errors import InputError
from tauloop.common.keywords import keywords
from tauloop.common.records import dataclass
from tauloop.common.result import Result
from tauloop.display.figures import (
    COLOURS,
    LARGE,
    NORMAL,
    SMALL,
    TEXT,
    blank,
    clean,
    in_degrees,
    thin,
)
from tauloop.display.parts import parts_of
from tauloop.mechanism.suggestions import unknown_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches: a panel's width and least height, that of a row with words beside it, space for the
#: lowest axis and heading.
WIDTH, PANEL, ROW, FOOT, HEAD = 9.5, 2.2, 0.2, 0.5, 0.35
#: Quantities of things by name are on a logarithmic axis where they differ by more than this ratio.
DECADES = 1e3
#: Lines of one panel look different: every colour in every style.
STYLES = ("-", "--", ":", "-.")
#: Points of things by name, in their order: a value, what belongs to it.
MARKERS = "o|x<>s"
#: The axis of values names so many quantities at most; the legend has them all.
NAMED = 3


@keywords()
def plot(
    result: Tabular, *names: str, axes: Axes | Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Draw a result or a trajectory with Matplotlib.

    Without names and axes this is the picture that `--out` writes, where there is one for
    results of this kind. Else the named quantities are drawn, in SI units, with a panel for each
    unit; without names angles are in degrees.

    The figure is one of `matplotlib.pyplot`, as those of pandas and xarray: notebooks show it,
    ``plt.show()`` opens it, ``plt.close()`` frees it. With axes of yours none is made.

    Args:
        result: what a function of Tauloop has returned.
        names: of its quantities (those of `Tabular.to_xarray`); ``force`` means ``force.motor_1``
            and all its other channels. Without names all that are over the same dimension as the
            first.
        axes: where to draw: as many as there are panels.

    Returns:
        The axes, in order: ``axes[0].set_title(...)``, ``axes[0].figure.savefig(...)``.

    Raises:
        InputError: no such quantity, another number of axes than of panels, or nothing that can be
            drawn.

    Examples:
        >>> import tauloop as tl
        >>> motion = tl.plan_stroke(tl.load("five_bar"), tl.StrokeOptions(end={"x": 0.05}, time=0.5))
        >>> (axes,) = motion.plot("force")
        >>> axes.get_ylabel()
        'force [N m]'
    """
    if not names and axes is None:
        drawn = next(
            (figure for part in parts_of(result) if (figure := part.figure(result)) is not None),
            None,
        )
        if drawn is not None:
            return _shown(drawn)
    panels = _panels(result, names)
    if axes is None:
        heights, heading = [max(PANEL, ROW * panel.rows) for panel in panels], _heading(result)
        figure = blank(
            WIDTH, sum(heights) + FOOT + (HEAD if heading else 0.0), layout="constrained"
        )
        if heading:
            figure.suptitle(
                heading,
                fontsize=LARGE,
                fontweight="bold",
                color=TEXT,
                x=0.01,
                ha="left",
                parse_math=False,
            )
        grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
        axes = [figure.add_subplot(grid[k]) for k in range(len(panels))]
        figure.align_ylabels(axes)
    else:
        figure, axes = None, list(axes) if isinstance(axes, Sequence | np.ndarray) else [axes]
    if len(axes) != len(panels):
        what = f"are {len(axes)} for {len(panels)} panels: {'; '.join(panel.label for panel in panels)}"
        raise InputError.of(
            "axes", what, "give as many as there are panels, or name fewer quantities"
        )
    for panel, each in zip(panels, axes, strict=True):
        panel.draw(each)
    return tuple(axes) if figure is None else _shown(figure)


def _heading(result: Tabular) -> str:
    """What it is, in the words of its class, and of which machine; empty where that is not known."""
    machine = result.provenance.inputs.get("machine", "") if isinstance(result, Result) else ""
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(result).__name__).lower()
    return f"{machine}: {kind}" if machine else ""


def _shown(figure: Figure) -> tuple[Axes, ...]:
    """The axes of a finished figure, which pyplot, and so a notebook, then knows."""
    from matplotlib import pyplot

    pyplot.figure(figure)
    return tuple(figure.axes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Panel:
    """Quantities of one unit over the same dimensions.

    Attributes:
        unit: SI; None where it is not known.
        over: the dimension, or the two of a map, with their units.
        labels: numbers or words along each.
        lines: values, by quantity and by what tells them apart in the legend.
    """

    unit: str | None
    over: tuple[str, ...]
    labels: tuple[np.ndarray, ...]
    lines: dict[tuple[str, str], np.ndarray]

    @property
    def rows(self) -> int:
        """How many words stand beside it, one below the other."""
        return len(self.labels[0]) if _are_words(self.labels[0]) else 0

    @property
    def label(self) -> str:
        """What the axis of values is called."""
        quantities = dict.fromkeys(quantity for quantity, _ in self.lines)
        unit = "" if self.unit is None else f" [{self.unit or 1}]"
        return f"{', '.join(quantities) if len(quantities) <= NAMED else ''}{unit}".lstrip()

    @property
    def words(self) -> list[str]:
        """What tells its lines apart: their channels; of several quantities, these too."""
        is_single = len({quantity for quantity, _ in self.lines}) == 1
        return [
            rest or quantity if is_single else ".".join(filter(None, (quantity, rest)))
            for quantity, rest in self.lines
        ]

    @property
    def is_one_sample(self) -> bool:
        """Whether it is of one time or pose."""
        return len(self.over) == 1 and len(self.labels[0]) == 1 and not self.rows

    def one_sample(self) -> _Panel:
        """Of quantities at one time or in one pose: one below the other."""
        names = np.array(self.words)
        quantities = ", ".join(dict.fromkeys(quantity for quantity, _ in self.lines))
        lines = {(quantities, ""): np.concatenate(list(self.lines.values()))}
        return _Panel(unit=self.unit, over=("",), labels=(names,), lines=lines)

    def draw(self, axes: Any) -> None:
        """Draw them."""
        clean(axes)
        if len(self.over) == 2:
            self._map(axes)
            return
        for k, (word, values) in enumerate(zip(self.words, self.lines.values(), strict=True)):
            look = {"color": COLOURS[k % len(COLOURS)], "label": word, "linewidth": 1.2}
            if self.rows:
                axes.plot(
                    values, np.arange(self.rows), MARKERS[k % len(MARKERS)], markersize=5, **look
                )
            else:
                style = STYLES[k // len(COLOURS) % len(STYLES)] if len(values) > 1 else "o"
                axes.plot(*thin(self.labels[0], values), style, **look)
        value_axis, other = (axes.xaxis, axes.yaxis) if self.rows else (axes.yaxis, axes.xaxis)
        value_axis.set_label_text(self.label, fontsize=SMALL, color=TEXT)
        if self.rows:
            axes.set_ylim(self.rows - 0.5, -0.5)
            axes.set_xscale(_scale(np.concatenate(list(self.lines.values()))))
            # from zero, lest equal numbers differ by their rounding
            if axes.get_xscale() == "linear":
                axes.update_datalim([(0.0, 0.0)])
                axes.autoscale_view()
        self._mark(other, 0)
        if len(self.lines) > 1:
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(1.005, 1.0),
                fontsize=SMALL,
                labelcolor=TEXT,
                frameon=False,
            )

    def _map(self, axes: Any) -> None:
        (values,) = self.lines.values()
        # its rows go downwards; else the first dimension goes to the right
        is_matrix = self.rows > 0
        across, up = (1, 0) if is_matrix else (0, 1)
        places = [np.arange(len(x)) if _are_words(x) else x for x in self.labels]
        drawn = values if is_matrix else values.T
        shown = axes.pcolormesh(
            places[across], places[up], drawn, cmap="viridis", shading="nearest", rasterized=True
        )
        axes.figure.colorbar(shown, ax=axes).set_label(self.label, fontsize=SMALL, color=TEXT)
        axes.grid(False)
        self._mark(axes.xaxis, across)
        self._mark(axes.yaxis, up)
        if is_matrix:
            axes.invert_yaxis()

    def _mark(self, axis: Any, k: int) -> None:
        """The labels of a dimension at an axis."""
        if _are_words(self.labels[k]):
            axis.set_ticks(np.arange(len(self.labels[k])), self.labels[k], fontsize=SMALL)
        else:
            axis.set_label_text(self.over[k], fontsize=NORMAL, color=TEXT)


def _are_words(labels: np.ndarray) -> bool:
    return labels.dtype.kind == "U"


def _scale(values: np.ndarray) -> str:
    """Of an axis of numbers that belong to things by name."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
    is_wide = len(sizes) > 0 and sizes.max() > DECADES * sizes.min()
    return "log" if is_wide and not (values <= 0.0).any() else "linear"


def _panels(result: Tabular, names: tuple[str, ...]) -> list[_Panel]:
    """What is drawn, by dimension and unit."""
    variables = list(result.variables())
    labels = {variable.name: variable for variable in variables if variable.is_label}
    drawn = [(v, v.array()) for v in variables if v.over and not v.is_label]
    drawn = [(v, values) for v, values in drawn if values.size and not _are_words(values)]
    if not names:
        drawn = [_turned(v, values) for v, values in drawn]
    if not drawn:
        raise InputError.of(
            type(result).__name__,
            "holds no numbers to draw",
            "look at its attributes, or `as_dict()`",
        )
    known = dict.fromkeys(name for v, _ in drawn for name in (v.quantity, v.name))
    remedy = f"choose among {', '.join(known)}"
    InputError.raise_if_any(
        unknown_names(names, known, "is no quantity that can be drawn", remedy=remedy)
    )
    panels: dict[object, _Panel] = {}
    for variable, values in drawn:
        if (
            {variable.name, variable.quantity} & {*names}
            if names
            else variable.over == drawn[0][0].over
        ):
            for key, panel in _parts(variable, values, labels):
                panels.setdefault(key, panel).lines.update(panel.lines)
    return [panel.one_sample() if panel.is_one_sample else panel for panel in panels.values()]


def _turned(variable: Variable, values: np.ndarray) -> tuple[Variable, np.ndarray]:
    """A quantity with its angles in degrees."""
    if not isinstance(variable.unit, str):
        return variable, values
    unit, values = in_degrees(variable.unit, values)
    return replace(variable, unit=unit), values


def _parts(
    variable: Variable, values: np.ndarray, labels: Mapping[str, Variable]
) -> Iterator[tuple[object, _Panel]]:
    """A quantity by the panels that it belongs to: those of its unit, or a map of its own.

    Raises:
        InputError: it has more than two dimensions.
    """
    over, rest = variable.over, variable.name.partition(".")[2]
    if len(over) > 2:
        what = f"is over {', '.join(over)}"
        raise InputError.of(
            variable.name, what, "draw a section of it: `to_xarray()[name].sel(...).plot()`"
        )
    unit = variable.unit
    units = unit if isinstance(unit, tuple) else (unit,) * len(values)
    ticks: list[np.ndarray] = [
        labels[d].array() if d in labels else np.arange(n)
        for d, n in zip(over, values.shape, strict=True)
    ]
    names = tuple(f"{d} [{labels[d].unit}]" if d in labels and labels[d].unit else d for d in over)
    if (
        len(over) == 2
        and not _are_words(ticks[1])
        and (_are_words(ticks[0]) or over[0] not in labels)
    ):
        for name, line in zip(ticks[0], values, strict=True):
            lines = {(variable.quantity, ", ".join(filter(None, (rest, str(name))))): line}
            yield (
                (over, units[0]),
                _Panel(unit=units[0], over=names[1:], labels=tuple(ticks[1:]), lines=lines),
            )
        return
    for unit in dict.fromkeys(units):
        own = np.array([each == unit for each in units])
        key = (over, unit, variable.name if len(over) == 2 else "")
        lines = {(variable.quantity, rest): values[own]}
        yield key, _Panel(unit=unit, over=names, labels=(ticks[0][own], *ticks[1:]), lines=lines)
