"""`plot`: the figure of a result, or plots of its quantities in the user's axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import Tabular
from tauloop.common.errors import InputError
from tauloop.common.keywords import keywords
from tauloop.display.parts import parts_of
from tauloop.display.plots.quantity_plots import quantity_plots
from tauloop.display.renderers.matplotlib_renderer import draw_plot, plots_figure
from tauloop.display.titles import result_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@keywords()
def plot(
    result: Tabular, *names: str, axes: Axes | Sequence[Axes] | None = None
) -> tuple[Axes, ...]:
    """Draw a result or a trajectory with Matplotlib.

    Without names and axes, the figure is the one that commands write with `--out`, if results of
    this class have one. Otherwise the named quantities are drawn in SI units, with a panel for each
    unit. Without names, all quantities over the dimension of the first one are drawn, with angles
    in degrees.

    The figure is registered with `matplotlib.pyplot`, as in pandas and xarray: notebooks show it,
    ``plt.show()`` opens it, ``plt.close()`` frees it. With your own axes, no figure is created.

    Args:
        result: result of a function of Tauloop.
        names: names of quantities (those of `Tabular.to_xarray`); ``force`` stands for all its
            channels, such as ``force.motor_1``.
        axes: axes to draw into, one for each panel.

    Returns:
        The axes, in order: ``axes[0].set_title(...)``, ``axes[0].figure.savefig(...)``.

    Raises:
        InputError: an unknown quantity, a wrong number of axes, or nothing that can be drawn.

    Examples:
        >>> import tauloop as tl
        >>> motion = tl.plan_stroke("five_bar", end={"x": 0.05}, duration=0.5)
        >>> (axes,) = motion.plot("force")
        >>> axes.get_ylabel()
        'force [N m]'
    """
    if not names and axes is None:
        for part in parts_of(result):
            figure = part.figure(result)
            if figure is not None:
                return _register(figure)
    plots = quantity_plots(result, names)
    if axes is None:
        return _register(plots_figure(result_title(result), plots))
    panels_axes = list(axes) if isinstance(axes, Sequence | np.ndarray) else [axes]
    if not all(hasattr(item, "plot") for item in panels_axes):
        raise InputError.of("axes", f"are {axes!r:.80}", "give Axes of Matplotlib")
    if len(panels_axes) != len(plots):
        count_text = counted(len(plots), "panel")
        what = f"are {len(panels_axes)} for {count_text}: {'; '.join(panel.y for panel in plots)}"
        raise InputError.of("axes", what, "give one for each panel, or name fewer quantities")
    for panel, panel_axes in zip(plots, panels_axes, strict=True):
        draw_plot(panel_axes, panel)
    return tuple(panels_axes)


def _register(figure: Figure) -> tuple[Axes, ...]:
    """Register a figure with pyplot, so that notebooks show it, and return its axes."""
    from matplotlib import pyplot

    pyplot.figure(figure)
    return tuple(figure.axes)
