"""Cache of the quantities of an elastic machine that do not depend on its pose."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tauloop.elasticity.frame.beams import Array, BeamProperties
from tauloop.elasticity.frame.reduction import ReducedBeam, reduced_beam
from tauloop.geometry.machine_geometry import machine_shape
from tauloop.mechanism.model import Mechanism, Placement
from tauloop.mechanism.poses import FramePose, placement_pose
from tauloop.model import Model

Value = TypeVar("Value")

#: Maximum number of reduced beams that are stored per machine. `vibration` reduces the same beams
#: for several frequencies.
MAX_REDUCED_BEAMS = 256
#: Freedoms that are released at the start and at the end of a beam.
Released = tuple[tuple[int, ...], tuple[int, ...]]


class MachineConstants:
    """Quantities of a machine that do not depend on its pose, each calculated on first use.

    Attributes:
        mechanism: the machine.
        shape: points and lines of the machine, and the function of the poses of its bodies.
    """

    def __init__(self, model: Model) -> None:
        """Build the shape of the machine."""
        self.mechanism = model.mechanism
        self.shape = machine_shape(model)
        self._values: dict[Hashable, Any] = {}
        self._frames: dict[Placement, FramePose] = {}
        self._reduced: dict[Hashable, ReducedBeam] = {}

    def with_same_geometry(self, mechanism: Mechanism) -> MachineConstants:
        """Return the constants of a machine whose bodies and frames have the same places.

        Both machines share frames, and beams with equal sections are reduced once for both.
        """
        other = copy(self)
        other.mechanism, other._values = mechanism, {}
        return other

    def stored(self, key: Hashable, calculated: Callable[[], Value]) -> Value:
        """Return the value of a function, which is called once for each key."""
        if key not in self._values:
            self._values[key] = calculated()
        value: Value = self._values[key]
        return value

    def frame(self, placement: Placement) -> FramePose:
        """Return the pose of a frame relative to its body."""
        pose = self._frames.get(placement)
        if pose is None:
            pose = self._frames[placement] = placement_pose(self.mechanism, placement)
        return pose

    def reduced(
        self,
        lengths: Array,
        properties: BeamProperties,
        released: Released,
        modes: int | None,
        max_frequency: float,
    ) -> ReducedBeam:
        """Return the result of `reduced_beam`; equal beams are reduced only once."""
        key = (lengths.tobytes(), properties.as_bytes(), released, modes, max_frequency)
        beam = self._reduced.get(key)
        if beam is None:
            beam = reduced_beam(
                lengths, properties, released=released, modes=modes, max_frequency=max_frequency
            )
            if lengths.ndim > 1:
                # The lengths of a telescopic rod depend on the pose.
                return beam
            if len(self._reduced) >= MAX_REDUCED_BEAMS:
                self._reduced.clear()
            self._reduced[key] = beam
        return beam


_CONSTANTS: WeakKeyDictionary[Model, MachineConstants] = WeakKeyDictionary()


def machine_constants(model: Model) -> MachineConstants:
    """Return the constants of a machine, which exist as long as the model."""
    constants = _CONSTANTS.get(model)
    if constants is None:
        constants = _CONSTANTS[model] = MachineConstants(model)
    return constants


def share_geometry(model: Model, other: Model) -> None:
    """Let a model use the constants of another model, whose bodies and frames have equal places.

    Masses, sections and stiffness may differ.
    """
    _CONSTANTS[model] = machine_constants(other).with_same_geometry(model.mechanism)
