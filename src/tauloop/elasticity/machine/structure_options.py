"""Options of the conversion of a machine to an elastic structure."""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.common.records import dataclass
from tauloop.elasticity.vibrations.servo_control import ServoLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureOptions:
    """Options of the conversion of a machine to an elastic structure.

    Attributes:
        are_motors_held: True if motors are held, by the stiffness of their drives or rigidly; False
            if they are free.
        modes: number of modes per link and bending plane; None for all modes below `max_frequency`, at
            least one.
        max_frequency: largest frequency of these modes, Hz.
        has_shear: whether beams have shear deformation and rotary inertia (Timoshenko).
        has_rod_modes: whether bending modes of rods with ball joints at both ends are coordinates.
            Neither stiffness nor axial force couples these modes with the rod's ends.
        laws: control laws of controlled motors, by actuator; None for motors that are held or free.
    """

    are_motors_held: bool = True
    modes: int | None = 0
    max_frequency: float = 0.0
    has_shear: bool = False
    has_rod_modes: bool = True
    laws: Mapping[str, ServoLaw] | None = None
