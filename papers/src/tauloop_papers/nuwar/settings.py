"""Values of the NUWAR paper, and our choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StrokeSettings:
    """The strokes of section 6, and the machines that run them.

    Attributes:
        machine, other: NUWAR, and the Delta for comparison.
        prototype: printed dimensions, mm, kg and kg m^2, by parameter of the machine file, with the
            paper's names.
        spacing: printed spacing of the two forearms of a pair, m.
        half_width, bottom, rise: dimensions of the ellipse, m.
        acceleration: largest acceleration, m/s^2.
        peaks: printed largest torques of the two machines, N m.
        limit: torque limit of the motors, N m.
        capable: printed acceleration that the machine can reach, m/s^2.
        joints, relative: printed numbers of its revolute joints and of relative coordinates.
        cycle: printed period of the control signal, s.
        saving: printed share of operations that Hamilton's equations save against Lagrange's.
        scale: scale of the simulated ellipse, because the printed one is out of reach.
        turns: directions of the stroke from the first leg, deg.
        readings: readings of the mass of a forearm, relative to the machine file.
        shear: shear of the sheared ellipse.
        curvature: curvatures at both ends of the clothoid, 1/m.
        tolerance: relative and absolute tolerances of the integrator.
        samples: number of samples in a figure.
    """

    machine: str = "nuwar"
    other: str = "delta"
    prototype: Mapping[str, tuple[str, str, float]] = field(
        default_factory=lambda: {
            "arm_length": ("arm, length", "m", 0.26),
            "arm_mass": ("arm, mass", "kg", 0.977),
            "arm_inertia": ("arm, moment of inertia", "kg m²", 0.01822),
            "forearm_length": ("forearm, length", "m", 0.48),
            "forearm_mass": ("forearm, mass", "kg", 0.0296),
            "motor_radius": ("motor from the centerline", "m", 0.194),
            "plate_radius": ("joints of the traveling plate", "m", 0.03),
            "plate_mass": ("traveling plate, mass", "kg", 0.2807),
            "elbow_mass": ("parallelogram joint, mass", "kg", 0.0099),
        }
    )
    spacing: float = 0.05
    half_width: float = 0.2
    bottom: float = -0.9
    rise: float = 0.4
    acceleration: float = 294.82
    peaks: tuple[float, float] = (35.68, 36.30)
    limit: float = 41.76
    capable: float = 600.0
    joints: int = 21
    relative: int = 15
    cycle: float = 1e-3
    saving: float = 0.28
    scale: float = 0.72
    turns: tuple[float, ...] = (0.0, 15.0, 30.0, 45.0)
    readings: Mapping[str, float] = field(default_factory=lambda: {"per pair": 1.0, "per rod": 2.0})
    shear: float = 0.25
    curvature: tuple[float, float] = (6.0, -6.0)
    tolerance: tuple[float, float] = (1e-11, 1e-12)
    samples: int = 401

    @property
    def printed_peaks(self) -> Mapping[str, float]:
        """Largest torques of the two machines in the paper, N m."""
        return dict(zip((self.machine, self.other), self.peaks, strict=True))


SETTINGS = StrokeSettings()
