"""Contents of a stream: shapes and frames of a machine, and quantities over time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial.transform import Rotation

from tauloop.common.records import dataclass
from tauloop.geometry import frames, machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.mechanism.solids.solid import Mesh
from tauloop.model import Model

#: Names of the fixed frame and of the tool's frame.
FIXED_FRAME, TOOL_FRAME = "world", "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameStates:
    """Poses of a frame in the base frame at N states.

    Attributes:
        position: positions (N, 3), m.
        quaternion: unit quaternions w, x, y, z (N, 4).
    """

    position: np.ndarray
    quaternion: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMesh:
    """Triangles that are fixed to a frame.

    Attributes:
        frame: name of the body or rod.
        color: red, green and blue, from 0 to 1.
        mesh: triangles in the frame, m.
    """

    frame: str
    color: tuple[float, float, float]
    mesh: Mesh


class StreamedMachine:
    """The shapes of a machine, and their poses at the states of a motion."""

    def __init__(self, model: Model) -> None:
        """Build the shapes.

        Raises:
            EngineError: trimesh is not installed.
            InputError: the file of a mesh is missing, damaged or too large.
        """
        self.name = model.mechanism.name
        self.model = model
        self._reference = machine_geometry(model, model.assembly.q)
        self.shapes = tuple(
            FrameMesh(frame=name, color=to_rgb(color), mesh=mesh)
            for (name, color), mesh in parts(machine_solids(model)).items()
        )

    def frames(self, geometry: MachineGeometry) -> dict[str, FrameStates]:
        """Return the poses of bodies, rods and the tool at the states of a geometry, by name."""
        mechanism = self.model.mechanism
        poses = {
            name: _states(pose.rotation, pose.position)
            for name, pose in frames(mechanism, geometry, self._reference).items()
        }
        poses[TOOL_FRAME] = _states(geometry.tool_rotation, geometry.tool)
        return poses


def _states(rotation: np.ndarray, position: np.ndarray) -> FrameStates:
    quaternion = Rotation.from_matrix(rotation).as_quat(scalar_first=True)
    return FrameStates(position=np.asarray(position), quaternion=quaternion)


class StreamSink(ABC):
    """A file or viewer that receives a machine in motion."""

    @abstractmethod
    def describe(self, machine: StreamedMachine, units: Mapping[str, str]) -> None:
        """Send the shapes of the machine, and the units of the quantities.

        Args:
            machine: name and shapes of the machine.
            units: unit of each quantity by name.
        """

    @abstractmethod
    def show(
        self,
        time: float,
        frames: Mapping[str, FrameStates],
        state: int,
        quantities: Mapping[str, float],
    ) -> None:
        """Send one state.

        Args:
            time: time of the motion, s.
            frames: poses of all frames.
            state: index of the state in `frames`.
            quantities: values by name, SI.
        """

    @abstractmethod
    def close(self) -> None:
        """Write buffered data, and close the file or connection."""
