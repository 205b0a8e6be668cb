"""Common style of Matplotlib figures: empty figures, axes, and writing of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tauloop.common.errors import InputError, Problem
from tauloop.common.files import write_file
from tauloop.display.palette import FAINT, LARGE, NORMAL, SMALL, TEXT

if TYPE_CHECKING:  # the import takes half a second, and most commands draw no figure
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def blank(
    width: float,
    height: float,
    title: str = "",
    summary: str = "",
    *,
    left: float = 0.09,
    layout: Any = None,
) -> Figure:
    """Return an empty figure.

    Args:
        width, height: size, inches.
        title: heading; empty if a layout places the heading.
        summary: line below the heading.
        left: position of the left end of heading and summary, as a fraction of the width.
        layout: layout engine of Matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    if title:
        figure.text(left, 1 - 0.30 / height, title, fontsize=LARGE, fontweight="bold", color=TEXT)
        figure.text(left, 1 - 0.53 / height, summary, fontsize=NORMAL, color=TEXT)
    return figure


def clean(axes: Axes) -> None:
    """Give axes fine ticks and a faint grid, without a box."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=SMALL, color=FAINT, labelcolor=TEXT, length=3)
    axes.grid(True, color=FAINT, linewidth=0.4, alpha=0.7)
    axes.set_axisbelow(True)


def unknown_figure_extension(path: str | Path) -> Problem | None:
    """Return the problem if the extension of a figure's file is not supported, or None."""
    from matplotlib.backend_bases import FigureCanvasBase

    supported = FigureCanvasBase.get_supported_filetypes()
    extension = Path(path).suffix.lstrip(".").lower()
    if extension in supported:
        return None
    remedy = f"choose one of {', '.join(sorted(supported))}"
    return Problem(where=str(path), what=f"unknown file extension {extension!r}", remedy=remedy)


def _disable_mathtext(figure: Figure) -> None:
    """Disable mathtext except in tick labels, because names may contain dollar signs."""
    from matplotlib.axis import Tick
    from matplotlib.text import Text

    tick_labels = {id(text) for tick in figure.findobj(Tick) for text in tick.findobj(Text)}
    for text in figure.findobj(Text):
        if id(text) not in tick_labels:
            text.set_parse_math(False)


def save_figure(figure: Figure, path: str | Path, *, dpi: float = 130.0) -> Path:
    """Write a figure in the format of the file's extension, through a temporary file.

    Returns:
        The path.

    Raises:
        InputError: the extension is not supported, or the folder cannot be written.
    """
    if problem := unknown_figure_extension(path):
        raise InputError(problem)
    _disable_mathtext(figure)
    extension = Path(path).suffix.lstrip(".").lower()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(extension)

    def write(temporary: Path) -> None:
        from matplotlib import rc_context

        # Otherwise an SVG has random names, and equal figures give different files.
        with rc_context({"svg.hashsalt": "tauloop"}):
            figure.savefig(temporary, dpi=dpi, format=extension, metadata=metadata)

    return write_file(path, write)
