"""View of a machine in one call: a pose, or a motion from a table."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tauloop.common.datasets import TIME_DIMENSIONS, Variable, columns, time_axis
from tauloop.common.errors import EngineError, InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, Status, provenance
from tauloop.display.renderers.machine_drawing import machine_figure
from tauloop.display.renderers.solid_drawing import solid_drawing
from tauloop.equations.named_values import full_name, named_values
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry, coordinate_units
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.kinematics.workspaces.pose_axes import pose_axes
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.viewer.film import save_animation
from tauloop.viewer.layers import Layers
from tauloop.viewer.playback import Playback, read_playback
from tauloop.viewer.scene.cloud import COLORINGS, workspace_sections
from tauloop.viewer.viewer import Viewer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: HTML frame with the viewer in a notebook.
NOTEBOOK_FRAME = (
    '<iframe src="{}" style="width:100%;height:560px;border:0" allow="fullscreen"></iframe>'
)
#: Layers that only the browser shows, each with its option and an alternative for a picture.
BROWSER_LAYERS = {
    "forces": ("forces", "draw forces with `tauloop dynamics --motion FILE --out forces.png`"),
    "workspace": ("workspace", "draw a map with `tauloop workspace --plane x,z --out map.png`"),
    "modes": ("modes", "draw all modes with `tauloop modes --out modes.png`"),
    "measured": ("measured", "show the log alone with `--motion LOG`"),
    "comparison": ("compare", "draw each machine alone"),
    "next_to": ("next_to", "draw each machine alone"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions(Options):
    """Pose or motion to view, and additional layers; the default is the reference pose.

    Attributes:
        pose: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units); other
            coordinates are those of the reference pose.
        actuators: positions of the actuators, such as 'motor_1=20deg,slide=5mm'; others are as in
            the reference pose.
        coordinates: coordinates in which the motion is given: platform or actuators.
        motion: motion from a table with time and position.NAME of the platform or the actuators; in
            Python also a `Playback`.
        simulation: motion from the output of `tauloop simulate --out` or `control follow --out`.
        measured: overlay a log (same format as the motion) as a transparent machine.
        compare: compare with this machine (shipped or a file), such as the calibrated one; it is
            shown transparent at the same actuator positions.
        next_to: show these machines too (shipped or files), to the right of the first.
        forces: show forces: arrows at motors and platform, rods colored by tension and compression.
        workspace: show a slice or cloud of the workspace over two or three platform positions, such
            as 'x,z'.
        color: color by a property of the workspace.
        modes: find all modes at the first pose: with the same positions of the 'actuators'
            (assembly modes) or of the 'platform' (working modes).

    Examples:
        >>> import tauloop as tl
        >>> tl.ViewOptions(pose={"x": "10 cm"}, forces=True).forces
        True
    """

    pose: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    actuators: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, names="actuators", metavar="VALUES"
    )
    coordinates: Entry = PLATFORM
    motion: Path | Playback | None = option(None, read=Path, metavar="FILE")
    simulation: Path | None = option(None, metavar="FILE")
    measured: Path | Playback | None = option(None, read=Path, metavar="LOG")
    compare: str | Path | Mechanism | Model | None = option(None, read=str, metavar="FILE")
    next_to: tuple[str | Path | Mechanism | Model, ...] = option((), read=listed, metavar="LIST")
    forces: bool = False
    workspace: tuple[str, ...] = option((), read=listed)
    color: str = option("reach", choices=COLORINGS)
    modes: Entry | None = None

    @property
    def position_coordinates(self) -> Entry:
        """The coordinates of the given position: the actuators if their positions are given."""
        return self.coordinates if self.actuators is None else ACTUATORS

    @property
    def stated_position(self) -> str | Mapping[str, str | float] | tuple[str | float, ...] | None:
        """The position of the platform or the actuators."""
        return self.pose if self.actuators is None else self.actuators

    def _note_mismatches(self, problems: Problems) -> None:
        """Report several motions, and a log without a motion."""
        if self.measured is not None and self.motion is None and self.simulation is None:
            problems.add(
                "measured",
                "requires a motion, but none is given",
                "give the motion too",
            )
        names = [
            name
            for name in ("pose", "actuators", "motion", "simulation")
            if getattr(self, name) is not None
        ]
        if len(names) > 1:
            problems.add(
                names[-1],
                f"cannot be combined with {', '.join(names[:-1])}",
                "give only one of them",
            )


@dataclass(frozen=True, kw_only=True)
class View(Result):
    """A machine at a pose or in motion; diagnostics report coordinates beyond a stop.

    Attributes:
        model: the machine.
        q: coordinates of the machine (n_q,); with a motion, those at its start.
        playback: the motion, or None.
        geometry: geometry of the bodies at the pose, or at all samples of the motion.
        layers: additional layers of the viewer.
    """

    needs_forces: ClassVar[bool] = False
    model: Model = field(
        metadata=json_keys(machine="mechanism.name", coordinates="topology.coordinate_names")
    )
    q: np.ndarray
    playback: Playback | None = field(metadata=OMITTED)
    geometry: MachineGeometry = field(metadata=OMITTED)
    layers: Layers = field(metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield all coordinates, over time for a motion, or for the single pose."""
        topology = self.model.topology
        units = coordinate_units(topology)
        if self.playback is None:
            q, dimensions = self.q[None], ("pose",)
        else:
            q, dimensions = self.playback.q, TIME_DIMENSIONS
            yield time_axis(self.playback.time)
        yield from columns("coordinate", topology.coordinate_names, units, q, dimensions)

    @property
    def status(self) -> Status:
        """Return OK: coordinates beyond a stop do not make a view doubtful."""
        return Status.OK

    @property
    @in_json("tool_m")
    def tool(self) -> np.ndarray:
        """Return the tool center point at the start (3,), m."""
        return self.geometry.tool[0]

    @property
    @in_json()
    def bodies(self) -> dict[str, np.ndarray]:
        """Return the origins (3,) of the bodies at the start, by name, m."""
        origins = self.geometry.origins[0]
        return {body.name: origins[i] for i, body in enumerate(self.geometry.shape.bodies)}

    def picture(self) -> Figure:
        """Return a drawing of the machine, with solids if trimesh is installed.

        Raises:
            InputError: the view has layers that only the browser shows.
        """
        self._require_drawable()
        motion = self.playback
        note = ""
        if motion is not None:
            note = f"first sample of {motion.source} (duration {motion.duration:.4g} s)"
        solids = solid_drawing(self.model, self.geometry)
        return machine_figure(
            self.geometry, title=self.model.mechanism.name, note=note, solids=solids
        )

    save_film = old_attribute("save_film", "save_animation")

    def save_animation(self, path: str | Path, progress: Progress | None = None) -> Path:
        """Write the motion as an animation (HTML, GIF or MP4); see `tauloop.viewer.save_animation`.

        Args:
            path: the file; its extension determines the format.
            progress: called with the number of completed frames and the number of all frames.

        Returns:
            The path.

        Raises:
            InputError: there is no motion, the file cannot be written, or the view has layers that
                only the browser shows.
        """
        self._require_drawable()
        if self.playback is None:
            raise InputError.of(
                "motion", "is missing: an animation needs a motion", "give a table with a motion"
            )
        return save_animation(
            self.model, self.playback.q, self.playback.time, path, progress=progress
        )

    def _require_drawable(self) -> None:
        """Reject layers that only the browser shows.

        Raises:
            InputError: there are such layers; the message states how to draw them otherwise.
        """
        problems = Problems()
        for layer, (name, remedy) in BROWSER_LAYERS.items():
            if getattr(self.layers, layer):
                what = "is shown only in the browser, not in a picture or animation"
                problems.add(name, what, f"omit {name}, or {remedy}")
        InputError.raise_if_any(problems)

    @cached_property
    def inline(self) -> Viewer:
        """Return the viewer for a notebook, on a free port; all cells with this view share it."""
        viewer = self.viewer(port=0)
        Thread(target=viewer.run, daemon=True).start()
        return viewer

    def _repr_html_(self) -> str:
        """Return an HTML frame with the viewer, or the error if viser is missing."""
        try:
            return NOTEBOOK_FRAME.format(html.escape(self.inline.url))
        except EngineError as error:
            return f"<pre>{html.escape(str(error))}</pre>"

    def viewer(self, host: str = "127.0.0.1", port: int = 8080) -> Viewer:
        """Return a server for the browser; see `Viewer`."""
        return Viewer(
            self.model, q=self.q, playback=self.playback, layers=self.layers, host=host, port=port
        )


