"""A machine in motion as a file: a page that plays and turns in any browser, a GIF, or an MP4."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.errors import InputError, Problem
from tauloop.files import write_file, write_text
from tauloop.mechanism.model import BASE
from tauloop.report.figures import FAINT, LARGE, PREDICTED, RESIDUAL, TEXT, blank
from tauloop.report.machine_figure import LINES, draw_machine, frame

if TYPE_CHECKING:
    from tauloop.kinematics.machine_geometry import MachineGeometry

#: A film lasts so long at least, s: quick motions are slowed down, and say so. So many pictures a second, and at most.
SHORTEST, RATE, MOST = 4.0, 25.0, 300
#: Coordinates are whole numbers of this share of the machine's size: finer than a pixel.
FINENESS = 1e-4
ENDINGS = (".html", ".gif", ".mp4")


def film_problem(path: Path) -> Problem | None:
    """Why a file of this name cannot become a film: its ending, or no ffmpeg for an MP4."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        return Problem(where=str(path), what=f"unknown ending {ending!r}", remedy=f"choose one of {', '.join(ENDINGS)}")
    if ending == ".mp4":
        if ffmpeg() is None:
            remedy = "pip install 'tauloop[film]', or write .html or .gif"
            return Problem(where=str(path), what="needs ffmpeg, which is not on the path", remedy=remedy)
    return None


def ffmpeg() -> str | None:
    """The program that writes MP4: on the path, or of the extra `film`; None without either."""
    if on_path := shutil.which("ffmpeg"):
        return on_path
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        return None
    try:
        return str(get_ffmpeg_exe())
    except RuntimeError:  # it brings none for this kind of computer
        return None


def save_animation(geometry: MachineGeometry, time: np.ndarray, path: str | Path, *, title: str) -> Path:
    """Write a motion as a film.

    A page (``.html``) is one file that needs no network: it plays, is slowed, turned and zoomed. GIF and MP4 show the
    machine from one side.

    Args:
        geometry: the machine at N states, as of `tauloop.view`.
        time: of the states (N,), s.
        path: the file; its ending says which kind.
        title: heading.

    Raises:
        InputError: an unknown ending, an MP4 without ffmpeg, times that do not increase, or a folder that cannot be
            written.
    """
    path = Path(path)
    if problem := film_problem(path):
        raise InputError(problem)
    time = np.asarray(time, dtype=float)
    if time.shape != (len(geometry),) or len(time) < 2 or not (np.diff(time) > 0).all():
        what = f"are no {len(geometry)} increasing numbers, at least two"
        raise InputError.of("time", what, "one for each state of the geometry")
    duration = float(time[-1] - time[0])
    lasts = max(duration, SHORTEST)
    shown = np.linspace(time[0], time[-1], min(round(RATE * lasts), MOST))
    states = np.abs(np.searchsorted(0.5 * (time[1:] + time[:-1]), shown))
    slower = "" if lasts == duration else f", {lasts / duration:.3g} times slower"
    heading = f"{title}: {duration:.3g} s{slower}"
    if path.suffix.lower() == ".html":
        return write_text(path, _page(geometry, states, heading, duration, lasts))
    return write_file(path, lambda beside: _film(geometry, states, heading, beside, path.suffix, lasts))


def _page(geometry: MachineGeometry, states: np.ndarray, heading: str, duration: float, lasts: float) -> str:
    """The page: a template of ours with the motion as JSON, in which no text can end the script."""
    low, high = geometry.extent
    scale, middle = FINENESS * geometry.size, (low + high) / 2

    def whole(points: np.ndarray) -> Any:
        return np.round((points - middle) / scale).astype(int).reshape(len(points), -1).tolist()

    lines, faces, dots = _parts(geometry, states)
    film = {
        "title": heading,
        "duration": duration,
        "lasts": lasts,
        "unit": FINENESS,
        "plane": list(geometry.plane),
        "path": whole(geometry.tool[states]),
        **{
            kind: {"looks": [look for look, _ in parts], "places": whole(np.stack([p for _, p in parts], axis=1))}
            for kind, parts in (("lines", lines), ("faces", faces), ("dots", dots))
            if parts
        },
    }
    text = json.dumps(film, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return files("tauloop.report").joinpath("animation.html").read_text(encoding="utf-8").replace("FILM", text, 1)


Part = tuple[list[Any], np.ndarray]


def _parts(geometry: MachineGeometry, states: np.ndarray) -> tuple[list[Part], list[Part], list[Part]]:
    """Lines (F, 2, 3) with colour and width, triangles (F, 3, 3) and dots (F, 3) with colour, at F states."""
    lines: list[Part] = []
    faces: list[Part] = []
    dots: list[Part] = []
    shape = geometry.shape
    driven = {axis.rod for axis in shape.drives}
    for segment, ends in zip(shape.segments, geometry.segments[states].swapaxes(0, 1), strict=True):
        look = LINES["driven rod" if segment.name in driven else segment.kind]
        lines.append(([look["color"], look["linewidth"]], ends))
    for body in shape.bodies:
        points, arcs = geometry.points(body.name)[states], geometry.arcs(body.name)[states]
        colour = TEXT if body.name == BASE else RESIDUAL if body.name == shape.platform else PREDICTED
        dots += [([colour], place) for place in points.swapaxes(0, 1)]
        is_base = body.name == BASE
        lines += [([FAINT, 1.0] if is_base else [colour, 2.4], points[:, edge]) for edge in body.edges]
        if not is_base:
            faces += [([colour], points[:, face]) for face in body.faces]
        lines += [([colour, 1.0 if is_base else 2.4], piece) for piece in arcs.swapaxes(0, 1)]
    dots.append(([RESIDUAL], geometry.tool[states]))
    return lines, faces, dots


def _film(geometry: MachineGeometry, states: np.ndarray, heading: str, path: Path, ending: str, lasts: float) -> None:
    """Pictures one after the other, by Matplotlib's writers."""
    from matplotlib import rc_context
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    low, high = geometry.extent
    middle, half = (low + high) / 2, 0.56 * geometry.size
    plane = geometry.plane
    figure = blank(5.6, 5.4, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(heading, fontsize=LARGE, color=TEXT, parse_math=False)
    axes: Any = figure.add_subplot(projection="3d") if len(plane) == 3 else figure.add_subplot()
    rate = len(states) / lasts
    writer = PillowWriter(fps=round(rate)) if ending.lower() == ".gif" else FFMpegWriter(fps=round(rate))
    whole_path = path.with_suffix(ending)

    def draw(state: int) -> None:
        axes.clear()
        draw_machine(axes, geometry, state, plane)
        axes.plot(*geometry.tool[:, list(plane)].T, color=RESIDUAL, linewidth=0.8)
        frame(axes, middle, half, plane)

    draw(int(states[0]))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # or the first picture would lie a pixel beside the others
    with rc_context({"animation.ffmpeg_path": ffmpeg() or ""}), writer.saving(figure, str(whole_path), dpi=80):
        for state in states:
            draw(int(state))
            writer.grab_frame()
    if whole_path != path:
        whole_path.replace(path)
