"""Workspace of a machine as a map over a section or a volume, by default over its whole reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tauloop.common.errors import PoseError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, each, listed, option
from tauloop.common.records import dataclass
from tauloop.equations.named_values import by_column, full_name, numbers_of, ranges_of, wrench_of
from tauloop.kinematics.workspaces.map import (
    Workspace,
    WorkspaceLimits,
    section_axes,
    workspace_grid,
)
from tauloop.kinematics.workspaces.pose_axes import pose_axes
from tauloop.mechanism.description import units
from tauloop.model.forces.tension_terms import NO_WRENCH
from tauloop.model.model import MachineSource, modeled


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceOptions(Options):
    """Extent of a workspace map, and requirements on usable poses.

    Attributes:
        plane: positions of the platform that vary (one to three), such as 'x,z'; default: the first
            two.
        pose: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units), for the
            coordinates that do not vary; others are as in the reference pose.
        ranges: ranges of platform positions, such as 'x=-0.4:0.4,z=100:300 mm' (SI without a unit);
            default: as far as the machine reaches.
        resolution: step of the grid, m or rad.
        singularity: smallest distance to singularities (0 to 1, dimensionless); default: 0.05, or
            half the distance of the reference pose if that is less than 0.05.
        clearance: smallest distance between center lines of rods, such as 20mm; 0 for none.
        margin: smallest distance of cable tensions from their bounds, N.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame), that the cables
            must hold; several wrenches are separate load cases.

    Examples:
        >>> import tauloop as tl
        >>> tl.WorkspaceOptions(plane=("x", "y"), pose={"z": -0.4}, resolution=0.05).plane
        ('x', 'y')
    """

    plane: tuple[str, ...] = option((), read=listed, metavar="NAMES")
    pose: Mapping[str, float] = option(
        factory=dict,
        read=numbers_of,
        metavar="VALUES",
        unit=(units.LENGTH, units.ANGLE, units.ONE),
    )
    ranges: Mapping[str, tuple[float, float]] = option(
        factory=dict,
        read=ranges_of,
        metavar="NAME=LOW:HIGH",
        unit=(units.LENGTH, units.ANGLE, units.ONE),
    )
    resolution: float | None = option(None, metavar="QUANTITY", unit=units.POSITIONS)
    singularity: float | None = option(None, least=0.0, most=1.0)
    clearance: float = option(0.0, least=0.0, metavar="LENGTH", unit=units.LENGTH)
    margin: float = option(0.0, least=0.0, metavar="FORCE", unit=units.FORCE)
    wrench: tuple[tuple[float, ...], ...] = option(
        NO_WRENCH, read=each(wrench_of), repeated=True, metavar="VALUES"
    )


@keywords(WorkspaceOptions)
@solving(PoseError)
def workspace(
    machine: MachineSource,
    options: WorkspaceOptions | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Workspace:
    """Return a map of the poses where a machine can work.

    It accounts for reach, ranges, singularities, interference of rods, and tensions of cables.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: the positions that vary, and the limits. A position is given by its name, or by the
            last part of its name if that is unique. The orientation is given by the angles rx, ry,
            rz (see `PoseAxes`).
        progress: called with the number of finished poses and their total.

    Raises:
        InputError: unknown or repeated names, empty ranges, or limits that do not apply to this
            machine.
        PoseError: the loops do not close around the reference pose.

    Examples:
        >>> import tauloop as tl
        >>> ranges = {"x": (-0.1, 0.1), "y": (0.0, 0.1)}
        >>> grid = tl.workspace("delta", plane=("x", "y"), ranges=ranges, resolution=0.05)
        >>> bool(grid.usable.all())
        True
        >>> dict(grid.to_xarray().sizes)
        {'platform.x': 5, 'platform.y': 3}
    """
    model, options = modeled(machine), options or WorkspaceOptions()
    port = pose_axes(model)
    columns, units = port.columns, dict(zip(port.columns, port.units, strict=True))
    names = tuple(full_name(columns, name, "plane") for name in options.plane) or columns[:2]
    fixed = by_column(units, options.pose, "pose")
    ranges = by_column(units, options.ranges, "ranges")
    axes = section_axes(model, names, options.resolution, ranges)
    limits = WorkspaceLimits(
        singularity=options.singularity,
        clearance=options.clearance,
        tension=options.margin,
        wrenches=options.wrench,
    )
    return workspace_grid(model, axes, fixed=fixed, limits=limits, progress=progress)
