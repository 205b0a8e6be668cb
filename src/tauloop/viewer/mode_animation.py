"""Animations of the modes of an elastic machine: a page with a choice of the mode, GIF, or MP4."""

from __future__ import annotations

import base64
import html
import json
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.files import write_file, write_text
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.display.palette import LARGE, TEXT
from tauloop.display.renderers.figure_style import blank
from tauloop.display.renderers.machine_drawing import set_limits
from tauloop.display.renderers.solid_drawing import LIGHT, ROUND_CORNERS, SHADE
from tauloop.elasticity.vibrations.mode_shapes import ModeShapes
from tauloop.elasticity.vibrations.vibration import Vibration
from tauloop.geometry import frames, machine_solids, parts
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.viewer.film import film_problem, machine_view, write_frames

#: Largest drawn displacement, as a fraction of the machine's largest dimension.
AMPLITUDE = 0.05
#: Number of frames of one period of an animation.
PERIOD_FRAMES = 30
#: Frames per second.
FRAME_RATE = 20.0
#: Longest edge of a triangle, as a fraction of the machine's largest dimension. Longer triangles
#: are divided, so that they can bend.
LONGEST_EDGE = 0.06
#: Largest signed integer of 16 bits.
FULL_SCALE = 32767


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModeMesh:
    """All solids of a machine at one pose, and their displacements in the modes.

    Attributes:
        vertices: positions of the vertices at rest (v, 3), m.
        faces: indices of the vertices of each triangle (f, 3).
        colors: color of each triangle (f, 3), from 0 to 1.
        displacement: complex displacements of the vertices in each mode (v, 3, m); the largest
            displacement of a mode is 1.
        size: largest dimension of the machine, m.
        view: elevation and azimuth of the view of a planar machine, deg; None in space.
    """

    vertices: np.ndarray
    faces: np.ndarray
    colors: np.ndarray
    displacement: np.ndarray
    size: float
    view: tuple[float, float] | None

    def at_phase(self, mode: int, phase: float, amplitude: float = 1.0) -> np.ndarray:
        """Return the vertices (v, 3) at a phase of a mode, m.

        Args:
            mode: index of the mode.
            phase: phase, rad.
            amplitude: factor on the drawn amplitude.
        """
        displacement = (self.displacement[:, :, mode] * np.exp(1j * phase)).real
        return np.asarray(self.vertices + amplitude * AMPLITUDE * self.size * displacement)


def mode_mesh(result: Vibration, pose: int = 0) -> ModeMesh:
    """Return the solids of a machine with their displacements in its modes.

    Args:
        result: modes of the machine.
        pose: index of the pose.

    Raises:
        EngineError: trimesh is not installed.
        InputError: the file of a mesh is missing, damaged or too large.
    """
    model = result.model
    geometry = machine_geometry(model, result.q[pose][None])
    poses = frames(model.mechanism, geometry, machine_geometry(model, model.assembly.q))
    shapes = ModeShapes(result.modal, pose)
    vertices, faces, colors, displacement = [], [], [], []
    first = 0
    for (owner, color), mesh in parts(machine_solids(model), ROUND_CORNERS).items():
        pose_at_rest = poses[owner].at(0)
        points = mesh.vertices @ pose_at_rest.rotation.T + pose_at_rest.position
        points, triangles = _subdivided(points, mesh.faces, LONGEST_EDGE * geometry.size)
        vertices.append(points)
        faces.append(triangles + first)
        first += len(points)
        colors.append(np.broadcast_to(to_rgb(color), (len(triangles), 3)))
        displacement.append(shapes.displacement(owner, points))
    displacements = np.concatenate(displacement)
    largest = np.linalg.norm(np.abs(displacements), axis=1).max(axis=0, initial=0.0)
    return ModeMesh(
        vertices=np.concatenate(vertices),
        faces=np.concatenate(faces),
        colors=np.concatenate(colors),
        displacement=displacements / np.where(largest > 0.0, largest, 1.0),
        size=float(geometry.size),
        view=machine_view(geometry.plane),
    )


