"""What all figures share: colours, type sizes, thinning of long records, and how they become files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.files import write_file

if TYPE_CHECKING:  # half a second that a command without a figure need not wait for
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Told apart by lightness as well as by hue, so that they survive grey printing and colour
#: blindness.
MEASURED, PREDICTED, RESIDUAL = "#9db9d9", "#16324f", "#c8553d"
#: Of frames and grids, of words, and behind what is held out.
FAINT, TEXT, TINT = "#c9ced6", "#30363d", "#f6f3ea"
#: Sizes of words, points.
SMALL, NORMAL, LARGE = 8.0, 9.0, 12.0
#: Lines of one panel; what has more shows the first.
COLOURS = (PREDICTED, RESIDUAL, "#6a9a5b", MEASURED, "#8a6fb0", "#b08a3a")

#: A record is drawn by the extremes of at most this many stretches: finer than the pixels of a
#: panel.
STRETCHES = 1500


def blank(
    width: float,
    height: float,
    title: str = "",
    summary: str = "",
    *,
    left: float = 0.09,
    layout: Any = None,
) -> Figure:
    """An empty figure, inches, with its heading where that is not made by a layout."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    if title:
        figure.text(left, 1 - 0.30 / height, title, fontsize=LARGE, fontweight="bold", color=TEXT)
        figure.text(left, 1 - 0.53 / height, summary, fontsize=NORMAL, color=TEXT)
    return figure


def thin(
    time: np.ndarray, values: np.ndarray, stretches: int = STRETCHES
) -> tuple[np.ndarray, np.ndarray]:
    """Samples of a long record (N,) or (N, n) with the smallest and largest of each stretch, in order of time."""
    length = -(-len(time) // stretches)
    if length <= 2:
        return time, values
    whole = len(time) // length * length
    blocks = values[:whole].reshape(whole // length, length, -1)
    ends = np.concatenate([blocks.argmin(axis=1), blocks.argmax(axis=1)], axis=1)
    rows = ends + np.arange(0, whole, length)[:, None]
    kept = np.unique(np.concatenate([rows.ravel(), np.arange(whole, len(time))]))
    return time[kept], values[kept]


def in_degrees(unit: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """A unit and values (...) in it as tables print them: angles, their rates and accelerations in degrees."""
    if unit == "rad" or unit.startswith("rad/"):
        return unit.replace("rad", "deg"), np.degrees(values)
    return unit, values


def clean(axes: Axes) -> None:
    """Quiet axes: no box, fine ticks, a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=SMALL, color=FAINT, labelcolor=TEXT, length=3)
    axes.grid(True, color=FAINT, linewidth=0.4, alpha=0.7)
    axes.set_axisbelow(True)


def unknown_figure_ending(path: str | Path) -> Problem | None:
    """What is wrong with the ending of a file that is to hold a figure."""
    from matplotlib.backend_bases import FigureCanvasBase

    known, ending = (
        FigureCanvasBase.get_supported_filetypes(),
        Path(path).suffix.lstrip(".").lower(),
    )
    if ending in known:
        return None
    remedy = f"choose one of {', '.join(sorted(known))}"
    return Problem(where=str(path), what=f"unknown ending {ending!r}", remedy=remedy)


def _take_literally(figure: Figure) -> None:
    """Names from files are no formulae, whatever dollar signs they have; ticks write their powers of ten as such."""
    from matplotlib.axis import Tick
    from matplotlib.text import Text

    ticks = {id(text) for tick in figure.findobj(Tick) for text in tick.findobj(Text)}
    for text in figure.findobj(Text):
        if id(text) not in ticks:
            text.set_parse_math(False)


def save_figure(figure: Figure, path: str | Path, *, dpi: float = 130.0) -> Path:
    """Write a figure, in the format of the file's ending, beside the file first and then renamed.

    Raises:
        InputError: the ending is of no known format, or the folder cannot be written.
    """
    if problem := unknown_figure_ending(path):
        raise InputError(problem)
    _take_literally(figure)
    ending = Path(path).suffix.lstrip(".").lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)

    def write(temporary: Path) -> None:
        from matplotlib import rc_context

        # else an SVG's names are random, and equal figures differ
        with rc_context({"svg.hashsalt": "tauloop"}):
            figure.savefig(temporary, dpi=dpi, format=ending, metadata=undated)

    return write_file(path, write)
