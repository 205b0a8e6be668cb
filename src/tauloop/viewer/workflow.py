"""One call from a machine and options to what there is to see of it: a pose, or a motion from a table."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tauloop.common.datasets import TIME, Variable, columns, time_axis
from tauloop.common.errors import EngineError, InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, Status, provenance
from tauloop.display.renderers.machine_drawing import machine_figure
from tauloop.display.renderers.solid_drawing import solid_drawing
from tauloop.equations.named_values import full_name, named_values
from tauloop.equations.ports import PLATFORM, Entry, coordinate_units
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.kinematics.workspaces.pose_axes import pose_axes
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled
from tauloop.viewer.cloud import COLOURINGS, planes
from tauloop.viewer.film import save_film
from tauloop.viewer.layers import Layers
from tauloop.viewer.playback import Playback, read_playback
from tauloop.viewer.viewer import Viewer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A viewer in a notebook.
FRAME = '<iframe src="{}" style="width:100%;height:560px;border:0" allow="fullscreen"></iframe>'


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions(Options):
    """A pose or a motion to look at; the reference pose where nothing is given.

    Attributes:
        position: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units); the rest as
            at the reference.
        entry: coordinates in which the position is given: platform or actuators.
        motion: motion from a table with time and position.NAME of the platform or the actuators,
            which is played; from Python a `Playback` too.
        simulation: the same, of what `tauloop simulate --out` or `control --out` has written.
        measured: show this log, as that of a motion, see-through beside the motion.
        beside: compare with this machine (shipped or a file), which is shown see-through at the
            same actuator positions, such as the calibrated one.
        forces: show forces: arrows at motors and platform, rods by tension and compression.
        workspace: show a slice or cloud of the workspace over two or three platform positions, such
            as 'x,z'.
        colouring: color by a property of the workspace.
        modes: look for all modes at the first pose: at its 'actuators' (assembly modes) or
            'platform' (working modes).

    Examples:
        >>> import tauloop as tl
        >>> tl.ViewOptions(position={"x": "10 cm"}, forces=True).forces
        True
    """

    position: str | Mapping[str, str | float] | None = option(
        None, read=str, flag="--pose", metavar="VALUES"
    )
    entry: Entry = PLATFORM
    motion: Path | Playback | None = option(None, read=Path, metavar="FILE")
    simulation: Path | None = option(None, metavar="FILE")
    measured: Path | Playback | None = option(None, read=Path, metavar="LOG")
    beside: str | Path | Mechanism | Model | None = option(
        None, read=str, metavar="FILE", flag="--compare"
    )
    forces: bool = False
    workspace: tuple[str, ...] = option((), read=listed)
    colouring: str = option("reach", choices=COLOURINGS, flag="--color")
    modes: Entry | None = None

    def _note_mismatches(self, problems: Problems) -> None:
        """Refuse several of one kind."""
        if self.measured is not None and self.motion is None and self.simulation is None:
            problems.add(
                "measured",
                "is shown in step with a motion, and there is none",
                "give the motion too",
            )
        names = [
            name for name in ("position", "motion", "simulation") if getattr(self, name) is not None
        ]
        if len(names) > 1:
            problems.add(names[-1], f"given beside {', '.join(names[:-1])}", "give one of them")


@dataclass(frozen=True, kw_only=True)
class View(Result):
    """A machine at a pose, or in motion; diagnostics state what lies beyond a stop.

    Attributes:
        model: the machine.
        q: its coordinates (n_q,), at the start of a motion.
        playback: the motion.
        geometry: where its parts are, at all samples of a motion.
        layers: what else the viewer shows.
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
        """All coordinates: over the time of a motion, else of the pose."""
        topology, over = self.model.topology, TIME if self.playback is not None else ("pose",)
        if self.playback is not None:
            yield time_axis(self.playback.time)
        q = self.q[None] if self.playback is None else self.playback.q
        yield from columns(
            "coordinate", topology.coordinate_names, coordinate_units(topology), q, over
        )

    @property
    def status(self) -> Status:
        """OK: whoever looks at a machine judges by eye."""
        return Status.OK

    @property
    @in_json("tool_m")
    def tool(self) -> np.ndarray:
        """Tool centre point at the start (3,), m."""
        return self.geometry.tool[0]

    @property
    @in_json()
    def bodies(self) -> dict[str, np.ndarray]:
        """Origins (3,) of the bodies at the start by name, m."""
        origins = self.geometry.origins[0]
        return {body.name: origins[i] for i, body in enumerate(self.geometry.shape.bodies)}

    def picture(self) -> Figure:
        """The drawing of it, by solids where trimesh is installed; see `machine_figure`."""
        motion = self.playback
        note = "" if motion is None else f"start of {motion.source}, {motion.duration:.4g} s"
        solids = solid_drawing(self.model, self.geometry)
        return machine_figure(
            self.geometry, title=self.model.mechanism.name, note=note, solids=solids
        )

    def save_film(self, path: str | Path, progress: Progress | None = None) -> Path:
        """Write the motion as a film: a page that plays and turns, a GIF or an MP4; see `tauloop.viewer.save_film`.

        Args:
            path: the file; its ending says which kind.
            progress: called with what is done and what there is to do.

        Raises:
            InputError: there is no motion, or the file cannot be written.
        """
        if self.playback is None:
            raise InputError.of("motion", "there is none to make a film of", "name a table of one")
        return save_film(self.model, self.playback.q, self.playback.time, path, progress=progress)

    @cached_property
    def inline(self) -> Viewer:
        """The viewer that a notebook shows, on a free port of this computer; one for all cells that show this view."""
        viewer = self.viewer(port=0)
        Thread(target=viewer.run, daemon=True).start()  # its clock
        return viewer

    def _repr_html_(self) -> str:
        """The viewer as a frame in a notebook; what is missing for it, in its words."""
        try:
            return FRAME.format(html.escape(self.inline.url))
        except EngineError as error:
            return f"<pre>{html.escape(str(error))}</pre>"

    def viewer(self, host: str = "127.0.0.1", port: int = 8080) -> Viewer:
        """A server for the browser; see `Viewer`, which also says what is raised."""
        return Viewer(
            self.model, q=self.q, playback=self.playback, layers=self.layers, host=host, port=port
        )