def _subdivided(
    vertices: np.ndarray, faces: np.ndarray, longest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and faces of a mesh; triangles are halved until no edge exceeds `longest`."""
    while True:
        corners = vertices[faces]
        edges = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)
        is_too_long = edges.max(axis=1) > longest
        if not is_too_long.any():
            return vertices, faces
        rows = np.flatnonzero(is_too_long)
        # Edge k is from vertex k to vertex k + 1, so the longest edge is from a to b.
        k = np.argmax(edges[rows], axis=1)
        a = faces[rows, k]
        b = faces[rows, (k + 1) % 3]
        c = faces[rows, (k + 2) % 3]
        middle = len(vertices) + np.arange(len(rows))
        vertices = np.concatenate([vertices, 0.5 * (vertices[a] + vertices[b])])
        halves = [np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)]
        faces = np.concatenate([faces[~is_too_long], *halves])


def save_modes(
    result: Vibration,
    path: str | Path,
    *,
    mode: int = 1,
    pose: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write an animation of modes with an exaggerated amplitude.

    An HTML page is one file that needs no network; the reader chooses the mode and the amplitude,
    and can rotate the machine. GIF and MP4 show one mode.

    Args:
        result: the modes.
        path: the file; its extension determines the format.
        mode: number of the mode that is shown first, counted from 1.
        pose: index of the pose.
        progress: called with the number of completed frames and the number of all frames.

    Returns:
        The path.

    Raises:
        InputError: an unknown file extension, an MP4 without ffmpeg, or a mode that was not
            calculated.
        EngineError: trimesh is not installed.
    """
    path = Path(path)
    if problem := film_problem(path):
        raise InputError(problem)
    count = result.frequency.shape[1]
    if not 1 <= mode <= count:
        what = f"is {mode}, but there are {counted(count, 'mode')}"
        raise InputError.of("mode", what, f"give 1 to {count}")
    mesh = mode_mesh(result, pose)
    if path.suffix.lower() == ".html":
        return write_text(path, mode_page(result, mesh, mode, pose))
    return write_file(
        path,
        partial(_write_film, result, mesh, mode, pose, extension=path.suffix, progress=progress),
    )


def mode_titles(result: Vibration, pose: int = 0) -> tuple[str, ...]:
    """Return a title for each mode, with number, frequency and damping ratio."""
    titles = []
    for k, frequency in enumerate(result.frequency[pose], start=1):
        title = f"mode {k}: {frequency:.4g} Hz"
        if result.damping_ratio is not None:
            title += f", damping ratio {result.damping_ratio[pose, k - 1]:.3g}"
        titles.append(title)
    return tuple(titles)


def mode_page(result: Vibration, mesh: ModeMesh, mode: int, pose: int) -> str:
    """Return the text of a page with animated modes; see `save_modes`."""
    modes = np.moveaxis(mesh.displacement, -1, 0)
    is_complex = bool(np.iscomplexobj(modes) and np.abs(modes.imag).max(initial=0.0) > 0.0)
    imaginary_parts = modes.imag if is_complex else modes.imag[:0]
    center = 0.5 * (mesh.vertices.min(axis=0) + mesh.vertices.max(axis=0))
    data = {
        "vertices": _base64(mesh.vertices - center, np.float32),
        "faces": _base64(mesh.faces, np.uint32),
        "colors": _base64(255.0 * mesh.colors, np.uint8),
        "real": [_base64(FULL_SCALE * row, np.int16) for row in modes.real],
        "imaginary": [_base64(FULL_SCALE * row, np.int16) for row in imaginary_parts],
        "scale": AMPLITUDE * mesh.size / FULL_SCALE,
        "size": mesh.size,
        "view": mesh.view or (25.0, -55.0),
        "titles": mode_titles(result, pose),
        "mode": mode - 1,
        "light": (LIGHT / np.linalg.norm(LIGHT)).tolist(),
        "shade": SHADE,
    }
    folder = files("tauloop.viewer") / "pages"
    text = (folder / "modes.html").read_text(encoding="utf-8")
    name = html.escape(f"Modes of {result.model.mechanism.name}")
    # "</" would end the script; JSON allows "<\/" for it.
    json_text = json.dumps(data).replace("</", "<\\/")
    return text.replace("{{title}}", name).replace("{{data}}", json_text)


def _base64(values: np.ndarray, number_type: type) -> str:
    """Return numbers of a type as little-endian bytes in base64."""
    numbers = np.rint(values) if np.issubdtype(number_type, np.integer) else values
    array = np.ascontiguousarray(numbers, dtype=np.dtype(number_type).newbyteorder("<"))
    return base64.b64encode(array.tobytes()).decode("ascii")


def _write_film(
    result: Vibration,
    mesh: ModeMesh,
    mode: int,
    pose: int,
    path: Path,
    *,
    extension: str,
    progress: Progress | None,
) -> None:
    """Write one period of a mode as GIF or MP4."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    figure = blank(5.6, 5.4, layout="constrained")
    FigureCanvasAgg(figure)
    heading = f"{result.model.mechanism.name}, {mode_titles(result, pose)[mode - 1]}"
    figure.suptitle(heading, fontsize=LARGE, color=TEXT, parse_math=False)
    axes: Any = figure.add_subplot(projection="3d")
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)

    def draw(state: int) -> None:
        triangles = mesh.at_phase(mode - 1, 2.0 * np.pi * state / PERIOD_FRAMES)[mesh.faces]
        colors = shaded_colors(triangles, mesh.colors)
        axes.clear()
        axes.add_collection3d(
            Poly3DCollection(triangles, facecolors=colors, edgecolors=colors, linewidths=0.1)
        )
        set_limits(axes, (low + high) / 2, 0.56 * mesh.size, view=mesh.view)

    write_frames(
        figure, draw, PERIOD_FRAMES, FRAME_RATE, path, extension=extension, progress=progress
    )


def shaded_colors(triangles: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """Return the colors (f, 3) of triangles (f, 3, 3), shaded by the direction of the light."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    brightness = SHADE + (1.0 - SHADE) * np.clip(normals @ LIGHT, 0.0, 1.0)
    return np.asarray(brightness[:, None] * colors)
