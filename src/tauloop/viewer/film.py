"""Animations of a machine as files: an HTML page that plays in any browser, a GIF, or an MP4."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.files import write_file, write_text
from tauloop.common.progress import Progress, Stages
from tauloop.display.palette import LARGE, RESIDUAL, TEXT
from tauloop.display.renderers.figure_style import blank
from tauloop.display.renderers.machine_drawing import set_limits
from tauloop.display.renderers.solid_drawing import SolidDrawing
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.model import Model

if TYPE_CHECKING:  # slow to import, and the viewer in the browser needs no figures
    from matplotlib.figure import Figure

#: Shortest duration of an animation, s. Shorter motions are slowed down, by a factor in the
#: heading.
MIN_FILM_DURATION = 4.0
#: Frames per second.
FRAME_RATE = 25.0
#: Maximum number of frames.
MAX_FRAMES = 300
#: File extensions of the formats.
FILM_EXTENSIONS = (".html", ".gif", ".mp4")


def film_problem(path: Path) -> Problem | None:
    """Return the problem of an unknown extension, or of an MP4 without ffmpeg; else None."""
    extension = path.suffix.lower()
    if extension not in FILM_EXTENSIONS:
        return Problem(
            where=str(path),
            what=f"unknown file extension {extension!r}",
            remedy=f"choose one of {', '.join(FILM_EXTENSIONS)}",
        )
    if extension == ".mp4" and ffmpeg() is None:
        remedy = "pip install 'tauloop[film]', or write .html or .gif"
        return Problem(
            where=str(path), what="needs ffmpeg, which is not on the path", remedy=remedy
        )
    return None


def ffmpeg() -> str | None:
    """Return the path of ffmpeg, from PATH or the extra `film`; None if it is not installed."""
    if on_path := shutil.which("ffmpeg"):
        return on_path
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        return None
    try:
        return str(get_ffmpeg_exe())
    except RuntimeError:  # the package has no ffmpeg for this platform
        return None


def save_animation(
    model: Model,
    q: np.ndarray,
    time: np.ndarray,
    path: str | Path,
    *,
    title: str = "",
    progress: Progress | None = None,
) -> Path:
    """Write a motion as an animation.

    An HTML page is one file that needs no network and no Python; the reader can play, slow down,
    rotate and zoom. GIF and MP4 show the machine from one side.

    Args:
        model: the machine.
        q: coordinates at N states (N, n_q).
        time: times of the states (N,), s.
        path: the file; its extension determines the format.
        title: heading; default: the machine's name.
        progress: called with the number of completed frames and the number of all frames.

    Returns:
        The path.

    Raises:
        InputError: an unknown file extension, an MP4 without ffmpeg, times that do not increase, or
            a folder that cannot be written.
        EngineError: viser or trimesh is not installed.
    """
    path = Path(path)
    if problem := film_problem(path):
        raise InputError(problem)
    if path.suffix.lower() == ".html":
        return write_text(path, film_page(model, q, time, title=title, progress=progress))
    states, duration, heading = _frame_states(model, q, time, title)
    geometry = machine_geometry(model, q[states])
    draw = partial(
        _write_pictures,
        model,
        geometry,
        heading,
        extension=path.suffix,
        duration=duration,
        progress=progress,
    )
    return write_file(path, draw)


def film_page(
    model: Model,
    q: np.ndarray,
    time: np.ndarray,
    *,
    title: str = "",
    progress: Progress | None = None,
) -> str:
    """Return the text of an animated HTML page; see `save_animation`."""
    from tauloop.viewer.recording import page

    states, duration, heading = _frame_states(model, q, time, title)
    return page(
        model,
        machine_geometry(model, q[states]),
        np.linspace(0.0, duration, len(states)),
        heading,
        progress,
    )


def _frame_states(
    model: Model, q: np.ndarray, time: np.ndarray, title: str
) -> tuple[np.ndarray, float, str]:
    """Return the index of the state of each frame, the duration (s), and a heading."""
    time = np.asarray(time, dtype=float)
    if time.shape != (len(q),) or len(time) < 2 or not (np.diff(time) > 0).all():
        message = f"must be {len(q)} increasing numbers, at least two"
        raise InputError.of("time", message, "give one time for each state")
    duration = float(time[-1] - time[0])
    film_duration = max(duration, MIN_FILM_DURATION)
    count = min(round(FRAME_RATE * film_duration), MAX_FRAMES)
    times = np.linspace(time[0], time[-1], count)
    states = np.asarray(np.searchsorted(0.5 * (time[1:] + time[:-1]), times))
    slow_motion = ""
    if film_duration != duration:
        slow_motion = f", {film_duration / duration:.3g} times slower"
    heading = title or model.mechanism.name
    if np.ptp(q, axis=0).any():
        heading += f": {duration:.3g} s{slow_motion}"
    return states, film_duration, heading


def still(model: Model, q: np.ndarray) -> bytes:
    """Return a picture (PNG) of a machine at coordinates (n_q,), in the style of animations."""
    figure, draw = _empty_figure(model, machine_geometry(model, q[None]), "")
    draw(0)
    picture = BytesIO()
    # The file does not contain software versions, so that equal pictures give equal files.
    figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
    return picture.getvalue()


def _write_pictures(
    model: Model,
    geometry: MachineGeometry,
    heading: str,
    path: Path,
    *,
    extension: str,
    duration: float,
    progress: Progress | None,
) -> None:
    """Write the frames of a motion as GIF or MP4."""
    figure, draw = _empty_figure(model, geometry, heading)
    count = len(geometry)
    frame_rate = count / duration
    write_frames(figure, draw, count, frame_rate, path, extension=extension, progress=progress)


def write_frames(
    figure: Figure,
    draw: Callable[[int], None],
    count: int,
    frame_rate: float,
    path: Path,
    *,
    extension: str,
    progress: Progress | None,
) -> None:
    """Write the frames of a GIF or MP4.

    Args:
        figure: the figure into which frames are drawn.
        draw: function that draws the frame with an index.
        count: number of frames.
        frame_rate: frames per second.
        path: the file.
        extension: file extension that selects the format.
        progress: called with the number of completed frames and the number of all frames.
    """
    from matplotlib import rc_context
    from matplotlib.animation import FFMpegWriter, PillowWriter

    writer = (
        PillowWriter(fps=round(frame_rate))
        if extension.lower() == ".gif"
        else FFMpegWriter(fps=round(frame_rate))
    )
    # Matplotlib's writers need the extension, which a temporary file does not have.
    path_with_extension = path.with_suffix(extension)
    draw(0)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # otherwise the first frame would be shifted by a pixel
    with (
        rc_context({"animation.ffmpeg_path": ffmpeg() or ""}),
        writer.saving(figure, str(path_with_extension), dpi=80),
    ):
        for state in Stages(progress, count).over(range(count)):
            draw(state)
            writer.grab_frame()
    if path_with_extension != path:
        path_with_extension.replace(path)


def _empty_figure(
    model: Model, geometry: MachineGeometry, heading: str
) -> tuple[Figure, Callable[[int], None]]:
    """Return an empty figure, and a function that draws the state with a given index into it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    low, high = geometry.extent
    middle = (low + high) / 2
    half_edge = 0.56 * geometry.size
    figure = blank(5.6, 5.4, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(heading, fontsize=LARGE, color=TEXT, parse_math=False)
    axes: Any = figure.add_subplot(projection="3d")
    solids = SolidDrawing(model, geometry)

    def draw(state: int) -> None:
        axes.clear()
        solids.draw(axes, state)
        axes.plot(*geometry.tool.T, color=RESIDUAL, linewidth=0.8)
        set_limits(axes, middle, half_edge, view=machine_view(geometry.plane))

    return figure, draw


def machine_view(plane: tuple[int, ...]) -> tuple[float, float] | None:
    """Return elevation and azimuth (deg) that look onto a plane; None for a machine in space."""
    views: dict[tuple[int, ...], tuple[float, float]]
    views = {(0, 1): (90.0, -90.0), (0, 2): (0.0, -90.0), (1, 2): (0.0, 0.0)}
    return views.get(plane)
