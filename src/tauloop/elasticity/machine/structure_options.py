"""How a machine becomes a structure."""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.common.records import dataclass
from tauloop.elasticity.vibrations.servo_control import ServoLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureOptions:
    """How a machine becomes a structure.

    Attributes:
        are_motors_held: whether motors are held, by the stiffness of their drives or rigidly; else
            they are free.
        modes: modes of each link and bending plane; None for all below `below`, at least one.
        below: frequency, Hz.
        has_shear: whether beams have shear and rotary inertia (Timoshenko).
        has_rod_modes: whether modes of rods with ball ends are coordinates. Such a rod bends by
            itself: neither stiffness nor axial force couples its modes with its ends.
        laws: laws of controlled motors by actuator; None for motors that are held or free.
    """

    are_motors_held: bool = True
    modes: int | None = 0
    below: float = 0.0
    has_shear: bool = False
    has_rod_modes: bool = True
    laws: Mapping[str, ServoLaw] | None = None
