"""Wrenches in joints, and load cases of bearings: samples of a motion with the largest loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from tauloop.common.datasets import Tabular, item_rows
from tauloop.common.files import csv_text
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Loads of a joint with their units, in the order of columns.
LOAD_UNITS = {"force": "N", "radial": "N", "axial": "N", "moment": "N m", "tilting": "N m"}
#: Quantities of a load case and their units.
CASE_UNITS = {"time": "s", **LOAD_UNITS}
#: Fraction of the largest load with the same unit below which a load is a rounding error.
ROUNDING_FRACTION = 1e-12
#: Load cases: the load whose maximum (sign 1) or minimum (sign -1) defines the case.
CASES = {
    "largest force": ("force", 1.0),
    "largest radial force": ("radial", 1.0),
    "largest axial force": ("axial", 1.0),
    "smallest axial force": ("axial", -1.0),
    "largest moment": ("moment", 1.0),
    "largest tilting moment": ("tilting", 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JointForce(ReprMixin):
    """The wrench in one joint or rod end over N samples.

    The force acts on the body `on`, at the origin of the joint's frame on that body. The body or
    rod `by` exerts it. Components that rigid bodies do not determine are NaN.

    Attributes:
        name: the joint, or the rod with ".start" or ".end".
        kind: kind of the joint; "rod" for the end of a rod.
        on, by: names of the two bodies.
        force, moment: (N, 3) force and moment in the axes of the joint's frame on `on`, N and N m.
        force_in_base, moment_in_base: (N, 3) force and moment in the axes of the base.
        position: (N, 3) point of action in the base frame, m.
        axis: (N, 3) direction of a revolute, prismatic or cylindrical joint, or along a rod away
            from the body, in the base frame; None for other joints.
        axial: (N,) force along the axis, N; positive in tension for a rod; None without an axis.
        radial: (N,) magnitude of the force across the axis, N; None without an axis.
    """

    name: str
    kind: str
    on: str
    by: str
    force: np.ndarray
    moment: np.ndarray
    force_in_base: np.ndarray
    moment_in_base: np.ndarray
    position: np.ndarray
    axis: np.ndarray | None
    axial: np.ndarray | None
    radial: np.ndarray | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCase:
    """All loads of a joint at the sample at which one of them is largest.

    A load that rigid bodies do not determine is None.

    Attributes:
        joint: the joint, or the rod with ".start" or ".end".
        case: which load is largest, such as "largest radial force".
        time: time of the sample, s.
        force: magnitude of the force, N.
        radial: magnitude of the force across the axis, N; also None without an axis.
        axial: force along the axis, N, positive in tension for a rod; also None without an axis.
        moment: magnitude of the moment, N m.
        tilting: magnitude of the moment across the axis, N m; also None without an axis.
    """

    joint: str
    case: str
    time: float
    force: float | None
    radial: float | None
    axial: float | None
    moment: float | None
    tilting: float | None

    @property
    def label(self) -> str:
        """Names of the joint and the case."""
        return f"{self.joint}: {self.case}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCases(Tabular):
    """The load cases of all joints and rod ends over a motion.

    Attributes:
        cases: the cases, joint by joint. There is no case for a load that is always zero or that
            rigid bodies do not determine.
    """

    cases: tuple[LoadCase, ...] = field(
        metadata=item_rows(
            "load_case", "joint", "case", *CASE_UNITS, label="label", units=CASE_UNITS
        )
    )

    def of(self, joint: str) -> dict[str, LoadCase]:
        """Return the cases of one joint by name; empty for an unknown joint."""
        return {case.case: case for case in self.cases if case.joint == joint}

    def to_csv(self) -> str:
        """Return CSV text with a row for each case, SI units; cells without a value are empty."""
        columns = ["joint", "case", *(f"{name} [{unit}]" for name, unit in CASE_UNITS.items())]
        rows = []
        for case in self.cases:
            numbers = (getattr(case, name) for name in CASE_UNITS)
            texts = ["" if number is None else repr(float(number)) for number in numbers]
            rows.append([case.joint, case.case, *texts])
        return csv_text(columns, rows)


def load_cases(time: np.ndarray, joints: Sequence[JointForce]) -> LoadCases:
    """Return the samples at which the loads of every joint are largest.

    Args:
        time: times of the samples (N,), s.
        joints: forces and moments in the joints.
    """
    cases: list[LoadCase] = []
    for joint, loads in zip(joints, _without_rounding([_loads(j) for j in joints]), strict=True):
        for case, (load, sign) in CASES.items():
            values = loads[load]
            if values is None or np.isnan(values).all() or not np.any(values):
                continue
            sample = int(np.nanargmax(sign * values))
            cases.append(
                LoadCase(
                    joint=joint.name,
                    case=case,
                    time=float(time[sample]),
                    force=_at(loads["force"], sample),
                    radial=_at(loads["radial"], sample),
                    axial=_at(loads["axial"], sample),
                    moment=_at(loads["moment"], sample),
                    tilting=_at(loads["tilting"], sample),
                )
            )
    return LoadCases(cases=tuple(cases))


def _loads(joint: JointForce) -> dict[str, np.ndarray | None]:
    """Return the loads (N,) of a joint by name; None for loads that need a missing axis."""
    tilting = None
    if joint.axis is not None:
        moment = joint.moment_in_base
        along = np.sum(moment * joint.axis, axis=1)
        tilting = np.linalg.norm(moment - along[:, None] * joint.axis, axis=1)
    return {
        "force": np.linalg.norm(joint.force, axis=1),
        "radial": joint.radial,
        "axial": joint.axial,
        "moment": np.linalg.norm(joint.moment, axis=1),
        "tilting": tilting,
    }


def _without_rounding(
    joints: Sequence[dict[str, np.ndarray | None]],
) -> list[dict[str, np.ndarray | None]]:
    """Return the loads of all joints with rounding errors replaced by zero.

    An error is small compared with the largest load of the same unit in any joint.
    """
    largest = dict.fromkeys(LOAD_UNITS.values(), 0.0)
    for loads in joints:
        for name, unit in LOAD_UNITS.items():
            values = loads[name]
            if values is not None and not np.isnan(values).all():
                largest[unit] = max(largest[unit], float(np.nanmax(np.abs(values))))
    rounded = []
    for loads in joints:
        numbers: dict[str, np.ndarray | None] = {}
        for name, values in loads.items():
            numbers[name] = values
            if values is not None:
                is_rounding = np.abs(values) <= ROUNDING_FRACTION * largest[LOAD_UNITS[name]]
                numbers[name] = np.where(is_rounding, 0.0, values)
        rounded.append(numbers)
    return rounded


def _at(values: np.ndarray | None, sample: int) -> float | None:
    """Return the load of a sample; None if it is not known."""
    return None if values is None or np.isnan(values[sample]) else float(values[sample])
