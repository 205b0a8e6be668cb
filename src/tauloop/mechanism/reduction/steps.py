"""Records of reduction steps, and the motion of a machine's bodies that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.model import BASE, Joint, Mechanism

#: Fraction of a body-fixed vector perpendicular to the steady directions, below which the vector
#: counts as steady.
STEADY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a reduction.

    Attributes:
        name: description of the step.
        removed, kept: names of the removed elements, and of those that replace them.
        preserved: quantities that are preserved exactly.
        approximated: quantities that are approximated; empty for an exact step.
        lost: information that the reduced machine lacks, such as limits of a removed joint.
    """

    name: str
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    preserved: tuple[str, ...] = ()
    approximated: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the step does not change any actuator force."""
        return not self.approximated


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyMotions(ReprMixin):
    """Motion of the bodies of a machine in all its poses.

    It is determined by `tauloop.kinematics.reduction.motion`.

    Attributes:
        groups: groups of bodies of equal rotation: their relative orientation never changes.
        orientation: orientation (3, 3) of every body in the base frame at the reference pose.
        position: origin (3,) of every body in the base frame at the reference pose, m.
        steady: orthonormal vectors (3, k), in coordinates of every body, that keep their direction
            in the base frame: k = 3 for a body that never rotates, 1 for one that rotates about one
            direction.
        rods: bodies relative to which a rod of fixed length keeps its direction, by the rod's name.
    """

    groups: tuple[frozenset[str], ...]
    orientation: Mapping[str, np.ndarray]
    position: Mapping[str, np.ndarray]
    steady: Mapping[str, np.ndarray]
    rods: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def translating(self) -> frozenset[str]:
        """Bodies that never rotate, including the base."""
        return self.group(BASE)

    def group(self, body: str) -> frozenset[str]:
        """Return the bodies with the same rotation as this one."""
        return next((group for group in self.groups if body in group), frozenset((body,)))

    def is_steady(self, body: str, vector: np.ndarray, typical: float) -> bool:
        """Return whether a vector fixed to a body is constant in the base frame.

        Args:
            body: name of the body.
            vector: a length or a first moment (3,).
            typical: typical size of such vectors in the machine, in the same unit.
        """
        B = self.steady[body]
        size = max(typical, float(np.linalg.norm(vector)))
        return bool(np.linalg.norm(vector - B @ (B.T @ vector)) <= STEADY * size)


def require(mechanism: Mechanism, problems: list[Problem]) -> None:
    """Raise an error if a reduction step has problems.

    Raises:
        InputError: the step has problems; all are reported at once.
    """
    if problems:
        raise InputError(
            Problem(where=p.where, what=p.what, remedy=p.remedy, file=p.file or mechanism.file)
            for p in problems
        )


def limits_of(joints: Iterable[Joint]) -> tuple[str, ...]:
    """Return a text for each joint with a limited range, for `Step.lost`."""
    return tuple(f"limits of {joint.name}" for joint in joints if _has_limits(joint))


def _has_limits(joint: Joint) -> bool:
    limits = [(freedom.lower, freedom.upper, freedom.speed) for freedom in joint.freedoms]
    return bool(np.isfinite(limits).any())
