"""What the elasticity of a machine does not calculate again at every call: numbers without a pose."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tauloop.elasticity.frame.beams import Array, BeamProperties
from tauloop.elasticity.frame.reduction import ReducedBeam, reduced_beam
from tauloop.geometry.machine_geometry import machine_shape
from tauloop.mechanism.model import Placement
from tauloop.mechanism.poses import FramePose, placement_pose
from tauloop.model import Model

Value = TypeVar("Value")

#: Reduced beams of a machine that are stored: `vibration` reduces them for several frequencies.
MAX_REDUCED_BEAMS = 256
#: Freedoms that the two ends of a beam release.
Released = tuple[tuple[int, ...], tuple[int, ...]]


class MachineConstants:
    """Numbers of a machine that do not depend on its pose, each calculated where it is first needed.

    Attributes:
        shape: its points and lines, and the function of the poses of its bodies.
    """

    def __init__(self, model: Model) -> None:
        """Calculate the shape."""
        self.mechanism = model.mechanism
        self.shape = machine_shape(model)
        self._values: dict[Hashable, Any] = {}
        self._reduced: dict[Hashable, ReducedBeam] = {}

    def stored(self, key: Hashable, calculated: Callable[[], Value]) -> Value:
        """Return a value that a function calculates once for each key."""
        if key not in self._values:
            self._values[key] = calculated()
        value: Value = self._values[key]
        return value

    def frame(self, placement: Placement) -> FramePose:
        """Return the pose of a placed frame in its body."""
        return self.stored(placement, lambda: placement_pose(self.mechanism, placement))

    def reduced(
        self,
        lengths: Array,
        properties: BeamProperties,
        released: Released,
        modes: int | None,
        below: float,
    ) -> ReducedBeam:
        """Return a reduced beam; equal beams are reduced once. See `reduced_beam`."""
        key = (lengths.tobytes(), properties.as_bytes(), released, modes, below)
        if key not in self._reduced:
            beam = reduced_beam(lengths, properties, released=released, modes=modes, below=below)
            if lengths.ndim > 1:
                # The lengths of a telescopic rod are those of the poses.
                return beam
            if len(self._reduced) >= MAX_REDUCED_BEAMS:
                self._reduced.clear()
            self._reduced[key] = beam
        return self._reduced[key]


_CONSTANTS: WeakKeyDictionary[Model, MachineConstants] = WeakKeyDictionary()


def machine_constants(model: Model) -> MachineConstants:
    """Return the constants of a machine, which are stored as long as the model exists."""
    constants = _CONSTANTS.get(model)
    if constants is None:
        constants = _CONSTANTS[model] = MachineConstants(model)
    return constants