@keywords(ViewOptions)
def view(machine: MachineSource, options: ViewOptions | None = None) -> View:
    """Pose a machine, or read a motion of it, to look at it in the browser (`View.viewer`) or as a `View.picture`.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: which pose or motion.

    Raises:
        InputError: wrong names or units.
        LogError: a damaged table.
        PoseError: out of reach: which loop, by how much.

    Examples:
        >>> import tauloop as tl
        >>> view = tl.view("delta", position={"x": "10 cm"})
        >>> view.to_pandas()["coordinate.platform.x"].tolist()
        [0.1]
    """
    model, options = modelled(machine), options or ViewOptions()
    path = options.motion or options.simulation
    playback = path if path is None or isinstance(path, Playback) else read_playback(model, path)
    q, time = (
        (_pose(model, options)[None], None) if playback is None else (playback.q, playback.time)
    )
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
    """What is shown beside the machine."""
    measured, beside = options.measured, options.beside
    names = pose_axes(model).columns if options.workspace else ()
    plane = tuple(full_name(names, name, "workspace") for name in options.workspace)
    if plane and plane not in planes(model):
        choices = (
            "; ".join(",".join(choice) for choice in planes(model))
            or "none: its platform does not move along axes"
        )
        raise InputError.of(
            "workspace", f"{','.join(plane)} is no slice or cloud", f"choose one of {choices}"
        )
    return Layers(
        measured=read_playback(model, measured) if isinstance(measured, Path) else measured,
        beside=None if beside is None else modelled(beside),
        forces=options.forces,
        workspace=plane,
        colouring=options.colouring,
        modes=options.modes,
    )


def _pose(model: Model, options: ViewOptions) -> np.ndarray:
    """Coordinates (n_q,) of the pose that is asked for."""
    if options.position is None:
        return model.assembly.q  # also of a machine that lacks motors, and so has no entries
    functions = model.motion(options.entry)
    ports = functions.ports
    values = named_values(ports.position, "position", options.position, ports.at(model.assembly.q))
    return np.asarray(functions.follow(values).q)
