"""Options of certified boxes: the box of poses, and what must hold at each of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.options import Options, listed, option
from tauloop.common.records import dataclass
from tauloop.design.tolerances.sources import Amounts
from tauloop.equations.named_values import numbers_of, ranges_of, wrenches_of
from tauloop.mechanism.description import units


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions(Options):
    """Box of poses, and what must hold at each of them.

    Errors of encoders and deviations of parameters together move the tool less than `limits`, with
    terms of all orders.

    Attributes:
        ranges: ranges of platform positions, such as 'x=-0.4:0.4,z=100:300 mm' (SI without a unit), and
            of the rotation vector from the reference, such as 'rx=-10deg:10deg'.
        cylinder: axes whose ranges are the diameters of a cylinder instead of the sides of a box,
            such as 'x,y'.
        pose: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units), where it does not
            vary; other coordinates are as in the reference pose.
        parallel: least singular value of the unit rows: forces and moments of all rods and cut
            joints while the actuators rest; 0 excludes singular poses only.
        serial: least measure of serial singularity of `tauloop.kinematics.singularities`; 0 excludes singular poses
            only.
        constraint: least measure of constraint singularity of `tauloop.kinematics.singularities`; 0 excludes
            singular poses only.
        moment_length: length by which moments of the unit rows are divided; default: the
            characteristic length of the machine.
        clearance: smallest distance between rods, such as 20mm: of their center lines, or of their
            surfaces with `rod_radii`; 0 for none.
        rod_radii: radii of rods by name or pattern, such as '*=25mm', or 'file' for those of their
            sections.
        cone: largest angle of a rod at both ends from its direction at the reference, such as 30deg.
        cones: largest angles of single ends of rods (ROD.start, ROD.end), and of the z axes of ball
            and universal joints, from their directions at the reference, such as '*.end=40deg'.
        static_forces: motor forces and cable tensions at rest within the limits of the file.
        wrenches: ranges of the wrench at the tool (N, N m, base frame), such as 'fz=-100:0', for
            every one of which forces at rest stay within limits.
        limits: largest errors of the tool along x, y, z (m) and about rx, ry, rz (rad), such as
            'x=50um'.
        encoders: errors of the actuator encoders.
        drawing_limits: count ranges for drawing as stops.
        deviations: largest deviation of parameters, such as 'arm_length=0.1mm': every machine within
            them is certified. Each leg has its own deviation of a parameter that legs share.
        maximize_box: scale the ranges about their middles to the largest box that is proved; each scale
            has half of the budget that is left.
        max_boxes: maximum number of boxes that are evaluated, at all scales together.
        time_limit: longest processor time, such as 60s, of all scales together.

    Examples:
        >>> import tauloop as tl
        >>> tl.CertifyOptions(ranges="x=-0.1:0.1", parallel=0.3).parallel
        0.3
    """

    ranges: Mapping[str, tuple[float, float]] = option(
        factory=dict,
        read=ranges_of,
        metavar="NAME=LOW:HIGH",
        unit=(units.LENGTH, units.ANGLE, units.ONE),
    )
    cylinder: tuple[str, ...] = option((), read=listed, metavar="NAMES")
    pose: Mapping[str, float] = option(
        factory=dict,
        read=numbers_of,
        metavar="VALUES",
        unit=(units.LENGTH, units.ANGLE, units.ONE),
    )
    parallel: float = option(0.0, least=0.0)
    serial: float = option(0.0, least=0.0, below=1.0)
    constraint: float = option(0.0, least=0.0, below=1.0)
    moment_length: float | None = option(None, above=0.0, metavar="LENGTH", unit=units.LENGTH)
    clearance: float = option(0.0, least=0.0, metavar="LENGTH", unit=units.LENGTH)
    rod_radii: Amounts | None = option(None, read=str, metavar="VALUES")
    cone: float | None = option(None, above=0.0, below=np.pi, metavar="ANGLE", unit=units.ANGLE)
    cones: Amounts | None = option(None, read=str, metavar="VALUES")
    static_forces: bool = option(False)
    wrenches: Mapping[str, tuple[float, float]] = option(
        factory=dict,
        read=wrenches_of,
        metavar="NAME=LOW:HIGH",
        unit=(units.FORCE, units.TORQUE),
    )
    limits: Amounts | None = option(None, read=str, metavar="VALUES")
    encoders: Amounts | None = option(None, read=str, metavar="VALUES")
    drawing_limits: bool = option(False)
    deviations: Mapping[str, float] = option(
        factory=dict,
        read=lambda text: numbers_of(text, "deviations"),
        metavar="VALUES",
        unit=(units.LENGTH, units.ANGLE, units.ONE),
    )
    maximize_box: bool = option(False)
    max_boxes: int = option(500_000, least=1)
    time_limit: float = option(60.0, above=0.0, metavar="TIME", unit=units.TIME)