@keywords(ViewOptions)
def view(machine: MachineSource, options: ViewOptions | None = None) -> View:
    """Return a view of a machine's pose or motion, for the browser or as a picture.

    `View.viewer` shows the view in the browser, and `View.picture` draws it.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: pose or motion.

    Raises:
        InputError: names or units are wrong.
        LogError: the table of the motion is damaged.
        PoseError: a pose is out of reach; the message states the loop that does not close, and by
            how much.

    Examples:
        >>> import tauloop as tl
        >>> view = tl.view("delta", pose={"x": "10 cm"})
        >>> view.to_pandas()["coordinate.platform.x"].tolist()
        [0.1]
    """
    model, options = modeled(machine), options or ViewOptions()
    path = options.motion or options.simulation
    playback = path if path is None or isinstance(path, Playback) else read_playback(model, path)
    if playback is None:
        q, time = _pose(model, options)[None], None
    else:
        q, time = playback.q, playback.time
    return View(
        model=model,
        q=q[0],
        playback=playback,
        geometry=machine_geometry(model, q),
        layers=_layers(model, options),
        diagnostics=model.limits.diagnostics(q, time),
        provenance=provenance(
            packages=("numpy",), options={}, inputs={"machine": model.mechanism.name}
        ),
    )


def _layers(model: Model, options: ViewOptions) -> Layers:
    """Return the additional layers of a view.

    Raises:
        InputError: the workspace does not name two or three translations of the platform.
    """
    measured, comparison = options.measured, options.compare
    names = pose_axes(model).columns if options.workspace else ()
    section = tuple(full_name(names, name, "workspace") for name in options.workspace)
    if section and section not in workspace_sections(model):
        choices = (
            "; ".join(",".join(choice) for choice in workspace_sections(model))
            or "none: the platform does not translate along axes"
        )
        what = f"{','.join(section)} does not name two or three translations of the platform"
        raise InputError.of("workspace", what, f"choose one of {choices}")
    return Layers(
        measured=read_playback(model, measured) if isinstance(measured, Path) else measured,
        comparison=None if comparison is None else modeled(comparison),
        next_to=tuple(modeled(machine) for machine in options.next_to),
        forces=options.forces,
        workspace=section,
        coloring=options.color,
        modes=options.modes,
    )


def _pose(model: Model, options: ViewOptions) -> np.ndarray:
    """Return the coordinates (n_q,) of the requested pose."""
    if options.stated_position is None:
        return model.assembly.q  # also for a machine without motors
    functions = model.functions(options.position_coordinates)
    ports = functions.ports
    name = "pose" if options.actuators is None else "actuators"
    values = named_values(ports.position, name, options.stated_position, ports.at(model.assembly.q))
    return np.asarray(functions.follow(values).q)
