"""Axes of a map over poses: platform positions, with angles in place of a quaternion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.named_values import QUATERNION_SUFFIXES, ROTATION_VECTOR, quaternion_start
from tauloop.mechanism.poses import turned_quaternion
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoseAxes:
    """The platform's positions with a rotation vector instead of a quaternion.

    The vector r = (rx, ry, rz), given in the base frame, rotates the platform from its reference
    orientation by the angle |r| about r: R = exp([r]) R_0. If only one component differs from zero,
    it is the angle about that axis. |r| is at most half a revolution.

    Attributes:
        columns, units: names and units (n,); angles in rad.
        reference: values at the reference pose (n,), zeros for the angles.
        quaternion_start: column of the quaternion's first component among the positions, and of rx
            among these axes; None if there is no quaternion.
        start: quaternion of the reference pose (w, x, y, z).
    """

    columns: tuple[str, ...]
    units: tuple[str, ...]
    reference: np.ndarray
    quaternion_start: int | None
    start: np.ndarray

    @property
    def angles(self) -> tuple[str, ...]:
        """Names of the angles."""
        start = self.quaternion_start
        return () if start is None else self.columns[start : start + 3]

    def grid(self, axes: Mapping[str, np.ndarray], fixed: Mapping[str, float]) -> np.ndarray:
        """Return the values (N, n) over a grid; the first of its axes varies slowest.

        Axes that are neither in the grid nor in `fixed` have the values of the reference pose.
        """
        parts = np.meshgrid(*axes.values(), indexing="ij")
        values = np.tile(self.reference, (parts[0].size, 1))
        for name, column in {**fixed, **dict(zip(axes, parts, strict=True))}.items():
            values[:, self.columns.index(name)] = np.ravel(column)
        return values

    def positions(self, values: np.ndarray) -> np.ndarray:
        """Return the platform positions (N, n_position) at values (N, n) of these axes."""
        if self.quaternion_start is None:
            return np.asarray(values)
        first = self.quaternion_start
        start = np.broadcast_to(self.start, (len(values), 4))
        quaternion = turned_quaternion(start, values[:, first : first + 3])
        return np.concatenate([values[:, :first], quaternion, values[:, first + 3 :]], axis=1)


def pose_axes(model: Model) -> PoseAxes:
    """Return the axes of a machine."""
    port = model.platform.ports.position
    reference = model.platform_position(model.assembly.q[None])[0]
    first = quaternion_start(port)
    if first is None:
        return PoseAxes(
            columns=port.columns,
            units=port.units,
            reference=reference,
            quaternion_start=None,
            start=np.zeros(4),
        )
    prefix = port.columns[first].removesuffix(QUATERNION_SUFFIXES[0])
    return PoseAxes(
        columns=(
            *port.columns[:first],
            *(prefix + name for name in ROTATION_VECTOR),
            *port.columns[first + 4 :],
        ),
        units=(*port.units[:first], *("rad",) * 3, *port.units[first + 4 :]),
        reference=np.concatenate([reference[:first], np.zeros(3), reference[first + 4 :]]),
        quaternion_start=first,
        start=reference[first : first + 4],
    )
